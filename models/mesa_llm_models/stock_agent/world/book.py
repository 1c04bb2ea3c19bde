"""One stock's order book: resting orders by price, and at each price in order of arrival."""

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
    """Mesa `unique_id` of the trader that placed it."""

    side: Side
    """Whether its trader buys or sells."""

    price: float
    """Money per share."""

    quantity: float
    """Remaining shares; 0 only under the original rules, which leave filled orders in the book."""

    arrival: int = 0
    """Order of arrival at the book, from 1; 0 before it rests."""


class Quote(NamedTuple):
    """The best price of one side of a book."""

    price: float
    """Money per share."""

    quantity: float
    """Shares of all orders at that price."""


class Level:
    """The orders resting at one price, oldest first, and their shares."""

    __slots__ = ("orders", "quantity")

    def __init__(self) -> None:
        """Start with no order."""
        self.orders: deque[Order] = deque()
        self.quantity: float = 0


def opposite(side: Side) -> Side:
    """Return the side an order of this side trades with."""
    return "sell" if side == "buy" else "buy"


class OrderBook:
    """The resting orders for one stock.

    Finding the best price, adding, reducing and dropping take O(log p) for p different prices.
    """

    def __init__(self) -> None:
        """Create an empty book."""
        self._levels: dict[Side, Any] = {side: SortedDict() for side in SIDES}
        self._arrivals = 0
        self.counts: dict[Side, int] = dict.fromkeys(SIDES, 0)
        """Number of orders resting on each side."""
        self.changes: dict[Side, int] = dict.fromkeys(SIDES, 0)
        """Number of changes on each side; a side is unchanged while its number is."""

    def clear(self) -> None:
        """Drop every order."""
        for side in SIDES:
            self._levels[side].clear()
            self._count(side, -self.counts[side])
        self._arrivals = 0

    def rest(self, order: Order) -> None:
        """Add an order behind those with its side and price."""
        self._arrivals += 1
        order.arrival = self._arrivals
        level: Level = self._levels[order.side].setdefault(order.price, Level())
        level.orders.append(order)
        level.quantity += order.quantity
        self._count(order.side, 1)

    def oldest_at(self, side: Side, price: float) -> Order | None:
        """Return the oldest order of a side at exactly this price, or None."""
        level: Level | None = self._levels[side].get(price)
        return level.orders[0] if level else None

    def best(self, side: Side) -> Order | None:
        """Return the next order of a side to trade: best price, then oldest. None without one."""
        levels = self._levels[side]
        if not levels:
            return None
        level: Level = levels.peekitem(-1 if side == "buy" else 0)[1]
        return level.orders[0]

    def reduce(self, order: Order, quantity: float) -> None:
        """Reduce a resting order by the shares traded. It stays even when none are left."""
        order.quantity -= quantity
        self._levels[order.side][order.price].quantity -= quantity
        self._count(order.side, 0)

    def drop_oldest(self, order: Order) -> None:
        """Remove a resting order, the oldest at its price.

        Raises:
            ValueError: If an older order exists at that price.
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
        """Return the best price at which a side has shares to trade, with all shares there; None without any."""
        return next((Quote(price, level.quantity) for price, level in self._ranked(side) if level.quantity), None)

    def depth(self, side: Side) -> list[Quote]:
        """Return the shares of a side at each price, best price first."""
        return [Quote(price, level.quantity) for price, level in self._ranked(side)]

    def ranked(self, side: Side, maximum: int | None = None) -> list[Order]:
        """Return the orders of a side in trading order, best first, up to a maximum number."""
        return list(islice(chain.from_iterable(level.orders for _, level in self._ranked(side)), maximum))

    def arrived(self, side: Side) -> list[Order]:
        """Return the orders of a side in order of arrival."""
        return sorted(self.ranked(side), key=lambda order: order.arrival)

    def _count(self, side: Side, change: int) -> None:
        """Count a change on a side, and the orders added or (if negative) dropped."""
        self.counts[side] += change
        self.changes[side] += 1

    def _ranked(self, side: Side) -> Iterator[tuple[float, Level]]:
        """Iterate over prices and levels of a side, best price first."""
        levels = self._levels[side]
        prices = reversed(levels) if side == "buy" else iter(levels)
        return ((price, levels[price]) for price in prices)
