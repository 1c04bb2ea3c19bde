"""The bidding on one lot: rounds, minimum raise, ties and the hammer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from mesa_llm.world import Draws
from mesa_llm.worlds.auction.lots import Lot

TieRule = Literal["uniform", "scan"]
"""How equal highest bids of one round are decided.

`uniform`: each of them wins with the same probability. `scan` (the original's): after every bid taken down, all bids
of the round are gone through again, and each that equals the highest one tosses a coin with the leader of the moment,
itself included; this favours late seats.
"""

Fault = Literal["over_budget", "below_start", "small_raise", "unclear"]
"""Why a bid was not valid; `unclear` is a reply that was no bid at all."""

MAX_DISCOUNTS = 3
"""Rounds without a bid after which the starting price is no longer lowered."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer of a bidder who was asked for a bid."""

    amount: int | None
    """Dollars bid; None: it withdrew, or its reply was unclear."""

    fault: Fault | None = None
    """Why it was not valid; None if it was."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand after a bid was taken down."""

    top: int
    """Highest bid on this lot so far, in dollars; -1 if there is none."""

    leader: int | None
    """Mesa `unique_id` of who made it."""


@dataclass(frozen=True, slots=True)
class BidRecord:
    """What one bidder did in one round."""

    bidder: int
    """Mesa `unique_id` of the bidder."""

    amount: int | None
    """The valid bid, in dollars; None: it withdrew."""

    attempts: tuple[Attempt, ...]
    """All it answered, the last one valid, unless it ran out of tries or did not answer."""

    standing: Standing
    """How things stood once this was taken down."""


NOTHING_YET = Standing(-1, None)


@dataclass(slots=True)
class Bidding:
    """One lot while it is being auctioned."""

    lot: Lot
    """The lot."""

    number: int
    """Its place in the auction, from 0."""

    start: int
    """Starting price now: the lot's own, until it is lowered for want of bids."""

    standing: Standing = NOTHING_YET
    """How things stand."""

    before: int = -1
    """Highest bid at the end of the round before, to which all bids of this round refer; -1 if there is none."""

    rounds: list[tuple[BidRecord, ...]] = field(default_factory=list[tuple[BidRecord, ...]])
    """Rounds that are over."""


def take_down(bids: Sequence[tuple[int, int | None]], standing: Standing, tie: TieRule, draws: Draws) -> list[Standing]:
    """Take the bids of one round down in the order of seats.

    Args:
        bids: Bidder and valid bid (None: it withdrew), by seat.
        standing: How things stood before the round.
        tie: How equal highest bids are decided.
        draws: Coins.

    Returns:
        How things stand after each of them.
    """
    record = _scan if tie == "scan" else _pass_on
    standings: list[Standing] = []
    for count in range(1, len(bids) + 1):
        standing = record(bids[:count], standing, draws)
        standings.append(standing)
    return standings


def _scan(bids: Sequence[tuple[int, int | None]], standing: Standing, draws: Draws) -> Standing:
    """Go through all bids so far; an equal one tosses a coin with the leader of the moment."""
    top, leader = standing.top, standing.leader
    for bidder, amount in bids:
        if amount is None or amount <= 0 or amount < top:
            continue
        leader = bidder if amount > top else draws.choice((leader, bidder))
        top = amount
    return Standing(top, leader)


def _pass_on(bids: Sequence[tuple[int, int | None]], standing: Standing, draws: Draws) -> Standing:
    """Look at the last bid only: the k-th of equal ones takes the lead with probability 1/k."""
    bidder, amount = bids[-1]
    if amount is None or amount < standing.top:
        return standing
    if amount > standing.top:
        return Standing(amount, bidder)
    equal = sum(other == amount for _, other in bids)
    return Standing(amount, bidder) if draws.randint(1, equal) == 1 else standing


def is_hammer(bidding: Bidding, n_bids: int) -> bool:
    """Say whether a lot with a leader is sold after a round.

    Args:
        bidding: The lot, with the round's standing, and `before` from the round before.
        n_bids: Valid bids of the round. A single opening bid wins at once; later, a round without any ends it.
    """
    return n_bids == 1 if bidding.before < 0 else n_bids == 0
