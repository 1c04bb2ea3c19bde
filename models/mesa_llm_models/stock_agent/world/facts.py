"""Facts that a trader observes, as values, for rule twins, outside controllers and the text of its observation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mesa_llm_models.stock_agent.world.book import Quote
from mesa_llm_models.stock_agent.world.state import Cancellation, ForumPost, Loan, Moment, Rates, Stock


@dataclass(frozen=True, slots=True)
class TraderFacts:
    """Everything one trader can see."""

    trader: int
    """Mesa `unique_id`."""

    now: Moment
    """Day, stage and session."""

    style: str
    """Style of investing."""

    cash: float
    """Money."""

    shares: Mapping[Stock, float]
    """Shares by stock."""

    loans: tuple[Loan, ...]
    """Outstanding loans."""

    loan_limit: float
    """Maximum additional borrowing, in money; may be negative."""

    rates: Rates
    """Current rates, by loan type."""

    term_days: tuple[int, ...]
    """Days until a loan is due, by loan type."""

    prices: Mapping[Stock, float]
    """Latest session prices."""

    recent_prices: Mapping[Stock, tuple[float, ...]]
    """Recent session prices, oldest first, starting with the price before the first session."""

    volumes: Mapping[Stock, float]
    """Shares traded in the last session; 0 before the first."""

    worth: float
    """Cash and shares at the latest prices, less debts, in money."""

    profit: float
    """Change of its worth since the start, unpaid interest deducted, in money."""

    bids: Mapping[Stock, Quote | None]
    """Highest resting buy price and the shares wanted at it; None without one."""

    asks: Mapping[Stock, Quote | None]
    """Lowest resting sell price and the shares offered at it; None without one."""

    posts: tuple[ForumPost, ...]
    """Posts and announcements on today's forum."""

    cancellations: tuple[Cancellation, ...] = ()
    """Today's waiting orders that were cancelled because they could not be honoured."""
