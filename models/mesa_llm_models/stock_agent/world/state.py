"""The state of the exchange: accounts, calendar, forum, and its history as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from types import MappingProxyType
from typing import Literal, NamedTuple

from mesa_llm.errors import ConfigError
from mesa_llm.tools.validation import is_whole
from mesa_llm.world import RNG
from mesa_llm_models.stock_agent.world.book import Side

Stock = Literal["A", "B"]

STOCKS: tuple[Stock, ...] = ("A", "B")

Rates = tuple[float, ...]
"""Interest over the whole term of a loan, as a share of the principal, by loan type."""

FIRST_PRICES: Mapping[Stock, float] = MappingProxyType({"A": 30, "B": 40})
"""Money per share before the first trade."""

STYLES = ("Conservative", "Aggressive", "Balanced", "Growth-Oriented")
"""Traders' investing styles. They affect no rule."""

MIN_PROPERTY = 1e5
MAX_PROPERTY = 5e6
"""Bounds on cash and shares at the start, in money at the first prices."""

DUE_DAYS = tuple(range(22, 265, 22))
"""Possible due days of initial debts."""


@dataclass(frozen=True, slots=True)
class Loan:
    """Money borrowed, repaid in one sum."""

    principal: float
    """Money borrowed."""

    loan_type: int
    """Index of its term and rate, from 0."""

    due_day: int
    """Day of repayment, before trading."""


@dataclass(frozen=True, slots=True)
class Endowment:
    """Initial endowment of one trader."""

    trader: int
    """Mesa `unique_id`."""

    style: str
    """Style of investing, one of `STYLES`."""

    cash: float
    """Money; if negative, the trader has to sell or leave on the first morning."""

    shares: Mapping[Stock, float]
    """Shares by stock."""

    loans: tuple[Loan, ...] = ()
    """Debts at the start."""

    property_at_start: float | None = None
    """Borrowing limit, in money at the first prices; None for cash and shares, without deducting debts."""


@dataclass(slots=True)
class TradingAccount:
    """Current assets and debts of one trader."""

    trader: int
    """Mesa `unique_id`."""

    style: str
    """Style of investing, one of `STYLES`."""

    cash: float
    """Money; negative only between a payment and the resulting forced sale."""

    shares: dict[Stock, float]
    """Shares by stock; fractional only under the original rules."""

    loans: list[Loan]
    """Outstanding loans, oldest first."""

    property_at_start: float
    """Borrowing limit throughout the run, in money at the first prices."""

    net_at_start: float
    """Cash and shares less debts at the start; the baseline for profit."""

    is_marked: bool = field(default=False)
    """Whether a payment left it without cash, so it must sell or leave."""

    has_left: bool = field(default=False)
    """Whether it was insolvent and has left for good."""

    @classmethod
    def of(cls, start: Endowment, prices: Mapping[Stock, float]) -> TradingAccount:
        """Open the account of a trader.

        Raises:
            ConfigError: If cash is not finite, or a number of shares is negative or not finite.
        """
        shares: dict[Stock, float] = {stock: start.shares[stock] for stock in STOCKS}
        if not (isfinite(start.cash) and all(0 <= quantity < inf for quantity in shares.values())):
            raise ConfigError(
                f"trader {start.trader} starts with {start.cash} cash, {shares}; shares must be 0 or more"
            )
        value = worth(shares, prices) + start.cash
        bound = value if start.property_at_start is None else start.property_at_start
        account = cls(start.trader, start.style, start.cash, shares, list(start.loans), bound, value)
        account.net_at_start -= account.debt
        return account

    @property
    def debt(self) -> float:
        """Sum of the principals owed, in money."""
        # sum() rounds differently since Python 3.12; recorded runs were summed term by term
        total = 0.0
        for loan in self.loans:
            total += loan.principal
        return total

    @property
    def loan_limit(self) -> float:
        """Maximum additional borrowing: the property at the start less the debt; may be negative."""
        return self.property_at_start - self.debt

    def property_at(self, prices: Mapping[Stock, float]) -> float:
        """Value cash and shares at given prices, without deducting debts."""
        return worth(self.shares, prices) + self.cash


def worth(shares: Mapping[Stock, float], prices: Mapping[Stock, float]) -> float:
    """Value shares at given prices."""
    return shares["A"] * prices["A"] + shares["B"] * prices["B"]


DayStage = Literal["loan", "trade", "estimate", "post", "closed"]
"""Stage of the day, by decision: loans; orders, in turn; forecasts for the next day; posts; none."""


class Moment(NamedTuple):
    """A point in the exchange's calendar."""

    day: int
    """Day, from 1."""

    stage: DayStage
    """Current stage."""

    session: int
    """Trading session: 0 before the first of the day; after the last, its number."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Number of trading days, and of sessions per day."""

    days: int = 10
    """Trading days: 264 in the original program, 10 in Shachi's study."""

    sessions: int = 3
    """Trading sessions per day."""

    def __post_init__(self) -> None:
        """Check the lengths.

        Raises:
            ConfigError: If days or sessions are not whole numbers of at least 1.
        """
        if not all(is_whole(count) and count >= 1 for count in (self.days, self.sessions)):
            raise ConfigError(f"{self.days!r} days of {self.sessions!r} sessions; both must be whole numbers from 1")

    def after(self, now: Moment) -> Moment:
        """Return the next moment."""
        match now.stage:
            case "loan":
                return Moment(now.day, "trade", 1)
            case "trade" if now.session < self.sessions:
                return Moment(now.day, "trade", now.session + 1)
            case "trade":
                return Moment(now.day, "estimate", now.session)
            case "estimate":
                return Moment(now.day, "post", now.session)
            case "post" if now.day < self.days:
                return Moment(now.day + 1, "loan", 0)
            case _:
                return Moment(now.day, "closed", now.session)


OFFICIAL = -1
"""Author of announcements."""


class ForumPost(NamedTuple):
    """A message on the forum."""

    day: int
    """Day of writing."""

    author: int
    """Trader's id, or `OFFICIAL`."""

    text: str
    """The message."""


class Forum:
    """Yesterday's posts, today's announcements, and new posts for tomorrow."""

    def __init__(self) -> None:
        """Create an empty forum."""
        self.posts: tuple[ForumPost, ...] = ()
        """Posts and announcements readable now."""

        self._written: dict[int, ForumPost] = {}

    def announce(self, day: int, text: str) -> None:
        """Add an announcement, readable at once."""
        self.posts += (ForumPost(day, OFFICIAL, text),)

    def write(self, day: int, author: int, text: str) -> None:
        """Store a trader's post for tomorrow, replacing an earlier one."""
        self._written[author] = ForumPost(day, author, text)

    def next_day(self) -> None:
        """Replace yesterday's posts with today's, ordered by author id."""
        self.posts = tuple(post for _, post in sorted(self._written.items()))
        self._written = {}


@dataclass(frozen=True, slots=True)
class RateChange:
    """A change of the lending rates, announced on the forum."""

    day: int
    """Day on which it is announced; payments of that day still follow the old rates."""

    rates: Rates
    """The new rates by loan type."""

    text: str
    """The announcement on the forum."""


class Liquidation(NamedTuple):
    """One forced sale, or the departure of an insolvent trader."""

    day: int
    """Day, before trading."""

    trader: int
    """Mesa `unique_id` of the trader forced to sell."""

    cash_before: float
    """Cash before, below 0."""

    a_before: float
    """Shares of A before."""

    b_before: float
    """Shares of B before."""

    cash: float
    """Cash afterwards."""

    a: float
    """Shares of A afterwards."""

    b: float
    """Shares of B afterwards."""

    has_left: bool
    """Whether the trader was insolvent and left, without a sale."""


class StockTrade(NamedTuple):
    """One fill."""

    day: int
    session: int
    stock: Stock
    buyer: int
    seller: int
    quantity: float
    price: float


class Submission(NamedTuple):
    """One order as it was placed."""

    day: int
    session: int
    trader: int
    stock: Stock
    side: Side
    quantity: int
    price: float
    filled: float
    """Shares traded at once; the rest may trade later."""


class Cancellation(NamedTuple):
    """An order, or the rest of one, removed from the market."""

    day: int
    session: int
    trader: int
    stock: Stock
    side: Side
    quantity: float
    """Shares not traded."""

    price: float
    rested: bool
    """Whether it was waiting in the book, rather than incoming."""


class Close(NamedTuple):
    """The close of one stock in a session."""

    day: int
    session: int
    stock: Stock
    price: float
    """Price of the session's last fill; without fills, the previous price."""

    before: float
    """Price before the session."""

    fills: int
    """Number of trades in the session, including those of 0 shares."""

    volume: float
    """Shares traded in the session."""

    buys: int
    """Number of buy orders placed."""

    sells: int
    """Number of sell orders placed."""

    best_bid: float | None
    """Highest price of a resting buy order at the close; None without one."""

    best_ask: float | None
    """Lowest price of a resting sell order at the close; None without one."""


Happening = Close | Liquidation | RateChange
"""An event at the end of a stage."""


class LoanTaken(NamedTuple):
    """One loan taken."""

    day: int
    trader: int
    loan_type: int
    principal: float


class ActionForecast(NamedTuple):
    """A trader's forecast of its own actions on the next day."""

    day: int
    trader: int
    buy_a: bool
    buy_b: bool
    sell_a: bool
    sell_b: bool
    take_loan: bool


class Holding(NamedTuple):
    """Assets and debts of a trader at one moment, valued."""

    trader: int
    style: str
    cash: float
    a: float
    """Shares of A."""

    b: float
    """Shares of B."""

    debt: float
    """Principal owed."""

    property: float
    """Cash and shares at the latest prices; debts are not deducted."""

    profit: float
    """Change since the start in property less debt and accrued interest."""

    accrued: float = 0.0
    """Unpaid interest accrued on loans; 0 under the original rules."""


@dataclass(slots=True)
class History:
    """All rows of a run, oldest first."""

    closes: list[Close] = field(default_factory=list)
    trades: list[StockTrade] = field(default_factory=list)
    orders: list[Submission] = field(default_factory=list)
    loans: list[LoanTaken] = field(default_factory=list)
    forecasts: list[ActionForecast] = field(default_factory=list)
    cancellations: list[Cancellation] = field(default_factory=list)
    liquidations: list[Liquidation] = field(default_factory=list)


def draw_endowments(traders: Iterable[int], rng: RNG) -> list[Endowment]:
    """Draw the endowments of traders, with the original program's order of draws.

    Shares, cash and a debt are uniform. They are redrawn until cash and shares are worth between 100,000 and 5 million,
    and at least the debt.

    Args:
        traders: Mesa `unique_id` of each, in drawing order.
        rng: Random generator.

    Source:
        Zhang et al. (2024), When AI Meets Finance (StockAgent), arXiv 2407.18957, and its program.
    """
    return [_draw_endowment(trader, rng) for trader in traders]


def _draw_endowment(trader: int, rng: RNG) -> Endowment:
    style = rng.choice(STYLES)
    while True:
        shares: dict[Stock, float] = {stock: int(MAX_PROPERTY / FIRST_PRICES[stock] * rng.random()) for stock in STOCKS}
        cash = MAX_PROPERTY * rng.random()
        principal = MAX_PROPERTY * rng.random()
        total = worth(shares, FIRST_PRICES) + cash
        if MIN_PROPERTY <= total <= MAX_PROPERTY and principal <= total:
            break
    loan_type = rng.randint(0, 2)
    debt = Loan(principal, loan_type, rng.choice(DUE_DAYS))
    return Endowment(trader, style, cash, shares, (debt,))
