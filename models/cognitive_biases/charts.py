"""Draws how far decisions lean the way of each bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from models.cognitive_biases.scores import published
from models.figures import COLOURS, GREY, LIGHT

if TYPE_CHECKING:
    from models.cognitive_biases.model import CognitiveBiasesModel

BLUE, ORANGE = COLOURS[:2]

Z = 1.96
"""Standard errors on each side of a mean in a 95 % interval."""

COMPARED = "GPT-4o-mini"
"""The published model that is drawn beside, where the tests are the original's."""


def bias_figure(model: CognitiveBiasesModel) -> Figure:
    """Draw the mean score of each bias with a 95 % interval, and what random choices would have."""
    scores = model.scores()
    figure = Figure(figsize=(7.5, 1.4 + 0.27 * max(len(scores), 3)), layout="constrained")
    axes: Any = figure.subplots()
    axes.set_title("Mean score by bias (│: random choices)", loc="left", fontsize=13, color=GREY)
    axes.axvline(0, color=GREY, lw=1)
    others = published(COMPARED) if model.scenario.tests else {}
    for height, one in enumerate(scores):
        if one.n:
            spread = Z * one.se if one.n > 1 else 0.0
            axes.errorbar(one.mean, height, xerr=spread, fmt="o", color=BLUE, capsize=3)
        axes.plot([one.random] * 2, [height - 0.35, height + 0.35], color="#dc2626", lw=2)
        if one.bias in others:
            axes.plot(others[one.bias], height, "x", color=ORANGE, label=COMPARED if not height else None)
    axes.set_yticks(range(len(scores)), [one.bias for one in scores])
    axes.invert_yaxis()
    axes.set_xlim(-1.05, 1.05)
    axes.grid(axis="x", color=LIGHT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=GREY, length=0)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=9)
    return figure
