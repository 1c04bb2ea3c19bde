"""Networks of agents as scenes, and the clickable spots of pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from matplotlib.colors import to_hex

from mesa_llm.charts.palette import COLOURS
from mesa_llm.charts.scenes import DISC_POINTS, PlacedAgent, SceneAgent, SpaceScene
from mesa_llm.engine.activation import llm_agents
from mesa_llm.viz.render.agents import option_label

Edges = Callable[[Any], Iterable[tuple[int, int]]]
"""Returns the current ties in a model, as pairs of `unique_id`s."""

MAX_SPOTS = 500
"""Maximum number of clickable agents."""

ACTIVE, IDLE = COLOURS[1], COLOURS[0]
"""Colours of agents that acted in the last step, and of those that did not."""

SIDE = 6.4
"""Height of a drawing by Mesa, in inches; its width is 1.1 times that."""


POINT = 10 / 330
"""Size of a point in the units of a scene of 11 by 10."""

ROOM = 0.6
"""Room at each edge of a scene, in its units."""


class ClickableSpot(NamedTuple):
    """A clickable agent on a picture."""

    agent_id: int
    """Mesa `unique_id` of the agent."""

    name: str
    """Its name."""

    x: float
    """Distance from the left edge, in percent of the width."""

    y: float
    """Distance from the upper edge, in percent of the height."""


def spots_on(axes: Any, places: list[PlacedAgent]) -> list[ClickableSpot]:
    """Return the clickable spots of agents on a drawn figure.

    Args:
        axes: Matplotlib axes of the figure.
        places: Positions of agents on them.
    """
    figure = axes.get_figure()
    width, height = figure.get_size_inches() * figure.dpi
    spots: list[ClickableSpot] = []
    for agent, x, y in places[:MAX_SPOTS]:
        if not np.isfinite((x, y)).all():
            continue
        left, up = axes.transData.transform((x, y))
        if 0 <= left <= width and 0 <= up <= height:
            spots.append(
                ClickableSpot(agent.unique_id, option_label(agent), 100 * left / width, 100 * (1 - up / height))
            )
    return spots


def network_scene(
    model: Any,
    edges: Edges,
    style: Callable[[Any], Any],
    title: str = "",
    positions: dict[int, Any] | None = None,
) -> SpaceScene:
    """Return the agents of a model and their current ties as a scene.

    Args:
        model: The model.
        edges: Returns its ties, as pairs of `unique_id`s.
        style: Returns an agent's portrayal, such as Mesa's `AgentPortrayalStyle`; its colour and size are used.
        title: Title of the scene; empty: `Network`.
        positions: Agent id → position; new agents are added. None: all are laid out anew.
    """
    positions = {} if positions is None else positions
    agents = {agent.unique_id: agent for agent in llm_agents(model)}
    ties = [(first, second) for first, second in edges(model) if first in agents and second in agents]
    lay_out(agents, ties, positions)
    at = scaled_positions({agent_id: positions[agent_id] for agent_id in agents})
    drawn: list[SceneAgent] = []
    for agent_id, agent in agents.items():
        look, (x, y) = style(agent), at[agent_id]
        radius = POINT * float(look.size or DISC_POINTS**2) ** 0.5 / 2
        name = option_label(agent)
        drawn.append(SceneAgent(agent=agent, x=x, y=y, radius=radius, colour=to_hex(look.color), name=name))
    lines = [(*at[first], *at[second]) for first, second in ties]
    return SpaceScene(title=title or "Network", width=11, height=10, agents=drawn, ties=lines, has_names=True)


def scaled_positions(
    positions: Mapping[int, Any], width: float = 11, height: float = 10
) -> dict[int, tuple[float, float]]:
    """Return positions in the units of a scene, with room at its edges.

    Args:
        positions: Agent id → position.
        width: Width of the scene.
        height: Height of the scene.

    Returns:
        Agent id → distances from the left and the upper edge.
    """
    if not positions:
        return {}
    places = np.array([positions[agent_id] for agent_id in positions], dtype=float)
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    shares = np.where(span > 0, (places - low) / np.where(span > 0, span, 1), 0.5)
    scaled = ROOM + shares * (width - 2 * ROOM, height - 2 * ROOM)
    return {agent_id: (float(x), height - float(y)) for agent_id, (x, y) in zip(positions, scaled, strict=True)}


def lay_out(agents: Iterable[int], ties: Iterable[tuple[int, int]], positions: dict[int, Any]) -> None:
    """Find positions for agents that have none.

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
