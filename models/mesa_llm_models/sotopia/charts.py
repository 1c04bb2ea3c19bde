"""Figures of Sotopia: scores by dimension and person, and goals by scene."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mesa_llm.text import clip
from mesa_llm.viz.render import COLOURS, GREY, LIGHT, Figure, frame, literal
from mesa_llm_models.sotopia.scores import GOAL, OVERALL, interval, normalised

if TYPE_CHECKING:
    from mesa_llm_models.sotopia.model import SotopiaModel

MAX_ROWS = 24
"""Maximum number of scenes in a figure."""

NOTHING = "nothing is judged yet"


def score_figure(model: SotopiaModel) -> Figure:
    """Draw the mean of each dimension on its own range, with 95 % intervals over scenes."""
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes: Any = figure.subplots()
    frame(axes, f"Scores, judged by {model.judge or 'nobody'}" if model.n_judged else "Scores")
    scores: Any = model.scores()
    tested: Any = scores[scores["tested"]].dropna(subset=[OVERALL])
    if tested.empty:
        return _empty(figure, axes)
    for height, one in enumerate(reversed(model.dimensions)):
        mean = float(tested[one.name].mean())
        position = normalised({one.name: mean}, model.dimensions)[one.name]
        low, high = (normalised({one.name: end}, model.dimensions)[one.name] for end in interval(tested, one.name))
        axes.plot([0, 1], [height, height], color=LIGHT, lw=7, solid_capstyle="round")
        if not np.isnan(low):
            axes.plot([low, high], [height, height], color=COLOURS[0], lw=2.5)
        axes.plot(position, height, "o", color=COLOURS[0], ms=9)
        axes.text(-0.02, height, f"{one.low}", ha="right", va="center", color=GREY, fontsize=9)
        axes.text(1.02, height, f"{one.high}", ha="left", va="center", color=GREY, fontsize=9)
        axes.text(position, height + 0.28, f"{mean:.2f}", ha="center", fontsize=9)
    axes.set_yticks(range(len(model.dimensions)), [one.code for one in reversed(model.dimensions)])
    axes.set_xlim(-0.12, 1.12)
    axes.set_xticks([])
    axes.grid(visible=False)
    return figure


def goal_figure(model: SotopiaModel) -> Figure:
    """Draw each person's goal score by scene, and the mean of each scene."""
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes: Any = figure.subplots()
    scores: Any = model.scores()
    goal = next((one for one in model.dimensions if one.name == GOAL), None)
    frame(axes, "Goals reached, by scene" + (f" ({goal.low} to {goal.high})" if goal else ""))
    if goal is None or scores[GOAL].isna().all():
        return _empty(figure, axes)
    names = {key: one.codename or key for key, one in model.scenes.situations.items()}
    means: Any = scores.dropna(subset=[GOAL]).groupby("situation", sort=False)[GOAL].mean().sort_values()
    keys = list(means.index)[:MAX_ROWS]
    for height, key in enumerate(keys):
        own = scores[scores["situation"] == key]
        for colour, (_, group) in zip(COLOURS, own.groupby("seat"), strict=False):
            axes.plot(group[GOAL], [height] * len(group), "o", color=colour, alpha=0.55, ms=7)
        axes.plot([means[key]] * 2, [height - 0.32, height + 0.32], color=GREY, lw=2)
    hard = {one.situation.situation_id for one in model.episodes if one.situation.is_hard}
    labels = [literal(clip(names[key], 26)) + (" (hard)" if key in hard else "") for key in keys]
    axes.set_yticks(range(len(keys)), labels)
    margin = (goal.high - goal.low) / 20
    axes.set_xlim(goal.low - margin, goal.high + margin)
    axes.set_xlabel("blue: first seat, orange: second seat, line: mean", color=GREY)
    axes.grid(axis="x", color=LIGHT)
    return figure


def _empty(figure: Figure, axes: Any) -> Figure:
    axes.text(0.5, 0.5, NOTHING, ha="center", transform=axes.transAxes, color=GREY)
    axes.set_xticks([])
    axes.set_yticks([])
    return figure
