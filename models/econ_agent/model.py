"""A macroeconomy of households that plan each month how much to work and to spend."""

from __future__ import annotations

import math
import random
from typing import Literal, Unpack, get_args

import pandas as pd
from mesa.datacollection import DataCollector
from mesa.experimental.scenarios import Scenario

from mesa_llm import AgentConfig, ConfigError, LLMModel, Settings, Turn
from mesa_llm.activation import in_order
from mesa_llm.llm.base import LLM
from mesa_llm.options import ModelOptions, within
from mesa_llm.population.names import FAMILY_NAMES, GIVEN_NAMES
from mesa_llm.worlds.macro import NO_TAX, US_TAX, Macroeconomy, MacroParameters, TaxSchedule, flat_tax
from mesa_llm.worlds.macro.indicators import gini, nominal_okun, okun, phillips, summarise
from mesa_llm.worlds.macro.rules import Rules
from models.econ_agent.agents import POLICIES, Household, PolicyName
from models.econ_agent.story import tell

TaxName = Literal["us", "flat", "none"]

SETTINGS = Settings(temperature=0.0, max_tokens=2000)
"""How the paper samples: the likeliest tokens; and room for models that reason before they plan."""


class EconAgentScenario(Scenario):
    """Parameters of the economy."""

    n_agents: int = 20
    policy: str = "composite"
    rules: str = "corrected"
    tax: str = "us"
    flat_rate: float = 0.2
    max_wage_change: float = 0.05
    max_price_change: float = 0.10
    inflation_target: float = 0.02
    reflect_every: int = 3
    memory: str = "window:4"


class EconAgentModel(LLMModel):
    """Households plan a month together; then they work, pay tax, buy one after the other, and prices move.

    One step is one month. At the start of a quarter, households that think with a language model reflect on the last.

    Attributes:
        world: The economy.
        reflect_every: Months between two reflections; 0: none.
    """

    def __init__(
        self,
        n_agents: int = 20,
        policy: PolicyName = "composite",
        rules: Rules = "corrected",
        tax: TaxName = "us",
        flat_rate: float = 0.2,
        max_wage_change: float = 0.05,
        max_price_change: float = 0.10,
        inflation_target: float = 0.02,
        reflect_every: int = 3,
        memory: str = "window:4",
        llm: str | LLM = "rule",
        rng: int | str | None = None,
        scenario: EconAgentScenario | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        """Found the households and their economy.

        Args:
            n_agents: Households; the paper has 100.
            policy: What the rule twins plan by: `len` (Lengnick), `cats` (a buffer of savings), `composite` (each
                household one of the two, by a fair coin), `hand_to_mouth`, `fixed` or `random`.
            rules: The economy as published (`original`), or with its defects mended (`corrected`).
            tax: The US schedule, one rate for all, or none.
            flat_rate: That one rate, as a fraction.
            max_wage_change: Largest relative change of a wage in a month.
            max_price_change: Largest relative change of the price in a month.
            inflation_target: Yearly inflation that the bank aims at, as a fraction.
            reflect_every: Months between two reflections, at most 12; 0: none.
            memory: What households remember with; `none` is the agent of Shachi's study.
            llm: What households think with.
            rng: Seed.
            scenario: The parameters as a Mesa scenario; goes before the single ones.
            **options: As of `LLMModel`.

        Raises:
            ConfigError: If a parameter is unknown or out of range; says which, and what is possible.
        """
        if scenario is not None:
            n_agents, memory = scenario.n_agents, scenario.memory
            policy, rules, tax = scenario.policy, scenario.rules, scenario.tax  # pyright: ignore[reportAssignmentType]
            flat_rate, inflation_target = scenario.flat_rate, scenario.inflation_target
            max_wage_change, max_price_change = scenario.max_wage_change, scenario.max_price_change
            reflect_every = scenario.reflect_every
        options.setdefault("activation", in_order)
        super().__init__(llm=llm, rng=rng, scenario=scenario, **options)
        self.reflect_every = int(within("reflect_every", reflect_every, 0, 12))
        parameters = MacroParameters(
            max_wage_change=within("max_wage_change", max_wage_change, 0, 1),
            max_price_change=within("max_price_change", max_price_change, 0, 1),
            inflation_target=within("inflation_target", inflation_target, -1, 1),
            tax=_tax_of(tax, within("flat_rate", flat_rate, 0, 1)),
        )
        self._found(n_agents, policy, memory)
        actors = [household.unique_id for household in self.households]
        self.world = Macroeconomy(actors, self.random, rules=rules, parameters=parameters)
        self.worlds = (self.world,)
        self._laws_of: tuple[int, tuple[float, float, float]] = (0, (math.nan, math.nan, math.nan))
        activation = self.activation
        self.activation = lambda model: [model.reflections(), *activation(model)]
        self.datacollector = DataCollector(
            model_reporters={name: name for name in MEASURES},
            agent_reporters={name: name for name in ("savings", "wage", "is_employed", "spent", "tax_paid")},
        )
        self.datacollector.collect(self)

    def _found(self, n_agents: int, policy: str, memory: str) -> None:
        """Found the households, each with a name and the policy of its rule twin."""
        if policy not in POLICIES:
            raise ConfigError(f"no policy is called {policy!r}; choose one of {', '.join(POLICIES)}")
        for place, name in enumerate(draw_names(within("n_agents", n_agents, 1), self.random)):
            Household(
                self,
                POLICIES[policy](self.random),
                place,
                self.reflect_every,
                config=AgentConfig(name=name, settings=SETTINGS),
                memory=memory,
            )

    # -- the loop

    def reflections(self) -> list[Turn]:
        """Return, at the start of a quarter, the turns of the households that reflect on the last one."""
        if not self.reflect_every or self.now == 1 or (self.now - 1) % self.reflect_every:
            return []
        return [Turn(household, household.reflection()) for household in self.households if household.reflects]

    # -- measures

    @property
    def households(self) -> list[Household]:
        """The households, in the order of the economy's arrays."""
        return [agent for agent in self.agents if isinstance(agent, Household)]

    @property
    def price(self) -> float:
        """Dollars per good."""
        return self.world.economy.price

    @property
    def mean_wage(self) -> float:
        """Mean hourly wage in dollars, over all households."""
        return float(self.world.economy.households.skill.mean())

    @property
    def unemployment(self) -> float:
        """Share of households that did not work last month; NaN before the first."""
        months = self.world.economy.months
        return 1 - months[-1].employed / len(self.world.actors) if months else math.nan

    @property
    def nominal_gdp(self) -> float:
        """Last month's output at the price it met, in dollars; NaN before the first month."""
        economy = self.world.economy
        return economy.months[-1].output * economy.prices[-2] if economy.months else math.nan

    @property
    def real_gdp(self) -> float:
        """Last month's output at the first price, in dollars; NaN before the first month."""
        economy = self.world.economy
        return economy.months[-1].output * economy.prices[0] if economy.months else math.nan

    @property
    def goods(self) -> float:
        """Goods unsold."""
        return self.world.economy.goods

    @property
    def imbalance(self) -> float:
        """Excess demand of last month's market, from -1 (glut) to 1; NaN before the first month."""
        months = self.world.economy.months
        return months[-1].imbalance if months else math.nan

    @property
    def interest_rate(self) -> float:
        """Yearly interest rate in force, as a fraction."""
        return self.world.economy.interest_rate

    @property
    def money(self) -> float:
        """Savings of all, less the producer's debt, in dollars; stays 0 under the corrected rules."""
        return self.world.economy.money

    @property
    def inequality(self) -> float:
        """Gini coefficient of savings; NaN while nobody has any."""
        return gini(self.world.economy.households.coin, self.world.economy.rules)

    @property
    def phillips_r(self) -> float:
        """Correlation of wage inflation with unemployment over the full years so far; NaN before four of them."""
        return self._laws()[0]

    @property
    def okun_r(self) -> float:
        """Correlation of the growth of real output with that of unemployment; near -1 by bookkeeping."""
        return self._laws()[1]

    @property
    def okun_nominal_r(self) -> float:
        """Correlation of the growth of nominal output with that of unemployment."""
        return self._laws()[2]

    def _laws(self) -> tuple[float, float, float]:
        """Compute the correlations of the two laws, once a year."""
        full = self.world.economy.years.full
        if self._laws_of[0] != full:
            years = self.years
            self._laws_of = full, (phillips(years).r, okun(years).r, nominal_okun(years).r)
        return self._laws_of[1]

    @property
    def undecided(self) -> int:
        """Households that had no plan last month."""
        months = self.world.economy.months
        return months[-1].undecided if months else 0

    @property
    def months(self) -> pd.DataFrame:
        """One row a month: price, imbalance, wages, goods, output, employment, tax, interest."""
        return self.world.economy.monthly_table()

    @property
    def years(self) -> pd.DataFrame:
        """One row a full year: unemployment, output, interest, inflation, growth."""
        return self.world.economy.yearly_table()

    @property
    def indicators(self) -> dict[str, float]:
        """The published measures of the run so far: unemployment, inflation, Phillips, Okun, output, inequality."""
        economy = self.world.economy
        return summarise(self.years, economy.households.coin, economy.rules)

    def story(self) -> str:
        """Say in words how prices, work and output went, and what the two laws came to."""
        return tell(self)


MEASURES = (
    "price",
    "mean_wage",
    "unemployment",
    "nominal_gdp",
    "real_gdp",
    "goods",
    "imbalance",
    "interest_rate",
    "money",
    "inequality",
    "undecided",
    "phillips_r",
    "okun_r",
    "okun_nominal_r",
)
"""What is collected of the economy each month."""


def draw_names(count: int, draws: random.Random) -> list[str]:
    """Draw names, each another as long as there are enough.

    Args:
        count: How many.
        draws: Where the draws come from.
    """
    given = [name for names in GIVEN_NAMES.values() for name in names]
    everyone = [f"{first} {last}" for first in given for last in FAMILY_NAMES]
    chosen = draws.sample(everyone, min(count, len(everyone)))
    return [chosen[place % len(chosen)] for place in range(count)]


def _tax_of(name: str, flat_rate: float) -> TaxSchedule:
    if name not in get_args(TaxName):
        raise ConfigError(f"no tax is called {name!r}; choose one of {', '.join(get_args(TaxName))}")
    return {"us": US_TAX, "flat": flat_tax(flat_rate), "none": NO_TAX}[name]
