"""What people read of their stocks, and of the landscape around them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mesa_llm.text import counted
from mesa_llm_models.classics.people import Traits

STAYED = "You stayed where you were."
"""What came of staying."""

TRAITS: Traits = {
    "store": {
        "careful": "You like to have a full store.",
        "easy": "You live from day to day.",
        "balanced": "You look after what you have least of.",
    },
    "roaming": {
        "roams": "You like to see new places.",
        "stays": "You do not like to leave a place that feeds you.",
        "sociable": "You like to have other people near, with whom you can trade.",
    },
}
"""What matters to people when they decide where to go."""


class Stock(NamedTuple):
    """What a person has of sugar or spice, and how long that lasts."""

    name: str
    """`sugar` or `spice`."""

    amount: int
    """How much it has."""

    need: int
    """How much it uses up in a step."""

    @property
    def n_steps(self) -> int:
        """Number of the step, from now, in which it runs out if it finds nothing more."""
        return math.ceil(self.amount / self.need)


class SeenCell(NamedTuple):
    """A cell, and what has grown there."""

    name: str
    """Its name."""

    sugar: int
    """Sugar that has grown there."""

    spice: int
    """Spice that has grown there."""


def observation_text(stocks: Sequence[Stock], here: SeenCell, free: Sequence[SeenCell], n_traders: int) -> str:
    """Write what a person sees: its stocks and how long they last, its cell, and the free cells in sight.

    Args:
        stocks: Its sugar and its spice.
        here: Its cell.
        free: The free cells in sight.
        n_traders: Number of other people in sight.
    """
    sugar, spice = stocks
    scarce = min(stocks, key=lambda stock: stock.amount / stock.need)
    lines = [
        f"You have {sugar.amount} sugar and {spice.amount} spice, and use up {sugar.need} sugar and {spice.need} spice "
        f"in each step. Without finding more, you would run out of {_when(sugar)}, and of {_when(spice)}"
        f"{'' if sugar.n_steps == spice.n_steps else f': it is {scarce.name} that you lack first'}.",
        f"Your cell, {here.name}, holds {here.sugar} sugar and {here.spice} spice. {_traders_text(n_traders)}",
    ]
    if not free:
        return "\n".join([*lines, "No free cell is in sight."])
    grown = [f"- {place.name}: {place.sugar} sugar, {place.spice} spice" for place in free]
    return "\n".join([*lines, "Free cells in sight:", *grown])


def _when(stock: Stock) -> str:
    return f"{stock.name} in {'this step' if stock.n_steps <= 1 else counted(stock.n_steps, 'step')}"


def _traders_text(n_traders: int) -> str:
    if not n_traders:
        return "Nobody else is in sight."
    return "1 other person is in sight." if n_traders == 1 else f"{n_traders} other people are in sight."


def place_of(name: str, cell: Any) -> SeenCell:
    """Return a cell with what has grown there.

    Args:
        name: Its name.
        cell: The cell.
    """
    return SeenCell(name, int(cell.sugar), int(cell.spice))


def places_of(cells: Mapping[str, Any]) -> list[SeenCell]:
    """Return cells with what has grown there.

    Args:
        cells: Name of a cell → the cell.
    """
    return [place_of(name, cell) for name, cell in cells.items()]


def move_text(place: str) -> str:
    """Report where a person went."""
    return f"You went to {place}."


def taken_text(place: str) -> str:
    """Say why a person cannot go somewhere."""
    return f"cell {place[:20]!r} is not free any more."
