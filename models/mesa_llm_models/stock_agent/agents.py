"""Traders: observations at either fidelity, a menu for models that cannot count, and the rule twins.

Where only equal prices trade (all settlements but `strict`), a rule has to read the book in order to trade.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Any, Literal, Protocol

from mesa_llm import (
    ChatMemory,
    Decision,
    Failure,
    LLMAgent,
    MemoryEntry,
    Observation,
    Outcome,
    ToolCall,
)
from mesa_llm.memory.text import NO_ANSWER
from mesa_llm_models.stock_agent.world import (
    COMPANIES,
    FIRST_PRICES,
    STOCKS,
    OrderBook,
    Side,
    Stock,
    TraderFacts,
    TradingAccount,
    company_news,
    forum_text,
    introduction,
    order_text,
    shares_text,
    spendable_text,
)

Twin = Literal["fundamentalist", "zero_intelligence", "chartist", "mixed", "hold"]
"""Rule by which rule twins trade; `mixed` for one third each of the first three."""

ORDERS: tuple[tuple[Side, Stock], ...] = (("buy", "A"), ("buy", "B"), ("sell", "A"), ("sell", "B"))
"""Side and stock of the orders in a forecast."""

ORIGINAL_ACTIONS = {
    "loan": ("take_loan", "do_nothing"),
    "trade": ("buy", "sell", "do_nothing"),
    "estimate": ("estimate", "do_nothing"),
    "post": ("post_message", "do_nothing"),
}
"""Stage → actions with `fidelity="original"`: no look-ups, because everybody is shown the forum."""

STYLE = "style of investing"
"""Name of a trader's style in its config."""

MENU_PRICES = (0.95, 0.975, 1.0, 1.025, 1.05)
"""Prices on the menu, as multiples of the latest; few, so orders often have equal prices."""

MENU_PARTS = 10
"""Number of equal parts into which the menu divides a trader's means."""

MAX_READERS = 100
"""Number of traders above which rule twins observe only values, no text."""

TICK = 0.1
"""Tick of the prices used by fundamentalists and chartists, in money."""

COARSE_TICK = 0.5
"""Tick of the prices used by zero intelligence; coarse, so orders often have equal prices."""


class StockTrader(LLMAgent):
    """A trader on the exchange.

    Attributes:
        strategy: Rule by which its rule twin trades.
        last_order: Side and stock of the last order it placed; None before the first.
    """

    def __init__(self, model: Any, strategy: Strategy, **components: Any) -> None:
        """Add a trader to the model.

        Args:
            model: The model.
            strategy: Rule by which its rule twin trades.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.strategy = strategy
        self.last_order: tuple[Side, Stock] | None = None

    def observe(self) -> Observation:
        """Return prices, books and the trader's account; with `fidelity="original"` only what the paper shows."""
        if self.opened.llm is None and len(self.model.world.market.accounts) > MAX_READERS:
            return Observation(facts=self.facts)
        has_left, stage = self.account.has_left, self.model.world.now.stage
        if self.is_original and stage in ORIGINAL_ACTIONS and not has_left:
            seen = self.with_news(self._original_observation())
        else:
            seen = super().observe()
        if not self.opened.capabilities.needs_options:
            return seen
        fees = self.model.world.trading.fees
        return with_menu(seen, self.facts, fees.maximum if fees else 0.0)

    @property
    def facts(self) -> TraderFacts:
        """The trader's observed facts."""
        return self.model.world.facts(self.unique_id)

    @property
    def is_original(self) -> bool:
        """Whether the trader observes and remembers the same as the paper's traders."""
        return self.model.scenario.fidelity == "original"

    def _original_observation(self) -> Observation:
        """Return what the paper shows in the current stage.

        All of it stays in the day's conversation, so no stage repeats an earlier one. Every order in the books is
        listed, oldest first.

        Source:
            Zhang et al. (2024), StockAgent, arXiv 2407.18957, and its program.
        """
        facts, books = self.facts, self.model.world.market.books
        text = self.model.prompt(
            f"original_{facts.now.stage}.md",
            facts=facts,
            style=self.config.role.get(STYLE, ""),
            introductions={stock: introduction(COMPANIES[stock]) for stock in STOCKS},
            shares={stock: shares_text(facts.shares[stock]) for stock in STOCKS},
            cash=spendable_text(facts.cash),
            limit=spendable_text(facts.loan_limit),
            loans=list(zip(facts.term_days, facts.rates, strict=True)),
            forum=forum_text(facts.posts),
            companies=company_news(facts.now.day),
            books=[(stock, _book_text(books[stock], "sell"), _book_text(books[stock], "buy")) for stock in STOCKS],
        )
        return Observation(text, tools=ORIGINAL_ACTIONS[facts.now.stage], facts=facts, persona_place="system")

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out the decision, and store any order placed."""
        outcomes = super().act(decision, seen)
        if isinstance(decision, Failure) and seen is not None and self._keeps_original_day:
            self.memory.add(MemoryEntry(self.now, "observation", seen.text))
            self.memory.add(MemoryEntry(self.now, "decision", NO_ANSWER))
        for outcome in outcomes:
            if outcome.ok and outcome.action in ("buy", "sell"):
                self.last_order = (outcome.action, outcome.arguments["stock"])
        return outcomes

    def remember(self, decision: Decision, outcomes: Iterable[Outcome], seen: Observation | None = None) -> None:
        """Remember observation, decision and outcomes; in the original conversation, only refusals."""
        if self._keeps_original_day:
            outcomes = [outcome for outcome in outcomes if not outcome.ok]
        super().remember(decision, outcomes, seen)

    @property
    def _keeps_original_day(self) -> bool:
        return self.is_original and isinstance(self.memory, ChatMemory)

    # -- the rule twin

    def rule(self, seen: Observation) -> ToolCall | None:
        """Borrow nothing, trade by the strategy, forecast the same behaviour for tomorrow, and post the trades."""
        match self.model.world.now.stage:
            case "trade":
                return self.strategy.order(self.facts, self.random)
            case "estimate":
                plans = {f"{side}_{stock.lower()}": (side, stock) == self.last_order for side, stock in ORDERS}
                return ToolCall("estimate", {**plans, "take_loan": False})
            case "post":
                return ToolCall("post_message", {"text": self._remark()})
            case _:
                return None

    def _remark(self) -> str:
        if self.last_order is None:
            return "I have not traded yet."
        side, stock = self.last_order
        return f"I was on the side of those who {side} {stock}, and I expect to stay there."

    # -- measures

    @property
    def account(self) -> TradingAccount:
        """Assets and debts of the trader."""
        return self.model.world.market.accounts[self.unique_id]

    @property
    def cash(self) -> float:
        """Money."""
        return self.account.cash

    @property
    def shares_a(self) -> float:
        """Shares of A."""
        return self.account.shares["A"]

    @property
    def shares_b(self) -> float:
        """Shares of B."""
        return self.account.shares["B"]

    @property
    def profit(self) -> float:
        """Change of property less debts since the start, in money at the latest prices."""
        return self.model.world.market.holding(self.account).profit


def _book_text(book: OrderBook, side: Side) -> str:
    """List all orders of a side, oldest first."""
    return "; ".join(map(order_text, book.arrived(side))) or "none"


# -- the menu


def with_menu(seen: Observation, facts: TraderFacts, max_fee: float = 0.0) -> Observation:
    """Restrict a choice to orders and loans that the trader can honour, for deciders that cannot count.

    In each session one of the two stocks is on the menu, and the other in the next session; traders with odd and even
    ids alternate.

    Args:
        seen: Observation of a trader.
        facts: Facts of the same observation.
        max_fee: Maximum fee of a trade, in money.
    """
    if facts.now.stage == "loan":
        amounts = _parts(math.floor(facts.loan_limit))
        return replace(seen, options={**seen.options, "amount": tuple(map(float, amounts))})
    if facts.now.stage != "trade":
        return seen
    stock = STOCKS[(facts.trader + facts.now.day + facts.now.session) % len(STOCKS)]
    prices = sorted({max(0.01, round(part * facts.prices[stock], 2)) for part in MENU_PRICES})
    maximum = {"buy": int(max(facts.cash - max_fee, 0.0) / prices[-1]), "sell": int(facts.shares[stock])}
    sides = [side for side, quantity in maximum.items() if quantity > 0]
    quantities = _parts(min((maximum[side] for side in sides), default=0))
    menu: Mapping[str, tuple[Any, ...]] = {"stock": (stock,), "price": tuple(prices), "quantity": quantities}
    readers = ("read_forum",) if seen.tools is None or "read_forum" in seen.tools else ()
    options = {name: values for name, values in seen.options.items() if name != "sell.stock"} | menu
    return replace(seen, tools=("do_nothing", *readers, *sides), options=options)


def _parts(whole: int) -> tuple[int, ...]:
    """Divide a number into equal parts, and return their cumulative sums."""
    return tuple(sorted({max(1, whole * part // MENU_PARTS) for part in range(1, MENU_PARTS + 1)} if whole > 0 else ()))


# -- rules of the rule twins


class Strategy(Protocol):
    """Chooses an order."""

    def order(self, facts: TraderFacts, rng: random.Random) -> ToolCall | None:
        """Return the order to place now, or None.

        Args:
            facts: The trader's observed facts.
            rng: Random generator.
        """
        ...


class BuyAndHold:
    """Never trades."""

    def order(self, facts: TraderFacts, rng: random.Random) -> ToolCall | None:
        """Return no order."""
        return None


class ZeroIntelligence:
    """Trades at random within its means.

    Source:
        Gode and Sunder (1993), Allocative Efficiency of Markets with Zero-Intelligence Traders, JPE 101(1): ZI-C.
    """

    def order(self, facts: TraderFacts, rng: random.Random) -> ToolCall | None:
        """Draw stock and side, a price within 5% of the latest, and up to a fifth of the trader's means."""
        stock = rng.choice(STOCKS)
        side: Side = rng.choice(("buy", "sell"))
        price = facts.prices[stock] * rng.uniform(0.95, 1.05)
        return sized(facts, side, stock, on_grid(price, COARSE_TICK), rng.uniform(0, 0.2))


@dataclass(frozen=True)
class Fundamentalist:
    """Trades towards its own estimate of the shares' values.

    Source:
        Lux and Marchesi (1999), Nature 397; Chiarella and Iori (2002), Quantitative Finance 2(5).
    """

    value_a: float
    """Estimated value of a share of A, in money."""

    value_b: float
    """Estimated value of a share of B, in money."""

    @classmethod
    def drawn(cls, rng: random.Random) -> Fundamentalist:
        """Draw an estimate: the first price times a lognormal factor with a spread of 10%."""
        first, second = (FIRST_PRICES[stock] * math.exp(rng.gauss(0, 0.1)) for stock in STOCKS)
        return cls(first, second)

    def order(self, facts: TraderFacts, rng: random.Random) -> ToolCall | None:
        """Trade the stock furthest from its estimate, more with larger distance; neither if both are within 2%."""
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

    def order(self, facts: TraderFacts, rng: random.Random) -> ToolCall | None:
        """Buy a stock that has risen, or sell one that has fallen, with a tenth of the trader's means."""
        stock = rng.choice(STOCKS)
        path = facts.recent_prices[stock][-4:]
        returns = [after / before - 1 for before, after in pairwise(path)]
        expected = (fmean(returns) if returns else 0.0) + rng.gauss(0, 0.01)
        limit = facts.prices[stock] * (1 + expected)
        return take(facts, "buy" if expected > 0 else "sell", stock, limit, 0.1)


TWINS: Mapping[Twin, tuple[Callable[[random.Random], Strategy], ...]] = {
    "fundamentalist": (Fundamentalist.drawn,),
    "zero_intelligence": (lambda rng: ZeroIntelligence(),),
    "chartist": (lambda rng: Chartist(),),
    "mixed": (Fundamentalist.drawn, lambda rng: ZeroIntelligence(), lambda rng: Chartist()),
    "hold": (lambda rng: BuyAndHold(),),
}
"""Name of a rule → constructors of the strategies, assigned to the traders in turn."""


def strategies(twin: Twin, count: int, rng: random.Random) -> list[Strategy]:
    """Return the strategies of several traders.

    Args:
        twin: Name of the rule.
        count: Number of traders.
        rng: Random generator.
    """
    constructors = TWINS[twin]
    return [constructors[index % len(constructors)](rng) for index in range(count)]


def take(facts: TraderFacts, side: Side, stock: Stock, limit: float, fraction: float) -> ToolCall | None:
    """Return an order at the other side's best price, if no worse than a limit; otherwise at the limit.

    Args:
        facts: The trader's observed facts.
        side: Side of the order.
        stock: Stock to trade.
        limit: Worst acceptable price, in money.
        fraction: Fraction of the cash, or of the shares, to trade.
    """
    best = facts.asks[stock] if side == "buy" else facts.bids[stock]
    is_good = best is not None and (best.price <= limit if side == "buy" else best.price >= limit)
    return sized(facts, side, stock, best.price if best and is_good else on_grid(limit, TICK), fraction)


def sized(facts: TraderFacts, side: Side, stock: Stock, price: float, fraction: float) -> ToolCall | None:
    """Return an order for as many whole shares as a fraction of cash or shares allows; None if less than one."""
    quantity = int(fraction * facts.cash / price) if side == "buy" else int(fraction * facts.shares[stock])
    return ToolCall(side, {"stock": stock, "quantity": quantity, "price": price}) if quantity > 0 else None


def on_grid(price: float, tick: float) -> float:
    """Round a price to whole ticks, at least one."""
    return round(max(1, round(price / tick)) * tick, 2)
