"""The auction: lots, bidders, the auctioneer, beliefs, scores, and the world itself."""

from typing import Any

from mesa_llm._deprecated import deprecated_name
from mesa_llm.worlds.auction.beliefs import Belief
from mesa_llm.worlds.auction.facts import AuctionFacts, LotView, RivalView, SaleView
from mesa_llm.worlds.auction.lots import (
    NICHE_LOTS,
    PAPER_LOTS,
    REPOSITORY_LOTS,
    Lot,
    LotOrder,
    ordered_lots,
    read_lots,
)
from mesa_llm.worlds.auction.rules import ORIGINAL_RULES, AuctionRules, Stage, TieRule
from mesa_llm.worlds.auction.scores import (
    MU,
    SIGMA,
    BidderScore,
    PriorityCorrelations,
    SaleScore,
    SkillRating,
    bid_increments,
    increment_shares,
    priority_correlations,
    priority_heat_map,
    rate,
    rating_error,
    score_bidders,
    score_sales,
)
from mesa_llm.worlds.auction.state import (
    Bidder,
    BidderAccount,
    Bidding,
    BiddingPlan,
    BidRecord,
    Desire,
    Planning,
    RoundView,
    Sale,
)
from mesa_llm.worlds.auction.text import DESIRES, dollars
from mesa_llm.worlds.auction.world import Auction, Priorities

__all__ = [
    "DESIRES",
    "MU",
    "NICHE_LOTS",
    "ORIGINAL_RULES",
    "PAPER_LOTS",
    "REPOSITORY_LOTS",
    "SIGMA",
    "Auction",
    "AuctionFacts",
    "AuctionRules",
    "Belief",
    "BidRecord",
    "Bidder",
    "BidderAccount",
    "BidderScore",
    "Bidding",
    "BiddingPlan",
    "Desire",
    "Lot",
    "LotOrder",
    "LotView",
    "Planning",
    "Priorities",
    "PriorityCorrelations",
    "RivalView",
    "RoundView",
    "Sale",
    "SaleScore",
    "SaleView",
    "SkillRating",
    "Stage",
    "TieRule",
    "bid_increments",
    "dollars",
    "increment_shares",
    "ordered_lots",
    "priority_correlations",
    "priority_heat_map",
    "rate",
    "rating_error",
    "read_lots",
    "score_bidders",
    "score_sales",
]


def __getattr__(name: str) -> Any:
    """Return a name of this package by its old name."""
    return deprecated_name(__name__, name)
