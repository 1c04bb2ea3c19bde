"""Collect an agent's surroundings in any Mesa space: neighbours, empty cells, and properties of its own cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import mesa
import numpy as np
from mesa.discrete_space import Cell, DiscreteSpace, HexGrid, Network
from mesa.discrete_space.grid import Grid
from mesa.experimental.continuous_space import ContinuousSpaceAgent

from mesa_llm.config import ConfigMixin
from mesa_llm.errors import ConfigError
from mesa_llm.space import geography, text
from mesa_llm.space.compass import compass_direction, grid_offset, grid_words, hexagon_words
from mesa_llm.space.surroundings import Neighbour, Spot, Surroundings
from mesa_llm.space.text import MAX_LINE_CHARACTERS, MAX_SHOWN, TERMS, Place, SpaceKind
from mesa_llm.text import one_line

Describe = Callable[[Any], str]


def surroundings(agent: mesa.Agent[Any], radius: float | None = None, describe: Describe | None = None) -> Surroundings:
    """Collect the surroundings of an agent, in any Mesa space or on a map of mesa-geo.

    Only cells within the radius are visited, so the cost does not depend on the number of agents, save on a map.

    Args:
        agent: The observer.
        radius: Range of sight: a whole number of moves, 0 for its own cell, or units of a continuous space or map; 1
            by default, and on a map the nearest 20 at any distance.
        describe: Describes a neighbour; by default by its name or class, and its id.

    Raises:
        ConfigError: If the radius does not fit the space, or the space cannot be found.
    """
    if geography.is_on_map(agent):
        if radius is not None and not 0 <= radius < math.inf:
            raise ConfigError(f"a radius on a map must be a finite number of 0 or more, got {radius!r}")
        return _around_shape(agent, radius, describe or description)
    radius = 1 if radius is None else radius
    if getattr(agent, "cell", None) is not None:
        if not math.isfinite(radius) or radius < 0 or radius != int(radius):
            raise ConfigError(f"a radius in cells must be a whole number of 0 or more, got {radius!r}")
        return _around_cell(agent, int(radius), describe or description)
    if isinstance(agent, ContinuousSpaceAgent):
        if not 0 < radius < math.inf:
            raise ConfigError(f"a radius in a continuous space must be a finite number above 0, got {radius!r}")
        return _around_point(agent, radius, describe or description)
    _refuse_old_space(agent)
    return Surroundings("nowhere")


def others_text(agent: mesa.Agent[Any], describe: Describe | None = None) -> str:
    """List the agents of a model without a space, the observer first; empty if it is alone.

    LLM agents come first. If there are too many to list, each agent sees those created after it, wrapping round, so
    that no agent is known to all.

    Args:
        agent: The observer.
        describe: Describes another agent; by default by its name or class, and its id.
    """
    everyone = list(agent.model.agents)
    here = everyone.index(agent) if agent in agent.model.agents else 0
    others = [other for other in everyone[here:] + everyone[:here] if other is not agent]
    if not others:
        return ""
    others.sort(key=lambda other: not getattr(other, "is_minded", False))
    listed = [(describe or description)(other) if index < MAX_SHOWN else "" for index, other in enumerate(others)]
    return text.others_text(description(agent), listed)


def description(agent: mesa.Agent[Any]) -> str:
    """Return an agent's name or class, and its id; also for plain Mesa agents."""
    if isinstance(agent, ConfigMixin) and agent.config.name:
        return f"{agent.config.name} ({agent.unique_id})"
    return f"{type(agent).__name__} {agent.unique_id}"


def space_of(agent: mesa.Agent[Any]) -> DiscreteSpace[Cell]:
    """Find the space that holds an agent's cell: the agent's own `space`, or an attribute of its model.

    Raises:
        ConfigError: If neither holds the cell.
    """
    cell = cast("Any", agent).cell
    for space in (getattr(agent, "space", None), *vars(agent.model).values()):
        if isinstance(space, DiscreteSpace) and _holds(space, cell):
            return space
    raise ConfigError(
        f"{description(agent)} is in a cell of a space that its model does not hold; "
        "store the space as an attribute of the model (`self.grid`) or of the agent (`self.space`)"
    )


def kind_of(space: DiscreteSpace[Cell]) -> SpaceKind:
    """Return the kind of a discrete space."""
    if isinstance(space, HexGrid):
        return "hexagonal grid"
    if isinstance(space, Grid):
        return "grid"
    return "network" if isinstance(space, Network) else "regions"


class Near(NamedTuple):
    """A cell seen from another."""

    cell: Cell
    spot: Spot


def near_cells(space: DiscreteSpace[Cell], start: Cell, radius: int) -> list[Near]:
    """Return the cells within a number of moves of a cell, itself first, nearest first."""
    distances = {start: 0}
    frontier = [start]
    for moves in range(1, radius + 1):
        next_cells = [other for cell in frontier for other in cell.connections.values() if other not in distances]
        frontier = list(dict.fromkeys(next_cells))
        distances.update(dict.fromkeys(frontier, moves))
    return [
        Near(cell, Spot(_plain_place(cell.coordinate), _cell_words(space, start, cell, moves), moves))
        for cell, moves in distances.items()
    ]


def cell_label(cell: Any) -> str:
    """Return the name of a cell, as texts show it and actions take it."""
    return text.place_label(_plain_place(cell.coordinate))


def _around_cell(agent: mesa.Agent[Any], radius: int, describe: Describe) -> Surroundings:
    """Collect the surroundings of an agent in a cell."""
    start, space = cast("Any", agent).cell, space_of(agent)
    cells = near_cells(space, start, max(radius, 1))
    spots = [(cell, spot) for cell, spot in cells if spot.distance <= radius]
    neighbours = [
        Neighbour(
            other.unique_id, one_line(describe(other), MAX_LINE_CHARACTERS), spot.where, spot.distance, spot.place
        )
        for cell, spot in spots
        for other in cast("list[Any]", cell.agents)
        if other is not agent
    ]
    return Surroundings(
        kind=kind_of(space),
        place=_plain_place(start.coordinate),
        radius=radius,
        neighbours=_in_order(neighbours),
        empty=tuple(spot for cell, spot in spots if cell.is_empty),
        open=tuple(spot for cell, spot in cells if spot.distance == 1 and not cell.is_full),
        layers=_layers(space, start),
    )


def _around_point(agent: ContinuousSpaceAgent, radius: float, describe: Describe) -> Surroundings:
    """Collect the surroundings of an agent in a continuous space, where x points east and y north."""
    space: Any = agent.space
    point = np.array(agent.position, dtype=float)
    agents_near, distances = space.get_agents_in_radius(point, radius)
    offsets = space.calculate_difference_vector(point, agents_near)
    neighbours = [
        Neighbour(
            agent=other.unique_id,
            description=one_line(describe(other), MAX_LINE_CHARACTERS),
            where=_point_words(float(distance), offset),
            distance=float(distance),
            place=_point_place(other.position),
        )
        for other, distance, offset in zip(agents_near, distances, offsets, strict=True)
        if other is not agent
    ]
    return Surroundings("plane", _point_place(point), radius, _in_order(neighbours))


def _around_shape(agent: Any, radius: float | None, describe: Describe) -> Surroundings:
    """Collect the surroundings of an agent on a map, where x points east and y north."""
    shape, unit, space = agent.geometry, geography.unit_of_map(agent), geography.map_of(agent)
    point = geography.point_of(shape)
    neighbours: list[Neighbour] = []
    for other, distance in geography.shapes_near(agent, space, radius):
        place = geography.point_of(other.geometry)
        where = "" if distance else geography.relation_words(shape, other.geometry)
        where = where or _point_words(distance, np.subtract(place, point), unit)
        neighbours.append(
            Neighbour(other.unique_id, one_line(describe(other), MAX_LINE_CHARACTERS), where, distance, place)
        )
    return Surroundings(
        kind="map" if shape.geom_type == "Point" else "area",
        place=point,
        radius=math.inf if radius is None else radius,
        neighbours=tuple(neighbours),
        layers=_plain_values(geography.layers_at(space, point)),
        unit=unit,
    )


def _in_order(neighbours: list[Neighbour]) -> tuple[Neighbour, ...]:
    """Sort neighbours by distance, then by id."""
    return tuple(sorted(neighbours, key=lambda other: (other.distance, other.agent)))


def _holds(space: DiscreteSpace[Cell], cell: Cell) -> bool:
    """Check whether a cell belongs to a space."""
    try:
        space.all_cells[cell]
    except KeyError:
        return False
    return True


def _cell_words(space: DiscreteSpace[Cell], start: Cell, cell: Cell, moves: int) -> str:
    """Describe the direction of a cell, seen from another in the same space."""
    kind = kind_of(space)
    if not moves:
        return f"in your {TERMS[kind].spot}"
    if kind == "network":
        return "linked" if moves == 1 else f"{moves} links away"
    if kind == "regions":
        return "adjacent" if moves == 1 else f"{moves} regions away"
    offset = grid_offset(space, start.coordinate, cell.coordinate)
    if kind == "hexagonal grid":
        return hexagon_words(start.coordinate, offset, moves)
    return grid_words(offset, moves)


def _point_words(distance: float, offset: Any, unit: str = "") -> str:
    """Describe the distance of a point or shape and, in two dimensions, its direction."""
    if not np.any(offset):
        return "at your point"
    number = f"{distance:.1f}" if distance >= 1 else f"{distance:.2g}"
    far = " ".join(filter(None, [number, unit, "away"])) if distance else "touching"
    return f"{far}, {compass_direction(-offset[1], offset[0])}" if len(offset) == 2 else far


def _layers(space: DiscreteSpace[Cell], cell: Cell) -> dict[str, Any]:
    """Return a cell's property layers and the plain values among its own properties, by name.

    Mesa stores the layers of a grid as properties of a cell class created for that grid.
    """
    values = {str(name): value for name, value in cell.properties.items()}
    if isinstance(space, Grid):
        layers = [name for name, member in vars(type(cell)).items() if isinstance(member, property)]
        values |= {name: getattr(cell, name) for name in layers if name != "empty"}
    return _plain_values(values)


def _plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are numbers, texts or yes and no, by name, in order."""
    plain = {name: _plain(value) for name, value in sorted(values.items())}
    return {name: value for name, value in plain.items() if isinstance(value, bool | int | float | str)}


def _plain(value: object) -> Any:
    """Convert a NumPy scalar to a Python value."""
    return value.item() if isinstance(value, np.generic) else value


_WHOLE = frozenset({int})


def _plain_place(coordinate: Any) -> Place:
    """Convert a cell's coordinate to plain values, and any other node to text."""
    if type(coordinate) is tuple and _WHOLE.issuperset(map(type, coordinate)):
        return coordinate
    if isinstance(coordinate, tuple):
        parts = [_plain(part) for part in cast("tuple[object, ...]", coordinate)]
        return tuple(parts) if all(isinstance(part, int) for part in parts) else str(coordinate)
    value = _plain(coordinate)
    return value if isinstance(value, int | str) else str(value)


def _point_place(position: Any) -> tuple[float, ...]:
    """Convert a position to plain numbers."""
    return tuple(float(part) for part in position)


def _refuse_old_space(agent: mesa.Agent[Any]) -> None:
    """Reject an agent in a space of `mesa.space`, which Mesa 4 removed, instead of showing it no neighbours."""
    if getattr(agent, "pos", None) is None:
        return
    for value in vars(agent.model).values():
        if any(base.__module__ == "mesa.space" for base in type(value).__mro__):
            raise ConfigError(
                f"{description(agent)} is in a {type(value).__name__} of mesa.space, which Mesa 4 removed; "
                "use mesa.discrete_space or mesa.experimental.continuous_space"
            )
