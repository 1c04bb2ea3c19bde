"""Matching and settlement as in the original program, including its defects."""

from __future__ import annotations

from mesa_llm_models.stock_agent.world.book import Order, opposite
from mesa_llm_models.stock_agent.world.matching import Fill, Match, Settlement, Venue, fill_of
from mesa_llm_models.stock_agent.world.state import Stock, TradingAccount


class OriginalVenue(Venue):
    """A stock's order book with fills settled one side at a time (`settlement` `one_sided` or `original`)."""

    __slots__ = ()

    def match(self, order: Order) -> Match:
        """Match at equal prices, oldest order first, without prior checks.

        A fully filled resting order stays with quantity 0. The next order at its price trades 0 shares with it, and
        only then removes it.
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
        """Settle each side separately, the incoming one first. Either may fail alone."""
        fill = fill_of(order, resting, traded)
        match.fills.append(fill)
        sides = [(settle_buyer, fill.buyer), (settle_seller, fill.seller)]
        for settle, trader in sides if order.side == "buy" else reversed(sides):
            settle(self.accounts[trader], self.stock, fill, self.rules.settlement)


def delivered(fill: Fill, settlement: Settlement) -> float:
    """Return the number of shares transferred in a fill.

    The original swaps quantity and price when calling its accounts: cash moves by their product, shares by the price.
    Its published runs contain this defect.
    """
    return fill.price if settlement == "original" else fill.quantity


def settle_buyer(buyer: TradingAccount, stock: Stock, fill: Fill, settlement: Settlement) -> bool:
    """Settle the buyer's side alone if its cash suffices. Return whether it did."""
    cost = fill.quantity * fill.price
    if buyer.cash < cost:
        return False
    buyer.cash -= cost
    buyer.shares[stock] += delivered(fill, settlement)
    return True


def settle_seller(seller: TradingAccount, stock: Stock, fill: Fill, settlement: Settlement) -> bool:
    """Settle the seller's side alone if its shares suffice. Return whether they did."""
    shares = delivered(fill, settlement)
    if seller.shares[stock] < shares:
        return False
    seller.shares[stock] -= shares
    seller.cash += fill.quantity * fill.price
    return True
