"""The economy as a world: a household sees its month, plans it, and the month passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import Event, Observation
from mesa_llm.tools import action
from mesa_llm.world import Draws, draws
from mesa_llm.worlds.amounts import NO_FLAG, is_number
from mesa_llm.worlds.macro.bookkeeping import year_events
from mesa_llm.worlds.macro.economy import MonthlyEconomy
from mesa_llm.worlds.macro.households import Households, draw_households
from mesa_llm.worlds.macro.jobs import UNEMPLOYED, title_of
from mesa_llm.worlds.macro.policies import uniforms
from mesa_llm.worlds.macro.rules import MONTHS_PER_YEAR, MacroParameters, Rules, consumption_level
from mesa_llm.worlds.macro.view import HouseholdFacts, date_of, rules_text, view_text

Share = Annotated[float, Field(ge=0, le=1), NO_FLAG]

_UNPARSED = (1.0, 0.5)
"""What the original takes for the plan of a household that gave none."""

_AT_HOME = (0.0, 0.0)
"""What a household does that gave no plan."""


class Macroeconomy:
    """EconAgent's economy, in which each household plans its months."""

    name: str

    def __init__(
        self,
        actors: Sequence[int],
        rng: Draws | int | None = None,
        *,
        rules: Rules = "corrected",
        parameters: MacroParameters | None = None,
        households: Households | None = None,
        name: str = "macro",
    ) -> None:
        """Set the economy up before its first month.

        Args:
            actors: Mesa `unique_id` of each household, in the order of their fields.
            rng: Where draws come from, or a seed.
            rules: As published, or with the defects mended that the package lists.
            parameters: Parameters; those of the paper by default.
            households: The households; drawn by the paper's laws by default.
            name: Name of the world.

        Raises:
            ConfigError: If ids repeat, or their number is not that of the households.
        """
        self.name = name
        self.draws: Draws = draws(rng) if rng is None or isinstance(rng, int) else rng
        self.actors = tuple(actors)
        self._places = {actor: place for place, actor in enumerate(self.actors)}
        if len(self._places) != len(self.actors):
            raise ConfigError("two households share an id; give each an id of its own")
        if households is None:
            households = draw_households(len(self.actors), self.draws, rules=rules, parameters=parameters)
        if len(households) != len(self.actors):
            raise ConfigError(f"{len(self.actors)} ids do not fit {len(households)} households; give one each")
        self.economy = MonthlyEconomy(households, self.draws, rules=rules, parameters=parameters)
        self._plans: dict[int, tuple[float, float]] = {}
        self._rules_text = rules_text(self.economy.parameters.tax)

    def observe(self, agent: int) -> Observation:
        """Show a household its job, prices, taxes, savings and the interest, before it plans the month."""
        facts = self.facts(agent)
        return Observation(text=view_text(facts, self.economy.rules), rules=self._rules_text, facts=facts)

    def facts(self, agent: int) -> HouseholdFacts:
        """Give what a household sees, as values.

        Raises:
            ConfigError: If no household has this id.
        """
        place = self._places.get(agent)
        if place is None:
            raise ConfigError(f"agent {agent} is no household of {self.name!r}; name it when building the world")
        economy, homes = self.economy, self.economy.households
        hours, has_past = economy.parameters.hours, economy.month > 0
        job = int(homes.job[place])
        return HouseholdFacts(
            month=economy.month + 1,
            date=date_of(economy.month + 1, economy.parameters.first_year),
            age=int(homes.age[place]),
            job="" if job == UNEMPLOYED else title_of(job),
            offer=title_of(int(homes.offer[place])),
            salary=hours * float(homes.skill[place]),
            salary_before=hours * float(homes.skill_before[place]) if has_past else None,
            last_salary=float(homes.last_salary[place]),
            income=float(homes.income[place]),
            coin=float(homes.coin[place]),
            consumption=float(homes.consumption[place]),
            is_short=bool(homes.is_short[place]),
            price=economy.price,
            price_before=economy.prices[-2] if has_past else None,
            interest_rate=economy.interest_rate,
            tax_paid=float(homes.tax_paid[place]),
            tax_credit=economy.tax_credit,
            tax=economy.parameters.tax,
        )

    @action
    def plan_month(self, actor: int, work: Share, consumption: Share) -> str:
        """Plan your month: how willing you are to work, and which share of your money you spend.

        Args:
            work: Your willingness to work this month, from 0 (you stay at home) to 1 (you surely work), in
                steps of 0.02.
            consumption: The share of all your money, savings and this month's pay, that you spend on the
                good, from 0 (nothing) to 1 (everything), in steps of 0.02.
        """
        if actor not in self._places:
            raise ToolError(f"agent {actor} has no household here and cannot plan a month.")
        for name, share in (("work", work), ("consumption", consumption)):
            if not (is_number(share) and 0 <= share <= 1):
                raise ToolError(f"{name} must be a number from 0 to 1, got {share!r}.")
        self._plans[actor] = (work, consumption)
        return f"You plan to work with a chance of {work:.2f} and to spend {consumption:.0%} of your money."

    def end_step(self) -> list[Event]:
        """Draw who works from the plans, let the month pass, and tell at the end of a year how it went.

        A household without a plan neither works nor buys, and is counted as undecided; under the original
        rules it works and spends half.
        """
        economy, is_original = self.economy, self.economy.rules == "original"
        absent = _UNPARSED if is_original else _AT_HOME
        plans = np.array([self._plans.get(actor, absent) for actor in self.actors], dtype=np.float64)
        undecided = len(self.actors) - len(self._plans)
        self._plans = {}
        chances = uniforms(len(plans), self.draws)
        works = chances <= plans[:, 0] if is_original else chances < plans[:, 0]
        levels = consumption_level(plans[:, 1], rounding="original" if is_original else "fixed")
        rate = economy.interest_rate
        economy.run_month(works, levels, undecided=undecided)
        if economy.month % MONTHS_PER_YEAR:
            return []
        households = len(self.actors)
        return year_events(self.name, economy.month, economy.years, households, rate, economy.interest_rate)

    def household_table(self) -> pd.DataFrame:
        """Give one row a household, indexed by its id."""
        homes = self.economy.households
        names = "skill age coin income last_salary consumption level tax_paid is_short"
        columns = {name: getattr(homes, name) for name in names.split()}
        jobs = [title_of(int(number)) for number in homes.job]
        return pd.DataFrame({**columns, "job": jobs}, index=pd.Index(self.actors, name="agent"))
