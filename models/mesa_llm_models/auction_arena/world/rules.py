"""Auction rules and the auctioneer: which bid leads, and when a lot is sold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import inf
from typing import Any, Literal

from mesa_llm.errors import ConfigError
from mesa_llm.text import MAX_NAME, one_line
from mesa_llm.tools.validation import is_number
from mesa_llm.world import RNG
from mesa_llm_models.auction_arena.world.beliefs import add_counts, form_fault, opening_belief, review_belief
from mesa_llm_models.auction_arena.world.lots import Lot
from mesa_llm_models.auction_arena.world.state import (
    MAX_WATCHED,
    Attempt,
    Bidder,
    BidderAccount,
    Bidding,
    BiddingPlan,
    BidRecord,
    BidStanding,
    Fault,
    RoundView,
    Sale,
    Win,
)
from mesa_llm_models.auction_arena.world.text import reason_text

TieRule = Literal["uniform", "scan"]
"""Rule for equal highest bids in one round.

`uniform`: each wins with the same probability. `scan` (the original's): after every recorded bid, all bids of the round
are checked again, and each one equal to the highest tosses a coin with the current leader, even with itself; this
favours late seats.
"""

MAX_ROUND_BIDS = 30
"""Maximum number of bids of one round that are announced."""

MAX_DISCOUNTS = 3
"""Number of rounds without a bid after which the starting price is not lowered any further."""

Stage = Literal["plan", "bid", "belief", "replan", "over"]
"""Stage of an auction; `bid` is one round of bidding on one lot."""

PRIORITIES = (1, 2, 3)
"""Priorities of a lot: dispensable, worth it if affordable, top."""

MAX_TRIES = 1_000
"""Maximum bids accepted per request, even where the rules set no limit."""

MAX_STALLED_ROUNDS = 200
"""Maximum number of consecutive rounds in which bids on a lot do not exceed the highest one."""


@dataclass(frozen=True, slots=True)
class AuctionRules:
    """Auction rules. The defaults are the corrected rules; `ORIGINAL_RULES` are the authors'."""

    raise_share: float = 0.1
    """Minimum raise over the previous round's highest bid, as a share of the starting price, rounded down."""

    tie: TieRule = "uniform"
    """Rule for equal highest bids."""

    max_retries: int | None = 3
    """Number of retries after an invalid bid before the bidder is out for the lot.

    None for no limit, as in the original, where a stubborn bidder can block the auction forever.
    """

    discount: bool = False
    """Whether the starting price is halved after each of the first three rounds without a bid."""

    max_belief_revisions: int = 4
    """Number of times a wrong belief is returned for correction. The answer after that is not checked."""

    max_plan_revisions: int = 2
    """Number of times an invalid plan is returned for correction."""

    match_part: bool = False
    """Whether a listed name that contains the bidder's own counts as its own, as in the original."""

    is_lenient: bool = False
    """Whether any object is a valid plan and any last statement a valid belief, and prices and raises may be zero."""


ORIGINAL_RULES = AuctionRules(tie="scan", max_retries=None, match_part=True, is_lenient=True)
"""The rules of the authors' program."""


class Auctioneer:
    """Runs an ascending open auction, one lot after another.

    Source:
        Chen et al. (2023), Put Your Money Where Your Mouth Is, arXiv:2310.05746, and their program.
    """

    def __init__(self, lots: Sequence[Lot], bidders: Sequence[Bidder], rules: AuctionRules, rng: RNG) -> None:
        """Open the auction. The arguments are those of `Auction`."""
        check_opening(lots, bidders, rules)
        self.lots = tuple(lots)
        self.rules = rules
        self.rng = rng
        self.accounts = {bidder.unique_id: BidderAccount(bidder, bidder.budget) for bidder in bidders}
        self.sales: list[Sale] = []
        self.bidding = Bidding(self.lots[0], 0, self.lots[0].start)
        self.stage: Stage = "plan"
        self._stalled = 0
        self.names = {agent_id: account.bidder.name for agent_id, account in self.accounts.items()}
        self.by_name = {account.bidder.name: account for account in self.accounts.values()}
        self._watch()
        self.due: dict[int, None] = {}
        self.tries: dict[int, list[Attempt]] = {}
        self.revisions: Counter[int] = Counter()
        for agent_id, account in self.accounts.items():
            account.belief = opening_belief(account, [rival.bidder.name for rival in self.watched_by(agent_id)])
            account.budgets.append(account.budget)
            account.profits.append(account.profit)
        self._ask(account for account in self.accounts.values() if account.bidder.planning != "none")
        self._skip_empty_stages()

    @property
    def remaining(self) -> tuple[Lot, ...]:
        """Lots still to come."""
        return self.lots[len(self.sales) + (self.stage == "bid") :]

    @property
    def minimum_raise(self) -> int:
        """Minimum raise over the previous round's highest bid, in dollars."""
        share = int(self.bidding.start * self.rules.raise_share)
        return share if self.rules.is_lenient else max(1, share)

    @property
    def min_bid(self) -> int:
        """Minimum valid bid now, regardless of budgets."""
        bidding = self.bidding
        return bidding.start if bidding.before < 0 else max(bidding.start, bidding.before + self.minimum_raise)

    def watched_by(self, agent_id: int) -> list[BidderAccount]:
        """Return the accounts a bidder watches: its own and at most `MAX_WATCHED` others, by seat."""
        if agent_id in self.watched:
            return list(self.watched.values())
        return [
            *(account for other_id, account in self.watched.items() if other_id != self._last_watched),
            self.accounts[agent_id],
        ]

    def bid(self, agent_id: int, amount: int) -> Fault | None:
        """Record a bid and return the rule it breaks, or None if it is valid."""
        account = self.accounts[agent_id]
        fault: Fault | None = None
        if amount > account.budget:
            fault = "over_budget"
        elif amount < self.bidding.start:
            fault = "below_start"
        elif amount < self.min_bid:
            fault = "small_raise"
        account.failed_bids += fault is not None
        self._note_try(account, Attempt(amount, fault))
        return fault

    def withdraw(self, agent_id: int) -> None:
        """Record a withdrawal from the current lot."""
        self._note_try(self.accounts[agent_id], Attempt(None))

    def note_unclear(self, agent_id: int) -> None:
        """Count a reply that was neither a bid nor a withdrawal."""
        self._note_try(self.accounts[agent_id], Attempt(None, "unclear"))

    def take_plan(self, agent_id: int, priorities: Mapping[str, Any]) -> str:
        """Record a plan, and return why it is invalid; empty if it is valid."""
        account = self.accounts[agent_id]
        fault = self._plan_fault(priorities)
        if fault and self.revisions[agent_id] < self.rules.max_plan_revisions:
            self.revisions[agent_id] += 1
            return fault
        del self.due[agent_id]
        if fault and not self.rules.is_lenient:
            return reason_text("plan_stays", fault=fault)
        last = self.sales[-1].lot.name if self.sales else None
        before = account.priorities
        is_change = bool(account.plans) and any(before.get(lot) != value for lot, value in priorities.items())
        account.plans.append(BiddingPlan(len(self.sales), last, dict(priorities), is_change))
        return ""

    def take_belief(self, agent_id: int, statement: Mapping[str, Any]) -> tuple[str, ...]:
        """Record a belief, count its errors, and return those to be corrected; empty if it is accepted."""
        account = self.accounts[agent_id]
        if self.revisions[agent_id] < self.rules.max_belief_revisions:
            review = review_belief(statement, account, self.by_name, match_part=self.rules.match_part)
            add_counts(account.beliefs, review.counts)
            if review.problems and (account.bidder.corrects_beliefs or not review.is_formed):
                self.revisions[agent_id] += 1
                return review.problems
        del self.due[agent_id]
        if self.rules.is_lenient or not form_fault(statement):
            account.belief = statement
        return ()

    def end_stage(self) -> list[Sale]:
        """Advance to the next stage in which a bidder is due. Bidders without an answer are out for the lot.

        Returns:
            The sales of completed lots.
        """
        n_sales = len(self.sales)
        self._close_stage()
        self._skip_empty_stages()
        return self.sales[n_sales:]

    def _skip_empty_stages(self) -> None:
        while not self.due and self.stage != "over":
            self._close_stage()

    def _close_stage(self) -> None:
        closings: dict[Stage, Callable[[], None]] = {
            "plan": self._open_lot,
            "bid": self._close_round,
            "belief": self._replan,
            "replan": self._open_lot,
        }
        if self.stage in closings:
            closings[self.stage]()

    def _open_lot(self) -> None:
        index = len(self.sales)
        self.bidding = Bidding(self.lots[index], index, self.lots[index].start)
        self._stalled = 0
        self._readmit()
        self._open_round()

    def _open_round(self) -> None:
        self.stage = "bid"
        leader = self.bidding.standing.leader
        self._ask(
            account
            for account in self.accounts.values()
            if account.bidder.unique_id != leader and not account.is_withdrawn
        )

    def _close_round(self) -> None:
        """Record the bids of the round in the order of seats, and check whether the lot is sold."""
        bidding = self.bidding
        bids = [(agent_id, self._final_bid(agent_id)) for agent_id in self.accounts if agent_id in self.tries]
        standings = take_down(bids, bidding.standing, self.rules.tie, self.rng)
        records: list[BidRecord] = []
        for (agent_id, amount), standing in zip(bids, standings, strict=True):
            account = self.accounts[agent_id]
            account.is_withdrawn = amount is None
            if amount:
                name = bidding.lot.name
                account.engagement[name] = account.engagement.get(name, 0) + 1
            records.append(BidRecord(agent_id, amount, tuple(self.tries[agent_id]), standing))
        bidding.rounds.append(tuple(records))
        bidding.round_views.append(round_view(records, self.names))
        bidding.standing = standings[-1] if standings else bidding.standing
        n_bids = sum(bool(amount) for _, amount in bids)
        if bidding.standing.leader is None:
            self._lower_or_pass()
        elif is_hammer(bidding, n_bids):
            self._sell(bidding.standing.leader, bidding.standing.top)
        else:
            self._check_progress(bidding.standing.top)
            bidding.before = bidding.standing.top
            self._open_round()

    def _check_progress(self, top: int) -> None:
        """Check that the highest bid still rises. With a minimum raise of 0, equal bids could continue forever.

        Raises:
            ConfigError: If it has not changed for `MAX_STALLED_ROUNDS` rounds.
        """
        self._stalled = self._stalled + 1 if top == self.bidding.before else 0
        if self._stalled >= MAX_STALLED_ROUNDS:
            raise ConfigError(
                f"the highest bid on {self.bidding.lot.name} stayed at ${top} for {self._stalled} rounds of equal "
                f"bids, as the minimum raise is ${self.minimum_raise}; choose a larger raise_share, or "
                "rules='corrected', where bids rise by $1 at least"
            )

    def _lower_or_pass(self) -> None:
        if not self.rules.discount or len(self.bidding.rounds) > MAX_DISCOUNTS:
            self._settle(Sale(self.bidding.lot, None, None, self.bidding))
            return
        halved = int(self.bidding.start * 0.5)
        self.bidding.start = halved if self.rules.is_lenient else max(1, halved)
        self._readmit()
        self._open_round()

    def _sell(self, winner: int, price: int) -> None:
        account, lot = self.accounts[winner], self.bidding.lot
        account.budget -= price
        account.profit += lot.true_value - price
        account.wins.append(Win(lot, price))
        self._settle(Sale(lot, winner, price, self.bidding))

    def _settle(self, sale: Sale) -> None:
        self.sales.append(sale)
        for account in self.accounts.values():
            account.budgets.append(account.budget)
            account.profits.append(account.profit)
        self._watch()
        self.stage = "belief"
        self._ask(account for account in self.accounts.values() if account.bidder.keeps_beliefs)

    def _replan(self) -> None:
        if len(self.sales) == len(self.lots):
            self.stage = "over"
            self._ask(())
            return
        self.stage = "replan"
        self._ask(account for account in self.accounts.values() if account.bidder.planning == "adaptive")

    def _ask(self, accounts: Iterable[BidderAccount]) -> None:
        self.due = {account.bidder.unique_id: None for account in accounts}
        self.tries = {agent_id: [] for agent_id in self.due}
        self.revisions = Counter()

    def _watch(self) -> None:
        """Choose the accounts that everyone watches, one more than `MAX_WATCHED`: by lots won, then by seat."""
        ranked = sorted(self.accounts, key=lambda agent_id: -len(self.accounts[agent_id].wins))[: MAX_WATCHED + 1]
        ranked_ids = set(ranked)
        self.watched = {agent_id: account for agent_id, account in self.accounts.items() if agent_id in ranked_ids}
        self._last_watched = ranked[-1]

    def _readmit(self) -> None:
        for account in self.accounts.values():
            account.is_withdrawn = False

    def _note_try(self, account: BidderAccount, attempt: Attempt) -> None:
        agent_id = account.bidder.unique_id
        account.bid_calls += 1
        self.tries[agent_id].append(attempt)
        if len(self.tries[agent_id]) >= MAX_TRIES and attempt.fault is not None:
            raise ConfigError(
                f"{account.bidder.name} was asked {MAX_TRIES} times for a bid on {self.bidding.lot.name}, without a "
                f"valid one (last attempt: {attempt.amount}, {attempt.fault}); set max_retries, and use "
                "rules='corrected'"
            )
        retries = self.rules.max_retries
        if attempt.fault is None or (retries is not None and len(self.tries[agent_id]) > retries):
            del self.due[agent_id]

    def _final_bid(self, agent_id: int) -> int | None:
        tries = self.tries[agent_id]
        return tries[-1].amount if tries and tries[-1].fault is None else None

    def _plan_fault(self, priorities: Mapping[str, Any]) -> str:
        if self.rules.is_lenient:
            return reason_text("no_priority") if self.stage == "replan" and not priorities else ""
        names = [lot.name for lot in self.remaining]
        unknown = sorted(str(name)[:40] for name in priorities if name not in names)[:5]
        if not priorities or unknown:
            fault = "unknown_lots" if unknown else "empty_plan"
            return reason_text(fault, lots=", ".join(names), unknown=", ".join(unknown))
        wrong = next((name for name, value in priorities.items() if value not in PRIORITIES), None)
        return reason_text("priority", lot=wrong) if wrong else ""


def take_down(
    bids: Sequence[tuple[int, int | None]], standing: BidStanding, tie: TieRule, rng: RNG
) -> list[BidStanding]:
    """Process the bids of one round, seat by seat.

    Args:
        bids: Bidder and valid bid (None for a withdrawal), by seat.
        standing: The standing before the round.
        tie: Rule for equal highest bids.
        rng: Random generator.

    Returns:
        The standing after each bid.
    """
    equal: Counter[int | None] = Counter()
    standings: list[BidStanding] = []
    for count, bid in enumerate(bids, start=1):
        if tie == "scan":
            standing = _scan(bids[:count], standing, rng)
        else:
            equal[bid[1]] += 1
            standing = _pass_on(bid, equal[bid[1]], standing, rng)
        standings.append(standing)
    return standings


def round_view(records: Sequence[BidRecord], names: Mapping[int, str]) -> RoundView:
    """Return a round as announced: at most `MAX_ROUND_BIDS` of the highest bids.

    Args:
        records: All bids and withdrawals of the round, by seat.
        names: Name of each bidder.
    """
    ranked = nsmallest(MAX_ROUND_BIDS, enumerate(records), key=lambda one: -(one[1].amount or 0))
    bids = [(names[record.bidder], record.amount) for _, record in sorted(ranked, key=lambda one: one[0])]
    return RoundView(tuple(bids), len(records) - len(bids))


def _scan(bids: Sequence[tuple[int, int | None]], standing: BidStanding, rng: RNG) -> BidStanding:
    """Go through all bids so far. An equal bid tosses a coin with the current leader."""
    top, leader = standing.top, standing.leader
    for bidder, amount in bids:
        if amount is None or amount <= 0 or amount < top:
            continue
        leader = bidder if amount > top else rng.choice((leader, bidder))
        top = amount
    return BidStanding(top, leader)


def _pass_on(bid: tuple[int, int | None], equal: int, standing: BidStanding, rng: RNG) -> BidStanding:
    """Process only the last bid: the k-th of equal bids takes the lead with probability 1/k."""
    bidder, amount = bid
    if amount is None or amount < standing.top:
        return standing
    if amount > standing.top:
        return BidStanding(amount, bidder)
    return BidStanding(amount, bidder) if rng.randint(1, equal) == 1 else standing


def is_hammer(bidding: Bidding, n_bids: int) -> bool:
    """Check whether a lot with a leader is sold after a round.

    Args:
        bidding: The lot, with the round's standing, and `before` from the previous round.
        n_bids: Number of valid bids in the round. A single opening bid wins at once; later, a round without bids ends
            the lot.
    """
    return n_bids == 1 if bidding.before < 0 else n_bids == 0


def check_opening(lots: Sequence[Lot], bidders: Sequence[Bidder], rules: AuctionRules) -> None:
    """Check lots, bidders and rules before an auction opens.

    Raises:
        ConfigError: If there are no lots or bidders, two share a name, a name is not one short line, or an amount is
            out of range.
    """
    _check_distinct("lot", [lot.name for lot in lots])
    _check_distinct("bidder", [bidder.name for bidder in bidders])
    _check_names([*(lot.name for lot in lots), *(bidder.name for bidder in bidders)])
    _check_distinct("bidder id", [bidder.unique_id for bidder in bidders])
    if not rules.is_lenient:
        _check_amounts(lots, bidders, rules)


def _check_distinct(name: str, values: Sequence[object]) -> None:
    if not values:
        raise ConfigError(f"an auction needs at least one {name}")
    double = next((value for value, count in Counter(values).items() if count > 1), None)
    if double is not None:
        raise ConfigError(f"{name} {double!r} appears twice in the auction; give each its own")


def _check_names(names: Sequence[str]) -> None:
    """Reject names that could pass for other text in bidders' prompts."""
    for name in names:
        if not name or name != one_line(name, MAX_NAME):
            raise ConfigError(
                f"a lot's or bidder's name must be one line of at most {MAX_NAME} visible characters"
                f"; got {name[:100]!r}"
            )


def _check_amounts(lots: Sequence[Lot], bidders: Sequence[Bidder], rules: AuctionRules) -> None:
    for lot in lots:
        if not (_is_whole(lot.start) and lot.start >= 1):
            raise ConfigError(f"the starting price of {lot.name} must be whole dollars, at least 1, got {lot.start!r}")
        if not _is_whole(lot.true_value):
            raise ConfigError(f"the true value of {lot.name} must be whole dollars, got {lot.true_value!r}")
    for bidder in bidders:
        if not (_is_whole(bidder.budget) and bidder.budget >= 0 and -100 < bidder.overestimate_percent < inf):
            raise ConfigError(
                f"budget and estimates of {bidder.name} must not be negative, and the budget must be in whole dollars; "
                f"got {bidder}"
            )
    if not 0 <= rules.raise_share < inf:
        raise ConfigError(f"the minimum raise must be a share of 0 or more, got {rules.raise_share!r}")


def _is_whole(dollars: float) -> bool:
    """Check whether an amount is a whole number: 2000.0 is, but NaN, infinity, true and false are not."""
    return is_number(dollars) and dollars == int(dollars)
