"""A small economy of firms, households and a government."""

from __future__ import annotations

import math
import random
from typing import Annotated, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import AgentConfig, Label, LLMModel, LLMOptions, LLMScenario, Settings, Slider, Structure
from mesa_llm.population import drawn_personas, invented
from mesa_llm.world import Rules
from mesa_llm_models.economy.agents import EconomyPlayer
from mesa_llm_models.economy.text import GOVERNING, OWNING
from mesa_llm_models.economy.world import Economy, EconomyParameters

STORY_FIRMS = 10
"""Maximum number of firms in the story of a run."""


class EconomyScenario(LLMScenario):
    """Parameters of an economy."""

    n_agents: Annotated[int, Field(ge=1), Slider(1, 50, label="Participants")] = 9
    """Number of participants; with `government`, the first one governs, and the others run firms."""

    government: Annotated[bool, Label("The first participant governs")] = True
    """Whether there is a government. Without one, any firm may enact policies."""

    rules: Rules = "corrected"
    """`original` is SimSwarm's economy: hiring is free, balances are 0, nothing is made or sold."""

    labor_force: Annotated[
        int, Field(ge=1), Slider(10, 5000, 10, label="People who can work"), Structure(500, 2000)
    ] = 1000
    """Number of people who can work."""

    wage: Annotated[float, Field(ge=0), Slider(1, 50, 1, label="Wage at the start, $")] = 10.0
    """Dollars a worker earns in a step."""

    productivity: Annotated[float, Field(ge=0), Slider(0, 10, 0.5, label="Goods of a worker in a step")] = 1.0
    """Goods a worker makes in a step without capital."""

    starting_balance: Annotated[
        float, Field(ge=0), Slider(0, 50_000, 1000, label="Balance of a participant at the start, $")
    ] = 10_000.0
    """Dollars each participant starts with."""

    starting_purse: Annotated[
        float, Field(ge=0), Slider(0, 50_000, 1000, label="Money of all households at the start, $")
    ] = 10_000.0
    """Dollars all households together start with."""

    spending_share: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Share of money households spend")] = (
        0.9
    )
    """Share of their money that households spend in a step, as far as there are goods."""

    payout: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.1, label="Share of profits paid out")] = 0.9
    """Share of a step's profit that the rule twins of firms pay out to households."""

    people: Annotated[Literal["drawn", "alike"], Label("Who the participants are")] = "drawn"
    """Who the participants are: people with a name, a life and a way of doing business, or with a name only."""

    memory: str = "window:6"
    """Memory of the participants."""


class EconomyModel(LLMModel):
    """Firms and a government decide together, and act in an order drawn; then wages are paid and goods are sold.

    Attributes:
        world: Participants, households, policies and metrics.
    """

    scenario_class = EconomyScenario
    scenario: EconomyScenario
    changeable = ("wage", "productivity", "spending_share")

    def __init__(self, scenario: EconomyScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        self.world = Economy(_parameters_of(fields), rules=fields.rules)
        self.worlds = (self.world,)
        for index, config in enumerate(self._configs()):
            role = "government" if fields.government and index == 0 and fields.n_agents > 1 else "producer"
            EconomyPlayer(self, role, fields.payout, config=config, memory=fields.memory)
        self.world.names |= {player.unique_id: player.config.name for player in self.agents}
        metrics = {name: name for name in ("employment_rate", "average_price", "total_output", "total_investment")}
        money = {name: name for name in ("firms_money", "government_money", "households_money", "tax_rate")}
        self.datacollector = DataCollector(
            model_reporters={**metrics, **money, "unsold": "unsold", "refused": "n_refused"},
            agent_reporters={"balance": "balance", "workforce": "workforce", "price": "price"},
        )
        self.datacollector.collect(self)

    def _configs(self) -> list[AgentConfig]:
        """Return who the participants are; how they do business is drawn from a stream of its own."""
        people, settings = invented(self.scenario.n_agents, self.random), Settings(max_tokens=2000)
        if self.scenario.people == "alike":
            return [AgentConfig(name=person.name, settings=settings) for person in people]
        has_government = self.scenario.government and len(people) > 1
        rng = random.Random(f"people {self.run_seed}")
        ways = [way.persona for way in drawn_personas(len(people), rng, OWNING)]
        if has_government:
            ways[0] = drawn_personas(1, rng, GOVERNING)[0].persona
        return [
            person.config(persona=f"{person.persona} {way}", settings=settings)
            for person, way in zip(people, ways, strict=True)
        ]

    def scenario_changed(self) -> None:
        """Pass wage, productivity and spending on to the economy."""
        self.world.set_parameters(_parameters_of(self.scenario))

    # -- measures

    @property
    def employment_rate(self) -> float:
        """Share of the labour force at work, 0 to 1, as last measured."""
        return self.world.state.metrics["employment_rate"]

    @property
    def average_price(self) -> float:
        """Average price of the goods sold in the last step, in dollars."""
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
        """Balances of all firms, in dollars."""
        return math.fsum(player.balance for player in self.agents if player.role == "producer")

    @property
    def government_money(self) -> float:
        """Balance of the government, in dollars."""
        return math.fsum(player.balance for player in self.agents if player.role == "government")

    @property
    def households_money(self) -> float:
        """Money of all households, in dollars."""
        return self.world.state.purse

    @property
    def money(self) -> float:
        """All money, in dollars; under the corrected rules it never changes."""
        return self.firms_money + self.government_money + self.households_money

    @property
    def unsold(self) -> float:
        """Goods that firms have not sold."""
        return math.fsum(player.account.stock for player in self.agents)

    @property
    def tax_rate(self) -> float:
        """Tax on sales, as a share of the price."""
        rate = self.world.state.variables.get("tax_rate", 0.0)
        return rate if isinstance(rate, float) else 0.0

    def story(self) -> str:
        """Summarise the policies, the changes of the measures, each firm, and the distribution of money."""
        state, names = self.world.state, self.world.names
        table = self.datacollector.get_model_vars_dataframe()
        first, last = table.iloc[0], table.iloc[-1]
        firms = [player for player in list(self.agents)[:STORY_FIRMS] if player.role == "producer"]
        lines = [
            *(
                f"{names[policy.enacted_by]} enacted {policy.name} (step {policy.step + 1}): {policy.description}"
                for policy in state.policies
            ),
            f"Work went from {first.employment_rate:.1%} to {last.employment_rate:.1%} of people; goods cost "
            f"${last.average_price:.2f} on average; {last.total_output:,.0f} were made in the last step, and "
            f"{last.unsold:,.0f} are unsold.",
            *map(_firm_line, firms),
            f"Of ${self.money:,.0f} in all, firms have ${self.firms_money:,.0f}, households "
            f"${self.households_money:,.0f} and the government ${self.government_money:,.0f}.",
        ]
        return "\n".join(["What happened:", *lines])


def _firm_line(player: EconomyPlayer) -> str:
    """Summarise the state of a firm."""
    own = player.account
    return (
        f"{player.config.name} employs {own.workforce}, asks ${own.price:.2f}, took ${own.sales:,.0f} in the last step "
        f"and has ${own.balance:,.0f}."
    )


def _parameters_of(scenario: EconomyScenario) -> EconomyParameters:
    return EconomyParameters(
        labor_force=scenario.labor_force,
        wage=scenario.wage,
        productivity=scenario.productivity,
        starting_balance=scenario.starting_balance,
        starting_purse=scenario.starting_purse,
        spending_share=scenario.spending_share,
    )
