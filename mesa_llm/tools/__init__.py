"""Tools that read and actions that write, made from typed methods."""

from mesa_llm.tools.tool import Tool, action, tool
from mesa_llm.tools.toolbox import ToolBox

__all__ = ["Tool", "ToolBox", "action", "tool"]
