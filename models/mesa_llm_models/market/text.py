"""What traders read besides the markets, and what rule twins write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mesa_llm_models.market.world import MarketView

FAIR = 0.005
"""Difference of price and worth, in dollars, below which they are about the same."""

REMARKS = (
    "I would put {side} at {percent} percent.",
    "From what I know, {percent} percent for {side} is nearer the mark.",
    "Who is betting against {side} here? My number is {percent} percent.",
)
"""Remarks of the rule twin on a question."""


BETTING = (
    "You bet little and often, and sleep well.",
    "When you are sure of something you put real money on it.",
    "You hate to lose more than you like to win.",
    "You distrust a price that everybody agrees on.",
    "You like to be early: what is cheap today may be dear tomorrow.",
    "You sell when a price has come to where you think it belongs.",
)
"""How a trader bets, if traders are drawn."""


def research_text(views: Sequence[MarketView], hints: Mapping[str, float]) -> str:
    """Write a trader's private research, and what a share of each answer is worth by it.

    Args:
        views: The open markets that it knows something about.
        hints: Market → probability of yes.
    """
    return "\n".join(["Your own research says:", *(_worth_line(view, hints[view.market_id]) for view in views)])


def _worth_line(view: MarketView, probability: float) -> str:
    """Say what a share pays on average if the research is right, and whether it costs more or less."""
    yes = round(probability * 100)
    worths = (("YES", yes, view.price_yes), ("NO", 100 - yes, view.price_no))
    parts = [
        f"a {name} share is worth ${worth / 100:.2f} to you and {_cost_text(price, worth / 100)}"
        for name, worth, price in worths
    ]
    return f"[{view.market_id}] {yes}% for yes: {'; '.join(parts)}."


def _cost_text(price: float, worth: float) -> str:
    """Say what a share costs, and how that compares with what it is worth."""
    if abs(price - worth) < FAIR:
        return f"costs ${price:.3f}, about as much"
    return f"costs ${price:.3f}, {'less' if price < worth else 'more'} than that"
