"""Actions to move between cells, and an observation of where an agent can go."""

from __future__ import annotations

import re
from typing import Annotated, Any, cast

from mesa.discrete_space.grid import Grid
from pydantic import BeforeValidator

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ActionResult, Observation
from mesa_llm.space.compass import Direction, compass_direction, grid_offset, hexagon_direction
from mesa_llm.space.text import NOWHERE_TO_GO, TERMS, advice_text, choices_text, moved_text, reason_text
from mesa_llm.space.view import Describe, Near, kind_of, near_cells, others_text, space_of, surroundings
from mesa_llm.tools.tool import action

_COORDINATES = re.compile(r"\s*[(\[]?\s*-?[\d.]+(\s*,\s*-?[\d.]+)*\s*[)\]]?\s*")


def _place_text(value: object) -> object:
    """Normalise the name of a cell as language models write it: 5, "5", [2, 3], "(2, 3)"."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(str(part) for part in cast("list[object]", value))
    if isinstance(value, str):
        return re.sub(r"[()\[\]\s]", "", value) if _COORDINATES.fullmatch(value) else value.strip()
    return value


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
        return any(not near.cell.is_full for near in _next_cells(self))

    @action(when="can_move")
    def go_to(self, place: PlaceName) -> ActionResult:
        """Move to a place right next to yours.

        Args:
            place: Name of the place, as you were shown it.
        """
        by_label = {near.spot.label: near for near in _next_cells(self)}
        return _enter(self, by_label.get(place), place)


class MovesOnGrid:
    """Lets an agent move to a neighbouring cell of a grid, square or hexagonal, by a compass direction.

    For agents with a `cell`, such as `CellAgent`. North is the row above, (-1, 0), as in all of Mesa.
    """

    def can_move(self) -> bool:
        """Check whether a neighbouring cell has room.

        Raises:
            ConfigError: If the agent is in a space other than a two-dimensional grid.
        """
        return any(not near.cell.is_full for near in _by_direction(self).values())

    @action(when="can_move")
    def move(self, direction: Direction) -> ActionResult:
        """Move one cell.

        Args:
            direction: Where to.
        """
        return _enter(self, _by_direction(self).get(direction), direction)


def describe_surroundings(agent: Any, radius: float = 1, describe: Describe | None = None) -> Observation:
    """Return an agent's surroundings as an observation.

    Without a space, the observation lists the other agents. With `MovesOnGrid` or `MovesToPlaces`, it also lists where
    the agent can go, as do the `options` of its action. The `facts` are the `Surroundings`.

    Args:
        agent: Any Mesa agent, in any space or in none.
        radius: Range of sight: in moves, or in units of a continuous space.
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
        options["direction"] = tuple(direction for direction, near in directions if not near.cell.is_full)
    if isinstance(agent, MovesToPlaces):
        options["place"] = tuple(spot.label for spot in seen.open)
    return Observation(f"{seen.text}\n{choices_text(seen.open)}", facts=seen, options=options)


def _next_cells(agent: Any) -> list[Near]:
    """Return the cells one move away; none if the agent has not been placed.

    Raises:
        ConfigError: If this kind of agent has no cell.
    """
    return [] if _cell_of(agent) is None else near_cells(space_of(agent), agent.cell, 1)[1:]


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


def _by_direction(agent: Any) -> dict[Direction, Near]:
    """Return the cells one move away by direction.

    Raises:
        ConfigError: If the agent is in a space other than a two-dimensional grid.
    """
    if _cell_of(agent) is None:
        return {}
    space, start = space_of(agent), agent.cell.coordinate
    if not isinstance(space, Grid) or len(space.dimensions) != 2:
        raise ConfigError(f"MovesOnGrid is for two-dimensional grids; in a {type(space).__name__} use MovesToPlaces")
    directions: dict[Direction, Near] = {}
    for near in _next_cells(agent):
        offset = grid_offset(space, start, near.cell.coordinate)
        is_hexagonal = kind_of(space) == "hexagonal grid"
        direction = hexagon_direction(start, offset) if is_hexagonal else compass_direction(*offset)
        directions[direction] = near
    return directions


def _enter(agent: Any, near: Near | None, destination: str) -> ActionResult:
    """Move an agent into a neighbouring cell, and return where it is now.

    Raises:
        ToolError: If there is no such cell next to it, or the cell is full.
    """
    if near is not None and not near.cell.is_full:
        agent.cell = near.cell
        return ActionResult(moved_text(near.spot.label), coordinate=near.cell.coordinate)
    if agent.cell is None:
        raise ToolError(reason_text("nowhere"))
    spot = TERMS[kind_of(space_of(agent))].spot
    free = tuple(neighbour.spot for neighbour in _next_cells(agent) if not neighbour.cell.is_full)
    advice = advice_text(free)
    if near is None:
        raise ToolError(reason_text("not_next_to", spot=spot, place=destination[:80], advice=advice))
    raise ToolError(reason_text("full", spot=spot, place=destination[:80], advice=advice))
