"""Texts for bidders, and the story of an auction."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from mesa_llm.text import MAX_NAME, counted, number_text, one_line, sentences
from mesa_llm_models.auction_arena.world.state import MAX_WATCHED, Desire, Fault, RoundView, Sale

DESIRES: dict[Desire, str] = {
    "maximize_profit": "You want to end the auction with a larger total profit than any other bidder.",
    "maximize_items": "You want to end the auction with more lots than any other bidder.",
}
"""Text of each desire for the bidder."""

RESULTS = {
    "bid": "You bid ${amount}.",
    "withdraw": "You are out for this lot.",
    "plan": "Your plan was taken down.",
    "belief": "Your beliefs were taken down.",
}
"""Action or answer → what came of it."""

result_text = sentences(RESULTS)

REASONS = {
    "not_whole": "a bid is a whole number of dollars, not {amount!r}.",
    "no_bidder": "agent {agent_id} is no bidder of this auction.",
    "wrong_stage": "this is not the time to {doing}: the auction is at the stage {stage!r}.",
    "not_belief_time": "this is not the time to say what you believe: the auction is at the stage {stage!r}.",
    "no_belief": "there is no JSON object with your beliefs that can be read; write numbers, not sums.",
    "no_field": "the field {key!r} is missing.",
    "no_budget": "'remaining_budget' must be one number: the dollars you have left.",
    "no_profits": "'total_profits' must give a number for each bidder.",
    "no_wins": "'winning_bids' must give, for each bidder, the lots it won and a number as the price of each.",
    "budget": "you have {budget} left, not {believed}.",
    "profit": "the profit of {name} is {profit}, not {believed}.",
    "wins": "{name} has won {won}, not {believed}.",
    "no_priority": "There is no priority in your plan.",
    "unknown_lots": "Give priorities to lots still to come ({lots}), not {unknown}.",
    "empty_plan": "Give priorities to lots still to come ({lots}), but your plan is empty.",
    "priority": "The priority of {lot} must be 1, 2 or 3.",
    "plan_stays": "{fault} The plan you had stays in force.",
    "leads": "you lead already; wait for the others.",
    "withdrawn": "you are out for {lot}; wait for the next lot.",
    "answered": "you have answered already, or are not asked; wait for the next stage.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)


def lots_text(lots: Iterable[str]) -> str:
    """List lots that a bidder has won."""
    return ", ".join(lots) or "nothing"


UNCLEAR = "it was neither a bid nor a withdrawal."
"""Refusal of a reply that was no bid."""

NO_MORE_TRIES = "You have used up your tries and are out for this lot."
"""Sentence after the last refusal."""

FAULTS: dict[Fault, str] = {
    "over_budget": "is more than the ${budget} you have left",
    "below_start": "is below the starting price of ${start}",
    "small_raise": "does not raise ${before} by at least ${minimum_raise}",
}
"""Fault of a bid → why it is refused."""


def instructions_text(auctioneer: Any) -> str:
    """Write the instructions that every bidder reads first."""
    return (
        f"This is an open ascending auction among {_names_text(auctioneer)}. Lots come up one at a time, in a known "
        "order. In each round everyone but the leader bids or withdraws, without seeing the others' bids of that "
        "round; whoever withdraws, or keeps breaking the rules, is out for that lot only. A bid must be within the "
        "bidder's budget, reach the starting price, and exceed the highest bid of the previous round by at least "
        f"{auctioneer.rules.raise_share:.0%} of the starting price. The lot is sold when nobody raises; a single "
        "bid in the first round wins at once. The winner pays its bid and gains the lot's true value, which is "
        "revealed only then; its profit is the true value less the price."
    )


def observation_text(facts: Any) -> str:
    """Write what a bidder sees in one stage. Who it is and what it wants is up to its agent.

    Budgets and profits appear only as the bidder last believed them to be: keeping track of them is part of the task.
    """
    lines = _beliefs_lines(facts)
    if facts.priorities and facts.stage != "belief":
        plan = one_line(", ".join(f"{lot} {value}" for lot, value in facts.priorities.items()))
        lines.append(f"Your plan (3 is most important): {plan}.")
    lines += ["", *_task_lines(facts)]
    lines += [f"Your last answer was refused: {one_line(refusal)}" for refusal in facts.refusals]
    return "\n".join(lines)


def _beliefs_lines(facts: Any) -> list[str]:
    if facts.stage == "plan" or not facts.keeps_beliefs:
        return [f"You have ${facts.budget} to spend on all lots together."]
    if facts.stage == "bid":
        return [_purse_text(facts), *_rivals_lines(facts)]
    if facts.is_belief_lost:
        return ["You have lost track of budgets and profits."]
    believed = f"You believe that you have {signed(facts.belief['remaining_budget'])} left."
    if facts.stage == "belief":
        believed = f"Before this lot you had {signed(facts.belief['remaining_budget'])} left, as you believed."
    return [believed, *_rivals_lines(facts)]


def _purse_text(facts: Any) -> str:
    """Say how much a bidder has left, and for how many lots."""
    later = len(facts.remaining)
    lots = f"this lot and {counted(later, 'later one')}" if later else "this lot, the last one"
    return f"You have ${facts.budget} left for {lots}."


def _rivals_lines(facts: Any) -> list[str]:
    """Say what a bidder believes that everybody has won and earned."""
    if facts.is_belief_lost:
        return ["You have lost track of who has won and earned what."]
    lines = [f"Besides the bidders you follow, {facts.more_rivals} more are bidding."] if facts.more_rivals else []
    wins, profits = facts.belief["winning_bids"], facts.belief["total_profits"]
    if not any(wins.values()) and not any(profits.values()):
        return [*lines, "As far as you know nobody has won or earned anything yet."]
    for name, profit in profits.items():
        prices = wins.get(name, {}).items()
        won = one_line(", ".join(f"{lot} at {signed(price)}" for lot, price in prices)) or "nothing"
        lines.append(f"You believe that {one_line(name, MAX_NAME)} has won {won}, with a profit of {signed(profit)}.")
    return lines


def _task_lines(facts: Any) -> list[str]:
    lots = [f"{lot.name}: starts at ${lot.start}, you value it at ${lot.estimate}." for lot in facts.remaining]
    if facts.stage in ("plan", "replan"):
        question = "Give each lot a priority: 1 can do without it, 2 worth having if affordable, 3 most wanted."
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
    if lots:
        lines += ["Later:", *lots]
    return [*lines, _least_bid_text(facts)]


def _least_bid_text(facts: Any) -> str:
    """Say what the least bid is, and what it would earn or lose if the lot is worth what the bidder thinks."""
    least, gain = facts.min_bid, facts.lot.estimate - facts.min_bid
    if least > facts.budget:
        return f"The next bid would have to be ${least}, more than you have. Withdraw from this lot."
    if gain > 0:
        return (
            f"The next bid is at least ${least}, which by your estimate would earn you ${gain} if you win with it. "
            f"Every dollar above that takes one off, and above ${facts.lot.estimate} you lose. Bid, or withdraw from "
            "this lot."
        )
    loss = f"lose ${-gain}" if gain else "earn nothing"
    return (
        f"The next bid is at least ${least}, with which you would by your estimate {loss} if you win. Bid, or withdraw "
        "from this lot."
    )


def _round_text(round_number: int, view: RoundView) -> str:
    bids = ", ".join(f"{name} {'withdrew' if bid is None else f'bid ${bid}'}" for name, bid in view.bids)
    more = f", and {view.more} more, none of them higher" if view.more else ""
    return f"Round {round_number}: {bids}{more}."


def _sale_text(sale: Any, name: str) -> str:
    if sale.winner is None:
        return unsold_text(sale.lot)
    return sold_text(sale.lot, "you" if sale.winner == name else sale.winner, sale.price, sale.true_value)


def unsold_text(lot: str) -> str:
    """Report a lot that nobody wanted."""
    return f"Nobody bid on {lot}."


def sold_text(lot: str, winner: str, price: int | None, true_value: int | None) -> str:
    """Report a sale, and the value that it reveals."""
    return f"{lot} went to {winner} for ${price}; its true value is ${true_value}."


def refusal_text(amount: int, reason: str, minimum: int) -> str:
    """Refuse a bid, and say what would be accepted."""
    amount_text = f"${amount}" if abs(amount) < 10**15 else "an absurd amount"
    return f"A bid of {amount_text} {reason}; bid at least ${minimum}, or withdraw."


def _names_text(auctioneer: Any) -> str:
    names = [account.bidder.name for account in islice(auctioneer.accounts.values(), MAX_WATCHED + 1)]
    n_more = len(auctioneer.accounts) - len(names)
    return ", ".join([*names, *([f"{n_more} more"] if n_more else [])])


def story_text(auctioneer: Any) -> str:
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


def _bidding_text(auctioneer: Any, sale: Sale) -> str:
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


def signed(amount: float) -> str:
    """Write a sum of dollars as bidders state it, with a minus sign before the currency."""
    return f"{'-' if amount < 0 else ''}${number_text(abs(amount))}"
