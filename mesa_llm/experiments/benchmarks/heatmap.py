"""HTML page of designs × tasks with a heat map."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mesa_llm.experiments.benchmarks.cross import SIGNIFICANT, Column, Cross, star_of
from mesa_llm.experiments.benchmarks.page import GREY, NO_PICKS
from mesa_llm.experiments.charts import picture
from mesa_llm.experiments.findings import framed, rendered
from mesa_llm.text import NOT_KNOWN, figure_text

COLOURS = "RdBu"
"""Colour map: red below the reference design, blue above it, white where equal."""

FULL_RATIO = 2.0
"""Ratio to the reference design at which the colour saturates, as does its inverse."""

FULL_EFFECT = 3.0
"""Difference in standard deviations at which the colour saturates."""

Shade = tuple[float, str]
"""Colour from -1 to 1, NaN for none; and the text of a cell."""


def page(cross: Cross) -> str:
    """Render designs × tasks as a self-contained HTML page."""
    return framed("Designs × tasks", fragment(cross))


def fragment(cross: Cross, picks: Mapping[str, int] = NO_PICKS) -> str:
    """Render designs × tasks as a fragment of a page.

    Args:
        cross: The comparison.
        picks: Path of a run log → number of the run, for runs that can be opened from the page.
    """
    drawing = picture(heat_map(cross))
    return rendered("benchmarks/cross.html", cross=cross, heat_map=drawing, picks=picks, figure=figure_text)


def heat_map(cross: Cross) -> Figure:
    """Draw ratios to the reference design beside differences in standard deviations; reference cells are framed."""
    width, height = max(3.0, 1.2 * len(cross.tasks)), 1.5 + 0.5 * len(cross.designs)
    figure = Figure(figsize=(2 * width + 2.0, height), layout="constrained")
    panels: Any = figure.subplots(1, 2, sharey=True)
    titles = (
        "ratio to the diagonal\n(in brackets: the study's)",
        f"difference, in SDs\n(*: corrected p < {SIGNIFICANT})",
    )
    for axes, title, shade in zip(panels, titles, (_ratio, _effect), strict=True):
        _draw(axes, cross, shade)
        axes.set_title(title, loc="left", color=GREY, fontsize=10)
    panels[0].set_yticks(range(len(cross.designs)), list(cross.designs))
    return figure


def _draw(axes: Any, cross: Cross, shade: Callable[[Cross, Column, str], Shade]) -> None:
    cells = [[shade(cross, task, design) for task in cross.tasks] for design in cross.designs]
    colours = np.array([[colour for colour, _ in row] for row in cells], dtype=np.float64)
    axes.set_facecolor("#e2e8f0")
    axes.imshow(colours, cmap=COLOURS, vmin=-1, vmax=1, aspect="auto")
    for row, design in enumerate(cross.designs):
        for column, task in enumerate(cross.tasks):
            is_dark = abs(colours[row, column]) > 0.7
            text = cells[row][column][1]
            axes.text(column, row, text, ha="center", va="center", fontsize=9, color="white" if is_dark else "#1e293b")
            if design == task.diagonal:
                axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, color="#1e293b", linewidth=1.5))
    names = [task.task for task in cross.tasks]
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _ratio(cross: Cross, task: Column, design: str) -> Shade:
    cell = cross.cell(task, design)
    ratio, published = cell.ratio, cell.published_ratio
    study_ratio = "" if published is None or design == task.diagonal else f"\n({published:.2f})"
    if ratio is None:
        return math.nan, f"{NOT_KNOWN}{study_ratio}"
    colour = math.log(ratio.value) / math.log(FULL_RATIO) if ratio.value > 0 else -1.0
    return float(np.clip(colour, -1, 1)), f"{ratio.value:.2f}{study_ratio}"


def _effect(cross: Cross, task: Column, design: str) -> Shade:
    comparison = cross.cell(task, design).comparison
    if design == task.diagonal:
        return 0.0, ""
    if comparison is None:
        return math.nan, NOT_KNOWN
    difference, effect = comparison.difference.value, comparison.effect
    if difference == 0:
        return 0.0, "0"
    if effect is None:  # one pair has no spread; with several, all differences are equal
        size = math.nan if comparison.difference.n < 2 else math.copysign(1, difference)
        return size, f"{figure_text(difference)}\n(no SD)"
    return float(np.clip(effect / FULL_EFFECT, -1, 1)), f"{effect:+.2f}{star_of(comparison)}"
