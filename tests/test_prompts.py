"""Templates: a model's own take the place of the library's."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError, Observation, ReplayError, ScriptedLLM, ToolCall
from mesa_llm.prompts import LIBRARY_PROMPTS, PromptFile, Prompts, find_prompt
from tests.pot import PotModel

MODEL = """
from tests.pot import PotModel

class Town(PotModel):
    pass
"""


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model in a folder of its own, with a template that the library has, too."""
    (tmp_path / "town.py").write_text(MODEL)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "survey_question.md").write_text("The mayor asks: {{ question }}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "town", raising=False)
    return import_module("town").Town


def test_a_model_asks_in_its_own_words(town: Any) -> None:
    read: list[str] = []
    model = town(1, ScriptedLLM(lambda request: read.append(request.messages[-1].content) or "Well."), rng=1)
    model.survey(["How are you?"])
    assert "The mayor asks: How are you?" in read[0]


def test_other_models_keep_the_words_of_the_library(town: Any) -> None:
    assert find_prompt(PotModel, "survey_question.md") != find_prompt(town, "survey_question.md")
    assert Prompts(town)["agent_memory.md"] is LIBRARY_PROMPTS["agent_memory.md"]


def test_the_digest_of_a_changed_template_differs_and_no_other(town: Any) -> None:
    ours, theirs = Prompts(town).digests(), Prompts(PotModel).digests()
    assert [name for name in theirs if ours[name] != theirs[name]] == ["survey_question.md"]


@pytest.mark.parametrize("text", ["{{ a }} % of {{ b }}", "{% if a %}{{ a }} % of {{ b }}{% endif %}"])
def test_a_template_is_filled_in_and_strict_with_or_without_logic(tmp_path: Path, text: str) -> None:
    path = tmp_path / "share.md"
    path.write_text(f"{text}\n")
    file = PromptFile(str(path))
    assert file.fill({"a": 3, "b": "all"}) == "3 % of all"
    with pytest.raises(ConfigError, match="'b' is undefined"):
        file.fill({"a": 3})


def test_the_parts_of_a_prompt_stand_in_one_order() -> None:
    model = PotModel(1, "random", rng=1)
    agent: Any = next(iter(model.agents))
    agent.config = "You like round numbers."
    system, user = agent.prompt(Observation("The pot is empty.", "The game of the pot."))
    assert system.content == "The game of the pot."
    assert user.content == "The pot is empty.\n\nYou like round numbers."
    _, user = agent.prompt(Observation("I like crowds.", "A questionnaire.", persona_place="first"))
    assert user.content == "You like round numbers.\n\nI like crowds."


def test_a_replay_that_misses_a_reply_names_the_prompt_that_has_changed(town: Any, tmp_path: Path) -> None:
    instructions = tmp_path / "prompts" / "instructions.md"
    instructions.write_text("You live in a town.")
    log = tmp_path / "run.sqlite"
    model = town(1, ScriptedLLM(lambda request: ToolCall("pay", {"coins": 1})), rng=1, log=log)
    model.step()
    model.close()
    instructions.write_text("You live in a village.")
    with pytest.raises(ReplayError, match=r"-system: You live in a town(.|\n)*have changed since .*: instructions\.md"):
        town(1, "ScriptedLLM", rng=1, log=log, replay=True).step()
