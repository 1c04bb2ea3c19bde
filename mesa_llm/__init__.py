"""Agent-based models whose agents think with a language model, on Mesa.

Importing this package loads nothing else: each public name is fetched when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mesa_llm.access import Access
    from mesa_llm.agent import AgentDesign, LLMAgent, LLMMixin, Mind, ToolMixin
    from mesa_llm.bridge import Bridge
    from mesa_llm.config import AgentConfig, ConfigMixin, Settings
    from mesa_llm.errors import (
        BudgetSpent,
        ConfigError,
        DecisionError,
        MesaLLMError,
        ReplayError,
        Stopped,
        ToolError,
    )
    from mesa_llm.llm.endpoints import Endpoint
    from mesa_llm.llm.simple import ScriptedLLM
    from mesa_llm.mailbox import TalkMixin
    from mesa_llm.memory import (
        ChatMemory,
        MemoryMixin,
        NoMemory,
        StreamMemory,
        SummaryMemory,
        WindowMemory,
    )
    from mesa_llm.model import LLMModel
    from mesa_llm.plain import connect
    from mesa_llm.records import Decision, Event, Failure, Observation, Outcome, Reply, ToolCall, Usage
    from mesa_llm.runlog import RunLog
    from mesa_llm.survey import Question
    from mesa_llm.tools import action, tool
    from mesa_llm.world import DoNothing, World

__version__ = "0.1.0"

_HOME = {
    "access": ("Access",),
    "agent": ("AgentDesign", "LLMAgent", "LLMMixin", "Mind", "ToolMixin"),
    "bridge": ("Bridge",),
    "config": ("AgentConfig", "ConfigMixin", "Settings"),
    "errors": (
        "BudgetSpent",
        "ConfigError",
        "DecisionError",
        "MesaLLMError",
        "ReplayError",
        "Stopped",
        "ToolError",
    ),
    "llm.endpoints": ("Endpoint",),
    "llm.simple": ("ScriptedLLM",),
    "mailbox": ("TalkMixin",),
    "memory": ("ChatMemory", "MemoryMixin", "NoMemory", "StreamMemory", "SummaryMemory", "WindowMemory"),
    "model": ("LLMModel",),
    "plain": ("connect",),
    "records": ("Decision", "Event", "Failure", "Observation", "Outcome", "Reply", "ToolCall", "Usage"),
    "runlog": ("RunLog",),
    "survey": ("Question",),
    "tools": ("action", "tool"),
    "world": ("DoNothing", "World"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Access",
    "AgentConfig",
    "AgentDesign",
    "Bridge",
    "BudgetSpent",
    "ChatMemory",
    "ConfigError",
    "ConfigMixin",
    "Decision",
    "DecisionError",
    "DoNothing",
    "Endpoint",
    "Event",
    "Failure",
    "LLMAgent",
    "LLMMixin",
    "LLMModel",
    "MemoryMixin",
    "MesaLLMError",
    "Mind",
    "NoMemory",
    "Observation",
    "Outcome",
    "Question",
    "ReplayError",
    "Reply",
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
    "Usage",
    "WindowMemory",
    "World",
    "action",
    "connect",
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
