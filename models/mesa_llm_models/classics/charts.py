"""Scenes and charts of the classic worlds, alone or with a rule twin beside a language model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import networkx as nx
import numpy as np
import solara
from matplotlib.ticker import MaxNLocator
from mesa.visualization.utils import update_counter
from reacton import use_state
from solara.core import component

from mesa_llm import LLMModel
from mesa_llm.charts import (
    COLOURS,
    GREY,
    Chart,
    ChartSeries,
    Figure,
    LegendEntry,
    SceneAgent,
    SpaceScene,
    frame,
    picture_of,
)
from mesa_llm.viz import LLMPage, Picture, drawn_by
from mesa_llm.viz.components.plots import ChartView
from mesa_llm.viz.components.scene import SceneView
from mesa_llm.viz.render import measure_chart, option_label, scaled_positions, steps_of
from mesa_llm.viz.render.downloads import plot_downloads
from mesa_llm.viz.render.thumbnail import scene_thumbnail
from mesa_llm.viz.session.per_model import PerModel
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.culture.model import CultureModel, shared
from mesa_llm_models.classics.el_farol.model import FarolModel
from mesa_llm_models.classics.epidemic.model import EpidemicModel
from mesa_llm_models.classics.opinion.model import OpinionModel
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from mesa_llm_models.classics.recordings import CLASSICS, run_twins
from mesa_llm_models.classics.schelling.model import SchellingModel
from mesa_llm_models.classics.sugarscape.model import SugarModel
from mesa_llm_models.classics.wolf_sheep.model import MeadowModel, Sheep

BLUE, ORANGE, GREEN, RED, OCHRE = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[4], COLOURS[6]

RULE, LLM = GREY, ORANGE
"""Colours of the rule twin and of the language model."""

BASELINES = {"rule": "rule twin", "random": "random baseline"}
"""Choice of `llm` without a language model → its name."""

HEALTH = MappingProxyType({"susceptible": BLUE, "infected": ORANGE, "resistant": GREEN})
"""Health of a person → its colour."""

HEALTH_TEXTS = MappingProxyType({"infected": "ill", "susceptible": "can catch the virus", "resistant": "resistant"})
"""Health of a person → what it means; stacked in this order, the ill at the bottom."""

SHEEP, WOLF = "#f8fafc", "#111827"
"""Colours of sheep and wolves."""

GRASS, EARTH = "#7cb36b", "#cdb892"
"""Colours of cells with grown grass and without."""

PASTURES = ("#f7fcf5", "#d5efcf", "#9ed798", "#55b567", "#1d8641")
"""Colours of a cell with 0, 1, 2, 3, and 4 or more units of sugar and spice."""

PICTURE_STEPS = 4
"""Number of steps by rule before a picture for the gallery is drawn."""

_places: PerModel[dict[int, tuple[float, float]]] = PerModel("_scene_places", dict)
"""Positions of the people of a network, which keep them."""


def _grid(
    model: Any, agents: Sequence[SceneAgent], legend: Sequence[LegendEntry], fills: Sequence[str] = ()
) -> SpaceScene:
    """Return a scene of a grid, its first row at the top."""
    rows, columns = model.grid.dimensions
    cells = [model.grid[row, column] for row in range(rows) for column in range(columns)]
    size: dict[str, Any] = {"width": columns, "height": rows, "columns": columns}
    return SpaceScene(title="", cells=cells, agents=agents, legend=legend, fills=fills, **size)


def _in_cell(agent: Any, colour: str, *, radius: float = 0.32, **look: Any) -> SceneAgent:
    """Draw an agent in its cell, aside from the middle if the cell holds several."""
    row, column = agent.cell.coordinate
    aside, turn = (0.22, agent.unique_id * 2.4) if len(agent.cell.agents) > 1 else (0.0, 0.0)
    x, y = column + 0.5 + aside * float(np.cos(turn)), row + 0.5 + aside * float(np.sin(turn))
    radius = radius if aside == 0 else 0.65 * radius
    return SceneAgent(agent=agent, x=x, y=y, radius=radius, colour=colour, name=option_label(agent), **look)


def _town(model: SchellingModel) -> SpaceScene:
    look: dict[bool, dict[str, Any]] = {True: {"radius": 0.4, "shape": "o"}, False: {"radius": 0.42, "shape": "X"}}
    homes = [
        _in_cell(agent, ORANGE if agent.colour == "orange" else BLUE, **look[agent.is_happy]) for agent in model.agents
    ]
    return _grid(
        model,
        homes,
        [
            LegendEntry(text="orange, content", colour=ORANGE, shape="o"),
            LegendEntry(text="blue, content", colour=BLUE, shape="o"),
            LegendEntry(text="cross: too few neighbours of its own colour", colour=GREY, shape="X"),
        ],
    )


def _walkers(model: WealthModel) -> SpaceScene:
    walkers = [
        _in_cell(walker, OCHRE if walker.wealth else GREY, radius=min(0.45, 0.16 + 0.07 * walker.wealth**0.5))
        for walker in model.agents
    ]
    return _grid(
        model,
        walkers,
        [
            LegendEntry(text="has coins: the larger, the more", colour=OCHRE, shape="o"),
            LegendEntry(text="has none", colour=GREY, shape="o"),
        ],
    )


def _hills(model: SugarModel) -> SpaceScene:
    rows, columns = model.grid.dimensions
    yields = [model.grid[row, column] for row in range(rows) for column in range(columns)]
    fills = [PASTURES[min(4, int(cell.sugar) + int(cell.spice))] for cell in yields]
    return _grid(
        model,
        [_in_cell(trader, RED) for trader in model.agents],
        [
            LegendEntry(text="trader", colour=RED, shape="o"),
            LegendEntry(text="no sugar or spice", colour=PASTURES[0], edge=GREY),
            LegendEntry(text="4 or more units of them", colour=PASTURES[4]),
        ],
        fills,
    )


def _meadow(model: MeadowModel) -> SpaceScene:
    rows, columns = model.grid.dimensions
    cells = [model.grid[row, column] for row in range(rows) for column in range(columns)]
    animals = [
        _in_cell(animal, SHEEP, shape="o", edge=GREY)
        if isinstance(animal, Sheep)
        else _in_cell(animal, WOLF, shape="^", radius=0.38, edge=SHEEP)
        for animal in model.agents
    ]
    return _grid(
        model,
        animals,
        [
            LegendEntry(text="sheep", colour=SHEEP, shape="o", edge=GREY),
            LegendEntry(text="wolf", colour=WOLF, shape="^", edge=SHEEP),
            LegendEntry(text="grass", colour=GRASS),
            LegendEntry(text="eaten bare", colour=EARTH),
        ],
        [GRASS if cell.regrowth == 0 else EARTH for cell in cells],
    )


def _contacts(model: EpidemicModel) -> SpaceScene:
    places, graph = _places.of(model), model.grid.G
    if not places:
        tied = nx.Graph(graph)
        tied.add_edges_from(
            ("middle", min(part)) for part in nx.connected_components(graph)
        )  # keeps the parts together
        spread = nx.spring_layout(tied, k=1.6 / len(tied) ** 0.5, iterations=120, seed=0)
        places |= scaled_positions({node: spread[node] for node in graph})
    people = [
        SceneAgent(
            agent=person,
            x=places[person.cell.coordinate][0],
            y=places[person.cell.coordinate][1],
            radius=0.22 if len(graph) <= 60 else 0.14,
            colour=HEALTH[person.health],
            shape={"infected": "D", "resistant": "s"}.get(person.health, "o"),
            edge="" if not person.is_out else "#111827",
            name=option_label(person),
        )
        for person in model.agents
    ]
    legend = [
        LegendEntry(text=text, colour=HEALTH[health], shape={"infected": "D", "resistant": "s"}.get(health, "o"))
        for health, text in HEALTH_TEXTS.items()
    ]
    ties = [(*places[first], *places[second]) for first, second in graph.edges()]
    return SpaceScene(
        title="",
        width=11,
        height=10,
        agents=people,
        ties=ties,
        legend=[*legend, LegendEntry(text="rim: went out", colour="#ffffff", shape="o", edge="#111827")],
    )


def _village(model: CultureModel) -> SpaceScene:
    fields = model.scenario

    def colour_of(villager: Any) -> str:
        kinds = [(trait + 0.5) / fields.traits for trait in villager.habits[:3]]
        return "#" + "".join(f"{round(255 * (0.35 + 0.65 * kind)):02x}" for kind in [*kinds, 1.0, 1.0][:3])

    borders: list[tuple[float, float, float, float]] = []
    for one, other in model.pairs:
        if shared(one, other) == fields.features:
            continue
        (row, column), (down, right) = one.cell.coordinate, other.cell.coordinate
        y, x, tall, wide = (row + down + 1) / 2, (column + right + 1) / 2, abs(right - column) / 2, abs(down - row) / 2
        borders.append((x - wide, y - tall, x + wide, y + tall))
    villagers = [_in_cell(villager, colour_of(villager), radius=0.4, shape="s") for villager in model.villagers]
    scene = _grid(
        model,
        villagers,
        [
            LegendEntry(text="like colours: like habits", colour=OCHRE, shape="s"),
            LegendEntry(text="line: other habits on the other side", colour=GREY),
        ],
    )
    return replace(scene, ties=borders)


SCENES: Mapping[type[LLMModel], Callable[[Any], SpaceScene]] = MappingProxyType(
    {
        SchellingModel: _town,
        WealthModel: _walkers,
        SugarModel: _hills,
        MeadowModel: _meadow,
        EpidemicModel: _contacts,
        CultureModel: _village,
    }
)
"""Class of a model → function that draws its space."""


def happy_chart(model: SchellingModel) -> Chart:
    """Return the share of happy residents over steps."""
    points = steps_of(model, "happy")
    n_residents = max(1, len(model.agents))
    points["values"] = [None if value is None else value / n_residents for value in points["values"]]
    return Chart(title="Share of happy people", series=[ChartSeries(**points)], unit="share", high=1)


def likeness_chart(model: SchellingModel) -> Chart:
    """Return how segregated the town is over steps."""
    return measure_chart(model, "likeness", title="Neighbours of one's own colour, mean share", unit="share", high=1)


def purses_chart(model: WealthModel) -> Chart:
    """Return the coins of everybody, richest first."""
    ranked = sorted(model.agents, key=lambda walker: -walker.wealth)
    coins = ChartSeries(
        values=[walker.wealth for walker in ranked],
        kind="bar",
        colour=OCHRE,
        labels=[option_label(walker) for walker in ranked],
        agents=[walker.unique_id for walker in ranked],
    )
    return Chart(title="Coins of each person, richest first", series=[coins], x="People", y="coins")


def flocks_chart(model: MeadowModel) -> Chart:
    """Return the numbers of sheep, of wolves and of cells with grass over steps."""
    drawn = (("sheep", "sheep", BLUE), ("wolves", "wolves", RED), ("grass", "cells with grass", GREEN))
    series = [ChartSeries(name=label, colour=colour, **steps_of(model, name)) for name, label, colour in drawn]
    return Chart(title="Sheep, wolves and grass", series=series)


def health_chart(model: EpidemicModel) -> Chart:
    """Return the shares of people who are ill, can fall ill, and no longer can, stacked over steps."""
    series = [
        ChartSeries(name=text, colour=HEALTH[health], kind="area", **steps_of(model, health))
        for health, text in HEALTH_TEXTS.items()
    ]
    return Chart(title="Who is ill, and who can fall ill", series=series, is_stacked=True, unit="share", high=1)


def opinions_chart(model: OpinionModel) -> Chart:
    """Return everybody's opinion over steps."""
    opinions = model.datacollector.get_agent_vars_dataframe()["opinion"].unstack()
    series = [
        ChartSeries(
            values=path.tolist(), colour=COLOURS[3], labels=[f"Person {agent_id}"] * len(path), agents=[agent_id]
        )
        for agent_id, path in opinions.items()
    ]
    return Chart(title="Opinion of each person", series=series, low=0, high=1)


def evenings_chart(model: FarolModel) -> Chart:
    """Return how many came to the bar in each week, from those before the first step on."""
    past = list(model.attendances)
    weeks = [float(week) for week in range(1 - model.scenario.weeks, len(past) - model.scenario.weeks + 1)]
    crowd: dict[str, Any] = {"name": "crowded from here on", "colour": RED, "is_dashed": True}
    series = [
        ChartSeries(name="came", values=past, at=weeks, colour=BLUE),
        ChartSeries(values=[model.crowded] * len(weeks), at=weeks, **crowd),
    ]
    note = "Weeks up to 0 lie before the first step."
    return Chart(title="People at the bar", series=series, x="Week", high=model.scenario.n_agents, note=note)


def ranking_chart(model: DilemmaModel) -> Chart:
    """Return the points of each player, the best first."""
    names, scores = zip(*model.ranking(), strict=True)
    guests = {guest.name for guest in model.guests}
    points = ChartSeries(values=scores, kind="bar", colours=[ORANGE if name in guests else BLUE for name in names])
    labels = [name.replace("_", " ") for name in names]
    look: dict[str, Any] = {"names": labels, "is_horizontal": True, "x": "", "high": 5}
    note = "Orange: the guest, who decides for itself." if guests else ""
    return Chart(title="Points per round and opponent", series=[points], note=note, **look)


def cooperation_chart(model: DilemmaModel) -> Chart:
    """Return how often players, and the guest among them, have cooperated; nobody has before the first round."""
    drawn = (("cooperation", "all players", BLUE), ("guests_cooperation", "the guest", ORANGE))
    series: list[ChartSeries] = []
    for name, label, colour in drawn:
        points = steps_of(model, name)
        values = [value if step else None for step, value in zip(points["at"], points["values"], strict=True)]
        series.append(ChartSeries(name=label, colour=colour, values=values, at=points["at"]))
    return Chart(title="Moves so far that were cooperation", series=series, unit="share", high=1)


def _measured(*names: str, **look: Any) -> Callable[[Any], Chart]:
    def chart(model: Any) -> Chart:
        return measure_chart(model, *names, **look)

    return chart


CHARTS: Mapping[type[LLMModel], Sequence[Callable[[Any], Chart]]] = MappingProxyType(
    {
        SchellingModel: (likeness_chart, happy_chart),
        WealthModel: (purses_chart, _measured("gini", high=1)),
        SugarModel: (_measured("traders"), _measured("price")),
        MeadowModel: (flocks_chart,),
        EpidemicModel: (health_chart,),
        OpinionModel: (opinions_chart,),
        CultureModel: (_measured("regions"), _measured("largest", high=1)),
        FarolModel: (evenings_chart, _measured("satisfied", high=1)),
        DilemmaModel: (ranking_chart, cooperation_chart),
    }
)
"""Class of a model → its charts, beside its space."""

SIZES: Mapping[type[LLMModel], Mapping[str, Any]] = MappingProxyType(
    {
        SchellingModel: {"size": 20},
        MeadowModel: {"size": 20, "n_sheep": 60, "n_wolves": 12},
    }
)
"""Class of a model → parameters with which its page starts: as large as textbooks draw it."""


def paint(axes: Any, model: LLMModel, title: str) -> None:
    """Draw the present state of a classic model.

    Args:
        axes: Matplotlib axes.
        model: The model.
        title: Title of the drawing.
    """
    if type(model) in SCENES:
        SCENES[type(model)](model).draw(axes)
    else:
        CHARTS[type(model)][0](model).draw(axes)
    frame(axes, title)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)


def twins_figure(name: str, rule: LLMModel, llm: LLMModel) -> Figure:
    """Draw the worlds of a rule twin and of a language model side by side, and their measure in one plot below.

    Args:
        name: Name of the classic.
        rule: The rule twin.
        llm: The model with a language model.
    """
    figure = Figure(figsize=(9, 6.6), layout="constrained")
    plots = figure.subplot_mosaic([["rule", "llm"], ["measure", "measure"]], height_ratios=[1.7, 1])
    beside = beside_text(llm)
    twins = {"rule": (rule, "rule twin", RULE), "llm": (llm, beside, LLM)}
    classic = CLASSICS[name]
    for place, (twin, label, colour) in twins.items():
        ended = "" if twin.running or twin.time >= classic.steps else f", ended in step {int(twin.time)}"
        paint(plots[place], twin, label + ended)
        values = [np.nan if value is None else value for value in twin.datacollector.model_vars[classic.measure]]
        plots["measure"].plot(values, color=colour, lw=2.4, marker="o", ms=4, label=label)
    frame(plots["measure"], classic.label, legend=True)
    plots["measure"].set(xlabel="step", xlim=(-0.2, classic.steps + 0.2))
    plots["measure"].set_ylim(bottom=0)
    plots["measure"].xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.suptitle(f"step {int(max(rule.time, llm.time))}", fontsize=10, color=GREY)
    return figure


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
    with solara.Div(classes=["mesa-llm-columns"]):
        for label, twin in (("Rule twin", rule), (beside_text(llm).capitalize(), llm)):
            title = f"{label}, step {int(twin.time)}"
            with solara.Div():
                if type(twin) in SCENES:
                    SceneView(replace(SCENES[type(twin)](twin), title=title), twin, can_inspect=False)
                else:
                    chart = CHARTS[type(twin)][0](twin)
                    ChartView(replace(chart, title=f"{chart.title}: {title[:1].lower()}{title[1:]}"))
    ChartView(measure_of_twins(name, rule, llm))
    downloads = plot_downloads(llm, f"{name} twins", lambda kind: picture_of(twins_figure(name, rule, llm), kind))
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


def classic_page(kind: type[LLMModel], title: str) -> Any:
    """Return the page of a classic: its space, its charts, and the recorded run beside the rule twin.

    Args:
        kind: Class of the model.
        title: Title of the page.
    """
    name = next(classic.name for classic in CLASSICS.values() if classic.kind == kind.__name__)

    twins = cache(lambda: run_twins(name))

    def recorded(model: LLMModel) -> Any:
        return Comparison(name, twins)

    drawn = [*([SCENES[kind]] if kind in SCENES else []), *CHARTS[kind]]
    components = [*map(drawn_by, drawn), (recorded, "Data", "Rule and language model")]
    return LLMPage(kind, components=components, name=title, parameters=SIZES.get(kind, {}))


def write_pictures() -> None:
    """Draw the spaces of the classics after a few steps by rule, for the gallery."""
    for kind, draw in SCENES.items():
        model = kind(rng=1, **SIZES.get(kind, {}))
        model.run_for(PICTURE_STEPS)
        folder = resources.files(kind.__module__.rpartition(".")[0])
        Path(str(folder)).joinpath("picture.svg").write_text(scene_thumbnail(draw(model)), encoding="utf-8")
        model.close()


if __name__ == "__main__":
    write_pictures()
