"""Actions to move between cells, and an observation of where an agent can go."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, cast

from mesa.discrete_space.grid import Grid
from pydantic import BeforeValidator

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ActionResult, Observation
from mesa_llm.space.compass import Direction, compass_direction, grid_offset, hexagon_direction
from mesa_llm.space.text import NOWHERE_TO_GO, TERMS, advice_text, choices_text, moved_text, place_label, reason_text
from mesa_llm.space.view import Describe, cell_label, kind_of, near_cells, others_text, space_of, surroundings
from mesa_llm.tools.tool import action

_COORDINATES = re.compile(r"\s*[(\[]?\s*-?[\d.]+(\s*,\s*-?[\d.]+)*\s*[)\]]?\s*")


def _place_text(value: object) -> object:
    """Normalise the name of a cell as language models write it: 5, "5", [2, 3], "(2, 3)"."""
    if isinstance(value, str):
        return _plain_name(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(str(part) for part in cast("list[object]", value))
    return value


@lru_cache(maxsize=4096)
def _plain_name(name: str) -> str:
    return re.sub(r"[()\[\]\s]", "", name) if _COORDINATES.fullmatch(name) else name.strip()


@lru_cache(maxsize=4096)
def _coordinate_of(place: str) -> tuple[int, ...] | None:
    """Return the coordinate of a cell from its name; None if it is no list of whole numbers, as in a network."""
    parts = place.split(",")
    coordinate = tuple(int(part) for part in parts if part.lstrip("-").isdecimal())
    return coordinate if len(parts) > 1 and place_label(coordinate) == place else None


PlaceName = Annotated[str, BeforeValidator(_place_text)]
"""Name of a cell as argument of an action, in any form that language models write."""


class MovesToPlaces:
    """Lets an agent move to a neighbouring cell by name, in any discrete space of Mesa.

    For agents with a `cell`, such as `CellAgent`, whose own `move_to` is not affected.
    """

    def can_move(self) -> bool:
        """Check whether a neighbouring cell has room.

        Raises:
            ConfigError: If this kind of agent has no cell.
        """
        here = _cell_of(self)
        for cell in () if here is None else here.connections.values():
            if cell is not here and not cell.is_full:
                return True
        return False

    @action(when="can_move", did="{result}")
    def go_to(self, place: PlaceName) -> ActionResult:
        """Move to a place right next to yours.

        Args:
            place: Name of the place, as you were shown it.
        """
        cells, coordinate = _next_cells(self), _coordinate_of(place)
        named = [cell for cell in cells if cell.coordinate == coordinate]
        named = named or [cell for cell in cells if cell_label(cell) == place]
        return _enter(self, named[-1] if named else None, place)


class MovesOnGrid:
    """Lets an agent move to a neighbouring cell of a grid, square or hexagonal, by a compass direction.

    For agents with a `cell`, such as `CellAgent`. North is the row above, (-1, 0), as in all of Mesa.
    """

    def can_move(self) -> bool:
        """Check whether a neighbouring cell has room.

        Raises:
            ConfigError: If the agent is in a space other than a two-dimensional grid.
        """
        return any(not cell.is_full for cell in _by_direction(self).values())

    @action(when="can_move", did="{result}")
    def move(self, direction: Direction) -> ActionResult:
        """Move one cell.

        Args:
            direction: Where to.
        """
        return _enter(self, _by_direction(self).get(direction), direction)


def describe_surroundings(agent: Any, radius: float | None = None, describe: Describe | None = None) -> Observation:
    """Return an agent's surroundings as an observation.

    Without a space, the observation lists the other agents. With `MovesOnGrid` or `MovesToPlaces`, it also lists where
    the agent can go, as do the `options` of its action. The `facts` are the `Surroundings`.

    Args:
        agent: Any Mesa agent, in any space, on a map of mesa-geo, or in none.
        radius: Range of sight: in moves, or in units of a continuous space or map; 1 by default, and on a map the
            nearest 20 at any distance.
        describe: Describes a neighbour; by default by its name or class, and its id.

    Raises:
        ConfigError: If the radius does not fit the space, or the space cannot be found.
    """
    seen = surroundings(agent, radius, describe)
    if seen.place is None:
        return Observation(text=others_text(agent, describe), facts=seen)
    if not isinstance(agent, MovesOnGrid | MovesToPlaces):
        return Observation(text=seen.text, facts=seen)
    if not seen.open:
        return Observation(text=f"{seen.text}\n{NOWHERE_TO_GO}", facts=seen)
    options: dict[str, tuple[str, ...]] = {}
    if isinstance(agent, MovesOnGrid):
        directions = _by_direction(agent).items()
        options["direction"] = tuple(direction for direction, cell in directions if not cell.is_full)
    if isinstance(agent, MovesToPlaces):
        options["place"] = tuple(spot.label for spot in seen.open)
    return Observation(f"{seen.text}\n{choices_text(seen.open)}", facts=seen, options=options)


def _next_cells(agent: Any) -> list[Any]:
    """Return the cells one move away; none if the agent has not been placed.

    Raises:
        ConfigError: If this kind of agent has no cell.
    """
    here = _cell_of(agent)
    return [] if here is None else [cell for cell in dict.fromkeys(here.connections.values()) if cell is not here]


def _cell_of(agent: Any) -> Any:
    """Return the agent's cell; None if it has not been placed.

    Raises:
        ConfigError: If this kind of agent has no cell.
    """
    try:
        return agent.cell
    except AttributeError:
        raise ConfigError(
            f"{type(agent).__name__} has no cell to move from: MovesOnGrid and MovesToPlaces are for agents in cells, "
            "such as CellAgent; write your own action for other spaces"
        ) from None


def _by_direction(agent: Any) -> dict[Direction, Any]:
    """Return the cells one move away by direction.

    Raises:
        ConfigError: If the agent is in a space other than a two-dimensional grid.
    """
    if _cell_of(agent) is None:
        return {}
    space, start = space_of(agent), agent.cell.coordinate
    if not isinstance(space, Grid) or len(space.dimensions) != 2:
        raise ConfigError(f"MovesOnGrid is for two-dimensional grids; in a {type(space).__name__} use MovesToPlaces")
    directions: dict[Direction, Any] = {}
    is_hexagonal = kind_of(space) == "hexagonal grid"
    for cell in _next_cells(agent):
        offset = grid_offset(space, start, cell.coordinate)
        directions[hexagon_direction(start, offset) if is_hexagonal else compass_direction(*offset)] = cell
    return directions


def _enter(agent: Any, cell: Any, destination: str) -> ActionResult:
    """Move an agent into a neighbouring cell, and return where it is now.

    Raises:
        ToolError: If there is no such cell next to it, or the cell is full.
    """
    if cell is not None and not cell.is_full:
        agent.cell = cell
        return ActionResult(moved_text(cell_label(cell)), coordinate=cell.coordinate)
    if agent.cell is None:
        raise ToolError(reason_text("nowhere"))
    space = space_of(agent)
    spot = TERMS[kind_of(space)].spot
    advice = advice_text([near.spot for near in near_cells(space, agent.cell, 1)[1:] if not near.cell.is_full])
    if cell is None:
        raise ToolError(reason_text("not_next_to", spot=spot, place=destination[:80], advice=advice))
    raise ToolError(reason_text("full", spot=spot, place=destination[:80], advice=advice))
