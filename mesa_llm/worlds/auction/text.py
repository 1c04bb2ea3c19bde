"""Texts for bidders, and the story of an auction."""

from __future__ import annotations

from itertools import islice

from mesa_llm.text import MAX_NAME, counted, one_line
from mesa_llm.worlds.auction.beliefs import form_fault
from mesa_llm.worlds.auction.facts import DESIRES, AuctionFacts, SaleView
from mesa_llm.worlds.auction.rules import MAX_WATCHED, Auctioneer
from mesa_llm.worlds.auction.state import RoundView, Sale


def instructions_text(auctioneer: Auctioneer) -> str:
    """Write the instructions that every bidder reads first."""
    return (
        f"This is an open auction with rising bids among {_names_text(auctioneer)}. Lots come up one at a time, in a "
        "known order. In each round everyone but the leader bids or withdraws, without seeing the others' bids of that "
        "round; who withdraws, or keeps breaking the rules, is out for that lot only. A bid must be within the "
        "bidder's budget, reach the starting price, and exceed the highest bid of the round before by at least "
        f"{auctioneer.rules.raise_share:.0%} of the starting price. The hammer falls when nobody raises; a single "
        "bid in the first round wins at once. The winner pays its bid and gains the lot's true value, which is "
        "revealed only then; its profit is true value less price."
    )


def observation_text(facts: AuctionFacts) -> str:
    """Write what a bidder sees in one stage.

    Budgets and profits appear only as the bidder last believed them to be: keeping track of them is part of the task.
    """
    lines = [f"You are {facts.name}. {DESIRES[facts.desire]}"]
    lines += _beliefs_lines(facts)
    if facts.priorities and facts.stage != "belief":
        plan = one_line(", ".join(f"{lot} {value}" for lot, value in facts.priorities.items()))
        lines.append(f"Your plan (3 is most important): {plan}.")
    lines += ["", *_task_lines(facts)]
    lines += [f"Your last answer was refused: {one_line(refusal)}" for refusal in facts.refusals]
    return "\n".join(lines)


def _beliefs_lines(facts: AuctionFacts) -> list[str]:
    if facts.stage == "plan" or not facts.keeps_beliefs:
        return [f"You have ${facts.budget} to spend on all lots together."]
    if form_fault(facts.belief):
        return ["You have lost track of budgets and profits."]
    lines = [f"You believe that you have ${facts.belief['remaining_budget']} left."]
    if facts.more_rivals:
        lines.append(f"Beside those you keep an eye on, {facts.more_rivals} more are bidding.")
    wins = facts.belief["winning_bids"]
    for name, profit in facts.belief["total_profits"].items():
        won = one_line(", ".join(f"{lot} at ${price}" for lot, price in wins.get(name, {}).items())) or "nothing"
        lines.append(f"You believe that {one_line(name, MAX_NAME)} has won {won}, with a profit of ${profit}.")
    return lines


def _task_lines(facts: AuctionFacts) -> list[str]:
    lots = [f"{lot.name}: starts at ${lot.start}, you value it at ${lot.estimate}." for lot in facts.remaining]
    if facts.stage in ("plan", "replan"):
        question = "Give each of these lots a priority: 1 dispensable, 2 worth it if affordable, 3 top."
        return ["Lots still to come, in order:", *lots, question]
    if facts.stage == "over":
        return ["The auction is over."]
    rounds = [_round_text(round_number, bids) for round_number, bids in enumerate(facts.rounds, start=1)]
    if facts.stage != "bid":
        question = (
            "Say what you believe now: your remaining budget, everyone's total profit, and what everyone has won."
        )
        return [*rounds, *(_sale_text(sale, facts.name) for sale in facts.sales[-1:]), question]
    lot = facts.lot
    lines = [f"Now: {lot.name}. It starts at ${lot.start}, and you value it at ${lot.estimate}.", *rounds[-1:]]
    if facts.leader is not None:
        leader = "you" if facts.leader == facts.name else facts.leader
        lines.append(f"The highest bid is ${facts.top}, by {leader}.")
    lines.append(f"Bid at least ${facts.min_bid}, or withdraw from this lot.")
    return lines + (["Later:", *lots] if lots else [])


def _round_text(round_number: int, view: RoundView) -> str:
    bids = ", ".join(f"{name} {'withdrew' if bid is None else f'bid ${bid}'}" for name, bid in view.bids)
    more = f", and {view.more} more, none of them higher" if view.more else ""
    return f"Round {round_number}: {bids}{more}."


def _sale_text(sale: SaleView, name: str) -> str:
    if sale.winner is None:
        return f"Nobody bid on {sale.lot}."
    winner = "you" if sale.winner == name else sale.winner
    return f"{sale.lot} went to {winner} for ${sale.price}; its true value is ${sale.true_value}."


def _names_text(auctioneer: Auctioneer) -> str:
    names = [account.bidder.name for account in islice(auctioneer.accounts.values(), MAX_WATCHED + 1)]
    n_more = len(auctioneer.accounts) - len(names)
    return ", ".join([*names, *([f"{n_more} more"] if n_more else [])])


def story_text(auctioneer: Auctioneer) -> str:
    """Summarise the lots of an auction so far, a line each, and the bidders' results.

    Of many bids on a lot it lists the highest, and of many bidders those who won most lots.
    """
    if not auctioneer.sales:
        return "No lot has come up yet."
    lots = [f"{index}. {_bidding_text(auctioneer, sale)}" for index, sale in enumerate(auctioneer.sales, start=1)]
    watched = list(auctioneer.watched.values())
    sums = [
        f"{account.bidder.name}: {counted(len(account.wins), 'lot')}, "
        f"profit {dollars(account.profit)}, {dollars(account.budget)} left."
        for account in watched
    ]
    return "\n".join([*lots, *sums, *_rest(len(auctioneer.accounts) - len(watched))])


def _bidding_text(auctioneer: Auctioneer, sale: Sale) -> str:
    """Summarise one lot: its starting price, its bids, its winner and its value."""
    rounds = "; ".join(
        ", ".join([*(f"{name} {'out' if bid is None else dollars(bid)}" for name, bid in view.bids), *_rest(view.more)])
        for view in sale.bidding.round_views
        if view.bids
    )
    head = f"{sale.lot.name} (from ${sale.lot.start:,}): {rounds or 'nobody bid'}"
    if sale.winner is None or sale.price is None:
        return f"{head}. Unsold."
    profit = sale.lot.true_value - sale.price
    return (
        f"{head}. {auctioneer.names[sale.winner]} wins it for ${sale.price:,}; it is worth ${sale.lot.true_value:,} "
        f"({'profit' if profit >= 0 else 'loss'} ${abs(profit):,})."
    )


def _rest(count: int) -> list[str]:
    return [f"and {count} more"] if count else []


def dollars(amount: int) -> str:
    """Write a sum of dollars, with a minus sign before the currency."""
    return f"{'−' if amount < 0 else ''}${abs(amount):,}"
