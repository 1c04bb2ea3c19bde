"""Traders without a language model: by what rules they place orders.

Where only equal prices trade (all rules but `strict`), a rule that wants to trade has to look at the book.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal, Protocol

from mesa_llm import ConfigError, ToolCall
from mesa_llm.worlds.exchange import FIRST_PRICES, STOCKS, Side, Stock, TraderFacts

Twin = Literal["fundamentalist", "zero_intelligence", "chartist", "mixed", "hold"]
"""By what rule traders trade; `mixed`: one third each by the first three."""

TICK = 0.1
"""Steps of the prices that fundamentalists and chartists name, in money."""

COARSE_TICK = 0.5
"""Steps of the prices that zero intelligence names: few enough that two often name the same."""


class Strategy(Protocol):
    """Chooses an order."""

    def order(self, facts: TraderFacts, chance: random.Random) -> ToolCall | None:
        """Give the order to place now, if any."""
        ...


class Hold:
    """Never trades."""

    def order(self, facts: TraderFacts, chance: random.Random) -> ToolCall | None:
        """Place none."""
        return None


class ZeroIntelligence:
    """Trades at random within its means.

    Source:
        Gode and Sunder (1993), Allocative Efficiency of Markets with Zero-Intelligence Traders, JPE 101(1): ZI-C.
    """

    def order(self, facts: TraderFacts, chance: random.Random) -> ToolCall | None:
        """Draw stock and side, a price within 5% of the latest, and up to a fifth of what it has."""
        stock = chance.choice(STOCKS)
        side: Side = chance.choice(("buy", "sell"))
        price = facts.prices[stock] * chance.uniform(0.95, 1.05)
        return sized(facts, side, stock, on_grid(price, COARSE_TICK), chance.uniform(0, 0.2))


@dataclass(frozen=True)
class Fundamentalist:
    """Trades towards what it holds the shares to be worth.

    Source:
        Lux and Marchesi (1999), Nature 397; Chiarella and Iori (2002), Quantitative Finance 2(5).
    """

    value_a: float
    """Money it holds a share of A to be worth."""

    value_b: float
    """Money it holds a share of B to be worth."""

    @classmethod
    def drawn(cls, chance: random.Random) -> Fundamentalist:
        """Draw its opinion: the first price times a lognormal factor with a spread of 10%."""
        first, second = (FIRST_PRICES[stock] * math.exp(chance.gauss(0, 0.1)) for stock in STOCKS)
        return cls(first, second)

    def order(self, facts: TraderFacts, chance: random.Random) -> ToolCall | None:
        """Trade the stock it finds priced most wrongly, with more the more so; none if both are within 2%."""
        values: dict[Stock, float] = {"A": self.value_a, "B": self.value_b}
        gaps: dict[Stock, float] = {stock: values[stock] / facts.prices[stock] - 1 for stock in STOCKS}
        stock = max(STOCKS, key=lambda stock: abs(gaps[stock]))
        gap = gaps[stock]
        if abs(gap) < 0.02:
            return None
        limit = facts.prices[stock] * (1 + 0.3 * gap)
        return take(facts, "buy" if gap > 0 else "sell", stock, limit, min(0.3, abs(gap)))


class Chartist:
    """Follows the trend of the last three sessions.

    Source:
        Chiarella and Iori (2002), Quantitative Finance 2(5).
    """

    def order(self, facts: TraderFacts, chance: random.Random) -> ToolCall | None:
        """Buy a stock that has risen, sell one that has fallen, with a tenth of what it has."""
        stock = chance.choice(STOCKS)
        path = facts.recent[stock][-4:]
        returns = [after / before - 1 for before, after in pairwise(path)]
        expected = (fmean(returns) if returns else 0.0) + chance.gauss(0, 0.01)
        limit = facts.prices[stock] * (1 + expected)
        return take(facts, "buy" if expected > 0 else "sell", stock, limit, 0.1)


def take(facts: TraderFacts, side: Side, stock: Stock, limit: float, fraction: float) -> ToolCall | None:
    """Take the best price that the other side shows, if it is no worse than the limit; else name the limit.

    Args:
        facts: What the trader sees.
        side: Whether it buys or sells.
        stock: What it trades.
        limit: Worst price it accepts, in money.
        fraction: Share of its cash, or of its shares, that it wants to trade.
    """
    best = facts.asks[stock] if side == "buy" else facts.bids[stock]
    is_good = best is not None and (best.price <= limit if side == "buy" else best.price >= limit)
    return sized(facts, side, stock, best.price if best and is_good else on_grid(limit, TICK), fraction)


def sized(facts: TraderFacts, side: Side, stock: Stock, price: float, fraction: float) -> ToolCall | None:
    """Order as many whole shares as a fraction of cash or shares gives; none if that is less than one."""
    quantity = int(fraction * facts.cash / price) if side == "buy" else int(fraction * facts.shares[stock])
    return ToolCall(side, {"stock": stock, "quantity": quantity, "price": price}) if quantity > 0 else None


def on_grid(price: float, tick: float) -> float:
    """Round a price to whole ticks, at least one."""
    return round(max(1, round(price / tick)) * tick, 2)


TWINS: Mapping[str, tuple[Callable[[random.Random], Strategy], ...]] = {
    "fundamentalist": (Fundamentalist.drawn,),
    "zero_intelligence": (lambda chance: ZeroIntelligence(),),
    "chartist": (lambda chance: Chartist(),),
    "mixed": (Fundamentalist.drawn, lambda chance: ZeroIntelligence(), lambda chance: Chartist()),
    "hold": (lambda chance: Hold(),),
}
"""Name of a rule → what makes the strategies of one trader after another, and round again."""


def strategies(twin: str, n: int, chance: random.Random) -> list[Strategy]:
    """Make the strategies of n traders.

    Args:
        twin: Name of the rule.
        n: How many traders.
        chance: Source of draws.

    Raises:
        ConfigError: If there is no such rule.
    """
    if twin not in TWINS:
        raise ConfigError(f"there is no twin {twin!r}; choose one of: {', '.join(TWINS)}")
    makers = TWINS[twin]
    return [makers[place % len(makers)](chance) for place in range(n)]
