"""The economy as a world: households observe their situation and plan a month, then the month is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ActionResult, Event, Observation
from mesa_llm.tools.tool import action
from mesa_llm.tools.validation import NO_FLAG, is_number
from mesa_llm.world import RNG, Rules, make_rng
from mesa_llm_models.econ_agent.world import text as wording
from mesa_llm_models.econ_agent.world.facts import HouseholdFacts, date_of
from mesa_llm_models.econ_agent.world.jobs import title_of
from mesa_llm_models.econ_agent.world.rules import MonthlyEconomy, consumption_level, draw_households, uniforms
from mesa_llm_models.econ_agent.world.state import MONTHS_PER_YEAR, UNEMPLOYED, Households, MacroParameters

Share = Annotated[float, Field(ge=0, le=1), NO_FLAG]

_UNPARSED = (1.0, 0.5)
"""Plan of a household without one, under the original rules."""

_AT_HOME = (0.0, 0.0)
"""Plan of a household without one, under the corrected rules."""


class Macroeconomy:
    """EconAgent's economy, where each household plans its months."""

    wording: ClassVar[Any] = wording
    """Module with the texts agents read. A subclass may set its own."""

    name: str

    unit = "month"

    def __init__(
        self,
        agent_ids: Sequence[int],
        rng: RNG | int | None = None,
        *,
        rules: Rules = "corrected",
        parameters: MacroParameters | None = None,
        households: Households | None = None,
        name: str = "macro",
    ) -> None:
        """Set up the economy before its first month.

        Args:
            agent_ids: Mesa `unique_id` of each household, in the order of their arrays.
            rng: Random generator, or a seed.
            rules: The economy as published, or with the corrections listed in the package.
            parameters: Parameters; by default the paper's.
            households: The households; by default drawn from the paper's distributions.
            name: Name of the world.

        Raises:
            ConfigError: If ids repeat, or their number differs from that of the households.
        """
        self.name = name
        self.rng: RNG = make_rng(rng)
        self.agent_ids = tuple(agent_ids)
        self._indices = {agent_id: index for index, agent_id in enumerate(self.agent_ids)}
        if len(self._indices) != len(self.agent_ids):
            raise ConfigError("two households share an id; give each its own id")
        if households is None:
            households = draw_households(len(self.agent_ids), self.rng, rules=rules, parameters=parameters)
        if len(households) != len(self.agent_ids):
            raise ConfigError(f"{len(self.agent_ids)} ids do not fit {len(households)} households; give one each")
        self.economy = MonthlyEconomy(households, self.rng, rules=rules, parameters=parameters)
        self._plans: dict[int, tuple[float, float]] = {}
        self._instructions = self.wording.instructions(self.economy.parameters.tax)

    def set_parameters(self, parameters: MacroParameters) -> None:
        """Use other parameters from the next month on. Draws before the first month are unchanged.

        Args:
            parameters: The parameters.
        """
        self.economy.parameters = parameters
        self._instructions = self.wording.instructions(parameters.tax)

    def observe(self, agent_id: int) -> Observation:
        """Return a household's view of its job, prices, taxes, savings and interest rate for planning the month."""
        facts = self.facts(agent_id)
        return Observation(
            text=self.wording.view_text(facts, self.economy.rules), instructions=self._instructions, facts=facts
        )

    def facts(self, agent_id: int) -> HouseholdFacts:
        """Return what a household sees, as values.

        Raises:
            ConfigError: If there is no household with this id.
        """
        index = self._indices.get(agent_id)
        if index is None:
            raise ConfigError(f"agent {agent_id} is not a household of {self.name!r}; pass its id to the world")
        economy, homes = self.economy, self.economy.households
        hours, has_past = economy.parameters.hours, economy.month > 0
        job = int(homes.job[index])
        return HouseholdFacts(
            month=economy.month + 1,
            date=date_of(economy.month + 1, economy.parameters.first_year),
            age=int(homes.age[index]),
            job="" if job == UNEMPLOYED else title_of(job),
            offer=title_of(int(homes.offer[index])),
            salary=hours * float(homes.skill[index]),
            salary_before=hours * float(homes.skill_before[index]) if has_past else None,
            last_salary=float(homes.last_salary[index]),
            income=float(homes.income[index]),
            coin=float(homes.coin[index]),
            consumption=float(homes.consumption[index]),
            is_short=bool(homes.is_short[index]),
            price=economy.price,
            price_before=economy.prices[-2] if has_past else None,
            interest_rate=economy.interest_rate,
            tax_paid=float(homes.tax_paid[index]),
            tax_credit=economy.tax_credit,
            tax=economy.parameters.tax,
        )

    @property
    def moment(self) -> str:
        """The month that households plan, as it begins a sentence."""
        return f"In {date_of(self.economy.month + 1, self.economy.parameters.first_year)}"

    @action(did="You planned to work with a chance of {work:.2f} and to spend {consumption:.0%} of your money.")
    def plan_month(self, agent_id: int, work: Share, consumption: Share) -> ActionResult:
        """Plan your month: how willing you are to work, and what share of your money you spend.

        Args:
            work: Your willingness to work this month, from 0 (you stay at home) to 1 (you surely work), in
                steps of 0.02.
            consumption: The share of all your money, savings and this month's pay, that you spend on the
                good, from 0 (nothing) to 1 (everything), in steps of 0.02.
        """
        if agent_id not in self._indices:
            raise ToolError(self.wording.reason_text("no_household", agent_id=agent_id))
        for name, share in (("work", work), ("consumption", consumption)):
            if not (is_number(share) and 0 <= share <= 1):
                raise ToolError(self.wording.reason_text("not_a_share", name=name, share=share))
        self._plans[agent_id] = (work, consumption)
        text = self.wording.result_text("plan_month", work=work, consumption=consumption)
        return ActionResult(text, work=work, consumption=consumption)

    def end_step(self) -> list[Event]:
        """Draw who works from the plans, run the month, and return the changes at the end of a year.

        A household without a plan neither works nor buys, and counts as undecided. Under the original rules it works
        and spends half.
        """
        economy, is_original = self.economy, self.economy.rules == "original"
        default = _UNPARSED if is_original else _AT_HOME
        plans = np.array([self._plans.get(agent_id, default) for agent_id in self.agent_ids], dtype=np.float64)
        undecided = len(self.agent_ids) - len(self._plans)
        self._plans = {}
        uniform_draws = uniforms(len(plans), self.rng)
        works = uniform_draws <= plans[:, 0] if is_original else uniform_draws < plans[:, 0]
        levels = consumption_level(plans[:, 1], economy.rules)
        rate = economy.interest_rate
        economy.run_month(works, levels, undecided=undecided)
        if economy.month % MONTHS_PER_YEAR:
            return []
        households = len(self.agent_ids)
        return self.wording.year_events(
            self.name, economy.month, economy.years, households, rate, economy.interest_rate
        )

    def household_table(self) -> pd.DataFrame:
        """Return one row per household, indexed by id."""
        homes = self.economy.households
        names = "skill age coin income last_salary consumption level tax_paid is_short"
        columns = {name: getattr(homes, name) for name in names.split()}
        jobs = [title_of(int(job)) for job in homes.job]
        return pd.DataFrame({**columns, "job": jobs}, index=pd.Index(self.agent_ids, name="agent"))
