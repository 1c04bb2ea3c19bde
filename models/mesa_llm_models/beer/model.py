"""The beer distribution game: a retailer, a wholesaler, a distributor and a factory, who order from each other."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import pvariance
from typing import Annotated, Any, ClassVar, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    AgentConfig,
    Label,
    LLMAgent,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Observation,
    Slider,
    ToolCall,
    action,
)
from mesa_llm.population import drawn_personas
from mesa_llm.text import counted, quoted
from mesa_llm_models.beer.text import SITUATIONS, TEMPERS

POSITIONS = ("retailer", "wholesaler", "distributor", "factory")
"""The chain, from the customers up."""

STOCK, FLOW, CHANGE_WEEK = 12, 4, 5
"""Cases in stock at first, and in each slot of orders, shipments and demand; first week of the later demand."""

STOCK_COST, BACKLOG_COST, MAX_ORDER = 0.5, 1.0, 50
"""Dollars a week for a case in stock, and for one of backlog; and maximum number of cases in an order."""

WEEKS_SHOWN = 6
"""Maximum number of weeks of incoming orders that a player sees, this week's included."""


class BeerScenario(LLMScenario):
    """Parameters of the game; the defaults are Sterman's."""

    weeks: Annotated[int, Field(ge=1), Slider(10, 60)] = 36
    """Number of weeks, one a step; players do not know it."""

    later_demand: Annotated[int, Field(ge=0), Slider(0, 20, label="Demand from week 5, cases")] = 8
    """Cases that customers ask for in a week from week 5 on; until then, 4."""

    shares_stock: bool = False
    """Whether everybody sees the stock of all positions."""

    may_talk: bool = False
    """Whether everybody writes to both neighbours before orders are placed."""

    theta: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.02, label="Rule: θ")] = 0.36
    """Weight that the rule twin gives to the latest incoming order when it expects the next one (θ)."""

    alpha: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.02, label="Rule: α")] = 0.26
    """Share of the gap to its desired stock that the rule twin orders in a week (α)."""

    beta: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.02, label="Rule: β")] = 0.34
    """Share of the cases on order that the rule twin takes into account (β)."""

    desired_stock: Annotated[float, Field(ge=0), Slider(0, 60, label="Rule: S′, cases")] = 17.0
    """Cases that the rule twin wants in stock and, as far as it takes them into account, on order (S′)."""

    people: Annotated[Literal["drawn", "alike"], Label("Who the players are")] = "drawn"
    """Who the players are: people with a name, a temper and a situation, drawn from the seed, or all alike."""

    memory: str = "window:8"
    """Memory of the players."""


@dataclass(frozen=True, slots=True)
class EchelonFacts:
    """What a player sees of its position after the cases of the week have come and gone."""

    week: int
    """Number of the week, from 1."""

    position: str
    """Its position in the chain."""

    customer: str
    """Who orders from it."""

    supplier: str
    """From whom it orders; empty for the factory, which brews."""

    incoming: tuple[int, ...]
    """Cases ordered from it in the last `WEEKS_SHOWN` weeks; those of this week come last."""

    arrived: int
    """Cases received this week."""

    shipped: int
    """Cases shipped to its customer this week."""

    stock: int
    """Cases left in stock."""

    backlog: int
    """Cases that it still owes its customer."""

    on_order: int
    """Cases that it has ordered and not received yet."""

    arriving: tuple[int, int]
    """Cases of those that arrive next week, and the week after."""

    first_arrival: int
    """Week in which an order of now arrives at the earliest."""

    week_cost: float
    """Dollars that this week costs."""

    cost: float
    """Dollars of all weeks so far."""

    @property
    def not_shipped(self) -> int:
        """Cases of those on order that its supplier has not shipped yet."""
        return self.on_order - sum(self.arriving)


class Echelon(LLMAgent):
    """A position of the chain.

    Attributes:
        position: Its position, such as `retailer`.
        stock, backlog, on_order: Cases in stock, owed to its customer, and ordered but not yet received.
        mail, shipments: Cases of the orders, and of the shipments, on their way to it; the next to arrive is first.
        incoming, arrived: Cases ordered from it, and received, in this week.
        expected: Incoming order that its rule twin expects, in cases.
        shipped: Cases shipped in this week.
        demands: Cases ordered from it, by week.
        orders, stocks, cost: Its orders, and its stock less its backlog, by week, in cases; and dollars so far.
    """

    def __init__(self, model: BeerGame, position: str, **components: Any) -> None:
        super().__init__(model, **components)
        self.position = position
        self.stock, self.backlog, self.cost = STOCK, 0, 0.0
        n_slots = 3 if position == "factory" else 2
        self.mail, self.shipments = deque([FLOW] * 2), deque([FLOW] * n_slots)
        self.on_order = 3 * FLOW if position == "factory" else 4 * FLOW
        self.incoming, self.arrived, self.shipped, self.expected = FLOW, FLOW, FLOW, float(FLOW)
        self.demands: list[int] = []
        self.orders: list[int] = []
        self.stocks: list[int] = []

    @property
    def net_stock(self) -> int:
        """Cases in stock, less the backlog."""
        return self.stock - self.backlog

    @property
    def week_cost(self) -> float:
        """Dollars that stock and backlog cost in a week."""
        return STOCK_COST * self.stock + BACKLOG_COST * self.backlog

    @property
    def facts(self) -> EchelonFacts:
        """What its player sees."""
        index, week = POSITIONS.index(self.position), max(self.model.now, 1)
        return EchelonFacts(
            week=week,
            position=self.position,
            customer=f"the {POSITIONS[index - 1]}" if index else "the customers",
            supplier=f"the {POSITIONS[index + 1]}" if self.position != "factory" else "",
            incoming=tuple(self.demands[-WEEKS_SHOWN:]),
            arrived=self.arrived,
            shipped=self.shipped,
            stock=self.stock,
            backlog=self.backlog,
            on_order=self.on_order,
            arriving=(self.shipments[0], self.shipments[1]),
            first_arrival=week + (3 if self.position == "factory" else 4),
            week_cost=self.week_cost,
            cost=self.cost,
        )

    def ship(self, incoming: int) -> int:
        """Receive cases, ship what was ordered as far as the stock allows, and return the number of cases shipped."""
        self.incoming, self.arrived = incoming, self.shipments.popleft()
        self.demands.append(incoming)
        self.expected += self.model.scenario.theta * (incoming - self.expected)
        self.on_order -= self.arrived
        shipped = min(self.stock + self.arrived, self.backlog + incoming)
        self.shipped = shipped
        self.stock += self.arrived - shipped
        self.backlog += incoming - shipped
        self.cost += self.week_cost
        self.stocks.append(self.net_stock)
        return shipped

    def observe(self) -> Observation:
        """Show its own figures, those of the others if they are shared, and what its neighbours wrote."""
        talking, shared = self.model.is_talking, self.model.scenario.shares_stock
        facts = self.facts
        known = {"facts": facts, "chain": self.model.chain, "shares_stock": shared, "cases": cases_text}
        text = self.model.prompt("observation.md", **known, is_talking=talking)
        tools = ("tell_neighbours",) if talking else ("place_order",)
        return self.with_news(Observation(text, tools=tools, facts=facts))

    def rule(self, seen: Observation) -> ToolCall:
        """Order by anchoring and adjustment, in whole cases: O = max(0, L̂ + α(S′ − S − β SL)).

        Source:
            Sterman (1989), Modeling Managerial Behavior, Management Science 35(3).
        """
        if self.model.is_talking:
            return ToolCall("tell_neighbours", {"text": self.model.prompt("remark.md", player=self)})
        fields = self.model.scenario
        gap = fields.desired_stock - self.net_stock - fields.beta * self.on_order
        return ToolCall("place_order", {"cases": min(MAX_ORDER, round(max(0.0, self.expected + fields.alpha * gap)))})

    @action(did="You ordered {cases:case}.")
    def place_order(self, cases: Annotated[int, Field(ge=0, le=MAX_ORDER)]) -> str:
        """Order cases of beer from your supplier, or start to brew them as the factory; 0 orders nothing."""
        self.orders[-1] = cases
        return "Done."

    @action(did="You wrote to your neighbours: {text!r}")
    def tell_neighbours(self, text: Annotated[str, Field(min_length=1, max_length=300)]) -> str:
        """Write to your supplier and to your customer in the chain, who read it before they order."""
        index = self.model.chain.index(self)
        near = [other.unique_id for other in self.model.chain[max(index - 1, 0) : index + 2] if other is not self]
        self.model.mailbox.send(self.unique_id, near, f"The {self.position} writes: {quoted(text)}", self.model.now)
        return "Done."


class BeerGame(LLMModel):
    """Beer moves down the chain, orders move up, and both take their time.

    Attributes:
        chain, demands: The positions, from the retailer up; and cases that customers asked for, by week.
        is_talking: Whether this stage of the step is for messages, and not for orders.
    """

    scenario_class = BeerScenario
    scenario: BeerScenario
    measures: ClassVar[Mapping[str, str]] = {
        "cost": "Costs of all so far, in dollars",
        "bullwhip": "Variance of the factory's orders over that of the demand",
        "peak_order": "Largest order so far, in cases",
    }
    changeable = ("weeks", "later_demand", "shares_stock", "may_talk", "theta", "alpha", "beta", "desired_stock")
    messages_arrive = "next_stage"
    goes_on_after_failures = True

    def __init__(self, scenario: BeerScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        self.chain = [
            Echelon(self, position, config=config, memory=self.scenario.memory)
            for position, config in zip(POSITIONS, self._players(), strict=True)
        ]
        self.demands: list[int] = []
        self.is_talking = False
        self.datacollector = DataCollector(
            {
                "cost": lambda model: sum(one.cost for one in model.chain),
                "bullwhip": lambda model: model.bullwhips()["factory"],
                "peak_order": lambda model: max(max(one.orders, default=0) for one in model.chain),
            },
            {"stock": "net_stock", "cost": "cost"},
        )
        self.datacollector.collect(self)

    def _players(self) -> list[AgentConfig]:
        """Return who plays the positions, drawn from a stream of its own."""
        if self.scenario.people == "alike":
            return [AgentConfig(name=position) for position in POSITIONS]
        rng = random.Random(f"people {self.run_seed}")
        return [persona.config() for persona in drawn_personas(len(POSITIONS), rng, TEMPERS, SITUATIONS)]

    @property
    def moment(self) -> str:
        """The week, as players remember it."""
        return f"In week {self.now}"

    def start_step(self) -> None:
        """Let a week begin: cases arrive, are shipped and paid for, from the retailer up."""
        self.is_talking = self.scenario.may_talk
        self.demands.append(FLOW if self.now < CHANGE_WEEK else self.scenario.later_demand)
        for index, position in enumerate(self.chain):
            shipped = position.ship(position.mail.popleft() if index else self.demands[-1])
            if index:
                self.chain[index - 1].shipments.append(shipped)
            position.orders.append(0)

    def next_stage(self, acted: list[Any]) -> list[Any]:
        """Let everybody order after everybody has written."""
        was_talking, self.is_talking = self.is_talking, False
        return list(self.agents) if was_talking else []

    def end_step(self) -> None:
        """Send the orders; whoever has decided nothing has ordered nothing."""
        for index, position in enumerate(self.chain):
            slots = position.shipments if position is self.chain[-1] else self.chain[index + 1].mail
            slots.append(position.orders[-1])
            position.on_order += position.orders[-1]
        self.running = self.now < self.scenario.weeks

    def bullwhips(self) -> dict[str, float | None]:
        """Return the variance of each position's orders over that of the demand; None while the demand is constant."""
        variance = pvariance(self.demands) if len(set(self.demands)) > 1 else 0.0
        return {one.position: pvariance(one.orders) / variance if variance else None for one in self.chain}

    def results(self) -> dict[str, Any]:
        """Return the measures of the last step, and the cost and the bullwhip ratio of each position."""
        costs = {one.position: one.cost for one in self.chain}
        return super().results() | {"costs": costs, "bullwhips": self.bullwhips()}


def cases_text(count: int) -> str:
    """Write a number of cases."""
    return counted(count, "case")
