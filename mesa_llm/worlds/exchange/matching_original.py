"""Matching and settlement as in the original program, with its faults."""

from __future__ import annotations

from mesa_llm.worlds.exchange.book import Order, opposite
from mesa_llm.worlds.exchange.matching import Fill, Match, Settlement, Venue, fill_of
from mesa_llm.worlds.exchange.state import Stock, TradingAccount


class OriginalVenue(Venue):
    """The book of one stock, whose fills are settled one side at a time (`settlement` `one_sided` or `original`)."""

    __slots__ = ()

    def match(self, order: Order) -> Match:
        """Match at equal prices, the oldest order first, without checks beforehand.

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
        """Settle each side by itself, the incoming one first; either may fail alone."""
        fill = fill_of(order, resting, traded)
        match.fills.append(fill)
        sides = [(settle_buyer, fill.buyer), (settle_seller, fill.seller)]
        for settle, trader in sides if order.side == "buy" else reversed(sides):
            settle(self.accounts[trader], self.stock, fill, self.rules.settlement)


def delivered(fill: Fill, settlement: Settlement) -> float:
    """Return the shares that change hands in a fill.

    The original passes quantity and price to its accounts in the wrong order: cash moves by their product, shares by
    the price. Its published runs contain this defect.
    """
    return fill.price if settlement == "original" else fill.quantity


def settle_buyer(buyer: TradingAccount, stock: Stock, fill: Fill, settlement: Settlement) -> bool:
    """Settle the buyer's side by itself if its cash suffices; return whether it did."""
    cost = fill.quantity * fill.price
    if buyer.cash < cost:
        return False
    buyer.cash -= cost
    buyer.shares[stock] += delivered(fill, settlement)
    return True


def settle_seller(seller: TradingAccount, stock: Stock, fill: Fill, settlement: Settlement) -> bool:
    """Settle the seller's side by itself if its shares suffice; return whether they did."""
    shares = delivered(fill, settlement)
    if seller.shares[stock] < shares:
        return False
    seller.shares[stock] -= shares
    seller.cash += fill.quantity * fill.price
    return True
