"""Figures of findings, drawn with Matplotlib."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

from mesa_llm.statistics import mean_estimate

COLOUR = "#2563eb"


class Drawing(Figure):
    """A figure that a notebook shows without a backend of Matplotlib."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=110)
        return file.getvalue()


def chart_of_arms(measure: str, arms: Mapping[str, Mapping[int, float | None]], min_runs: int) -> Figure:
    """Draw a row for each arm: a dot for each run, and their mean with its 95 % interval.

    Args:
        measure: Name of the measure.
        arms: Name of an arm → seed → value.
        min_runs: Minimum number of runs with an interval.
    """
    figure = Drawing(figsize=(7.5, 1.3 + 0.4 * len(arms)), layout="constrained")
    axes: Any = figure.subplots()
    for row, runs in enumerate(arms.values()):
        axes.plot(list(runs.values()), [row] * len(runs), "o", color=COLOUR, alpha=0.25, markersize=4)
        mean = mean_estimate(list(runs.values()))
        if mean is not None:
            axes.plot([mean.value], [row], "D", color=COLOUR, markersize=6)
            if mean.low is not None and mean.high is not None and mean.n >= min_runs:
                axes.plot([mean.low, mean.high], [row, row], color=COLOUR, linewidth=2)
    title = f"{measure}: runs, and their mean with its 95 % interval"
    _tidy(axes, title, [f"{arm} (n = {len(runs)})" for arm, runs in arms.items()])
    return figure


def chart_of_estimates(title: str, rows: Mapping[str, tuple[float | None, float | None, float | None]]) -> Figure:
    """Draw a row for each estimate, with its interval if it has one.

    Args:
        title: What is estimated.
        rows: Name → value, lower and upper end of its interval.
    """
    figure = Drawing(figsize=(7.5, 1.3 + 0.4 * len(rows)), layout="constrained")
    axes: Any = figure.subplots()
    for row, (value, low, high) in enumerate(rows.values()):
        axes.plot([value], [row], "D", color=COLOUR, markersize=6)
        if low is not None and high is not None:
            axes.plot([low, high], [row, row], color=COLOUR, linewidth=2)
    _tidy(axes, title, list(rows))
    return figure


def _tidy(axes: Any, title: str, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(title)
    axes.grid(axis="x", color="#e2e8f0", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def picture(figure: Figure) -> str:
    """Return a figure as the data URL of an SVG image."""
    file = BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(file.getvalue()).decode()}"
