"""Says in words how an auction went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesa_llm.text import counted
from mesa_llm.worlds.auction import Auction, Sale

if TYPE_CHECKING:
    from models.auction_arena.model import AuctionArena


def tell(model: AuctionArena) -> str:
    """Tell how the present auction went so far, lot by lot, and how everybody did.

    Args:
        model: The model, after a run.
    """
    lines: list[str] = []
    if len(model.auctions) > 1:
        lines.append(f"Auction {len(model.auctions)} of {model.n_auctions}; ratings so far:")
        ranked = sorted(model.ratings.items(), key=lambda item: -item[1].mu)
        lines += [f"  {name}: TrueSkill {rating.mu:.1f} ± {rating.sigma:.1f}" for name, rating in ranked]
    return "\n".join([*lines, tell_auction(model.auction)])


def tell_auction(auction: Auction) -> str:
    """Tell how the lots of an auction went so far, one line each, and what everybody has; of many the highest bids
    and those who won most.

    Args:
        auction: The auction.
    """
    if not auction.sales:
        return "No lot has come up yet."
    lots = [f"{number}. {tell_lot(auction, sale)}" for number, sale in enumerate(auction.sales, start=1)]
    watched = list(auction.auctioneer.watched.values())
    sums = [
        f"{account.bidder.name}: {counted(len(account.wins), 'lot')}, "
        f"profit {dollars(account.profit)}, {dollars(account.budget)} left."
        for account in watched
    ]
    return "\n".join([*lots, *sums, *more(len(auction.accounts) - len(watched))])


def tell_lot(auction: Auction, sale: Sale) -> str:
    """Tell how one lot went: its starting price, what was bid, who won, what it was worth.

    Args:
        auction: The auction.
        sale: How the lot went.
    """
    rounds = "; ".join(
        ", ".join([*(f"{who} {said(bid)}" for who, bid in heard.bids), *more(heard.more)])
        for heard in sale.bidding.heard
        if heard.bids
    )
    head = f"{sale.lot.name} (from ${sale.lot.start:,}): {rounds or 'nobody bid'}"
    if sale.winner is None or sale.price is None:
        return f"{head}. Unsold."
    profit = sale.lot.true_value - sale.price
    return (
        f"{head}. {name_of(auction, sale.winner)} wins it for ${sale.price:,}; it is worth ${sale.lot.true_value:,} "
        f"({'profit' if profit >= 0 else 'loss'} ${abs(profit):,})."
    )


def more(rest: int) -> list[str]:
    """Say how many are not told of; nothing if all are."""
    return [f"and {rest} more"] if rest else []


def name_of(auction: Auction, bidder: int) -> str:
    """Give the name of a bidder.

    Args:
        auction: The auction.
        bidder: Mesa `unique_id`.
    """
    return auction.accounts[bidder].bidder.name


def dollars(amount: int) -> str:
    """Write a sum of dollars."""
    return f"{'−' if amount < 0 else ''}${abs(amount):,}"


def said(bid: int | None) -> str:
    """Say what a bidder did in a round."""
    return "out" if bid is None else f"${bid:,}"
