"""Prediction markets: automated market makers, the ledger, scores of forecasts, and the world itself."""

from typing import Any

from mesa_llm._deprecated import deprecated_name
from mesa_llm.worlds.market.facts import MarketFacts, MarketView, floor_shares
from mesa_llm.worlds.market.makers import Maker, MakerName, Outcome, open_maker
from mesa_llm.worlds.market.rules import Ledger
from mesa_llm.worlds.market.scores import (
    Forecast,
    ForecastScore,
    brier_score,
    calibration,
    log_score,
    score_forecasts,
)
from mesa_llm.worlds.market.state import Comment, Market, MarketQuestion, Portfolio, Trade, TradeLimits
from mesa_llm.worlds.market.world import PredictionMarkets

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


def __getattr__(name: str) -> Any:
    """Return a name of this package by its old name."""
    return deprecated_name(__name__, name)
