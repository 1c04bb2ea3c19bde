"""What people read of their opinion, and of the one they meet."""

from __future__ import annotations

from typing import NamedTuple

from mesa_llm.text import counted
from mesa_llm_models.classics.people import Traits

TOPIC = "how much of the town centre should be closed to cars"
"""Topic of the opinions, unless another is given."""

KEPT = "You kept your opinion."
"""What came of keeping."""

TRAITS: Traits = {
    "mind": {
        "stubborn": "You change your mind slowly, and only for a good reason.",
        "open": "You like to hear people out, and give way when they have a point.",
        "peaceable": "You dislike disagreement, and meet people half way where you can.",
    },
    "concern": {
        "old hand": "You have thought about this for years.",
        "beginner": "You have only begun to think about this.",
        "affected": "What is decided will change your own days.",
    },
}
"""How people hold their opinions."""


class Meeting(NamedTuple):
    """The opinion that somebody meets."""

    opinion: float
    """The opinion, from 0 to 1."""

    whose: str = ""
    """Who holds it; empty: it is the mean of people with similar opinions."""

    n_people: int = 1
    """Number of people whose mean it is, oneself among them."""

    within: float = 0.0
    """Largest difference between the own opinion and theirs, from 0 to 1."""

    outcome: float = 0.0
    """The own opinion after a compromise."""


def points(opinion: float) -> int:
    """Return an opinion from 0 to 1 as people read it: a whole number from 0 to 100."""
    return int(100 * opinion + 0.5)


def observation_text(opinion: float, met: Meeting | None) -> str:
    """Write what a person sees; the numbers that it reads agree with each other.

    Args:
        opinion: Its opinion, from 0 to 1; people read it as 0 to 100.
        met: The opinion it meets; None: it meets nobody.
    """
    own = f"Your opinion is {points(opinion)}, on the scale from 0 (nothing) to 100 (everything)."
    if met is None:
        return f"{own} You meet nobody."
    theirs = points(met.opinion)
    distance = abs(theirs - points(opinion))
    if met.whose:
        meeting = f"You meet {met.whose}, whose opinion is {theirs}."
    elif met.n_people == 1:
        return f"{own} Nobody else has an opinion within {points(met.within)} of yours."
    else:
        others = counted(met.n_people - 1, "other person has an opinion", "other people have opinions")
        meeting = f"{others} within {points(met.within)} of yours; with your own, the average is {theirs}."
    if not distance:
        return f"{own} {meeting} So there is hardly a difference between you."
    higher = "higher" if theirs > points(opinion) else "lower"
    return (
        f"{own} {meeting} That is {distance} {higher} than yours. If you compromise, yours becomes about "
        f"{points(met.outcome)}; if you keep it, it stays {points(opinion)}."
    )


def changed_text(opinion: float, whose: str = "") -> str:
    """Report an opinion after a compromise.

    Args:
        opinion: The opinion, from 0 to 1.
        whose: With whom it was made; empty: with people of similar opinions.
    """
    return (
        f"You compromised with {whose or 'people who think much as you do'}, and your opinion is now {points(opinion)}."
    )
