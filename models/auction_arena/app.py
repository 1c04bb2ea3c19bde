"""The page of the auction: `solara run models/auction_arena/app.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import solara
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from mesa.visualization.utils import update_counter
from reacton import use_state
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, drawn_by, finish, steady
from mesa_llm.worlds.auction import Auction
from models.auction_arena.model import AuctionArena
from models.auction_arena.opening import LOTS
from models.auction_arena.shown import COLOURS, belief_views, bidder_views, colour_of, lot_view, plan_views
from models.auction_arena.twins import TWINS

TEMPLATES = Path(__file__).parent / "templates"

DOLLARS = StrMethodFormatter("${x:,.0f}")

PRIORITY_COLOURS = {1: "#f1f5f9", 2: "#bfdbfe", 3: "#60a5fa"}


@component
def LotByLot(model: AuctionArena) -> None:
    """Show a lot: bids round by round, the winner, the true value; the newest, or any before.

    Args:
        model: The model.
    """
    update_counter.get()
    picked, pick = use_state("newest")
    with steady(model):
        auction = model.auction
        numbers = [str(number) for number in range(len(auction.sales), 0, -1)]
        newest = len(auction.sales) + (auction.stage == "bid" and bool(auction.auctioneer.bidding.rounds))
        shown = picked if picked in numbers else "newest"
        lot = lot_view(auction, newest if shown == "newest" else int(shown))
    solara.Select("Lot", values=["newest", *numbers], value=shown, on_value=pick, dense=True)
    Markup(TEMPLATES / "lot.html", lot=lot)


@component
def Bidders(model: AuctionArena) -> None:
    """Show how every bidder stands.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        views = bidder_views(model)
        count, of = len(model.auctions), model.n_auctions
    title = f"Bidders, in auction {count} of {of}" if of > 1 else "Bidders"
    Markup(TEMPLATES / "bidders.html", title=title, bidders=views, is_rated=of > 1)


@component
def Minds(model: AuctionArena) -> None:
    """Show plans and beliefs of every bidder.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        views = {**plan_views(model.auction), **belief_views(model.auction)}
    Markup(TEMPLATES / "plans.html", colours=PRIORITY_COLOURS, **views)


def draw_prices(model: AuctionArena, axes: Any) -> None:
    """Draw price and true value of every lot that has come up, in the colour of its winner."""
    auction: Auction = model.auction
    for place, sale in enumerate(auction.sales):
        axes.bar(place, sale.lot.true_value, width=0.8, color="#e2e8f0", zorder=2)
        axes.plot([place - 0.4, place + 0.4], [sale.lot.start] * 2, color="#475569", linewidth=1.5, zorder=4)
        if sale.winner is not None:
            axes.bar(place, sale.price, width=0.5, color=colour_of(model, sale.winner), zorder=3)
    lots = [lot.name for lot in auction.auctioneer.lots]
    axes.set_xticks(range(len(lots)), lots, rotation=35, ha="right", fontsize=9)
    axes.set_xlim(-0.6, len(lots) - 0.4)
    axes.set_ylim(0, 1.05 * max(lot.true_value for lot in auction.auctioneer.lots))


def draw_profits(model: AuctionArena, axes: Any) -> None:
    """Draw everybody's profit, lot by lot."""
    for number, account in model.auction.accounts.items():
        _draw_line(axes, account.profits, account.bidder.name, colour_of(model, number))


def draw_budgets(model: AuctionArena, axes: Any) -> None:
    """Draw everybody's money left, lot by lot."""
    for number, account in model.auction.accounts.items():
        _draw_line(axes, account.budgets, account.bidder.name, colour_of(model, number))


def _draw_line(axes: Any, values: list[int], name: str, colour: str) -> None:
    axes.plot(range(len(values)), values, color=colour, label=name)
    axes.legend()


def plot(draw: Callable[[AuctionArena, Any], None], post: Callable[[Any], None]) -> Any:
    """Make a component that draws something of the auction.

    Args:
        draw: Draws on axes.
        post: Finishes the axes.
    """

    def figure_of(model: AuctionArena) -> Figure:
        figure = Figure()
        axes = figure.subplots()
        draw(model, axes)
        post(axes)
        return figure

    return drawn_by(figure_of)


def finish_bars(axes: Any) -> None:
    """Finish the bars of the prices."""
    axes.set_title("Price by winner; grey: true value, line: start", loc="left", fontsize=13, color="#475569")
    axes.grid(axis="y", color="#e2e8f0", zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors="#475569", length=0)
    axes.yaxis.set_major_formatter(DOLLARS)
    axes.get_figure().set_size_inches(7, 3.6)


def finish_lines(title: str) -> Callable[[Any], None]:
    """Make what finishes lines that go from lot to lot.

    Args:
        title: What the plot shows.
    """
    common = finish(title)

    def finished(axes: Any) -> None:
        common(axes)
        axes.set_xlim(-0.2, max(len(axes.lines[0].get_xdata()) - 0.8, 1.2))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(DOLLARS)
        axes.set_xlabel("lots sold", color="#475569")
        if axes.get_ylim()[1] <= 1:  # nobody has gained anything yet
            axes.set_ylim(0, 1000)

    return finished


prices = plot(draw_prices, finish_bars)
profits = plot(draw_profits, finish_lines("Profit after each lot"))
budgets = plot(draw_budgets, finish_lines("Money left after each lot"))

model_params = {
    "n_agents": {"type": "SliderInt", "label": "Bidders", "value": 3, "min": 2, "max": len(COLOURS), "step": 1},
    "twins": {
        "type": "Select",
        "label": "Rules of those who bid by rule",
        "value": "rule,value,shade",
        "values": ["rule,value,shade", "rule,zero,pacing", "naive,value", *TWINS],
    },
    "budget": {
        "type": "SliderInt",
        "label": "Money of each, $",
        "value": 20_000,
        "min": 5_000,
        "max": 60_000,
        "step": 1_000,
    },
    "desire": {
        "type": "Select",
        "label": "Bidders want",
        "value": "maximize_profit",
        "values": ["maximize_profit", "maximize_items", "maximize_profit,maximize_items"],
    },
    "overestimate_percent": {
        "type": "SliderInt",
        "label": "Lots are overestimated by, %",
        "value": 10,
        "min": 0,
        "max": 100,
        "step": 5,
    },
    "lots": {"type": "Select", "label": "List of lots", "value": "paper", "values": list(LOTS)},
    "order": {
        "type": "Select",
        "label": "Order of lots",
        "value": "random",
        "values": ["random", "ascending", "descending", "listed"],
    },
    "tie": {"type": "Select", "label": "Equal bids", "value": "uniform", "values": ["uniform", "scan"]},
    "rules": {"type": "Select", "label": "Rules", "value": "corrected", "values": ["corrected", "original"]},
    "n_auctions": {"type": "SliderInt", "label": "Auctions", "value": 1, "min": 1, "max": 20, "step": 1},
    "learning": {"type": "Checkbox", "label": "Learn from auction to auction", "value": False},
}

page = LLMPage(
    AuctionArena,
    model_params=model_params,
    components=[LotByLot, Bidders, prices, profits, budgets, (Minds, "Plans and beliefs")],
    name="Auction",
)
