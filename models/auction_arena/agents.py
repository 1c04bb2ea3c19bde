"""The bidders: they plan, bid, keep track of everybody's money, and learn; and their rule twins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from typing import Any

from pydantic import BaseModel

from mesa_llm import Decision, Failure, LLMAgent, Observation, Outcome, ToolCall, ToolError
from mesa_llm.memory import ChatMemory
from mesa_llm.text import one_line, quoted
from mesa_llm.worlds.auction import Account, AuctionFacts
from mesa_llm.worlds.auction.policies import BiddingPolicy
from models.auction_arena import twins
from models.auction_arena.asked import MOST_LESSONS, Lessons, belief_of, plan_of
from models.auction_arena.story import dollars

RULES = resources.files("models.auction_arena").joinpath("prompts", "rules.md").read_text(encoding="utf-8").strip()
"""What every bidder is told of its task; what the auction says of itself comes after it."""

MOST_RAISES = 20
"""Up to so many minimum raises above the least bid are offered to those who choose from a list."""

BEYOND = 10
"""How far a sum may be from anything possible and still be taken as a (wrong) belief."""

MANY_BIDDERS = 30
"""Number of bidders up to which rule twins, too, are asked with all names spelt out."""

LESSONS = "lessons"
"""Label of the question what a bidder learns from the last auction."""

MAX_REASONS = 1_500
"""Maximum number of characters of a plan's reasons that later prompts repeat."""

UNUSABLE = frozenset({"Unparsed", "Undecided", "Invalid"})
"""Kinds of failure in which something was said; where nothing came, nobody is asked again."""


class AuctionBidder(LLMAgent):
    """Somebody who bids.

    Attributes:
        policy: What its rule twin bids by.
        lessons: What it has learnt in the auctions so far.
        reasons: What it wrote when it made the plan in force; empty if it gave no reasons.
        is_asked_again: Whether its last answer was refused, and it may try again in this stage.
    """

    def __init__(self, model: Any, policy: BiddingPolicy, **components: Any) -> None:
        """Take a seat.

        Args:
            model: The model.
            policy: What its rule twin bids by.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.policy = policy
        self.lessons: tuple[str, ...] = ()
        self.reasons = ""
        self.is_asked_again = False

    # -- observe

    def observe(self) -> Observation:
        """Look at the auction; before a further one, look back at the last."""
        if self.model.is_learning:
            seen = self.with_news(Observation(self._looking_back(), answer=Lessons, tools=(), label=LESSONS))
            return replace(seen, rules=RULES)
        seen = super().observe()
        facts: AuctionFacts = seen.facts
        return replace(
            seen,
            text="\n".join(filter(None, (self._learnt(), seen.text, self._reasoned(facts)))),
            rules=f"{RULES}\n\n{seen.rules}",
            answer=self._answer_type(facts),
            label=facts.stage,
            options=self._bids(facts) if facts.stage == "bid" and self.opened.capabilities.needs_options else {},
        )

    def _answer_type(self, facts: AuctionFacts) -> Any:
        """Return the type of the answer; where many bid by rule, names are not spelt out, which takes long."""
        is_many = len(self.model.bidders) > MANY_BIDDERS and self.opened.llm is None
        if is_many and facts.stage in ("plan", "replan", "belief"):
            return dict[str, Any]
        if facts.stage in ("plan", "replan"):
            return plan_of(tuple(lot.name for lot in facts.remaining))
        if facts.stage != "belief":
            return None
        auctioneer = self.model.auction.auctioneer
        names = tuple(account.bidder.name for account in auctioneer.watched_by(self.unique_id))
        lots = tuple(lot.name for lot in auctioneer.lots)
        return belief_of(names, lots, BEYOND * self.model.most_dollars)

    def _bids(self, facts: AuctionFacts) -> dict[str, tuple[int, ...]]:
        """Give bids to choose from: the least one, and some raises above it; none if the money is short of it."""
        step = self.model.auction.auctioneer.minimum_raise or 1
        most = min(facts.budget, facts.least_bid + MOST_RAISES * step)
        return {"amount": tuple(range(facts.least_bid, most + 1, step))}

    def _learnt(self) -> str:
        if not self.lessons:
            return ""
        return "What you learnt in earlier auctions:\n" + "\n".join(f"- {lesson}" for lesson in self.lessons) + "\n"

    def _reasoned(self, facts: AuctionFacts) -> str:
        if not self.reasons or facts.stage not in ("bid", "replan"):
            return ""
        return f"When you made your plan you wrote: {quoted(self.reasons, MAX_REASONS)}"

    def _looking_back(self) -> str:
        ask = f"What do you learn from this for the next auction? At most {MOST_LESSONS} short sentences."
        told = self.model.last_told
        return "\n".join(
            filter(None, (f"You are {self.config.name}. The last auction:", told, "", self._learnt(), ask))
        )

    # -- the rule twin

    def rule(self, seen: Observation) -> Any:
        """Bid by the policy; rate the lots by what the money is enough for; believe what is true."""
        if self.model.is_learning:
            return {"lessons": [self._lesson()]}
        facts: AuctionFacts = seen.facts
        match facts.stage:
            case "plan" | "replan":
                return twins.plan(facts)
            case "belief":
                return twins.belief(facts)
            case "bid":
                amount = self.policy.bid(facts, self.random)
                return ToolCall("withdraw") if amount is None else ToolCall("bid", {"amount": amount})
            case "over":
                return None

    def _lesson(self) -> str:
        mine = self.model.auctions[-1].accounts[self.unique_id]
        dear = sum(win.price > win.lot.true_value for win in mine.wins)
        profit = dollars(mine.profit)
        return f"I won {len(mine.wins)} lots, {dear} of them for more than they were worth; my profit was {profit}."

    # -- act

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Bid, or hand the plan, the belief or the lessons over; note whether it may try again."""
        before, plans = self._tries(), len(self.account.plans)
        outcomes = super().act(decision, seen)
        if isinstance(decision, Failure):
            self._be_unclear(decision)
        elif decision.actions and any(not outcome.ok for outcome in outcomes) and self._tries() == before:
            self._be_unclear(None)
        self.is_asked_again = self.model.auction.is_asked(self.unique_id) and self._tries() > before
        if isinstance(decision, Decision) and len(self.account.plans) > plans:
            self.reasons = decision.text
        return outcomes

    def receive(self, answer: Any, label: str, world: str) -> Any:
        """Take lessons down; plans and beliefs go to the auction."""
        given = answer.model_dump() if isinstance(answer, BaseModel) else answer
        return self._learn(given) if label == LESSONS else super().receive(given, label, world)

    def remember(self, decision: Decision, outcomes: Iterable[Outcome], seen: Observation | None = None) -> None:
        """Remember bids; plans and beliefs, which every prompt repeats, only a conversation keeps."""
        if decision.answer is None or isinstance(self.memory, ChatMemory):
            super().remember(decision, outcomes, seen)

    def _learn(self, said: Mapping[str, Any]) -> str:
        lessons = said.get("lessons")
        if not isinstance(lessons, list) or not all(isinstance(lesson, str) for lesson in lessons):
            raise ToolError("'lessons' must be a list of sentences.")
        self.lessons = tuple(one_line(lesson, 300) for lesson in lessons[:MOST_LESSONS])
        return f"You keep {len(self.lessons)} lessons in mind."

    def _be_unclear(self, failure: Failure | None) -> None:
        """Count an answer that could not be used, if there was one; after some of them nobody is asked again."""
        auction, me = self.model.auction, self.unique_id
        if self.model.is_learning or (failure is not None and failure.kind not in UNUSABLE):
            return
        with suppress(ToolError):
            match auction.stage:
                case "bid":
                    auction.note_unclear(me)
                case "belief":
                    auction.report_belief(me, {})
                case _:
                    auction.plan(me, {})

    def _tries(self) -> int:
        """Count what the auction has heard of it: every try in every stage counts."""
        auctioneer = self.model.auction.auctioneer
        return self.account.bid_calls + auctioneer.revisions[self.unique_id]

    # -- looking

    @property
    def account(self) -> Account:
        """The auctioneer's account of it, in the present auction."""
        return self.model.auction.accounts[self.unique_id]

    @property
    def budget(self) -> int:
        """Dollars left."""
        return self.account.budget

    @property
    def profit(self) -> int:
        """Dollars of profit so far."""
        return self.account.profit

    @property
    def n_wins(self) -> int:
        """Lots won so far."""
        return len(self.account.wins)

    @property
    def skill(self) -> float:
        """Mean of its TrueSkill rating, after the auctions that are over."""
        return self.model.ratings[self.config.name].mu
