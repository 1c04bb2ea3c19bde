"""Matching of incoming and resting orders, and settlement of fills."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm_models.stock_agent.world.book import Order, OrderBook, opposite
from mesa_llm_models.stock_agent.world.state import Stock, TradingAccount
from mesa_llm_models.stock_agent.world.text import reason_text

Settlement = Literal["strict", "one_sided", "original"]
"""How a fill moves cash and shares.

`strict`: both sides are checked before either moves. `one_sided`: each side is settled separately, if possible.
`original`: like `one_sided`, but the number of shares transferred is the price, not the quantity.
"""


class Fill(NamedTuple):
    """A trade between two orders."""

    buyer: int
    """Mesa `unique_id` of the trader that buys."""

    seller: int
    """Mesa `unique_id` of the trader that sells."""

    quantity: float
    """Shares; 0 where an order met a filled one, unless fills are settled strictly."""

    price: float
    """Money per share."""


@dataclass(frozen=True, slots=True)
class Fees:
    """Fees paid by each side of a fill. Described in the paper, absent from its program."""

    per_share: float = 0.005
    """Money per share."""

    minimum: float = 1.0
    """Minimum per fill, in money."""

    maximum: float = 5.95
    """Maximum per fill, in money."""

    def of(self, quantity: float) -> float:
        """Compute the fee of one side of a fill, in money."""
        return min(max(self.per_share * quantity, self.minimum), self.maximum)


@dataclass(frozen=True, slots=True)
class TradingRules:
    """Rules for matching orders and settling fills."""

    settlement: Settlement = "strict"
    """How a fill moves cash and shares."""

    cross: bool | None = None
    """Whether a bid above an offer trades, at the resting price, rather than only equal prices. None: only if fills are
    settled strictly.
    """

    fees: Fees | None = None
    """Fees for each side of a fill; None for no fees."""

    tick: float = 0.01
    """Price increment, in money, if fills are settled strictly; otherwise any price is accepted."""

    def __post_init__(self) -> None:
        """Check that the rules are consistent.

        Raises:
            ConfigError: If crossing or fees are combined with a settlement other than `strict`.
        """
        if self.settlement not in get_args(Settlement):
            raise ConfigError(f"settlement {self.settlement!r} is unknown; choose one of {get_args(Settlement)}")
        if self.cross is None:
            object.__setattr__(self, "cross", self.settlement == "strict")
        if not 0 < self.tick < math.inf:
            raise ConfigError(f"tick must be a positive price increment, got {self.tick!r}")
        if self.settlement != "strict" and (self.cross or self.fees):
            raise ConfigError(f"cross and fees need settlement 'strict', not {self.settlement!r}")

    def fee_of(self, quantity: float) -> float:
        """Compute the fee for one side of an order that trades in one fill."""
        return self.fees.of(quantity) if self.fees else 0.0

    def price_of(self, price: float) -> float:
        """Return a price in whole ticks if fills are settled strictly, else unchanged.

        Raises:
            ToolError: If it lies between two ticks, or below the first.
        """
        if self.settlement != "strict":
            return price
        ticks = round(price / self.tick)
        if ticks < 1 or not math.isclose(ticks * self.tick, price, rel_tol=1e-9):
            raise ToolError(reason_text("tick", tick=self.tick, price=price))
        return round(ticks * self.tick, 9)

    def refuse_flags(self, *amounts: object) -> None:
        """Reject true and false as amounts. The original treats them as 1 and 0.

        Raises:
            ToolError: If there are any, and fills are settled strictly.
        """
        if self.settlement == "strict" and any(isinstance(amount, bool) for amount in amounts):
            raise ToolError(reason_text("flag"))

    @classmethod
    def of(cls, rules: str, trading: TradingRules | None = None) -> TradingRules:
        """Return the trading rules of a rule set, or check given ones against it.

        Args:
            rules: `corrected` or `original`.
            trading: The rules to check; None for those of the set.

        Raises:
            ConfigError: If the rule set is unknown, or the trading rules belong to another.
        """
        if rules not in ("corrected", "original"):
            raise ConfigError(f"rules {rules!r} are unknown; choose 'corrected' or 'original'")
        trading = trading or cls("original" if rules == "original" else "strict")
        if (rules == "original") != (trading.settlement == "original"):
            raise ConfigError(f"settlement {trading.settlement!r} contradicts rules={rules!r}; change one of them")
        return trading


@dataclass(slots=True)
class Match:
    """Result of one incoming order."""

    fills: list[Fill] = field(default_factory=list)
    """Trades, in order."""

    cancelled_orders: list[Order] = field(default_factory=list)
    """Orders removed from the market: resting ones that could not be honoured or were the trader's own, and the
    incoming one if it cannot be paid.
    """

    fees: float = 0.0
    """Money that both sides of the fills paid."""


@dataclass(frozen=True, slots=True)
class Venue:
    """A stock's order book, its traders, and their trading rules."""

    stock: Stock
    """The stock traded."""

    book: OrderBook
    """Its resting orders."""

    accounts: Mapping[int, TradingAccount]
    """Traders by id."""

    rules: TradingRules
    """Rules of matching and settlement."""

    def match(self, order: Order) -> Match:
        """Match an incoming order with resting ones, best price first, oldest first among equals.

        Both sides of a fill are settled, or neither. The rest of the order is added to the book.
        """
        match = Match()
        while order.quantity and (resting := self._partner(order)):
            fill = fill_of(order, resting, min(order.quantity, resting.quantity))
            fee = self.rules.fees.of(fill.quantity) if self.rules.fees else 0.0
            if resting.trader == order.trader or not self._can_settle(resting, fill, fee):
                self.book.drop_oldest(resting)
                match.cancelled_orders.append(resting)
                continue
            if not self._can_settle(order, fill, fee):
                match.cancelled_orders.append(order)
                return match
            settle_both(self.accounts[fill.buyer], self.accounts[fill.seller], self.stock, fill, fee)
            match.fills.append(fill)
            match.fees += 2 * fee
            order.quantity -= fill.quantity
            self.book.reduce(resting, fill.quantity)
            if not resting.quantity:
                self.book.drop_oldest(resting)
        if order.quantity:
            self.book.rest(order)
        return match

    def _partner(self, order: Order) -> Order | None:
        """Find the resting order with which an incoming one trades next."""
        side = opposite(order.side)
        if not self.rules.cross:
            return self.book.oldest_at(side, order.price)
        best = self.book.best(side)
        if best is None:
            return None
        agrees = best.price <= order.price if order.side == "buy" else best.price >= order.price
        return best if agrees else None

    def _can_settle(self, order: Order, fill: Fill, fee: float) -> bool:
        """Check whether an order's trader can honour its side of a fill."""
        account = self.accounts[order.trader]
        if order.side == "buy":
            return can_pay(account, fill, fee)
        return can_deliver(account, self.stock, fill, fee)


def fill_of(order: Order, resting: Order, quantity: float) -> Fill:
    """Return the fill of an incoming and a resting order, at the resting price."""
    buyer, seller = (order, resting) if order.side == "buy" else (resting, order)
    return Fill(buyer.trader, seller.trader, quantity, resting.price)


def can_pay(buyer: TradingAccount, fill: Fill, fee: float) -> bool:
    """Check whether a buyer's cash covers a fill and its fee."""
    return buyer.cash >= fill.quantity * fill.price + fee


def can_deliver(seller: TradingAccount, stock: Stock, fill: Fill, fee: float) -> bool:
    """Check whether a seller has the shares for a fill, and can pay the fee from the proceeds."""
    earned = fill.quantity * fill.price - fee
    return seller.shares[stock] >= fill.quantity and seller.cash + earned >= 0


def settle_both(buyer: TradingAccount, seller: TradingAccount, stock: Stock, fill: Fill, fee: float) -> None:
    """Move cash and shares between two different traders who can pay and deliver. Each pays the fee."""
    cost = fill.quantity * fill.price
    buyer.cash -= cost + fee
    buyer.shares[stock] += fill.quantity
    seller.shares[stock] -= fill.quantity
    seller.cash += cost - fee
