"""The auction as a world: what bidders observe and do, with one stage per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ActionResult, Event, Observation
from mesa_llm.tools.tool import action
from mesa_llm.tools.validation import NO_FLAG
from mesa_llm.world import RNG, Rules, make_rng
from mesa_llm_models.auction_arena.world import text as wording
from mesa_llm_models.auction_arena.world.beliefs import Belief
from mesa_llm_models.auction_arena.world.facts import AuctionFacts, bidder_facts
from mesa_llm_models.auction_arena.world.lots import Lot
from mesa_llm_models.auction_arena.world.rules import ORIGINAL_RULES, Auctioneer, AuctionRules, Stage
from mesa_llm_models.auction_arena.world.state import Bidder, BidderAccount, Fault, Sale


class Priorities(BaseModel):
    """A plan: the type of the answer asked for when bidders plan."""

    model_config = ConfigDict(frozen=True)

    priorities: dict[str, Literal[1, 2, 3]] = Field(max_length=200)
    """Lot → 1 (dispensable), 2 (worth it if affordable) or 3 (top)."""


class Auction:
    """An ascending open auction of lots whose true values are hidden.

    One step of the world is one stage: planning, one round of bidding on one lot, stating beliefs, or replanning. The
    auction's driver queries the bidders in `due` until none is left (a bidder with a rejected answer remains, up to a
    limit), and then calls `end_step()`:

        while not auction.is_over:
            while auction.due:
                for bidder in auction.due:
                    ...  # plan(), bid() or withdraw(), report_belief(): whatever auction.stage says
            events = auction.end_step()

    Bids in a round are simultaneous, regardless of their order of arrival: they take effect by seat when the step ends.
    Stages without due bidders are skipped.

    Source:
        AucArena: Chen et al. (2023), arXiv:2310.05746. `rules="original"` is the authors' program, with its biased ties
            and unlimited re-bids.
    """

    wording: ClassVar[Any] = wording
    """Module with the texts agents read. A subclass may set its own."""

    def __init__(
        self,
        lots: Sequence[Lot],
        bidders: Sequence[Bidder],
        *,
        rules: AuctionRules | Rules = "corrected",
        rng: RNG | int | None = None,
        name: str = "auction",
    ) -> None:
        """Open the auction.

        Args:
            lots: The lots, in auction order; see `ordered_lots`.
            bidders: The bidders, by seat.
            rules: Rules of the auction.
            rng: Random generator, or a seed.
            name: Name of the world.

        Raises:
            ConfigError: If the rules are unknown, there are no lots or bidders, two share a name, or an amount is out
                of range.
        """
        if isinstance(rules, str):
            if rules not in ("corrected", "original"):
                raise ConfigError(f"rules must be 'corrected' or 'original', got {rules!r}")
            rules = ORIGINAL_RULES if rules == "original" else AuctionRules()
        self.name = name
        self.step = 1
        rng = make_rng(rng)
        self.auctioneer = Auctioneer(lots, bidders, rules, rng)
        self._instructions = self.wording.instructions_text(self.auctioneer)
        self._refusals: dict[int, tuple[str, ...]] = {}

    @property
    def stage(self) -> Stage:
        """Current stage."""
        return self.auctioneer.stage

    @property
    def due(self) -> tuple[int, ...]:
        """Bidders that still have to answer in this stage, by seat."""
        return tuple(self.auctioneer.due)

    def is_due(self, agent_id: int) -> bool:
        """Check whether a bidder still has to answer in this stage."""
        return agent_id in self.auctioneer.due

    @property
    def is_over(self) -> bool:
        """Whether all lots are done and all beliefs about the last one are stated."""
        return self.auctioneer.stage == "over"

    @property
    def accounts(self) -> Mapping[int, BidderAccount]:
        """The auctioneer's accounts by bidder, in the order of seats."""
        return self.auctioneer.accounts

    @property
    def sales(self) -> Sequence[Sale]:
        """Sales so far."""
        return self.auctioneer.sales

    def observe(self, agent_id: int) -> Observation:
        """Return a bidder's observation with the stage's question: for a bid, a plan or a belief."""
        facts = self.facts(agent_id)
        answers = {"plan": Priorities, "replan": Priorities, "belief": Belief}
        return Observation(
            text=self.wording.observation_text(facts),
            instructions=self._instructions,
            answer=answers.get(facts.stage),
            tools=self._tools(facts),
            limits={"bid.amount": (facts.min_bid, facts.budget)} if facts.stage == "bid" else {},
            facts=facts,
        )

    def _tools(self, facts: AuctionFacts) -> tuple[str, ...]:
        """Return the names of the actions: no bid without the money for the lowest one."""
        if facts.stage != "bid":
            return ()
        return ("bid", "withdraw") if facts.min_bid <= facts.budget else ("withdraw",)

    def facts(self, agent_id: int) -> AuctionFacts:
        """Return what a bidder knows, as values."""
        return bidder_facts(self.auctioneer, agent_id, self._refusals.get(agent_id, ()))

    def story(self) -> str:
        """Summarise the auction so far in words: lot by lot, and bidder by bidder."""
        return self.wording.story_text(self.auctioneer)

    def may_bid(self, agent_id: int) -> bool:
        """Check whether a bidder is due to bid."""
        return self.stage == "bid" and self.is_due(agent_id)

    @property
    def moment(self) -> str:
        """The round of bidding, as it begins a sentence."""
        bidding = self.auctioneer.bidding
        return f"In round {len(bidding.rounds) + 1} on {bidding.lot.name}"

    @action(when="may_bid", did="You bid ${amount}.")
    def bid(self, agent_id: int, amount: Annotated[int, NO_FLAG]) -> ActionResult:
        """Bid on the lot that is being auctioned.

        Args:
            amount: Your bid, in whole dollars; you pay it if you win.
        """
        self._check_due(agent_id, "bid")
        if isinstance(amount, bool) or not isinstance(amount, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(self.wording.reason_text("not_whole", amount=amount))
        fault = self.auctioneer.bid(agent_id, amount)
        if fault is not None:
            self._refuse(agent_id, self._explain(agent_id, amount, fault))
        return ActionResult(
            self.wording.result_text("bid", amount=amount), lot=self.auctioneer.bidding.lot.name, amount=amount
        )

    @action(when="may_bid", did="You withdrew.")
    def withdraw(self, agent_id: int) -> ActionResult:
        """Withdraw from the lot that is being auctioned; you can bid again on the next one."""
        self._check_due(agent_id, "bid")
        self.auctioneer.withdraw(agent_id)
        return ActionResult(self.wording.result_text("withdraw"), lot=self.auctioneer.bidding.lot.name)

    def note_unclear(self, agent_id: int) -> None:
        """Count a reply that was neither a bid nor a withdrawal. It uses up one try.

        Raises:
            ToolError: If the bidder is not due to bid.
        """
        self._check_due(agent_id, "bid")
        self.auctioneer.note_unclear(agent_id)
        self._refusals[agent_id] = (self.wording.UNCLEAR,)

    def plan(self, agent_id: int, priorities: Mapping[str, Any]) -> str:
        """Record a bidder's plan: lot → 1, 2 or 3.

        Raises:
            ToolError: If the bidder is not due to plan, or the plan is invalid. After two revisions the bidder is no
                longer asked and keeps its previous plan.
        """
        self._check_due(agent_id, "plan", "replan")
        fault = self.auctioneer.take_plan(agent_id, priorities)
        if fault:
            self._refuse(agent_id, fault)
        return self.wording.result_text("plan")

    def report_belief(self, agent_id: int, statement: Mapping[str, Any]) -> str:
        """Record a bidder's beliefs: the three fields of `Belief`.

        Raises:
            ToolError: If the bidder is not due to state beliefs, or has to correct them. After four revisions, its
                statement is no longer checked.
        """
        self._check_due(agent_id, "belief")
        problems = self.auctioneer.take_belief(agent_id, statement)
        if problems:
            self._refuse(agent_id, *problems)
        return self.wording.result_text("belief")

    def receive(self, agent_id: int, answer: Any, label: str) -> str:
        """Record a plan or a belief.

        Raises:
            ToolError: As in `plan` and `report_belief`.
        """
        if label == "belief":
            return self.report_belief(agent_id, answer)
        return self.plan(agent_id, answer.get("priorities", answer))

    def end_step(self) -> list[Event]:
        """End the stage: process bids by seat, and sell the lot or continue. Return events of completed lots."""
        self._refusals = {}
        events = [self._event(sale) for sale in self.auctioneer.end_stage()]
        self.step += 1
        return events

    def _check_due(self, agent_id: int, *stages: Stage) -> None:
        if agent_id not in self.accounts:
            raise ToolError(self.wording.reason_text("no_bidder", agent_id=agent_id))
        if self.stage not in stages:
            refusal = "not_belief_time" if "belief" in stages else "wrong_stage"
            raise ToolError(self.wording.reason_text(refusal, doing=stages[0], stage=self.stage))
        if agent_id in self.auctioneer.due:
            return
        if self.stage == "bid" and self.auctioneer.bidding.standing.leader == agent_id:
            raise ToolError(self.wording.reason_text("leads"))
        if self.stage == "bid" and self.accounts[agent_id].is_withdrawn:
            raise ToolError(self.wording.reason_text("withdrawn", lot=self.auctioneer.bidding.lot.name))
        raise ToolError(self.wording.reason_text("answered"))

    def _refuse(self, agent_id: int, *problems: str) -> None:
        if self.stage == "bid" and agent_id not in self.auctioneer.due:
            problems = (*problems, self.wording.NO_MORE_TRIES)
        self._refusals[agent_id] = problems
        raise ToolError(" ".join(problems))

    def _explain(self, agent_id: int, amount: int, fault: Fault) -> str:
        bidding = self.auctioneer.bidding
        reason = self.wording.FAULTS[fault].format(
            budget=self.accounts[agent_id].budget,
            start=bidding.start,
            before=bidding.before,
            minimum_raise=self.auctioneer.minimum_raise,
        )
        return self.wording.refusal_text(amount, reason, self.auctioneer.min_bid)

    def _event(self, sale: Sale) -> Event:
        facts: dict[str, Any] = {"lot": sale.lot.name, "rounds": len(sale.bidding.rounds)}
        if sale.winner is None:
            return Event(self.name, "lot_unsold", facts, self.wording.unsold_text(sale.lot.name), self.step)
        winner = self.accounts[sale.winner].bidder.name
        facts |= {"winner": sale.winner, "price": sale.price, "true_value": sale.lot.true_value}
        text = self.wording.sold_text(sale.lot.name, winner, sale.price, sale.lot.true_value)
        return Event(self.name, "lot_sold", facts, text, self.step)
