"""How agents read their surroundings, and where they can go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from mesa_llm.text import one_line, sentences

SpaceKind = Literal["grid", "hexagonal grid", "network", "regions", "plane", "map", "area", "nowhere"]
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
    "map": Terms("You are at point {} of a map.", "point", ""),
    "area": Terms("Your area lies around point {} of a map.", "area", ""),
}
"""Kind of space → its terms."""

NOWHERE_TO_GO = "You cannot go anywhere now."
"""Text for an agent without a free cell next to it."""


def surroundings_text(seen: Any) -> str:
    """Write the surroundings of an agent as lines; empty if it is in no space.

    Args:
        seen: Its `Surroundings`.
    """
    if seen.place is None:
        return ""
    terms = TERMS[seen.kind]
    lines = [terms.here.format(_shown_place(seen, seen.place))]
    if seen.layers:
        values = [f"{name} {_shown(value)}" for name, value in seen.layers.items()]
        lines.append(f"Here: {', '.join(values)}.")
    lines += _neighbour_lines(seen, terms)
    if seen.empty:
        lines.append(f"Empty {terms.spot}s: {spot_list(seen.empty)}.")
    return "\n".join(lines)


def _neighbour_lines(seen: Any, terms: Terms) -> list[str]:
    """List the neighbours, one a line."""
    reach = f"within {seen.radius:g} {terms.move}" + "s" * (seen.radius != 1)
    if not terms.move:
        reach = " ".join(filter(None, [f"within a distance of {seen.radius:g}", seen.unit]))
    elif not seen.radius:
        reach = f"in your {terms.spot}"
    if math.isinf(seen.radius):
        reach = "around you, nearest first" if seen.neighbours else "on the map"
    if not seen.neighbours:
        return [f"Nobody else is {reach}."]
    lines = [f"{reach[0].upper()}{reach[1:]}:"]
    for other in seen.neighbours[:MAX_SHOWN]:
        lines.append(f"- {other.description}: {other.where} ({_shown_place(seen, other.place)})")
    if len(seen.neighbours) > MAX_SHOWN:
        lines.append(f"- and {len(seen.neighbours) - MAX_SHOWN} more")
    return lines


def _shown_place(seen: Any, place: Place) -> str:
    """Write a place; on a map to a centimetre, or a hundred-thousandth of a degree."""
    if seen.kind not in ("map", "area") or not isinstance(place, tuple):
        return place_label(place)
    return ",".join(f"{part:.{5 if seen.unit == 'degrees' else 2}f}".rstrip("0").rstrip(".") for part in place)


def others_text(own: str, others: Sequence[str]) -> str:
    """List the agents of a model without a space.

    Args:
        own: Description of the reader.
        others: Descriptions of the others.
    """
    lines = [f"- {one_line(other, MAX_LINE_CHARACTERS)}" for other in others[:MAX_SHOWN]]
    if len(others) > MAX_SHOWN:
        lines.append(f"- and {len(others) - MAX_SHOWN} more")
    return "\n".join([f"You are {one_line(own, MAX_LINE_CHARACTERS)}. The others:", *lines])


def choices_text(spots: Sequence[Any]) -> str:
    """List the cells that an agent can go to."""
    return f"You can go to: {spot_list(spots)}."


def advice_text(spots: Sequence[Any]) -> str:
    """List the cells that an agent can go to, after what it cannot do."""
    return f"you can go to: {spot_list(spots)}." if spots else "you cannot go anywhere now."


def moved_text(place: str) -> str:
    """Report a move."""
    return f"You moved to {place}."


def place_label(place: Place) -> str:
    """Write a place as texts show it and actions take it."""
    if type(place) is tuple and _WHOLE.issuperset(map(type, place)):  # nearly all
        return _cell_label(place)
    if not isinstance(place, tuple):
        return one_line(str(place))
    return ",".join(f"{part:.4g}" if isinstance(part, float) else str(part) for part in place)


_WHOLE = frozenset({int})


@lru_cache(maxsize=16_384)
def _cell_label(coordinate: tuple[int, ...]) -> str:
    return ",".join(map(str, coordinate))


def spot_list(spots: Sequence[Any]) -> str:
    """List cells on one line: `1,3 (north); 2,4 (east)`."""
    names = [f"{spot.label} ({spot.where})" for spot in spots[:MAX_SHOWN]]
    more = [f"and {len(spots) - MAX_SHOWN} more"] if len(spots) > MAX_SHOWN else []
    return "; ".join(names + more)


def _shown(value: object) -> str:
    """Write a value for a text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else one_line(str(value), MAX_LINE_CHARACTERS)


REASONS = {
    "nowhere": "you are in no place that you could move from.",
    "not_next_to": "there is no {spot} {place!r} next to yours; {advice}",
    "full": "the {spot} {place!r} is full; {advice}",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)
