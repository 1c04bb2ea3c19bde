"""Lots: each has a starting price and a true value hidden until it is sold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal

from mesa_llm.errors import ConfigError
from mesa_llm.tables import Row, read_table, whole_rows
from mesa_llm.world import RNG

LotOrder = Literal["listed", "random", "ascending", "descending"]
"""Order in which lots are auctioned. The two orders by price keep the list's order for ties."""


@dataclass(frozen=True, slots=True)
class Lot:
    """An item to be auctioned."""

    name: str
    """Its name, unique in an auction."""

    start: int
    """Starting price, in dollars."""

    true_value: int
    """Its value in dollars, revealed when it is sold."""

    description: str = ""
    """Its description; never shown in the original."""


PAPER_LOTS = tuple(
    Lot(name, start, 2 * start)
    for name, start in (
        ("Widget A", 1000),
        ("Gadget B", 3000),
        ("Thingamajig C", 4000),
        ("Doodad D", 2000),
        ("Equipment E", 5000),
        ("Gizmo F", 3000),
        ("Implement G", 2000),
        ("Apparatus H", 4000),
        ("Contraption I", 1000),
        ("Mechanism J", 5000),
    )
)
"""The ten lots of the Standard Competition: two at each of five prices (Chen et al. 2023, Table 1)."""

_REPOSITORY_NAMES = (
    "Widget Gadget Thingamajig Doodad Equipment Gizmo Implement Apparatus Contraption Mechanism Tool Device Instrument "
    "Utensil Appliance Machine Unit Element Component Piece Object Item Product Accessory Module Entity"
)

REPOSITORY_LOTS = tuple(
    Lot(f"{word} {letter}", start, 2 * start)
    for word, letter in zip(_REPOSITORY_NAMES.split(), ascii_uppercase, strict=True)
    for start in (5000 if letter in "EJPR" else 1000,)
)
"""The 26 lots of the authors' repository, four of them expensive (jiangjiechen/auction-arena, Apache-2.0)."""

NICHE_LOTS = tuple(lot for lot in REPOSITORY_LOTS if lot.name[-1] < "U" or lot.start == 5000)
"""The list of the niche experiment: the repository's four expensive lots and its first sixteen cheap ones."""


def read_lots(path: Path | str) -> tuple[Lot, ...]:
    """Read lots from a table or JSON lines: `name`, `price`, and `true_value` if not twice the price.

    Raises:
        ConfigError: If the file cannot be read, or a row is not a lot. The message names it.
    """
    placed = read_table(path, {"name", "price", "true_value"})
    rows = whole_rows(path, placed)
    return tuple(_lot(row, f"line {line} of {path}") for (line, _), row in zip(placed, rows, strict=True))


def _lot(row: Row, place: str) -> Lot:
    if not {"name", "price"} <= row.keys():
        raise ConfigError(f"{place} needs a name and a price, and has only {sorted(row)}")
    price = _dollars(row["price"], f"{place}: price")
    value = _dollars(row.get("true_value", 2 * price), f"{place}: true_value")
    return Lot(str(row["name"]), price, value, str(row.get("desc", "")))


def _dollars(value: Any, place: str) -> int:
    try:
        dollars = int(value if isinstance(value, int) else float(value))
    except (TypeError, ValueError, OverflowError):
        dollars = None
    if dollars is None or isinstance(value, bool) or dollars != float(value):
        raise ConfigError(f"{place} must be in whole dollars, got {value!r:.40}")
    return dollars


def ordered_lots(lots: Sequence[Lot], order: LotOrder, rng: RNG) -> tuple[Lot, ...]:
    """Return lots in the order in which they are auctioned.

    Args:
        lots: The lots.
        order: `listed` for the given order, `random` for one shuffle, or by starting price.
        rng: Random generator; used only for `random`.

    Raises:
        ConfigError: If the order is unknown.
    """
    if order == "listed":
        return tuple(lots)
    if order == "random":
        shuffled = list(lots)
        rng.shuffle(shuffled)
        return tuple(shuffled)
    if order not in ("ascending", "descending"):
        raise ConfigError(f"there is no order {order!r}; choose listed, random, ascending or descending")
    sign = 1 if order == "ascending" else -1
    return tuple(sorted(lots, key=lambda lot: sign * lot.start))
