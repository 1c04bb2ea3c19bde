"""The auction: lots, bidders, the auctioneer, beliefs, rule-following bidders, scores, and the world itself."""

from mesa_llm.worlds.auction.auctioneer import Stage
from mesa_llm.worlds.auction.beliefs import Belief
from mesa_llm.worlds.auction.bidders import Account, Bidder, Desire, Plan, Planning
from mesa_llm.worlds.auction.bidding import BidRecord, TieRule
from mesa_llm.worlds.auction.lots import (
    NICHE_LOTS,
    PAPER_LOTS,
    REPOSITORY_LOTS,
    Lot,
    LotOrder,
    ordered_lots,
    read_lots,
)
from mesa_llm.worlds.auction.policies import BiddingPolicy, play
from mesa_llm.worlds.auction.rules import ORIGINAL_RULES, AuctionRules, Sale
from mesa_llm.worlds.auction.views import AuctionFacts, RivalView, SaleView
from mesa_llm.worlds.auction.world import Auction, Priorities

__all__ = [
    "NICHE_LOTS",
    "ORIGINAL_RULES",
    "PAPER_LOTS",
    "REPOSITORY_LOTS",
    "Account",
    "Auction",
    "AuctionFacts",
    "AuctionRules",
    "Belief",
    "BidRecord",
    "Bidder",
    "BiddingPolicy",
    "Desire",
    "Lot",
    "LotOrder",
    "Plan",
    "Planning",
    "Priorities",
    "RivalView",
    "Sale",
    "SaleView",
    "Stage",
    "TieRule",
    "ordered_lots",
    "play",
    "read_lots",
]
