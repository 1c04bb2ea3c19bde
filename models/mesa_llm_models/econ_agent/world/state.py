"""State of EconAgent's economy: parameters, households (one array per field), and monthly and yearly books.

Source: Li et al. (2024), EconAgent, ACL (arXiv 2310.10436); its environment builds on the AI Economist (Zheng
et al. 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from mesa_llm.errors import ConfigError
from mesa_llm.world import Rules

FloatArray = npt.NDArray[np.float64]

IntArray = npt.NDArray[np.int64]

BoolArray = npt.NDArray[np.bool_]

EPSILON = 1e-8
"""Keeps the original's divisions away from zero."""

MONTHS_PER_YEAR = 12

CONSUMPTION_STEP = 0.02
"""Width of one spending level: a share of a household's money."""

TOP_LEVEL = 50
"""Maximum spending level: all of a household's money."""


@dataclass(frozen=True, slots=True)
class TaxSchedule:
    """A progressive income tax: each slice of a monthly income is taxed at its own rate."""

    floors: tuple[float, ...]
    """Monthly income in dollars at which each slice begins, increasing from 0."""

    rates: tuple[float, ...]
    """Tax rate of each slice, as a fraction."""

    def __post_init__(self) -> None:
        """Check that the slices increase from zero and that each has a rate."""
        if not self.floors or self.floors[0] != 0 or list(self.floors) != sorted(set(self.floors)):
            raise ValueError(f"tax floors must rise from 0, got {self.floors}")
        if len(self.rates) != len(self.floors) or not all(0 <= rate <= 1 for rate in self.rates):
            raise ValueError(f"a tax needs one rate in 0..1 for each of {len(self.floors)} floors, got {self.rates}")

    def due(self, income: npt.ArrayLike) -> FloatArray:
        """Compute the tax on an income, slice by slice.

        Args:
            income: Dollars per month, any shape.

        Returns:
            Dollars of tax, same shape.
        """
        floors = np.asarray(self.floors)
        widths = np.diff(floors, append=np.inf)
        above = np.asarray(income, dtype=np.float64)[..., None] - floors
        return (np.clip(above, 0.0, widths) * np.asarray(self.rates)).sum(axis=-1)

    def marginal(self, income: npt.ArrayLike) -> FloatArray:
        """Return the rate of the top slice of an income. A floor belongs to the slice above it."""
        indices = np.searchsorted(np.asarray(self.floors), np.asarray(income, dtype=np.float64), side="right") - 1
        return np.asarray(self.rates)[np.maximum(indices, 0)]


_YEARLY_FLOORS = (0, 9_700, 39_475, 84_200, 160_725, 204_100, 510_300)

US_TAX = TaxSchedule(
    floors=tuple(floor / MONTHS_PER_YEAR for floor in _YEARLY_FLOORS),
    rates=(0.10, 0.12, 0.22, 0.24, 0.32, 0.35, 0.37),
)
"""US federal income tax of a single filer, tax year 2019, per month."""

NO_TAX = TaxSchedule(floors=(0.0,), rates=(0.0,))
"""No tax, and no redistribution."""


def flat_tax(rate: float) -> TaxSchedule:
    """Return a tax with one rate on every dollar."""
    return TaxSchedule(floors=(0.0,), rates=(rate,))


@dataclass(frozen=True, slots=True)
class MacroParameters:
    """Parameters of the economy, with the paper's values."""

    hours: float = 168.0
    """Hours of work per month."""

    productivity: float = 1.0
    """Goods produced per hour of work."""

    max_wage_change: float = 0.05
    """Maximum relative change of a wage per month."""

    max_price_change: float = 0.10
    """Maximum relative change of the price per month."""

    first_rate: float = 0.03
    """Yearly interest rate before the bank's first decision."""

    natural_rate: float = 0.01
    """Natural yearly real interest rate."""

    inflation_target: float = 0.02
    """Yearly inflation target of the bank."""

    natural_unemployment: float = 0.04
    """Natural unemployment rate."""

    inflation_gain: float = 0.5
    """Response of the rate to deviations of inflation from its target."""

    unemployment_gain: float = 0.5
    """Response of the rate to deviations of unemployment from its natural rate."""

    price_floor: float = 1.0
    """Minimum price of the good, in dollars."""

    wage_floor: float = 1.0
    """Minimum hourly wage, in dollars."""

    skill_cap: float = 950.0
    """Maximum initial hourly wage, in dollars."""

    skill_shape: float = 8.0
    """Shape of the Lomax distribution of skills."""

    first_year: int = 2001
    """Calendar year of the first month."""

    tax: TaxSchedule = US_TAX
    """Tax on monthly income."""


UNEMPLOYED = -1
"""Index of the job title for the unemployed."""


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
    """Index of the job title on offer; the accepted one while employed."""

    expected_skill: FloatArray = field(init=False)
    """Hourly wage an unemployed household would return to, in dollars; visible to no household."""

    skill_before: FloatArray = field(init=False)
    """Hourly wage a month ago, in dollars."""

    last_salary: FloatArray = field(init=False)
    """Salary of the last month at work, in dollars; 0 before the first."""

    income: FloatArray = field(init=False)
    """Last month's salary in dollars; under the original rules, that of the last month at work."""

    consumption: FloatArray = field(init=False)
    """Dollars spent last month; under the original rules, in the last month with planned spending."""

    level: IntArray = field(init=False)
    """Spending level of last month's plan."""

    is_short: BoolArray = field(init=False)
    """Whether a household got fewer goods than planned last month."""

    tax_paid: FloatArray = field(init=False)
    """Tax of last month, in dollars."""

    job: IntArray = field(init=False)
    """Index of the job title, -1 while unemployed."""

    def __post_init__(self) -> None:
        """Check the shapes, and start with all households unemployed."""
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


class Month(NamedTuple):
    """One month, as of its end."""

    month: int
    """Month, from 1."""

    price: float
    """Dollars per good."""

    imbalance: float
    """Excess demand of the goods market, -1..1."""

    mean_wage: float
    """Dollars per hour, over all households."""

    goods: float
    """Goods unsold."""

    output: float
    """Goods produced."""

    employed: int
    """Number of households at work."""

    tax_revenue: float
    """Tax revenue in dollars, all of it redistributed."""

    tax_credit: float
    """Dollars redistributed to each household."""

    interest_rate: float
    """Yearly rate, as a fraction."""

    undecided: int
    """Number of households without a plan."""


@dataclass
class Years:
    """Yearly books. The last year may be incomplete."""

    rules: Rules
    """Under the original rules, growth from a year without unemployment is divided by 1e-8; otherwise it is NaN."""

    full: int = 0
    """Number of complete years."""

    months_without_work: list[int] = field(default_factory=list[int])
    """Person-months without work, by year."""

    nominal_gdp: list[float] = field(default_factory=list[float])
    """Output at its sale price, in dollars, by year."""

    real_gdp: list[float] = field(default_factory=list[float])
    """Output at the initial price, in dollars, by year."""

    price_inflation: list[float] = field(default_factory=list[float])
    """Relative change of the year's mean price, from year 2 on."""

    wage_inflation: list[float] = field(default_factory=list[float])
    """Relative change of the year's mean wage, from year 2 on."""

    unemployment_growth: list[float] = field(default_factory=list[float])
    """Relative change of unemployment, from year 2 on."""

    nominal_growth: list[float] = field(default_factory=list[float])
    """Relative change of nominal output, from year 2 on."""

    real_growth: list[float] = field(default_factory=list[float])
    """Relative change of real output, from year 2 on."""

    def add(self, month: int, unemployed: int, nominal: float, real: float) -> None:
        """Add a month to its year."""
        if (month - 1) // MONTHS_PER_YEAR == len(self.months_without_work):
            self.months_without_work.append(0)
            self.nominal_gdp.append(0.0)
            self.real_gdp.append(0.0)
        self.months_without_work[-1] += unemployed
        self.nominal_gdp[-1] += nominal
        self.real_gdp[-1] += real

    def close(self, prices: list[float], wages: list[float]) -> None:
        """Close a year, and compute growth and inflation if there is a previous one."""
        self.full += 1
        if self.full == 1:
            return
        self.unemployment_growth.append(self._growth(self.months_without_work))
        self.nominal_growth.append(self._growth(self.nominal_gdp))
        self.real_growth.append(self._growth(self.real_gdp))
        self.price_inflation.append(_inflation(prices))
        self.wage_inflation.append(_inflation(wages))

    def _growth(self, totals: list[int] | list[float]) -> float:
        """Return the relative change of the last year's total."""
        before, now = totals[-2], totals[-1]
        if self.rules == "original":
            return (now - before) / (before + EPSILON)
        return (now - before) / before if before else float("nan")

    def table(self, households: int, rates: list[float]) -> pd.DataFrame:
        """Return one row per full year, indexed from 1; NaN where undefined.

        Args:
            households: Number of households.
            rates: Interest rates at the end of each full year.
        """
        full = self.full
        columns: dict[str, list[float]] = {
            "unemployment": [count / (MONTHS_PER_YEAR * households) for count in self.months_without_work[:full]],
            "nominal_gdp": self.nominal_gdp[:full],
            "real_gdp": self.real_gdp[:full],
            "interest_rate": rates[:full],
        }
        for name in (
            "price_inflation",
            "wage_inflation",
            "unemployment_growth",
            "nominal_growth",
            "real_growth",
        ):
            columns[name] = [float("nan"), *getattr(self, name)][:full]
        return pd.DataFrame(columns, index=pd.RangeIndex(1, full + 1, name="year"), dtype=float)


def _inflation(series: list[float]) -> float:
    """Compute the relative change between the means of the last twelve months and the twelve before."""
    now = float(np.mean(series[-MONTHS_PER_YEAR:]))
    before = float(np.mean(series[-2 * MONTHS_PER_YEAR : -MONTHS_PER_YEAR]))
    return (now - before) / before
