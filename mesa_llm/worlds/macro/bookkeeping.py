"""The economy's books: what is kept of each month and each year."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from mesa_llm.records import Event
from mesa_llm.worlds.macro.rules import EPSILON, MONTHS_PER_YEAR, Rules


class Month(NamedTuple):
    """What is kept of a month, as it stood at its end."""

    month: int
    """Number, from 1."""

    price: float
    """Dollars per good."""

    imbalance: float
    """Excess demand of the goods market, -1..1."""

    mean_wage: float
    """Dollars an hour, over all households."""

    goods: float
    """Goods unsold."""

    output: float
    """Goods made."""

    employed: int
    """Households at work."""

    tax_revenue: float
    """Dollars taken and handed back."""

    tax_credit: float
    """Dollars handed to each household."""

    interest_rate: float
    """Yearly rate, as a fraction."""

    undecided: int
    """Households that had no plan."""


@dataclass
class Years:
    """The yearly books; the last year may be incomplete."""

    rules: Rules
    """Under the original rules, growth from a year without unemployment divides by 1e-8; else it is NaN."""

    full: int = 0
    """Years that are complete."""

    unemployed: list[int] = field(default_factory=list[int])
    """Months that households spent without work, by year."""

    nominal_gdp: list[float] = field(default_factory=list[float])
    """Output at the price it met, in dollars, by year."""

    real_gdp: list[float] = field(default_factory=list[float])
    """Output at the first price, in dollars, by year."""

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
        if (month - 1) // MONTHS_PER_YEAR == len(self.unemployed):
            self.unemployed.append(0)
            self.nominal_gdp.append(0.0)
            self.real_gdp.append(0.0)
        self.unemployed[-1] += unemployed
        self.nominal_gdp[-1] += nominal
        self.real_gdp[-1] += real

    def close(self, prices: list[float], wages: list[float]) -> None:
        """End a year, and compute its growth and inflation if there is a year before it."""
        self.full += 1
        if self.full == 1:
            return
        self.unemployment_growth.append(self._growth(self.unemployed))
        self.nominal_growth.append(self._growth(self.nominal_gdp))
        self.real_growth.append(self._growth(self.real_gdp))
        self.price_inflation.append(_inflation(prices))
        self.wage_inflation.append(_inflation(wages))

    def _growth(self, totals: list[int] | list[float]) -> float:
        """Give the relative change of the last year's total."""
        before, now = totals[-2], totals[-1]
        if self.rules == "original":
            return (now - before) / (before + EPSILON)
        return (now - before) / before if before else float("nan")

    def table(self, households: int, rates: list[float]) -> pd.DataFrame:
        """Give one row a full year, indexed from 1; NaN where a year has no value.

        Args:
            households: How many there are.
            rates: Interest rates, one for each full year, as they stood at its end.
        """
        full = self.full
        columns: dict[str, list[float]] = {
            "unemployment": [count / (MONTHS_PER_YEAR * households) for count in self.unemployed[:full]],
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
    """Compare the mean of the last twelve months with that of the twelve before."""
    now = float(np.mean(series[-MONTHS_PER_YEAR:]))
    before = float(np.mean(series[-2 * MONTHS_PER_YEAR : -MONTHS_PER_YEAR]))
    return (now - before) / before


def year_events(source: str, month: int, years: Years, households: int, rate_before: float, rate: float) -> list[Event]:
    """Tell how a year changed unemployment, inflation and the interest rate, if there is a year before it."""
    person_months = MONTHS_PER_YEAR * households
    series = {"unemployment_rate": [count / person_months for count in years.unemployed]}
    series["price_inflation"] = years.price_inflation
    events: list[Event] = []
    for metric, values in series.items():
        if len(values) < 2:
            continue
        previous, current = values[-2], values[-1]
        facts = {"metric": metric, "previous": previous, "current": current, "delta": current - previous}
        text = f"Over the year, {metric.replace('_', ' ')} went from {previous:.1%} to {current:.1%}."
        events.append(Event(source, "metric_change", facts, text, month))
    if rate != rate_before:
        policy = "interest_rate"
        moved = {"policy": policy, "variable": policy, "previous": rate_before, "value": rate}
        text = f"The central bank moved the interest rate from {rate_before:.2%} to {rate:.2%}."
        events.append(Event(source, "policy_change", moved, text, month))
    return events
