"""Plots of the numbers that a model collects, and of a run beside its branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import matplotlib.figure
import numpy as np
from matplotlib.ticker import MaxNLocator

from mesa_llm.model.model import LLMModel
from mesa_llm.model.stages import USAGE
from mesa_llm.text import clip
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.mesa_adapter import steps_over
from mesa_llm.viz.render.style import FEW, GREY, Figure, frame, literal, tidy

LEGIBLE = 1.3
"""Size of text relative to Matplotlib's default, so that it is legible from the last row of a classroom."""

MARGIN = 0.05
"""Space above the highest value as a share of a plot's height, as Matplotlib has it."""

COST = "Cost"
"""Title of the plots of usage."""

Series = dict[int, float]
"""Step → value of a measure after it."""


def title_of(figure: matplotlib.figure.Figure) -> str:
    """Return the title of a figure, or else of its first plot that has one."""
    titles = [axes.get_title(loc=place) for axes in figure.axes for place in ("left", "center", "right")]
    return next(filter(None, [figure.get_suptitle(), *titles]), "").replace(r"\$", "$")


def enlarge(figure: Any) -> None:
    """Make all text larger relative to the plot, which keeps its size on the screen.

    Args:
        figure: A Matplotlib figure.
    """
    figure.set_size_inches(figure.get_size_inches() / LEGIBLE)
    figure.set_dpi(LEGIBLE * figure.get_dpi())


def finish(title: str, *, labels: Mapping[str, str] | None = None, per_step: bool = False) -> Callable[[Any], None]:
    """Return a `post_process` for Mesa's `make_plot_component`.

    Args:
        title: Title of the plot.
        labels: Measure → its label in the legend.
        per_step: Whether to show the change of each measure in each step instead of its value.
    """

    def finished(axes: Any) -> None:
        for line in axes.lines:
            if per_step:
                line.set_data(line.get_xdata()[1:], np.diff(line.get_ydata()))
            line.set_linewidth(2.2)
            line.set_marker("o" if len(line.get_xdata()) <= FEW else "")
            line.set_label((labels or {}).get(line.get_label(), line.get_label()))
        axes.relim()
        axes.autoscale()
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), high + MARGIN * max(0, low) if high >= 1 else 1)
        if max((len(line.get_xdata()) for line in axes.lines), default=0) < 2:
            axes.set_xlim(-0.05, 1.05)
        axes.set_ylabel("")
        frame(axes, title, legend=axes.get_legend() is not None)
        axes.get_figure().set_size_inches(7, 3.6)
        enlarge(axes.get_figure())

    return finished


# -- the numbers that a model collects


def numbers_of(model: Any) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the numbers that a model's data collector has collected, separated from the usage.

    Args:
        model: The model.

    Returns:
        Measure → its values in order; and the same for the usage in each step.
    """
    collector = getattr(model, "datacollector", None)
    if collector is None:
        return {}, {}
    reporters: dict[str, Any] = collector.model_reporters
    collected: dict[str, list[Any]] = collector.model_vars
    costs = {name for name, attribute in USAGE.items() if reporters.get(name) == attribute}
    numbers = {name: values for name, values in collected.items() if _are_numbers(values)}
    return (
        {name: values for name, values in numbers.items() if name not in costs},
        {name: values for name, values in numbers.items() if name in costs},
    )


def _are_numbers(values: Sequence[Any]) -> bool:
    sample: list[Any] = [value for value in (*values[:1], *values[-1:]) if value is not None]
    return bool(sample) and all(isinstance(value, Real) for value in sample) and bool not in map(type, sample)


def measure_figure(name: str) -> Callable[[Any], Figure]:
    """Return a function that plots a measure of a model over steps.

    Args:
        name: Name of the measure in the model's data collector.
    """

    def draw(model: Any) -> Figure:
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        values = model.datacollector.model_vars[name]
        _draw_values(figure.subplots(), name, values, first_step(model, values))
        return figure

    return draw


def cost_figure(model: Any) -> Figure:
    """Plot the usage of a run in each step: calls, tokens, dollars, failures and seconds.

    Args:
        model: The model.
    """
    costs = numbers_of(model)[1]
    figure = Figure(figsize=(7, 2.0 * len(costs)), layout="constrained")
    figure.suptitle(f"{COST} per step", x=0.02, ha="left", fontsize=13, color=GREY)
    every = np.ravel(figure.subplots(len(costs), sharex=True)).tolist()
    for axes, (name, values) in zip(every, costs.items(), strict=True):
        _draw_values(axes, name, values, first_step(model, values), is_last=axes is every[-1])
    return figure


def first_step(model: Any, values: Sequence[Any]) -> int:
    """Return the step of the first value that a model has collected, one per step: usually 0 or 1.

    Args:
        model: The model; an unfinished step does not count.
        values: The collected values.
    """
    return max(0, steps_over(model) + 1 - len(values))


def _draw_values(axes: Any, name: str, values: Sequence[Any], first: int, *, is_last: bool = True) -> None:
    heights = np.array([np.nan if value is None else float(value) for value in values])
    steps = range(first, first + len(heights))
    axes.plot(steps, heights, linewidth=2.2, marker="o" if len(heights) <= FEW else "")
    axes.set_title(label_of(name), loc="left", fontsize=13 if is_last else 11, color=GREY)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if is_last:
        axes.set_xlabel("Step", color=GREY)
    finite = heights[np.isfinite(heights)]
    if finite.size < 2:
        axes.set_xlim(first - 0.05, first + max(1, len(heights) - 1) + 0.05)
    if finite.size and finite.min() >= 0:
        low, high = axes.get_ylim()
        axes.set_ylim(0, high + MARGIN * max(0, low) if finite.max() > 0 else 1)
    tidy(axes)


class BranchRun(NamedTuple):
    """A finished branch."""

    title: str
    """Description of its change."""

    at: int
    """Last step in common with its parent."""

    values: dict[str, Series]
    """Measure → its values."""

    parent: dict[str, Series]
    """Measure → its values in the parent, and after its last step in the unchanged control branch."""

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
        _line(above, parent, "#0f172a", "this run, unchanged", "-")
        for run, colour in zip(branches, COLOURS, strict=False):
            own = {step: value for step, value in run.values.get(name, {}).items() if step >= run.at}
            _line(above, own, colour, f"after step {run.at}: {literal(clip(run.title, 52))}", "--")
            same = run.parent.get(name, {})
            _line(below, {step: value - same[step] for step, value in own.items() if step in same}, colour)
            for axes in (above, below):
                axes.axvline(run.at, color=colour, linewidth=0.8, alpha=0.6)
        below.axhline(0, color=GREY, linewidth=0.8)
        above.set_title(f"{label_of(name)}: this run and its branches", loc="left", color=GREY)
        below.set_title("Branch minus unchanged run", loc="left", fontsize=10, color=GREY)
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
