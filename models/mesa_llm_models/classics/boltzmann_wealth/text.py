"""What people read of their coins, and of whom they meet."""

from __future__ import annotations

from typing import NamedTuple

from mesa_llm.text import counted
from mesa_llm_models.classics.people import Traits

KEPT = "You gave nothing."
"""What came of keeping."""

NOBODY_MET = "you meet nobody."
"""Why no coin can be given."""

TRAITS: Traits = {
    "giving": {
        "easy": "You give easily.",
        "thrifty": "You part with money only for a reason.",
        "fair": "It bothers you when one has much and another has nothing.",
    },
    "needs": {
        "family": "Others live on what you have.",
        "modest": "You live alone, and need little.",
        "lean years": "You have known lean years.",
    },
}
"""What matters to people when they decide whether to give."""


class Met(NamedTuple):
    """The person that somebody meets, and who else is there."""

    name: str
    """How others speak of that person."""

    coins: int
    """Coins of that person."""

    n_others: int = 0
    """Number of further people in the same place."""

    others_coins: int = 0
    """Coins of those people together."""


def observation_text(coins: int, met: Met | None) -> str:
    """Write what a person sees: its coins, those of the person it meets, and those of the people around them.

    Args:
        coins: Its coins.
        met: The person it meets; None: it is alone.
    """
    own = f"You have {_coins(coins)}."
    if met is None:
        return f"{own} You meet nobody."
    meeting = f"You meet {met.name}, who has {_coins(met.coins)}."
    around = ""
    if met.n_others == 1:
        around = f"1 other person is here, who has {_coins(met.others_coins)}."
    elif met.n_others:
        around = f"{met.n_others} other people are here, who have {_coins(met.others_coins)} together."
    nothing = "" if coins else "So you have nothing to give."
    return " ".join(filter(None, (own, meeting, around, nothing)))


def _coins(coins: int) -> str:
    return counted(coins, "coin") if coins else "no coins"


def gift_text(recipient: str, coins: int) -> str:
    """Report a gift to the giver, who has some coins left."""
    return f"You gave a coin to {recipient}, and have {counted(coins, 'coin') if coins else 'none'} left."
