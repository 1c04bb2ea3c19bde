"""The months of the economy: work, pay and tax, the goods market, wages and price, the bank, job offers."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pandas as pd

from mesa_llm.errors import ConfigError
from mesa_llm.world import Draws
from mesa_llm.worlds.macro.bookkeeping import Month, Years
from mesa_llm.worlds.macro.households import Households
from mesa_llm.worlds.macro.jobs import UNEMPLOYED, draw_offer
from mesa_llm.worlds.macro.policies import Standing, uniforms
from mesa_llm.worlds.macro.rules import (
    MONTHS_PER_YEAR,
    TOP_LEVEL,
    BoolArray,
    FloatArray,
    IntArray,
    MacroParameters,
    Rules,
    Sales,
    imbalance,
    sell_goods,
    taylor_rate,
)


class MonthlyEconomy:
    """One good, one producer, one bank, a taxing state, and households by their place in the arrays."""

    def __init__(
        self,
        households: Households,
        rng: Draws,
        *,
        rules: Rules = "corrected",
        parameters: MacroParameters | None = None,
        price: float | None = None,
    ) -> None:
        """Set the economy up before its first month.

        Args:
            households: The households; they belong to the economy from now on.
            rng: Where draws come from; a month takes the order of buyers, a number for each wage, one for the
                price, and a title for each job offer.
            rules: As published, or with the defects mended that the package lists.
            parameters: Parameters; those of the paper by default.
            price: First price in dollars; the mean wage by default.
        """
        if rules not in get_args(Rules):
            raise ConfigError(f"rules must be one of {get_args(Rules)}, got {rules!r}")
        self.rules: Rules = rules
        self.parameters = parameters or MacroParameters()
        self.draws = rng
        self.households = households
        self.month = 0
        self.price = float(households.skill.mean()) if price is None else float(price)
        self.goods = 0.0
        self.producer_account = 0.0
        self.tax_credit = 0.0
        self.prices = [self.price]
        self.mean_wages: list[float] = []
        self.rates = [self.parameters.first_rate]
        self.months: list[Month] = []
        self.years = Years(rules)

    @property
    def interest_rate(self) -> float:
        """The yearly rate in force, as a fraction."""
        return self.rates[-1]

    @property
    def money(self) -> float:
        """All money in dollars: savings, less what the producer owes; constant under the corrected rules."""
        return float(self.households.coin.sum()) + self.producer_account

    def standing(self) -> Standing:
        """Give what rule policies know, for all households at once."""
        homes = self.households
        return Standing(
            salary=self.parameters.hours * homes.skill,
            coin=homes.coin.copy(),
            last_salary=homes.last_salary.copy(),
            price=self.price,
            interest_rate=self.interest_rate,
            tax=self.parameters.tax,
            tax_credit=self.tax_credit,
        )

    def run_month(self, works: BoolArray, levels: IntArray, *, undecided: int = 0) -> Month:
        """Let a month pass: labour, tax, goods market, wages and price, bank, job offers.

        Args:
            works: Who works, shape `(households,)`.
            levels: Spending levels 0..50, same shape.
            undecided: Households that had no plan, for the record.

        Raises:
            ValueError: If a shape or a level does not fit.
        """
        works, levels = self._checked(works, levels)
        self.month += 1
        employed = int(works.sum())
        output = self.parameters.hours * self.parameters.productivity * employed
        self.years.add(self.month, len(works) - employed, output * self.price, output * self.prices[0])
        revenue = self._tax(self._work(works, output))
        pressure = self._trade(levels)
        if self.month % MONTHS_PER_YEAR == 0:
            self._close_year()
        self._offer_jobs()
        row = Month(
            month=self.month,
            price=self.price,
            imbalance=pressure,
            mean_wage=self.mean_wages[-1],
            goods=self.goods,
            output=output,
            employed=employed,
            tax_revenue=revenue,
            tax_credit=self.tax_credit,
            interest_rate=self.interest_rate,
            undecided=undecided,
        )
        self.months.append(row)
        return row

    def _checked(self, works: BoolArray, levels: IntArray) -> tuple[BoolArray, IntArray]:
        """Refuse plans that do not fit."""
        attendance, levels = np.asarray(works), np.asarray(levels, dtype=np.int64)
        if attendance.shape != self.households.skill.shape or levels.shape != attendance.shape:
            found = f"{attendance.shape} and {levels.shape}"
            raise ValueError(f"{len(self.households)} households need a plan each, got plans of shapes {found}")
        if not np.isin(attendance, (0, 1)).all():
            raise ValueError(f"a household works (1) or not (0), got {attendance.min()}..{attendance.max()}")
        if (levels < 0).any() or (levels > TOP_LEVEL).any():
            raise ValueError(f"spending levels must be 0..{TOP_LEVEL}, got {levels.min()}..{levels.max()}")
        return attendance.astype(np.bool_), levels

    def _work(self, works: BoolArray, output: float) -> FloatArray:
        """Employ and pay those who work, and stock what they make; give this month's salaries."""
        homes = self.households
        salaries = np.where(works, self.parameters.hours * homes.skill, 0.0)
        homes.last_salary = np.where(works, salaries, homes.last_salary)
        homes.income = homes.last_salary.copy() if self.rules == "original" else salaries
        homes.coin = homes.coin + salaries
        self.producer_account -= float(salaries.sum())
        self.goods += output
        if self.month % MONTHS_PER_YEAR == 1 and self.month > MONTHS_PER_YEAR:
            homes.age = homes.age + 1
        homes.job = np.where(works, homes.offer, UNEMPLOYED)
        homes.expected_skill = np.where(works, homes.expected_skill, homes.expected_skill * 0.98)
        return salaries

    def _tax(self, salaries: FloatArray) -> float:
        """Tax salaries, hand the revenue back in equal parts, and give it."""
        homes = self.households
        homes.tax_paid = np.minimum(homes.coin, self.parameters.tax.due(salaries))
        revenue = float(homes.tax_paid.sum())
        self.tax_credit = revenue / len(homes)
        homes.coin = homes.coin - homes.tax_paid + self.tax_credit
        return revenue

    def _trade(self, levels: IntArray) -> float:
        """Sell the good to households in random order, move wages and price by the imbalance, and give it."""
        homes, stock = self.households, self.goods
        order = self.draws.sample(range(len(homes)), len(homes))
        sales = sell_goods(order, homes.coin, levels, stock, self.price)
        self.goods = sales.goods_left
        self._settle(sales, levels)
        pressure = imbalance(sales.demand, stock)
        limits = self.parameters
        wage_moves = pressure * limits.max_wage_change * uniforms(len(homes), self.draws)
        homes.skill_before = homes.skill
        homes.skill = np.maximum(limits.wage_floor, homes.skill * (1 + wage_moves))
        self.mean_wages.append(float(homes.skill.mean()))
        price_move = pressure * limits.max_price_change * self.draws.random()
        self.price = max(limits.price_floor, self.price * (1 + price_move))
        self.prices.append(self.price)
        return pressure

    def _settle(self, sales: Sales, levels: IntArray) -> None:
        """Charge what was bought, and note it for the households."""
        homes = self.households
        homes.coin = homes.coin - sales.spent
        self.producer_account += float(sales.spent.sum())
        if self.rules == "original":
            homes.consumption = np.where(levels > 0, sales.spent, homes.consumption)
            homes.is_short = (homes.consumption <= 0) & (levels > 0)
        else:
            homes.consumption, homes.is_short = sales.spent, sales.is_short
        homes.level = levels

    def _close_year(self) -> None:
        """Close the year's books, pay interest, and from the second year on set a new rate."""
        homes, rate = self.households, self.interest_rate
        self.years.close(self.prices, self.mean_wages)
        interest = float((homes.coin * rate).sum())
        homes.coin = homes.coin * (1 + rate)
        if self.rules == "corrected":
            self.producer_account -= interest
        if self.years.full > 1:
            unemployment = self.years.unemployed[-1] / (MONTHS_PER_YEAR * len(homes))
            self.rates.append(taylor_rate(self.years.price_inflation[-1], unemployment, self.parameters))

    def _offer_jobs(self) -> None:
        """Offer a job that fits its wage to everyone out of work."""
        homes, hours = self.households, self.parameters.hours
        for place in np.flatnonzero(homes.job == UNEMPLOYED).tolist():
            salary, old = hours * float(homes.skill[place]), int(homes.offer[place])
            homes.offer[place] = draw_offer(salary, old, self.rules, self.draws)

    def monthly_table(self) -> pd.DataFrame:
        """Give one row a month: price, wages, goods, employment, tax, interest."""
        return pd.DataFrame([month._asdict() for month in self.months], columns=list(Month._fields))

    def yearly_table(self) -> pd.DataFrame:
        """Give one row a full year: unemployment, output, inflation, growth; NaN where a year has none."""
        return self.years.table(len(self.households), self.rates)
