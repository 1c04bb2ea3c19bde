"""Charts as components: of any chart or figure, of Mesa's own plots, and of all numbers that a model collects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import matplotlib.figure
import solara
from matplotlib.ticker import MaxNLocator
from mesa.visualization.components.matplotlib_components import PlotMatplotlib
from mesa.visualization.utils import update_counter
from reacton import use_memo
from reacton.core import Element
from solara.core import component

from mesa_llm.charts.chart import Chart
from mesa_llm.charts.palette import dark_of
from mesa_llm.charts.panels import Panels
from mesa_llm.charts.scenes import SpaceScene
from mesa_llm.charts.style import Figure, picture_of
from mesa_llm.engine.engine import Engine
from mesa_llm.viz.components.markup import styled
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.components.scene import SceneView
from mesa_llm.viz.render.downloads import plot_downloads
from mesa_llm.viz.render.figures import Finish, cost_charts, enlarge, first_step, measure_chart, numbers_of, title_of
from mesa_llm.viz.session.rw_lock import steady

Drawn = Chart | SpaceScene | Panels | matplotlib.figure.Figure
"""What a model may be drawn as. The browser draws charts and scenes; a figure of Matplotlib is a picture."""

LIBRARY = "echarts@5.4.0/dist/echarts.min.js"
"""Apache ECharts, in the folder of the package `solara-assets` that Solara serves itself: it needs no network."""


def drawn_by(draw: Callable[[Any], Drawn]) -> Callable[[Any], Any]:
    """Return a component that shows a model as a chart, a scene or a Matplotlib figure, drawn once per step.

    Args:
        draw: Draws the model, which is held still while it does.
    """

    def Drawing(model: Any) -> Any:
        return Plot(model, draw)

    return Drawing


@component
def Plot(model: Any, draw: Callable[[Any], Drawn], *, is_large: bool = False) -> None:
    """Show a chart, a scene or a figure of a model, with downloads.

    Args:
        model: The model.
        draw: Draws the model, which is held still while it does.
        is_large: Whether the text of a figure is already large enough for a page.
    """
    page = use_page(model)
    moment = update_counter.get()

    def drawn() -> Drawn:
        with steady(model):
            return draw(model)

    def file(kind: str) -> bytes:
        what = drawn()
        return what.table().encode() if kind == "csv" and isinstance(what, Chart) else pictured(what, kind)

    def pictured(what: Drawn, kind: str) -> bytes:
        figure = what if isinstance(what, matplotlib.figure.Figure) else what.figure()
        if what is not figure or not is_large:
            enlarge(figure)
        return picture_of(figure, kind)

    def shown() -> tuple[str, Sequence[Chart | SpaceScene], bytes]:
        what = drawn()
        if isinstance(what, matplotlib.figure.Figure):
            return title_of(what) or getattr(draw, "__name__", "plot"), [], pictured(what, "png")
        panels = what.charts if isinstance(what, Panels) else [what]
        return what.title or next(filter(None, (one.title for one in panels)), "Space"), panels, b""

    title, panels, png = use_memo(shown, [model, moment])
    downloads = plot_downloads(model, title, file, has_table=len(panels) == 1 and isinstance(panels[0], Chart))
    if len(panels) == 1 and isinstance(panels[0], SpaceScene):
        SceneView(panels[0], model, downloads)
        return
    for index, one in enumerate(panels):
        if isinstance(one, SpaceScene):
            SceneView(one, model).key(f"scene {index}")
        else:
            ChartView(one, page.inspect_agent).key(f"chart {index}")
    Picture(title, downloads, png, is_plot=bool(panels))


@solara.component_vue("chart.vue")
def _Chart(
    chart: dict[str, Any],
    library_file: str = LIBRARY,
    dark_colours: dict[str, str] | None = None,
    event_pick: Callable[[int], None] | None = None,
) -> None:
    """Draw a chart in the browser; see `chart.vue`."""


@component
def ChartView(chart: Chart, on_pick: Callable[[int], None] | None = None) -> None:
    """Draw a chart in the browser.

    Args:
        chart: The chart.
        on_pick: Called with the `unique_id` of an agent whose bar or point is clicked.
    """

    def pick(agent_id: Any) -> None:
        if on_pick is not None and type(agent_id) is int:
            on_pick(agent_id)

    data = chart.data()
    colours = {colour for each in data["series"] for colour in (each["colour"], *each["colours"])}
    with styled():
        _Chart(chart=data, dark_colours={colour: dark_of(colour) for colour in sorted(colours)}, event_pick=pick)


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
    colours = (
        measure if isinstance(measure, dict) else dict.fromkeys([measure] if isinstance(measure, str) else measure)
    )

    def draw(model: Any) -> Chart | Figure:
        if post_process is None or isinstance(post_process, Finish):
            return (post_process or Finish("")).chart(model, colours)
        figure = Figure()
        axes: Any = figure.subplots()
        for name, colour in colours.items():
            values = model.datacollector.model_vars[name]
            first = first_step(model, values)
            axes.plot(range(first, first + len(values)), values, label=name, color=colour)
        if isinstance(measure, str):
            axes.set_ylabel(measure)
        else:
            axes.legend(loc="best")
        post_process(axes)
        axes.set_xlabel("Step")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return figure

    Plot(model, use_memo(lambda: draw, [str(measure)]), is_large=True)


@component
def Measures(model: Any) -> None:
    """Show a chart of each measure in the model's data collector, and of the usage.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        names, costs = (list(numbers) for numbers in numbers_of(model))
    engine = Engine.of(model)
    has_replies = engine is not None and engine.usage.calls + engine.usage.replayed > 0
    draws = {name: partial(_measure, name=name) for name in names}
    if has_replies:
        draws |= {name: partial(_cost, name=name) for name in costs}
    draws = use_memo(lambda: draws, [tuple(draws)])
    with solara.Div(classes=["mesa-llm-flat"]):
        for name, draw in draws.items():
            with solara.Card(margin=0, classes=["mesa-llm-card"]).key(name):
                Plot(model, draw)
        if getattr(model, "datacollector", None) is None:
            solara.Info("The model has no data collector.", dense=True)
        elif not names:
            solara.Info("No numbers collected yet. Press Step.", dense=True)


def _measure(model: Any, name: str) -> Chart:
    return measure_chart(model, name)


def _cost(model: Any, name: str) -> Chart:
    return cost_charts(model)[name]
