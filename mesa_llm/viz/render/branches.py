"""Plots of a run and its branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matplotlib.ticker import MaxNLocator

from mesa_llm.model.model import LLMModel
from mesa_llm.text import clip
from mesa_llm.viz.render.figures import first_step
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.style import FEW, GREY, Figure, literal, tidy

Series = dict[int, float]
"""Step → value of a measure after it."""


class BranchRun(NamedTuple):
    """A finished branch."""

    title: str
    """Description of its change."""

    at: int
    """Last step in common with its parent."""

    values: dict[str, Series]
    """Measure → its values."""

    parent: dict[str, Series]
    """Measure → its values in the parent so far."""

    calls: int
    """Number of live replies."""

    copied: int
    """Number of replies from the parent's log."""

    def differs(self, name: str) -> bool:
        """Check whether a measure ever differs from the parent's."""
        own, parent = self.values[name], self.parent.get(name, {})
        return any(value != parent.get(step, value) for step, value in own.items())


COLOURS = ("#2563eb", "#f97316", "#16a34a", "#9333ea")
"""Colours of branches, oldest first."""


def branches_figure(name: str, branches: Sequence[BranchRun]) -> Callable[[LLMModel], Figure]:
    """Return a function that plots a measure of a run and its branches, with the differences below.

    Args:
        name: Name of the measure.
        branches: The branches.
    """

    def draw(model: LLMModel) -> Figure:
        figure = Figure(figsize=(8, 5.2), layout="constrained")
        above, below = figure.subplots(2, sharex=True, height_ratios=(2, 1))
        parent = parent_series(model, name, branches)
        _line(above, parent, "#0f172a", "this run", "-")
        for run, colour in zip(branches, COLOURS, strict=False):
            own = {step: value for step, value in run.values.get(name, {}).items() if step >= run.at}
            _line(above, own, colour, f"after step {run.at}: {literal(clip(run.title, 52))}", "--")
            _line(below, {step: value - parent[step] for step, value in own.items() if step in parent}, colour)
            for axes in (above, below):
                axes.axvline(run.at, color=colour, linewidth=0.8, alpha=0.6)
        below.axhline(0, color=GREY, linewidth=0.8)
        above.set_title(f"{label_of(name)}: this run and its branches", loc="left", color=GREY)
        below.set_title("Branch minus this run", loc="left", fontsize=10, color=GREY)
        below.set_xlabel("Step", color=GREY)
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        for axes in (above, below):
            tidy(axes)
        figure.legend(*above.get_legend_handles_labels(), loc="outside lower left", fontsize="small", frameon=False)
        return figure

    return draw


def parent_series(model: LLMModel, name: str, branches: Sequence[BranchRun]) -> Series:
    """Return a measure of a run: its values when it was branched, and those collected since.

    Args:
        model: The run.
        name: Name of the measure.
        branches: Its branches.
    """
    series: Series = {}
    for run in branches:
        series |= run.parent.get(name, {})
    values = [] if model.datacollector is None else list(model.datacollector.model_vars.get(name, []))
    first = first_step(model, values)
    return series | {first + index: float(value) for index, value in enumerate(values) if value is not None}


def _line(axes: Any, series: Series, colour: str, label: str = "", style: str = "-") -> None:
    steps = sorted(series)
    marker = "." if len(steps) <= FEW else ""
    axes.plot(steps, [series[step] for step in steps], color=colour, linestyle=style, marker=marker, label=label or "_")
