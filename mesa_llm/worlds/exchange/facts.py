"""What a trader sees, as values: for rule twins, outside controllers, and the text of its observation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mesa_llm.worlds.exchange.accounts import Loan, Stock
from mesa_llm.worlds.exchange.book import Quote
from mesa_llm.worlds.exchange.forum import Post
from mesa_llm.worlds.exchange.history import Cancelled
from mesa_llm.worlds.exchange.lending import Rates
from mesa_llm.worlds.exchange.schedule import Moment


@dataclass(frozen=True, slots=True)
class TraderFacts:
    """Everything one trader may base a decision on."""

    trader: int
    """Mesa `unique_id`."""

    now: Moment
    """Day, stage and session."""

    style: str
    """How it is told to invest."""

    cash: float
    """Money."""

    shares: Mapping[Stock, float]
    """Shares by stock."""

    loans: tuple[Loan, ...]
    """Loans not yet paid back."""

    loan_limit: float
    """Most it may still borrow; may be negative."""

    rates: Rates
    """Rates in force, by loan type."""

    term_days: tuple[int, ...]
    """Days until a loan is due, by loan type."""

    prices: Mapping[Stock, float]
    """Latest session prices."""

    recent: Mapping[Stock, tuple[float, ...]]
    """Session prices of late, oldest first, ending with the latest; the first price counts as one."""

    bids: Mapping[Stock, Quote | None]
    """Highest resting buy price and the shares wanted at it; None without one."""

    asks: Mapping[Stock, Quote | None]
    """Lowest resting sell price and the shares offered at it; None without one."""

    posts: tuple[Post, ...]
    """What the forum shows today."""

    cancelled: tuple[Cancelled, ...] = ()
    """Own orders that waited in today's books and were cancelled when they could not be honoured."""
