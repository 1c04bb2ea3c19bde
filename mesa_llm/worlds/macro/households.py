"""The households of the economy, one array a field, and how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mesa_llm.errors import ConfigError
from mesa_llm.world import Draws
from mesa_llm.worlds.macro.jobs import UNEMPLOYED, draw_offer
from mesa_llm.worlds.macro.rules import (
    BoolArray,
    FloatArray,
    IntArray,
    MacroParameters,
    Rules,
    ladder_in_closed_form,
    ladder_of,
)

SKILL_BATCHES = 1000
"""Batches of draws that a skill ladder averages."""

_AGE_SHARES = (0.0, 0.10, 0.25, 0.50, 0.75, 0.90, 1.0)
_AGES = (18.0, 23.0, 28.75, 40.0, 49.0, 56.0, 59.0)


@dataclass
class Households:
    """State of all households; every array has shape `(households,)`."""

    skill: FloatArray
    """Hourly wage, in dollars."""

    age: IntArray
    """Years."""

    coin: FloatArray
    """Savings, in dollars; never negative."""

    offer: IntArray
    """Number of the job title on offer; the accepted one while at work."""

    expected_skill: FloatArray = field(init=False)
    """Wage that a household out of work would come back to; shown to nobody."""

    skill_before: FloatArray = field(init=False)
    """Hourly wage a month ago, in dollars."""

    last_salary: FloatArray = field(init=False)
    """Salary of the last month at work, in dollars; 0 before the first."""

    income: FloatArray = field(init=False)
    """Last month's salary in dollars; under the original rules that of the last month at work."""

    consumption: FloatArray = field(init=False)
    """Dollars spent last month; under the original rules in the last month with a plan to spend."""

    level: IntArray = field(init=False)
    """Spending level of last month's plan."""

    is_short: BoolArray = field(init=False)
    """Who got fewer goods than planned last month."""

    tax_paid: FloatArray = field(init=False)
    """Tax of last month, in dollars."""

    job: IntArray = field(init=False)
    """Number of the job title held, -1 while unemployed."""

    def __post_init__(self) -> None:
        """Check the shapes, and start everyone unemployed."""
        self.skill = np.array(self.skill, dtype=np.float64)
        self.age = np.array(self.age, dtype=np.int64)
        self.coin = np.array(self.coin, dtype=np.float64)
        self.offer = np.array(self.offer, dtype=np.int64)
        shapes = {array.shape for array in (self.skill, self.age, self.coin, self.offer)}
        if len(shapes) != 1 or self.skill.ndim != 1 or not len(self.skill):
            raise ConfigError(f"households need one-dimensional fields of one length, got shapes {sorted(shapes)}")
        if not (np.isfinite(self.skill).all() and np.isfinite(self.coin).all()) or (self.coin < 0).any():
            raise ConfigError("skills and savings of households must be finite, and savings not negative")
        self.expected_skill = self.skill.copy()
        self.skill_before = self.skill.copy()
        for name in ("last_salary", "income", "consumption", "tax_paid"):
            setattr(self, name, np.zeros(len(self)))
        self.level = np.zeros(len(self), dtype=np.int64)
        self.is_short = np.zeros(len(self), dtype=np.bool_)
        self.job = np.full(len(self), UNEMPLOYED, dtype=np.int64)

    def __len__(self) -> int:
        """Count the households."""
        return len(self.skill)


def draw_households(
    count: int,
    draws: Draws,
    *,
    rules: Rules = "corrected",
    skill_mode: Literal["sampled", "closed_form"] = "sampled",
    parameters: MacroParameters | None = None,
) -> Households:
    """Draw households with the paper's laws of skill and age, without savings.

    Args:
        count: How many.
        draws: Where the draws come from.
        rules: `original` makes the first household the poorest and the last the richest; `corrected` deals
            the skills out at random, so that an id says nothing of wealth.
        skill_mode: Average drawn ladders (takes `1000 * count` floats), or use the expected one.
        parameters: Shape and cap of the law of skills, and hours at work.
    """
    if count < 1:
        raise ConfigError(f"an economy needs at least one household, got {count}")
    parameters = parameters or MacroParameters()
    shape, cap = parameters.skill_shape, parameters.skill_cap
    if skill_mode == "closed_form":
        ladder = ladder_in_closed_form(count, shape, cap)
    else:
        rng = np.random.default_rng(draws.randint(0, 2**63 - 1))
        ladder = ladder_of(rng.pareto(shape, (SKILL_BATCHES, count)), cap)
    skills: list[float] = ladder.tolist()
    if rules == "corrected":
        draws.shuffle(skills)
    ages = [draw_age(draws) for _ in range(count)]
    offers = [draw_offer(parameters.hours * skill, 0, rules, draws) for skill in skills]
    return Households(np.array(skills), np.array(ages), np.zeros(count), np.array(offers))


def draw_age(draws: Draws) -> int:
    """Draw an age of 18 to 59 years, by a law through the quantiles of the paper's sample (US, 2018)."""
    return round(float(np.interp(draws.random(), _AGE_SHARES, _AGES)))
