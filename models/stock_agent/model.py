"""A small stock exchange: traders, two stocks, a bank and a forum."""

from __future__ import annotations

from typing import Literal, Unpack

from mesa.datacollection import DataCollector
from mesa.experimental.scenarios import Scenario

from mesa_llm import ChatMemory, Event, Failure, LLMModel
from mesa_llm.activation import Stage, minded
from mesa_llm.llm.base import LLM
from mesa_llm.options import ModelOptions, within
from mesa_llm.worlds.exchange import (
    Calendar,
    Exchange,
    Fees,
    Moment,
    Screen,
    TradingRules,
    draw_endowments,
)
from models.stock_agent.agents import Trader, config_of
from models.stock_agent.orders import Turns, turns_of
from models.stock_agent.reported import REPORTED, Measures
from models.stock_agent.story import tell
from models.stock_agent.strategies import Twin, strategies

Rules = Literal["strict", "corrected", "original"]
"""By which rules fills are settled; see `mesa_llm.worlds.exchange.TradingRules`."""

DAY = "day"
"""Name of the memory that is the conversation of one day, forgotten overnight."""

DAY_TOKENS = 12_000
"""Most tokens of one day's conversation."""

MOST_TRACED = 500
"""Most traders whose cash and shares are collected in every step."""


TRACED = {"cash": "cash", "shares_A": "shares_a", "shares_B": "shares_b", "profit": "profit"}
"""What is collected of every trader in every step."""


def by_turn(model: StockAgentModel) -> list[Stage]:
    """Ask whom the exchange asks now: in a session one after another, as each sees what the one before did."""
    traders = {trader.unique_id: trader for trader in minded(model)}
    called = [traders[number] for number in model.world.turn_order if number in traders]
    return [[trader] for trader in called] if model.world.takes_turns else [called]


class StockAgentScenario(Scenario):
    """Parameters of an exchange; 50 traders and 10 days are those of Shachi's study."""

    n_agents: int = 10
    days: int = 10
    sessions: int = 3
    twin: Twin = "mixed"
    rules: Rules = "strict"
    cross: bool | None = None
    fees: bool = False
    shows_forum: bool = False
    memory: str = "window:3"


class StockAgentModel(Measures, LLMModel):
    """Traders borrow, trade two stocks through order books, forecast and post, day by day.

    One Mesa step is one stage of the day: the loans, each trading session, the forecasts, the posts. With three
    sessions a day has six steps.

    Attributes:
        world: The exchange.
        done: Day, stage and session of the last step; None before the first.
        turns: What those who were asked did in each session so far.
    """

    def __init__(
        self,
        n_agents: int = 10,
        days: int = 10,
        sessions: int = 3,
        twin: Twin = "mixed",
        rules: Rules = "strict",
        cross: bool | None = None,
        fees: bool = False,
        shows_forum: bool = False,
        memory: str = "window:3",
        llm: str | LLM = "rule",
        rng: int | str | None = None,
        scenario: StockAgentScenario | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        """Draw what traders start with, and open the exchange.

        Args:
            n_agents: Traders; 50 in both studies.
            days: Days until the exchange closes: 10 in Shachi's study, 264 in the original's program.
            sessions: Trading sessions a day.
            twin: By what rule traders trade that think by rule.
            rules: `strict`: fills are settled on both sides or not at all, at
                whole cents. `corrected`: on each side alone.
                `original`: as `corrected`, and with the original program's fault that published prices contain.
            cross: Let a bid above an offer trade; otherwise only equal prices do, as in the original. Needs `strict`;
                None: as soon as the rules are `strict`.
            fees: Charge the fees that the paper names and its program leaves out. Needs `strict`.
            shows_forum: Show the forum before every loan decision, as the original does; otherwise traders have a
                tool to read it, as in Shachi's study.
            memory: What traders remember with; `day`: the conversation of the day, as in the original.
            llm: What traders think with.
            rng: Seed.
            scenario: The parameters as a Mesa scenario; goes before the single ones.
            **options: As of `LLMModel`.

        Raises:
            ConfigError: If the settings contradict each other, or there is no trader, day or session.
        """
        if scenario is not None:
            n_agents, days, sessions, twin = scenario.n_agents, scenario.days, scenario.sessions, scenario.twin
            rules, cross, fees = scenario.rules, scenario.cross, scenario.fees
            shows_forum, memory = scenario.shows_forum, scenario.memory
        options.setdefault("activation", by_turn)
        super().__init__(llm=llm, rng=rng, scenario=scenario, **options)
        endowments = draw_endowments(range(1, within("n_agents", n_agents, 1) + 1), self.random)
        self.world = Exchange(
            endowments,
            self.random,
            "original" if rules == "original" else "corrected",
            TradingRules(rules, cross, Fees() if fees else None),
            Calendar(days, sessions),
            screen=Screen(shows_posts=shows_forum),
        )
        self.worlds = (self.world,)
        self._forgets = memory == DAY
        remembers = f"chat:{DAY_TOKENS}" if memory == DAY else memory
        for endowment, strategy in zip(endowments, strategies(twin, n_agents, self.random), strict=True):
            Trader(self, strategy, config=config_of(endowment), memory=remembers)
        self.done: Moment | None = None
        self.turns: list[Turns] = []
        self.bridge.connect("bankruptcy", self._let_go)
        self.datacollector = DataCollector(
            model_reporters=REPORTED,
            agent_reporters=TRACED if n_agents <= MOST_TRACED else {},
        )
        self.datacollector.collect(self)

    # -- the day

    def end_step(self) -> None:
        """Note which stage is over; forget the day's conversation after its last; stop after the last day."""
        self.done = self.world.now
        if self.done.stage == "trade":
            asked = self.world.turn_order
            failed = {number for number in asked if isinstance(self.last_decisions.get(number), Failure)}
            self.turns.append(turns_of(self.done, asked, self.last_outcomes, failed))
        if self._forgets and self.done.stage == "post":
            for trader in minded(self):
                if isinstance(trader.memory, ChatMemory):
                    trader.memory = ChatMemory(DAY_TOKENS)
        if self.world.calendar.after(self.done).stage == "closed":
            self.running = False

    def _let_go(self, event: Event) -> None:
        """Remove a trader who is insolvent, before the step after."""
        if event.source == self.world.name:
            gone = [trader for trader in minded(self) if trader.unique_id == event.facts["trader"]]
            for trader in gone:
                trader.remove()

    def story(self) -> str:
        """Say in words what happened: sessions, loans, forced sales, who won and lost, and the forum."""
        return tell(self)
