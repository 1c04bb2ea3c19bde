"""Plots: a figure that notebooks show, a component for any figure, and one for the numbers that a model collects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import matplotlib.figure
import numpy as np
import solara
from matplotlib.ticker import MaxNLocator
from mesa.visualization.components.matplotlib_components import PlotMatplotlib
from mesa.visualization.utils import update_counter
from reacton import use_memo
from reacton.core import Element
from solara.core import component

from mesa_llm.engine.engine import Engine
from mesa_llm.model.stages import USAGE
from mesa_llm.viz.download import Download, Picture, file_name
from mesa_llm.viz.gate import steady
from mesa_llm.viz.markup import label_of
from mesa_llm.viz.plain import steps_over
from mesa_llm.viz.style import FEW, GREY, Figure, frame, picture_of, tidy

LEGIBLE = 1.3
"""How much larger text is than Matplotlib's, in relation to its plot: it has to be read from the last row."""

MARGIN = 0.05
"""Share of its height that a plot has above its highest value, as Matplotlib's own have."""

COST = "Cost"
"""Title of the plots of what a run has used."""


def drawn_by(draw: Callable[[Any], matplotlib.figure.Figure]) -> Callable[[Any], Any]:
    """Make a component that shows a model as a figure, drawn once after each step however often the page is.

    Args:
        draw: Draws the model, while it stands still.
    """

    def Drawing(model: Any) -> Any:
        return Plot(model, draw)

    return Drawing


@component
def Plot(model: Any, draw: Callable[[Any], matplotlib.figure.Figure], *, is_large: bool = False) -> None:
    """Show a figure of a model, and offer it as PNG and SVG.

    Args:
        model: The model.
        draw: Draws it, while it stands still.
        is_large: Whether its text is large enough to be read on a page.
    """
    moment = update_counter.get()

    def drawn(kind: str) -> tuple[str, bytes]:
        with steady(model):
            figure = draw(model)
        if not is_large:
            enlarge(figure)
        return title_of(figure) or getattr(draw, "__name__", "plot"), picture_of(figure, kind)

    title, png = use_memo(lambda: drawn("png"), [model, moment])
    Picture(title, plot_downloads(model, title, lambda kind: drawn(kind)[1]), png)


def plot_downloads(model: Any, title: str, content: Callable[[str], bytes]) -> list[Download]:
    """Return the files that a plot is offered as.

    Args:
        model: What is plotted.
        title: What the plot shows.
        content: Draws it as `png` or `svg`.
    """

    def offer(kind: str) -> Download:
        name = file_name(type(model).__name__, title, f"step {steps_over(model)}", suffix=kind)
        return Download(kind.upper(), name, lambda: content(kind))

    return [offer("png"), offer("svg")]


def title_of(figure: matplotlib.figure.Figure) -> str:
    """Return the title of a figure, or of the first of its plots that has one."""
    titles = [axes.get_title(loc=place) for axes in figure.axes for place in ("left", "center", "right")]
    return next(filter(None, [figure.get_suptitle(), *titles]), "").replace(r"\$", "$")


def enlarge(figure: Any) -> None:
    """Make all text larger in relation to its plot, which keeps its size on the screen.

    Args:
        figure: A Matplotlib figure.
    """
    figure.set_size_inches(figure.get_size_inches() / LEGIBLE)
    figure.set_dpi(LEGIBLE * figure.get_dpi())


def finish(title: str, *, labels: Mapping[str, str] | None = None, per_step: bool = False) -> Callable[[Any], None]:
    """Make a `post_process` for Mesa's `make_plot_component`.

    Args:
        title: What the plot shows.
        labels: Name of a measure → what the legend calls it.
        per_step: Show how much each measure rose in each step, instead of its value.
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


# -- Mesa's own plots


def is_mesa_plot(result: Any) -> bool:
    """Check whether an element is one of Mesa's `make_plot_component`."""
    return isinstance(result, Element) and result.component is PlotMatplotlib


@component
def MesaPlot(result: Any, model: Any) -> None:
    """Show what Mesa's `make_plot_component` made, to be downloaded as other plots.

    Args:
        result: The element.
        model: The model.
    """
    measure, post_process = result.args[1], result.kwargs.get("post_process")

    def draw(model: Any) -> Figure:
        figure = Figure()
        axes: Any = figure.subplots()
        names = [measure] if isinstance(measure, str) else list(measure)
        for name in names:
            color = {"color": measure[name]} if isinstance(measure, dict) else {}
            values = model.datacollector.model_vars[name]
            first = first_step(model, values)
            axes.plot(range(first, first + len(values)), values, label=name, **color)
        if isinstance(measure, str):
            axes.set_ylabel(measure)
        else:
            axes.legend(loc="best")
        if post_process is not None:
            post_process(axes)
        axes.set_xlabel("Step")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return figure

    Plot(model, use_memo(lambda: draw, [str(measure)]), is_large=True)


# -- the numbers that a model collects


def numbers_of(model: Any) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the numbers that a model's data collector has collected of the model, and apart from them its cost.

    Args:
        model: The model.

    Returns:
        Name of each measure → its values, in order; and the same for what the run has used in each step.
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
    """Make what draws one of the numbers that a model collects, step by step.

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
    """Draw what a run has used in each step: calls, tokens, dollars, failures and seconds.

    Args:
        model: The model.
    """
    costs = numbers_of(model)[1]
    figure = Figure(figsize=(7, 2.0 * len(costs)), layout="constrained")
    figure.suptitle(f"{COST} of each step", x=0.02, ha="left", fontsize=13, color=GREY)
    every = np.ravel(figure.subplots(len(costs), sharex=True)).tolist()
    for axes, (name, values) in zip(every, costs.items(), strict=True):
        _draw_values(axes, name, values, first_step(model, values), is_last=axes is every[-1])
    return figure


def first_step(model: Any, values: Sequence[Any]) -> int:
    """Return the step of the first of the values that a model has collected, one a step: 0 or 1 as a rule.

    Args:
        model: The model; the step that it is in does not count.
        values: What it has collected.
    """
    next_step = int(getattr(model, "now", model.time + 1))
    return max(0, next_step - len(values))


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


@component
def Measures(model: Any) -> None:
    """Show a plot of every number that the model's data collector collects, and one of what the run has used.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        names, costs = (list(numbers) for numbers in numbers_of(model))
    figures = use_memo(lambda: {name: measure_figure(name) for name in names}, [tuple(names)])
    engine = Engine.of(model)
    has_replies = engine is not None and engine.usage.calls + engine.usage.replayed > 0
    with solara.Div(classes=["mesa-llm-flat"]):
        for name, draw in figures.items():
            with solara.Card(margin=0, classes=["mesa-llm-card"]).key(name):
                Plot(model, draw)
        if costs and has_replies:
            with solara.Card(margin=0, classes=["mesa-llm-card"]).key(COST):
                Plot(model, cost_figure)
        if getattr(model, "datacollector", None) is None:
            solara.Info("The model has no datacollector, and measures nothing.", dense=True)
        elif not names:
            solara.Info("The model has collected no numbers yet; press Step.", dense=True)
