"""Bidders that follow a rule: the rule twins and baselines of the auction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from mesa_llm.world import Draws
from mesa_llm.worlds.auction.views import AuctionFacts, LotView
from mesa_llm.worlds.auction.world import Auction

KNOWN_OVERESTIMATE = 1.1
"""By how much estimates exceed true values by default; a bidder that knows it can correct for it."""

ROUNDING = 1e-6
"""Dollars by which a bound may fall short of a bid through floating-point division."""


class BiddingPolicy(Protocol):
    """Decides on a bid from what a bidder can know."""

    def bid(self, seen: AuctionFacts, draws: Draws) -> int | None:
        """Give a bid in dollars, or None to withdraw."""
        ...


def next_bid(seen: AuctionFacts) -> float:
    """Give the starting price, or the highest bid plus the least raise before it is rounded down."""
    return float(seen.lot.start) if seen.top <= 0 else seen.top + seen.raise_exact


@dataclass(frozen=True, slots=True)
class RuleBidder:
    """Raises by the least amount, a few times on every lot, whatever it is worth.

    Source:
        The rule bidder of AucArena.
    """

    max_bids: int = 4
    """Bids on one lot, the opening one included."""

    def bid(self, seen: AuctionFacts, draws: Draws) -> int | None:
        """Bid while there is money and bids were few."""
        wanted = next_bid(seen)
        return int(wanted) if wanted <= seen.budget and seen.bids_made < self.max_bids else None


@dataclass(frozen=True, slots=True)
class ValueBidder:
    """Raises by the least amount up to what a lot is worth: the classical strategy of an ascending auction.

    With `share=0.8` it shades its bids; with `overestimate=1` it believes its estimates and meets the winner's
    curse.
    """

    share: float = 1.0
    """Part of the value it goes up to."""

    overestimate: float = KNOWN_OVERESTIMATE
    """What it divides its estimate by to get the value."""

    def bid(self, seen: AuctionFacts, draws: Draws) -> int | None:
        """Bid while the value allows it."""
        return _bid_up_to(seen, self.share * seen.lot.estimate / self.overestimate)


@dataclass(frozen=True, slots=True)
class ZeroIntelligenceBidder:
    """Withdraws at random, else bids anything between the least bid and its estimate."""

    withdraw_probability: float = 0.3
    """Probability of withdrawing, each time it is asked."""

    def bid(self, seen: AuctionFacts, draws: Draws) -> int | None:
        """Draw a bid."""
        least, most = int(next_bid(seen)), min(seen.budget, seen.lot.estimate)
        if draws.random() < self.withdraw_probability or least > most:
            return None
        return draws.randint(least, most)


@dataclass(frozen=True, slots=True)
class PacingBidder:
    """Spreads its money over the lots to come, in proportion to their starting prices."""

    boldness: float = 1.5
    """How many times the proportional part it risks on one lot."""

    def bid(self, seen: AuctionFacts, draws: Draws) -> int | None:
        """Bid up to its part of the money left, at least the starting price, at most the estimate."""
        start = seen.lot.start
        total = start + sum(lot.start for lot in seen.remaining)
        part = self.boldness * seen.budget * start / total
        return _bid_up_to(seen, min(seen.lot.estimate, max(start, part)))


@dataclass(frozen=True, slots=True)
class SelectiveBidder:
    """Follows the rule bidder, but only on the lots that it would choose for the money it has left.

    It chooses the cheapest first if it wants many lots, the dearest first if it wants profit.

    Source:
        A helper of the authors' program that it never calls.
    """

    max_bids: int = 4
    """Bids on one lot, the opening one included."""

    def bid(self, seen: AuctionFacts, draws: Draws) -> int | None:
        """Bid if this lot is among those it would choose now."""
        chosen = chosen_lots(seen.budget, (seen.lot, *seen.remaining), dear_first=seen.desire == "maximize_profit")
        return RuleBidder(self.max_bids).bid(seen, draws) if seen.lot.name in chosen else None


def chosen_lots(budget: int, lots: tuple[LotView, ...], *, dear_first: bool) -> tuple[str, ...]:
    """Choose lots greedily by estimate until their starting prices use the budget up."""
    chosen: list[str] = []
    for lot in sorted(lots, key=lambda lot: lot.estimate, reverse=dear_first):
        if lot.start <= budget:
            chosen.append(lot.name)
            budget -= lot.start
    return tuple(chosen)


def play(auction: Auction, policies: Mapping[int, BiddingPolicy], draws: Draws) -> Auction:
    """Run an auction to its end with rule-following bidders, who make no plans and tell no beliefs.

    Args:
        auction: The auction, at any stage.
        policies: Who bids how, by `unique_id`.
        draws: For policies that draw.
    """
    while not auction.is_over:
        if auction.stage == "bid":
            wanted = [(actor, policies[actor].bid(auction.facts(actor), draws)) for actor in auction.asked]
            for actor, amount in wanted:
                if amount is None:
                    auction.withdraw(actor)
                else:
                    auction.bid(actor, amount)
        auction.end_step()
    return auction


def _bid_up_to(seen: AuctionFacts, bound: float) -> int | None:
    wanted = next_bid(seen)
    return int(wanted) if wanted <= min(seen.budget, bound + ROUNDING) else None
