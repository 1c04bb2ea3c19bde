"""Facts that a trader observes of the prediction markets, as values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mesa_llm.worlds.market.makers import Outcome
from mesa_llm.worlds.market.state import Comment


@dataclass(frozen=True, slots=True)
class MarketView:
    """One market, as one trader sees it."""

    market_id: str
    """Id by which actions name it."""

    question: str
    """The question."""

    price_yes: float
    """Displayed price of YES, 0 to 1."""

    price_no: float
    """Displayed price of NO, 0 to 1."""

    yes_shares: float
    """YES shares of this trader; under the original rules rounded down to hundredths."""

    no_shares: float
    """NO shares of this trader; likewise."""

    yes_quote: float | None
    """YES shares that `MarketFacts.quote_dollars` would buy; None where no quotes are shown."""

    no_quote: float | None
    """NO shares that the same sum would buy."""

    is_open: bool
    """Whether it takes trades."""

    due: int | None
    """Step at whose end it is answered; None: not shown."""

    answer: Outcome | None
    """The right answer, once it is known."""

    past_prices: tuple[float, ...]
    """Price of YES at the end of the last steps, oldest first."""

    comments: tuple[Comment, ...]
    """Latest remarks, oldest first."""


@dataclass(frozen=True, slots=True)
class MarketFacts:
    """Everything that one trader sees."""

    step: int
    """The current step, from 1."""

    cash: float | None
    """Dollars of the trader; None under the original rules, which do not show them."""

    markets: tuple[MarketView, ...]
    """All markets, in the order in which they were opened."""

    quote_dollars: float
    """Sum that the quotes are for, in dollars."""

    results: tuple[str, ...] = ()
    """Results of the trader's actions in the last step in which it acted, refusals included."""


def floor_shares(shares: float) -> float:
    """Round a number of shares down to hundredths, so that the number shown can be sold.

    Raises:
        ValueError: If it is NaN.
        OverflowError: If it is infinite.
    """
    return math.floor(shares * 100) / 100
