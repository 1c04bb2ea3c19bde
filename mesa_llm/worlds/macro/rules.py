"""The rules of EconAgent's economy as pure functions: tax, spending, interest, skills, the goods market.

Source: Li et al. (2024), EconAgent, ACL (arXiv 2310.10436); its environment builds on the AI Economist (Zheng
et al. 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Rules = Literal["original", "corrected"]
"""Which rules hold: as published, or with the defects mended that `mesa_llm.worlds.macro` lists."""

EPSILON = 1e-8
"""Keeps the original's divisions away from zero."""

MONTHS_PER_YEAR = 12

CONSUMPTION_STEP = 0.02
"""Width of one spending level: a share of a household's money."""

TOP_LEVEL = 50
"""Highest spending level: everything."""


@dataclass(frozen=True, slots=True)
class TaxSchedule:
    """A progressive income tax: each slice of a monthly income is taxed at its own rate."""

    floors: tuple[float, ...]
    """Monthly income in dollars at which each slice begins, rising from 0."""

    rates: tuple[float, ...]
    """Tax rate of each slice, as a fraction."""

    def __post_init__(self) -> None:
        """Check that the slices rise from zero and that there is a rate for each."""
        if not self.floors or self.floors[0] != 0 or list(self.floors) != sorted(set(self.floors)):
            raise ValueError(f"tax floors must rise from 0, got {self.floors}")
        if len(self.rates) != len(self.floors) or not all(0 <= rate <= 1 for rate in self.rates):
            raise ValueError(f"a tax needs one rate in 0..1 for each of {len(self.floors)} floors, got {self.rates}")

    def due(self, income: npt.ArrayLike) -> FloatArray:
        """Sum the tax over the slices that an income fills.

        Args:
            income: Dollars a month, any shape.

        Returns:
            Dollars of tax, same shape.
        """
        floors = np.asarray(self.floors)
        widths = np.diff(floors, append=np.inf)
        above = np.asarray(income, dtype=np.float64)[..., None] - floors
        return (np.clip(above, 0.0, widths) * np.asarray(self.rates)).sum(axis=-1)

    def marginal(self, income: npt.ArrayLike) -> FloatArray:
        """Give the rate of the slice an income ends in; a floor belongs to the slice that it begins."""
        places = np.searchsorted(np.asarray(self.floors), np.asarray(income, dtype=np.float64), side="right") - 1
        return np.asarray(self.rates)[np.maximum(places, 0)]


_YEARLY_FLOORS = (0, 9_700, 39_475, 84_200, 160_725, 204_100, 510_300)

US_TAX = TaxSchedule(
    floors=tuple(floor / MONTHS_PER_YEAR for floor in _YEARLY_FLOORS),
    rates=(0.10, 0.12, 0.22, 0.24, 0.32, 0.35, 0.37),
)
"""US federal income tax of a single filer, tax year 2019, by the month."""

NO_TAX = TaxSchedule(floors=(0.0,), rates=(0.0,))
"""No tax, and so nothing to hand out."""


def flat_tax(rate: float) -> TaxSchedule:
    """Tax every dollar at one rate."""
    return TaxSchedule(floors=(0.0,), rates=(rate,))


@dataclass(frozen=True, slots=True)
class MacroParameters:
    """Parameters of the economy, with the values of the paper."""

    hours: float = 168.0
    """Hours of a month at work."""

    productivity: float = 1.0
    """Goods made in an hour of work."""

    max_wage_change: float = 0.05
    """Largest relative change of a wage in a month."""

    max_price_change: float = 0.10
    """Largest relative change of the price in a month."""

    first_rate: float = 0.03
    """Yearly interest rate before the bank first sets one."""

    natural_rate: float = 0.01
    """Yearly real interest rate at rest."""

    inflation_target: float = 0.02
    """Yearly inflation the bank aims at."""

    natural_unemployment: float = 0.04
    """Unemployment rate at rest."""

    inflation_gain: float = 0.5
    """How strongly the rate answers to inflation off its target."""

    unemployment_gain: float = 0.5
    """How strongly the rate answers to unemployment off its natural rate."""

    price_floor: float = 1.0
    """Lowest price of the good, in dollars."""

    wage_floor: float = 1.0
    """Lowest hourly wage, in dollars."""

    skill_cap: float = 950.0
    """Highest hourly wage at the start, in dollars."""

    skill_shape: float = 8.0
    """Shape of the Lomax law that skills are drawn from."""

    first_year: int = 2001
    """Calendar year of the first month."""

    tax: TaxSchedule = US_TAX
    """Tax on monthly income."""


def consumption_level(share: npt.ArrayLike, *, rounding: Literal["original", "fixed"] = "fixed") -> IntArray:
    """Put shares of money on the grid of 51 spending levels.

    Args:
        share: Shares in 0..1, any shape.
        rounding: `fixed` takes the nearest level. `original` cuts off, which loses a level at 0.58 and 0.94,
            as their quotient by 0.02 falls short in binary.

    Returns:
        Levels 0..50, same shape.
    """
    quotient = np.asarray(share, dtype=np.float64) / CONSUMPTION_STEP
    if rounding == "fixed":
        quotient = np.floor(quotient + 0.5)
    return np.clip(np.trunc(quotient), 0, TOP_LEVEL).astype(np.int64)


def level_share(level: int) -> float:
    """Give a share that either rounding puts on a level, for rules that think in levels."""
    return min(1.0, level * CONSUMPTION_STEP + 1e-9) if level > 0 else 0.0


def taylor_rate(inflation: float, unemployment: float, parameters: MacroParameters) -> float:
    """Set the yearly interest rate from last year's inflation and unemployment, never below zero.

    Source:
        Taylor (1993), as used in EconAgent: r = r_n + pi_t + a_pi (pi - pi_t) + a_u (u_n - u).
    """
    pull = parameters.inflation_gain * (inflation - parameters.inflation_target)
    push = parameters.unemployment_gain * (parameters.natural_unemployment - unemployment)
    return max(parameters.natural_rate + parameters.inflation_target + pull + push, 0.0)


def ladder_of(lomax: FloatArray, cap: float = 950.0) -> FloatArray:
    """Average draws into a ladder of hourly wages, lowest first.

    Args:
        lomax: Lomax variates, shape `(batches, households)`.
        cap: Highest wage, in dollars.

    Returns:
        Dollars an hour by rank, shape `(households,)`.
    """
    wages = np.minimum(cap, (cap - 1.0) * lomax + 1.0)
    return np.sort(wages, axis=1).mean(axis=0)


def ladder_in_closed_form(households: int, shape: float = 8.0, cap: float = 950.0) -> FloatArray:
    """Give the expected ladder without drawing: the means of Lomax order statistics, cut at the cap.

    The cap binds for 0.4 % of single draws, so the richest ranks lie above those of a drawn ladder.
    """
    ranks = np.arange(1, households + 1)
    rest = households - ranks + 1
    logs = gammaln(households + 1) + gammaln(rest - 1 / shape) - gammaln(rest) - gammaln(households + 1 - 1 / shape)
    return np.minimum(cap, (cap - 1.0) * np.expm1(logs) + 1.0)


class Sales(NamedTuple):
    """What came of one month on the goods market."""

    spent: FloatArray
    """Dollars each household paid, shape `(households,)`; 0 for those who did not try."""

    is_short: BoolArray
    """Who wanted more than was left, shape `(households,)`."""

    goods_left: float
    """Goods still in stock."""

    demand: float
    """Goods asked for, also those that were not there."""


def sell_goods(order: list[int], coin: FloatArray, levels: IntArray, goods: float, price: float) -> Sales:
    """Serve households one after the other until the goods run out.

    Args:
        order: Places of the households, in the order they are served.
        coin: Dollars each household has, shape `(households,)`.
        levels: Spending levels, shape `(households,)`; a household at level 0 does not come.
        goods: Goods in stock.
        price: Dollars per good.
    """
    spent = np.zeros_like(coin)
    is_short = np.zeros(coin.shape, dtype=np.bool_)
    wishes: list[float] = (coin * (levels * CONSUMPTION_STEP)).tolist()
    demand = 0.0
    for place in order:
        if levels[place] <= 0:
            continue
        wish = wishes[place]
        quantity = wish / (price + EPSILON)
        demand += quantity
        if goods >= quantity:
            goods -= quantity
        else:
            wish, goods, is_short[place] = goods * price, 0.0, True
        spent[place] = wish
    return Sales(spent, is_short, goods, demand)


def imbalance(demand: float, stock: float) -> float:
    """Measure excess demand against the larger of demand and stock: -1 (glut) to 1 (nothing to sell)."""
    return (demand - stock) / (max(demand, stock) + EPSILON)
