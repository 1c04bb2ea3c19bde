"""Figures of the classic worlds, alone or with a rule twin beside a language model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from mesa_llm import LLMModel
from mesa_llm.viz import LLMPage, Measures, drawn_by
from mesa_llm.viz.render import COLOURS, GREY, LIGHT, Figure, frame, marker
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

BLUE, ORANGE, GREEN, RED = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[4]

RULE, LLM = GREY, ORANGE
"""Colours of the rule twin and of the language model."""

BASELINES = {"rule": "rule twin", "random": "random baseline"}
"""Choice of `llm` without a language model → its name."""

HEALTH = {"susceptible": BLUE, "infected": RED, "resistant": GREEN}
"""Health of a person → its colour."""


def _town(axes: Any, model: SchellingModel) -> None:
    _dots(
        axes, model.grid, list(model.agents), [ORANGE if agent.colour == "orange" else BLUE for agent in model.agents]
    )


def _purses(axes: Any, model: WealthModel) -> None:
    coins = sorted((walker.wealth for walker in model.agents), reverse=True)
    axes.bar(range(len(coins)), coins, color=COLOURS[6])
    axes.set(xlabel="people, richest first", ylabel="coins", xticks=[])
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _hills(axes: Any, model: SugarModel) -> None:
    _shade(axes, model.grid, lambda cell: int(cell.sugar) + int(cell.spice), "YlGn", 4)
    _dots(axes, model.grid, list(model.agents), [RED] * len(model.agents))


def _meadow(axes: Any, model: MeadowModel) -> None:
    _shade(axes, model.grid, lambda cell: cell.regrowth == 0, "Greens", 2)
    animals = list(model.agents)
    _dots(axes, model.grid, animals, ["white" if isinstance(animal, Sheep) else "black" for animal in animals])


def _network(axes: Any, model: EpidemicModel) -> None:
    places = nx.circular_layout(model.grid.G)
    colours = [HEALTH[person.health] for person in model.agents]
    edges = ["black" if person.is_out else LIGHT for person in model.agents]
    nodes = [person.cell.coordinate for person in model.agents]
    nx.draw_networkx_edges(model.grid.G, places, ax=axes, edge_color="#94a3b8", alpha=0.6)
    xy = np.array([places[node] for node in nodes])
    axes.scatter(xy[:, 0], xy[:, 1], c=colours, edgecolors=edges, s=90, zorder=3)
    axes.set_axis_off()


def _paths(axes: Any, model: OpinionModel) -> None:
    opinions = model.datacollector.get_agent_vars_dataframe()["opinion"].unstack()
    axes.plot(
        range(len(opinions)), opinions.to_numpy(), color=COLOURS[3], lw=1, alpha=0.6, marker=marker(opinions), ms=3
    )
    axes.set(xlabel="step", ylabel="opinion", xlim=(-0.1, max(len(opinions) - 1, 1) + 0.1), ylim=(0, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _village(axes: Any, model: CultureModel) -> None:
    fields = model.scenario
    shades = np.ones((*model.grid.dimensions, 3))
    for villager in model.villagers:
        kinds = [(trait + 0.5) / fields.traits for trait in villager.habits[:3]]
        shades[villager.cell.coordinate][: len(kinds)] = kinds
    axes.imshow(0.35 + 0.65 * shades)
    borders, widths = [], []
    for one, other in model.pairs:
        (row, column), (down, right) = one.cell.coordinate, other.cell.coordinate
        middle, aside = (
            np.array([(column + right) / 2, (row + down) / 2]),
            np.array([abs(down - row), abs(right - column)]),
        )
        borders.append([middle - aside / 2, middle + aside / 2])
        widths.append(4.0 * (1 - shared(one, other) / fields.features))
    axes.add_collection(LineCollection(borders, colors="black", linewidths=widths))
    axes.set(xticks=[], yticks=[])


def _evenings(axes: Any, model: FarolModel) -> None:
    past = model.attendances
    weeks = range(1 - model.scenario.weeks, len(past) - model.scenario.weeks + 1)
    axes.axhline(model.crowded, color=RED, ls="--", lw=1.2)
    axes.axvspan(weeks[0] - 0.5, 0.5, color=LIGHT, alpha=0.5)
    axes.plot(weeks, past, color=BLUE, lw=1.8, marker=marker(past), ms=4)
    axes.set(xlabel="week", ylabel="people at the bar", ylim=(0, model.scenario.n_agents))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _scores(axes: Any, model: DilemmaModel) -> None:
    names, scores = zip(*reversed(model.ranking()), strict=True)
    guests = {guest.name for guest in model.guests}
    labels = [name.replace("_", " ") for name in names]
    axes.barh(labels, scores, color=[ORANGE if name in guests else BLUE for name in names])
    axes.set(xlabel="points a round and opponent", xlim=(0, 5))


PAINTERS: dict[type[LLMModel], Callable[[Any, Any], None]] = {
    SchellingModel: _town,
    WealthModel: _purses,
    SugarModel: _hills,
    MeadowModel: _meadow,
    EpidemicModel: _network,
    OpinionModel: _paths,
    CultureModel: _village,
    FarolModel: _evenings,
    DilemmaModel: _scores,
}
"""Class of a model → function that draws its world."""

LEGENDS: dict[type[LLMModel], str] = {
    SugarModel: "red: traders; greener: more sugar and spice",
    MeadowModel: "white: sheep; black: wolves; green: grass",
    EpidemicModel: "red: ill; blue: not yet;\ngreen: resistant; dark rim: out",
    CultureModel: "like colours: like habits;\nthick borders: little in common",
    FarolModel: "dashed: crowded from here on;\nshaded: before the first step",
    DilemmaModel: "orange: the guest",
}
"""Class of a model → legend of its drawing, if it needs one."""


def _dots(axes: Any, grid: Any, agents: list[Any], colours: list[str]) -> None:
    """Draw agents as dots in the cells of a grid, side by side if a cell holds several."""
    turns = np.array([agent.unique_id * 2.4 for agent in agents])
    cells = np.array([agent.cell.coordinate for agent in agents], dtype=float).reshape(-1, 2)
    aside = np.array([0.22 if len(agent.cell.agents) > 1 else 0.0 for agent in agents])
    size = 2400 / max(grid.dimensions) ** 1.4
    x, y = cells[:, 1] + aside * np.cos(turns), cells[:, 0] + aside * np.sin(turns)
    axes.scatter(x, y, c=colours or None, s=size, edgecolors=GREY, linewidths=0.6, zorder=3)
    axes.set(
        xlim=(-0.6, grid.dimensions[1] - 0.4),
        ylim=(grid.dimensions[0] - 0.4, -0.6),
        xticks=[],
        yticks=[],
        aspect="equal",
    )


def _shade(axes: Any, grid: Any, value: Callable[[Any], float], colours: str, most: float) -> None:
    """Shade the cells of a grid by a number."""
    values = np.zeros(grid.dimensions)
    for cell in grid.all_cells:
        values[cell.coordinate] = value(cell)
    axes.imshow(values, cmap=colours, vmin=0, vmax=most, alpha=0.7)


def paint(axes: Any, model: LLMModel, title: str) -> None:
    """Draw the present state of a classic model.

    Args:
        axes: Matplotlib axes.
        model: The model.
        title: Title of the drawing.
    """
    PAINTERS[type(model)](axes, model)
    frame(axes, title)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)


def world_figure(model: LLMModel) -> Figure:
    """Draw the present state of a classic model.

    Args:
        model: The model.
    """
    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    paint(figure.subplots(), model, LEGENDS.get(type(model), f"Step {int(model.time)}"))
    return figure


def twins_figure(name: str, rule: LLMModel, llm: LLMModel) -> Figure:
    """Draw the worlds of a rule twin and of a language model side by side, and their measure in one plot below.

    Args:
        name: Name of the classic.
        rule: The rule twin.
        llm: The model with a language model.
    """
    figure = Figure(figsize=(9, 6.6), layout="constrained")
    plots = figure.subplot_mosaic([["rule", "llm"], ["measure", "measure"]], height_ratios=[1.7, 1])
    beside = BASELINES.get(str(llm.llm), f"language model ({llm.llm})")
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
    step = f"step {int(max(rule.time, llm.time))}"
    figure.suptitle("; ".join(filter(None, (step, LEGENDS.get(type(rule), "")))), fontsize=10, color=GREY)
    return figure


def classic_page(kind: type[LLMModel], title: str) -> Any:
    """Return the page of a classic: its world, its measures, and the recorded run beside the rule twin.

    Args:
        kind: Class of the model.
        title: Title of the page.
    """
    name = next(classic.name for classic in CLASSICS.values() if classic.kind == kind.__name__)

    twins = cache(lambda: run_twins(name))

    def recorded(model: LLMModel) -> Figure:
        return twins_figure(name, *twins())

    components = [drawn_by(world_figure), Measures, (drawn_by(recorded), "Rule and language model")]
    return LLMPage(kind, components=components, name=title)
