"""The auctioneer: accounts, the stages of the auction, and what ends each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from mesa_llm.errors import ConfigError
from mesa_llm.world import Draws
from mesa_llm.worlds.auction.beliefs import add_counts, form_fault, opening_belief, review_belief
from mesa_llm.worlds.auction.bidders import Account, Bidder, Plan, Win
from mesa_llm.worlds.auction.bidding import (
    MAX_DISCOUNTS,
    Attempt,
    Bidding,
    BidRecord,
    Fault,
    heard,
    is_hammer,
    take_down,
)
from mesa_llm.worlds.auction.lots import Lot
from mesa_llm.worlds.auction.rules import AuctionRules, Sale, check_opening

Stage = Literal["plan", "bid", "belief", "replan", "over"]
"""What bidders are asked for now; `bid` is one round of bidding on one lot."""

PRIORITIES = (1, 2, 3)

MAX_STALLED_ROUNDS = 200
"""Maximum number of rounds in a row in which bids on a lot do not exceed the highest one."""

MOST_WATCHED = 30
"""Other bidders that one is told of, and asked about."""


class Auctioneer:
    """Runs an ascending open auction of one lot after the other.

    Source:
        Chen et al. (2023), Put Your Money Where Your Mouth Is, arXiv:2310.05746, and their program.
    """

    def __init__(self, lots: Sequence[Lot], bidders: Sequence[Bidder], rules: AuctionRules, draws: Draws) -> None:
        """Open the auction; `Auction` says what the arguments are."""
        check_opening(lots, bidders, rules)
        self.lots = tuple(lots)
        self.rules = rules
        self.draws = draws
        self.accounts = {one.unique_id: Account(one, one.budget) for one in bidders}
        self.sales: list[Sale] = []
        self.bidding = Bidding(self.lots[0], 0, self.lots[0].start)
        self.stage: Stage = "plan"
        self._stalled = 0
        self.names = {actor: account.bidder.name for actor, account in self.accounts.items()}
        self.by_name = {account.bidder.name: account for account in self.accounts.values()}
        self._watch()
        self.asked: dict[int, None] = {}
        self.tries: dict[int, list[Attempt]] = {}
        self.revisions: Counter[int] = Counter()
        for actor, account in self.accounts.items():
            account.belief = opening_belief(account, [other.bidder.name for other in self.watched_by(actor)])
            account.budgets.append(account.budget)
            account.profits.append(account.profit)
        self._ask(account for account in self.accounts.values() if account.bidder.planning != "none")
        self._skip_empty_stages()

    @property
    def remaining(self) -> tuple[Lot, ...]:
        """Lots that have not come up yet."""
        return self.lots[len(self.sales) + (self.stage == "bid") :]

    @property
    def minimum_raise(self) -> int:
        """Least raise over the highest bid of the round before, in dollars."""
        share = int(self.bidding.start * self.rules.raise_share)
        return share if self.rules.is_lenient else max(1, share)

    @property
    def least_bid(self) -> int:
        """Smallest bid that is valid now, budgets aside."""
        return max(self.bidding.start, self.bidding.before + self.minimum_raise)

    def watched_by(self, actor: int) -> list[Account]:
        """Give whom a bidder keeps an eye on: itself and `MOST_WATCHED` others, or all if they are fewer, by seat."""
        if actor in self.watched:
            return list(self.watched.values())
        return [*(one for number, one in self.watched.items() if number != self._least_watched), self.accounts[actor]]

    def bid(self, actor: int, amount: int) -> Fault | None:
        """Take a bid of someone who is asked for one, and say which rule it breaks, if any."""
        account = self.accounts[actor]
        fault: Fault | None = None
        if amount > account.budget:
            fault = "over_budget"
        elif amount < self.bidding.start:
            fault = "below_start"
        elif amount < self.bidding.before + self.minimum_raise:
            fault = "small_raise"
        account.failed_bids += fault is not None
        self._note_try(account, Attempt(amount, fault))
        return fault

    def withdraw(self, actor: int) -> None:
        """Take a withdrawal from the present lot."""
        self._note_try(self.accounts[actor], Attempt(None))

    def note_unclear(self, actor: int) -> None:
        """Count a reply that was neither a bid nor a withdrawal."""
        self._note_try(self.accounts[actor], Attempt(None, "unclear"))

    def take_plan(self, actor: int, priorities: Mapping[str, Any]) -> str:
        """Take a plan, and say why it cannot be used; empty if it can."""
        account = self.accounts[actor]
        fault = self._plan_fault(priorities)
        if fault and self.revisions[actor] < self.rules.max_plan_revisions:
            self.revisions[actor] += 1
            return fault
        del self.asked[actor]
        if fault and not self.rules.is_lenient:
            return f"{fault} The plan you had stays in force."
        last = self.sales[-1].lot.name if self.sales else None
        before = account.priorities
        is_change = bool(account.plans) and any(before.get(lot) != value for lot, value in priorities.items())
        account.plans.append(Plan(len(self.sales), last, dict(priorities), is_change))
        return ""

    def take_belief(self, actor: int, statement: Mapping[str, Any]) -> tuple[str, ...]:
        """Take a belief, count its errors, and give those to be corrected; none: it is accepted."""
        account = self.accounts[actor]
        if self.revisions[actor] < self.rules.max_belief_revisions:
            review = review_belief(statement, account, self.by_name, match_part=self.rules.match_part)
            add_counts(account.beliefs, review.counts)
            if review.problems and (account.bidder.corrects_beliefs or not review.is_formed):
                self.revisions[actor] += 1
                return review.problems
        del self.asked[actor]
        if self.rules.is_lenient or not form_fault(statement):
            account.belief = statement
        return ()

    def end_stage(self) -> list[Sale]:
        """Go on to the next stage in which someone is asked; who has not answered a bid is out for the lot.

        Returns:
            The lots that came to an end.
        """
        done = len(self.sales)
        self._close_stage()
        self._skip_empty_stages()
        return self.sales[done:]

    def _skip_empty_stages(self) -> None:
        while not self.asked and self.stage != "over":
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
        number = len(self.sales)
        self.bidding = Bidding(self.lots[number], number, self.lots[number].start)
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
        """Take all bids of the round down in the order of seats, and see whether the hammer falls."""
        bidding = self.bidding
        bids = [(actor, self._final_bid(actor)) for actor in self.accounts if actor in self.tries]
        standings = take_down(bids, bidding.standing, self.rules.tie, self.draws)
        records: list[BidRecord] = []
        for (actor, amount), standing in zip(bids, standings, strict=True):
            account = self.accounts[actor]
            account.is_withdrawn = amount is None
            if amount:
                name = bidding.lot.name
                account.engagement[name] = account.engagement.get(name, 0) + 1
            records.append(BidRecord(actor, amount, tuple(self.tries[actor]), standing))
        bidding.rounds.append(tuple(records))
        bidding.heard.append(heard(records, self.names))
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
        """Check that the highest bid rises now and then; with a minimum raise of 0 equal bids can go on for ever.

        Raises:
            ConfigError: If it has stood for `MAX_STALLED_ROUNDS` rounds.
        """
        self._stalled = self._stalled + 1 if top == self.bidding.before else 0
        if self._stalled >= MAX_STALLED_ROUNDS:
            raise ConfigError(
                f"the highest bid on {self.bidding.lot.name} has stood at ${top} for {self._stalled} rounds of equal "
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

    def _ask(self, accounts: Iterable[Account]) -> None:
        self.asked = {account.bidder.unique_id: None for account in accounts}
        self.tries = {actor: [] for actor in self.asked}
        self.revisions = Counter()

    def _watch(self) -> None:
        """Choose whom everyone watches, one more than `MOST_WATCHED`: who won most lots, the first seats of equals."""
        ranked = sorted(self.accounts, key=lambda actor: -len(self.accounts[actor].wins))[: MOST_WATCHED + 1]
        chosen = set(ranked)
        self.watched = {actor: account for actor, account in self.accounts.items() if actor in chosen}
        self._least_watched = ranked[-1]

    def _readmit(self) -> None:
        for account in self.accounts.values():
            account.is_withdrawn = False

    def _note_try(self, account: Account, attempt: Attempt) -> None:
        actor = account.bidder.unique_id
        account.bid_calls += 1
        self.tries[actor].append(attempt)
        most = self.rules.max_retries
        if attempt.fault is None or (most is not None and len(self.tries[actor]) > most):
            del self.asked[actor]

    def _final_bid(self, actor: int) -> int | None:
        tries = self.tries[actor]
        return tries[-1].amount if tries and tries[-1].fault is None else None

    def _plan_fault(self, priorities: Mapping[str, Any]) -> str:
        if self.rules.is_lenient:
            return "There is no priority in your plan." if self.stage == "replan" and not priorities else ""
        names = [lot.name for lot in self.remaining]
        unknown = sorted(str(name)[:40] for name in priorities if name not in names)[:5]
        if not priorities or unknown:
            found = f"not {', '.join(unknown)}" if unknown else "but your plan is empty"
            return f"Give priorities to lots still to come ({', '.join(names)}), {found}."
        wrong = next((name for name, value in priorities.items() if value not in PRIORITIES), None)
        return f"The priority of {wrong} must be 1, 2 or 3." if wrong else ""
