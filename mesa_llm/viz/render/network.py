"""Drawings of networks of agents, with labels that avoid each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke

from mesa_llm.engine.activation import llm_agents
from mesa_llm.viz.render.agents import option_label, short_name
from mesa_llm.viz.render.figures import enlarge
from mesa_llm.viz.render.style import GREY, Figure

Edges = Callable[[Any], Iterable[tuple[int, int]]]
"""Returns the current ties in a model, as pairs of `unique_id`s."""

MAX_NAMES = 40
"""Maximum number of agents whose names are written."""

NAME_POINTS = 9
"""Font size of names, in points."""

DISC_POINTS = 12
"""Diameter of the disc around an agent that names keep clear of, in points."""

MAX_SPOTS = 500
"""Maximum number of clickable agents."""

ACTIVE, IDLE = "#f97316", "#60a5fa"
"""Colours of agents that acted in the last step, and of those that did not."""

SIDE = 6.4
"""Height of a drawing, in inches; its width is 1.1 times that."""


class PlacedAgent(NamedTuple):
    """An agent and its position on a plot, in data coordinates."""

    agent: Any
    """The agent."""

    x: float
    """Horizontal coordinate."""

    y: float
    """Vertical coordinate."""


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


def write_names(axes: Any, places: list[PlacedAgent]) -> None:
    """Write the names of agents where they overlap the fewest other names and discs, unless there are many.

    Agents at the same position share one label with their number.

    Args:
        axes: Matplotlib axes, with their title and limits set.
        places: Positions of the agents.
    """
    if len(places) > MAX_NAMES:
        return
    names_at: dict[tuple[float, float], list[str]] = {}
    for agent, x, y in places:
        names_at.setdefault((x, y), []).append(short_name(agent))
    axes.get_xlim()  # updates the limits
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
    """A rectangle on a plot, in points: its centre, half its width and half its height."""

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


def network_figure(
    model: Any,
    edges: Edges,
    style: Callable[[Any], Any],
    title: str = "",
    positions: dict[int, Any] | None = None,
) -> tuple[Figure, list[PlacedAgent]]:
    """Draw the agents of a model and their current ties.

    Args:
        model: The model.
        edges: Returns its ties, as pairs of `unique_id`s.
        style: Returns an agent's portrayal, such as Mesa's `AgentPortrayalStyle`; its colour and size are used.
        title: Title of the figure.
        positions: Agent id → position; new agents are added. None: all are laid out anew.

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
        PlacedAgent(agent, float(positions[agent_id][0]), float(positions[agent_id][1]))
        for agent_id, agent in agents.items()
    ]
    axes.margins(0.08)
    if title:
        axes.set_title(title, loc="left", color=GREY, fontsize=13)
    write_names(axes, places)
    return figure, places


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
