"""Drawings of agents: a model's space with Mesa's renderer, or their network; a click inspects an agent."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from mesa.discrete_space import FixedAgent, VoronoiGrid
from mesa.experimental.continuous_space import ContinuousSpace
from mesa.visualization.components import AgentPortrayalStyle
from mesa.visualization.solara_viz import SpaceRendererComponent
from mesa.visualization.space_renderer import HexGrid, Network, OrthogonalGrid, SpaceRenderer
from mesa.visualization.utils import update_counter
from reacton import use_memo, use_ref
from solara.core import component

from mesa_llm.engine.activation import llm_agents
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.download import Picture, Spot
from mesa_llm.viz.figures import enlarge, plot_downloads, title_of
from mesa_llm.viz.gate import place_steady, steady
from mesa_llm.viz.inspector import called, inspect_agent
from mesa_llm.viz.style import COLOURS, GREY, Figure, literal, picture_of, without_emoji

MakeRenderer = Callable[[Any], SpaceRenderer]
"""Sets up a renderer for a model: `SpaceRenderer(model).setup_agents(portray)`."""

Edges = Callable[[Any], Iterable[tuple[int, int]]]
"""Returns the present ties in a model, as pairs of `unique_id`s."""

MAX_NAMES = 40
"""Maximum number of agents up to which names are written."""

NAME_POINTS = 9
"""Height of the letters of names, in points."""

DISC_POINTS = 12
"""Diameter of a disc that names stand clear of, in points."""

MAX_SPOTS = 500
"""Maximum number of agents that can be clicked."""

MAX_DRAWN = 1_000
"""Maximum number of nodes of a network that is drawn by default, as its layout is slow."""

_CONTINUOUS = [import_module("mesa.space").ContinuousSpace] if find_spec("mesa.space") else []  # gone in Mesa 4

DRAWABLE: tuple[Any, ...] = (OrthogonalGrid, HexGrid, Network, VoronoiGrid, ContinuousSpace, *_CONTINUOUS)
"""Spaces that Mesa can draw."""

ACTIVE, IDLE = "#f97316", "#60a5fa"
"""Colours of agents that did something in the last step, and of those that did not."""

CLASSES = (IDLE, *COLOURS[1:])
"""Colours of the classes of agents in a plain Mesa model, of which it is not known who did something."""

SIDE = 6.4
"""Height of a drawing, in inches; it is a tenth wider."""


def portray(agent: Any) -> AgentPortrayalStyle:
    """Portray an agent as a disc, in another colour if it did something in the last step.

    One without a mind is smaller and grey, and lies below the others; if it cannot move, it is paler, and lies lowest.

    Args:
        agent: The agent.
    """
    if not getattr(agent, "is_minded", False):
        is_fixed = isinstance(agent, FixedAgent)
        colour = "#dbe3ee" if is_fixed else "#94a3b8"
        return AgentPortrayalStyle(color=colour, size=50, edgecolors="white", zorder=2 if is_fixed else 3)
    outcomes = getattr(agent.model, "last_outcomes", {})  # a plain Mesa model keeps none
    is_active = bool(outcomes.get(agent.unique_id))
    return AgentPortrayalStyle(color=ACTIVE if is_active else IDLE, size=160, edgecolors="white", zorder=4)


def portray_classes() -> Callable[[Any], AgentPortrayalStyle]:
    """Return a portrayal of the agents of a plain Mesa model: as `portray`, in a colour for each class.

    Colours go to classes in the order in which they are first drawn; agents that cannot move lie below the others.
    """
    colours: dict[type, str] = {}

    def portray_class(agent: Any) -> AgentPortrayalStyle:
        colour = colours.setdefault(type(agent), CLASSES[len(colours) % len(CLASSES)])
        look = portray(agent)
        return replace(look, color=colour, zorder=1 if isinstance(agent, FixedAgent) else look.zorder)

    return portray_class


def space_in(model: Any) -> Any:
    """Return the space of a model: `model.grid`, or else `model.space`; None if it has none."""
    grid = getattr(model, "grid", None)
    return getattr(model, "space", None) if grid is None else grid


def has_space(model: Any) -> bool:
    """Check whether a model has a space that Mesa can draw.

    Args:
        model: The model; its space is `model.grid` or `model.space`.
    """
    space = space_in(model)
    graph = getattr(space, "G", ())
    return isinstance(space, DRAWABLE) and len(graph) <= MAX_DRAWN


def plain_renderer(model: Any) -> SpaceRenderer:
    """Set up a renderer for any space: agents as discs, and the ties of a network.

    Agents that did something in the last step are orange, and the others blue; in a plain Mesa model, which keeps no
    outcomes, each class has its colour.

    Args:
        model: The model; its space is `model.grid` or `model.space`.
    """
    renderer = SpaceRenderer(model)
    if hasattr(renderer.space, "G"):
        lines = {"alpha": 0.35, "style": "-", "edge_color": "#94a3b8"}
        renderer.setup_structure(node_kwargs={"node_size": 1, "alpha": 0.0}, edge_kwargs=lines)
    return renderer.setup_agents(portray if isinstance(model, LLMModel) else portray_classes())


@component
def Space(model: Any, renderer: MakeRenderer = plain_renderer) -> None:
    """Show the space of a model, with the names of the agents that think; a click on one opens the inspector.

    Args:
        model: The model; its space is `model.grid` or `model.space`.
        renderer: Sets up a renderer for it.
    """
    figure = use_memo(lambda: rendered(renderer, model), [model])
    if figure.backend == "matplotlib":
        _Figure(figure, model)
    else:
        place_steady(SpaceRendererComponent(model, figure), model)


@component
def _Figure(renderer: SpaceRenderer, model: Any) -> None:
    moment = update_counter.get()

    def drawn(kind: str) -> tuple[str, bytes, list[Spot]]:
        with steady(model):
            places = redraw(renderer, model)
            figure: Any = renderer.canvas.get_figure()  # pyright: ignore[reportOptionalMemberAccess]
            return title_of(figure) or "Space", picture_of(figure, kind), spots_on(renderer.canvas, places)

    title, png, spots = use_memo(lambda: drawn("png"), [renderer, moment])
    Picture(title, plot_downloads(model, title, lambda kind: drawn(kind)[1]), png, spots, inspect_agent)


def rendered(renderer: MakeRenderer, model: Any) -> SpaceRenderer:
    """Set up a renderer and draw with it once: parts that have never been drawn, Mesa silently leaves out.

    Args:
        renderer: Sets up a renderer for a model.
        model: The model.
    """
    drawing = renderer(model)
    if drawing.backend == "matplotlib":
        figure: Any = drawing.canvas.get_figure()  # pyright: ignore[reportOptionalMemberAccess]
        if tuple(figure.get_size_inches()) == (6.4, 4.8):  # Matplotlib's own size: nobody chose another
            figure.set_size_inches(1.1 * SIDE, SIDE)
            enlarge(figure)
    drawing.render()
    return drawing


class Place(NamedTuple):
    """Position of an agent on a plot, in the plot's own coordinates."""

    agent: Any
    """The agent."""

    x: float
    """Horizontal coordinate."""

    y: float
    """Vertical coordinate."""


def redraw(renderer: SpaceRenderer, model: Any) -> list[Place]:
    """Redraw a model's space in its present state on the canvas of its renderer.

    Args:
        renderer: The renderer, with Matplotlib as its backend.
        model: The model.

    Returns:
        The position of each agent that thinks.
    """
    axes: Any = renderer.canvas
    space = renderer.space = space_in(model)
    bars: list[Any] = renderer.backend_renderer._active_colorbars  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
    for bar in bars:
        bar.remove()
    bars.clear()
    for artist in [*axes.lines, *axes.collections, *axes.patches, *axes.images, *axes.artists, *axes.texts]:
        artist.remove()
    drawer: Any = renderer.space_drawer
    graph = getattr(renderer.space, "G", None)
    if graph is not None and (graph is not drawer.graph or not set(graph) <= set(drawer.pos)):  # it has grown
        drawer = type(drawer)(renderer.space)
        renderer.space_drawer = renderer.backend_renderer.space_drawer = drawer
    if renderer.space_mesh:
        renderer.draw_structure()
    if renderer.propertylayer_mesh:
        renderer.draw_propertylayer()
    places: list[Place] = []
    if renderer.agent_portrayal is not None and len(space.agents):
        renderer.draw_agents()
        data = renderer.backend_renderer.collect_agent_data(
            renderer.space, renderer.agent_portrayal, default_size=drawer.s_default
        )
        locations = renderer._map_coordinates(data)["loc"]  # pyright: ignore[reportPrivateUsage]
        places = [
            Place(agent, float(x), float(y))
            for agent, (x, y) in zip(space.agents, locations, strict=True)
            if getattr(agent, "is_minded", False)
        ]
        write_names(axes, places)
    if renderer.post_process is not None:
        renderer.post_process(axes)
    return places


def write_names(axes: Any, places: list[Place]) -> None:
    """Write the names of agents around them, where they cross the fewest other names and discs, if they are few.

    Agents at one position have one name, and their number.

    Args:
        axes: Matplotlib axes, whose title and limits are set.
        places: Positions of the agents.
    """
    if len(places) > MAX_NAMES:
        return
    names_at: dict[tuple[float, float], list[str]] = {}
    for agent, x, y in places:
        names_at.setdefault((x, y), []).append(short_name(agent))
    axes.get_xlim()  # this sets its limits to what is drawn
    per_pixel = 72 / axes.get_figure().dpi
    radius = DISC_POINTS / 2
    points = {place: per_pixel * axes.transData.transform(place) for place in names_at}
    discs = {place: _Box(float(x), float(y), radius, radius) for place, (x, y) in points.items()}
    crossed = list(discs.values())
    for place, names in names_at.items():
        text = names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1}"
        box = discs[place]._replace(half_width=0.3 * len(text) * NAME_POINTS, half_height=0.6 * NAME_POINTS)
        beside, above = box.half_width + radius + 2, box.half_height + radius
        corners = itertools.product((beside, -beside), (above, -above))
        shifts = [(0, above), (0, -above), (beside, 0), (-beside, 0), *corners]
        across, up = min(shifts, key=lambda shift: box.moved(*shift).n_crossed(crossed))
        crossed.append(box.moved(across, up))
        look = {"ha": "center", "va": "center_baseline", "fontsize": NAME_POINTS, "color": "#334155", "zorder": 5}
        label = axes.annotate(text, place, xytext=(across, up), textcoords="offset points", clip_on=False, **look)
        label.set_path_effects([withStroke(linewidth=2.5, foreground="white", alpha=0.7)])


class _Box(NamedTuple):
    """A rectangle on a plot, in points: its centre, and half of its width and height."""

    x: float
    y: float
    half_width: float
    half_height: float

    def moved(self, across: float, up: float) -> _Box:
        return self._replace(x=self.x + across, y=self.y + up)

    def n_crossed(self, others: Iterable[_Box]) -> int:
        return sum(
            abs(self.x - other.x) < self.half_width + other.half_width
            and abs(self.y - other.y) < self.half_height + other.half_height
            for other in others
        )


def short_name(agent: Any) -> str:
    """Return the label of an agent: its name, or its id.

    Args:
        agent: The agent.
    """
    name = without_emoji(getattr(getattr(agent, "config", None), "name", "")) or str(agent.unique_id)
    return literal(name if len(name) <= 18 else f"{name[:17]}…")


def spots_on(axes: Any, places: list[Place]) -> list[Spot]:
    """Return the clickable spots of agents on a figure that has been drawn.

    Args:
        axes: Matplotlib axes that fill a figure.
        places: Positions of agents on them.
    """
    figure = axes.get_figure()
    width, height = figure.get_size_inches() * figure.dpi
    spots: list[Spot] = []
    for agent, x, y in places[:MAX_SPOTS]:
        if not np.isfinite((x, y)).all():
            continue
        left, up = axes.transData.transform((x, y))
        if 0 <= left <= width and 0 <= up <= height:
            spots.append(Spot(agent.unique_id, called(agent), 100 * left / width, 100 * (1 - up / height)))
    return spots


# -- who is tied to whom


def network_plot(
    edges: Edges, *, title: str = "", style: Callable[[Any], AgentPortrayalStyle] = portray
) -> Callable[[Any], Any]:
    """Return a component that draws the agents of a model and their present ties.

    Agents keep their positions from step to step; newcomers are placed near those they are tied to.

    Args:
        edges: Returns the ties of a model, as pairs of `unique_id`s.
        title: Title of the plot.
        style: Portrays an agent; its position is ignored.
    """

    def Network(model: Any) -> Any:
        return _Network(model, edges, title, style)

    return Network


@component
def _Network(model: Any, edges: Edges, title: str, style: Callable[[Any], AgentPortrayalStyle]) -> None:
    moment = update_counter.get()
    cache = use_ref((model, dict[int, Any]()))
    if cache.current[0] is not model:
        cache.current = (model, {})
    positions = cache.current[1]

    def drawn(kind: str) -> tuple[bytes, list[Spot]]:
        with steady(model):
            figure, places = network_figure(model, edges, title, style, positions)
        return picture_of(figure, kind), spots_on(figure.axes[0], places)

    png, spots = use_memo(lambda: drawn("png"), [model, moment])
    name = title or "Network"
    Picture(name, plot_downloads(model, name, lambda kind: drawn(kind)[0]), png, spots, inspect_agent)


def network_figure(
    model: Any,
    edges: Edges,
    title: str = "",
    style: Callable[[Any], AgentPortrayalStyle] = portray,
    positions: dict[int, Any] | None = None,
) -> tuple[Figure, list[Place]]:
    """Draw the agents of a model and their present ties.

    Args:
        model: The model.
        edges: Returns its ties, as pairs of `unique_id`s.
        title: Title of the figure.
        style: Portrays an agent.
        positions: Positions of agents by id, which are kept; newcomers are added. None: all are laid out.

    Returns:
        The figure, and the position of each agent in it.
    """
    positions = {} if positions is None else positions
    agents = {agent.unique_id: agent for agent in llm_agents(model)}
    ties = [(first, second) for first, second in edges(model) if first in agents and second in agents]
    lay_out(agents, ties, positions)
    figure = Figure(figsize=(1.1 * SIDE, SIDE), layout="constrained")
    enlarge(figure)
    axes: Any = figure.subplots()
    axes.set_axis_off()
    lines = [(positions[first], positions[second]) for first, second in ties]
    axes.add_collection(LineCollection(lines, colors="#94a3b8", alpha=0.45, linewidths=1.0, zorder=1))
    looks = [style(agent) for agent in agents.values()]
    if looks:
        xs, ys = zip(*(positions[agent_id] for agent_id in agents), strict=True)
        colors, sizes = [look.color for look in looks], [look.size for look in looks]
        axes.scatter(xs, ys, c=colors, s=sizes, edgecolors="white", zorder=3)
    places = [
        Place(agent, float(positions[agent_id][0]), float(positions[agent_id][1])) for agent_id, agent in agents.items()
    ]
    axes.margins(0.08)
    if title:
        axes.set_title(title, loc="left", color=GREY, fontsize=13)
    write_names(axes, places)
    return figure, places


def lay_out(agents: Iterable[int], ties: Iterable[tuple[int, int]], positions: dict[int, Any]) -> None:
    """Find positions for agents without one.

    Args:
        agents: Ids of agents.
        ties: Their ties.
        positions: Agent id → position; missing entries are added.
    """
    graph = nx.Graph()
    graph.add_nodes_from(agents)
    graph.add_edges_from(ties)
    if unplaced := [agent_id for agent_id in graph if agent_id not in positions]:
        placed = [agent_id for agent_id in graph if agent_id in positions]
        start = {agent_id: positions[agent_id] for agent_id in placed} or None
        k = 1.2 / max(len(graph), 1) ** 0.5
        layout = nx.spring_layout(graph, pos=start, fixed=placed or None, k=k, seed=0)
        positions |= {agent_id: layout[agent_id] for agent_id in unplaced}
