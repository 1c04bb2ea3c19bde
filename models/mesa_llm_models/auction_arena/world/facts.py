"""Facts known to a bidder, as values. True values of lots appear only after they are sold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mesa_llm_models.auction_arena.world.beliefs import form_fault
from mesa_llm_models.auction_arena.world.lots import Lot
from mesa_llm_models.auction_arena.world.rules import Auctioneer, Stage
from mesa_llm_models.auction_arena.world.state import Bidder, BidderAccount, Desire, RoundView, Sale


@dataclass(frozen=True, slots=True)
class LotView:
    """A lot as a bidder sees it."""

    name: str
    """Its name."""

    start: int
    """Starting price, in dollars; lowered after rounds without bids."""

    estimate: int
    """The bidder's estimate of its value, in dollars."""


@dataclass(frozen=True, slots=True)
class SaleView:
    """The sale of a lot, as everyone sees it."""

    lot: str
    """Its name."""

    winner: str | None
    """Name of the winner; None if there were no bids."""

    price: int | None
    """Dollars paid."""

    true_value: int | None
    """Its value in dollars; not revealed without bids."""


@dataclass(frozen=True, slots=True)
class RivalView:
    """Another bidder, as known from the sales so far."""

    name: str
    """Its name."""

    spent: int
    """Dollars paid."""

    profit: int
    """Its profit, in dollars."""

    lots: tuple[str, ...]
    """Lots it won, in order."""


@dataclass(frozen=True, slots=True)
class AuctionFacts:
    """Everything a bidder knows in one stage."""

    stage: Stage
    """Current stage."""

    name: str
    """The bidder's own name."""

    desire: Desire
    """Its desire."""

    budget: int
    """Dollars left."""

    profit: int
    """Its profit so far, in dollars."""

    wins: tuple[str, ...]
    """Lots it won, in order."""

    lot: LotView
    """The current lot, or the last one."""

    remaining: tuple[LotView, ...]
    """Lots still to come, in order."""

    round_number: int
    """Round of bidding on this lot, from 0."""

    top: int
    """Highest bid at the end of the previous round, in dollars; -1 if there is none."""

    leader: str | None
    """Name of its bidder."""

    raise_exact: float
    """Minimum raise before rounding down, in dollars."""

    min_bid: int
    """Smallest valid bid now, in dollars."""

    bids_made: int
    """Number of valid bids by this bidder on this lot."""

    rounds: tuple[RoundView, ...]
    """Bids on this lot, round by round."""

    sales: tuple[SaleView, ...]
    """Sales so far."""

    rivals: tuple[RivalView, ...]
    """The other bidders, by seat; if there are many, only those with the most lots won."""

    more_rivals: int
    """Number of further bidders."""

    priorities: Mapping[str, Any]
    """Current plan; empty if there is none."""

    keeps_beliefs: bool
    """Whether it states its beliefs. If not, the prompt shows its budget."""

    belief: Mapping[str, Any]
    """Its last stated beliefs."""

    refusals: tuple[str, ...] = ()
    """Errors of its last answer in this stage."""

    @property
    def is_belief_lost(self) -> bool:
        """Whether its last stated beliefs cannot be read."""
        return bool(form_fault(self.belief))


def bidder_facts(auctioneer: Auctioneer, agent_id: int, refusals: tuple[str, ...] = ()) -> AuctionFacts:
    """Collect everything a bidder knows now."""
    me, bidding = auctioneer.accounts[agent_id], auctioneer.bidding
    bidder = me.bidder
    leader = bidding.standing.leader
    rivals = tuple(_rival_view(account) for account in auctioneer.watched_by(agent_id) if account is not me)
    return AuctionFacts(
        stage=auctioneer.stage,
        name=bidder.name,
        desire=bidder.desire,
        budget=me.budget,
        profit=me.profit,
        wins=tuple(win.lot.name for win in me.wins),
        lot=_lot_view(bidder, bidding.lot, bidding.start),
        remaining=tuple(_lot_view(bidder, lot, lot.start) for lot in auctioneer.remaining),
        round_number=len(bidding.rounds),
        top=bidding.before,
        leader=None if leader is None else auctioneer.accounts[leader].bidder.name,
        raise_exact=max(bidding.start * auctioneer.rules.raise_share, float(auctioneer.minimum_raise)),
        min_bid=auctioneer.min_bid,
        bids_made=me.engagement.get(bidding.lot.name, 0),
        rounds=tuple(bidding.round_views),
        sales=tuple(_sale_view(auctioneer, sale) for sale in auctioneer.sales),
        rivals=rivals,
        more_rivals=len(auctioneer.accounts) - 1 - len(rivals),
        priorities=me.priorities,
        keeps_beliefs=bidder.keeps_beliefs,
        belief=me.belief,
        refusals=refusals,
    )


def _lot_view(bidder: Bidder, lot: Lot, start: int) -> LotView:
    return LotView(lot.name, start, bidder.estimate(lot))


def _sale_view(auctioneer: Auctioneer, sale: Sale) -> SaleView:
    if sale.winner is None:
        return SaleView(sale.lot.name, None, None, None)
    return SaleView(sale.lot.name, auctioneer.accounts[sale.winner].bidder.name, sale.price, sale.lot.true_value)


def _rival_view(account: BidderAccount) -> RivalView:
    spent = account.bidder.budget - account.budget
    return RivalView(account.bidder.name, spent, account.profit, tuple(win.lot.name for win in account.wins))
