"""Figures of a post that spreads."""

from __future__ import annotations

from typing import Any

from mesa_llm.viz.figures import GREY, Figure
from models.figures import COLOURS, legend_below, marker, sheet
from models.oasis.model import OasisModel

CURVES = {"scale": "users (scale)", "max_breadth": "users at one distance (max breadth)", "depth": "distance (depth)"}
"""Measure → what the legend calls it."""


def cascade_figure(model: OasisModel) -> Figure:
    """Draw scale, max breadth and depth of the influencer's post, step by step."""
    figure, axes = sheet("Spread of the post")
    spread = model.cascade
    curves = dict(zip(CURVES, (spread.size, spread.breadth, spread.depth), strict=True))
    for (name, label), colour in zip(CURVES.items(), COLOURS, strict=False):
        values = curves[name]
        axes.plot(spread.steps, values, color=colour, lw=2.2, marker=marker(values), label=f"{label}: {values[-1]}")
    axes.set_ylim(bottom=0)
    legend_below(axes, len(CURVES))
    return figure


def activity_figure(model: OasisModel) -> Figure:
    """Draw the share of users who did something, step by step."""
    figure, axes = sheet("Users active in each step, %")
    shares = [100 * share for share in model.datacollector.model_vars["activity"][1:]]
    axes.plot(range(1, len(shares) + 1), shares, color=COLOURS[0], lw=2.2, marker=marker(shares))
    axes.set_ylim(0, 100)
    _none_yet(axes, shares)
    return figure


def _none_yet(axes: Any, values: list[float]) -> None:
    """Say that nothing has happened, where nothing has."""
    if not values:
        axes.text(0.5, 0.5, "no step yet", ha="center", transform=axes.transAxes, color=GREY)
