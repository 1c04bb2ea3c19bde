"""Traders whose rule twins draw from generators of their own, so that runs with and without a treatment are pairs."""

from __future__ import annotations

import random

from mesa_llm import Observation, ToolCall
from mesa_llm.worlds.exchange import Side, Stock, TraderFacts
from models.stock_agent.agents import Trader, take

PART = 0.1
"""Part of its cash or shares that a rule twin trades upon what it has heard."""


class PairedTrader(Trader):
    """A trader who, as a rule twin, draws from a generator of its own in each decision.

    What others do, how many they are, or what it has heard shifts none of its draws.
    """

    _rng: random.Random | None = None

    @property
    def random(self) -> random.Random:
        """Source of the draws of the present decision."""
        return self.model.random if self._rng is None else self._rng

    def rule(self, seen: Observation) -> ToolCall | None:
        """Decide by `act_by_rule`, with new draws."""
        self._rng = random.Random(f"{self.model.run_seed} {self.model.now} {self.unique_id}")
        return self.act_by_rule(seen)

    def act_by_rule(self, seen: Observation) -> ToolCall | None:
        """Trade by the strategy."""
        return super().rule(seen)


def order_near(facts: TraderFacts, side: Side, stock: Stock, margin: float) -> ToolCall | None:
    """Return an order that may be met at somewhat worse than the latest price; None without means.

    Args:
        facts: What the trader sees.
        side: Whether it buys or sells.
        stock: The stock.
        margin: By how much worse, as a part of the price.
    """
    limit = facts.prices[stock] * (1 + margin if side == "buy" else 1 - margin)
    return take(facts, side, stock, limit, PART)
