"""A small exchange and random orders, for the tests of the exchange."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from mesa_llm.errors import ToolError
from mesa_llm.records import Event
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm_models.stock_agent.world.book import Side
from mesa_llm_models.stock_agent.world.lending import Lending
from mesa_llm_models.stock_agent.world.matching import TradingRules
from mesa_llm_models.stock_agent.world.rules import StockMarket
from mesa_llm_models.stock_agent.world.state import Calendar, Endowment, Moment, Stock, TradingAccount
from mesa_llm_models.stock_agent.world.world import Exchange

TRADERS = 4

NOW = Moment(1, "trade", 1)


class Wish(NamedTuple):
    """An order that someone may not be able to pay."""

    trader: int
    side: Side
    quantity: int
    price: float


wishes = st.lists(
    st.builds(
        Wish,
        st.integers(1, TRADERS),
        st.sampled_from(("buy", "sell")),
        st.integers(1, 60),
        st.sampled_from((29.0, 29.5, 30.0, 30.1, 31.0)),
    ),
    max_size=60,
)


def endowment(trader: int, cash: float = 3000.0, a: float = 100, b: float = 50) -> Endowment:
    return Endowment(trader, "Balanced", cash, {"A": a, "B": b})


def market_of(rules: TradingRules, cash: float = 3000.0) -> StockMarket:
    return StockMarket([endowment(trader, cash) for trader in range(1, TRADERS + 1)], rules, Lending())


def is_covered(account: TradingAccount, wish: Wish, stock: Stock = "A") -> bool:
    """Tell what every rule set asks of an order when it is placed."""
    if wish.side == "buy":
        return wish.quantity * wish.price <= account.cash
    return wish.quantity <= account.shares[stock]


def place(market: StockMarket, wish: Wish) -> bool:
    """Place an order for A if it is covered now; tell whether it was."""
    if not is_covered(market.accounts[wish.trader], wish):
        return False
    market.place(NOW, wish.trader, "A", wish.side, wish.quantity, wish.price)
    return True


def total(market: StockMarket, stock: Stock = "A") -> tuple[float, float]:
    """Add up the cash, fees included, and the shares of all traders."""
    accounts = market.accounts.values()
    return sum(one.cash for one in accounts) + market.fees_paid, sum(one.shares[stock] for one in accounts)


def refusal(call: Callable[..., Any], *arguments: Any) -> str:
    """Give the words in which an action is refused; empty if it is not."""
    try:
        call(*arguments)
    except ToolError as error:
        return str(error)
    return ""


def exchange(traders: int = 3, days: int = 2, sessions: int = 2, **settings: Any) -> Exchange:
    starts = [endowment(trader) for trader in range(1, traders + 1)]
    return Exchange(starts, random.Random(1), calendar=Calendar(days, sessions), **settings)


def go_to(world: Exchange, stage: str) -> list[Event]:
    """End stages until the given one; give what was told meanwhile."""
    events = world.end_step()
    while world.now.stage != stage:
        events += world.end_step()
    return events


def offered(world: Exchange, trader: int) -> list[str]:
    """Name the tools and actions that a trader may use now."""
    return list(ToolBox.of(object(), trader, [world]).only(world.observe(trader).tools).usable)
