"""What people read of past evenings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mesa_llm.text import counted
from mesa_llm_models.classics.people import Traits

WENT, STAYED = "You went to the bar.", "You stayed at home."
"""What came of the two actions."""

TRAITS: Traits = {
    "crowds": {
        "likes": "You like company, and a full room bothers you less than most people.",
        "minds": "Crowds tire you: an evening without a seat is a lost one for you.",
        "listens": "You come for the music, and want to hear it.",
    },
    "way": {
        "short": "The bar is next door to you.",
        "middling": "You walk to the bar in a quarter of an hour.",
        "long": "You live far out, and the way to the bar takes you an hour.",
    },
    "home": {
        "dull": "Your evenings at home are long.",
        "pleasant": "You like your evenings at home, too.",
    },
}
"""What matters to people when they decide whether to go."""


class Past(NamedTuple):
    """What a person knows of past evenings."""

    attendances: Sequence[int]
    """Number of people who came in each of the past weeks, oldest first."""

    crowded: int
    """Number of people from which on the bar is crowded."""

    n_agents: int
    """Number of people in the town."""

    evenings: Sequence[bool]
    """Whether it went in each of the last of those weeks, oldest first; empty before the first step."""

    @property
    def n_crowded(self) -> int:
        """Number of the past weeks in which the bar was crowded."""
        return sum(one >= self.crowded for one in self.attendances)

    @property
    def went(self) -> bool | None:
        """Whether it went last week; None before the first step."""
        return self.evenings[-1] if self.evenings else None

    @property
    def was_right(self) -> bool | None:
        """Whether last week's choice was the better one; None before the first step."""
        return None if self.went is None else self.went == (self.attendances[-1] < self.crowded)


def observation_text(past: Past) -> str:
    """Write what a person sees: past evenings at the bar, and its own.

    Args:
        past: What it knows.
    """
    n_weeks, n = len(past.attendances), past.n_crowded
    weeks = ", ".join(map(str, past.attendances))
    which = "all" if n == n_weeks else n or "none"
    parts = [
        f"Number of people at the bar in the last {counted(n_weeks, 'week')}, the latest last: {weeks}.",
        f"It is crowded if {past.crowded} or more of the {past.n_agents} people come, as in {which} of these weeks.",
        _last_week(past),
    ]
    if len(past.evenings) > 1:
        parts.append(f"In the last {len(past.evenings)} weeks you went {_times(sum(past.evenings))}.")
    return " ".join(filter(None, parts))


def _times(n: int) -> str:
    return {0: "not once", 1: "once", 2: "twice"}.get(n, f"{n} times")


def _last_week(past: Past) -> str:
    """Say what a person did last week, and whether that was good."""
    n_there = past.attendances[-1]
    if past.went is None:
        return ""
    people = counted(n_there, "person", "people")
    if past.went:
        others = counted(n_there - 1, "other", "others") if n_there > 1 else "nobody else"
        good = (
            "it was a good evening" if past.was_right else "it was crowded: an evening at home would have been better"
        )
        return f"Last week you went, with {others}, and {good}."
    if past.was_right:
        return f"Last week you stayed at home, and missed nothing: the bar was crowded with {people}."
    there = f"only {people} came" if n_there else "nobody came"
    return f"Last week you stayed at home, and missed a good evening: {there}."
