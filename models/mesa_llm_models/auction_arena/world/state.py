"""State of an auction: bidders, the bidding on each lot, accounts, plans and sales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mesa_llm_models.auction_arena.world.lots import Lot

Desire = Literal["maximize_profit", "maximize_items"]
"""Desire of a bidder."""

Planning = Literal["adaptive", "static", "none"]
"""`adaptive`: a plan before the auction and after every lot; `static`: only before; `none`: never."""

MAX_WATCHED = 30
"""Maximum number of other bidders whose profits and lots a bidder sees, and states beliefs about."""


@dataclass(frozen=True, slots=True)
class Bidder:
    """One bidder at the start of the auction. The order of bidders is the order of seats."""

    unique_id: int
    """Mesa `unique_id` of the agent."""

    name: str
    """Name known to others."""

    budget: int = 20_000
    """Dollars for the whole auction."""

    desire: Desire = "maximize_profit"
    """Its desire."""

    planning: Planning = "adaptive"
    """When it plans."""

    overestimate_percent: float = 10
    """Percentage by which its estimates exceed the true values."""

    keeps_beliefs: bool = True
    """Whether it is asked for its beliefs after every lot; rule-based bidders are not."""

    corrects_beliefs: bool = True
    """Whether wrong beliefs are returned to it for correction."""

    def estimate(self, lot: Lot) -> int:
        """Return its estimate of a lot's value, in whole dollars, rounded down."""
        return int(lot.true_value * (1 + self.overestimate_percent / 100))


@dataclass(frozen=True, slots=True)
class BiddingPlan:
    """A plan for the remaining lots, as submitted."""

    lots_before: int
    """Number of lots before it."""

    last_lot: str | None
    """The lot after which it was submitted; None for the first plan."""

    priorities: Mapping[str, Any]
    """Lot → 1 (dispensable), 2 (worth it if affordable) or 3 (top)."""

    is_change: bool
    """Whether a priority differs from the previous plan's for the same lot."""


@dataclass(frozen=True, slots=True)
class Win:
    """A lot a bidder won."""

    lot: Lot
    """The lot."""

    price: int
    """Price paid."""


@dataclass(slots=True)
class BeliefCounts:
    """Numbers of checks and errors of a bidder's beliefs."""

    self_checks: int = 0
    """Checks of its own budget, profit and lots won."""

    self_errors: int = 0
    """Number of them that failed."""

    other_checks: int = 0
    """Checks of others' profits and lots won."""

    other_errors: int = 0
    """Number of them that failed."""


@dataclass(slots=True)
class BidderAccount:
    """The auctioneer's account of a bidder, with its budget and profit. Beliefs never change them."""

    bidder: Bidder
    """The bidder."""

    budget: int
    """Dollars left."""

    profit: int = 0
    """Sum of true value less price over the lots won; may be negative."""

    wins: list[Win] = field(default_factory=list[Win])
    """Lots won, in order."""

    is_withdrawn: bool = False
    """Whether it is out for the current lot."""

    bid_calls: int = 0
    """Answers to requests for a bid: bids, withdrawals, and replies that were neither."""

    failed_bids: int = 0
    """Bids that broke a rule."""

    engagement: dict[str, int] = field(default_factory=dict[str, int])
    """Lot → number of valid bids on it."""

    belief: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its last stated beliefs."""

    beliefs: BeliefCounts = field(default_factory=BeliefCounts)
    """Checks of its beliefs."""

    plans: list[BiddingPlan] = field(default_factory=list[BiddingPlan])
    """Its plans, oldest first."""

    budgets: list[int] = field(default_factory=list[int])
    """Dollars left at the start and after every lot."""

    profits: list[int] = field(default_factory=list[int])
    """Profit at the start and after every lot."""

    @property
    def priorities(self) -> Mapping[str, Any]:
        """Current plan; empty if there is none."""
        return self.plans[-1].priorities if self.plans else {}


Fault = Literal["over_budget", "below_start", "small_raise", "unclear"]
"""Reason why a bid was invalid; `unclear` if the reply was not a bid at all."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer to a request for a bid."""

    amount: int | None
    """Dollars bid; None for a withdrawal or an unclear reply."""

    fault: Fault | None = None
    """Reason why it was invalid; None if it was valid."""


@dataclass(frozen=True, slots=True)
class BidStanding:
    """The standing after a bid."""

    top: int
    """Highest bid on this lot so far, in dollars; -1 if there is none."""

    leader: int | None
    """Mesa `unique_id` of its bidder."""


@dataclass(frozen=True, slots=True)
class BidRecord:
    """The bid of one bidder in one round."""

    bidder: int
    """Mesa `unique_id` of the bidder."""

    amount: int | None
    """The valid bid, in dollars; None for a withdrawal."""

    attempts: tuple[Attempt, ...]
    """All its answers. The last one is valid, unless it ran out of retries or did not answer."""

    standing: BidStanding
    """The standing after it was processed."""


@dataclass(frozen=True, slots=True)
class RoundView:
    """A round, as announced to everyone."""

    bids: tuple[tuple[str, int | None], ...]
    """Name and bid, by seat; None for a withdrawal. If there are many, only the highest bids."""

    more: int
    """Number of other bids and withdrawals, none of them higher."""


NOTHING_YET = BidStanding(-1, None)


@dataclass(slots=True)
class Bidding:
    """A lot during its auction."""

    lot: Lot
    """The lot."""

    index: int
    """Its position in the auction, from 0."""

    start: int
    """Current starting price: the lot's own, until it is lowered after rounds without bids."""

    standing: BidStanding = NOTHING_YET
    """Current standing."""

    before: int = -1
    """Highest bid at the end of the previous round, on which all bids of this round are based; -1 if there is none."""

    rounds: list[tuple[BidRecord, ...]] = field(default_factory=list[tuple[BidRecord, ...]])
    """Rounds completed."""

    round_views: list[RoundView] = field(default_factory=list[RoundView])
    """The rounds as announced."""


@dataclass(frozen=True, slots=True)
class Sale:
    """The sale of a lot."""

    lot: Lot
    """The lot."""

    winner: int | None
    """Mesa `unique_id` of the winner; None without bids."""

    price: int | None
    """Dollars paid; None without bids."""

    bidding: Bidding
    """The bidding on it."""
