"""Measures of auctions: ratings, failed bids, beliefs, engagement, priorities and bid increments."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import correlation
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mesa_llm.worlds.auction.state import BidderAccount
from mesa_llm.worlds.auction.world import Auction

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)  # a docstring of its, which Python compiles at the first import
    import trueskill

MU = 25.0
"""Initial rating of a bidder."""

SIGMA = MU / 3
"""Standard deviation of the initial rating."""

BETA = SIGMA / 2
"""Standard deviation of a performance around the skill."""

TAU = SIGMA / 100
"""Increase of the standard deviation between games."""

DRAW_PROBABILITY = 0.1
"""Probability of a draw between equals."""

INCREMENT_EDGES = (0.0, 10.0, 20.0, 30.0, 40.0, math.inf)
"""Edges of the five bins of bid increments, in percent."""


class SkillRating(NamedTuple):
    """A TrueSkill rating."""

    mu: float
    """Mean of the skill."""

    sigma: float
    """Standard deviation of the skill."""


@dataclass(frozen=True, slots=True)
class BidderScore:
    """Scores of one bidder in one auction."""

    name: str
    """Its name."""

    profit: int
    """Dollars of profit."""

    n_wins: int
    """Lots won."""

    money_left: int
    """Dollars left."""

    engagement: int
    """Valid bids."""

    failed_bid_rate: float
    """Bids that broke a rule, as a share of the answers to being asked for a bid; NaN if it was never asked."""

    self_error_rate: float
    """Wrong beliefs of itself as a share of those checked, revisions included; NaN if none was."""

    other_error_rate: float
    """Wrong beliefs of others as a share of those checked, revisions included; NaN if none was."""


@dataclass(frozen=True, slots=True)
class SaleScore:
    """Scores of the sales of one auction."""

    n_unsold: int
    """Lots that nobody bid on."""

    price_ratio: float
    """Mean of price over the lot's starting price, over the lots sold; NaN if none was."""

    curse_rate: float
    """Share of the lots sold whose price exceeded the true value (the winner's curse); NaN if none was."""


@dataclass(frozen=True, slots=True)
class PriorityCorrelations:
    """Spearman's rho of priorities and what followed, pooled over bidders, lots and auctions."""

    initial_bids: float
    """First plan and number of bids on the lot."""

    initial_wins: float
    """First plan and whether the lot was won."""

    current_bids: float
    """Plan in force before the lot and number of bids on it."""

    current_wins: float
    """Plan in force before the lot and whether it was won."""

    count: int
    """Pairs of bidder and lot with a priority in the first plan."""


def rate(
    games: Sequence[Mapping[str, float]], start: Mapping[str, SkillRating] | None = None
) -> list[dict[str, SkillRating]]:
    """Rate bidders by a series of auctions, each a game of everyone against everyone.

    Args:
        games: Result by bidder, auction by auction; larger results are better, and equal ones are a draw.
        start: Ratings before the first auction; bidders without one start with the default.

    Returns:
        The ratings of all bidders so far after each auction.

    Source:
        Herbrich, Minka & Graepel (2006), TrueSkill, NIPS 19; parameters of the paper's evaluation.
    """
    system = trueskill.TrueSkill(MU, SIGMA, BETA, TAU, DRAW_PROBABILITY)
    ratings = {name: system.create_rating(*rating) for name, rating in (start or {}).items()}
    history: list[dict[str, SkillRating]] = []
    for game in games:
        names = list(game)
        groups = [(ratings.get(name) or system.create_rating(),) for name in names]
        _, ranks = np.unique([-game[name] for name in names], return_inverse=True)
        for name, (rated,) in zip(names, system.rate(groups, ranks.tolist()), strict=True):
            ratings[name] = rated
        history.append({name: SkillRating(rated.mu, rated.sigma) for name, rated in ratings.items()})
    return history


def rating_error(ratings: Mapping[str, SkillRating], published: Mapping[str, float]) -> float:
    """Compute the mean absolute error of the ratings' means against published ones, over the bidders in both.

    Raises:
        ValueError: If no bidder is in both.
    """
    shared = [name for name in published if name in ratings]
    if not shared:
        raise ValueError(f"no bidder is rated in both: {sorted(ratings)} and {sorted(published)}")
    return math.fsum(abs(ratings[name].mu - published[name]) for name in shared) / len(shared)


def score_bidders(auction: Auction) -> list[BidderScore]:
    """Score every bidder of an auction, by seat."""
    return [
        BidderScore(
            name=account.bidder.name,
            profit=account.profit,
            n_wins=len(account.wins),
            money_left=account.budget,
            engagement=sum(account.engagement.values()),
            failed_bid_rate=_ratio(account.failed_bids, account.bid_calls),
            self_error_rate=_ratio(account.beliefs.self_errors, account.beliefs.self_checks),
            other_error_rate=_ratio(account.beliefs.other_errors, account.beliefs.other_checks),
        )
        for account in auction.accounts.values()
    ]


def score_sales(auction: Auction) -> SaleScore:
    """Score the sales of an auction so far."""
    lot_prices = [(sale.lot, sale.price) for sale in auction.sales if sale.price is not None]
    return SaleScore(
        n_unsold=len(auction.sales) - len(lot_prices),
        price_ratio=_ratio(math.fsum(price / lot.start for lot, price in lot_prices), len(lot_prices)),
        curse_rate=_ratio(sum(price > lot.true_value for lot, price in lot_prices), len(lot_prices)),
    )


def priority_correlations(auctions: Sequence[Auction]) -> PriorityCorrelations:
    """Correlate priorities with bids and wins.

    Bidders without a plan, and lots without a priority, are left out; a correlation of fewer than two pairs, or of
    values that are all equal, is NaN.
    """
    rows = [row for auction in auctions for account in auction.accounts.values() for row in _rows(auction, account)]
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    initial, current, bids, wins = table.T
    return PriorityCorrelations(
        _rho(initial, bids),
        _rho(initial, wins),
        _rho(current, bids),
        _rho(current, wins),
        int(np.count_nonzero(~np.isnan(initial))),
    )


def priority_heat_map(auctions: Sequence[Auction]) -> NDArray[np.float64]:
    """Average the priority of each lot still to come before each lot.

    Returns:
        Shape `(lots, lots)`: row i is the state before lot i, column j the lot that comes up j-th; NaN where j < i,
        and where nobody gave a priority.
    """
    size = max((len(auction.auctioneer.lots) for auction in auctions), default=0)
    total, count = np.zeros((size, size)), np.zeros((size, size))
    for auction in auctions:
        lots = auction.auctioneer.lots
        for account in auction.accounts.values():
            for before in range(len(lots)):
                for index in range(before, len(lots)):
                    priority = _priority(account, lots[index].name, before)
                    if not math.isnan(priority):
                        total[before, index] += priority
                        count[before, index] += 1
    return np.divide(total, count, out=np.full((size, size), np.nan), where=count > 0)


def bid_increments(auction: Auction, bidder: int | None = None) -> list[float]:
    """Compute by how many percent each valid bid exceeds the highest bid of the round before.

    Opening bids, to which no minimum raise applies, are measured against the starting price; where that has fallen
    to zero, as it may under the original rules, they are left out.

    Args:
        auction: The auction; starting prices that were lowered for want of bids count as lowered.
        bidder: The bidder; None: all of them.
    """
    increments: list[float] = []
    for sale in auction.sales:
        before = float(sale.bidding.start)
        for bids in sale.bidding.rounds:
            amounts = [bid for bid in bids if bid.amount]
            counted = [bid for bid in amounts if before and bidder in (None, bid.bidder)]
            increments += [100 * ((bid.amount or 0) - before) / before for bid in counted]
            if amounts:
                before = float(bids[-1].standing.top)
    return increments


def increment_shares(increments: Sequence[float], edges: Sequence[float] = INCREMENT_EDGES) -> tuple[float, ...]:
    """Compute the share of increments in each bin; a bin includes its lower edge and excludes its upper one.

    Raises:
        ValueError: If there are no increments.
    """
    if not increments:
        raise ValueError("there are no bids whose increments could be counted")
    return tuple(
        sum(low <= increment < high for increment in increments) / len(increments) for low, high in pairwise(edges)
    )


def _rows(auction: Auction, account: BidderAccount) -> Iterator[tuple[float, float, float, float]]:
    """Yield first priority, priority in force, bids and win of each lot that has come up."""
    won = {win.lot.name for win in account.wins}
    for index, sale in enumerate(auction.sales):
        name = sale.lot.name
        outcome = float(account.engagement.get(name, 0)), float(name in won)
        yield (_priority(account, name, 0), _priority(account, name, index), *outcome)


def _priority(account: BidderAccount, lot: str, before: int) -> float:
    """Return the priority of a lot in the plan in force before the lot of that number; NaN if there is none."""
    plans = [plan for plan in account.plans if plan.lots_before <= before]
    value = plans[-1].priorities.get(lot) if plans else None
    return float(value) if isinstance(value, (int, float)) else math.nan


def _rho(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    is_known = ~np.isnan(first)
    x, y = first[is_known], second[is_known]
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return correlation(x.tolist(), y.tolist(), method="ranked")


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else math.nan
