"""Agent-based models whose agents think with a language model, on Mesa.

Importing this package loads nothing else: each public name is fetched when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mesa_llm.access import Access
    from mesa_llm.activation import ByType, Hourly, Turn, one_at_a_time
    from mesa_llm.agent import LLMAgent, LLMMixin, Mind, ToolMixin
    from mesa_llm.bridge import Bridge
    from mesa_llm.config import AgentConfig, ConfigMixin, Settings
    from mesa_llm.design import AgentDesign
    from mesa_llm.errors import BudgetSpent, ConfigError, DecisionError, MesaLLMError, ReplayError, Stopped, ToolError
    from mesa_llm.llm.base import LLM
    from mesa_llm.llm.endpoints import Endpoint
    from mesa_llm.llm.human import HumanLLM
    from mesa_llm.llm.simple import RandomLLM, ScriptedLLM
    from mesa_llm.mailbox import TalkMixin
    from mesa_llm.memory import (
        ChatMemory,
        MemoryEntry,
        MemoryMixin,
        NoMemory,
        StreamMemory,
        SummaryMemory,
        WindowMemory,
    )
    from mesa_llm.model import LLMModel
    from mesa_llm.options import ModelOptions
    from mesa_llm.plain import connect
    from mesa_llm.population import Persona
    from mesa_llm.records import (
        ChatMessage,
        Decision,
        Event,
        Failure,
        Observation,
        Outcome,
        Reply,
        Request,
        ToolCall,
        Usage,
    )
    from mesa_llm.runlog import RunLog
    from mesa_llm.space import MovesOnGrid
    from mesa_llm.survey import Question
    from mesa_llm.text import one_line, quoted
    from mesa_llm.tools import action, tool
    from mesa_llm.world import DoNothing, Receiver, World

__version__ = "0.2.0"

_HOME = {
    "access": ("Access",),
    "activation": ("ByType", "Hourly", "Turn", "one_at_a_time"),
    "agent": ("LLMAgent", "LLMMixin", "Mind", "ToolMixin"),
    "bridge": ("Bridge",),
    "config": ("AgentConfig", "ConfigMixin", "Settings"),
    "design": ("AgentDesign",),
    "errors": ("BudgetSpent", "ConfigError", "DecisionError", "MesaLLMError", "ReplayError", "Stopped", "ToolError"),
    "llm.base": ("LLM",),
    "llm.endpoints": ("Endpoint",),
    "llm.human": ("HumanLLM",),
    "llm.simple": ("RandomLLM", "ScriptedLLM"),
    "mailbox": ("TalkMixin",),
    "memory": ("ChatMemory", "MemoryEntry", "MemoryMixin", "NoMemory", "StreamMemory", "SummaryMemory", "WindowMemory"),
    "model": ("LLMModel",),
    "options": ("ModelOptions",),
    "plain": ("connect",),
    "population": ("Persona",),
    "records": (
        "ChatMessage",
        "Decision",
        "Event",
        "Failure",
        "Observation",
        "Outcome",
        "Reply",
        "Request",
        "ToolCall",
        "Usage",
    ),
    "runlog": ("RunLog",),
    "space": ("MovesOnGrid",),
    "survey": ("Question",),
    "text": ("one_line", "quoted"),
    "tools": ("action", "tool"),
    "world": ("DoNothing", "Receiver", "World"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "LLM",
    "Access",
    "AgentConfig",
    "AgentDesign",
    "Bridge",
    "BudgetSpent",
    "ByType",
    "ChatMemory",
    "ChatMessage",
    "ConfigError",
    "ConfigMixin",
    "Decision",
    "DecisionError",
    "DoNothing",
    "Endpoint",
    "Event",
    "Failure",
    "Hourly",
    "HumanLLM",
    "LLMAgent",
    "LLMMixin",
    "LLMModel",
    "MemoryEntry",
    "MemoryMixin",
    "MesaLLMError",
    "Mind",
    "ModelOptions",
    "MovesOnGrid",
    "NoMemory",
    "Observation",
    "Outcome",
    "Persona",
    "Question",
    "RandomLLM",
    "Receiver",
    "ReplayError",
    "Reply",
    "Request",
    "RunLog",
    "ScriptedLLM",
    "Settings",
    "Stopped",
    "StreamMemory",
    "SummaryMemory",
    "TalkMixin",
    "ToolCall",
    "ToolError",
    "ToolMixin",
    "Turn",
    "Usage",
    "WindowMemory",
    "World",
    "action",
    "connect",
    "one_at_a_time",
    "one_line",
    "quoted",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Fetch a public name from its module when it is first used."""
    if name not in _MODULE:
        raise AttributeError(f"module 'mesa_llm' has no attribute {name!r}")
    return getattr(import_module(f"mesa_llm.{_MODULE[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
