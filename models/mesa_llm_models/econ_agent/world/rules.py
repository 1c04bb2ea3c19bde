"""Rules of EconAgent's economy: the sequence of a month, the goods market, interest, spending, and initial draws."""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from mesa_llm.errors import ConfigError
from mesa_llm.world import RNG, Rules
from mesa_llm_models.econ_agent.world.jobs import draw_offer
from mesa_llm_models.econ_agent.world.state import (
    CONSUMPTION_STEP,
    EPSILON,
    MONTHS_PER_YEAR,
    TOP_LEVEL,
    UNEMPLOYED,
    BoolArray,
    FloatArray,
    Households,
    IntArray,
    MacroParameters,
    Month,
    Years,
)

SKILL_BATCHES = 1000
"""Number of draws averaged for a skill ladder."""

_AGE_SHARES = (0.0, 0.10, 0.25, 0.50, 0.75, 0.90, 1.0)

_AGES = (18.0, 23.0, 28.75, 40.0, 49.0, 56.0, 59.0)


class MonthlyEconomy:
    """One good, one producer, one bank, a state that levies taxes, and households by array index."""

    def __init__(
        self,
        households: Households,
        rng: RNG,
        *,
        rules: Rules = "corrected",
        parameters: MacroParameters | None = None,
        price: float | None = None,
    ) -> None:
        """Set up the economy before its first month.

        Args:
            households: The households, owned by the economy from now on.
            rng: Random generator. Each month draws the order of buyers, a number for each wage, one for the price, and
                a title for each job offer.
            rules: The economy as published, or with the corrections listed in the package.
            parameters: Parameters; by default the paper's.
            price: Initial price in dollars; by default the mean wage.
        """
        if rules not in get_args(Rules):
            raise ConfigError(f"rules must be one of {get_args(Rules)}, got {rules!r}")
        self.rules: Rules = rules
        self.parameters = parameters or MacroParameters()
        self.rng = rng
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
        """Current yearly rate, as a fraction."""
        return self.rates[-1]

    @property
    def money(self) -> float:
        """All money in dollars: savings less the producer's debt; constant under the corrected rules."""
        return float(self.households.coin.sum()) + self.producer_account

    def run_month(self, works: BoolArray, levels: IntArray, *, undecided: int = 0) -> Month:
        """Run a month: labour, tax, goods market, wages and price, bank, job offers.

        Args:
            works: Whether each household works, shape `(households,)`.
            levels: Spending levels 0..50, same shape.
            undecided: Number of households without a plan, for the record.

        Raises:
            ValueError: If a shape or level is invalid.
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
        """Return the plans as arrays, or raise an error for invalid ones."""
        attendance, levels = np.asarray(works), np.asarray(levels, dtype=np.int64)
        if attendance.shape != self.households.skill.shape or levels.shape != attendance.shape:
            shapes = f"{attendance.shape} and {levels.shape}"
            raise ValueError(f"{len(self.households)} households need one plan each, got plans of shapes {shapes}")
        if not np.isin(attendance, (0, 1)).all():
            raise ValueError(f"a household works (1) or not (0), got {attendance.min()}..{attendance.max()}")
        if (levels < 0).any() or (levels > TOP_LEVEL).any():
            raise ValueError(f"spending levels must be 0..{TOP_LEVEL}, got {levels.min()}..{levels.max()}")
        return attendance.astype(np.bool_), levels

    def _work(self, works: BoolArray, output: float) -> FloatArray:
        """Employ and pay those who work, and stock their goods. Return this month's salaries."""
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
        """Tax salaries, redistribute the revenue equally, and return it."""
        homes = self.households
        homes.tax_paid = np.minimum(homes.coin, self.parameters.tax.due(salaries))
        revenue = float(homes.tax_paid.sum())
        self.tax_credit = revenue / len(homes)
        homes.coin = homes.coin - homes.tax_paid + self.tax_credit
        return revenue

    def _trade(self, levels: IntArray) -> float:
        """Sell the good to households in random order, adjust wages and price to the imbalance, and return it."""
        homes, stock = self.households, self.goods
        order = self.rng.sample(range(len(homes)), len(homes))
        sales = sell_goods(order, homes.coin, levels, stock, self.price)
        self.goods = sales.goods_left
        self._settle(sales, levels)
        pressure = imbalance(sales.demand, stock)
        limits = self.parameters
        wage_moves = pressure * limits.max_wage_change * uniforms(len(homes), self.rng)
        homes.skill_before = homes.skill
        homes.skill = np.maximum(limits.wage_floor, homes.skill * (1 + wage_moves))
        self.mean_wages.append(float(homes.skill.mean()))
        price_move = pressure * limits.max_price_change * self.rng.random()
        self.price = max(limits.price_floor, self.price * (1 + price_move))
        self.prices.append(self.price)
        return pressure

    def _settle(self, sales: Sales, levels: IntArray) -> None:
        """Charge households for the sales."""
        homes = self.households
        homes.coin = homes.coin - sales.spending
        self.producer_account += float(sales.spending.sum())
        if self.rules == "original":
            homes.consumption = np.where(levels > 0, sales.spending, homes.consumption)
            homes.is_short = (homes.consumption <= 0) & (levels > 0)
        else:
            homes.consumption, homes.is_short = sales.spending, sales.is_short
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
            unemployment = self.years.months_without_work[-1] / (MONTHS_PER_YEAR * len(homes))
            self.rates.append(taylor_rate(self.years.price_inflation[-1], unemployment, self.parameters))

    def _offer_jobs(self) -> None:
        """Offer every unemployed household a job that fits its wage."""
        homes, hours = self.households, self.parameters.hours
        for index in np.flatnonzero(homes.job == UNEMPLOYED).tolist():
            salary, former = hours * float(homes.skill[index]), int(homes.offer[index])
            homes.offer[index] = draw_offer(salary, former, self.rules, self.rng)

    def monthly_table(self) -> pd.DataFrame:
        """Return one row per month: price, wages, goods, employment, tax, interest."""
        return pd.DataFrame([month._asdict() for month in self.months], columns=list(Month._fields))

    def yearly_table(self) -> pd.DataFrame:
        """Return one row per full year: unemployment, output, inflation, growth; NaN where undefined."""
        return self.years.table(len(self.households), self.rates)


class Sales(NamedTuple):
    """Result of one month on the goods market."""

    spending: FloatArray
    """Dollars each household paid, shape `(households,)`; 0 for those that did not shop."""

    is_short: BoolArray
    """Whether each household wanted more than was available, shape `(households,)`."""

    goods_left: float
    """Goods left in stock."""

    demand: float
    """Goods demanded, available or not."""


def sell_goods(order: list[int], coin: FloatArray, levels: IntArray, goods: float, price: float) -> Sales:
    """Serve households one after another until the goods run out.

    Args:
        order: Indices of the households, in serving order.
        coin: Dollars each household has, shape `(households,)`.
        levels: Spending levels, shape `(households,)`. Households at level 0 do not shop.
        goods: Goods in stock.
        price: Dollars per good.
    """
    spending = np.zeros_like(coin)
    is_short = np.zeros(coin.shape, dtype=np.bool_)
    wishes: list[float] = (coin * (levels * CONSUMPTION_STEP)).tolist()
    demand = 0.0
    for index in order:
        if levels[index] <= 0:
            continue
        wish = wishes[index]
        quantity = wish / (price + EPSILON)
        demand += quantity
        if goods >= quantity:
            goods -= quantity
        else:
            wish, goods, is_short[index] = goods * price, 0.0, True
        spending[index] = wish
    return Sales(spending, is_short, goods, demand)


def imbalance(demand: float, stock: float) -> float:
    """Compute excess demand relative to the larger of demand and stock, from -1 (glut) to 1 (out of stock)."""
    return (demand - stock) / (max(demand, stock) + EPSILON)


def taylor_rate(inflation: float, unemployment: float, parameters: MacroParameters) -> float:
    """Compute the yearly interest rate from last year's inflation and unemployment, never below zero.

    Source:
        Taylor (1993), as used in EconAgent: r = r_n + pi_t + a_pi (pi - pi_t) + a_u (u_n - u).
    """
    pull = parameters.inflation_gain * (inflation - parameters.inflation_target)
    push = parameters.unemployment_gain * (parameters.natural_unemployment - unemployment)
    return max(parameters.natural_rate + parameters.inflation_target + pull + push, 0.0)


def consumption_level(share: npt.ArrayLike, rules: Rules = "corrected") -> IntArray:
    """Round spending shares to the grid of 51 levels.

    Args:
        share: Shares in 0..1, any shape.
        rules: `corrected` takes the nearest level. `original` truncates, which loses a level at 0.58 and 0.94, since
            their quotients by 0.02 are slightly too small in binary.

    Returns:
        Levels 0..50, same shape.
    """
    quotient = np.asarray(share, dtype=np.float64) / CONSUMPTION_STEP
    if rules == "corrected":
        quotient = np.floor(quotient + 0.5)
    return np.clip(np.trunc(quotient), 0, TOP_LEVEL).astype(np.int64)


def level_share(level: int) -> float:
    """Return a share that both rule sets round to the given level."""
    return min(1.0, level * CONSUMPTION_STEP + 1e-9) if level > 0 else 0.0


def draw_households(
    count: int,
    rng: RNG,
    *,
    rules: Rules = "corrected",
    parameters: MacroParameters | None = None,
) -> Households:
    """Draw households without savings from the paper's distributions of skill and age.

    Args:
        count: Number of households.
        rng: Random generator.
        rules: `original` makes the first household the poorest and the last the richest. `corrected` assigns the skills
            at random, so ids are unrelated to wealth.
        parameters: Shape and cap of the skill distribution, and hours at work.
    """
    if count < 1:
        raise ConfigError(f"an economy needs at least one household, got {count}")
    parameters = parameters or MacroParameters()
    lomax = np.random.default_rng(rng.randint(0, 2**63 - 1))
    ladder = ladder_of(lomax.pareto(parameters.skill_shape, (SKILL_BATCHES, count)), parameters.skill_cap)
    skills: list[float] = ladder.tolist()
    if rules == "corrected":
        rng.shuffle(skills)
    ages = [draw_age(rng) for _ in range(count)]
    offers = [draw_offer(parameters.hours * skill, 0, rules, rng) for skill in skills]
    return Households(np.array(skills), np.array(ages), np.zeros(count), np.array(offers))


def draw_age(rng: RNG) -> int:
    """Draw an age from 18 to 59, from a distribution with the quantiles of the paper's sample (US, 2018)."""
    return round(float(np.interp(rng.random(), _AGE_SHARES, _AGES)))


def ladder_of(lomax: FloatArray, cap: float = 950.0) -> FloatArray:
    """Average sorted draws to a ladder of hourly wages, lowest first.

    Args:
        lomax: Lomax variates, shape `(batches, households)`.
        cap: Highest wage, in dollars.

    Returns:
        Dollars per hour by rank, shape `(households,)`.
    """
    wages = np.minimum(cap, (cap - 1.0) * lomax + 1.0)
    return np.sort(wages, axis=1).mean(axis=0)


def uniforms(count: int, rng: RNG) -> FloatArray:
    """Draw one number from [0, 1) per household, in order."""
    return np.array([rng.random() for _ in range(count)], dtype=np.float64)
