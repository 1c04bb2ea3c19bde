"""Rules that decide for households without a language model, as in the paper's comparison.

Each is a pure function of what households know, the same for one household and for all of them at once.

Sources: Lengnick (2013), J. Econ. Behav. Organ. 86; Delli Gatti et al. (2011), Macroeconomics from the
Bottom-up (the CATS model); both in the form Li et al. (2024) use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from mesa_llm.errors import ConfigError
from mesa_llm.world import Draws
from mesa_llm.worlds.macro.rules import (
    CONSUMPTION_STEP,
    EPSILON,
    TOP_LEVEL,
    BoolArray,
    FloatArray,
    IntArray,
    TaxSchedule,
    consumption_level,
)

WORK_EXPONENT = 0.1
"""How weakly the wish to work answers to a month's pay relative to savings."""

PRICE_EXPONENT = 0.1
"""How weakly Lengnick's households answer to the price relative to their money."""

BUFFER_MONTHS = 1.0
"""Savings that buffer-stock households aim at, in months of income."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What rule policies know of households at the start of a month."""

    salary: FloatArray
    """Dollars for a month at work, shape `(households,)`."""

    coin: FloatArray
    """Savings in dollars, same shape."""

    last_salary: FloatArray
    """Salary of the last month at work in dollars, same shape; 0 if there was none."""

    price: float
    """Dollars per good."""

    interest_rate: float
    """Yearly rate, as a fraction."""

    tax: TaxSchedule
    """The tax in force."""

    tax_credit: float
    """Dollars that everyone got back last month."""

    def __len__(self) -> int:
        """Count the households."""
        return len(self.salary)


class Plans(NamedTuple):
    """What households do this month."""

    works: BoolArray
    """Who works, shape `(households,)`."""

    levels: IntArray
    """Spending levels 0..50, same shape."""


class Policy(Protocol):
    """Plans a month for households."""

    def decide(self, standing: Standing, draws: Draws) -> Plans:
        """Decide who works and how much each spends."""
        ...


def uniforms(count: int, draws: Draws) -> FloatArray:
    """Draw one number from [0, 1) for each household, in their order."""
    return np.array([draws.random() for _ in range(count)], dtype=np.float64)


def work_propensity(standing: Standing) -> FloatArray:
    """Give the chance to work: pay over savings with interest, to the power 0.1; above 1 means surely."""
    wealth = standing.coin * (1 + standing.interest_rate) + EPSILON
    return (standing.salary / wealth) ** WORK_EXPONENT


def lengnick_share(standing: Standing, works: BoolArray) -> FloatArray:
    """Give the share spent under Lengnick's rule: the price over all money, to the power 0.1."""
    income = works * standing.salary
    return (standing.price / (EPSILON + standing.coin + income)) ** PRICE_EXPONENT


def buffer_stock_share(standing: Standing, works: BoolArray) -> FloatArray:
    """Give the share spent under the CATS rule: hold a buffer of a month's income, spend what lies above it.

    Before a first month at work the terms are of the order of 1e8 and the share ends at either bound.
    """
    income = works * standing.salary
    target = BUFFER_MONTHS / (1 + standing.interest_rate)
    growth = income / (standing.last_salary + EPSILON) - 1
    excess = standing.coin / (standing.last_salary + EPSILON) - target
    spending = 1 + (excess - target * growth) / (1 + growth + EPSILON)
    return spending * income / (standing.coin + income + EPSILON)


def floor_level(share: FloatArray) -> IntArray:
    """Put a rule's share on the spending grid, rounding down."""
    return np.clip(np.floor(share / CONSUMPTION_STEP), 0, TOP_LEVEL).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Lengnick:
    """LEN: spends a share that falls slowly with wealth."""

    def decide(self, standing: Standing, draws: Draws) -> Plans:
        """Decide who works and how much each spends."""
        works = uniforms(len(standing), draws) < work_propensity(standing)
        return Plans(works, floor_level(lengnick_share(standing, works)))


@dataclass(frozen=True, slots=True)
class BufferStock:
    """CATS: keeps a buffer of one month's income."""

    def decide(self, standing: Standing, draws: Draws) -> Plans:
        """Decide who works and how much each spends."""
        works = uniforms(len(standing), draws) < work_propensity(standing)
        return Plans(works, floor_level(buffer_stock_share(standing, works)))


@dataclass(frozen=True, slots=True)
class Composite:
    """Some households follow Lengnick's rule, the others the buffer-stock rule, for good."""

    saves_buffer: tuple[bool, ...]
    """Which households follow the buffer-stock rule, in their order."""

    @classmethod
    def drawn(cls, households: int, draws: Draws) -> Composite:
        """Assign each household to one of the rules by a fair coin."""
        return cls(tuple(draws.random() < 0.5 for _ in range(households)))

    def decide(self, standing: Standing, draws: Draws) -> Plans:
        """Decide who works and how much each spends."""
        if len(standing) != len(self.saves_buffer):
            raise ConfigError(f"assigned rules to {len(self.saves_buffer)} households, asked for {len(standing)}")
        works = uniforms(len(standing), draws) < work_propensity(standing)
        lengnick = floor_level(lengnick_share(standing, works))
        buffered = floor_level(buffer_stock_share(standing, works))
        return Plans(works, np.where(np.array(self.saves_buffer), buffered, lengnick))


@dataclass(frozen=True, slots=True)
class AtRandom:
    """Works with a fixed chance and spends a level drawn evenly: the naive baseline."""

    work: float = 0.9
    """Chance to work in a month."""

    def decide(self, standing: Standing, draws: Draws) -> Plans:
        """Decide who works and how much each spends."""
        works = uniforms(len(standing), draws) < self.work
        levels = np.array([draws.randint(0, TOP_LEVEL) for _ in range(len(standing))], dtype=np.int64)
        return Plans(works, levels)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Plans the same every month."""

    work: float = 1.0
    """Chance to work in a month."""

    consumption: float = 0.5
    """Share of all money that is spent."""

    def decide(self, standing: Standing, draws: Draws) -> Plans:
        """Decide who works and how much each spends."""
        works = uniforms(len(standing), draws) < self.work
        level = int(consumption_level(self.consumption))
        return Plans(works, np.full(len(standing), level, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class HandToMouth:
    """Always works, and spends what it earns after tax, with last month's tax credit."""

    def decide(self, standing: Standing, draws: Draws) -> Plans:
        """Decide who works and how much each spends."""
        earned = standing.salary - standing.tax.due(standing.salary) + standing.tax_credit
        share = earned / (standing.coin + earned + EPSILON)
        return Plans(np.ones(len(standing), dtype=np.bool_), consumption_level(share))
