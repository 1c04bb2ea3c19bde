"""Bidders, who plan, bid, track each other's money, and learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, Field

from mesa_llm import ChatMemory, Decision, Failure, LLMAgent, MemoryEntry, Observation, Outcome, ToolCall, ToolError
from mesa_llm.canonical import canonical_json
from mesa_llm.engine.reading.answers import written_answer
from mesa_llm.memory import NoMemory
from mesa_llm.memory.text import NO_ANSWER
from mesa_llm.records import ChatMessage
from mesa_llm.text import counted, one_line
from mesa_llm_models.auction_arena import policies
from mesa_llm_models.auction_arena.policies import BiddingPolicy
from mesa_llm_models.auction_arena.text import (
    NO_LESSONS,
    OVER,
    learnt_text,
    lessons_text,
    reasons_text,
    retrospect_text,
    whole_sentences,
)
from mesa_llm_models.auction_arena.world import AuctionFacts, BidderAccount, dollars

MAX_LESSONS = 6
"""Maximum number of lessons a bidder draws from one auction."""

MAX_RAISES = 20
"""Maximum number of raises above the minimum bid offered to bidders that choose from a list."""

BEYOND = 10
"""Multiple of the largest possible sum up to which a sum is accepted as a (wrong) belief."""

MANY_BIDDERS = 30
"""Maximum number of bidders up to which rule twins' answer types also list all names."""

OBJECTIVE = "objective"
"""Name of what a bidder wants in its config."""

LESSONS = "lessons"
"""Label of the question for a bidder's lessons from the last auction."""

UNUSABLE = frozenset({"Unparsed", "OffList", "Undecided", "Invalid"})
"""Kinds of failure with a reply. Without a reply, there is no retry."""

DIALOGUE = "dialogue"
"""Name of this memory in the parameters of the model."""

DIALOGUE_TOKENS = 64_000
"""Maximum number of tokens kept: far more than a plan and the longest bidding on a lot need."""

MAX_PAIRS = 2_000
"""Maximum number of requests and answers kept."""

_PLAN = 1.0
"""Importance that marks the entries of a plan, as opposed to those of bids."""

Lesson = Annotated[str, Field(min_length=1, max_length=300)]


class Lessons(TypedDict):
    """What a bidder has learnt."""

    lessons: Annotated[list[Lesson], Field(min_length=1, max_length=MAX_LESSONS)]


class AuctionBidder(LLMAgent):
    """A bidder in an auction.

    Attributes:
        policy: Bidding policy of its rule twin.
        lessons: Its lessons from the auctions so far.
        reasons: Its reasons for the current plan, or empty.
        may_try_again: Whether its last answer was refused and it may retry in this stage.
    """

    def __init__(self, model: Any, policy: BiddingPolicy, **components: Any) -> None:
        """Add a bidder.

        Args:
            model: The model.
            policy: Bidding policy of its rule twin.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.policy = policy
        self.lessons: tuple[str, ...] = ()
        self.reasons = ""
        self.may_try_again = False

    # -- observe

    def observe(self) -> Observation:
        """Observe the auction. Before another auction, review the last.

        With `fidelity="original"` the bidder reads exactly what the original's bidders read.
        """
        is_original = self.model.scenario.fidelity == "original"
        if self.model.is_learning:
            text = self._published_lessons() if is_original else self._retrospect()
            system = self._published_system() if is_original else ""
            place = "system" if is_original else "last"
            lessons = Observation(text, system, answer=Lessons, tools=(), label=LESSONS, persona_place=place)
            return self.with_news(lessons)
        if is_original:
            seen = self.model.auction.observe(self.unique_id)
            facts: AuctionFacts = seen.facts
            text = self._published_request(facts)
            tools = ("bid", "withdraw") if facts.stage == "bid" else ()  # the original's bidders may always try
            question = self._question(replace(seen, tools=tools, limits={}), text)
            question = replace(question, instructions=self._published_system(), persona_place="system")
            return self.with_news(question)
        seen = super().observe()
        own = " ".join(filter(None, (f"You are {seen.facts.name}.", self.objective)))
        text = "\n".join(
            filter(None, (lessons_text(self.known_lessons), own, seen.text, self._reasons_text(seen.facts)))
        )
        return self._question(seen, text)

    @property
    def objective(self) -> str:
        """What it wants, in a sentence; empty if its config does not say."""
        return str(self.config.role.get(OBJECTIVE, ""))

    @property
    def known_lessons(self) -> tuple[str, ...]:
        """Its lessons as far as it remembers them: none without a memory."""
        return () if isinstance(self.memory, NoMemory) else self.lessons

    def _question(self, seen: Observation, text: str) -> Observation:
        """Return a text with the current stage's question."""
        facts: AuctionFacts = seen.facts
        options = self._options(facts)
        return replace(seen, text=text, answer=self._answer_type(facts), label=facts.stage, options=options)

    # -- the published texts

    def _published_system(self) -> str:
        """Return the original's system message: kind of auction, objective, meaning of profit, and lessons."""
        return self.model.prompt("original_system.md", objective=self.objective, lessons=self.known_lessons)

    def _published_lessons(self) -> str:
        """Return the request to learn from the last auction."""
        return self.model.prompt("original_lessons.md", story=self.model.last_story, maximum=MAX_LESSONS)

    def _published_request(self, facts: AuctionFacts) -> str:
        """Return the original's request in the current stage, with all bids on the current lot.

        If the conversation already has the bid request, only the refusal is added.
        """
        if facts.stage == "over":
            return OVER
        auctioneer = self.model.auction.auctioneer
        rounds = [
            [
                f"{auctioneer.names[record.bidder]} {'withdrew' if record.amount is None else f'bid ${record.amount}'}"
                for record in records
            ]
            for records in auctioneer.bidding.rounds
        ]
        return self.model.prompt(
            f"original_{facts.stage}.md",
            facts=facts,
            objective=self.objective,
            is_again=self.may_try_again and facts.stage == "bid" and isinstance(self.memory, BidderDialogue),
            names=[facts.lot.name, *(lot.name for lot in facts.remaining)],
            status=self._status(facts),
            rounds=rounds,
            minimum_raise=auctioneer.minimum_raise,
            sale=facts.sales[-1] if facts.sales else None,
            refusals=" ".join(one_line(refusal) for refusal in facts.refusals),
        )

    def _status(self, facts: AuctionFacts) -> str:
        """Return the last belief as JSON; empty in a bid request to bidders with the plan in their memory."""
        if facts.stage == "bid" and self.account.bidder.planning == "adaptive":
            return ""
        return one_line(canonical_json(facts.belief), 20_000)

    def prompt(self, seen: Observation) -> tuple[ChatMessage, ...]:
        """Write the prompt. A dialogue of plan and bids precedes only bid requests."""
        prompt = super().prompt(seen)
        if seen.label == "bid" or not isinstance(self.memory, BidderDialogue):
            return prompt
        return (*(message for message in prompt[:-1] if message.role == "system"), prompt[-1])

    def _options(self, facts: AuctionFacts) -> dict[str, tuple[int, ...]]:
        return self._bids(facts) if facts.stage == "bid" and self.opened.capabilities.needs_options else {}

    def _answer_type(self, facts: AuctionFacts) -> Any:
        """Return the answer type. With many rule-based bidders, names are not listed, because that is slow."""
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
        return belief_of(names, lots, BEYOND * self.model.max_dollars)

    def _bids(self, facts: AuctionFacts) -> dict[str, tuple[int, ...]]:
        """Return bids to choose from: the minimum bid and some raises above it; empty if the budget is too small."""
        step = self.model.auction.auctioneer.minimum_raise or 1
        highest = min(facts.budget, facts.min_bid + MAX_RAISES * step)
        return {"amount": tuple(range(facts.min_bid, highest + 1, step))}

    def _reasons_text(self, facts: AuctionFacts) -> str:
        if not self.reasons or facts.stage not in ("bid", "replan"):
            return ""
        if isinstance(self.memory, BidderDialogue | NoMemory):
            return ""
        return reasons_text(self.reasons)

    def _retrospect(self) -> str:
        return retrospect_text(self.config.name, self.model.last_story, lessons_text(self.known_lessons), MAX_LESSONS)

    # -- the rule twin

    def rule(self, seen: Observation) -> Any:
        """Bid by the policy; rate the lots by what the budget covers; state true beliefs."""
        if self.model.is_learning:
            return {"lessons": [self._lesson()]}
        facts: AuctionFacts = seen.facts
        match facts.stage:
            case "plan" | "replan":
                return policies.plan(facts)
            case "belief":
                return policies.belief(facts)
            case "bid":
                amount = self.policy.bid(facts, self.random)
                return ToolCall("withdraw") if amount is None else ToolCall("bid", {"amount": amount})
            case "over":
                return None

    def _lesson(self) -> str:
        account = self.model.auctions[-1].accounts[self.unique_id]
        dear = sum(win.price > win.lot.true_value for win in account.wins)
        profit = dollars(account.profit)
        lots = counted(len(account.wins), "lot")
        return f"I won {lots}, {dear} of them for more than they were worth; my profit was {profit}."

    # -- act

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Bid, or submit the plan, belief or lessons. Record whether it may retry."""
        n_tries, plans = self._tries(), len(self.account.plans)
        outcomes = super().act(decision, seen)
        if isinstance(decision, Failure):
            self._note_unclear(decision)
        elif decision.actions and any(not outcome.ok for outcome in outcomes) and self._tries() == n_tries:
            self._note_unclear(None)
        self.may_try_again = self.model.auction.is_due(self.unique_id) and self._tries() > n_tries
        if isinstance(decision, Decision) and len(self.account.plans) > plans:
            self.reasons = whole_sentences(decision.text)
        if seen is not None and isinstance(self.memory, BidderDialogue) and self.opened.llm is not None:
            self._converse(self.memory, decision, seen, is_plan=len(self.account.plans) > plans)
        return outcomes

    def _converse(
        self, dialogue: BidderDialogue, decision: Decision | Failure, seen: Observation, *, is_plan: bool
    ) -> None:
        """Store an accepted plan, and every bid request with its answer."""
        is_failed = isinstance(decision, Failure)
        if is_plan and not is_failed:
            plan = written_answer(decision.answer, seen.answer)
            dialogue.keep_plan(self.now, seen.text, _reply_text(decision.text, plan))
        elif seen.label == "bid":
            calls = () if is_failed else decision.actions
            bids = [canonical_json({"action": call.name, "arguments": call.arguments}) for call in calls]
            reasons = "" if is_failed else decision.text
            dialogue.keep_bid(self.now, seen.text, _reply_text(reasons, "\n".join(bids)) or NO_ANSWER)

    def receive(self, answer: Any, label: str, world: str) -> Any:
        """Record lessons. Plans and beliefs go to the auction."""
        answer = answer.model_dump() if isinstance(answer, BaseModel) else answer
        return self._learn(answer) if label == LESSONS else super().receive(answer, label, world)

    def remember(self, decision: Decision, outcomes: Iterable[Outcome], seen: Observation | None = None) -> None:
        """Remember bids. Plans and beliefs are repeated in every prompt, so only a conversation stores them."""
        if isinstance(self.memory, BidderDialogue):
            self.remember_messages()
        elif decision.answer is None or isinstance(self.memory, ChatMemory):
            super().remember(decision, outcomes, seen)

    def _learn(self, answer: Mapping[str, Any]) -> str:
        lessons = answer.get("lessons")
        if not isinstance(lessons, list) or not all(isinstance(lesson, str) for lesson in lessons):
            raise ToolError(NO_LESSONS)
        self.lessons = tuple(one_line(lesson, 300) for lesson in lessons[:MAX_LESSONS])
        return learnt_text(len(self.lessons))

    def _note_unclear(self, failure: Failure | None) -> None:
        """Count an invalid answer, if there was one. After a number of them the bidder is not asked again."""
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
        """Count the bidder's tries in all stages."""
        auctioneer = self.model.auction.auctioneer
        return self.account.bid_calls + auctioneer.revisions[self.unique_id]

    # -- measures

    @property
    def account(self) -> BidderAccount:
        """The auctioneer's account of it, in the current auction."""
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
        """Mean of its TrueSkill rating, after the finished auctions."""
        return self.model.ratings[self.config.name].mu


class BidderDialogue(ChatMemory):
    """Remembers the last plan request and plan, and every bid request and bid on the current lot.

    Source:
        Chen et al. (2023), AucArena, arXiv:2310.05746, and its program.
    """

    __slots__ = ()

    def __init__(self, max_tokens: int = DIALOGUE_TOKENS, pairs: int = MAX_PAIRS) -> None:
        """Create an empty dialogue. The arguments are those of `ChatMemory`."""
        super().__init__(max_tokens, pairs)

    def keep_plan(self, step: int, request: str, answer: str) -> None:
        """Remember a plan, replacing the previous one and all bids.

        Args:
            step: Step of the plan.
            request: The request to the bidder.
            answer: Its reasons and its plan.
        """
        self.forget_all()
        self._keep(step, request, answer, _PLAN)

    def keep_bid(self, step: int, request: str, answer: str) -> None:
        """Remember a bid. The arguments are those of `keep_plan`."""
        self._keep(step, request, answer, 0.5)

    def forget_bids(self) -> None:
        """Forget the dialogue about a lot before the next one."""
        self.forget(lambda entry: entry.importance != _PLAN)

    def forget_all(self) -> None:
        """Forget everything before the next auction."""
        self.forget(lambda entry: True)

    def messages(self) -> tuple[ChatMessage, ...]:
        """Return requests and answers alternately, word for word."""
        messages: list[ChatMessage] = []
        for request, answer in self._pairs():
            messages += [ChatMessage("user", request.text), ChatMessage("assistant", answer.text)]
        return tuple(messages)

    def _keep(self, step: int, request: str, answer: str, importance: float) -> None:
        self.add(MemoryEntry(step, "observation", request, importance))
        self.add(MemoryEntry(step, "decision", answer, importance))


@lru_cache(maxsize=256)
def plan_of(lots: tuple[str, ...]) -> Any:
    """Return the type of a plan: each remaining lot → 1 (dispensable), 2 (worth it if affordable) or 3 (top).

    Args:
        lots: Names of the remaining lots.
    """
    return _record("Plan", dict.fromkeys(lots, Literal[1, 2, 3]))


@lru_cache(maxsize=256)
def belief_of(bidders: tuple[str, ...], lots: tuple[str, ...], max_dollars: int) -> Any:
    """Return the type of a belief, with the three fields of `mesa_llm_models.auction_arena.world.Belief`.

    Args:
        bidders: Names of all bidders.
        lots: Names of all lots of the auction.
        max_dollars: Largest absolute sum accepted as a belief.
    """
    dollars = Annotated[float, Field(ge=-max_dollars, le=max_dollars)]
    won = dict[Literal[lots], dollars]  # pyright: ignore[reportInvalidTypeArguments, reportInvalidTypeForm]
    fields = {
        "remaining_budget": dollars,
        "total_profits": _record("Profits", dict.fromkeys(bidders, dollars)),
        "winning_bids": _record("Wins", dict.fromkeys(bidders, won)),
    }
    return _record("Belief", fields)


def _record(name: str, fields: dict[str, Any]) -> Any:
    make: Any = TypedDict  # type checkers expect the fields as a literal
    return make(name, fields)


def _reply_text(reasons: str, decision: str) -> str:
    """Write a reply for a conversation: the reasons, then the decision."""
    return "\n".join(filter(None, (reasons.strip(), decision)))
