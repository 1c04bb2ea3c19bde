"""The rule twins of a bidder: what it does when it thinks with no language model."""

from __future__ import annotations

from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.worlds.auction import AuctionFacts
from mesa_llm.worlds.auction.policies import (
    BiddingPolicy,
    PacingBidder,
    RuleBidder,
    SelectiveBidder,
    ValueBidder,
    ZeroIntelligenceBidder,
    chosen_lots,
)

TWINS = {
    "rule": "raises by the least amount, at most four times on a lot, whatever it is worth",
    "value": "raises up to the value: the estimate less the known overestimate",
    "shade": "raises up to 80 % of the value",
    "naive": "raises up to its estimate, and meets the winner's curse",
    "zero": "bids anything between the least bid and its estimate, or withdraws at random",
    "pacing": "spreads its money over the lots to come",
    "selective": "raises like `rule`, but only on the lots it would choose for the money it has left",
}
"""Name of a rule twin → how it bids."""


def twin(name: str, overestimate_percent: float = 10.0) -> BiddingPolicy:
    """Make the policy that a rule twin bids by.

    Args:
        name: One of `TWINS`.
        overestimate_percent: By how much its estimates exceed the true values; `value` and `shade` allow for it.

    Raises:
        ConfigError: If there is no such twin.
    """
    known = 1 + overestimate_percent / 100
    policies: dict[str, BiddingPolicy] = {
        "rule": RuleBidder(),
        "value": ValueBidder(overestimate=known),
        "shade": ValueBidder(share=0.8, overestimate=known),
        "naive": ValueBidder(overestimate=1.0),
        "zero": ZeroIntelligenceBidder(),
        "pacing": PacingBidder(),
        "selective": SelectiveBidder(),
    }
    if name not in policies:
        raise ConfigError(f"there is no rule twin {name!r} for a bidder; choose of: {', '.join(policies)}")
    return policies[name]


def plan(facts: AuctionFacts) -> dict[str, int]:
    """Rate the lots to come: 3 for those it would choose for its money, 2 if affordable at the start, else 1."""
    chosen = chosen_lots(facts.budget, facts.remaining, dear_first=facts.desire == "maximize_profit")
    return {lot.name: 3 if lot.name in chosen else 2 if lot.start <= facts.budget else 1 for lot in facts.remaining}


def belief(facts: AuctionFacts) -> dict[str, Any]:
    """Say what is true of those it keeps an eye on: the sales are known to everyone."""
    profits = {facts.name: facts.profit, **{rival.name: rival.profit for rival in facts.rivals}}
    wins: dict[str, dict[str, int]] = {name: {} for name in profits}
    for sale in facts.sales:
        if sale.winner in wins and sale.price is not None:
            wins[sale.winner][sale.lot] = sale.price
    return {"remaining_budget": facts.budget, "total_profits": profits, "winning_bids": wins}
