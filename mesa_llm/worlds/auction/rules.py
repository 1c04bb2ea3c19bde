"""How an auction is run, what it is opened with, and how its lots went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from mesa_llm.errors import ConfigError
from mesa_llm.text import MAX_NAME, one_line
from mesa_llm.worlds.amounts import is_number
from mesa_llm.worlds.auction.bidders import Bidder
from mesa_llm.worlds.auction.bidding import Bidding, TieRule
from mesa_llm.worlds.auction.lots import Lot


@dataclass(frozen=True, slots=True)
class AuctionRules:
    """How the auction is run. The defaults are the corrected rules; `ORIGINAL_RULES` are the authors'."""

    raise_share: float = 0.1
    """Least raise over the highest bid of the round before, as a share of the starting price, rounded down."""

    tie: TieRule = "uniform"
    """How equal highest bids are decided."""

    max_retries: int | None = 3
    """How often a bidder is asked again in a round after a bid that was not valid, before it is out for the lot.

    None: for ever, as in the original, where a stubborn bidder never lets the auction go on.
    """

    discount: bool = False
    """Whether the starting price is halved after each of the first three rounds without a bid."""

    max_belief_revisions: int = 4
    """How often a wrong belief is sent back; the answer after that is not checked."""

    max_plan_revisions: int = 2
    """How often a plan that cannot be used is sent back."""

    match_part: bool = False
    """Take a listed name that contains the own name for the own, as the original does."""

    is_lenient: bool = False
    """Take any object as a plan and any last statement as a belief, and let prices and raises fall to zero."""


ORIGINAL_RULES = AuctionRules(tie="scan", max_retries=None, match_part=True, is_lenient=True)
"""The rules of the authors' program."""


@dataclass(frozen=True, slots=True)
class Sale:
    """How a lot went."""

    lot: Lot
    """The lot."""

    winner: int | None
    """Mesa `unique_id` of who won it; None: nobody bid."""

    price: int | None
    """Dollars paid; None: nobody bid."""

    bidding: Bidding
    """All that was bid."""


def check_opening(lots: Sequence[Lot], bidders: Sequence[Bidder], rules: AuctionRules) -> None:
    """Check what an auction is opened with.

    Raises:
        ConfigError: If there are no lots or bidders, two have one name, a name is not one short line, or an amount is
            out of range.
    """
    _check_distinct("lot", [lot.name for lot in lots])
    _check_distinct("bidder", [bidder.name for bidder in bidders])
    _check_names([*(lot.name for lot in lots), *(bidder.name for bidder in bidders)])
    _check_distinct("bidder id", [bidder.unique_id for bidder in bidders])
    if not rules.is_lenient:
        _check_amounts(lots, bidders, rules)


def _check_distinct(what: str, values: Sequence[object]) -> None:
    if not values:
        raise ConfigError(f"an auction needs at least one {what}")
    double = next((value for value, count in Counter(values).items() if count > 1), None)
    if double is not None:
        raise ConfigError(f"{what} {double!r} appears twice in the auction; give each its own")


def _check_names(names: Sequence[str]) -> None:
    """Refuse names that would look like something else where all bidders read them."""
    for name in names:
        if not name or name != one_line(name, MAX_NAME):
            raise ConfigError(
                f"a lot or bidder needs a name of one line, of at most {MAX_NAME} characters, with nothing unseen in "
                f"it; got {name[:100]!r}"
            )


def _check_amounts(lots: Sequence[Lot], bidders: Sequence[Bidder], rules: AuctionRules) -> None:
    for lot in lots:
        if not (_is_whole(lot.start) and lot.start >= 1):
            raise ConfigError(f"the starting price of {lot.name} must be whole dollars, at least 1, got {lot.start!r}")
        if not _is_whole(lot.true_value):
            raise ConfigError(f"the true value of {lot.name} must be whole dollars, got {lot.true_value!r}")
    for bidder in bidders:
        if not (_is_whole(bidder.budget) and bidder.budget >= 0 and -100 < bidder.overestimate_percent < inf):
            raise ConfigError(
                f"budget and estimates of {bidder.name} must not be negative, and the budget is in whole dollars; "
                f"got {bidder}"
            )
    if not 0 <= rules.raise_share < inf:
        raise ConfigError(f"the minimum raise must be a share from 0 on, got {rules.raise_share!r}")


def _is_whole(dollars: float) -> bool:
    """Tell whether an amount is a whole number, as 2000.0 is, too; NaN, infinity, and true and false are none."""
    return is_number(dollars) and dollars == int(dollars)
