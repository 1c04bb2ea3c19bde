"""Life with minds, of the course's first week: by rule it is Mesa's example, and its recordings replay."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
from mesa.examples.basic.conways_game_of_life.model import ConwaysGameOfLife

WEEK = Path(__file__).parents[1] / "notebooks" / "course" / "01_life"


@pytest.fixture
def minds(monkeypatch):
    monkeypatch.syspath_prepend(WEEK)
    yield import_module("minds")
    del sys.modules["minds"]


def test_by_rule_it_is_mesas_example_cell_by_cell(minds) -> None:
    thinking = minds.LifeWithMinds("glider", size=8)
    plain = ConwaysGameOfLife(width=8, height=8, rng=1)
    for cell, twin in zip(plain.agents, thinking.agents, strict=True):
        cell.state = twin.state
    for _ in range(8):
        plain.step()
        thinking.step()
        assert [cell.state for cell in plain.agents] == [cell.state for cell in thinking.agents]
    assert thinking.faithful == 1


@pytest.mark.parametrize("wording", ["stated", "named"])
def test_its_recordings_replay_and_show_a_mind_that_repeats_its_state(minds, wording) -> None:
    model = minds.LifeWithMinds.recorded(wording)
    model.run_for(minds.STEPS)
    assert (model.engine.usage.calls, model.engine.usage.failures) == (0, 0)
    assert (model.table["next"] == model.table["is_alive"]).all()
