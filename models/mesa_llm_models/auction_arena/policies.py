"""Bidding policies of the rule twins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mesa_llm.errors import ConfigError
from mesa_llm.world import RNG
from mesa_llm_models.auction_arena.world import Auction, AuctionFacts, LotView

KNOWN_OVERESTIMATE = 1.1
"""Default factor by which estimates exceed true values; a bidder that knows it can correct for it."""

ROUNDING = 1e-6
"""Tolerance in dollars for floating-point division."""


class BiddingPolicy(Protocol):
    """Chooses a bid from a bidder's facts."""

    def bid(self, facts: AuctionFacts, rng: RNG) -> int | None:
        """Return a bid in dollars, or None to withdraw."""
        ...


def next_bid(facts: AuctionFacts) -> float:
    """Return the starting price, or the highest bid plus the unrounded minimum raise, in dollars."""
    return float(facts.lot.start) if facts.top <= 0 else facts.top + facts.raise_exact


@dataclass(frozen=True, slots=True)
class RuleBidder:
    """Raises by the minimum, a few times on every lot, regardless of value.

    Source:
        The rule bidder of AucArena.
    """

    max_bids: int = 4
    """Maximum number of bids on one lot, including the opening one."""

    def bid(self, facts: AuctionFacts, rng: RNG) -> int | None:
        """Bid while there is money and its bids are few."""
        amount = next_bid(facts)
        return int(amount) if amount <= facts.budget and facts.bids_made < self.max_bids else None


@dataclass(frozen=True, slots=True)
class ValueBidder:
    """Raises by the minimum up to a lot's value: the classical strategy in an ascending auction.

    With `share=0.8` it shades its bids; with `overestimate=1` it trusts its estimates and suffers the winner's curse.
    """

    share: float = 1.0
    """Share of the value up to which it bids."""

    overestimate: float = KNOWN_OVERESTIMATE
    """Factor by which its estimate exceeds the value."""

    def bid(self, facts: AuctionFacts, rng: RNG) -> int | None:
        """Bid while the value allows it."""
        return _bid_up_to(facts, self.share * facts.lot.estimate / self.overestimate)


@dataclass(frozen=True, slots=True)
class ZeroIntelligenceBidder:
    """Withdraws at random; otherwise bids anything between the minimum bid and its estimate."""

    withdraw_probability: float = 0.3
    """Probability of withdrawing at each request."""

    def bid(self, facts: AuctionFacts, rng: RNG) -> int | None:
        """Draw a bid."""
        low, high = int(next_bid(facts)), min(facts.budget, facts.lot.estimate)
        if rng.random() < self.withdraw_probability or low > high:
            return None
        return rng.randint(low, high)


@dataclass(frozen=True, slots=True)
class PacingBidder:
    """Spreads its money over the remaining lots, in proportion to their starting prices."""

    boldness: float = 1.5
    """Multiple of the proportional share it risks on one lot."""

    def bid(self, facts: AuctionFacts, rng: RNG) -> int | None:
        """Bid up to its share of the money left, at least the starting price, at most the estimate."""
        start = facts.lot.start
        total = start + sum(lot.start for lot in facts.remaining)
        share = self.boldness * facts.budget * start / total
        return _bid_up_to(facts, min(facts.lot.estimate, max(start, share)))


@dataclass(frozen=True, slots=True)
class SelectiveBidder:
    """Follows the rule bidder, but only on the lots it would choose for its remaining money.

    It chooses the cheapest first if it wants many lots, the most expensive first if it wants profit.

    Source:
        A helper of the authors' program that it never calls.
    """

    max_bids: int = 4
    """Maximum number of bids on one lot, including the opening one."""

    def bid(self, facts: AuctionFacts, rng: RNG) -> int | None:
        """Bid if this lot is among those it would choose now."""
        lots = chosen_lots(facts.budget, (facts.lot, *facts.remaining), dear_first=facts.desire == "maximize_profit")
        return RuleBidder(self.max_bids).bid(facts, rng) if facts.lot.name in lots else None


def chosen_lots(budget: int, lots: tuple[LotView, ...], *, dear_first: bool) -> tuple[str, ...]:
    """Choose lots greedily by estimate until their starting prices use up the budget."""
    lot_names: list[str] = []
    for lot in sorted(lots, key=lambda lot: lot.estimate, reverse=dear_first):
        if lot.start <= budget:
            lot_names.append(lot.name)
            budget -= lot.start
    return tuple(lot_names)


def play(auction: Auction, policies: Mapping[int, BiddingPolicy], rng: RNG) -> Auction:
    """Run an auction to its end with rule-based bidders, without plans and beliefs.

    Args:
        auction: The auction, at any stage.
        policies: Policy of each bidder, by `unique_id`.
        rng: Random generator.
    """
    while not auction.is_over:
        if auction.stage == "bid":
            bids = [(agent_id, policies[agent_id].bid(auction.facts(agent_id), rng)) for agent_id in auction.due]
            for agent_id, amount in bids:
                if amount is None:
                    auction.withdraw(agent_id)
                else:
                    auction.bid(agent_id, amount)
        auction.end_step()
    return auction


def _bid_up_to(facts: AuctionFacts, maximum: float) -> int | None:
    amount = next_bid(facts)
    return int(amount) if amount <= min(facts.budget, maximum + ROUNDING) else None


TWINS = {
    "rule": "raises by the minimum, at most four times on a lot, whatever it is worth",
    "value": "raises up to the value: the estimate less the known overestimate",
    "shade": "raises up to 80 % of the value",
    "naive": "raises up to its estimate, and meets the winner's curse",
    "zero": "bids anything between the minimum bid and its estimate, or withdraws at random",
    "pacing": "spreads its money over the lots to come",
    "selective": "raises like `rule`, but only on the lots it would choose for the money it has left",
}
"""Name of a rule twin → its policy."""


def twin(name: str, overestimate_percent: float = 10.0) -> BiddingPolicy:
    """Return the bidding policy of a rule twin.

    Args:
        name: One of `TWINS`.
        overestimate_percent: Excess of its estimates over the true values; `value` and `shade` correct for it.

    Raises:
        ConfigError: If there is no such twin.
    """
    factor = 1 + overestimate_percent / 100
    policies: dict[str, BiddingPolicy] = {
        "rule": RuleBidder(),
        "value": ValueBidder(overestimate=factor),
        "shade": ValueBidder(share=0.8, overestimate=factor),
        "naive": ValueBidder(overestimate=1.0),
        "zero": ZeroIntelligenceBidder(),
        "pacing": PacingBidder(),
        "selective": SelectiveBidder(),
    }
    if name not in policies:
        raise ConfigError(f"there is no rule twin {name!r} for a bidder; choose one of: {', '.join(policies)}")
    return policies[name]


def plan(facts: AuctionFacts) -> dict[str, int]:
    """Rate the remaining lots: 3 for those it would choose within its budget, 2 if affordable at the start, else 1."""
    lots = chosen_lots(facts.budget, facts.remaining, dear_first=facts.desire == "maximize_profit")
    return {lot.name: 3 if lot.name in lots else 2 if lot.start <= facts.budget else 1 for lot in facts.remaining}


def belief(facts: AuctionFacts) -> dict[str, Any]:
    """Return true beliefs about the watched bidders, since sales are public."""
    profits = {facts.name: facts.profit, **{rival.name: rival.profit for rival in facts.rivals}}
    wins: dict[str, dict[str, int]] = {name: {} for name in profits}
    for sale in facts.sales:
        if sale.winner in wins and sale.price is not None:
            wins[sale.winner][sale.lot] = sale.price
    return {"remaining_budget": facts.budget, "total_profits": profits, "winning_bids": wins}
