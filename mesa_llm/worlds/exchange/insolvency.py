"""What happens to a trader whose cash a payment has taken below zero."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from mesa_llm.worlds.exchange.accounts import STOCKS, Account, Stock


class Liquidation(NamedTuple):
    """One forced sale, or one insolvent trader's leaving."""

    day: int
    """Day, before trading."""

    trader: int
    """Who had to sell."""

    cash_before: float
    """Cash before, below 0."""

    a_before: float
    """Shares of A before."""

    b_before: float
    """Shares of B before."""

    cash: float
    """Cash afterwards."""

    a: float
    """Shares of A afterwards."""

    b: float
    """Shares of B afterwards."""

    has_left: bool
    """Whether the trader was insolvent and left; nothing was sold then."""


def liquidate(account: Account, prices: Mapping[Stock, float]) -> bool:
    """Sell a marked trader's shares until its cash is not negative, A first; or let it leave.

    The shares leave the market: nobody buys them, and no price moves. A trader whose cash and shares are
    worth less than nothing leaves with all its debts.

    Returns:
        True if the trader is insolvent and has left.
    """
    if account.property_at(prices) < 0:
        account.has_left = True
        return True
    for stock in STOCKS:
        if account.cash < 0:
            _sell_for(account, stock, prices[stock])
    # Only rounding is left: the worth was not negative.
    account.cash = max(account.cash, 0.0)
    account.is_marked = False
    return False


def _sell_for(account: Account, stock: Stock, price: float) -> None:
    """Sell as many whole shares as bring cash back to 0, or all there are.

    Under the original rules shares can be fractions; where its whole number exceeds them the original program
    stops with an error, and all of them are sold here.
    """
    held = account.shares[stock]
    sold = min(math.ceil(-account.cash / price), held) if held * price >= -account.cash else held
    account.shares[stock] -= sold
    account.cash += sold * price


def liquidation_of(day: int, account: Account, prices: Mapping[Stock, float]) -> Liquidation:
    """Settle a marked trader and write down what happened; see `liquidate`."""
    before = (account.cash, account.shares["A"], account.shares["B"])
    has_left = liquidate(account, prices)
    after = (account.cash, account.shares["A"], account.shares["B"])
    return Liquidation(day, account.trader, *before, *after, has_left)
