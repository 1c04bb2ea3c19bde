"""Traders whose rule twins have their own random generators, so runs with and without a treatment can be paired."""

from __future__ import annotations

import random

from mesa_llm import Observation, ToolCall
from mesa_llm_models.stock_agent.agents import StockTrader, take
from mesa_llm_models.stock_agent.world import Side, Stock, TraderFacts

PART = 0.1
"""Fraction of its cash or shares that a rule twin trades on news or hearsay."""


class PairedTrader(StockTrader):
    """A trader whose rule twin uses a new random generator for each decision.

    Its draws do not depend on others' actions or number, nor on what it has heard.
    """

    _rng: random.Random | None = None

    @property
    def random(self) -> random.Random:
        """Random generator for the current decision."""
        return self.model.random if self._rng is None else self._rng

    def rule(self, seen: Observation) -> ToolCall | None:
        """Decide by `act_by_rule`, with a new generator."""
        self._rng = random.Random(f"{self.model.run_seed} {self.model.now} {self.unique_id}")
        return self.act_by_rule(seen)

    def act_by_rule(self, seen: Observation) -> ToolCall | None:
        """Trade by the strategy."""
        return super().rule(seen)


def order_near(facts: TraderFacts, side: Side, stock: Stock, margin: float) -> ToolCall | None:
    """Return an order with a limit slightly worse than the latest price; None without means.

    Args:
        facts: The trader's observed facts.
        side: Side of the order.
        stock: The stock.
        margin: Distance from the latest price, as a fraction of it.
    """
    limit = facts.prices[stock] * (1 + margin if side == "buy" else 1 - margin)
    return take(facts, side, stock, limit, PART)
