"""How a fill moves cash and shares: three rule sets, two of which repeat the original's faults."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.worlds.exchange.accounts import Account, Stock

Settlement = Literal["strict", "corrected", "original"]
"""How a fill moves cash and shares.

`strict`: both sides are checked before either moves. `corrected`: each side is settled alone, if it can be.
`original`: like `corrected`, but as many shares change hands as the price says, not as the quantity says.
"""


class Fill(NamedTuple):
    """Two orders that met."""

    buyer: int
    """Who buys."""

    seller: int
    """Who sells."""

    quantity: float
    """Shares; 0 where an order met a used-up one, under the original and the corrected settlement."""

    price: float
    """Money per share."""


@dataclass(frozen=True, slots=True)
class Fees:
    """What each side of a fill pays; described in the paper, absent from its program."""

    per_share: float = 0.005
    """Money per share."""

    least: float = 1.0
    """Least money per fill."""

    most: float = 5.95
    """Most money per fill."""

    def of(self, quantity: float) -> float:
        """Give the fee of one side of a fill."""
        return min(max(self.per_share * quantity, self.least), self.most)


@dataclass(frozen=True, slots=True)
class TradingRules:
    """By which rules orders meet and fills are settled."""

    settlement: Settlement = "strict"
    """How fills are settled."""

    cross: bool | None = None
    """Whether a bid above an offer trades, at the resting price; else only equal prices do. None: as soon as fills are
    settled strictly."""

    fees: Fees | None = None
    """What a fill costs each side."""

    tick: float = 0.01
    """Step of prices, in money, where fills are settled strictly; elsewhere any price is taken."""

    def __post_init__(self) -> None:
        """Check that the rules go together.

        Raises:
            ConfigError: If crossing or fees are asked for with a settlement that repeats the original.
        """
        if self.settlement not in get_args(Settlement):
            raise ConfigError(f"settlement {self.settlement!r} is unknown; choose one of {get_args(Settlement)}")
        if self.cross is None:
            object.__setattr__(self, "cross", self.settlement == "strict")
        if not 0 < self.tick < math.inf:
            raise ConfigError(f"tick is the step of prices, a positive number; got {self.tick!r}")
        if self.settlement != "strict" and (self.cross or self.fees):
            raise ConfigError(f"cross and fees need settlement 'strict', not {self.settlement!r}")

    def fee_of(self, quantity: float) -> float:
        """Give the fee of one side of an order that trades as a whole."""
        return self.fees.of(quantity) if self.fees else 0.0

    def price_of(self, price: float) -> float:
        """Return a price as it stands in the book: a whole number of ticks, if fills are settled strictly.

        Raises:
            ToolError: If it lies between two ticks, or below the first.
        """
        if self.settlement != "strict":
            return price
        ticks = round(price / self.tick)
        if ticks < 1 or not math.isclose(ticks * self.tick, price, rel_tol=1e-9):
            raise ToolError(f"prices go in steps of {self.tick:g}, from {self.tick:g} up; got {price!r}.")
        return round(ticks * self.tick, 9)

    def refuse_flags(self, *amounts: object) -> None:
        """Refuse true and false as amounts; the original takes them for 1 and 0.

        Raises:
            ToolError: If there is one, and fills are settled strictly.
        """
        if self.settlement == "strict" and any(isinstance(amount, bool) for amount in amounts):
            raise ToolError("true and false are no amounts; give numbers.")

    @classmethod
    def of(cls, rules: str, trading: TradingRules | None = None) -> TradingRules:
        """Give the trading rules that a rule set stands for, or check those given against it.

        Raises:
            ConfigError: If the rule set is unknown, or the given rules belong to another one.
        """
        if rules not in ("corrected", "original"):
            raise ConfigError(f"rules {rules!r} are unknown; choose 'corrected' or 'original'")
        trading = trading or cls("original" if rules == "original" else "strict")
        if (rules == "original") != (trading.settlement == "original"):
            raise ConfigError(f"settlement {trading.settlement!r} contradicts rules={rules!r}; change one of them")
        return trading


def delivered(fill: Fill, settlement: Settlement) -> float:
    """Give the shares that change hands in a fill.

    The original hands quantity and price to its accounts in the wrong order: cash moves by their product,
    shares by the price. Its published runs contain this.
    """
    return fill.price if settlement == "original" else fill.quantity


def settle_buyer(buyer: Account, stock: Stock, fill: Fill, settlement: Settlement) -> bool:
    """Settle the buyer's side alone, if its cash is enough; tell whether it was."""
    cost = fill.quantity * fill.price
    if buyer.cash < cost:
        return False
    buyer.cash -= cost
    buyer.shares[stock] += delivered(fill, settlement)
    return True


def settle_seller(seller: Account, stock: Stock, fill: Fill, settlement: Settlement) -> bool:
    """Settle the seller's side alone, if its shares are enough; tell whether they were."""
    shares = delivered(fill, settlement)
    if seller.shares[stock] < shares:
        return False
    seller.shares[stock] -= shares
    seller.cash += fill.quantity * fill.price
    return True


def can_pay(buyer: Account, fill: Fill, fee: float) -> bool:
    """Tell whether a buyer's cash covers a fill and its fee."""
    return buyer.cash >= fill.quantity * fill.price + fee


def can_deliver(seller: Account, stock: Stock, fill: Fill, fee: float) -> bool:
    """Tell whether a seller has the shares of a fill, and the fee out of what it earns."""
    earned = fill.quantity * fill.price - fee
    return seller.shares[stock] >= fill.quantity and seller.cash + earned >= 0


def settle_both(buyer: Account, seller: Account, stock: Stock, fill: Fill, fee: float) -> None:
    """Move cash and shares between two different traders who can pay and deliver; each pays the fee."""
    cost = fill.quantity * fill.price
    buyer.cash -= cost + fee
    buyer.shares[stock] += fill.quantity
    seller.shares[stock] -= fill.quantity
    seller.cash += cost - fee
