"""Agent-based models whose agents think with a language model, on Mesa.

Importing this package loads nothing else: each public name is fetched when it is first used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mesa_llm.agents.agent import LLMAgent, LLMMixin, Mind
    from mesa_llm.agents.design import AgentDesign
    from mesa_llm.agents.mailbox import TalkMixin
    from mesa_llm.agents.tools import ToolMixin
    from mesa_llm.benchmark.task import Task
    from mesa_llm.config import AgentConfig, ConfigMixin, Settings
    from mesa_llm.engine.access import Access
    from mesa_llm.engine.activation import ByType, Hourly, Turn, one_at_a_time
    from mesa_llm.engine.plain import connect
    from mesa_llm.engine.survey import Question
    from mesa_llm.engine.tool_server import ToolServer
    from mesa_llm.errors import BudgetSpent, ConfigError, DecisionError, MesaLLMError, ReplayError, Stopped, ToolError
    from mesa_llm.llm.endpoints import Endpoint
    from mesa_llm.llm.human.desk import HumanLLM
    from mesa_llm.llm.protocol import LLM
    from mesa_llm.llm.scripted import RandomLLM, ScriptedLLM
    from mesa_llm.memory import (
        ChatMemory,
        MemoryEntry,
        MemoryMixin,
        NoMemory,
        ReflectiveMemory,
        StreamMemory,
        SummaryMemory,
        WindowMemory,
    )
    from mesa_llm.model.branch import Branch, branch
    from mesa_llm.model.bridge import Bridge
    from mesa_llm.model.interventions import Change, News, Post
    from mesa_llm.model.model import LLMModel
    from mesa_llm.model.options import LLMOptions
    from mesa_llm.model.scenario import Hidden, Label, LLMScenario, Output, Slider, parameters_of
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
    from mesa_llm.runlog.log import RunLog
    from mesa_llm.space import MovesOnGrid
    from mesa_llm.testing import check_model
    from mesa_llm.text import one_line, quoted
    from mesa_llm.tools.tool import action, tool
    from mesa_llm.world import DoNothing, Receiver, World

__version__ = "0.10.0"

_HOME = {
    "engine.access": ("Access",),
    "engine.activation": ("ByType", "Hourly", "Turn", "one_at_a_time"),
    "agents.agent": ("LLMAgent", "LLMMixin", "Mind"),
    "model.branch": ("Branch", "branch"),
    "model.bridge": ("Bridge",),
    "model.interventions": ("Change", "News", "Post"),
    "benchmark.task": ("Task",),
    "config": ("AgentConfig", "ConfigMixin", "Settings"),
    "agents.design": ("AgentDesign",),
    "errors": ("BudgetSpent", "ConfigError", "DecisionError", "MesaLLMError", "ReplayError", "Stopped", "ToolError"),
    "llm.protocol": ("LLM",),
    "llm.endpoints": ("Endpoint",),
    "llm.human.desk": ("HumanLLM",),
    "llm.scripted": ("RandomLLM", "ScriptedLLM"),
    "agents.mailbox": ("TalkMixin",),
    "agents.tools": ("ToolMixin",),
    "memory": (
        "ChatMemory",
        "MemoryEntry",
        "MemoryMixin",
        "NoMemory",
        "ReflectiveMemory",
        "StreamMemory",
        "SummaryMemory",
        "WindowMemory",
    ),
    "model.model": ("LLMModel",),
    "model.options": ("LLMOptions",),
    "model.scenario": ("Hidden", "Label", "LLMScenario", "Output", "Slider", "parameters_of"),
    "engine.plain": ("connect",),
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
    "runlog.log": ("RunLog",),
    "space": ("MovesOnGrid",),
    "engine.tool_server": ("ToolServer",),
    "engine.survey": ("Question",),
    "testing": ("check_model",),
    "text": ("one_line", "quoted"),
    "tools.tool": ("action", "tool"),
    "world": ("DoNothing", "Receiver", "World"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "LLM",
    "Access",
    "AgentConfig",
    "AgentDesign",
    "Branch",
    "Bridge",
    "BudgetSpent",
    "ByType",
    "Change",
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
    "Hidden",
    "Hourly",
    "HumanLLM",
    "LLMAgent",
    "LLMMixin",
    "LLMModel",
    "LLMOptions",
    "LLMScenario",
    "Label",
    "MemoryEntry",
    "MemoryMixin",
    "MesaLLMError",
    "Mind",
    "MovesOnGrid",
    "News",
    "NoMemory",
    "Observation",
    "Outcome",
    "Output",
    "Persona",
    "Post",
    "Question",
    "RandomLLM",
    "Receiver",
    "ReflectiveMemory",
    "ReplayError",
    "Reply",
    "Request",
    "RunLog",
    "ScriptedLLM",
    "Settings",
    "Slider",
    "Stopped",
    "StreamMemory",
    "SummaryMemory",
    "TalkMixin",
    "Task",
    "ToolCall",
    "ToolError",
    "ToolMixin",
    "ToolServer",
    "Turn",
    "Usage",
    "WindowMemory",
    "World",
    "action",
    "branch",
    "check_model",
    "connect",
    "one_at_a_time",
    "one_line",
    "parameters_of",
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


class _HiddenModels:
    """Explains why a model of this project cannot be imported where another package `models` is found first.

    This finder finds nothing itself: it comes last on `sys.meta_path`, and so sees only what all others missed.
    """

    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "models")

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        """Raise a helpful error for a module of ours that is hidden."""
        package, _, model = name.partition(".")
        if package == "models" and path and cls.folder not in path and os.path.isdir(os.path.join(cls.folder, model)):
            raise ModuleNotFoundError(
                f"No module named {name!r}: {os.path.abspath(path[0])} hides the models of mesa-llm-worlds, as Python "
                "finds it first; rename it, or work in another folder (and leave this one out of PYTHONPATH)",
                name=name,
            )


if _HiddenModels not in sys.meta_path:
    sys.meta_path.append(_HiddenModels)
