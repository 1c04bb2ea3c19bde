"""Parameters and arguments that are members of an enum, all the way from the command line to the run log."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, Unpack

import pytest
from typer.testing import CliRunner

from mesa_llm import LLMAgent, LLMModel, LLMOptions, LLMScenario, Observation, ScriptedLLM, ToolCall, action
from mesa_llm.cli.app import app
from mesa_llm.cli.arguments import parameter_table
from mesa_llm.llm.replies import call
from mesa_llm.model.scenario import controls


class Mood(Enum):
    """How somebody feels."""

    CALM = "calm"
    ANGRY = "angry"


class CrowdScenario(LLMScenario):
    """Parameters of a crowd."""

    mood: Mood = Mood.CALM
    """How everybody feels."""


class Person(LLMAgent):
    """Shows how it feels."""

    moods: tuple[Any, ...] = tuple(Mood)

    def observe(self) -> Observation:
        return Observation("You may be calm or angry.", options={"mood": self.moods})

    @action
    def show(self, mood: Mood) -> str:
        """Show how you feel."""
        return f"You look {mood.value}."

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("show", {"mood": self.model.scenario.mood})


class Crowd(LLMModel):
    """People who feel the same."""

    scenario_class = CrowdScenario
    scenario: CrowdScenario

    def __init__(self, scenario: CrowdScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        Person(self, memory="window:2")


def test_a_run_with_a_member_of_an_enum_is_replayed_from_its_log(tmp_path: Path) -> None:
    log = str(tmp_path / "run.sqlite")
    model = f"{__name__}:Crowd"
    for command in (["run", model, "--steps", "1", "--set", "mood=angry", "--log", log], ["replay", log, "--trust"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output


def test_members_of_an_enum_are_shown_by_their_values() -> None:
    assert parameter_table(Crowd)[1].split()[:4] == ["mood", "calm", "calm", "|"]
    assert controls(Crowd)["mood"]["value"] == "calm"


@pytest.mark.parametrize("moods", [tuple(Mood), ("calm", "angry")])
def test_options_of_an_enum_are_its_members_or_their_values(moods: tuple[Any, ...], monkeypatch: Any) -> None:
    monkeypatch.setattr(Person, "moods", moods)
    model = Crowd(llm=ScriptedLLM(lambda request: call("show", mood="angry")), rng=1)
    model.step()
    (person,) = model.agents
    assert list(model.runlog.actions()["arguments"]) == ['{"mood":"angry"}']
    assert [entry.text for entry in person.memory.entries] == ["You showed how you feel (angry). You look angry."]


def test_what_is_no_option_is_refused_by_its_value(monkeypatch: Any) -> None:
    monkeypatch.setattr(Person, "moods", (Mood.CALM,))
    model = Crowd(mood=Mood.ANGRY, rng=1)
    model.step()
    assert model.runlog.failures() == ["show: mood: 'angry' is not possible now; possible: calm."]
