"""One stock's order book: resting orders by price, and at one price in the order they arrived."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

from sortedcontainers import SortedDict

Side = Literal["buy", "sell"]

SIDES: tuple[Side, ...] = ("buy", "sell")


@dataclass(slots=True)
class Order:
    """An order to trade one stock at one price."""

    trader: int
    """Who placed it."""

    side: Side
    """Whether its trader buys or sells."""

    price: float
    """Money per share."""

    quantity: float
    """Shares still to be traded; 0 only under the original rules, which leave used-up orders in the book."""

    arrival: int = 0
    """Number in the order of arrival at the book, from 1; 0 while it does not rest."""


class Quote(NamedTuple):
    """The best price of one side of a book."""

    price: float
    """Money per share."""

    quantity: float
    """Shares wanted or offered at that price, by all orders together."""


class Level:
    """The orders resting at one price, oldest first, and how many shares they hold."""

    __slots__ = ("orders", "quantity")

    def __init__(self) -> None:
        """Start with no order."""
        self.orders: deque[Order] = deque()
        self.quantity: float = 0


def opposite(side: Side) -> Side:
    """Give the side that an order of this side trades with."""
    return "sell" if side == "buy" else "buy"


class OrderBook:
    """The resting orders for one stock.

    Finding the best price, adding, reducing and dropping take O(log p) with p different prices.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._levels: dict[Side, Any] = {side: SortedDict() for side in SIDES}
        self._arrivals = 0
        self.counts: dict[Side, int] = dict.fromkeys(SIDES, 0)
        """How many orders rest on each side."""
        self.changes: dict[Side, int] = dict.fromkeys(SIDES, 0)
        """How often each side has changed; equal numbers mean an equal side."""

    def clear(self) -> None:
        """Drop every order."""
        for side in SIDES:
            self._levels[side].clear()
            self._count(side, -self.counts[side])
        self._arrivals = 0

    def rest(self, order: Order) -> None:
        """Let an order wait behind those of its side and price."""
        self._arrivals += 1
        order.arrival = self._arrivals
        level: Level = self._levels[order.side].setdefault(order.price, Level())
        level.orders.append(order)
        level.quantity += order.quantity
        self._count(order.side, 1)

    def oldest_at(self, side: Side, price: float) -> Order | None:
        """Give the order of a side that has waited longest at exactly this price."""
        level: Level | None = self._levels[side].get(price)
        return level.orders[0] if level else None

    def best(self, side: Side) -> Order | None:
        """Give the order of a side that trades first: best price, then longest wait."""
        levels = self._levels[side]
        if not levels:
            return None
        level: Level = levels.peekitem(-1 if side == "buy" else 0)[1]
        return level.orders[0]

    def reduce(self, order: Order, quantity: float) -> None:
        """Take traded shares off a resting order; it stays, even with none left."""
        order.quantity -= quantity
        self._levels[order.side][order.price].quantity -= quantity
        self._count(order.side, 0)

    def drop_oldest(self, order: Order) -> None:
        """Remove a resting order that is the oldest at its price.

        Raises:
            ValueError: If another order came before it.
        """
        levels = self._levels[order.side]
        level: Level = levels[order.price]
        if level.orders[0] is not order:
            raise ValueError(f"order {order.arrival} is not the oldest at {order.price}")
        level.orders.popleft()
        level.quantity -= order.quantity
        if not level.orders:
            del levels[order.price]
        self._count(order.side, -1)

    def quote(self, side: Side) -> Quote | None:
        """Give the best price at which a side still has shares to trade."""
        return next((Quote(price, level.quantity) for price, level in self._ranked(side) if level.quantity), None)

    def depth(self, side: Side) -> list[Quote]:
        """Add up what a side holds at each price, best price first."""
        return [Quote(price, level.quantity) for price, level in self._ranked(side)]

    def ranked(self, side: Side, most: int | None = None) -> list[Order]:
        """List orders of a side as they would trade, best first; at most `most` of them."""
        return list(islice(chain.from_iterable(level.orders for _, level in self._ranked(side)), most))

    def arrived(self, side: Side) -> list[Order]:
        """List the orders of a side in order of arrival."""
        return sorted(self.ranked(side), key=lambda order: order.arrival)

    def _count(self, side: Side, more: int) -> None:
        """Note a change of a side that has added or dropped orders."""
        self.counts[side] += more
        self.changes[side] += 1

    def _ranked(self, side: Side) -> Iterator[tuple[float, Level]]:
        """Go through prices and levels of a side, best price first."""
        levels = self._levels[side]
        prices = reversed(levels) if side == "buy" else iter(levels)
        return ((price, levels[price]) for price in prices)
