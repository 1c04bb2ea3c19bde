"""A macroeconomy of households that plan each month how much to work and to spend."""

from __future__ import annotations

import math
import random
from typing import Annotated, Literal, Unpack

import numpy as np
import pandas as pd
from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    AgentConfig,
    ChatMemory,
    Label,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Settings,
    Slider,
    Turn,
    WindowMemory,
    one_line,
)
from mesa_llm.engine.activation import in_order
from mesa_llm.population import drawn_personas
from mesa_llm.population.persona import FAMILY_NAMES, GIVEN_NAMES
from mesa_llm.text import counted
from mesa_llm.world import Rules
from mesa_llm_models.econ_agent.agents import (
    DIALOGUE,
    DIALOGUE_TOKENS,
    POLICIES,
    Household,
    HouseholdDialogue,
    PolicyName,
)
from mesa_llm_models.econ_agent.scores import inequality, nominal_okun, okun, phillips, scores_of
from mesa_llm_models.econ_agent.text import HOMES, THRIFT
from mesa_llm_models.econ_agent.world import (
    NO_TAX,
    US_TAX,
    Macroeconomy,
    MacroParameters,
    TaxSchedule,
    date_of,
    flat_tax,
)

SETTINGS = Settings(temperature=0.0, max_tokens=2000)
"""Sampling settings: temperature 0 as in the paper, but with room for models that reason before planning."""

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
"""Measures of the economy collected each month."""

HOUSEHOLD_MEASURES = ("savings", "wage", "is_employed", "spending", "tax_paid")
"""Measures of each household collected each month."""

MAX_YEARS = 20
"""Maximum number of years in the story."""


class EconAgentScenario(LLMScenario):
    """Parameters of the economy."""

    n_agents: Annotated[int, Field(ge=1), Slider(1, 200, label="Households")] = 20
    """Number of households; the paper has 100."""

    policy: Annotated[PolicyName, Label("Policy of the households")] = "composite"
    """Policy of the rule twins: `len` (Lengnick), `cats` (a buffer of savings), `composite` (one of the two for each
    household, by a fair coin), `hand_to_mouth`, `fixed` or `random`.
    """

    rules: Annotated[Rules, Label("Economy")] = "corrected"
    """The economy as published (`original`), or with its defects corrected (`corrected`)."""

    tax: Annotated[Literal["us", "flat", "none"], Label("Income tax")] = "us"
    """Income tax: the US schedule, one rate for all, or none."""

    flat_rate: Annotated[float, Field(ge=0, le=1), Slider(0, 0.9, 0.05, label="Flat tax rate")] = 0.2
    """Rate of the flat tax, as a fraction."""

    max_wage_change: Annotated[float, Field(ge=0, le=1), Slider(0, 0.5, 0.01, label="Maximum monthly wage change")] = (
        0.05
    )
    """Maximum relative change of a wage per month."""

    max_price_change: Annotated[
        float, Field(ge=0, le=1), Slider(0, 0.5, 0.01, label="Maximum monthly price change")
    ] = 0.1
    """Maximum relative change of the price per month."""

    inflation_target: Annotated[float, Field(ge=-1, le=1), Slider(0, 0.1, 0.005, label="Inflation target")] = 0.02
    """Yearly inflation target of the bank, as a fraction."""

    reflect_every: Annotated[int, Field(ge=0, le=12), Slider(0, 12, label="Months between reflections (0: none)")] = 3
    """Number of months between reflections; 0 for none."""

    people: Annotated[Literal["drawn", "alike"], Label("Who the households are")] = "drawn"
    """Who the households are: people with a way with money and a family, drawn from the seed, or with a name only, as
    always with `fidelity="original"`."""

    memory: Annotated[str | None, Label("Memory")] = None
    """Memory of the households; `none` for the agent in Shachi's study, `dialogue` for the paper's memory. None for
    `window:4`, or `dialogue` with `fidelity="original"`.
    """

    fidelity: Annotated[Literal["corrected", "original"], Label("What households see and remember")] = "corrected"
    """What households see and remember: our choice (`corrected`), or the paper's (`original`). `rules` chooses the
    economy itself.
    """


class EconAgentModel(LLMModel):
    """Households plan each month together; then they work, pay tax and buy in turn, and prices adjust.

    One step is one month. At the start of a quarter, households with a language model reflect on the previous one.
    Those with a dialogue as memory reflect at its end, after planning its last month.

    Attributes:
        world: The economy.
    """

    scenario_class = EconAgentScenario
    scenario: EconAgentScenario
    changeable = ("tax", "flat_rate", "max_wage_change", "max_price_change", "inflation_target")

    def __init__(self, scenario: EconAgentScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        options.setdefault("activation", in_order)
        super().__init__(scenario, **options)
        fields = self.scenario
        if fields.fidelity == "original":
            self.instructions = ""
        self._add_households()
        agent_ids = [household.unique_id for household in self.households]
        self.world = Macroeconomy(agent_ids, self.random, rules=fields.rules, parameters=_parameters_of(fields))
        self.worlds = (self.world,)
        self._laws_of: tuple[int, tuple[float, float, float]] = (0, (math.nan, math.nan, math.nan))
        activation = self.activation
        self.activation = lambda model: [model.reflections(), *activation(model), model.late_reflections()]
        self.datacollector = DataCollector(
            model_reporters={name: name for name in MEASURES},
            agent_reporters={name: name for name in HOUSEHOLD_MEASURES},
        )
        self.datacollector.collect(self)

    def _add_households(self) -> None:
        """Add the households, each with a name and the policy of its rule twin."""
        parameters = self.scenario
        memory = parameters.memory or (DIALOGUE if parameters.fidelity == "original" else "window:4")
        names = draw_names(parameters.n_agents, self.random)
        personas = [""] * len(names)
        if parameters.people == "drawn" and parameters.fidelity != "original":
            rng = random.Random(f"people {self.run_seed}")
            personas = [person.persona for person in drawn_personas(len(names), rng, THRIFT, HOMES)]
        for index, (name, persona) in enumerate(zip(names, personas, strict=True)):
            Household(
                self,
                POLICIES[parameters.policy](self.random),
                index,
                parameters.reflect_every,
                config=AgentConfig(name=name, persona=persona, settings=SETTINGS),
                memory=HouseholdDialogue(DIALOGUE_TOKENS, parameters.reflect_every + 1)
                if memory == DIALOGUE
                else memory,
            )

    def scenario_changed(self) -> None:
        """Pass changes of taxes, limits and the inflation target on to the economy."""
        self.world.set_parameters(_parameters_of(self.scenario))

    # -- the loop

    def reflections(self) -> list[Turn]:
        """Return, at the start of a quarter, the turns of the households that reflect on the previous one."""
        every = self.scenario.reflect_every
        if not every or self.now == 1 or (self.now - 1) % every:
            return []
        return self._reflecting(in_dialogue=False)

    def late_reflections(self) -> list[Turn]:
        """Return, in a quarter's last month, the turns of the households that reflect before the month ends."""
        every = self.scenario.reflect_every
        if not every or self.now % every:
            return []
        return self._reflecting(in_dialogue=True)

    def _reflecting(self, *, in_dialogue: bool) -> list[Turn]:
        homes = [
            home
            for home in self.households
            if home.reflects and isinstance(home.memory, HouseholdDialogue) == in_dialogue
        ]
        return [Turn(household, household.reflection()) for household in homes]

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
        return 1 - months[-1].employed / len(self.world.agent_ids) if months else math.nan

    @property
    def nominal_gdp(self) -> float:
        """Last month's output at its sale price, in dollars; NaN before the first month."""
        economy = self.world.economy
        return economy.months[-1].output * economy.prices[-2] if economy.months else math.nan

    @property
    def real_gdp(self) -> float:
        """Last month's output at the initial price, in dollars; NaN before the first month."""
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
        """Current yearly interest rate, as a fraction."""
        return self.world.economy.interest_rate

    @property
    def money(self) -> float:
        """Total savings less the producer's debt, in dollars; always 0 under the corrected rules."""
        return self.world.economy.money

    @property
    def inequality(self) -> float:
        """Gini coefficient of savings; NaN while there are none."""
        return inequality(self.world.economy.households.coin, self.world.economy.rules)

    @property
    def phillips_r(self) -> float:
        """Correlation of wage inflation with unemployment over the full years so far; NaN before the fourth."""
        return self._laws()[0]

    @property
    def okun_r(self) -> float:
        """Correlation of the growth of real output with that of unemployment; near -1 by accounting."""
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
        """Number of households without a plan last month."""
        months = self.world.economy.months
        return months[-1].undecided if months else 0

    @property
    def months(self) -> pd.DataFrame:
        """One row per month: price, imbalance, wages, goods, output, employment, tax, interest."""
        return self.world.economy.monthly_table()

    @property
    def years(self) -> pd.DataFrame:
        """One row per full year: unemployment, output, interest, inflation, growth."""
        return self.world.economy.yearly_table()

    def results(self) -> dict[str, float]:
        """Return the published measures: unemployment, inflation, Phillips curve, Okun's law, output, inequality."""
        economy = self.world.economy
        return scores_of(self.years, economy.households.coin, economy.rules)

    def story(self) -> str:
        """Describe prices, work, output, the two laws, inequality, and a thought if there is one."""
        economy = self.world.economy
        if not economy.months:
            return "No month has passed yet."
        first, last, gap = economy.prices[0], economy.price, self.inequality
        date = date_of(economy.month, economy.parameters.first_year)
        lines = [
            f"What happened until the end of {date}, month {economy.month}, to {len(self.households)} households:",
            f"The good cost ${first:.2f} at first, and now ${last:.2f}. "
            f"The mean wage is ${self.mean_wage:.2f} an hour.",
            f"Last month {self.unemployment:.0%} had no work; {economy.goods:,.0f} goods are unsold.",
            *_year_lines(self.years),
            *_law_lines(self.years),
            f"Savings of all: ${economy.households.coin.sum():,.0f}"
            + ("." if np.isnan(gap) else f"; their inequality (Gini): {gap:.2f}."),
            f"Interest: {economy.interest_rate:.2%} a year.",
        ]
        n_undecided = sum(month.undecided for month in economy.months)
        if n_undecided:
            lines.append(
                f"{n_undecided} plans are missing: those households stayed at home that month and bought nothing."
            )
        return "\n".join([*lines, *self._thought_lines()])

    def _thought_lines(self) -> list[str]:
        """Return the latest thought in a household's memory as a line, if any."""
        for household in self.households:
            if household.reflects and isinstance(household.memory, WindowMemory | ChatMemory):
                thoughts = [entry for entry in household.memory.entries if entry.kind == "thought"]
                if thoughts:
                    last = thoughts[-1]
                    return [f"{household.config.name} thought in month {last.time}: {one_line(last.text, 300)}"]
        return []


def _year_lines(years: pd.DataFrame) -> list[str]:
    """Describe each of the last years, one per line."""
    recent = years.tail(MAX_YEARS)
    n_earlier = len(years) - len(recent)
    lines = [f"({counted(n_earlier, 'earlier year is', 'earlier years are')} left out.)"] if n_earlier else []
    for year, row in recent.iterrows():
        change = row["price_inflation"]
        change_text = "" if np.isnan(change) else f", prices {change:+.1%}, wages {row['wage_inflation']:+.1%}"
        lines.append(
            f"Year {year}: unemployment {row['unemployment']:.1%}, real output ${row['real_gdp']:,.0f}{change_text}"
        )
    return lines


def _law_lines(years: pd.DataFrame) -> list[str]:
    """Describe the Phillips curve and Okun's law, one per line."""
    curve, law, nominal = phillips(years), okun(years), nominal_okun(years)
    if np.isnan(curve.r) or np.isnan(law.r):
        return ["The Phillips curve and Okun's law need four years that differ in unemployment."]
    return [
        f"Phillips curve, wage inflation on unemployment: r = {curve.r:+.2f} (p = {curve.p:.2g}) over {curve.points} "
        "years. Published: -0.62 for GPT-3.5, above 0 for rules.",
        f"Okun's law: r = {law.r:+.2f}; this one is bookkeeping, as output is made by those at work alone. "
        f"In nominal output, which could be otherwise, r = {nominal.r:+.2f}.",
    ]


def draw_names(count: int, rng: random.Random) -> list[str]:
    """Draw names, without repetition if there are enough.

    Args:
        count: Number of names.
        rng: Random generator.
    """
    given_names = [name for names in GIVEN_NAMES.values() for name in names]
    full = [f"{first} {last}" for first in given_names for last in FAMILY_NAMES]
    names = rng.sample(full, min(count, len(full)))
    return [names[index % len(names)] for index in range(count)]


def _parameters_of(scenario: EconAgentScenario) -> MacroParameters:
    taxes: dict[str, TaxSchedule] = {"us": US_TAX, "flat": flat_tax(scenario.flat_rate), "none": NO_TAX}
    return MacroParameters(
        max_wage_change=scenario.max_wage_change,
        max_price_change=scenario.max_price_change,
        inflation_target=scenario.inflation_target,
        tax=taxes[scenario.tax],
    )
