"""Branches on a page: where they fork, and how they are drawn beside their run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mesa_llm import LLMModel, News
from mesa_llm.model.recording import Recording
from mesa_llm.viz.components.interventions import last_step_of
from mesa_llm.viz.render.figures import branches_figure
from mesa_llm.viz.render.style import picture_of
from mesa_llm.viz.session.interventions import MAX_BRANCHES, InterventionRunner
from tests.pot import PotModel
from tests.viz.test_interventions import finished


def curves(model: LLMModel, desk: InterventionRunner) -> tuple[list[Any], list[Any]]:
    """Return the curves of the run and its branches, and those of the differences; others are no data."""
    above, below = branches_figure("coins", desk.branches)(model).axes
    curves = [
        [np.asarray(line.get_ydata()) for line in axes.lines if line.get_marker() == "."] for axes in (above, below)
    ]
    return curves[0], curves[1]


def test_a_branch_leaves_the_run_as_it_is_and_is_drawn_beside_it() -> None:
    model, desk = PotModel(3, rng=1), InterventionRunner()
    model.run_for(3)
    digest = model.runlog.digest
    for _ in range(MAX_BRANCHES + 1):
        desk.branch(model, None, 4, at=1)
        finished(desk)
    assert desk.note == "The branch ran 4 steps from step 1, with 0 new and 0 reused replies."
    assert (model.runlog.digest, model.time, len(desk.branches)) == (digest, 3, MAX_BRANCHES)
    desk.branch(model, News(text="Pay up."), 3)
    assert finished(desk).branches[-1].title == "news for everyone: Pay up."
    model.run_for(2)
    (ours, same, *_), (apart, *_) = curves(model, desk)
    assert np.array_equal(ours[1:], same)
    assert not np.any(apart)


def test_a_recorded_run_is_forked_at_any_step_whatever_is_shown_of_it(tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    model = PotModel(3, rng=1, log=file)
    model.run_for(5)
    model.close()
    shown = Recording.read(file).rebuilt(log=file, replay=True)
    shown.step()
    desk = InterventionRunner()
    desk.branch(shown, None, 2, at=3)
    (ours, _), _ = curves(shown, finished(desk))
    assert (desk.error, len(ours), last_step_of(shown), shown.time) == ("", 6, 5, 1)


def test_dollar_signs_in_news_are_drawn_as_they_stand() -> None:
    model, desk = PotModel(2, rng=1), InterventionRunner()
    model.step()
    desk.branch(model, News(text=r"From $\x to $6_"), 1)
    figure = branches_figure("coins", finished(desk).branches)(model)
    picture_of(figure)
    assert r"\$\x to \$6_" in figure.legends[0].get_texts()[1].get_text()
