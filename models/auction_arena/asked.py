"""The types of the answers that bidders are asked for; they name the very lots and bidders of the auction."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field

MOST_LESSONS = 6
"""Lessons that a bidder can draw from one auction."""

Lesson = Annotated[str, Field(min_length=1, max_length=300)]


class Lessons(TypedDict):
    """What a bidder has learnt."""

    lessons: Annotated[list[Lesson], Field(min_length=1, max_length=MOST_LESSONS)]


@lru_cache(maxsize=256)
def plan_of(lots: tuple[str, ...]) -> Any:
    """Give the type of a plan: each lot still to come → 1 (dispensable), 2 (worth it if affordable) or 3 (top).

    Args:
        lots: Names of the lots still to come.
    """
    return _record("Plan", dict.fromkeys(lots, Literal[1, 2, 3]))


@lru_cache(maxsize=256)
def belief_of(bidders: tuple[str, ...], lots: tuple[str, ...], most: int) -> Any:
    """Give the type of a belief, with the three fields of `mesa_llm.worlds.auction.Belief`.

    Args:
        bidders: Names of all bidders.
        lots: Names of all lots of the auction.
        most: Largest sum, up or down, that is taken as a belief.
    """
    dollars = Annotated[float, Field(ge=-most, le=most)]
    won = dict[Literal[lots], dollars]  # pyright: ignore[reportInvalidTypeArguments, reportInvalidTypeForm]
    fields = {
        "remaining_budget": dollars,
        "total_profits": _record("Profits", dict.fromkeys(bidders, dollars)),
        "winning_bids": _record("Wins", dict.fromkeys(bidders, won)),
    }
    return _record("Belief", fields)


def _record(name: str, fields: dict[str, Any]) -> Any:
    make: Any = TypedDict  # a type checker wants the fields as a literal
    return make(name, fields)
