"""The page of the auction: `mesa-llm app models/mesa_llm_models/auction_arena/app.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import solara
from mesa.visualization.utils import update_counter
from reacton import use_state
from solara.core import component

from mesa_llm.charts import COLOURS, GREY, PALE, Chart, ChartSeries
from mesa_llm.model.scenario import controls
from mesa_llm.viz import Clickable, LLMPage, drawn_by, steady
from mesa_llm_models.auction_arena.model import LOTS, AuctionArena
from mesa_llm_models.auction_arena.policies import TWINS
from mesa_llm_models.auction_arena.world import Auction, BidderAccount, Bidding, BidRecord, Sale

TEMPLATES = Path(__file__).parent / "templates"

WANTS = {"maximize_profit": "profit", "maximize_items": "lots"}
"""Desire → its name on the page."""

SHADES = {1: 10, 2: 25, 3: 40}
"""Priority → strength of its colour, in percent."""


@component
def LotByLot(model: AuctionArena) -> None:
    """Show the latest lot, or an earlier one: bids round by round, the winner, the true value.

    Args:
        model: The model.
    """
    update_counter.get()
    picked, pick = use_state("newest")
    with steady(model):
        auction = model.auction
        numbers = [str(number) for number in range(len(auction.sales), 0, -1)]
        newest = len(auction.sales) + (auction.stage == "bid" and bool(auction.auctioneer.bidding.rounds))
        choice = picked if picked in numbers else "newest"
        number = newest if choice == "newest" else int(choice)
        lot = lot_view(auction, number)
        step = (len(model.auctions) - 1) * len(auction.auctioneer.lots) + number
    solara.Select("Lot", values=["newest", *numbers], value=choice, on_value=pick, dense=True)
    Clickable(TEMPLATES / "lot.html", model, lot=lot, step=step)


@component
def Bidders(model: AuctionArena) -> None:
    """Show every bidder's standing.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        views = bidder_views(model)
        count, of = len(model.auctions), model.scenario.n_auctions
    title = f"Bidders, in auction {count} of {of}" if of > 1 else "Bidders"
    Clickable(TEMPLATES / "bidders.html", model, title=title, bidders=views, is_rated=of > 1)


@component
def Minds(model: AuctionArena) -> None:
    """Show every bidder's plans and beliefs.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        views = {**plan_views(model.auction), **belief_views(model.auction)}
    Clickable(TEMPLATES / "plans.html", model, shades=SHADES, **views)


def price_chart(model: AuctionArena) -> Chart:
    """Return true value, price and first price of every lot so far; the price has its winner's colour."""
    auction: Auction = model.auction
    lots = [lot.name for lot in auction.auctioneer.lots]
    sales = list(auction.sales)
    won = [(float(index), sale) for index, sale in enumerate(sales) if sale.winner is not None]
    names = {agent_id: account.bidder.name for agent_id, account in auction.accounts.items()}
    prices = ChartSeries(
        name="price paid",
        values=[sale.price for _, sale in won],
        at=[index for index, _ in won],
        kind="bar",
        colour=COLOURS[0],
        colours=[colour_of(model, sale.winner) for _, sale in won if sale.winner is not None],
        labels=[f"bought by {names[sale.winner]}" for _, sale in won if sale.winner is not None],
    )
    values = ChartSeries(name="true value", values=[sale.lot.true_value for sale in sales], kind="bar", colour=PALE)
    starts = [sale.lot.start for sale in sales]
    start = ChartSeries(name="first price", values=starts, kind="point", shape="|", colour=GREY)
    return Chart(
        title="Price of each lot, in its winner's colour",
        series=[values, prices, start],
        names=lots,
        x="Lot",
        unit="dollars",
        high=1.05 * max(lot.true_value for lot in auction.auctioneer.lots),
    )


def account_chart(title: str, amounts_of: Callable[[BidderAccount], Sequence[int]]) -> Any:
    """Return a component that draws an amount of everyone, lot by lot.

    Args:
        title: Title of the chart.
        amounts_of: Returns the amount of a bidder before the first lot, and after each.
    """

    def draw(model: AuctionArena) -> Chart:
        series = [
            ChartSeries(name=account.bidder.name, values=amounts_of(account), colour=colour_of(model, agent_id))
            for agent_id, account in model.auction.accounts.items()
        ]
        is_zero = not any(end for each in series for end in each.ends)
        return Chart(title=title, series=series, x="Lots sold", unit="dollars", high=1000 if is_zero else None)

    return drawn_by(draw)


@dataclass(frozen=True, slots=True)
class BidCell:
    """The bid of one bidder in one round."""

    bid: int | None
    """Dollars; None without a bid."""

    word: str
    """Text shown without a bid."""

    refused: int
    """Number of answers refused before it."""

    leads: bool
    """Whether it leads after the round."""


def colour_of(model: Any, agent_id: int) -> str:
    """Return the colour of a bidder.

    Args:
        model: The model.
        agent_id: Mesa `unique_id` of the bidder.
    """
    return COLOURS[list(model.bidders).index(agent_id) % len(COLOURS)]


def lot_view(auction: Auction, number: int) -> dict[str, Any] | None:
    """Return one lot with its bids round by round and, once sold, its value.

    Args:
        auction: The auction.
        number: Number of the lot, from 1; the one after the sold lots is the current one.

    Returns:
        Values for the template; None if the lot is still to come.
    """
    sale = auction.sales[number - 1] if 1 <= number <= len(auction.sales) else None
    if sale is None and (auction.stage != "bid" or number != len(auction.sales) + 1):
        return None
    bidding = auction.auctioneer.bidding if sale is None else sale.bidding
    return {
        "number": number,
        "count": len(auction.auctioneer.lots),
        "name": bidding.lot.name,
        "start": bidding.start,
        "price": _top(bidding) if sale is None else sale.price,
        "paid": _paid(auction, sale, bidding),
        "true_value": None if sale is None else bidding.lot.true_value,
        "profit": None if sale is None or sale.price is None else bidding.lot.true_value - sale.price,
        "bidders": {agent_id: account.bidder.name for agent_id, account in auction.accounts.items()},
        "rounds": [_cells(auction, bids) for bids in bidding.rounds],
    }


def _top(bidding: Bidding) -> int | None:
    return None if bidding.standing.leader is None else bidding.standing.top


def _paid(auction: Auction, sale: Sale | None, bidding: Bidding) -> str:
    leader = bidding.standing.leader
    if leader is None:
        return "nobody bid" if sale is not None else "no bid yet"
    return f"{'paid' if sale is not None else 'bid so far'} by {auction.accounts[leader].bidder.name}"


def _cells(auction: Auction, bids: tuple[BidRecord, ...]) -> list[BidCell]:
    by_bidder = {bid.bidder: bid for bid in bids}
    leader = bids[-1].standing.leader if bids else None
    cells: list[BidCell] = []
    for agent_id in auction.accounts:
        bid = by_bidder.get(agent_id)
        n_refused = sum(attempt.fault is not None for attempt in bid.attempts) if bid else 0
        word = "out" if bid else "leading" if agent_id == leader else "–"
        cells.append(BidCell(bid.amount if bid else None, word, n_refused, agent_id == leader))
    return cells


def bidder_views(model: Any) -> list[dict[str, Any]]:
    """Return every bidder's standing, by seat."""
    accounts: Mapping[int, BidderAccount] = model.auction.accounts
    best = max(account.profit for account in accounts.values())
    return [
        {
            "agent": agent_id,
            "name": account.bidder.name,
            "colour": colour_of(model, agent_id),
            "llm": thinks_with(model, agent_id),
            "desire": WANTS[account.bidder.desire],
            "budget": account.budget,
            "wins": len(account.wins),
            "profit": account.profit,
            "is_best": account.profit == best and bool(model.auction.sales),
            "rating": model.ratings[account.bidder.name],
        }
        for agent_id, account in accounts.items()
    ]


def thinks_with(model: Any, agent_id: int) -> str:
    """Return the name of a bidder's rule twin or language model."""
    language_model = model.bidders[agent_id].opened
    if language_model.llm is None:
        return f"rule: {model.seats[list(model.bidders).index(agent_id)].twin}"
    return language_model.name


def plan_views(auction: Auction) -> dict[str, Any]:
    """Return every bidder's current plan: a priority for each remaining lot."""
    lots = [lot.name for lot in auction.auctioneer.lots[len(auction.sales) :]]
    plans = [
        {
            "agent": agent_id,
            "name": account.bidder.name,
            "cells": [account.priorities.get(lot, "") for lot in lots],
            "count": len(account.plans),
            "changes": sum(plan.is_change for plan in account.plans),
        }
        for agent_id, account in auction.accounts.items()
    ]
    return {"lots": lots, "plans": plans, "note": "" if lots else "All lots have come up."}


def belief_views(auction: Auction) -> dict[str, Any]:
    """Return every bidder's beliefs, beside the auctioneer's accounts."""
    names = [account.bidder.name for account in auction.accounts.values()]
    true = {account.bidder.name: account.profit for account in auction.accounts.values()}
    beliefs: list[dict[str, Any]] = []
    for agent_id, account in auction.accounts.items():
        belief, counts = account.belief, account.beliefs
        profits = belief.get("total_profits", {})
        cells = [_believed(belief.get("remaining_budget"), account.budget)]
        cells += [_believed(profits.get(name), true[name]) for name in names]
        beliefs.append(
            {
                "agent": agent_id,
                "name": account.bidder.name,
                "cells": cells,
                "self_wrong": f"{counts.self_errors} of {counts.self_checks}",
                "other_wrong": f"{counts.other_errors} of {counts.other_checks}",
                "refused": f"{account.failed_bids} of {account.bid_calls}",
            }
        )
    return {"names": names, "beliefs": beliefs}


def _believed(dollars: Any, true: int) -> dict[str, Any]:
    text = "–" if dollars is None else f"${dollars:,.0f}".replace("$-", "−$")
    return {"text": text, "is_wrong": dollars != true}


prices = drawn_by(price_chart)
profits = account_chart("Profit after each lot", lambda account: account.profits)
budgets = account_chart("Money left after each lot", lambda account: account.budgets)

OFFERED: dict[str, Any] = {
    "lots": {"type": "Select", "label": "List of lots", "value": "paper", "values": list(LOTS)},
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
}
"""Controls for the settings by seat and the lots, with some of their possible values."""

page = LLMPage(
    AuctionArena,
    model_params={**controls(AuctionArena), **OFFERED},
    components=[LotByLot, Bidders, prices, profits, budgets, (Minds, "Agents", "Plans and beliefs")],
    name="Auction",
)
