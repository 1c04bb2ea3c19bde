"""What people read of their coins, and of whom they meet."""

from __future__ import annotations

from mesa_llm.text import counted

KEPT = "You gave nothing."
"""What came of keeping."""


NOBODY_MET = "you meet nobody."
"""Why no coin can be given."""


def observation_text(coins: int, met: int | None, their_coins: int) -> str:
    """Write what a person sees.

    Args:
        coins: Its coins.
        met: Id of the person it meets; None: nobody.
        their_coins: Coins of that person.
    """
    own = f"You have {counted(coins, 'coin')}."
    if met is None:
        return f"{own} You meet nobody."
    return f"{own} You meet person {met}, who has {counted(their_coins, 'coin')}."


def gift_text(recipient: int, coins: int) -> str:
    """Report a gift to the giver, who has some coins left."""
    return f"You gave a coin to person {recipient}, and have {counted(coins, 'coin')}."
