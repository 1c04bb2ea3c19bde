"""What is measured of an exchange: sessions as a table, price changes, and how far two runs' changes lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources

import numpy as np
import pandas as pd

from mesa_llm.worlds.exchange import FIRST_PRICES, STOCKS, Close, Stock

Paths = Mapping[Stock, Sequence[float]]
"""Prices by stock: the one before the first session, then one a session."""

GEMINI = resources.files("models.stock_agent").joinpath("data", "gemini_closes.csv")


def sessions_table(closes: Sequence[Close]) -> pd.DataFrame:
    """Give one row a session: day, session, and for each stock how the session went.

    Args:
        closes: The world's closes, oldest first.

    Returns:
        Columns `day`, `session`, and with `_A` and `_B`: `price`, `change` (percent of the session before), `fills`,
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
    """Give best ask less best bid at a close, in money a share; None where a side is empty."""
    if close.best_ask is None or close.best_bid is None:
        return None
    return close.best_ask - close.best_bid


def session_changes(path: Sequence[float]) -> np.ndarray:
    """Give the price change of each session against the one before, in percent, shape `(sessions,)`."""
    prices = np.asarray(path, dtype=float)
    return 100 * (prices[1:] / prices[:-1] - 1)


def total_change(prices: Sequence[float]) -> float:
    """Give the change from the first to the last of some prices, in percent.

    Over the session prices (`path[1:]`) its mean of both stocks is what Shachi calls volatility.

    Source:
        Shachi (2025), Table 2.
    """
    return 100 * (prices[-1] / prices[0] - 1)


def changes_error(runs: Sequence[Paths], reference: Paths) -> float:
    """Say how far the price changes of several runs, averaged over the runs, lie from those of a reference.

    Args:
        runs: Price paths of each run, of equal length.
        reference: The paths to compare with; only as many sessions as the runs have count.

    Returns:
        Mean absolute difference over sessions and both stocks, in percentage points.

    Source:
        Shachi (2025), Table 1 and Appendix B.1.7 (its unit is not stated there).
    """
    errors: list[np.ndarray] = []
    for stock in STOCKS:
        ours = np.mean([session_changes(run[stock]) for run in runs], axis=0)
        theirs = session_changes(reference[stock])[: len(ours)]
        errors.append(np.abs(ours[: len(theirs)] - theirs))
    return float(np.mean(errors))


def gemini_paths() -> Paths:
    """Give the prices of the StockAgent authors' run with Gemini-Pro: 50 traders, 43 days of three sessions."""
    with GEMINI.open(encoding="utf-8") as file:
        closes = pd.read_csv(file)
    return {stock: [FIRST_PRICES[stock], *closes[f"price_{stock}"]] for stock in STOCKS}
