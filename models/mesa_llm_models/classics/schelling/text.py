"""What residents read of their neighbourhood."""

from __future__ import annotations

STAYED, MOVED = "You stayed.", "You moved away."
"""What came of the two actions."""


NO_HOME = "no home is empty."
"""Why nobody can move."""


def observation_text(colour: str, n_alike: int, n_others: int, likeness: float) -> str:
    """Write what a resident sees: its neighbours by colour.

    Args:
        colour: Its colour.
        n_alike: Number of neighbours of its colour.
        n_others: Number of the others.
        likeness: Share of those of its colour; 0 without neighbours.
    """
    return (
        f"You are {colour}. Of your {n_alike + n_others} neighbours {n_alike} are {colour} like you, and {n_others} "
        f"are not: {likeness:.0%} are like you."
    )
