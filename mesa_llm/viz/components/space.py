"""Drawings of a model's space with Mesa's renderer, and of networks of agents; a click opens the inspector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgba
from mesa.discrete_space import DiscreteSpace, FixedAgent, VoronoiGrid
from mesa.experimental.continuous_space import ContinuousSpace
from mesa.visualization.components import AgentPortrayalStyle
from mesa.visualization.solara_viz import SpaceRendererComponent
from mesa.visualization.space_renderer import HexGrid, Network, OrthogonalGrid, SpaceRenderer
from mesa.visualization.utils import update_counter
from reacton import use_memo, use_ref
from solara.core import component

from mesa_llm.charts.palette import COLOURS, PALE
from mesa_llm.charts.scenes import PlacedAgent, SceneAgent, SpaceScene, write_names
from mesa_llm.charts.style import picture_of
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.components.placement import place_steady
from mesa_llm.viz.components.plots import Plot
from mesa_llm.viz.components.scene import SceneView
from mesa_llm.viz.render.agents import option_label
from mesa_llm.viz.render.downloads import plot_downloads
from mesa_llm.viz.render.figures import enlarge, title_of
from mesa_llm.viz.render.network import (
    ACTIVE,
    IDLE,
    SIDE,
    ClickableSpot,
    Edges,
    network_scene,
    spots_on,
)
from mesa_llm.viz.session.rw_lock import steady

MakeRenderer = Callable[[Any], SpaceRenderer]
"""Sets up a renderer for a model: `SpaceRenderer(model).setup_agents(portray)`."""

MAX_DRAWN = 1_000
"""Maximum number of nodes of a network drawn by default, as its layout is slow."""

_CONTINUOUS = (import_module("mesa.space").ContinuousSpace,) if find_spec("mesa.space") else ()  # removed in Mesa 4

NETWORK_SIDE = 10.0
"""Length of the longer side of a network's scene, in units of its own."""

SCENE_POINTS = 330
"""Length of the longer side of Mesa's drawing of a space, in points, by which sizes of agents are understood."""

SHADES = 24
"""Number of shades of a property layer."""

DRAWABLE: tuple[Any, ...] = (OrthogonalGrid, HexGrid, Network, VoronoiGrid, ContinuousSpace, *_CONTINUOUS)
"""Spaces that Mesa can draw."""

CLASSES = COLOURS
"""Colours of the classes of agents in a plain Mesa model, which does not keep outcomes."""


def portray(agent: Any) -> AgentPortrayalStyle:
    """Portray an agent as a disc, coloured by whether it acted in the last step.

    Agents without a mind are smaller, grey and below the others; those that cannot move are paler and lowest.

    Args:
        agent: The agent.
    """
    if not getattr(agent, "is_minded", False):
        is_fixed = isinstance(agent, FixedAgent)
        colour = "#dbe3ee" if is_fixed else PALE
        return AgentPortrayalStyle(color=colour, size=50, edgecolors="white", zorder=2 if is_fixed else 3)
    outcomes = getattr(agent.model, "last_outcomes", {})  # plain Mesa models keep none
    is_active = bool(outcomes.get(agent.unique_id))
    return AgentPortrayalStyle(color=ACTIVE if is_active else IDLE, size=160, edgecolors="white", zorder=4)


def portray_classes() -> Callable[[Any], AgentPortrayalStyle]:
    """Return a portrayal of the agents of a plain Mesa model: like `portray`, with a colour for each class.

    Classes get colours in the order in which they are first drawn; agents that cannot move are below the others.
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
    """Set up a renderer for any space: agents as discs, and the ties of a network as lines.

    Agents that acted in the last step are orange, the others blue; in a plain Mesa model, which keeps no outcomes, each
    class has its own colour.

    Args:
        model: The model; its space is `model.grid` or `model.space`.
    """
    renderer = SpaceRenderer(model)
    if hasattr(renderer.space, "G"):
        lines = {"alpha": 0.35, "style": "-", "edge_color": PALE}
        renderer.setup_structure(node_kwargs={"node_size": 1, "alpha": 0.0}, edge_kwargs=lines)
    return renderer.setup_agents(portray if isinstance(model, LLMModel) else portray_classes())


@component
def Space(model: Any, renderer: MakeRenderer = plain_renderer) -> None:
    """Show the space of a model with the names of its LLM agents; a click on one opens the inspector.

    Args:
        model: The model; its space is `model.grid` or `model.space`.
        renderer: Sets up a renderer for it.
    """
    figure = use_memo(lambda: rendered(renderer, model), [model])
    if figure.backend != "matplotlib":
        place_steady(SpaceRendererComponent(model, figure), model)
    elif is_scene(figure):
        _Drawing(figure, model)
    else:
        _Figure(figure, model)


@component
def _Drawing(renderer: SpaceRenderer, model: Any) -> None:
    moment = update_counter.get()

    def drawn() -> SpaceScene:
        with steady(model):
            return scene_of(renderer, model)

    def file(kind: str) -> bytes:
        with steady(model):
            redraw(renderer, model)
            figure: Any = renderer.canvas.get_figure()  # pyright: ignore[reportOptionalMemberAccess]
            return picture_of(figure, kind)

    scene = use_memo(drawn, [renderer, moment])
    SceneView(scene, model, plot_downloads(model, "Space", file))


@component
def _Figure(renderer: SpaceRenderer, model: Any) -> None:
    page = use_page(model)
    moment = update_counter.get()

    def drawn(kind: str) -> tuple[str, bytes, list[ClickableSpot]]:
        with steady(model):
            places = redraw(renderer, model)
            figure: Any = renderer.canvas.get_figure()  # pyright: ignore[reportOptionalMemberAccess]
            return title_of(figure) or "Space", picture_of(figure, kind), spots_on(renderer.canvas, places)

    title, png, spots = use_memo(lambda: drawn("png"), [renderer, moment])
    Picture(title, plot_downloads(model, title, lambda kind: drawn(kind)[1]), png, spots, page.inspect_agent)


def rendered(renderer: MakeRenderer, model: Any) -> SpaceRenderer:
    """Set up a renderer and draw with it once, as Mesa silently skips parts that have never been drawn.

    Args:
        renderer: Sets up a renderer for a model.
        model: The model.
    """
    drawing = renderer(model)
    if drawing.backend == "matplotlib":
        figure: Any = drawing.canvas.get_figure()  # pyright: ignore[reportOptionalMemberAccess]
        if tuple(figure.get_size_inches()) == (6.4, 4.8):  # Matplotlib's default: nobody chose another size
            figure.set_size_inches(1.1 * SIDE, SIDE)
            enlarge(figure)
    drawing.render()
    return drawing


def is_scene(renderer: SpaceRenderer) -> bool:
    """Check whether what a renderer draws is known from its portrayals, and can be drawn in the browser.

    What draws on Matplotlib's axes itself, images as markers and colours by number are left to Matplotlib.

    Args:
        renderer: The renderer, with Matplotlib as its backend.
    """
    if renderer.post_process is not None or renderer.draw_agent_kwargs:
        return False
    data = _portrayed(renderer)
    return (
        all(not isinstance(shape, str) or len(shape) == 1 for shape in data["marker"])
        and data["c"].dtype.kind in "UOSf"
    )


def scene_of(renderer: SpaceRenderer, model: Any) -> SpaceScene:
    """Return a model's space, as a renderer portrays it, as a scene.

    Args:
        renderer: The renderer, for which `is_scene` is true.
        model: The model.
    """
    space = renderer.space = space_in(model)
    drawer: Any = _current_drawer(renderer)
    left, right, low, high = map(float, drawer.get_viz_limits())
    unit = max(right - left, high - low) / NETWORK_SIDE if isinstance(space, Network) else 1.0
    width, height = max(right - left, unit) / unit, max(high - low, unit) / unit

    def at(x: float, y: float) -> tuple[float, float]:
        return (float(x) - left) / unit, (high - float(y)) / unit

    data = renderer._map_coordinates(_portrayed(renderer))  # pyright: ignore[reportPrivateUsage]
    per_point = max(width / SCENE_POINTS, height / SCENE_POINTS)
    edges = data["edgecolors"] if len(data["edgecolors"]) == len(data["marker"]) else [""] * len(data["marker"])
    agents: list[SceneAgent] = []
    order = np.argsort(data["zorder"], kind="stable")
    residents = list(space.agents)
    for index in order.tolist():
        agent = residents[index]
        x, y = at(*data["loc"][index])
        edge = "" if str(edges[index]) in ("", "white") else to_hex(edges[index])
        agents.append(
            SceneAgent(
                agent=agent,
                x=x,
                y=y,
                radius=per_point * float(data["s"][index]) ** 0.5 / 2,
                colour=_hex(data["c"][index]),
                shape=data["marker"][index],
                name=option_label(agent) if getattr(agent, "is_minded", False) else "",
                edge=edge,
                alpha=float(data["alpha"][index]),
            )
        )
    agents = [each for each in agents if np.isfinite((each.x, each.y)).all()]
    title = title_of(renderer.canvas.get_figure())  # pyright: ignore[reportOptionalMemberAccess, reportArgumentType]
    look: dict[str, Any] = {"title": title, "width": width, "height": height, "agents": agents, "has_names": True}
    return SpaceScene(**look, **_ground(renderer, space, drawer, at))


def _portrayed(renderer: SpaceRenderer) -> dict[str, Any]:
    portrayal = renderer.agent_portrayal or portray
    default = renderer.space_drawer.s_default
    return renderer.backend_renderer.collect_agent_data(renderer.space, portrayal, default_size=default)


def _hex(colour: Any) -> str:
    parts: Any = colour if isinstance(colour, str) else tuple(map(float, colour))
    return to_hex(parts)


def _current_drawer(renderer: SpaceRenderer) -> Any:
    """Return the drawer of a renderer's space; a new one if it is a network that has grown or was replaced."""
    drawer: Any = renderer.space_drawer
    graph = getattr(renderer.space, "G", None)
    if graph is not None and (graph is not drawer.graph or not set(graph) <= set(drawer.pos)):
        drawer = type(drawer)(renderer.space)
        renderer.space_drawer = renderer.backend_renderer.space_drawer = drawer
    return drawer


def _ground(renderer: SpaceRenderer, space: Any, drawer: Any, at: Callable[[float, float], Any]) -> dict[str, Any]:
    """Return the cells and ties of a space as fields of a scene."""
    if isinstance(space, Network):
        ties = [(*at(*drawer.pos[first]), *at(*drawer.pos[second])) for first, second in space.G.edges()]
        return {"ties": ties}
    if isinstance(space, OrthogonalGrid):
        places = [(x, y) for y in reversed(range(space.height)) for x in range(space.width)]
        cells = [space[place] if isinstance(space, DiscreteSpace) else place for place in places]
        return {"columns": space.width, "cells": cells, "fills": _fills(renderer, space, places)}
    if isinstance(space, HexGrid):
        places = [(x, y) for y in range(space.height) for x in range(space.width)]
        cells = [space[place] if isinstance(space, DiscreteSpace) else place for place in places]
        polygons = [[at(x, y) for x, y in corners] for corners in drawer.hexagons]
        return {"polygons": polygons, "cells": cells, "fills": _fills(renderer, space, places)}
    if isinstance(space, VoronoiGrid):
        cells = list(space.all_cells)
        return {"polygons": [[at(x, y) for x, y in cell.properties["polygon"]] for cell in cells], "cells": cells}
    return {}


def _fills(renderer: SpaceRenderer, space: Any, places: list[tuple[int, int]]) -> list[str]:
    """Return the colour of each cell of a grid by its property layers; empty: it has none that are portrayed."""
    portrayal: Any = renderer.propertylayer_portrayal
    if portrayal is None:
        return []
    layers: Any = space._mesa_property_layers if isinstance(space, DiscreteSpace) else space.properties  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    colours = np.zeros((len(places), 4))
    for name, layer in layers.items():
        style = None if name == "empty" else portrayal(layer)
        if style is None:
            continue
        values = np.array([layer.data[place] for place in places], dtype=float)
        low = values.min() if style.vmin is None else style.vmin
        high = values.max() if style.vmax is None else style.vmax
        scaled = np.round(np.clip((values - low) / ((high - low) or 1), 0, 1) * SHADES) / SHADES
        if style.color is not None:
            above = np.tile(to_rgba(style.color), (len(places), 1))
            above[:, 3] = scaled * style.alpha
        else:
            above = colormaps[style.colormap](scaled) if isinstance(style.colormap, str) else style.colormap(scaled)
            above[:, 3] *= style.alpha
        share = above[:, 3:]
        colours = np.hstack([share * above[:, :3] + (1 - share) * colours[:, :3], share + (1 - share) * colours[:, 3:]])
    painted: list[Any] = list(colours)
    return [to_hex(colour, keep_alpha=True) for colour in painted]


def redraw(renderer: SpaceRenderer, model: Any) -> list[PlacedAgent]:
    """Redraw a model's space on the canvas of its renderer.

    Args:
        renderer: The renderer, with Matplotlib as its backend.
        model: The model.

    Returns:
        The position of each LLM agent.
    """
    axes: Any = renderer.canvas
    space = renderer.space = space_in(model)
    bars: list[Any] = renderer.backend_renderer._active_colorbars  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
    for bar in bars:
        bar.remove()
    bars.clear()
    for artist in [*axes.lines, *axes.collections, *axes.patches, *axes.images, *axes.artists, *axes.texts]:
        artist.remove()
    drawer = _current_drawer(renderer)
    if renderer.space_mesh:
        renderer.draw_structure()
    if renderer.propertylayer_mesh:
        renderer.draw_propertylayer()
    places: list[PlacedAgent] = []
    if renderer.agent_portrayal is not None and len(space.agents):
        renderer.draw_agents()
        data = renderer.backend_renderer.collect_agent_data(
            renderer.space, renderer.agent_portrayal, default_size=drawer.s_default
        )
        locations = renderer._map_coordinates(data)["loc"]  # pyright: ignore[reportPrivateUsage]
        places = [
            PlacedAgent(agent, float(x), float(y))
            for agent, (x, y) in zip(space.agents, locations, strict=True)
            if getattr(agent, "is_minded", False)
        ]
        write_names(axes, places)
    if renderer.post_process is not None:
        renderer.post_process(axes)
    return places


# -- networks


def network_plot(
    edges: Edges, *, title: str = "", style: Callable[[Any], AgentPortrayalStyle] = portray
) -> Callable[[Any], Any]:
    """Return a component that draws the agents of a model and their current ties.

    Agents keep their positions from step to step; new agents are placed near those they are tied to.

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
    cache = use_ref((model, dict[int, Any]()))
    if cache.current[0] is not model:
        cache.current = (model, {})
    positions = cache.current[1]
    Plot(model, lambda model: network_scene(model, edges, style, title, positions))
