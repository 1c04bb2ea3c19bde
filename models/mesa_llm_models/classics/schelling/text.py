"""What residents read of their neighbourhood."""

from __future__ import annotations

from typing import NamedTuple

from mesa_llm.text import counted
from mesa_llm_models.classics.people import Traits

STAYED, MOVED = "You stayed where you live.", "You moved into another home."
"""What came of the two actions."""

NO_HOME = "no home is empty."
"""Why nobody can move."""

OTHER = {"orange": "blue", "blue": "orange"}
"""Colour → the other one."""

TRAITS: Traits = {
    "company": {
        "company": "You like to have people around you.",
        "quiet": "You like quiet, and do not mind it if few people live near you.",
        "variety": "You get on with all sorts of people.",
    },
    "moving": {
        "settled": "You grow fond of a home, and leave one only for a good reason.",
        "mobile": "You move easily: your boxes are quickly packed.",
        "weary": "You find moving tiresome.",
    },
}
"""What residents like."""


class Neighbourhood(NamedTuple):
    """What a resident sees around its home."""

    colour: str
    """Its own colour."""

    n_alike: int
    """Number of neighbours of its colour."""

    n_others: int
    """Number of the others."""

    n_empty: int
    """Number of empty homes in the town."""


def observation_text(seen: Neighbourhood, wish: float | None) -> str:
    """Write what a resident sees: its neighbours by colour, whether it is content and why, and what a move means.

    Args:
        seen: Its neighbourhood.
        wish: Minimum share of neighbours of its colour for it to be content; None: nothing is said about that.
    """
    colour, n_alike, n_others, n_empty = seen
    n = n_alike + n_others
    if not n:
        parts = [f"You are {colour}. Nobody lives near you{_alone(wish)}."]
    else:
        parts = [
            f"You are {colour}. You have {counted(n, 'neighbour')}: {_some(n_alike)} {colour} like you, and "
            f"{_some(n_others)} {OTHER[colour]}, so {n_alike / n:.0%} are like you.",
            *([] if wish is None else [_content(n_alike, n, wish)]),
        ]
    if not n_empty:
        return " ".join([*parts, "No home is empty, so nobody can move now."])
    homes = "1 home is empty" if n_empty == 1 else f"{n_empty} homes are empty"
    return " ".join([*parts, f"{homes}. If you move, you get an empty home by lot, and new neighbours with it."])


def _some(n: int) -> str:
    return str(n or "none")


def _alone(wish: float | None) -> str:
    if wish is None:
        return ""
    return ", which is all right for you: you are content here" if wish <= 0 else ", so you are not content here"


def _content(n_alike: int, n: int, wish: float) -> str:
    """Say whether a resident is content, and why."""
    wanted = next(count for count in range(n + 1) if count / n >= wish)
    least = f"at least {wanted} of {n} here"
    want = f"You want {100 * wish:.4g} % or more, {least}"
    if n_alike >= wanted:
        return f"{want}: you are content here, and have what you want."
    return f"{want}: you are not content here, nor will you be while these neighbours stay."
