"""Parts of the figures that several models draw: an empty sheet over steps, a stacked sum, a legend below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from mesa_llm.viz.figures import FEW, GREY, Figure, tidy

LIGHT = "#e2e8f0"

COLOURS = ("#2563eb", "#f97316", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#db2777")

DOLLARS = StrMethodFormatter("${x:,.0f}")

MAX_LINE = 48
"""Maximum number of characters of all names in a legend of one line."""


def sheet(title: str, *, width: float = 7.0, height: float = 3.9) -> tuple[Figure, Any]:
    """Return an empty plot over steps.

    Args:
        title: Title of the plot.
        width: Width in inches.
        height: Height in inches.

    Returns:
        The figure and its axes.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Any = figure.subplots()
    frame(axes, title)
    axes.set_xlabel("step", color=GREY)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure, axes


def frame(axes: Any, title: str) -> None:
    """Set a title, and leave of the frame what is needed.

    Args:
        axes: Matplotlib axes.
        title: Title of the plot.
    """
    axes.set_title(title, loc="left", fontsize=13, color=GREY)
    tidy(axes)


def headline(figure: Figure, title: str) -> None:
    """Set a title over the whole figure, where long names beside its axes do not push it off the edge.

    Args:
        figure: The figure.
        title: Title of the plot.
    """
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, color=GREY)


def marker(values: Sequence[Any]) -> str:
    """Return the marker of a line: few points are marked, as a line of one point is invisible."""
    return "o" if len(values) <= FEW else ""


def stacked(title: str, parts: Mapping[str, Sequence[float]], colours: Sequence[str] = COLOURS) -> Figure:
    """Draw how a sum of dollars is divided, step by step.

    Args:
        title: Title of the plot.
        parts: Name → dollars by step, from step 0.
        colours: Colours of the parts.
    """
    figure, axes = sheet(title)
    steps = len(next(iter(parts.values())))
    if steps == 1:  # an area needs two points
        parts = {name: [*dollars, *dollars] for name, dollars in parts.items()}
    across = range(max(steps, 2))
    axes.stackplot(across, *parts.values(), labels=list(parts), colors=list(colours), alpha=0.85)
    axes.set_xlim(0, max(steps - 1, 1))
    axes.yaxis.set_major_formatter(DOLLARS)
    legend_below(axes, len(parts))
    return figure


def legend_below(axes: Any, columns: int) -> None:
    """Put the legend under the plot, where it hides nothing.

    Args:
        axes: Matplotlib axes.
        columns: Maximum number of columns.
    """
    is_wide = sum(len(label) for label in axes.get_legend_handles_labels()[1]) > MAX_LINE
    axes.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.18),
        ncols=min(columns, 2) if is_wide else columns,
        fontsize=9,
        handlelength=1.3,
        columnspacing=1.2,
    )
