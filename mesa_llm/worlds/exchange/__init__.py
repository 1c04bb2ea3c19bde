"""A stock exchange modelled on StockAgent: order books, loans, company reports, a forum, bankruptcy."""

from typing import Any

from mesa_llm._deprecated import deprecated_name
from mesa_llm.worlds.exchange.book import Order, OrderBook, Quote, Side
from mesa_llm.worlds.exchange.companies import COMPANIES, Company, QuarterlyReport, report_on
from mesa_llm.worlds.exchange.facts import TraderFacts
from mesa_llm.worlds.exchange.lending import RATE_CHANGES, Lending
from mesa_llm.worlds.exchange.matching import Fees, Fill, Match, Settlement, TradingRules
from mesa_llm.worlds.exchange.state import (
    FIRST_PRICES,
    OFFICIAL,
    STOCKS,
    STYLES,
    ActionForecast,
    Calendar,
    Cancellation,
    Close,
    DayStage,
    Endowment,
    ForumPost,
    History,
    Holding,
    Liquidation,
    Loan,
    LoanTaken,
    Moment,
    RateChange,
    Stock,
    StockTrade,
    Submission,
    TradingAccount,
    draw_endowments,
)
from mesa_llm.worlds.exchange.text import (
    Screen,
    company_news,
    forum_text,
    introduction,
    order_text,
    shares_text,
    spendable_text,
)
from mesa_llm.worlds.exchange.world import Exchange

__all__ = [
    "COMPANIES",
    "FIRST_PRICES",
    "OFFICIAL",
    "RATE_CHANGES",
    "STOCKS",
    "STYLES",
    "ActionForecast",
    "Calendar",
    "Cancellation",
    "Close",
    "Company",
    "DayStage",
    "Endowment",
    "Exchange",
    "Fees",
    "Fill",
    "ForumPost",
    "History",
    "Holding",
    "Lending",
    "Liquidation",
    "Loan",
    "LoanTaken",
    "Match",
    "Moment",
    "Order",
    "OrderBook",
    "QuarterlyReport",
    "Quote",
    "RateChange",
    "Screen",
    "Settlement",
    "Side",
    "Stock",
    "StockTrade",
    "Submission",
    "TraderFacts",
    "TradingAccount",
    "TradingRules",
    "company_news",
    "draw_endowments",
    "forum_text",
    "introduction",
    "order_text",
    "report_on",
    "shares_text",
    "spendable_text",
]


def __getattr__(name: str) -> Any:
    """Return a name of this package by its old name."""
    return deprecated_name(__name__, name)
