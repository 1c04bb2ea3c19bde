"""What the pictures and the pages of the classics share: grids, and a rule twin beside a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
import solara
from mesa.visualization.utils import update_counter
from reacton import use_state
from solara.core import component

from mesa_llm import LLMModel
from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries, LegendEntry, Panels, SceneAgent, SpaceScene, picture_of
from mesa_llm.viz import LLMPage, Picture, drawn_by
from mesa_llm.viz.components.plots import ChartView
from mesa_llm.viz.components.scene import SceneView
from mesa_llm.viz.render import measure_chart, option_label, steps_of
from mesa_llm.viz.render.downloads import plot_downloads
from mesa_llm.viz.render.thumbnail import scene_thumbnail
from mesa_llm_models.classics.recordings import CLASSICS, run_twins

type Draw = Callable[[Any], Chart | SpaceScene]
"""Draws a model."""

RULE, LLM = GREY, COLOURS[1]
"""Colours of the rule twin and of the language model."""

BASELINES = {"rule": "rule twin", "random": "random baseline"}
"""Choice of `llm` without a language model → its name."""

PICTURE_STEPS = 4
"""Number of steps by rule before a picture for the gallery is drawn."""


def grid_scene(
    model: Any, agents: Sequence[SceneAgent], legend: Sequence[LegendEntry], fills: Sequence[str] = ()
) -> SpaceScene:
    """Return a scene of a grid, its first row at the top."""
    rows, columns = model.grid.dimensions
    cells = [model.grid[row, column] for row in range(rows) for column in range(columns)]
    size: dict[str, Any] = {"width": columns, "height": rows, "columns": columns}
    return SpaceScene(title="", cells=cells, agents=agents, legend=legend, fills=fills, **size)


def in_cell(agent: Any, colour: str, *, radius: float = 0.32, **look: Any) -> SceneAgent:
    """Draw an agent in its cell, aside from the middle if the cell holds several."""
    row, column = agent.cell.coordinate
    aside, turn = (0.22, agent.unique_id * 2.4) if len(agent.cell.agents) > 1 else (0.0, 0.0)
    x, y = column + 0.5 + aside * float(np.cos(turn)), row + 0.5 + aside * float(np.sin(turn))
    radius = radius if aside == 0 else 0.65 * radius
    return SceneAgent(agent=agent, x=x, y=y, radius=radius, colour=colour, name=option_label(agent), **look)


def measured(*names: str, **look: Any) -> Callable[[Any], Chart]:
    """Return a function that draws measures of a model over steps; see `measure_chart`."""

    def chart(model: Any) -> Chart:
        return measure_chart(model, *names, **look)

    return chart


def drawings_of(kind: type[LLMModel]) -> Sequence[Draw]:
    """Return what the page of a classic draws, its picture first.

    Args:
        kind: Class of the model.
    """
    return import_module(f"{kind.__module__.rpartition('.')[0]}.app").DRAWINGS


def paint(axes: Any, model: LLMModel, title: str) -> None:
    """Draw the present state of a classic model.

    Args:
        axes: Matplotlib axes.
        model: The model.
        title: Title of the drawing.
    """
    drawings_of(type(model))[0](model).draw(axes)
    axes.set_title(title, loc="left", color=GREY)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)


def twins_figure(name: str, rule: LLMModel, llm: LLMModel) -> Panels:
    """Return the worlds of a rule twin and of a language model side by side, and their measure in one plot below.

    Args:
        name: Name of the classic.
        rule: The rule twin.
        llm: The model with a language model.
    """
    worlds = [world_of_twin(name, twin, label) for twin, label in ((rule, "Rule twin"), (llm, beside_text(llm)))]
    return Panels(title="", charts=[*worlds, measure_of_twins(name, rule, llm)], columns=2)


def world_of_twin(name: str, twin: LLMModel, label: str) -> Chart | SpaceScene:
    """Return the picture of one of two twins, with its step.

    Args:
        name: Name of the classic.
        twin: The model.
        label: What it is.
    """
    drawn = drawings_of(type(twin))[0](twin)
    ended = "" if twin.running or twin.time >= CLASSICS[name].steps else ", where it ended"
    step = f"{label[:1].upper()}{label[1:]}, step {int(twin.time)}{ended}"
    return replace(drawn, title=step, **({"y": drawn.title} if isinstance(drawn, Chart) else {}))


def measure_of_twins(name: str, rule: LLMModel, llm: LLMModel) -> Chart:
    """Return the measure of a classic in a rule twin and in a model with a language model, over steps.

    Args:
        name: Name of the classic.
        rule: The rule twin.
        llm: The model with a language model.
    """
    classic = CLASSICS[name]
    labels = {"rule twin": (rule, RULE), beside_text(llm): (llm, LLM)}
    series = [
        ChartSeries(name=label, colour=colour, **steps_of(twin, classic.measure))
        for label, (twin, colour) in labels.items()
    ]
    title = f"{classic.label[:1].upper()}{classic.label[1:]}"
    return Chart(title=title, series=series, start=0, end=float(classic.steps))


def beside_text(llm: LLMModel) -> str:
    """Return what stands beside a rule twin."""
    return BASELINES.get(str(llm.llm), f"language model ({llm.llm})")


@component
def TwinsView(name: str, rule: LLMModel, llm: LLMModel) -> None:
    """Show the worlds of a rule twin and of a language model side by side, and their measure below.

    Args:
        name: Name of the classic.
        rule: The rule twin.
        llm: The model with a language model.
    """
    update_counter.get()
    panels = twins_figure(name, rule, llm)
    *worlds, measure = panels.charts
    with solara.Div(classes=["mesa-llm-columns"]):
        for drawn, twin in zip(worlds, (rule, llm), strict=True):
            with solara.Div():
                if isinstance(drawn, SpaceScene):
                    SceneView(drawn, twin, can_inspect=False)
                else:
                    ChartView(drawn)
    if isinstance(measure, Chart):
        ChartView(measure)
    downloads = plot_downloads(llm, f"{name} twins", lambda kind: picture_of(panels.figure(), kind))
    Picture("Rule and language model", downloads, is_plot=True)


@component
def Comparison(name: str, twins: Callable[[], tuple[LLMModel, LLMModel]]) -> None:
    """Offer to run a classic by rule and to replay its recorded run, and show both.

    Args:
        name: Name of the classic.
        twins: Runs both, which takes seconds; it keeps its result.
    """
    is_wanted, want = use_state(False)
    if is_wanted:
        TwinsView(name, *twins())
        return
    solara.Text("The rule twin beside the recorded run of a language model, with one seed; nothing is asked or paid.")
    solara.Button("Run both", icon_name="mdi-play", color="primary", on_click=lambda: want(True))


def classic_page(kind: type[LLMModel], title: str, drawings: Sequence[Draw], **parameters: Any) -> Any:
    """Return the page of a classic: its space, its charts, and the recorded run beside the rule twin.

    Args:
        kind: Class of the model.
        title: Title of the page.
        drawings: What it draws.
        **parameters: Parameters with which it starts: as large as textbooks draw it.
    """
    name = next(classic.name for classic in CLASSICS.values() if classic.kind == kind.__name__)

    twins = cache(lambda: run_twins(name))

    def recorded(model: LLMModel) -> Any:
        return Comparison(name, twins)

    components = [*map(drawn_by, drawings), (recorded, "Data", "Rule and language model")]
    return LLMPage(kind, components=components, name=title, parameters=parameters)


def write_pictures() -> None:
    """Draw the spaces of the classics after a few steps by rule, for the gallery."""
    for classic in CLASSICS.values():
        app = import_module(f"mesa_llm_models.classics.{classic.name}.app")
        model = classic.model(rng=1, **app.page.kwargs["parameters"])
        model.run_for(PICTURE_STEPS)
        drawn = app.DRAWINGS[0](model)
        if isinstance(drawn, SpaceScene):
            folder = Path(str(resources.files(app.__package__)))
            folder.joinpath("picture.svg").write_text(scene_thumbnail(drawn), encoding="utf-8")
        model.close()


if __name__ == "__main__":
    write_pictures()
