"""The records of an auction as rows, for pandas and for Mesa's data collector."""

from __future__ import annotations

from typing import Any

from mesa_llm.worlds.auction.world import Auction


def bid_rows(auction: Auction) -> list[dict[str, Any]]:
    """Give one row a bidder, round and lot: what it bid (None: it withdrew) and how often it was asked."""
    return [
        {
            "lot": sale.lot.name,
            "round": number,
            "bidder": one.bidder,
            "bid": one.amount,
            "attempts": len(one.attempts),
            "faults": [attempt.fault for attempt in one.attempts if attempt.fault],
            "top": one.standing.top,
            "leader": one.standing.leader,
        }
        for sale in auction.sales
        for number, bids in enumerate(sale.bidding.rounds)
        for one in bids
    ]


def lot_rows(auction: Auction) -> list[dict[str, Any]]:
    """Give one row a lot that has come up: who won it (None: nobody), and for how much."""
    return [
        {
            "lot": sale.lot.name,
            "start": sale.lot.start,
            "true_value": sale.lot.true_value,
            "rounds": len(sale.bidding.rounds),
            "winner": sale.winner,
            "price": sale.price,
        }
        for sale in auction.sales
    ]


def bidder_rows(auction: Auction) -> list[dict[str, Any]]:
    """Give one row a bidder: money, wins and counters."""
    return [
        {
            "bidder": account.bidder.unique_id,
            "name": account.bidder.name,
            "budget": account.budget,
            "profit": account.profit,
            "lots_won": len(account.wins),
            "engagement": sum(account.engagement.values()),
            "bid_calls": account.bid_calls,
            "failed_bids": account.failed_bids,
            "self_checks": account.beliefs.self_checks,
            "self_errors": account.beliefs.self_errors,
            "other_checks": account.beliefs.other_checks,
            "other_errors": account.beliefs.other_errors,
        }
        for account in auction.accounts.values()
    ]


def plan_rows(auction: Auction) -> list[dict[str, Any]]:
    """Give one row a bidder, plan and lot."""
    return [
        {
            "bidder": account.bidder.unique_id,
            "lots_before": plan.lots_before,
            "is_change": plan.is_change,
            "lot": lot,
            "priority": priority,
        }
        for account in auction.accounts.values()
        for plan in account.plans
        for lot, priority in plan.priorities.items()
    ]
