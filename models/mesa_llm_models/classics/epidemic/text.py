"""What people read of their health, and of the virus around them."""

from __future__ import annotations

from typing import NamedTuple

from mesa_llm.text import counted
from mesa_llm_models.classics.people import Traits, percent

WENT_OUT, STAYED_HOME = "You went out.", "You stayed at home."
"""What came of the two actions."""

TRAITS: Traits = {
    "caution": {
        "careful": "You would rather be careful than sorry.",
        "carefree": "You do not worry much about your health.",
        "considerate": "You would hate to make anybody else ill.",
    },
    "outside": {
        "nothing": "There is little outside that you could not put off.",
        "duty": "You have things to see to outside that will hardly wait.",
        "friends": "Your friends count on seeing you.",
    },
    "home": {
        "alone": "You live alone.",
        "frail": "You live with somebody who is old and frail.",
        "children": "You live with small children.",
    },
}
"""What matters to people when they decide whether to go out."""


class EpidemicView(NamedTuple):
    """What a person knows of itself and of those whom it meets."""

    health: str
    """`susceptible`, `infected` or `resistant`."""

    n_steps_ill: int
    """Number of steps since it caught the virus, if it is ill."""

    has_been_ill: bool
    """Whether it has had the virus and recovered."""

    n_contacts: int
    """Number of people it has ties to."""

    n_ill: int
    """Number of those who are ill."""

    spread: float
    """Probability that the virus passes along a tie in a step."""

    @property
    def risk(self) -> float:
        """Probability that it catches the virus from those who are ill, if all are out."""
        return 1 - (1 - self.spread) ** self.n_ill if self.health == "susceptible" else 0.0


def observation_text(seen: EpidemicView) -> str:
    """Write what a person sees: its own health, the health of those whom it meets, and what going out risks.

    Args:
        seen: What it knows.
    """
    return " ".join(filter(None, (_health_text(seen), _contacts_text(seen), _risk_text(seen))))


def _health_text(seen: EpidemicView) -> str:
    if seen.health == "infected":
        since = f", and have been for {counted(seen.n_steps_ill, 'step')}" if seen.n_steps_ill else ""
        return f"You are ill{since}. You can pass the virus on."
    if seen.health == "resistant":
        return "You have had the virus and recovered. You are immune: you cannot catch it again, nor pass it on."
    before = "have had the virus and recovered, but can catch it again" if seen.has_been_ill else "can catch the virus"
    return f"You are well. You {before}."


def _contacts_text(seen: EpidemicView) -> str:
    n, n_ill = seen.n_contacts, seen.n_ill
    if not n:
        return "You meet nobody when you go out."
    if n == 1:
        return f"You meet one person when you go out, who {'is' if n_ill else 'is not'} ill."
    ill = "none is ill" if not n_ill else "1 is ill" if n_ill == 1 else f"{n_ill} are ill"
    return f"Of the {n} people you meet when you go out, {ill}."


def _risk_text(seen: EpidemicView) -> str:
    """Say what a person risks, for itself and for others, if it goes out."""
    n_well = seen.n_contacts - seen.n_ill
    if seen.health == "resistant" or not seen.n_contacts:
        return ""
    if seen.health == "infected":
        if not n_well:
            return "So nobody whom you meet can catch it from you."
        who = "that person" if n_well == 1 else f"each of the {n_well} who are not ill"
        return (
            f"If you go out, {who} catches it from you with a chance of {percent(seen.spread)}, "
            "unless they are at home or immune."
        )
    if not seen.n_ill:
        return "So as far as you know, you would catch nothing from them."
    they = "that person goes" if seen.n_ill == 1 else "they go"
    return (
        f"If you go out and {they} out too, you catch the virus with a chance of {percent(seen.risk)}; "
        "at home you cannot catch it."
    )
