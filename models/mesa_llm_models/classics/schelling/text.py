"""What residents read of their neighbourhood."""

from __future__ import annotations

from mesa_llm.text import counted

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
    if not n_alike + n_others:
        return f"You are {colour}. Nobody lives near you."
    neighbours = counted(n_alike + n_others, "neighbour")
    return (
        f"You are {colour}. You have {neighbours}: {n_alike} of your own colour, and {n_others} of the other. "
        f"{likeness:.0%} are like you."
    )
