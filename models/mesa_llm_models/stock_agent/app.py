"""The page of the stock exchange: `mesa-llm app models/mesa_llm_models/stock_agent/app.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.charts import Chart
from mesa_llm.viz import Clickable, LLMPage, Row, drawn_by, steady, table_of
from mesa_llm_models.stock_agent.charts import book_chart, price_chart, profit_chart, trading_chart
from mesa_llm_models.stock_agent.model import StockAgentModel
from mesa_llm_models.stock_agent.world import OFFICIAL, Exchange

FORUM = Path(__file__).parent / "templates" / "forum.html"


def of_exchange(draw: Callable[[Exchange], Chart]) -> Any:
    """Return a component that shows the exchange of a model as a chart."""
    return drawn_by(lambda model: draw(model.world))


@component
def Forum(model: StockAgentModel) -> None:
    """Show the posts and announcements currently on the forum.

    Args:
        model: The model.
    """
    update_counter.get()
    world = model.world
    with steady(model):
        values = forum_values(world)
    Clickable(FORUM, model, **values)


def forum_values(world: Exchange) -> dict[str, Any]:
    """Return the forum as values for the template; each day ends with the step of its posts."""
    posts = world.facts(min(world.market.accounts)).posts
    steps_a_day = world.calendar.sessions + 3
    return {
        "posts": [{"post": post, "step": post.day * steps_a_day} for post in posts],
        "is_pushed": world.screen.shows_posts,
        "official": OFFICIAL,
    }


def trader_cells(model: StockAgentModel) -> list[Row]:
    """List every trader's assets and debts at the latest prices. Profit deducts debts, property does not."""
    market = model.world.market
    rows: list[Row] = [
        Row(
            (
                f"Trader {one.trader}",
                one.style,
                *(f"{value:,.0f}" for value in (one.cash, one.a, one.b, one.debt, one.property)),
                f"{one.profit:+,.0f}",
            ),
            agent=one.trader,
        )
        for one in market.portfolios()
    ]
    departed = [account.trader for account in market.accounts.values() if account.has_left]
    gone = [Row((f"Trader {trader}", "insolvent, has left", *[""] * 6), "failed", trader) for trader in departed]
    return rows + gone


COLUMNS = ("Trader", "Style", "Cash", "A", "B", "Debt", "Property", "Profit less debts")

page = LLMPage(
    StockAgentModel,
    components=[
        of_exchange(price_chart),
        of_exchange(profit_chart),
        of_exchange(partial(book_chart, stock="A")),
        of_exchange(partial(book_chart, stock="B")),
        of_exchange(trading_chart),
        (table_of(trader_cells, COLUMNS, nothing="There are no traders.", max_rows=1000), "Data", "Traders"),
        (Forum, "Data", "Forum"),
    ],
    name="Stock exchange",
)
