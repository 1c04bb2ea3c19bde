"""An auction of lots whose worth nobody knows: bidders plan, bid, keep track of the others, and plan anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from mesa.datacollection import DataCollector
from mesa.experimental.scenarios import Scenario

from mesa_llm import AgentConfig, Event, LLMModel, Settings
from mesa_llm.activation import Stage
from mesa_llm.llm.base import LLM
from mesa_llm.options import ModelOptions
from mesa_llm.worlds.auction import Auction, LotOrder, Sale, TieRule, ordered_lots
from mesa_llm.worlds.auction.scores import MU, SIGMA, Rating, rate
from models.auction_arena.agents import AuctionBidder
from models.auction_arena.opening import RulesName, make_rules, take_lots, whole_from
from models.auction_arena.seats import PerSeat, take_seats
from models.auction_arena.story import tell, tell_auction
from models.auction_arena.twins import twin

TEMPERATURE, MAX_TOKENS = 0.0, 3000
"""How language models are sampled: as in the paper; long enough to reason about everybody's profits and lots."""


class AuctionScenario(Scenario):
    """Parameters of a series of auctions; see `AuctionArena`."""

    n_agents: int = 3
    names: PerSeat = ""
    twins: PerSeat = "rule,value,shade"
    budget: PerSeat = 20_000
    desire: PerSeat = "maximize_profit"
    planning: PerSeat = "adaptive"
    overestimate_percent: PerSeat = 10.0
    corrects_beliefs: bool = True
    lots: str = "paper"
    n_lots: int | None = None
    order: LotOrder = "random"
    raise_share: float = 0.1
    tie: TieRule = "uniform"
    max_retries: int | None = 3
    rules: RulesName = "corrected"
    discount: bool = False
    n_auctions: int = 1
    rotate: bool = True
    learning: bool = False
    memory: str = "window:6"


class AuctionArena(LLMModel):
    """Bidders buy lots with a limited purse; a step is one lot, from the first bid to the plans for the rest.

    Within a step everyone who is asked decides together, stage after stage: plan (before the first lot), bid as many
    rounds as it takes, say what one believes, plan anew. Who is refused may try again, a few times.

    Attributes:
        auctions: All auctions so far; the last one is the present one.
        bidders: The agents by number, in the order of seats of the first auction.
        most_dollars: Largest budget and all starting prices together; nobody can have more.
        ratings: TrueSkill ratings by name, after the auctions that are over.
        is_learning: Whether bidders look back at the last auction, before the next one opens.
        last_told: How the last auction went, for those who look back at it.
    """

    def __init__(
        self,
        n_agents: int = 3,
        names: PerSeat = "",
        twins: PerSeat = "rule,value,shade",
        budget: PerSeat = 20_000,
        desire: PerSeat = "maximize_profit",
        planning: PerSeat = "adaptive",
        overestimate_percent: PerSeat = 10.0,
        corrects_beliefs: bool = True,
        lots: str = "paper",
        n_lots: int | None = None,
        order: LotOrder = "random",
        raise_share: float = 0.1,
        tie: TieRule = "uniform",
        max_retries: int | None = 3,
        rules: RulesName = "corrected",
        discount: bool = False,
        n_auctions: int = 1,
        rotate: bool = True,
        learning: bool = False,
        memory: str = "window:6",
        llm: str | LLM | Mapping[Any, str | LLM] = "rule",
        rng: int | str | None = None,
        scenario: AuctionScenario | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        """Seat the bidders and open the first auction.

        What can differ by seat is one value, or several that the seats take in turn (a list, or a text with commas).

        Args:
            n_agents: Bidders, two or more.
            names: Their names; empty: Bidder 1, Bidder 2, …
            twins: What they bid by with `llm="rule"`; see `models.auction_arena.twins.TWINS`. By seat.
            budget: Dollars for one auction. By seat.
            desire: `maximize_profit` or `maximize_items`. By seat.
            planning: `adaptive` (before the auction and after every lot), `static` (before) or `none`. By seat.
            overestimate_percent: By how much estimates exceed true values. By seat.
            corrects_beliefs: Tell bidders of wrong beliefs, and ask them again.
            lots: `paper` (10 lots), `repository` (26), `niche` (20), or a file with a JSON object a line.
            n_lots: Take only so many from the top of the list; None: all.
            order: `random`, `ascending` or `descending` by price, or `listed`.
            raise_share: Least raise, as a share of the starting price.
            tie: How equal bids are decided: `uniform`, or `scan` as in the original, which favours late seats.
            max_retries: How often a bidder is asked again after an invalid bid; None: for ever, as in the original.
            rules: `original`: those of the authors' program, with `tie=scan`, `max_retries=None`, and its readings of
                plans, beliefs and prices that fall to zero; see the README.
            discount: Halve the starting price of lots that nobody wants.
            n_auctions: Auctions one after the other, with the same bidders.
            rotate: Move everyone up a seat from auction to auction.
            learning: Let bidders draw lessons from the auction before.
            memory: What bidders remember with.
            llm: What bidders think with; a mapping goes by name, number or class of the bidder.
            rng: Seed.
            scenario: The parameters as a Mesa scenario; goes before the single ones.
            **options: As of `LLMModel`.

        Raises:
            ConfigError: If a parameter cannot be.
        """
        given = {name: value for name, value in locals().items() if name in AuctionScenario.__annotations__}
        options.setdefault("activation", lot_by_lot)
        super().__init__(llm=llm, rng=rng, scenario=scenario, **options)
        self.chosen = chosen = scenario or AuctionScenario(**given)
        self.n_auctions = whole_from("n_auctions", chosen.n_auctions, 1)
        details = ("raise_share", "tie", "max_retries", "discount")
        self.rules = make_rules(chosen.rules, **{name: getattr(chosen, name) for name in details})
        self.lots = take_lots(chosen.lots, chosen.n_lots)
        self.bidders = self._seat()
        self.most_dollars = max(seat.budget for seat in self.seats) + sum(lot.start for lot in self.lots)
        self.auctions: list[Auction] = []
        self.ratings = {bidder.config.name: Rating(MU, SIGMA) for bidder in self.bidders.values()}
        self.is_learning = False
        self.last_told = ""
        self._heard: list[Event] = []
        self.open_auction()
        self.datacollector = DataCollector(
            model_reporters={name: name for name in ("lots_sold", "rounds", "bids", "price", "true_value", "revenue")},
            agent_reporters={name: name for name in ("budget", "profit", "n_wins", "skill")},
        )
        self.datacollector.collect(self)

    # -- set-up

    def _seat(self) -> dict[int, AuctionBidder]:
        """Make the agents, seat by seat."""
        names = ("names", "twins", "budget", "desire", "planning", "overestimate_percent", "corrects_beliefs")
        self.seats = take_seats(self.chosen.n_agents, **{name: getattr(self.chosen, name) for name in names})
        settings = Settings(temperature=TEMPERATURE, max_tokens=MAX_TOKENS)
        bidders = [
            AuctionBidder(
                self,
                twin(seat.twin, seat.overestimate_percent),
                config=AgentConfig(name=seat.name, settings=settings, reasoning="inline"),
                memory=self.chosen.memory,
            )
            for seat in self.seats
        ]
        return {bidder.unique_id: bidder for bidder in bidders}

    def open_auction(self) -> None:
        """Open the next auction: the same bidders with full purses, the lots in a new order."""
        entered = [seat.bidder(number) for seat, number in zip(self.seats, self.bidders, strict=True)]
        first = len(self.auctions) % len(entered) if self.chosen.rotate else 0
        lots = ordered_lots(self.lots, self.chosen.order, self.random)
        auction = Auction(lots, [*entered[first:], *entered[:first]], rules=self.rules, rng=self.random)
        self.auctions.append(auction)
        for bidder in self.bidders.values():
            bidder.reasons = ""
        self.worlds = (auction,)

    def llm_of(self, agent: Any) -> str | LLM:
        """Say what a bidder thinks with; `llm=` can name it by its name."""
        if isinstance(self.llm, Mapping) and agent.config.name in self.llm and self.design is None:
            return self.llm[agent.config.name]
        return super().llm_of(agent)

    # -- the loop

    @property
    def auction(self) -> Auction:
        """The present auction."""
        return self.auctions[-1]

    @property
    def stage(self) -> str:
        """What bidders are asked for: `lessons`, `plan`, `bid`, `belief`, `replan`; `over` when all has been sold."""
        return "lessons" if self.is_learning else self.auction.stage

    @property
    def asked(self) -> Stage:
        """The bidders who are asked now, by seat."""
        numbers: Iterable[int] = self.auction.accounts if self.is_learning else self.auction.asked
        return [self.bidders[number] for number in numbers]

    def next_stage(self, acted: Stage) -> Stage:
        """Give those who may try again, else those whom the next stage asks; nobody if the lot is done."""
        again = [bidder for bidder in acted if bidder.is_asked_again]
        if again:
            return again
        if self.is_learning:
            self.is_learning = False
            self.open_auction()
        elif self._is_last_stage:
            return []
        else:
            self._heard += self.auction.end_step()
        return self.asked

    @property
    def _is_last_stage(self) -> bool:
        """Whether the end of the step, which ends the stage as well, is all that is left of this lot."""
        plans_anew = any(seat.planning == "adaptive" for seat in self.seats) and len(self.auction.sales) < len(
            self.lots
        )
        return self.auction.stage == "replan" or (self.auction.stage == "belief" and not plans_anew)

    def end_step(self) -> None:
        """Tell how the lot went; after the last one, rate the bidders, and stop after the last auction."""
        told = [replace(event, time=self.now) for event in self._heard]
        self._heard = []
        for event in self.bridge.publish(told):
            self.runlog.add(event, self.now)
        if len(self.auction.sales) == len(self.lots):
            (self.ratings,) = rate([self.results()], self.ratings)
            self.running = len(self.auctions) < self.n_auctions

    def results(self, auction: Auction | None = None) -> dict[str, float]:
        """Give what an auction is won by: lots if all are after lots, else profit.

        Args:
            auction: One of `auctions`; None: the present one.

        Returns:
            Name of a bidder → result, in the order in which they were created.
        """
        by_lots = all(seat.desire == "maximize_items" for seat in self.seats)
        accounts = (self.auction if auction is None else auction).accounts
        own = [accounts[number] for number in self.bidders]
        return {one.bidder.name: float(len(one.wins) if by_lots else one.profit) for one in own}

    # -- measures

    @property
    def last_sale(self) -> Sale | None:
        """How the last lot of the present auction went; None before the first."""
        return self.auction.sales[-1] if self.auction.sales else None

    @property
    def lots_sold(self) -> int:
        """Lots sold so far in the present auction."""
        return sum(sale.winner is not None for sale in self.auction.sales)

    @property
    def rounds(self) -> int:
        """Rounds of bidding on the last lot."""
        return len(self.last_sale.bidding.rounds) if self.last_sale else 0

    @property
    def bids(self) -> int:
        """Valid bids on the last lot."""
        rounds = self.last_sale.bidding.rounds if self.last_sale else []
        return sum(one.amount is not None for bids in rounds for one in bids)

    @property
    def price(self) -> int:
        """Dollars paid for the last lot; 0 if nobody bid."""
        return (self.last_sale.price or 0) if self.last_sale else 0

    @property
    def true_value(self) -> int:
        """What the last lot is worth, in dollars; 0 before the first."""
        return self.last_sale.lot.true_value if self.last_sale else 0

    @property
    def revenue(self) -> int:
        """Dollars paid so far in the present auction."""
        return sum(sale.price or 0 for sale in self.auction.sales)

    def story(self) -> str:
        """Say in words how the auction went, lot by lot."""
        return tell(self)


def lot_by_lot(model: AuctionArena) -> list[Stage]:
    """Give the first stage on the next lot; the auction itself calls for the others, one after the other."""
    if model.auction.is_over and not model.is_learning:
        model.is_learning = model.chosen.learning
        model.last_told = tell_auction(model.auction) if model.is_learning else ""
        if not model.is_learning:
            model.open_auction()
    return [model.asked]
