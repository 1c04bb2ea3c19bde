"""The bidding on one lot: rounds, minimum raise, ties and the hammer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
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

MOST_HEARD = 30
"""Bids of one round that bidders are told of."""

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


@dataclass(frozen=True, slots=True)
class RoundView:
    """What everyone heard of a round."""

    bids: tuple[tuple[str, int | None], ...]
    """Who bid what, by seat; None: withdrew. Of many only the highest bids."""

    more: int
    """Bids and withdrawals beyond those, none of them higher."""


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

    heard: list[RoundView] = field(default_factory=list[RoundView])
    """What everyone heard of them."""


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
    equal: Counter[int | None] = Counter()
    standings: list[Standing] = []
    for count, bid in enumerate(bids, start=1):
        if tie == "scan":
            standing = _scan(bids[:count], standing, draws)
        else:
            equal[bid[1]] += 1
            standing = _pass_on(bid, equal[bid[1]], standing, draws)
        standings.append(standing)
    return standings


def heard(records: Sequence[BidRecord], names: Mapping[int, str]) -> RoundView:
    """Say what everyone hears of a round: the highest bids, `MOST_HEARD` at most.

    Args:
        records: All bids and withdrawals of the round, by seat.
        names: Name of each bidder.
    """
    ranked = nsmallest(MOST_HEARD, enumerate(records), key=lambda one: -(one[1].amount or 0))
    bids = [(names[record.bidder], record.amount) for _, record in sorted(ranked, key=lambda one: one[0])]
    return RoundView(tuple(bids), len(records) - len(bids))


def _scan(bids: Sequence[tuple[int, int | None]], standing: Standing, draws: Draws) -> Standing:
    """Go through all bids so far; an equal one tosses a coin with the leader of the moment."""
    top, leader = standing.top, standing.leader
    for bidder, amount in bids:
        if amount is None or amount <= 0 or amount < top:
            continue
        leader = bidder if amount > top else draws.choice((leader, bidder))
        top = amount
    return Standing(top, leader)


def _pass_on(bid: tuple[int, int | None], equal: int, standing: Standing, draws: Draws) -> Standing:
    """Look at the last bid only: it is the k-th of equal ones, and takes the lead with probability 1/k."""
    bidder, amount = bid
    if amount is None or amount < standing.top:
        return standing
    if amount > standing.top:
        return Standing(amount, bidder)
    return Standing(amount, bidder) if draws.randint(1, equal) == 1 else standing


def is_hammer(bidding: Bidding, n_bids: int) -> bool:
    """Say whether a lot with a leader is sold after a round.

    Args:
        bidding: The lot, with the round's standing, and `before` from the round before.
        n_bids: Valid bids of the round. A single opening bid wins at once; later, a round without any ends it.
    """
    return n_bids == 1 if bidding.before < 0 else n_bids == 0
