"""What a bidder can know: as values, and as text. True values of lots appear only once the hammer fell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mesa_llm.text import MAX_NAME, one_line
from mesa_llm.worlds.auction.auctioneer import MOST_WATCHED, Auctioneer, Stage
from mesa_llm.worlds.auction.beliefs import form_fault
from mesa_llm.worlds.auction.bidders import Account, Bidder, Desire
from mesa_llm.worlds.auction.bidding import RoundView
from mesa_llm.worlds.auction.lots import Lot
from mesa_llm.worlds.auction.rules import Sale

DESIRES: dict[Desire, str] = {
    "maximize_profit": "You want to end the auction with a larger total profit than any other bidder.",
    "maximize_items": "You want to end the auction with more lots than any other bidder.",
}
"""What a bidder is told it is after."""


@dataclass(frozen=True, slots=True)
class LotView:
    """A lot as a bidder sees it."""

    name: str
    """Its name."""

    start: int
    """Starting price, in dollars; lowered if nobody bid."""

    estimate: int
    """What this bidder thinks it is worth, in dollars."""


@dataclass(frozen=True, slots=True)
class SaleView:
    """How a lot went, as everyone heard it."""

    lot: str
    """Its name."""

    winner: str | None
    """Who won it; None: nobody bid."""

    price: int | None
    """Dollars paid."""

    true_value: int | None
    """What it is worth, in dollars; not revealed if nobody bid."""


@dataclass(frozen=True, slots=True)
class RivalView:
    """What the sales so far tell of another bidder."""

    name: str
    """What it is called."""

    spent: int
    """Dollars it paid."""

    profit: int
    """Its profit, in dollars."""

    lots: tuple[str, ...]
    """Lots it won, in order."""


@dataclass(frozen=True, slots=True)
class AuctionFacts:
    """All that one bidder can know in one stage."""

    stage: Stage
    """What is asked for."""

    name: str
    """The bidder's own name."""

    desire: Desire
    """What it is after."""

    budget: int
    """Dollars it has left."""

    profit: int
    """Its profit so far, in dollars."""

    wins: tuple[str, ...]
    """Lots it won, in order."""

    lot: LotView
    """The lot being auctioned, or the last one that was."""

    remaining: tuple[LotView, ...]
    """Lots that come up later, in order."""

    round_number: int
    """Round of bidding on this lot, from 0."""

    top: int
    """Highest bid at the end of the round before, in dollars; -1 if there is none."""

    leader: str | None
    """Who made it."""

    raise_exact: float
    """Least raise before it is rounded down, in dollars."""

    least_bid: int
    """Smallest valid bid now, in dollars."""

    bids_made: int
    """Valid bids this bidder made on this lot."""

    rounds: tuple[RoundView, ...]
    """What was bid on this lot, round by round."""

    sales: tuple[SaleView, ...]
    """How the lots so far went."""

    rivals: tuple[RivalView, ...]
    """The other bidders, by seat; of many only those that won most lots."""

    more_rivals: int
    """Other bidders beyond those."""

    priorities: Mapping[str, Any]
    """The plan in force; empty if there is none."""

    keeps_beliefs: bool
    """Whether it is asked what it believes; if not, it is told its budget."""

    belief: Mapping[str, Any]
    """What it last said it believes."""

    complaints: tuple[str, ...] = ()
    """What was wrong with its last answer in this stage."""


def bidder_facts(auctioneer: Auctioneer, actor: int, complaints: tuple[str, ...] = ()) -> AuctionFacts:
    """Gather what a bidder can know now."""
    me, bidding = auctioneer.accounts[actor], auctioneer.bidding
    bidder = me.bidder
    leader = bidding.standing.leader
    rivals = tuple(_rival_view(other) for other in auctioneer.watched_by(actor) if other is not me)
    return AuctionFacts(
        stage=auctioneer.stage,
        name=bidder.name,
        desire=bidder.desire,
        budget=me.budget,
        profit=me.profit,
        wins=tuple(win.lot.name for win in me.wins),
        lot=_lot_view(bidder, bidding.lot, bidding.start),
        remaining=tuple(_lot_view(bidder, lot, lot.start) for lot in auctioneer.remaining),
        round_number=len(bidding.rounds),
        top=bidding.before,
        leader=None if leader is None else auctioneer.accounts[leader].bidder.name,
        raise_exact=max(bidding.start * auctioneer.rules.raise_share, float(auctioneer.minimum_raise)),
        least_bid=auctioneer.least_bid,
        bids_made=me.engagement.get(bidding.lot.name, 0),
        rounds=tuple(bidding.heard),
        sales=tuple(_sale_view(auctioneer, sale) for sale in auctioneer.sales),
        rivals=rivals,
        more_rivals=len(auctioneer.accounts) - 1 - len(rivals),
        priorities=me.priorities,
        keeps_beliefs=bidder.keeps_beliefs,
        belief=me.belief,
        complaints=complaints,
    )


def write_rules(auctioneer: Auctioneer) -> str:
    """Write what every bidder is told of the auction."""
    return (
        f"This is an open auction with rising bids among {_write_names(auctioneer)}. Lots come up one at a time, in a "
        "known order. In each round everyone but the leader bids or withdraws, without seeing the others' bids of that "
        "round; who withdraws, or keeps breaking the rules, is out for that lot only. A bid must be within the "
        "bidder's budget, reach the starting price, and exceed the highest bid of the round before by at least "
        f"{auctioneer.rules.raise_share:.0%} of the starting price. The hammer falls when nobody raises; a single "
        "bid in the first round wins at once. The winner pays its bid and gains the lot's true value, which is "
        "revealed only then; its profit is true value less price."
    )


def write_facts(facts: AuctionFacts) -> str:
    """Write what a bidder sees in one stage.

    Budgets and profits appear in its own words only (its last beliefs): keeping track of them is part of the task.
    """
    lines = [f"You are {facts.name}. {DESIRES[facts.desire]}"]
    lines += _write_beliefs(facts)
    if facts.priorities and facts.stage != "belief":
        plan = one_line(", ".join(f"{lot} {value}" for lot, value in facts.priorities.items()))
        lines.append(f"Your plan (3 is most important): {plan}.")
    lines += ["", *_write_task(facts)]
    lines += [f"Your last answer was refused: {one_line(complaint)}" for complaint in facts.complaints]
    return "\n".join(lines)


def _write_beliefs(facts: AuctionFacts) -> list[str]:
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


def _write_task(facts: AuctionFacts) -> list[str]:
    coming = [f"{lot.name}: starts at ${lot.start}, you value it at ${lot.estimate}." for lot in facts.remaining]
    if facts.stage in ("plan", "replan"):
        ask = "Give each of these lots a priority: 1 dispensable, 2 worth it if affordable, 3 top."
        return ["Lots still to come, in order:", *coming, ask]
    if facts.stage == "over":
        return ["The auction is over."]
    rounds = [_write_round(number, bids) for number, bids in enumerate(facts.rounds, start=1)]
    if facts.stage != "bid":
        ask = "Say what you believe now: your remaining budget, everyone's total profit, and what everyone has won."
        return [*rounds, *(_write_sale(sale, facts.name) for sale in facts.sales[-1:]), ask]
    lot = facts.lot
    lines = [f"Now: {lot.name}. It starts at ${lot.start}, and you value it at ${lot.estimate}.", *rounds[-1:]]
    if facts.leader is not None:
        leader = "you" if facts.leader == facts.name else facts.leader
        lines.append(f"The highest bid is ${facts.top}, by {leader}.")
    lines.append(f"Bid at least ${facts.least_bid}, or withdraw from this lot.")
    return lines + (["Later:", *coming] if coming else [])


def _write_round(number: int, heard: RoundView) -> str:
    said = ", ".join(f"{who} {'withdrew' if bid is None else f'bid ${bid}'}" for who, bid in heard.bids)
    more = f", and {heard.more} more, none of them higher" if heard.more else ""
    return f"Round {number}: {said}{more}."


def _write_sale(sale: SaleView, name: str) -> str:
    if sale.winner is None:
        return f"Nobody bid on {sale.lot}."
    winner = "you" if sale.winner == name else sale.winner
    return f"{sale.lot} went to {winner} for ${sale.price}; its true value is ${sale.true_value}."


def _write_names(auctioneer: Auctioneer) -> str:
    names = [account.bidder.name for account in islice(auctioneer.accounts.values(), MOST_WATCHED + 1)]
    rest = len(auctioneer.accounts) - len(names)
    return ", ".join([*names, *([f"{rest} more"] if rest else [])])


def _lot_view(bidder: Bidder, lot: Lot, start: int) -> LotView:
    return LotView(lot.name, start, bidder.estimate(lot))


def _sale_view(auctioneer: Auctioneer, sale: Sale) -> SaleView:
    if sale.winner is None:
        return SaleView(sale.lot.name, None, None, None)
    return SaleView(sale.lot.name, auctioneer.accounts[sale.winner].bidder.name, sale.price, sale.lot.true_value)


def _rival_view(other: Account) -> RivalView:
    spent = other.bidder.budget - other.budget
    return RivalView(other.bidder.name, spent, other.profit, tuple(win.lot.name for win in other.wins))
