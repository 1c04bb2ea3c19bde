"""Prediction markets: automated market makers, the ledger, scores of forecasts, and the world itself."""

from mesa_llm_models.market.world.facts import MarketFacts, MarketView, floor_shares
from mesa_llm_models.market.world.makers import Maker, MakerName, Outcome, open_maker
from mesa_llm_models.market.world.rules import Ledger
from mesa_llm_models.market.world.scores import (
    Forecast,
    ForecastScore,
    brier_score,
    calibration,
    log_score,
    score_forecasts,
)
from mesa_llm_models.market.world.state import Comment, Market, MarketQuestion, Portfolio, Trade, TradeLimits
from mesa_llm_models.market.world.world import PredictionMarkets

__all__ = [
    "Comment",
    "Forecast",
    "ForecastScore",
    "Ledger",
    "Maker",
    "MakerName",
    "Market",
    "MarketFacts",
    "MarketQuestion",
    "MarketView",
    "Outcome",
    "Portfolio",
    "PredictionMarkets",
    "Trade",
    "TradeLimits",
    "brier_score",
    "calibration",
    "floor_shares",
    "log_score",
    "open_maker",
    "score_forecasts",
]
