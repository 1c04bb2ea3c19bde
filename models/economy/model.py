"""A small economy of firms, households and a government."""

from __future__ import annotations

import math
from importlib import resources
from typing import Any, Literal, Unpack

from mesa.datacollection import DataCollector
from mesa.experimental.scenarios import Scenario

from mesa_llm import LLMModel, Settings
from mesa_llm.llm.base import LLM
from mesa_llm.options import ModelOptions, within
from mesa_llm.population import invented
from mesa_llm.worlds.economy import Economy, EconomyParameters
from models.economy.agents import Player
from models.economy.story import tell

RULES = resources.files("models.economy").joinpath("prompts", "rules.md").read_text(encoding="utf-8").strip()
"""What everyone is told."""


class EconomyScenario(Scenario):
    """Parameters of an economy."""

    n_agents: int = 9
    government: bool = True
    rules: Literal["corrected", "original"] = "corrected"
    labor_force: int = 1000
    wage: float = 10.0
    productivity: float = 1.0
    starting_balance: float = 10_000.0
    starting_purse: float = 10_000.0
    spending_share: float = 0.9
    payout: float = 0.9


class EconomyModel(LLMModel):
    """Firms and a government decide together, and act in an order drawn; then wages are paid and goods are sold.

    Attributes:
        world: Participants, households, policies and metrics.
        rules: What everyone is told first.
    """

    def __init__(
        self,
        n_agents: int = 9,
        government: bool = True,
        rules: Literal["corrected", "original"] = "corrected",
        labor_force: int = 1000,
        wage: float = 10.0,
        productivity: float = 1.0,
        starting_balance: float = 10_000.0,
        starting_purse: float = 10_000.0,
        spending_share: float = 0.9,
        payout: float = 0.9,
        memory: str = "window:6",
        llm: str | LLM = "rule",
        rng: int | str | None = None,
        scenario: EconomyScenario | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        """Let firms and the government enter.

        Args:
            n_agents: Participants; with `government`, the first one governs, and the others run firms.
            government: Whether there is a government. Without one, any firm may enact policies.
            rules: `original` is SimSwarm's economy: hiring is free, balances are 0, nothing is made or sold.
            labor_force: People who can work.
            wage: Dollars a worker earns in a step.
            productivity: Goods a worker makes in a step without capital.
            starting_balance: Dollars each participant starts with.
            starting_purse: Dollars all households together start with.
            spending_share: Share of their purse that households spend in a step, as far as there are goods.
            payout: Share of a step's profit that the rule twins of firms pay out to households.
            memory: What participants remember with.
            llm: What participants think with.
            rng: Seed.
            scenario: The parameters as a Mesa scenario; goes before the single ones.
            **options: As of `LLMModel`.
        """
        amounts: dict[str, Any] = {
            "labor_force": labor_force,
            "wage": wage,
            "productivity": productivity,
            "starting_balance": starting_balance,
            "starting_purse": starting_purse,
            "spending_share": spending_share,
        }
        if scenario is not None:
            n_agents, government = scenario.n_agents, scenario.government
            rules, payout = scenario.rules, scenario.payout
            amounts = {name: getattr(scenario, name) for name in amounts}
        super().__init__(llm=llm, rng=rng, scenario=scenario, **options)
        self.rules = RULES
        within("labor_force", amounts["labor_force"], 1)
        self.world = Economy(EconomyParameters(**amounts), rules=rules)
        self.worlds = (self.world,)
        for place, persona in enumerate(invented(within("n_agents", n_agents, 1), self.random)):
            role = "government" if government and place == 0 and n_agents > 1 else "producer"
            config = persona.config(settings=Settings(max_tokens=2000))
            Player(self, role, within("payout", payout, 0, 1), config=config, memory=memory)
        self.world.names |= {player.unique_id: player.config.name for player in self.agents}
        metrics = {name: name for name in ("employment_rate", "average_price", "total_output", "total_investment")}
        money = {name: name for name in ("firms_money", "government_money", "households_money", "tax_rate")}
        self.datacollector = DataCollector(
            model_reporters={**metrics, **money, "unsold": "unsold", "refused": "n_refused"},
            agent_reporters={"balance": "balance", "workforce": "workforce", "price": "price"},
        )
        self.datacollector.collect(self)

    # -- measures

    @property
    def employment_rate(self) -> float:
        """Share of the labour force at work, 0 to 1, as last measured."""
        return self.world.state.metrics["employment_rate"]

    @property
    def average_price(self) -> float:
        """Dollars a good cost on average in the last step."""
        return self.world.state.metrics["avg_price"]

    @property
    def total_output(self) -> float:
        """Goods made in the last step; under the original rules the dollars ever invested."""
        return self.world.state.metrics["total_output"]

    @property
    def total_investment(self) -> float:
        """Dollars invested so far."""
        return self.world.state.metrics["total_investment"]

    @property
    def firms_money(self) -> float:
        """Balances of all firms together, in dollars."""
        return math.fsum(player.balance for player in self.agents if player.role == "producer")

    @property
    def government_money(self) -> float:
        """Balance of the government, in dollars."""
        return math.fsum(player.balance for player in self.agents if player.role == "government")

    @property
    def households_money(self) -> float:
        """What all households together have, in dollars."""
        return self.world.state.purse

    @property
    def money(self) -> float:
        """All money there is, in dollars; under the corrected rules it never changes."""
        return self.firms_money + self.government_money + self.households_money

    @property
    def unsold(self) -> float:
        """Goods that firms have not sold."""
        return math.fsum(player.account.stock for player in self.agents)

    @property
    def tax_rate(self) -> float:
        """Share of every sale that is taken as tax."""
        rate = self.world.state.variables.get("tax_rate", 0.0)
        return rate if isinstance(rate, float) else 0.0

    @property
    def n_refused(self) -> int:
        """Actions of the last step that were refused."""
        return sum(not outcome.ok for outcomes in self.last_outcomes.values() for outcome in outcomes)

    def story(self) -> str:
        """Say in words what happened: policies, how the economy moved, and how each firm stands."""
        return tell(self)
