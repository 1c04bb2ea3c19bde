"""An auction of lots of unknown value: bidders plan, bid, track each other's money, and revise their plans."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mesa_llm import (
    AgentConfig,
    ConfigError,
    Event,
    Hidden,
    Label,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Settings,
    Slider,
    Structure,
)
from mesa_llm.engine.activation import Stage
from mesa_llm.llm.protocol import LLM
from mesa_llm.population import drawn_personas
from mesa_llm.tools.tool import describe
from mesa_llm.tools.validation import NO_FLAG
from mesa_llm.world import Rules
from mesa_llm_models.auction_arena.agents import DIALOGUE, OBJECTIVE, AuctionBidder, BidderDialogue
from mesa_llm_models.auction_arena.policies import twin
from mesa_llm_models.auction_arena.text import BIDDING
from mesa_llm_models.auction_arena.world import (
    DESIRES,
    MU,
    NICHE_LOTS,
    ORIGINAL_RULES,
    PAPER_LOTS,
    REPOSITORY_LOTS,
    SIGMA,
    Auction,
    AuctionRules,
    Bidder,
    Desire,
    Lot,
    LotOrder,
    Planning,
    Sale,
    SkillRating,
    TieRule,
    ordered_lots,
    rate,
    read_lots,
    score_sales,
)

TEMPERATURE, MAX_TOKENS = 0.0, 3000
"""Sampling settings as in the paper, with enough tokens to reason about everyone's profits and lots."""

MAX_DOLLARS = 10**9
"""Largest budget, in dollars."""

LOTS: dict[str, Sequence[Lot]] = {"paper": PAPER_LOTS, "repository": REPOSITORY_LOTS, "niche": NICHE_LOTS}
"""Lists of lots by name."""


class Seat(BaseModel):
    """Parameters of one bidder."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    name: str
    """Its name."""

    twin: str
    """Name of its rule twin."""

    budget: Annotated[int, NO_FLAG, Field(ge=0, le=MAX_DOLLARS)]
    """Dollars for one auction."""

    desire: Desire
    """Its desire."""

    planning: Planning
    """When it plans."""

    overestimate_percent: Annotated[float, NO_FLAG, Field(gt=-100, le=1000)]
    """Percentage by which its estimates exceed true values."""

    corrects_beliefs: bool
    """Whether wrong beliefs are returned to it for correction."""

    def bidder(self, unique_id: int) -> Bidder:
        """Return the bidder as it enters an auction.

        Args:
            unique_id: Mesa `unique_id` of the agent.
        """
        return Bidder(
            unique_id,
            self.name,
            self.budget,
            self.desire,
            self.planning,
            self.overestimate_percent,
            corrects_beliefs=self.corrects_beliefs,
        )


class AuctionScenario(LLMScenario):
    """Parameters of a series of auctions.

    A setting by seat is one value, or several for the seats in turn: a list, or a comma-separated text.
    """

    n_agents: Annotated[int, Field(ge=2), Slider(2, 10, label="Bidders")] = 3
    """Number of bidders."""

    names: str | list[str] = ""
    """Names of the bidders, by seat; empty for Bidder 1, Bidder 2, …"""

    twins: str | list[str] = "rule,value,shade"
    """Rule twins of the bidders, by seat: `rule`, `value`, `shade`, `naive`, `zero`, `pacing` or `selective`; see
    `mesa_llm_models.auction_arena.policies.TWINS`."""

    opponents: str | list[str] = ""
    """Language models of all bidders but the first, by seat; empty for those of `llm=`. In Shachi's Standard
    Competition they are `gpt-3.5-turbo-1106,gpt-4-1106-preview`, and `llm=` is the one under test.
    """

    budget: int | str | list[int] = 20_000
    """Dollars for one auction, by seat."""

    desire: str | list[str] = "maximize_profit"
    """Desires of the bidders, by seat: `maximize_profit` or `maximize_items`."""

    planning: str | list[str] = "adaptive"
    """When bidders plan, by seat: `adaptive` (before the auction and after every lot), `static` (before) or `none`."""

    overestimate_percent: float | str | list[float] = 10.0
    """Percentage by which estimates exceed true values, by seat."""

    corrects_beliefs: Annotated[bool, Label("Wrong beliefs are sent back")] = True
    """Whether bidders are told about wrong beliefs and asked to correct them."""

    lots: Annotated[str, Hidden()] = "paper"
    """List of lots: `paper` (10 lots), `repository` (26), `niche` (20), or a file with one JSON object per line."""

    n_lots: Annotated[Annotated[int, Field(ge=1)] | None, Structure(5)] = None
    """Number of lots taken from the top of the list; None for all."""

    order: Annotated[LotOrder, Label("Order of lots"), Structure("ascending", "descending")] = "random"
    """Order in which lots are auctioned; two of the orders go by starting price."""

    raise_share: Annotated[float, Field(ge=0, le=10), Slider(0, 1, 0.05, label="Minimum raise, share of start")] = 0.1
    """Minimum raise, as a share of the starting price."""

    tie: Annotated[TieRule, Label("Equal bids")] = "uniform"
    """How ties are decided: with equal chances, or by the original's scan, which favours late seats."""

    max_retries: Annotated[Annotated[int, Field(ge=0)] | None, Label("Tries after an invalid bid")] = 3
    """Number of retries after an invalid bid; None for no limit, as in the original."""

    rules: Rules = "corrected"
    """How the auction is run: `original` as in the authors' program, with `tie="scan"`, `max_retries=None`, and its
    treatment of plans, beliefs and prices that fall to zero.
    """

    discount: Annotated[bool, Label("Halve prices of unwanted lots")] = False
    """Whether the starting price of unsold lots is halved."""

    n_auctions: Annotated[int, Field(ge=1), Slider(1, 20, label="Auctions")] = 1
    """Number of consecutive auctions with the same bidders."""

    rotate: Annotated[bool, Label("Rotate seats")] = True
    """Whether bidders move up a seat after each auction."""

    learning: Annotated[bool, Label("Learn from auction to auction")] = False
    """Whether bidders draw lessons from the previous auction."""

    people: Annotated[Literal["drawn", "alike"], Label("Who the bidders are")] = "drawn"
    """Who the bidders are: each with a trait, drawn from the seed, or all alike, as always with
    `fidelity="original"`."""

    memory: Annotated[str | None, Hidden()] = None
    """Memory of the bidders; `dialogue` is the original's. None for `window:6`, or `dialogue` with
    `fidelity="original"`.
    """

    fidelity: Annotated[Literal["corrected", "original"], Label("What bidders see and remember")] = "corrected"
    """What bidders see and the order of requests: our choice, or the original's."""

    def check(self) -> None:
        """Check seats and lots.

        Raises:
            ConfigError: If a setting of a seat is invalid, or the list or file does not exist or has fewer lots.
        """
        self.seats()
        self.listed_lots()

    def seats(self) -> list[Seat]:
        """Return the seats with their settings."""
        n = self.n_agents
        columns: dict[str, list[Any]] = {
            "name": by_seat(self.names or [f"Bidder {number}" for number in range(1, n + 1)], n),
            "twin": by_seat(self.twins, n),
            "budget": by_seat(self.budget, n),
            "desire": by_seat(self.desire, n),
            "planning": by_seat(self.planning, n),
            "overestimate_percent": by_seat(self.overestimate_percent, n),
            "corrects_beliefs": [self.corrects_beliefs] * n,
        }
        try:
            seats = [Seat(**{name: values[index] for name, values in columns.items()}) for index in range(n)]
        except ValidationError as error:
            raise ConfigError(f"invalid seat: {describe(error)}") from None
        for seat in seats:
            twin(seat.twin, seat.overestimate_percent)
        return seats

    def listed_lots(self) -> Sequence[Lot]:
        """Return the lots, in the order of their list."""
        if self.lots not in LOTS and not Path(self.lots).is_file():
            raise ConfigError(
                f"lots must be one of {', '.join(LOTS)}, or a file with one JSON object per line; got {self.lots!r}"
            )
        lots = LOTS[self.lots] if self.lots in LOTS else read_lots(self.lots)
        if not 1 <= (self.n_lots or len(lots)) <= len(lots):
            raise ConfigError(f"n_lots must be from 1 to {len(lots)}, got {self.n_lots!r}")
        return lots[: self.n_lots]

    def auction_rules(self) -> AuctionRules:
        """Return the rules of the auctions."""
        if self.rules == "original":
            return replace(ORIGINAL_RULES, raise_share=self.raise_share, discount=self.discount)
        return AuctionRules(self.raise_share, self.tie, self.max_retries, self.discount)


def by_seat(setting: str | float | Sequence[Any], n_agents: int) -> list[Any]:
    """Return the value of a setting for each seat.

    Args:
        setting: One value for all; or a list, or a comma-separated text, with values for the seats in turn.
        n_agents: Number of seats.

    Raises:
        ConfigError: If it has no values.
    """
    if isinstance(setting, str):
        values: list[Any] = [value.strip() for value in setting.split(",") if value.strip()]
    else:
        values = list(setting) if isinstance(setting, Sequence) else [setting]
    if not values:
        raise ConfigError(f"a setting of the seats needs at least one value, got {setting!r}")
    return [values[index % len(values)] for index in range(n_agents)]


class AuctionArena(LLMModel):
    """Bidders buy lots with a limited budget. A step is one lot, from the first bid to the next plans.

    Within a step all due bidders decide together, stage after stage: plan (before the first lot), bid for as many
    rounds as needed, state beliefs, and plan again. A refused bidder may retry a few times.

    Attributes:
        auctions: All auctions so far; the last one is the current one.
        seats: Settings of each seat of the first auction.
        bidders: The agents by `unique_id`, in the order of seats of the first auction.
        lots: The lots, in the order of their list.
        rules: Rules of the auctions.
        max_dollars: Largest budget plus all starting prices, which nobody can exceed.
        ratings: TrueSkill ratings by name, after the finished auctions.
        is_learning: Whether bidders are reviewing the last auction before the next one opens.
        last_story: Story of the last auction, for this review.
    """

    goes_on_after_failures = True  # there is more to do than what failed
    max_stages = 1_000_000  # bids are bounded by rules of their own
    scenario_class = AuctionScenario
    scenario: AuctionScenario
    changeable = ("n_auctions", "rotate", "order", "learning")

    def __init__(self, scenario: AuctionScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Seat the bidders and open the first auction. A mapping `llm=` may also use bidders' names."""
        options.setdefault("activation", lot_by_lot)
        super().__init__(scenario, **options)
        if self.scenario.fidelity == "original":
            self.instructions = ""  # each observation includes the original's system message
        self.seats = self.scenario.seats()
        self.rules = self.scenario.auction_rules()
        self.lots = self.scenario.listed_lots()
        self.bidders = self._make_bidders()
        self.max_dollars = max(seat.budget for seat in self.seats) + sum(lot.start for lot in self.lots)
        self.auctions: list[Auction] = []
        self.ratings = {bidder.config.name: SkillRating(MU, SIGMA) for bidder in self.bidders.values()}
        self.is_learning = False
        self.last_story = ""
        self._events: list[Event] = []
        self.open_auction()
        self.datacollector = DataCollector(
            model_reporters={name: name for name in ("lots_sold", "rounds", "bids", "price", "true_value", "revenue")},
            agent_reporters={name: name for name in ("budget", "profit", "n_wins", "skill")},
        )
        self.datacollector.collect(self)

    # -- set-up

    def _make_bidders(self) -> dict[int, AuctionBidder]:
        memory = self.scenario.memory or (DIALOGUE if self.scenario.fidelity == "original" else "window:6")
        settings = Settings(temperature=TEMPERATURE, max_tokens=MAX_TOKENS)
        personas = [""] * len(self.seats)
        if self.scenario.people == "drawn" and self.scenario.fidelity != "original":
            rng = random.Random(f"people {self.run_seed}")
            personas = [person.persona for person in drawn_personas(len(self.seats), rng, BIDDING)]
        bidders = [
            AuctionBidder(
                self,
                twin(seat.twin, seat.overestimate_percent),
                config=AgentConfig(
                    name=seat.name,
                    persona=persona,
                    role={OBJECTIVE: DESIRES[seat.desire]},
                    settings=settings,
                    reasoning="inline",
                ),
                memory=BidderDialogue if memory == DIALOGUE else memory,
            )
            for seat, persona in zip(self.seats, personas, strict=True)
        ]
        return {bidder.unique_id: bidder for bidder in bidders}

    def open_auction(self) -> None:
        """Open the next auction: the same bidders with full budgets, the lots in a new order."""
        bidders = [seat.bidder(agent_id) for seat, agent_id in zip(self.seats, self.bidders, strict=True)]
        first = len(self.auctions) % len(bidders) if self.scenario.rotate else 0
        lots = ordered_lots(self.lots, self.scenario.order, self.random)
        auction = Auction(lots, [*bidders[first:], *bidders[:first]], rules=self.rules, rng=self.random)
        self.auctions.append(auction)
        for bidder in self.bidders.values():
            bidder.reasons = ""
            if isinstance(bidder.memory, BidderDialogue):
                bidder.memory.forget_all()
        self.worlds = (auction,)

    def llm_of(self, agent: Any) -> str | LLM:
        """Return a bidder's language model, which `llm=` may give by the bidder's name, and `opponents` by seat."""
        if self.scenario.opponents and not isinstance(self.llm, Mapping) and agent.unique_id > 1:
            return by_seat(self.scenario.opponents, self.scenario.n_agents - 1)[agent.unique_id - 2]
        if isinstance(self.llm, Mapping) and agent.config.name in self.llm and self.design is None:
            return self.llm[agent.config.name]
        return super().llm_of(agent)

    # -- the loop

    @property
    def auction(self) -> Auction:
        """The current auction."""
        return self.auctions[-1]

    @property
    def stage(self) -> str:
        """Current request to bidders: `lessons`, `plan`, `bid`, `belief`, `replan`; `over` when all lots are sold."""
        return "lessons" if self.is_learning else self.auction.stage

    @property
    def due_bidders(self) -> Stage:
        """Bidders due now, by seat."""
        agent_ids: Iterable[int] = self.auction.accounts if self.is_learning else self.auction.due
        return [self.bidders[agent_id] for agent_id in agent_ids]

    def next_stage(self, acted: Stage) -> Stage:
        """Return the bidders who may retry, or else those due in the next stage; empty if the lot is done.

        With `fidelity="original"`, bidders retry their bids one after the other, by seat.
        """
        if self.scenario.fidelity == "original" and self.stage == "bid":
            bidders = [bidder for bidder in self.due_bidders if bidder.may_try_again][:1]
        else:
            bidders = [bidder for bidder in acted if bidder.may_try_again]
        if bidders:
            return bidders
        if self.is_learning:
            self.is_learning = False
            self.open_auction()
        elif self._is_last_stage:
            return []
        else:
            self._events += self.auction.end_step()
        return self.due_bidders

    @property
    def _is_last_stage(self) -> bool:
        """Whether the current lot only lacks the end of the step, which also ends the stage."""
        is_last_lot = len(self.auction.sales) == len(self.lots)
        plans_anew = not is_last_lot and any(seat.planning == "adaptive" for seat in self.seats)
        return self.auction.stage == "replan" or (self.auction.stage == "belief" and not plans_anew)

    def end_step(self) -> None:
        """End the lot. After the last lot rate the bidders, and after the last auction end the run."""
        for bidder in self.bidders.values():
            if isinstance(bidder.memory, BidderDialogue):
                bidder.memory.forget_bids()
        events = [replace(event, time=self.now) for event in self._events]
        self._events = []
        for event in self.bridge.publish(events):
            self.runlog.add(event, self.now)
        if len(self.auction.sales) == len(self.lots):
            (self.ratings,) = rate([self.outcome(self.auction)], self.ratings)
            self.running = len(self.auctions) < self.scenario.n_auctions

    # -- measures

    def outcome(self, auction: Auction) -> dict[str, float]:
        """Return the result that decides an auction: lots if all bidders want lots, else profit in dollars.

        Args:
            auction: One of `auctions`.

        Returns:
            Name of a bidder → result, in order of creation.
        """
        by_lots = all(seat.desire == "maximize_items" for seat in self.seats)
        accounts = [auction.accounts[agent_id] for agent_id in self.bidders]
        return {account.bidder.name: float(len(account.wins) if by_lots else account.profit) for account in accounts}

    @property
    def finished_auctions(self) -> list[Auction]:
        """The finished auctions, in order."""
        return [auction for auction in self.auctions if auction.is_over]

    def results(self) -> dict[str, Any]:
        """Return scores over the finished auctions, or of the first while it is running.

        Returns:
            Means over auctions of `lots_sold`, `revenue` (dollars), `price_ratio` (price over starting price) and
            `curse_rate` (share of lots sold above their true value); for each bidder its mean profit in dollars, its
            mean number of lots and the mean of its TrueSkill rating, as `profit.NAME`, `lots.NAME` and `skill.NAME`.
        """
        auctions = self.finished_auctions or self.auctions
        sales = [score_sales(auction) for auction in auctions]
        sales_by_auction = [[sale for sale in auction.sales if sale.price is not None] for auction in auctions]
        scores: dict[str, Any] = {
            "auctions": len(self.finished_auctions),
            "lots_sold": fmean(map(len, sales_by_auction)),
            "revenue": fmean(sum(sale.price or 0 for sale in one) for one in sales_by_auction),
            "price_ratio": fmean(score.price_ratio for score in sales),
            "curse_rate": fmean(score.curse_rate for score in sales),
        }
        for agent_id, bidder in self.bidders.items():
            accounts = [auction.accounts[agent_id] for auction in auctions]
            name = bidder.config.name
            scores[f"profit.{name}"] = fmean(account.profit for account in accounts)
            scores[f"lots.{name}"] = fmean(len(account.wins) for account in accounts)
            scores[f"skill.{name}"] = self.ratings[name].mu
        return scores

    @property
    def last_sale(self) -> Sale | None:
        """Last sale of the current auction; None before the first."""
        return self.auction.sales[-1] if self.auction.sales else None

    @property
    def lots_sold(self) -> int:
        """Number of lots sold so far in the current auction."""
        return sum(sale.winner is not None for sale in self.auction.sales)

    @property
    def rounds(self) -> int:
        """Number of rounds of bidding on the last lot."""
        return len(self.last_sale.bidding.rounds) if self.last_sale else 0

    @property
    def bids(self) -> int:
        """Number of valid bids on the last lot."""
        rounds = self.last_sale.bidding.rounds if self.last_sale else []
        return sum(bid.amount is not None for bids in rounds for bid in bids)

    @property
    def price(self) -> int:
        """Dollars paid for the last lot; 0 without bids."""
        return (self.last_sale.price or 0) if self.last_sale else 0

    @property
    def true_value(self) -> int:
        """Value of the last lot, in dollars; 0 before the first."""
        return self.last_sale.lot.true_value if self.last_sale else 0

    @property
    def revenue(self) -> int:
        """Dollars paid so far in the current auction."""
        return sum(sale.price or 0 for sale in self.auction.sales)

    def story(self) -> str:
        """Summarise the current auction lot by lot; in a series, the ratings come first."""
        lines: list[str] = []
        if len(self.auctions) > 1:
            lines.append(f"Auction {len(self.auctions)} of {self.scenario.n_auctions}; ratings so far:")
            ranked = sorted(self.ratings.items(), key=lambda item: -item[1].mu)
            lines += [f"  {name}: TrueSkill {rating.mu:.1f} ± {rating.sigma:.1f}" for name, rating in ranked]
        return "\n".join([*lines, self.auction.story()])


def lot_by_lot(model: AuctionArena) -> list[Stage]:
    """Return the first stage of the next lot; `next_stage` returns the others."""
    if model.auction.is_over and not model.is_learning:
        model.is_learning = model.scenario.learning
        model.last_story = model.auction.story() if model.is_learning else ""
        if not model.is_learning:
            model.open_auction()
    return [model.due_bidders]
