"""Drawings of a model's space with Mesa's renderer, and of networks of agents; a click opens the inspector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mesa.discrete_space import FixedAgent, VoronoiGrid
from mesa.experimental.continuous_space import ContinuousSpace
from mesa.visualization.components import AgentPortrayalStyle
from mesa.visualization.solara_viz import SpaceRendererComponent
from mesa.visualization.space_renderer import HexGrid, Network, OrthogonalGrid, SpaceRenderer
from mesa.visualization.utils import update_counter
from reacton import use_memo, use_ref
from solara.core import component

from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.components.placement import place_steady
from mesa_llm.viz.render.downloads import plot_downloads
from mesa_llm.viz.render.figures import enlarge, title_of
from mesa_llm.viz.render.network import (
    ACTIVE,
    IDLE,
    SIDE,
    ClickableSpot,
    Edges,
    PlacedAgent,
    network_figure,
    spots_on,
    write_names,
)
from mesa_llm.viz.render.style import COLOURS, picture_of
from mesa_llm.viz.session.rw_lock import steady

MakeRenderer = Callable[[Any], SpaceRenderer]
"""Sets up a renderer for a model: `SpaceRenderer(model).setup_agents(portray)`."""

MAX_DRAWN = 1_000
"""Maximum number of nodes of a network drawn by default, as its layout is slow."""

_CONTINUOUS = (import_module("mesa.space").ContinuousSpace,) if find_spec("mesa.space") else ()  # removed in Mesa 4

DRAWABLE: tuple[Any, ...] = (OrthogonalGrid, HexGrid, Network, VoronoiGrid, ContinuousSpace, *_CONTINUOUS)
"""Spaces that Mesa can draw."""

CLASSES = (IDLE, *COLOURS[1:])
"""Colours of the classes of agents in a plain Mesa model, which does not keep outcomes."""


def portray(agent: Any) -> AgentPortrayalStyle:
    """Portray an agent as a disc, coloured by whether it acted in the last step.

    Agents without a mind are smaller, grey and below the others; those that cannot move are paler and lowest.

    Args:
        agent: The agent.
    """
    if not getattr(agent, "is_minded", False):
        is_fixed = isinstance(agent, FixedAgent)
        colour = "#dbe3ee" if is_fixed else "#94a3b8"
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
        lines = {"alpha": 0.35, "style": "-", "edge_color": "#94a3b8"}
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
    if figure.backend == "matplotlib":
        _Figure(figure, model)
    else:
        place_steady(SpaceRendererComponent(model, figure), model)


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
    drawer: Any = renderer.space_drawer
    graph = getattr(renderer.space, "G", None)
    if graph is not None and (graph is not drawer.graph or not set(graph) <= set(drawer.pos)):  # the network has grown
        drawer = type(drawer)(renderer.space)
        renderer.space_drawer = renderer.backend_renderer.space_drawer = drawer
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
    page = use_page(model)
    moment = update_counter.get()
    cache = use_ref((model, dict[int, Any]()))
    if cache.current[0] is not model:
        cache.current = (model, {})
    positions = cache.current[1]

    def drawn(kind: str) -> tuple[bytes, list[ClickableSpot]]:
        with steady(model):
            figure, places = network_figure(model, edges, style, title, positions)
        return picture_of(figure, kind), spots_on(figure.axes[0], places)

    png, spots = use_memo(lambda: drawn("png"), [model, moment])
    name = title or "Network"
    Picture(name, plot_downloads(model, name, lambda kind: drawn(kind)[0]), png, spots, page.inspect_agent)
