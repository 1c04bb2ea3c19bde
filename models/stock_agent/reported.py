"""What is measured of the exchange in every step, and the tables of a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TypeVar

import pandas as pd

from mesa_llm.worlds.exchange import Cancelled, Close, Exchange, Moment, Stock, Submitted
from models.stock_agent.measures import sessions_table, spread_of
from models.stock_agent.orders import Turns, forecasts_table, orders_table, styles_table, turns_table

Row = TypeVar("Row", Submitted, Cancelled)

REPORTED = {
    "day": "day",
    "session": "session",
    "stage": "stage",
    "price_A": "price_a",
    "price_B": "price_b",
    "volume_A": "volume_a",
    "volume_B": "volume_b",
    "trades": "n_trades",
    "orders": "n_orders",
    "borrowed": "borrowed",
    "traders": "n_traders",
    "no_share": "no_share",
    "refused": "n_refused",
    "cancelled": "n_cancelled",
    "fill_ratio": "fill_ratio",
    "spread_A": "spread_a",
    "spread_B": "spread_b",
}
"""What is collected of the exchange in every step."""


class Measures:
    """The measures of the model, as they are now.

    Attributes:
        done: Day, stage and session of the last step; None before the first.
        turns: What those who were asked did in each session so far.
    """

    world: Exchange
    done: Moment | None
    turns: list[Turns]

    def sessions(self) -> pd.DataFrame:
        """Give one row a session: prices, changes, trades, shares, orders and best prices of both stocks."""
        return sessions_table(self.world.history.closes)

    def replies(self) -> pd.DataFrame:
        """Give one row a session: how many of those asked placed an order, none, or one that was refused."""
        return turns_table(self.turns)

    def orders(self) -> pd.DataFrame:
        """Give one row for each trader, stock and side: orders, shares ordered and traded, cancellations."""
        return orders_table(self.world.history, self.world.market.accounts)

    def forecasts(self) -> pd.DataFrame:
        """Compare what traders said they would do tomorrow with what they then did."""
        is_traded = self.stage in ("estimate", "post") or (self.session == self.world.calendar.sessions)
        return forecasts_table(self.world.history, self.day if is_traded else self.day - 1)

    def styles(self) -> pd.DataFrame:
        """Give results by style of investing: property, profit, orders, loans, leavers."""
        market = self.world.market
        holdings = [(market.holding(account), account.has_left) for account in market.accounts.values()]
        return styles_table(holdings, self.world.history)

    @property
    def day(self) -> int:
        """Day of the last step; 0 before the first."""
        return self.done.day if self.done else 0

    @property
    def session(self) -> int:
        """Trading session of the last step; 0 before the day's first, its last one's number after that."""
        return self.done.session if self.done else 0

    @property
    def stage(self) -> str:
        """What was decided in the last step; empty before the first."""
        return self.done.stage if self.done else ""

    @property
    def price_a(self) -> float:
        """Latest session price of A."""
        return self.world.market.prices["A"]

    @property
    def price_b(self) -> float:
        """Latest session price of B."""
        return self.world.market.prices["B"]

    @property
    def volume_a(self) -> float:
        """Shares of A traded in the last step."""
        return sum(close.volume for close in self._closes("A"))

    @property
    def volume_b(self) -> float:
        """Shares of B traded in the last step."""
        return sum(close.volume for close in self._closes("B"))

    @property
    def n_trades(self) -> int:
        """Trades of the last step."""
        return sum(close.fills for close in self._closes("A", "B"))

    @property
    def n_orders(self) -> int:
        """Orders of the last step."""
        return sum(close.buys + close.sells for close in self._closes("A", "B"))

    @property
    def borrowed(self) -> float:
        """Money lent in the last step."""
        loans = self.world.history.loans if self.stage == "loan" else []
        return sum(loan.principal for loan in loans if loan.day == self.day)

    @property
    def no_share(self) -> float | None:
        """Part of those asked in the last step who wanted no order; None if it was no session."""
        turn = self._turn
        return turn.no / turn.asked if turn and turn.asked else None

    @property
    def n_refused(self) -> int:
        """Traders in the last step whose order or reply was refused, or from whom none came."""
        turn = self._turn
        return turn.refused + turn.failed if turn else 0

    @property
    def n_cancelled(self) -> int:
        """Orders cancelled in the last step, as they could not be honoured or met their own trader's."""
        return len(self._recent(self.world.history.cancelled)) if self.stage == "trade" else 0

    @property
    def fill_ratio(self) -> float | None:
        """Part of the shares ordered in the last step that traded at once; None without orders."""
        orders = self._recent(self.world.history.orders) if self.stage == "trade" else []
        return sum(order.filled for order in orders) / sum(order.quantity for order in orders) if orders else None

    @property
    def spread_a(self) -> float | None:
        """Best ask less best bid of A after the last step; None if it was no session, or a side is empty."""
        return next(map(spread_of, self._closes("A")), None)

    @property
    def spread_b(self) -> float | None:
        """Best ask less best bid of B after the last step; None if it was no session, or a side is empty."""
        return next(map(spread_of, self._closes("B")), None)

    @property
    def _turn(self) -> Turns | None:
        return self.turns[-1] if self.stage == "trade" else None

    def _recent(self, rows: Sequence[Row]) -> list[Row]:
        """Give the rows of the last step's session."""
        return list(takewhile(lambda row: (row.day, row.session) == (self.day, self.session), reversed(rows)))

    @property
    def n_traders(self) -> int:
        """Traders who have not left."""
        return len(self.world.market.remaining)

    def _closes(self, *stocks: Stock) -> list[Close]:
        """Give how the last step ended for some stocks; nothing if it was no session."""
        closes = self.world.history.closes[-2:] if self.stage == "trade" else []
        return [close for close in closes if close.stock in stocks]
