"""How an incoming order meets the resting ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mesa_llm.worlds.exchange.accounts import Account, Stock
from mesa_llm.worlds.exchange.book import Order, OrderBook, opposite
from mesa_llm.worlds.exchange.settlement import (
    Fill,
    TradingRules,
    can_deliver,
    can_pay,
    settle_both,
    settle_buyer,
    settle_seller,
)


@dataclass(slots=True)
class Match:
    """What came of one incoming order."""

    fills: list[Fill] = field(default_factory=list)
    """Trades, in order."""

    cancelled: list[Order] = field(default_factory=list)
    """Orders taken out of the market: resting ones that could not be honoured or were the trader's own, and
    the incoming one once it cannot be paid."""

    fees: float = 0.0
    """Money both sides of the fills paid."""


@dataclass(frozen=True, slots=True)
class Venue:
    """One stock's book, whose traders they are, and the rules they trade by."""

    stock: Stock
    """What is traded."""

    book: OrderBook
    """Its resting orders."""

    accounts: Mapping[int, Account]
    """Traders by id."""

    rules: TradingRules
    """By which rules they trade."""

    def match(self, order: Order) -> Match:
        """Trade an incoming order with the resting ones; what is left of it rests."""
        return self._match_strictly(order) if self.rules.settlement == "strict" else self._match_loosely(order)

    def _match_loosely(self, order: Order) -> Match:
        """Match as the original does: equal prices, oldest first, nothing checked beforehand.

        A resting order that is used up exactly stays with quantity 0. The next order at its price trades 0
        shares with it, and only then removes it.
        """
        match = Match()
        while resting := self.book.oldest_at(opposite(order.side), order.price):
            traded = min(order.quantity, resting.quantity)
            self._settle_apart(order, resting, traded, match)
            if order.quantity <= traded:
                self.book.reduce(resting, traded)
                return match
            self.book.drop_oldest(resting)
            order.quantity -= traded
        self.book.rest(order)
        return match

    def _settle_apart(self, order: Order, resting: Order, traded: float, match: Match) -> None:
        """Settle each side alone, the incoming one first; one may fail and the other not."""
        fill = _fill(order, resting, traded)
        match.fills.append(fill)
        sides = [(settle_buyer, fill.buyer), (settle_seller, fill.seller)]
        for settle, trader in sides if order.side == "buy" else reversed(sides):
            settle(self.accounts[trader], self.stock, fill, self.rules.settlement)

    def _match_strictly(self, order: Order) -> Match:
        """Match with the best price first and the oldest of equals; settle both sides or none."""
        match = Match()
        while order.quantity and (resting := self._partner(order)):
            fill = _fill(order, resting, min(order.quantity, resting.quantity))
            fee = self.rules.fees.of(fill.quantity) if self.rules.fees else 0.0
            if resting.trader == order.trader or not self._can_settle(resting, fill, fee):
                self.book.drop_oldest(resting)
                match.cancelled.append(resting)
                continue
            if not self._can_settle(order, fill, fee):
                match.cancelled.append(order)
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
        """Find the resting order that an incoming one trades with next."""
        side = opposite(order.side)
        if not self.rules.cross:
            return self.book.oldest_at(side, order.price)
        best = self.book.best(side)
        if best is None:
            return None
        agrees = best.price <= order.price if order.side == "buy" else best.price >= order.price
        return best if agrees else None

    def _can_settle(self, order: Order, fill: Fill, fee: float) -> bool:
        """Tell whether an order's trader can honour its side of a fill."""
        account = self.accounts[order.trader]
        if order.side == "buy":
            return can_pay(account, fill, fee)
        return can_deliver(account, self.stock, fill, fee)


def _fill(order: Order, resting: Order, quantity: float) -> Fill:
    """Write the fill of an incoming and a resting order, at the resting price."""
    buyer, seller = (order, resting) if order.side == "buy" else (resting, order)
    return Fill(buyer.trader, seller.trader, quantity, resting.price)
