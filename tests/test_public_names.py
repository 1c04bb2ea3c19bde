"""One list of public names: what a model, an experiment or a lesson needs is imported from `mesa_llm`."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import mesa_llm

WANTED = [
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


def test_the_public_names_are_these() -> None:
    assert sorted(mesa_llm.__all__) == sorted(WANTED)
    assert dir(mesa_llm) == sorted(WANTED)


@pytest.mark.parametrize("name", WANTED)
def test_a_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(mesa_llm, name)
    assert inspect.getdoc(value)
    assert value.__name__ == name


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Engines'"):
        mesa_llm.Engines  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, mesa_llm; print([name for name in sys.modules if name.startswith(('mesa', 'pydantic'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['mesa_llm']"
