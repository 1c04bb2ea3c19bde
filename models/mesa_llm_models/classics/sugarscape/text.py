"""What people read of their stocks, and of the landscape around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STAYED = "You stayed."
"""What came of staying."""


def observation_text(trader: Any, name: str, places: Mapping[str, Any]) -> str:
    """Write what a person sees: its stocks and needs, its cell, and the free cells in sight.

    Args:
        trader: The person.
        name: Name of its cell.
        places: Name of a free cell in sight → the cell.
    """
    grown = "\n".join(f"- {place}: {cell.sugar} sugar, {cell.spice} spice" for place, cell in places.items())
    return (
        f"You have {trader.sugar} sugar and {trader.spice} spice, and use up {trader.sugar_need} sugar and "
        f"{trader.spice_need} spice in each step. Your cell, {name}, holds {trader.cell.sugar} sugar and "
        f"{trader.cell.spice} spice.\nFree cells in sight:\n{grown or 'none'}"
    )


def move_text(place: str) -> str:
    """Report where a person went."""
    return f"You went to {place}."


def taken_text(place: str) -> str:
    """Say why a person cannot go somewhere."""
    return f"cell {place[:20]!r} is not free any more."
