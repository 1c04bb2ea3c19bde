"""What an auction is opened with: its lots and its rules, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from mesa_llm.errors import ConfigError
from mesa_llm.worlds.auction import (
    NICHE_LOTS,
    ORIGINAL_RULES,
    PAPER_LOTS,
    REPOSITORY_LOTS,
    AuctionRules,
    Lot,
    TieRule,
    read_lots,
)

RulesName = Literal["corrected", "original"]
"""How an auction is run, as a parameter of a model names it: as the package corrects it, or as its authors wrote it."""

LOTS: dict[str, Sequence[Lot]] = {"paper": PAPER_LOTS, "repository": REPOSITORY_LOTS, "niche": NICHE_LOTS}
"""Lists of lots by name."""

MOST_RAISE = 10.0
"""Largest minimum raise, as a share of the starting price."""


def take_lots(name: str, n_lots: int | None) -> Sequence[Lot]:
    """Give the lots of a list, or of a file.

    Args:
        name: One of `LOTS`, or a file with a JSON object a line.
        n_lots: Take only so many from the top; None: all.

    Raises:
        ConfigError: If there is no such list or file, or it holds fewer lots.
    """
    listed = LOTS[name] if name in LOTS else _read(name)
    most = len(listed) if n_lots is None else n_lots
    if isinstance(most, bool) or not 1 <= most <= len(listed):
        raise ConfigError(f"n_lots is a number of lots from 1 to {len(listed)}, got {n_lots!r}")
    return listed[:most]


def make_rules(
    rules: RulesName, *, raise_share: float, tie: TieRule, max_retries: int | None, discount: bool
) -> AuctionRules:
    """Make the rules of an auction.

    Args:
        rules: `original`: those of the authors' program, whatever `tie` and `max_retries` say.
        raise_share: Least raise, as a share of the starting price, from 0 to `MOST_RAISE`.
        tie: How equal bids are decided.
        max_retries: How often a bidder is asked again after an invalid bid; None: for ever.
        discount: Halve the starting price of lots that nobody wants.

    Raises:
        ConfigError: If one of them cannot be.
    """
    if rules not in get_args(RulesName):
        raise ConfigError(f"rules must be one of {get_args(RulesName)}, got {rules!r}")
    if isinstance(raise_share, bool) or not 0 <= raise_share <= MOST_RAISE:
        raise ConfigError(f"raise_share is a share of the starting price from 0 to {MOST_RAISE}, got {raise_share!r}")
    if tie not in ("uniform", "scan"):
        raise ConfigError(f"tie is uniform or scan, got {tie!r}")
    if rules == "original":
        return replace(ORIGINAL_RULES, raise_share=float(raise_share), discount=bool(discount))
    retries = None if max_retries is None else whole_from("max_retries", max_retries, 0)
    return AuctionRules(raise_share=float(raise_share), tie=tie, max_retries=retries, discount=bool(discount))


def whole_from(name: str, value: int, least: int) -> int:
    """Give a whole number that is large enough.

    Args:
        name: What the number is called.
        value: The number.
        least: Smallest one that can be.

    Raises:
        ConfigError: If it is no whole number, or too small.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is a whole number from {least} on, got {value!r}")
    return value


def _read(name: str) -> Sequence[Lot]:
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"lots is one of {', '.join(LOTS)}, or a file with a JSON object a line; got {name!r}")
    return read_lots(path)
