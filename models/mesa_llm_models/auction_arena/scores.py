"""Series of auctions between named contestants, and their measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from mesa_llm.llm.protocol import LLM
from mesa_llm_models.auction_arena.model import AuctionArena
from mesa_llm_models.auction_arena.policies import TWINS
from mesa_llm_models.auction_arena.world import BidderScore, rate, score_bidders

if TYPE_CHECKING:
    import pandas as pd

RATES = ("failed_bid_rate", "self_error_rate", "other_error_rate")
"""Rates of a bidder in the table of standings."""


def tournament(contestants: Mapping[str, str | LLM], n_auctions: int = 10, **parameters: Any) -> AuctionArena:
    """Run several auctions between models, rule twins and people.

    Args:
        contestants: Name of each bidder → its decider: a model string, a transport, or the name of a rule twin
            (`value`, `pacing`, …; see `mesa_llm_models.auction_arena.policies.TWINS`).
        n_auctions: Number of consecutive auctions; seats rotate.
        **parameters: Fields of `AuctionScenario`, and options of all models: `budget`, `order`, `rng`, `log`, …

    Returns:
        The model after the last auction; see `standings` and `rating_history`.
    """
    twins = [llm if isinstance(llm, str) and llm in TWINS else "rule" for llm in contestants.values()]
    llms = {name: "rule" if isinstance(llm, str) and llm in TWINS else llm for name, llm in contestants.items()}
    seats: dict[str, Any] = {"n_agents": len(contestants), "names": list(contestants), "twins": twins}
    model = AuctionArena(llm=llms, n_auctions=n_auctions, **seats, **parameters)
    while model.running:
        model.step()
    return model


def standings(model: AuctionArena) -> pd.DataFrame:
    """Rank the bidders over all finished auctions.

    Args:
        model: The model, after at least one auction.

    Returns:
        One row per bidder, best rating first: mu and sigma of TrueSkill; means of profit, lots and money_left; share of
        auctions won (draws count for everyone who drew); failed_bid_rate, self_error_rate and other_error_rate, as
        means over the auctions in which they are defined.
    """
    import pandas as pd

    auctions = model.finished_auctions
    games = [model.outcome(auction) for auction in auctions]
    scores = [{score.name: score for score in score_bidders(auction)} for auction in auctions]
    rows = [
        {
            "bidder": name,
            "mu": rating.mu,
            "sigma": rating.sigma,
            "profit": _mean([float(score[name].profit) for score in scores]),
            "lots": _mean([float(score[name].n_wins) for score in scores]),
            "money_left": _mean([float(score[name].money_left) for score in scores]),
            "won": _mean([float(game[name] == max(game.values())) for game in games]),
            **{rate: _mean(_known(scores, name, rate)) for rate in RATES},
        }
        for name, rating in model.ratings.items()
    ]
    return pd.DataFrame(rows).sort_values("mu", ascending=False, kind="stable", ignore_index=True)


def rating_history(model: AuctionArena) -> pd.DataFrame:
    """Return the ratings after each finished auction.

    Returns:
        One row per auction and bidder: auction (from 1), bidder, mu, sigma.
    """
    import pandas as pd

    history = rate([model.outcome(auction) for auction in model.finished_auctions])
    rows = [
        {"auction": number, "bidder": name, "mu": rating.mu, "sigma": rating.sigma}
        for number, ratings in enumerate(history, start=1)
        for name, rating in ratings.items()
    ]
    return pd.DataFrame(rows, columns=["auction", "bidder", "mu", "sigma"])


def _known(scores: Sequence[Mapping[str, BidderScore]], name: str, field: str) -> list[float]:
    values = [float(getattr(score[name], field)) for score in scores]
    return [value for value in values if not math.isnan(value)]


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
