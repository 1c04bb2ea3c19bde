"""Describe the direction from one place to another in words.

Every two-dimensional grid follows Mesa's convention: cells are (row, column), and north is (-1, 0). A cell of a
hexagonal grid then touches those to its north, south, north-east, south-east, south-west and north-west.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

Direction = Literal["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"]

_CLOCKWISE: tuple[Direction, ...] = get_args(Direction)


def compass_direction(south: float, east: float) -> Direction:
    """Return the nearest of the eight compass directions to a nonzero offset."""
    eighths = round(math.atan2(east, -south) / (math.pi / 4))
    return _CLOCKWISE[eighths % 8]


def grid_offset(space: Any, start: Sequence[int], end: Sequence[int]) -> tuple[int, ...]:
    """Return the steps from one cell to another along each axis of a grid, the shorter way round on a torus."""
    offset = [there - here for here, there in zip(start, end, strict=True)]
    if not space.torus:
        return tuple(offset)
    sizes: Sequence[int] = space.dimensions
    return tuple((steps + size // 2) % size - size // 2 for steps, size in zip(offset, sizes, strict=True))


def grid_words(offset: tuple[int, ...], links: int) -> str:
    """Describe the direction of a cell of an orthogonal grid.

    Args:
        offset: Steps along each axis.
        links: Distance in moves; a diagonal is named as one direction only where it is a single move.
    """
    if len(offset) != 2:
        return ", ".join(f"{steps:+d} on axis {axis}" for axis, steps in enumerate(offset) if steps)
    south, east = offset
    if 0 in offset or abs(south) == abs(east) == links:
        return _far(max(abs(south), abs(east)), compass_direction(south, east))
    vertical, horizontal = compass_direction(south, 0), compass_direction(0, east)
    return f"{abs(south)} {vertical} and {abs(east)} {horizontal}"


def hexagon_words(start: Sequence[int], offset: tuple[int, ...], links: int) -> str:
    """Describe the direction of a cell of a hexagonal grid, seen from the cell `start`."""
    return _far(links, hexagon_direction(start, offset))


def hexagon_direction(start: Sequence[int], offset: tuple[int, ...]) -> Direction:
    """Return the compass direction of a hexagon; even columns lie half a cell further south than odd ones."""
    column = start[1]
    south = offset[0] + ((column + offset[1]) % 2 == 0) / 2 - (column % 2 == 0) / 2
    return compass_direction(south, offset[1] * math.sqrt(3) / 2)


def _far(moves: int, direction: Direction) -> str:
    """Describe a direction, with the number of cells if there is more than one."""
    return direction if moves == 1 else f"{moves} cells {direction}"
