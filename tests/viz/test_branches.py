"""Branches on a page: where they fork, and how they are drawn beside their run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mesa_llm import LLMModel, News, ScriptedLLM, ToolCall
from mesa_llm.charts import Chart, picture_of
from mesa_llm.model.recording import Recording
from mesa_llm.viz.render.figures import branches_chart
from mesa_llm.viz.session.interventions import (
    MAX_BRANCHES,
    InterventionRunner,
    last_fork_of,
    last_step_of,
    live_replies,
)
from tests.pot import PotModel
from tests.viz.test_interventions import finished

NEWS = News(text="Pay up.")


def curves(model: LLMModel, desk: InterventionRunner) -> tuple[list[Any], list[Any]]:
    """Return the curves of the run and its branches, and those of the differences; others are no data."""
    above, below = (
        [np.array(each.values) for each in chart.series if each.kind == "line"]
        for chart in branches_chart("coins", desk.branches)(model).charts
        if isinstance(chart, Chart)
    )
    return above, below


def test_a_branch_leaves_the_run_as_it_is_and_is_drawn_beside_it() -> None:
    model, desk = PotModel(3, rng=1), InterventionRunner()
    model.run_for(3)
    digest = model.runlog.digest
    for _ in range(MAX_BRANCHES + 1):
        desk.branch(model, NEWS, 2, at=1)
        finished(desk)
    assert desk.note == "The branch ran 2 steps from step 1, with 0 new and 0 reused replies."
    assert (model.runlog.digest, model.time, len(desk.branches)) == (digest, 3, MAX_BRANCHES)
    assert finished(desk).branches[-1].title == "news for everyone: Pay up."
    (ours, same, *_), (apart, *_) = curves(model, desk)
    assert np.array_equal(ours[1:], same)
    assert not np.any(apart)


def test_beside_a_branch_at_the_last_step_runs_an_unchanged_control() -> None:
    model, desk = PotModel(3, rng=1), InterventionRunner()
    model.run_for(2)
    desk.branch(model, NEWS, 3)
    run = finished(desk).branches[-1]
    assert desk.note.startswith("The branch ran 3 steps from step 2 beside an unchanged control branch,")
    assert list(run.parent["coins"]) == list(run.values["coins"]) == [1, 2, 3, 4, 5]
    model.run_for(3)
    assert run.parent["coins"][5] == model.coins


def test_a_control_and_its_branch_get_the_same_reply_to_the_same_prompt() -> None:
    coins = iter(range(10_000))
    llm = ScriptedLLM(lambda one: ToolCall("pay", {"coins": next(coins) % 5 if one.salt.agent == 1 else 1}))
    model, desk = PotModel(2, llm=llm, rng=1), InterventionRunner()
    model.run_for(1)
    desk.branch(model, News(text="Pay up.", to=(2,)), 2)
    run = finished(desk).branches[-1]
    assert run.parent == run.values  # agent 1 heard nothing: it pays what it paid in the control


def test_a_branch_whose_budget_ends_is_kept_with_the_steps_it_made() -> None:
    model, desk = (
        PotModel(2, llm=ScriptedLLM(lambda request: ToolCall("pay", {"coins": 1})), rng=1),
        InterventionRunner(),
    )
    model.run_for(1)
    desk.branch(model, NEWS, 5, max_calls=8)
    assert "budget of 4 calls" in finished(desk).error
    assert list(desk.branches[-1].values["coins"]) == [1, 2, 3]


def test_the_cap_of_a_branch_follows_from_its_steps_and_agents() -> None:
    model = PotModel(4, rng=1)
    model.run_for(6)
    assert live_replies(model, 5, at=6) == 5 * 4 * 2 * 1.25
    assert live_replies(model, 5, at=1) == 5 * 4 * 1.25  # the run itself is the control


@pytest.mark.parametrize(("steps", "running", "last"), [(0, True, -1), (3, True, 3), (3, False, 2), (0, False, -1)])
def test_a_fork_is_offered_where_a_step_can_follow(steps: int, running: bool, last: int) -> None:
    model = PotModel(2, rng=1)
    model.run_for(steps)
    model.running = running
    assert last_fork_of(model) == last


def test_a_recorded_run_is_forked_at_any_step_whatever_is_shown_of_it(tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    model = PotModel(3, rng=1, log=file)
    model.run_for(5)
    model.close()
    shown = Recording.read(file).rebuilt(log=file, replay=True)
    shown.step()
    desk = InterventionRunner()
    desk.branch(shown, NEWS, 2, at=3)
    (ours, _), _ = curves(shown, finished(desk))
    assert (desk.error, len(ours), last_step_of(shown), last_fork_of(shown), shown.time) == ("", 6, 5, 4, 1)


def test_dollar_signs_in_news_are_drawn_as_they_stand() -> None:
    model, desk = PotModel(2, rng=1), InterventionRunner()
    model.step()
    desk.branch(model, News(text=r"From $\x to $6_"), 1)
    figure = branches_chart("coins", finished(desk).branches)(model).figure()
    picture_of(figure)
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert r"\$\x to \$6_" in legend.get_texts()[1].get_text()
