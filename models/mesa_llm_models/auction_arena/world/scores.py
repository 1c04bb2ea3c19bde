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

from mesa_llm_models.auction_arena.world.state import BidderAccount
from mesa_llm_models.auction_arena.world.world import Auction

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)  # the default docstring would be compiled at the first import
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
"""Probability of a draw between equally skilled bidders."""

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
    """Bids that broke a rule, as a share of the answers to bid requests; NaN without requests."""

    self_error_rate: float
    """Wrong beliefs about itself as a share of those checked, including revisions; NaN without checks."""

    other_error_rate: float
    """Wrong beliefs about others as a share of those checked, including revisions; NaN without checks."""


@dataclass(frozen=True, slots=True)
class SaleScore:
    """Scores of the sales of one auction."""

    n_unsold: int
    """Lots without bids."""

    price_ratio: float
    """Mean ratio of price to starting price over the lots sold; NaN if none was."""

    curse_rate: float
    """Share of sold lots whose price exceeded the true value (the winner's curse); NaN without sales."""


@dataclass(frozen=True, slots=True)
class PriorityCorrelations:
    """Spearman's rho of priorities and subsequent bids and wins, pooled over bidders, lots and auctions."""

    initial_bids: float
    """First plan and number of bids on the lot."""

    initial_wins: float
    """First plan and whether the lot was won."""

    current_bids: float
    """Plan before the lot and number of bids on it."""

    current_wins: float
    """Plan before the lot and whether it was won."""

    count: int
    """Number of pairs of bidder and lot with a priority in the first plan."""


def rate(
    games: Sequence[Mapping[str, float]], start: Mapping[str, SkillRating] | None = None
) -> list[dict[str, SkillRating]]:
    """Rate bidders by a series of auctions, each a game of all bidders.

    Args:
        games: Result by bidder, for each auction; larger results are better, and equal ones are a draw.
        start: Ratings before the first auction. Other bidders start with the default.

    Returns:
        The ratings of all bidders after each auction.

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

    Bidders without a plan and lots without a priority are omitted. A correlation of fewer than two pairs, or of
    constant values, is NaN.
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
    """Average the priorities of the remaining lots before each lot.

    Returns:
        Shape `(lots, lots)`: row i is the state before lot i, column j the j-th lot; NaN where j < i, and without
        priorities.
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
    """Compute by what percentage each valid bid exceeds the previous round's highest bid.

    Opening bids have no minimum raise and are compared with the starting price. Where that is zero, as it can be under
    the original rules, they are omitted.

    Args:
        auction: The auction. Lowered starting prices count as lowered.
        bidder: The bidder; None for all of them.
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
    """Compute the share of increments in each bin. Bins include their lower edge and exclude the upper one.

    Raises:
        ValueError: If there are no increments.
    """
    if not increments:
        raise ValueError("there are no bids with increments to count")
    return tuple(
        sum(low <= increment < high for increment in increments) / len(increments) for low, high in pairwise(edges)
    )


def _rows(auction: Auction, account: BidderAccount) -> Iterator[tuple[float, float, float, float]]:
    """Yield first priority, current priority, bids and win of each lot so far."""
    won = {win.lot.name for win in account.wins}
    for index, sale in enumerate(auction.sales):
        name = sale.lot.name
        outcome = float(account.engagement.get(name, 0)), float(name in won)
        yield (_priority(account, name, 0), _priority(account, name, index), *outcome)


def _priority(account: BidderAccount, lot: str, before: int) -> float:
    """Return a lot's priority in the plan before the lot with that number; NaN if there is none."""
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
