"""Measures of an exchange: sessions, price changes, turns, orders, forecasts and results by style."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import NamedTuple

import numpy as np
import pandas as pd

from mesa_llm.records import Outcome
from mesa_llm_models.stock_agent.world import (
    FIRST_PRICES,
    STOCKS,
    ActionForecast,
    Close,
    History,
    Holding,
    Moment,
    Stock,
)

Paths = Mapping[Stock, Sequence[float]]
"""Prices by stock: the one before the first session, then one per session."""

GEMINI = resources.files("mesa_llm_models.stock_agent").joinpath("data", "gemini_closes.csv")


def sessions_table(closes: Sequence[Close]) -> pd.DataFrame:
    """Return one row per session, with prices and orders of each stock.

    Args:
        closes: The world's closes, oldest first.

    Returns:
        Columns `day`, `session`, and with `_A` and `_B`: `price`, `change` (percent of the previous session), `fills`,
        `volume` (shares), `buys` and `sells` (orders), `bid` and `ask` (best prices at the close), `spread` (their
        difference; missing where a side is empty).
    """
    rows: dict[tuple[int, int], dict[str, float | None]] = {}
    for close in closes:
        row = rows.setdefault((close.day, close.session), {"day": close.day, "session": close.session})
        row |= {
            f"price_{close.stock}": close.price,
            f"change_{close.stock}": 100 * (close.price / close.before - 1),
            f"fills_{close.stock}": close.fills,
            f"volume_{close.stock}": close.volume,
            f"buys_{close.stock}": close.buys,
            f"sells_{close.stock}": close.sells,
            f"bid_{close.stock}": close.best_bid,
            f"ask_{close.stock}": close.best_ask,
            f"spread_{close.stock}": spread_of(close),
        }
    return pd.DataFrame(list(rows.values()))


def spread_of(close: Close) -> float | None:
    """Compute best ask less best bid at a close, in money per share; None where a side is empty."""
    if close.best_ask is None or close.best_bid is None:
        return None
    return close.best_ask - close.best_bid


def session_changes(path: Sequence[float]) -> np.ndarray:
    """Compute the price change of each session from the previous one, in percent, shape `(sessions,)`."""
    prices = np.asarray(path, dtype=float)
    return 100 * (prices[1:] / prices[:-1] - 1)


def total_change(prices: Sequence[float]) -> float:
    """Compute the change from the first price to the last, in percent.

    Over the session prices (`path[1:]`), the mean of both stocks is what Shachi calls volatility.

    Source:
        Shachi (2025), Table 2.
    """
    return 100 * (prices[-1] / prices[0] - 1)


def changes_error(runs: Sequence[Paths], reference: Paths) -> float:
    """Compute the distance between price changes, averaged over several runs, and a reference.

    Args:
        runs: Price paths of each run, of equal length.
        reference: The paths to compare with, cut to the sessions of the runs.

    Returns:
        Mean absolute difference over sessions and both stocks, in percentage points.

    Source:
        Shachi (2025), Table 1 and Appendix B.1.7 (without the unit).
    """
    errors: list[np.ndarray] = []
    for stock in STOCKS:
        changes = np.mean([session_changes(run[stock]) for run in runs], axis=0)
        reference_changes = session_changes(reference[stock])[: len(changes)]
        errors.append(np.abs(changes[: len(reference_changes)] - reference_changes))
    return float(np.mean(errors))


def gemini_paths() -> Paths:
    """Load the prices of the StockAgent authors' run with Gemini-Pro: 50 traders, 43 days of three sessions."""
    with GEMINI.open(encoding="utf-8") as file:
        closes = pd.read_csv(file)
    return {stock: [FIRST_PRICES[stock], *closes[f"price_{stock}"]] for stock in STOCKS}


ORDER_ACTIONS = ("buy", "sell")
"""Actions that place an order, named as the sides of the book."""

FORECAST_ITEMS = {"buy_a": ("buy", "A"), "buy_b": ("buy", "B"), "sell_a": ("sell", "A"), "sell_b": ("sell", "B")}
"""Field of a forecast → side and stock of the predicted order."""


class TurnCounts(NamedTuple):
    """Use of the traders' turns in one session."""

    day: int
    session: int
    traders: int
    """Number of traders who had a turn."""

    orders: int
    """Number of traders who placed an order."""

    refusals: int
    """Number of traders with a refused order and no other."""

    failures: int
    """Number of traders without a usable reply."""

    abstentions: int
    """Number of traders who chose no order."""


def turn_counts_of(
    now: Moment, traders: Sequence[int], outcomes: Mapping[int, Sequence[Outcome]], failed: set[int]
) -> TurnCounts:
    """Count the use of the traders' turns in a session.

    Args:
        now: The session.
        traders: Ids of the traders who had a turn.
        outcomes: Id of a trader → outcomes of its actions.
        failed: Ids of the traders without a usable reply.
    """
    counts = Counter(_kind(outcomes.get(trader, ()), trader in failed) for trader in traders)
    return TurnCounts(now.day, now.session, len(traders), **{name: counts[name] for name in KINDS})


KINDS = ("orders", "refusals", "failures", "abstentions")
"""Fields of `TurnCounts` that add up to the number of traders."""


def _kind(outcomes: Sequence[Outcome], has_failed: bool) -> str:
    if any(outcome.ok and outcome.action in ORDER_ACTIONS for outcome in outcomes):
        return "orders"
    if has_failed:
        return "failures"
    return "refusals" if any(not outcome.ok for outcome in outcomes) else "abstentions"


def turns_table(counts: Iterable[TurnCounts]) -> pd.DataFrame:
    """Return one row per session: the fields of `TurnCounts`, and those of `KINDS` as shares of the traders."""
    table = pd.DataFrame(list(counts), columns=list(TurnCounts._fields))
    for name in KINDS:
        table[f"{name[:-1]}_share"] = table[name] / table["traders"].where(table["traders"] > 0)
    return table


def orders_table(history: History, traders: Iterable[int]) -> pd.DataFrame:
    """Return one row for each trader, stock and side.

    Args:
        history: History of the exchange.
        traders: Ids of all traders with an account.

    Returns:
        Columns `trader`, `stock`, `side`, `orders`, `shares` (ordered), `traded` (shares), `cancellations` (orders) and
        `fill_ratio` (traded per ordered; NaN without orders).
    """
    orders, cancellations = Counter[tuple[int, str, str]](), Counter[tuple[int, str, str]]()
    shares, traded = (defaultdict[tuple[int, str, str], float](float) for _ in range(2))
    for order in history.orders:
        key = (order.trader, order.stock, order.side)
        orders[key] += 1
        shares[key] += order.quantity
    for trade in history.trades:
        traded[trade.buyer, trade.stock, "buy"] += trade.quantity
        traded[trade.seller, trade.stock, "sell"] += trade.quantity
    for cancellation in history.cancellations:
        cancellations[cancellation.trader, cancellation.stock, cancellation.side] += 1
    keys = [(trader, stock, side) for trader in traders for stock in STOCKS for side in ORDER_ACTIONS]
    rows = [(*key, orders[key], shares[key], traded[key], cancellations[key]) for key in keys]
    names = ["trader", "stock", "side", "orders", "shares", "traded", "cancellations"]
    table = pd.DataFrame(rows, columns=names)
    table["fill_ratio"] = table["traded"] / table["shares"].where(table["shares"] > 0)
    return table


def forecasts_table(history: History, last_day: int) -> pd.DataFrame:
    """Compare the traders' forecasts with their actions on the next day.

    Args:
        history: History of the exchange.
        last_day: Last complete day of trading. Forecasts for later days are omitted.

    Returns:
        One row for each of `buy_a`, `buy_b`, `sell_a`, `sell_b` and `take_loan`, with the columns `forecasts`,
        `expected` (number of positive forecasts), `done` (number of traders who did it), `both`, and `right` (share of
        correct forecasts).
    """
    expired = [forecast for forecast in history.forecasts if forecast.day < last_day]
    acts = {(order.day, order.trader, order.side, order.stock) for order in history.orders}
    loans = {(loan.day, loan.trader) for loan in history.loans}

    def is_done(forecast: ActionForecast, item: str) -> bool:
        when = (forecast.day + 1, forecast.trader)
        return when in loans if item == "take_loan" else (*when, *FORECAST_ITEMS[item]) in acts

    rows: list[tuple[str, int, int, int, int, float]] = []
    for item in (*FORECAST_ITEMS, "take_loan"):
        pairs = [(bool(getattr(forecast, item)), is_done(forecast, item)) for forecast in expired]
        right = sum(expected == done for expected, done in pairs) / len(pairs) if pairs else float("nan")
        counts = (sum(expected for expected, _ in pairs), sum(done for _, done in pairs), sum(map(all, pairs)))
        rows.append((item, len(pairs), *counts, right))
    return pd.DataFrame(rows, columns=["item", "forecasts", "expected", "done", "both", "right"])


def styles_table(holdings: Iterable[tuple[Holding, bool]], history: History) -> pd.DataFrame:
    """Return results by investing style.

    Args:
        holdings: Each trader's holding, and whether it has left.
        history: History of the exchange.

    Returns:
        One row per style: `traders`, `departures`, mean `property` and `profit` of the remaining traders, `orders` and
        `loans` per trader.
    """
    orders, loans = Counter(order.trader for order in history.orders), Counter(loan.trader for loan in history.loans)
    rows = [
        (
            holding.style,
            has_left,
            None if has_left else holding.property,
            None if has_left else holding.profit,
            orders[holding.trader],
            loans[holding.trader],
        )
        for holding, has_left in holdings
    ]
    names = ["style", "departures", "property", "profit", "orders", "loans"]
    grouped = pd.DataFrame(rows, columns=names).astype({"property": float, "profit": float}).groupby("style")
    sums = {"departures": "sum", "property": "mean", "profit": "mean", "orders": "mean", "loans": "mean"}
    table = grouped.agg(sums)
    table.insert(0, "traders", grouped.size())
    return table.reset_index()
