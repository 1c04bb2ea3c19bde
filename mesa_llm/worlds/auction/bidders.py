"""Who bids: what is set for a bidder beforehand, and the auctioneer's account of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mesa_llm.worlds.auction.lots import Lot

Desire = Literal["maximize_profit", "maximize_items"]
"""What a bidder is after."""

Planning = Literal["adaptive", "static", "none"]
"""`adaptive`: a plan before the auction and after every lot; `static`: only before; `none`: never."""


@dataclass(frozen=True, slots=True)
class Bidder:
    """One bidder, as it enters the auction; the order of bidders is the order of seats."""

    unique_id: int
    """Mesa `unique_id` of the agent."""

    name: str
    """What the others call it."""

    budget: int = 20_000
    """Dollars it may spend in the whole auction."""

    desire: Desire = "maximize_profit"
    """What it is after."""

    planning: Planning = "adaptive"
    """When it plans."""

    overestimate_percent: float = 10
    """By how much its estimates exceed the true values, in percent."""

    keeps_beliefs: bool = True
    """Whether it is asked after every lot what it believes; rule bidders are not."""

    corrects_beliefs: bool = True
    """Whether it is told of wrong beliefs and asked again."""

    def estimate(self, lot: Lot) -> int:
        """Give what it thinks a lot is worth, in whole dollars, rounded down."""
        return int(lot.true_value * (1 + self.overestimate_percent / 100))


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as it was made, for the lots still to come."""

    lots_before: int
    """Lots that had come up when it was made."""

    last_lot: str | None
    """The lot after which it was made; None for the first plan."""

    priorities: Mapping[str, Any]
    """Lot → 1 (dispensable), 2 (worth it if affordable) or 3 (top)."""

    is_change: bool
    """Whether a priority differs from the one the plan before gave the same lot."""


@dataclass(frozen=True, slots=True)
class Win:
    """A lot a bidder won."""

    lot: Lot
    """The lot."""

    price: int
    """What it paid."""


@dataclass(slots=True)
class BeliefCounts:
    """How often the beliefs of a bidder were checked, and how often they were wrong."""

    self_checks: int = 0
    """Checks of its own budget, profit and lots won."""

    self_errors: int = 0
    """How many of them failed."""

    other_checks: int = 0
    """Checks of others' profits and lots won."""

    other_errors: int = 0
    """How many of them failed."""


@dataclass(slots=True)
class Account:
    """What the auctioneer knows of a bidder. The auctioneer owns budget and profit; beliefs never change them."""

    bidder: Bidder
    """Who it is."""

    budget: int
    """Dollars left."""

    profit: int = 0
    """Sum of true value less price over the lots won; may be negative."""

    wins: list[Win] = field(default_factory=list[Win])
    """Lots won, in order."""

    is_withdrawn: bool = False
    """Whether it is out for the present lot."""

    bid_calls: int = 0
    """How often it was asked for a bid and answered: bids, withdrawals, and replies that were neither."""

    failed_bids: int = 0
    """Bids that broke a rule."""

    engagement: dict[str, int] = field(default_factory=dict[str, int])
    """Lot → valid bids made on it."""

    belief: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it last said it believes."""

    beliefs: BeliefCounts = field(default_factory=BeliefCounts)
    """How right its beliefs were."""

    plans: list[Plan] = field(default_factory=list[Plan])
    """Its plans, oldest first."""

    budgets: list[int] = field(default_factory=list[int])
    """Dollars left at the beginning and after every lot."""

    profits: list[int] = field(default_factory=list[int])
    """Profit at the beginning and after every lot."""

    @property
    def priorities(self) -> Mapping[str, Any]:
        """The plan in force; empty if there is none."""
        return self.plans[-1].priorities if self.plans else {}
