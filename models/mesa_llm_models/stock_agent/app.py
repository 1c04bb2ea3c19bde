"""The page of the stock exchange: `mesa-llm app models/mesa_llm_models/stock_agent/app.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, drawn_by, steady
from mesa_llm.worlds.exchange import OFFICIAL, Exchange
from mesa_llm_models.stock_agent.charts import book_figure, price_figure, profit_figure, trading_figure
from mesa_llm_models.stock_agent.model import StockAgentModel

TEMPLATES = Path(__file__).parent / "templates"


def of_exchange(draw: Callable[[Exchange], Figure]) -> Any:
    """Return a component that shows the exchange of a model as a figure."""
    return drawn_by(lambda model: draw(model.world))


@component
def Forum(model: StockAgentModel) -> None:
    """Show the posts and announcements on the forum now.

    Args:
        model: The model.
    """
    update_counter.get()
    world = model.world
    with steady(model):
        posts = world.facts(min(world.market.accounts)).posts
    Markup(TEMPLATES / "forum.html", posts=posts, is_pushed=world.screen.shows_posts, official=OFFICIAL)


@component
def Traders(model: StockAgentModel) -> None:
    """Show the assets and debts of every trader.

    Args:
        model: The model.
    """
    update_counter.get()
    market = model.world.market
    with steady(model):
        holdings = market.portfolios()
        departed = [account.trader for account in market.accounts.values() if account.has_left]
    Markup(TEMPLATES / "traders.html", holdings=holdings, left=departed)


page = LLMPage(
    StockAgentModel,
    components=[
        of_exchange(price_figure),
        of_exchange(book_figure),
        of_exchange(trading_figure),
        of_exchange(profit_figure),
        (Traders, "Traders"),
        (Forum, "Forum"),
    ],
    name="Stock exchange",
)
