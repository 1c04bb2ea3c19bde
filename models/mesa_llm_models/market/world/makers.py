"""Automated market makers: counterparties for every trade on a question with two answers.

A maker is immutable: a trade returns the new maker and the amount traded. A quote is therefore the same call, ignoring
the new maker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from mesa_llm.errors import ConfigError

Outcome = Literal["yes", "no"]
"""One of the two answers that have shares."""

OUTCOMES: tuple[Outcome, Outcome] = ("yes", "no")

MakerName = Literal["fixed_product", "lmsr", "constant_product_legacy"]
"""Name of a maker, as a model parameter."""


class Maker(Protocol):
    """Sells shares for dollars and buys them back, at prices that depend on previous trades."""

    @property
    def subsidy(self) -> float:
        """Dollars the maker starts with, which limit its loss."""
        ...

    def price(self, outcome: Outcome) -> float:
        """Return the displayed price of a share, between 0 and 1."""
        ...

    def buy(self, outcome: Outcome, dollars: float) -> tuple[Self, float]:
        """Return the maker after dollars were spent on an outcome, and the number of shares bought."""
        ...

    def sell(self, outcome: Outcome, shares: float) -> tuple[Self, float]:
        """Return the maker after shares were sold to it, and the dollars it paid."""
        ...


def open_maker(name: MakerName, price_yes: float, liquidity: float) -> Maker:
    """Open a market maker.

    Args:
        name: Name of the maker.
        price_yes: YES price before the first trade.
        liquidity: Market depth: the larger, the less prices move. For `lmsr` it is the parameter b, in shares; for the
            other two, the dollars on each side at a price of one half.

    Raises:
        ConfigError: If the maker is unknown, or a number is out of range. The legacy maker accepts any number.
    """
    if name not in MAKERS:
        raise ConfigError(f"there is no market maker {name!r}; choose one of: {', '.join(MAKERS)}")
    return MAKERS[name].opened(price_yes, liquidity)


@dataclass(frozen=True, slots=True)
class FixedProduct:
    """A pool of both shares with a constant product, which trades complete sets.

    A dollar always buys one YES and one NO share, one of which will pay a dollar. The pool swaps the unwanted one. Its
    prices are those of a one-dollar claim, unlike those of `ConstantProductLegacy`.

    Source:
        The rule of the FixedProductMarketMaker contract of Gnosis.
    """

    yes: float
    """YES shares in the pool."""

    no: float
    """NO shares in the pool."""

    subsidy: float
    """Dollars paid for the sets in the initial pool: one for each share on the larger side."""

    @classmethod
    def opened(cls, price_yes: float, liquidity: float) -> Self:
        """Open a pool at a price; see `open_maker`."""
        check_opening(price_yes, liquidity)
        yes, no = 2 * liquidity * (1 - price_yes), 2 * liquidity * price_yes
        return cls(yes, no, max(yes, no))

    def price(self, outcome: Outcome) -> float:
        """Return the marginal price of a share: the other side's share of the pool."""
        return (self.no if outcome == "yes" else self.yes) / (self.yes + self.no)

    def buy(self, outcome: Outcome, dollars: float) -> tuple[Self, float]:
        """Mint sets for all dollars, and swap the other outcome's shares for this one's."""
        _check_size(dollars, "dollars")
        pool, other_pool = self._sides(outcome)
        pool_after = pool * (other_pool / (other_pool + dollars))
        return self._with(outcome, pool_after, other_pool + dollars), dollars + pool * (
            dollars / (other_pool + dollars)
        )

    def sell(self, outcome: Outcome, shares: float) -> tuple[Self, float]:
        """Swap shares for the other outcome's until all are paired, and redeem each pair for a dollar."""
        _check_size(shares, "shares")
        pool, other_pool = self._sides(outcome)
        # Both sides of the pool afterwards are roots of one quadratic: the larger is a sum, the smaller follows from
        # the product. A difference of nearly equal numbers could leave a side at zero, or below.
        lead = pool + shares - other_pool
        rooted = math.hypot(lead, 2 * math.sqrt(pool) * math.sqrt(other_pool))
        dollars = other_pool * (2 * shares / (pool + shares + other_pool + rooted))
        larger = (abs(lead) + rooted) / 2
        smaller = min(pool, other_pool) * (max(pool, other_pool) / larger)
        sides = (larger, smaller) if lead >= 0 else (smaller, larger)
        return self._with(outcome, *sides), dollars

    def _sides(self, outcome: Outcome) -> tuple[float, float]:
        return (self.yes, self.no) if outcome == "yes" else (self.no, self.yes)

    def _with(self, outcome: Outcome, pool: float, other_pool: float) -> Self:
        yes, no = (pool, other_pool) if outcome == "yes" else (other_pool, pool)
        return type(self)(yes, no, self.subsidy)


@dataclass(frozen=True, slots=True)
class LogarithmicScore:
    """The logarithmic market scoring rule: the shares sold so far have cost `b·ln(Σ exp(shares/b))`.

    Source:
        Hanson (2003), Combinatorial Information Market Design, Information Systems Frontiers 5(1).
    """

    lead: float
    """YES shares less NO shares sold, in units of the depth. The opening price counts as sold shares."""

    depth: float
    """The parameter b, in shares."""

    subsidy: float
    """Maximum loss in dollars: `b·ln(1/p)` for the lower opening price `p`, which is `b·ln 2` at one half."""

    @classmethod
    def opened(cls, price_yes: float, liquidity: float) -> Self:
        """Open at a price; see `open_maker`."""
        check_opening(price_yes, liquidity)
        lead = math.log(price_yes) - math.log1p(-price_yes)
        return cls(lead, liquidity, -liquidity * math.log(min(price_yes, 1 - price_yes)))

    def price(self, outcome: Outcome) -> float:
        """Return the marginal price of a share."""
        return math.exp(self._log_price(outcome))

    def buy(self, outcome: Outcome, dollars: float) -> tuple[Self, float]:
        """Solve the cost function for the shares: `b·ln(1 + (exp(dollars/b) − 1)/price)`."""
        _check_size(dollars, "dollars")
        scaled_dollars = dollars / self.depth
        if scaled_dollars == 0:  # also where dollars are too few for a float to represent their share of the depth
            return self, 0.0
        grown = scaled_dollars + math.log(-math.expm1(-scaled_dollars))
        shares = self.depth * _softplus(grown - self._log_price(outcome))
        return self._with(outcome, shares), shares

    def sell(self, outcome: Outcome, shares: float) -> tuple[Self, float]:
        """Compute the decrease of the cost function: `−b·ln(1 − price·(1 − exp(−shares/b)))`."""
        _check_size(shares, "shares")
        scaled_shares = shares / self.depth
        fall = self.price(outcome) * -math.expm1(-scaled_shares)
        other: Outcome = "no" if outcome == "yes" else "yes"
        if fall < 0.5:
            dollars = -self.depth * math.log1p(-fall)
        else:
            log_other = self._log_price(other)
            dollars = -self.depth * (log_other + _softplus(self._log_price(outcome) - scaled_shares - log_other))
        return self._with(outcome, -shares), dollars

    def _log_price(self, outcome: Outcome) -> float:
        return -_softplus(-self.lead if outcome == "yes" else self.lead)

    def _with(self, outcome: Outcome, shares: float) -> Self:
        change = shares / self.depth
        return type(self)(self.lead + (change if outcome == "yes" else -change), self.depth, self.subsidy)


@dataclass(frozen=True, slots=True)
class ConstantProductLegacy:
    """SimSwarm's maker, bit for bit, with its defects: dollars and shares are in one pool.

    At a displayed price p a YES share costs `p/(1−p)` at the margin, so p is not the price of a one-dollar claim.
    Nothing is checked: NaN, negative and infinite sizes pass through the formulas.

    Source:
        SimSwarm's specification, section 4.
    """

    yes: float
    """YES reserve."""

    no: float
    """NO reserve."""

    @classmethod
    def opened(cls, price_yes: float, liquidity: float) -> Self:
        """Open the reserves at any price; see `open_maker`."""
        return cls(liquidity * 2 * (1 - price_yes), liquidity * 2 * price_yes)

    @property
    def subsidy(self) -> float:
        """Zero: this maker pays nothing on resolution, and its loss is unbounded."""
        return 0.0

    def price(self, outcome: Outcome) -> float:
        """Return the other side's share of the reserves.

        Raises:
            ZeroDivisionError: If both are empty.
        """
        return (self.no if outcome == "yes" else self.yes) / (self.yes + self.no)

    def buy(self, outcome: Outcome, dollars: float) -> tuple[Self, float]:
        """Add dollars to the other reserve, and take from this one to keep the product constant.

        Raises:
            ZeroDivisionError: If the other reserve becomes zero.
        """
        product = self.yes * self.no
        if outcome == "yes":
            no = self.no + dollars
            yes = product / no
            return type(self)(yes, no), self.yes - yes
        yes = self.yes + dollars
        no = product / yes
        return type(self)(yes, no), self.no - no

    def sell(self, outcome: Outcome, shares: float) -> tuple[Self, float]:
        """Add shares to this reserve, and take from the other one to keep the product constant.

        Raises:
            ZeroDivisionError: If this reserve becomes zero.
        """
        product = self.yes * self.no
        if outcome == "yes":
            yes = self.yes + shares
            no = product / yes
            return type(self)(yes, no), self.no - no
        no = self.no + shares
        yes = product / no
        return type(self)(yes, no), self.yes - yes


MAKERS: dict[MakerName, type[FixedProduct | LogarithmicScore | ConstantProductLegacy]] = {
    "fixed_product": FixedProduct,
    "lmsr": LogarithmicScore,
    "constant_product_legacy": ConstantProductLegacy,
}


def check_opening(price_yes: float, liquidity: float) -> None:
    """Check the opening price and liquidity of a market that pays for right answers.

    Raises:
        ConfigError: If the price is not between 0 and 1, or the liquidity is not positive and finite.
    """
    if not 0 < price_yes < 1:
        raise ConfigError(f"the opening YES price must be between 0 and 1, exclusive, got {price_yes!r}")
    if not 0 < liquidity < math.inf:
        raise ConfigError(f"the liquidity of a market must be a positive finite number, got {liquidity!r}")


def _check_size(size: float, name: str) -> None:
    if not 0 <= size < math.inf:
        raise ValueError(f"the {name} of a trade must be a finite number of 0 or more, got {size!r}")


def _softplus(value: float) -> float:
    """Compute `ln(1 + exp(value))` without overflow."""
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))
