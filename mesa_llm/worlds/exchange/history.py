"""What happened on the exchange, as rows for tables and plots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from mesa_llm.worlds.exchange.accounts import Stock
from mesa_llm.worlds.exchange.book import Side
from mesa_llm.worlds.exchange.insolvency import Liquidation


class Trade(NamedTuple):
    """One fill."""

    day: int
    session: int
    stock: Stock
    buyer: int
    seller: int
    quantity: float
    price: float


class Submitted(NamedTuple):
    """One order as it came in."""

    day: int
    session: int
    trader: int
    stock: Stock
    side: Side
    quantity: int
    price: float
    filled: float
    """Shares traded at once; what is left may trade later."""


class Cancelled(NamedTuple):
    """One order that was taken out of the market, or what was left of it."""

    day: int
    session: int
    trader: int
    stock: Stock
    side: Side
    quantity: float
    """Shares not traded."""

    price: float
    rested: bool
    """Whether it waited in the book; else it had just come in."""


class Close(NamedTuple):
    """How one stock ended a session."""

    day: int
    session: int
    stock: Stock
    price: float
    """Price of the session's last fill; without fills, the price before."""

    before: float
    """Price before the session."""

    fills: int
    """Trades of the session, those of 0 shares included."""

    volume: float
    """Shares traded in the session."""

    buys: int
    """Buy orders that came in."""

    sells: int
    """Sell orders that came in."""

    best_bid: float | None
    """Highest price that a resting buy order gives at the close."""

    best_ask: float | None
    """Lowest price that a resting sell order asks at the close."""


class Borrowed(NamedTuple):
    """One loan taken."""

    day: int
    trader: int
    loan_type: int
    principal: float


class Forecast(NamedTuple):
    """What a trader says it will do tomorrow."""

    day: int
    trader: int
    buy_a: bool
    buy_b: bool
    sell_a: bool
    sell_b: bool
    take_loan: bool


class Holding(NamedTuple):
    """What a trader has at one moment."""

    trader: int
    style: str
    cash: float
    a: float
    """Shares of A."""

    b: float
    """Shares of B."""

    debt: float
    """Principals owed."""

    property: float
    """Cash and shares at the latest prices; debts are not deducted."""

    profit: float
    """Property less debt and accrued interest, now against the start."""

    accrued: float = 0.0
    """Interest on loans that has run up and is not paid yet; 0 where the original is repeated."""


@dataclass(slots=True)
class History:
    """All rows of a run, oldest first."""

    closes: list[Close] = field(default_factory=list)
    trades: list[Trade] = field(default_factory=list)
    orders: list[Submitted] = field(default_factory=list)
    loans: list[Borrowed] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)
    cancelled: list[Cancelled] = field(default_factory=list)
    liquidations: list[Liquidation] = field(default_factory=list)
