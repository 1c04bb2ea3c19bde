"""A stock exchange for trading agents, after StockAgent: order books, loans, reports, a forum, bankruptcy."""

from mesa_llm.worlds.exchange.accounts import (
    FIRST_PRICES,
    STOCKS,
    STYLES,
    Account,
    Endowment,
    Loan,
    Stock,
    draw_endowments,
)
from mesa_llm.worlds.exchange.book import Order, OrderBook, Quote, Side
from mesa_llm.worlds.exchange.companies import COMPANIES, Company, Report, report_on
from mesa_llm.worlds.exchange.facts import TraderFacts
from mesa_llm.worlds.exchange.forum import OFFICIAL, Post
from mesa_llm.worlds.exchange.history import Borrowed, Cancelled, Close, Forecast, History, Holding, Submitted, Trade
from mesa_llm.worlds.exchange.insolvency import Liquidation
from mesa_llm.worlds.exchange.lending import POLICIES, Lending, Policy
from mesa_llm.worlds.exchange.matching import Match
from mesa_llm.worlds.exchange.schedule import Calendar, Moment, Stage
from mesa_llm.worlds.exchange.settlement import Fees, Fill, Settlement, TradingRules
from mesa_llm.worlds.exchange.wording import Screen
from mesa_llm.worlds.exchange.world import Exchange

__all__ = [
    "COMPANIES",
    "FIRST_PRICES",
    "OFFICIAL",
    "POLICIES",
    "STOCKS",
    "STYLES",
    "Account",
    "Borrowed",
    "Calendar",
    "Cancelled",
    "Close",
    "Company",
    "Endowment",
    "Exchange",
    "Fees",
    "Fill",
    "Forecast",
    "History",
    "Holding",
    "Lending",
    "Liquidation",
    "Loan",
    "Match",
    "Moment",
    "Order",
    "OrderBook",
    "Policy",
    "Post",
    "Quote",
    "Report",
    "Screen",
    "Settlement",
    "Side",
    "Stage",
    "Stock",
    "Submitted",
    "Trade",
    "TraderFacts",
    "TradingRules",
    "draw_endowments",
    "report_on",
]
