"""Facts that a trader observes of the prediction markets, as values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mesa_llm_models.market.world.makers import Outcome
from mesa_llm_models.market.world.state import Comment


@dataclass(frozen=True, slots=True)
class Purchase:
    """A purchase that a trader could make now."""

    dollars: float
    """Dollars that it costs."""

    shares: float
    """Shares that it brings."""

    price: float
    """Price of the answer after it."""


@dataclass(frozen=True, slots=True)
class MarketView:
    """A market, as seen by one trader."""

    market_id: str
    """Id used in actions."""

    question: str
    """The question."""

    price_yes: float
    """Displayed price of YES, 0 to 1."""

    price_no: float
    """Displayed price of NO, 0 to 1."""

    yes_shares: float
    """YES shares of this trader, rounded down to hundredths under the original rules."""

    no_shares: float
    """NO shares of this trader; likewise."""

    yes_quote: float | None
    """YES shares that `MarketFacts.quote_dollars` would buy; None without quotes."""

    no_quote: float | None
    """NO shares that the same sum would buy."""

    yes_for_all: Purchase | None
    """What all cash of the trader would buy of YES; None without quotes, or without cash."""

    no_for_all: Purchase | None
    """What it would buy of NO."""

    is_open: bool
    """Whether it is open for trading."""

    due: int | None
    """Step at the end of which it is resolved; None if not shown."""

    answer: Outcome | None
    """The right answer, once it is known."""

    past_prices: tuple[float, ...]
    """YES price at the end of recent steps, oldest first."""

    comments: tuple[Comment, ...]
    """Recent comments, oldest first."""


@dataclass(frozen=True, slots=True)
class MarketFacts:
    """Everything one trader sees."""

    step: int
    """The current step, from 1."""

    cash: float | None
    """Dollars of the trader; None under the original rules, which do not show them."""

    markets: tuple[MarketView, ...]
    """All markets, in opening order."""

    quote_dollars: float
    """Dollar amount of the quotes."""

    results: tuple[str, ...] = ()
    """Results of the trader's latest actions, including refusals."""


def floor_shares(shares: float) -> float:
    """Round a number of shares down to hundredths, so the number shown can be sold.

    Raises:
        ValueError: If it is NaN.
        OverflowError: If it is infinite.
    """
    return math.floor(shares * 100) / 100
