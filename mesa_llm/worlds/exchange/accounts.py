"""What a trader owns and owes, and how it is drawn at the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from types import MappingProxyType
from typing import Literal

from mesa_llm.errors import ConfigError
from mesa_llm.world import Draws

Stock = Literal["A", "B"]

STOCKS: tuple[Stock, ...] = ("A", "B")

FIRST_PRICES: Mapping[Stock, float] = MappingProxyType({"A": 30, "B": 40})
"""Money per share before the first trade."""

STYLES = ("Conservative", "Aggressive", "Balanced", "Growth-Oriented")
"""How a trader is told to invest; no rule depends on it."""

LEAST_PROPERTY = 1e5
MOST_PROPERTY = 5e6
"""Bounds of what a trader starts with, in money at the first prices."""

DUE_DAYS = tuple(range(22, 265, 22))
"""Days on which a debt that exists at the start may fall due."""


@dataclass(frozen=True, slots=True)
class Loan:
    """Money borrowed, to be paid back in one sum."""

    principal: float
    """Money borrowed."""

    loan_type: int
    """Index of its term and rate, from 0."""

    due_day: int
    """Day on which it is paid back, before trading."""


@dataclass(frozen=True, slots=True)
class Endowment:
    """What one trader starts with."""

    trader: int
    """Mesa `unique_id`."""

    style: str
    """How it is told to invest."""

    cash: float
    """Money; if negative, the trader has to sell or leave on the first morning."""

    shares: Mapping[Stock, float]
    """Shares by stock."""

    loans: tuple[Loan, ...] = ()
    """Debts it brings along."""

    property_at_start: float | None = None
    """Money at the first prices that bounds its borrowing; None: cash and shares, debts not deducted."""


@dataclass(slots=True)
class Account:
    """What one trader owns and owes now."""

    trader: int
    """Mesa `unique_id`."""

    style: str
    """How it is told to invest."""

    cash: float
    """Money; negative only between a payment and the forced sale that follows."""

    shares: dict[Stock, float]
    """Shares by stock; fractions arise only under the original rules."""

    loans: list[Loan]
    """Loans not yet paid back, oldest first."""

    property_at_start: float
    """Bounds its borrowing for ever."""

    net_at_start: float
    """What it had less what it owed at the start; profit counts from here."""

    is_marked: bool = field(default=False)
    """Whether a payment left it without cash, so that it must sell or leave."""

    has_left: bool = field(default=False)
    """Whether it was insolvent and is gone for good."""

    @classmethod
    def of(cls, start: Endowment, prices: Mapping[Stock, float]) -> Account:
        """Open the account of a trader.

        Raises:
            ConfigError: If a number is none, or it would start with less than no shares.
        """
        shares: dict[Stock, float] = {stock: start.shares[stock] for stock in STOCKS}
        if not (isfinite(start.cash) and all(0 <= held < inf for held in shares.values())):
            raise ConfigError(
                f"trader {start.trader} starts with {start.cash} cash, {shares}; give shares of 0 or more"
            )
        value = worth(shares, prices) + start.cash
        bound = value if start.property_at_start is None else start.property_at_start
        account = cls(start.trader, start.style, start.cash, shares, list(start.loans), bound, value)
        account.net_at_start -= account.debt
        return account

    @property
    def debt(self) -> float:
        """Add up the principals it owes."""
        # sum() rounds differently from Python 3.12 on; recorded runs were added up term by term.
        total = 0.0
        for loan in self.loans:
            total += loan.principal
        return total

    @property
    def loan_limit(self) -> float:
        """Give what it may still borrow: what it had at the start less what it owes; may be negative."""
        return self.property_at_start - self.debt

    def property_at(self, prices: Mapping[Stock, float]) -> float:
        """Value cash and shares at given prices; debts are not deducted."""
        return worth(self.shares, prices) + self.cash


def worth(shares: Mapping[Stock, float], prices: Mapping[Stock, float]) -> float:
    """Value shares at given prices."""
    return shares["A"] * prices["A"] + shares["B"] * prices["B"]


def draw_endowments(traders: Iterable[int], draws: Draws) -> list[Endowment]:
    """Draw what traders start with, in the original program's order of draws.

    Shares, cash and a debt are uniform. They are drawn anew until cash and shares are worth between 100,000
    and 5 million, and no less than the debt.

    Args:
        traders: Ids, in the order drawn.
        draws: Source of randomness.

    Source:
        Zhang et al. (2024), When AI Meets Finance (StockAgent), arXiv 2407.18957, and its program.
    """
    return [_draw_endowment(trader, draws) for trader in traders]


def _draw_endowment(trader: int, draws: Draws) -> Endowment:
    style = draws.choice(STYLES)
    while True:
        shares: dict[Stock, float] = {
            stock: int(MOST_PROPERTY / FIRST_PRICES[stock] * draws.random()) for stock in STOCKS
        }
        cash = MOST_PROPERTY * draws.random()
        principal = MOST_PROPERTY * draws.random()
        total = worth(shares, FIRST_PRICES) + cash
        if LEAST_PROPERTY <= total <= MOST_PROPERTY and principal <= total:
            break
    loan_type = draws.randint(0, 2)
    debt = Loan(principal, loan_type, draws.choice(DUE_DAYS))
    return Endowment(trader, style, cash, shares, (debt,))
