"""Figures of the scores of each bias."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mesa_llm.viz import Figure
from mesa_llm.viz.render import COLOURS, GREY, LIGHT, headline
from mesa_llm_models.cognitive_biases.scores import BiasScore, published

if TYPE_CHECKING:
    from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel

BLUE, ORANGE = COLOURS[:2]

Z = 1.96
"""Standard errors on each side of a mean in a 95 % interval."""

MANY = 12
"""Number of biases from which they stand in two columns."""

COMPARED = "GPT-4o-mini"
"""The published model that is drawn beside, where the tests are the original's."""


def bias_figure(model: CognitiveBiasesModel) -> Figure:
    """Draw the mean score of each bias with a 95 % interval, and what random choices would have."""
    scores = model.scores()
    n_columns = 2 if len(scores) > MANY else 1
    n_rows = max(math.ceil(len(scores) / n_columns), 1)
    figure = Figure(figsize=(10, 1.5 + 0.26 * max(n_rows, 3)), layout="constrained")
    others = published(COMPARED) if model.scenario.tests else {}
    note = f", ×: {COMPARED}" if others else ""
    headline(figure, f"Mean score by bias, 95 % intervals (│: random choices{note})")
    columns: Any = figure.subplots(1, n_columns, squeeze=False)[0]
    for column, axes in enumerate(columns):
        shown = scores[column * n_rows : (column + 1) * n_rows]
        for height, one in enumerate(shown):
            _score(axes, height, one, others.get(one.bias))
        axes.axvline(0, color=GREY, lw=1)
        axes.set_yticks(range(len(shown)), [one.bias for one in shown])
        axes.set_ylim(n_rows - 0.4, -0.6)
        axes.set_xlim(-1.05, 1.05)
        axes.grid(axis="x", color=LIGHT)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(colors=GREY, length=0)
    return figure


def _score(axes: Any, height: int, one: BiasScore, other: float | None) -> None:
    if one.n:
        spread = Z * one.se if one.n > 1 else 0.0
        axes.errorbar(one.mean, height, xerr=spread, fmt="o", color=BLUE, capsize=3)
    axes.plot([one.random] * 2, [height - 0.35, height + 0.35], color="#dc2626", lw=2)
    if other is not None:
        axes.plot(other, height, "x", color=ORANGE)
