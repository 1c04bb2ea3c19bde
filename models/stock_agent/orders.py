"""What traders did with their turns, and what became of their orders, forecasts and money, as tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from mesa_llm.records import Outcome
from mesa_llm.worlds.exchange import STOCKS, Forecast, History, Holding, Moment

ORDER_ACTIONS = ("buy", "sell")
"""Actions that place an order, named as the sides of the book."""

FORECAST_ITEMS = {"buy_a": ("buy", "A"), "buy_b": ("buy", "B"), "sell_a": ("sell", "A"), "sell_b": ("sell", "B")}
"""Field of a forecast → side and stock of the order that it is about."""


class Turns(NamedTuple):
    """What those who were asked in one session did."""

    day: int
    session: int
    asked: int
    """Traders whose turn it was."""

    ordered: int
    """Those whose order was placed."""

    refused: int
    """Those whose order or reply was refused, and who placed none."""

    failed: int
    """Those from whom no usable reply came."""

    no: int
    """Those who placed no order, and wanted none."""


def turns_of(now: Moment, asked: Sequence[int], outcomes: Mapping[int, Sequence[Outcome]], failed: set[int]) -> Turns:
    """Count what traders did in a session.

    Args:
        now: The session.
        asked: Whose turn it was.
        outcomes: Trader → what came of its actions.
        failed: Those without a usable reply.
    """
    kinds = Counter(_kind(outcomes.get(trader, ()), trader in failed) for trader in asked)
    return Turns(now.day, now.session, len(asked), kinds["ordered"], kinds["refused"], kinds["failed"], kinds["no"])


def _kind(outcomes: Sequence[Outcome], has_failed: bool) -> str:
    if any(outcome.ok and outcome.action in ORDER_ACTIONS for outcome in outcomes):
        return "ordered"
    if has_failed:
        return "failed"
    return "refused" if any(not outcome.ok for outcome in outcomes) else "no"


def turns_table(turns: Iterable[Turns]) -> pd.DataFrame:
    """Give one row a session: the fields of `Turns`, and their shares of those asked, `no_share` and so on."""
    table = pd.DataFrame(list(turns), columns=list(Turns._fields))
    for name in ("ordered", "refused", "failed", "no"):
        table[f"{name}_share"] = table[name] / table["asked"].where(table["asked"] > 0)
    return table


def orders_table(history: History, traders: Iterable[int]) -> pd.DataFrame:
    """Give one row for each trader, stock and side.

    Args:
        history: What happened.
        traders: Everyone who has an account.

    Returns:
        Columns `trader`, `stock`, `side`, `orders`, `shares` (ordered), `traded` (shares), `cancelled` (orders) and
        `fill_ratio` (traded of ordered; NaN without orders).
    """
    orders, cancelled = Counter[tuple[int, str, str]](), Counter[tuple[int, str, str]]()
    shares, traded = (defaultdict[tuple[int, str, str], float](float) for _ in range(2))
    for order in history.orders:
        key = (order.trader, order.stock, order.side)
        orders[key] += 1
        shares[key] += order.quantity
    for trade in history.trades:
        traded[trade.buyer, trade.stock, "buy"] += trade.quantity
        traded[trade.seller, trade.stock, "sell"] += trade.quantity
    for gone in history.cancelled:
        cancelled[gone.trader, gone.stock, gone.side] += 1
    keys = [(trader, stock, side) for trader in traders for stock in STOCKS for side in ORDER_ACTIONS]
    rows = [(*key, orders[key], shares[key], traded[key], cancelled[key]) for key in keys]
    names = ["trader", "stock", "side", "orders", "shares", "traded", "cancelled"]
    table = pd.DataFrame(rows, columns=names)
    table["fill_ratio"] = table["traded"] / table["shares"].where(table["shares"] > 0)
    return table


def forecasts_table(history: History, last_day: int) -> pd.DataFrame:
    """Compare what traders said they would do with what they did the day after.

    Args:
        history: What happened.
        last_day: Last day on which trading is over; forecasts for later days are left out.

    Returns:
        One row for each of `buy_a`, `buy_b`, `sell_a`, `sell_b` and `take_loan`, with the columns `forecasts`,
        `said` (those that said yes), `did`, `both`, and `right` (share of forecasts that came true).
    """
    due = [forecast for forecast in history.forecasts if forecast.day < last_day]
    acts = {(order.day, order.trader, order.side, order.stock) for order in history.orders}
    loans = {(loan.day, loan.trader) for loan in history.loans}

    def did(forecast: Forecast, item: str) -> bool:
        when = (forecast.day + 1, forecast.trader)
        return when in loans if item == "take_loan" else (*when, *FORECAST_ITEMS[item]) in acts

    rows: list[tuple[str, int, int, int, int, float]] = []
    for item in (*FORECAST_ITEMS, "take_loan"):
        pairs = [(bool(getattr(forecast, item)), did(forecast, item)) for forecast in due]
        right = sum(said == done for said, done in pairs) / len(pairs) if pairs else float("nan")
        counts = (sum(said for said, _ in pairs), sum(done for _, done in pairs), sum(map(all, pairs)))
        rows.append((item, len(pairs), *counts, right))
    return pd.DataFrame(rows, columns=["item", "forecasts", "said", "did", "both", "right"])


def styles_table(holdings: Iterable[tuple[Holding, bool]], history: History) -> pd.DataFrame:
    """Give results by style of investing.

    Args:
        holdings: What each trader has, and whether it has left.
        history: What happened.

    Returns:
        One row a style: `traders`, `left`, mean `property` and `profit` of those who have not left, `orders` and
        `loans` a trader.
    """
    orders, loans = Counter(order.trader for order in history.orders), Counter(loan.trader for loan in history.loans)
    rows = [
        (
            one.style,
            left,
            None if left else one.property,
            None if left else one.profit,
            orders[one.trader],
            loans[one.trader],
        )
        for one, left in holdings
    ]
    names = ["style", "left", "property", "profit", "orders", "loans"]
    grouped = pd.DataFrame(rows, columns=names).astype({"property": float, "profit": float}).groupby("style")
    sums = {"left": "sum", "property": "mean", "profit": "mean", "orders": "mean", "loans": "mean"}
    table = grouped.agg(sums)
    table.insert(0, "traders", grouped.size())
    return table.reset_index()
