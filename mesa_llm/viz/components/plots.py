"""Plots as components: of any figure, of Mesa's own plots, and of all numbers that a model collects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.figure
import solara
from matplotlib.ticker import MaxNLocator
from mesa.visualization.components.matplotlib_components import PlotMatplotlib
from mesa.visualization.utils import update_counter
from reacton import use_memo
from reacton.core import Element
from solara.core import component

from mesa_llm.engine.engine import Engine
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.render.downloads import plot_downloads
from mesa_llm.viz.render.figures import COST, cost_figure, enlarge, first_step, measure_figure, numbers_of, title_of
from mesa_llm.viz.render.style import Figure, picture_of
from mesa_llm.viz.session.rw_lock import steady


def drawn_by(draw: Callable[[Any], matplotlib.figure.Figure]) -> Callable[[Any], Any]:
    """Return a component that shows a model as a figure, drawn once per step.

    Args:
        draw: Draws the model, which is held still while it does.
    """

    def Drawing(model: Any) -> Any:
        return Plot(model, draw)

    return Drawing


@component
def Plot(model: Any, draw: Callable[[Any], matplotlib.figure.Figure], *, is_large: bool = False) -> None:
    """Show a figure of a model, with PNG and SVG downloads.

    Args:
        model: The model.
        draw: Draws the model, which is held still while it does.
        is_large: Whether its text is already large enough for a page.
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


# -- Mesa's own plots


def is_mesa_plot(result: Any) -> bool:
    """Check whether an element was made by Mesa's `make_plot_component`."""
    return isinstance(result, Element) and result.component is PlotMatplotlib


@component
def MesaPlot(result: Any, model: Any) -> None:
    """Show a plot made by Mesa's `make_plot_component`, with downloads as for other plots.

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


@component
def Measures(model: Any) -> None:
    """Show a plot of each measure in the model's data collector, and one of the usage.

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
            solara.Info("The model has no data collector.", dense=True)
        elif not names:
            solara.Info("No numbers collected yet. Press Step.", dense=True)
