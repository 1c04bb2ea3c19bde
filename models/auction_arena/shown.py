"""What a page shows of an auction, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mesa_llm.worlds.auction import Account, Auction, BidRecord, Sale
from mesa_llm.worlds.auction.bidding import Bidding

COLOURS = ("#2563eb", "#f97316", "#16a34a", "#7c3aed", "#db2777", "#0891b2", "#ca8a04", "#475569", "#dc2626", "#65a30d")
"""Colours of bidders, in the order in which they were created; after the last, the first again."""

WANTS = {"maximize_profit": "profit", "maximize_items": "lots"}
"""Desire → what a page calls it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one bidder did in one round."""

    bid: int | None
    """Dollars; None: no bid."""

    word: str
    """What is shown where there is no bid."""

    refused: int
    """Answers that were refused before."""

    leads: bool
    """Whether it leads after the round."""


def colour_of(model: Any, bidder: int) -> str:
    """Give the colour of a bidder.

    Args:
        model: The model.
        bidder: Mesa `unique_id`.
    """
    return COLOURS[list(model.bidders).index(bidder) % len(COLOURS)]


def lot_view(auction: Auction, number: int) -> dict[str, Any] | None:
    """Show one lot: what was bid round by round and, if it has come up, what it is worth.

    Args:
        auction: The auction.
        number: Which lot, from 1; the one after those that were sold is being auctioned now.

    Returns:
        What the template shows; None if the lot has not come up.
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
        "bidders": [account.bidder.name for account in auction.accounts.values()],
        "rounds": [_cells(auction, bids) for bids in bidding.rounds],
    }


def _top(bidding: Bidding) -> int | None:
    return None if bidding.standing.leader is None else bidding.standing.top


def _paid(auction: Auction, sale: Sale | None, bidding: Bidding) -> str:
    leader = bidding.standing.leader
    if leader is None:
        return "nobody bid" if sale is not None else "no bid yet"
    return f"{'paid' if sale is not None else 'bid so far'} by {auction.accounts[leader].bidder.name}"


def _cells(auction: Auction, bids: tuple[BidRecord, ...]) -> list[Cell]:
    made = {one.bidder: one for one in bids}
    leader = bids[-1].standing.leader if bids else None
    cells: list[Cell] = []
    for number in auction.accounts:
        one = made.get(number)
        refused = sum(attempt.fault is not None for attempt in one.attempts) if one else 0
        word = "out" if one else "leading" if number == leader else "–"
        cells.append(Cell(one.amount if one else None, word, refused, number == leader))
    return cells


def bidder_views(model: Any) -> list[dict[str, Any]]:
    """Show how every bidder stands, by seat."""
    accounts: Mapping[int, Account] = model.auction.accounts
    best = max(account.profit for account in accounts.values())
    return [
        {
            "name": account.bidder.name,
            "colour": colour_of(model, number),
            "llm": thinks_with(model, number),
            "desire": WANTS[account.bidder.desire],
            "budget": account.budget,
            "wins": len(account.wins),
            "profit": account.profit,
            "is_best": account.profit == best and bool(model.auction.sales),
            "rating": model.ratings[account.bidder.name],
        }
        for number, account in accounts.items()
    ]


def thinks_with(model: Any, bidder: int) -> str:
    """Say what a bidder thinks with: the name of its rule twin, or of its language model."""
    opened = model.bidders[bidder].opened
    if opened.llm is None:
        return f"rule: {model.seats[list(model.bidders).index(bidder)].twin}"
    return opened.name


def plan_views(auction: Auction) -> dict[str, Any]:
    """Show the plan in force of every bidder: a priority for each lot still to come."""
    lots = [lot.name for lot in auction.auctioneer.lots[len(auction.sales) :]]
    plans = [
        {
            "name": account.bidder.name,
            "cells": [account.priorities.get(lot, "") for lot in lots],
            "count": len(account.plans),
            "changes": sum(plan.is_change for plan in account.plans),
        }
        for account in auction.accounts.values()
    ]
    return {"lots": lots, "plans": plans, "said": "" if lots else "All lots have come up."}


def belief_views(auction: Auction) -> dict[str, Any]:
    """Show what every bidder believes, beside the auctioneer's books."""
    names = [account.bidder.name for account in auction.accounts.values()]
    true = {account.bidder.name: account.profit for account in auction.accounts.values()}
    beliefs: list[dict[str, Any]] = []
    for account in auction.accounts.values():
        said, counts = account.belief, account.beliefs
        profits = said.get("total_profits", {})
        cells = [_believed(said.get("remaining_budget"), account.budget)]
        cells += [_believed(profits.get(name), true[name]) for name in names]
        beliefs.append(
            {
                "name": account.bidder.name,
                "cells": cells,
                "self_wrong": f"{counts.self_errors} of {counts.self_checks}",
                "other_wrong": f"{counts.other_errors} of {counts.other_checks}",
                "refused": f"{account.failed_bids} of {account.bid_calls}",
            }
        )
    return {"names": names, "beliefs": beliefs}


def _believed(said: Any, true: int) -> dict[str, Any]:
    return {"text": "–" if said is None else f"${said:,.0f}".replace("$-", "−$"), "is_wrong": said != true}
