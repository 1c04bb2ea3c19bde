"""The surroundings of an agent, as records and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from mesa_llm.text import one_line

SpaceKind = Literal["grid", "hexagonal grid", "network", "regions", "plane", "nowhere"]
Place = tuple[int, ...] | tuple[float, ...] | int | str

MAX_SHOWN = 20
"""Maximum number of neighbours, and of cells, that a text names; it counts the others."""

MAX_LINE_CHARACTERS = 300
"""Maximum number of characters of one description."""


class Terms(NamedTuple):
    """Terms for one kind of space."""

    here: str
    """Sentence for where an agent is."""

    spot: str
    """Word for one place."""

    move: str
    """Unit of distances."""


TERMS: dict[SpaceKind, Terms] = {
    "grid": Terms("You are in cell {} of a grid; cells are row,column.", "cell", "cell"),
    "hexagonal grid": Terms("You are in cell {} of a grid of hexagons; cells are row,column.", "cell", "cell"),
    "network": Terms("You are at node {} of a network.", "node", "link"),
    "regions": Terms("You are in region {}.", "region", "region"),
    "plane": Terms("You are at point {}.", "point", ""),
}
"""Kind of space → its terms."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One cell near an agent."""

    place: Place
    """Coordinate of the cell, or its name in a network."""

    where: str
    """Its direction from the agent."""

    distance: int
    """Its distance in moves."""

    @property
    def label(self) -> str:
        """The cell's name as texts show it and actions take it: `2,3`, `5`, `Anna`."""
        return place_label(self.place)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One agent near another."""

    agent: int
    """Mesa `unique_id`."""

    description: str
    """Its description."""

    where: str
    """Its direction from the agent."""

    distance: float
    """Its distance: in moves, or in units of a continuous space."""

    place: Place
    """Its coordinates."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of an agent."""

    kind: SpaceKind
    """Kind of space."""

    place: Place | None = None
    """The agent's own place; None if it is in no space."""

    radius: float = 0
    """Range of sight: in moves, or in units of a continuous space."""

    neighbours: tuple[Neighbour, ...] = ()
    """The agents within the radius, nearest first, then by id."""

    empty: tuple[Spot, ...] = ()
    """The empty cells within the radius, nearest first."""

    open: tuple[Spot, ...] = ()
    """The cells one move away that have room."""

    layers: Mapping[str, Any] = field(default_factory=dict)
    """Values of the property layers, or other plain properties, of its cell by name."""

    @property
    def text(self) -> str:
        """The surroundings as lines to read; empty if the agent is in no space."""
        if self.place is None:
            return ""
        terms = TERMS[self.kind]
        lines = [terms.here.format(place_label(self.place))]
        if self.layers:
            values = [f"{name} {_shown(value)}" for name, value in self.layers.items()]
            lines.append(f"Here: {', '.join(values)}.")
        lines += self._neighbour_lines(terms)
        if self.empty:
            lines.append(f"Empty {terms.spot}s: {spot_list(self.empty)}.")
        return "\n".join(lines)

    def _neighbour_lines(self, terms: Terms) -> list[str]:
        """List the neighbours, one a line."""
        reach = f"within {self.radius:g} {terms.move}" + "s" * (self.radius != 1)
        if not terms.move:
            reach = f"within a distance of {self.radius:g}"
        elif not self.radius:
            reach = f"in your {terms.spot}"
        if not self.neighbours:
            return [f"Nobody else is {reach}."]
        lines = [f"{reach[0].upper()}{reach[1:]}:"]
        for other in self.neighbours[:MAX_SHOWN]:
            lines.append(f"- {other.description}: {other.where} ({place_label(other.place)})")
        if len(self.neighbours) > MAX_SHOWN:
            lines.append(f"- and {len(self.neighbours) - MAX_SHOWN} more")
        return lines


def place_label(place: Place) -> str:
    """Write a place as texts show it and actions take it."""
    if not isinstance(place, tuple):
        return one_line(str(place))
    return ",".join(f"{part:.4g}" if isinstance(part, float) else str(part) for part in place)


def spot_list(spots: tuple[Spot, ...]) -> str:
    """List cells on one line: `1,3 (north); 2,4 (east)`."""
    names = [f"{spot.label} ({spot.where})" for spot in spots[:MAX_SHOWN]]
    more = [f"and {len(spots) - MAX_SHOWN} more"] if len(spots) > MAX_SHOWN else []
    return "; ".join(names + more)


def _shown(value: object) -> str:
    """Write a value for a text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else one_line(str(value), MAX_LINE_CHARACTERS)
