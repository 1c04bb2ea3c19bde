"""The order books as traders read them, written anew only where they have changed."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.worlds.exchange.accounts import STOCKS, Stock
from mesa_llm.worlds.exchange.book import SIDES, Order, OrderBook, Side


class Board:
    """Shows the books of all stocks as lines of text."""

    def __init__(self, books: Mapping[Stock, OrderBook], orders_shown: int) -> None:
        """Look at books.

        Args:
            books: The books by stock.
            orders_shown: Most orders listed of each side of a book, best first.
        """
        self._books = books
        self._orders_shown = orders_shown
        self._written: dict[tuple[Stock, Side], tuple[int, str]] = {}

    @property
    def text(self) -> str:
        """One line for each side of each book, offers before bids."""
        return "\n".join(self._line(stock, side) for stock in STOCKS for side in reversed(SIDES))

    def _line(self, stock: Stock, side: Side) -> str:
        """Give the line of one side; write it if the side has changed since it was last read."""
        changes = self._books[stock].changes[side]
        written = self._written.get((stock, side))
        if written is None or written[0] != changes:
            written = self._written[stock, side] = (changes, self._write(stock, side))
        return written[1]

    def _write(self, stock: Stock, side: Side) -> str:
        book, most = self._books[stock], self._orders_shown
        count = book.counts[side]
        shown = "; ".join(map(order_words, book.ranked(side, most))) or "none"
        more = f"; and {count - most} more" if count > most else ""
        return f"{'Bids to buy' if side == 'buy' else 'Offers to sell'} {stock}, best first: {shown}{more}."


def order_words(order: Order) -> str:
    """Write an order as others see it."""
    return f"trader {order.trader}: {share_words(order.quantity)} at {order.price}"


def share_words(shares: float) -> str:
    """Write a number of shares; fractions, which only the original rules make, to four places."""
    return str(shares) if isinstance(shares, int) else f"{shares:.4f}".rstrip("0").rstrip(".")
