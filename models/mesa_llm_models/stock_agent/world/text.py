"""Texts for traders and other worlds: instructions, observations, order books, results and events."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mesa_llm.records import Event
from mesa_llm.text import MAX_QUOTE, counted, listed, quoted, sentences
from mesa_llm_models.stock_agent.world.book import SIDES, Order, OrderBook, Side
from mesa_llm_models.stock_agent.world.companies import COMPANIES, Company, QuarterlyReport, report_on
from mesa_llm_models.stock_agent.world.facts import TraderFacts
from mesa_llm_models.stock_agent.world.state import (
    OFFICIAL,
    STOCKS,
    Calendar,
    Close,
    ForumPost,
    Happening,
    Liquidation,
    RateChange,
    Stock,
)

_EQUAL_PRICES = (
    "It trades at once with waiting orders of the other side at exactly the same price, oldest first. A bid "
    "above an offer does not trade: to be sure of a trade, name a price that the other side shows."
)

_CROSSING = (
    "It trades at once with waiting orders of the other side whose price is as good as yours or better: the "
    "best price first, the oldest of equals first, at the waiting order's price."
)

RESULTS = {
    "take_loan": "You borrowed {principal:.2f}, due on day {due_day}.",
    "estimate": "Your forecast is noted.",
    "post_message": "Your post will be on the forum tomorrow.",
}
"""Action → what came of it; of an order, see `outcome_text`."""

result_text = sentences(RESULTS)

REASONS = {
    "no_loan_type": "there is no loan type {loan_type!r}; choose 0, 1 or 2.",
    "no_trader": "there is no trader {agent_id} on this exchange.",
    "insolvent": "you are insolvent and have left the exchange.",
    "wrong_stage": "this is done in the stage {stage!r}, and now is {now!r}.",
    "acted": "you have already acted in this stage; wait for the next one.",
    "no_credit": "you owe as much as you had at the start; you may not borrow more.",
    "cash": "{shares} at {price} cost {cost}; you have {cash} cash.",
    "cash_with_fee": "{shares} at {price} cost {cost}, with the fee of {fee}; you have {cash} cash.",
    "shares": "you cannot sell {shares} of {stock}; you have {owned}.",
    "fee": "your cash and what you would earn do not pay the fee of {fee}.",
    "post": "your post has {characters} characters; write 1 to {maximum}, no mere blanks.",
    "no_stock": "there is no stock {stock!r}; choose A or B.",
    "size": "{quantity} shares at {price}: give numbers above 0, and not huge ones.",
    "fraction": "{quantity} shares cannot be traded; give a whole number.",
    "tick": "prices go in steps of {tick:g}, from {tick:g} up; got {price!r}.",
    "flag": "true and false are no amounts; give numbers.",
    "loan": "you asked for {principal:.10g}; ask for more than 0 and at most {maximum:.2f}.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)

INSOLVENT = "You are insolvent and have left the exchange."
"""Text for a trader who has left."""

BUSINESSES: dict[Stock, str] = {"A": "a maker of chemicals", "B": "a growing technology firm"}
"""Stock → business of its company."""

BACKGROUNDS: dict[Stock, str] = {
    "A": (
        "The company has come up against the limits of its growth. Its revenue is said to have fallen over the last "
        "three years, and its results over the last five; all the same, its course is called stable. A new chief "
        "executive, more enterprising than the one before, is trying out new lines of business, and things are "
        "expected to get better."
    ),
    "B": (
        "Its revenue is said to have fallen last year together with its sector, while operations stayed sound. The "
        "press expects revenue to grow by more than 20% again, and the price of the share to keep rising in the short "
        "run. Before it was listed it kept important figures to itself, which casts doubt on the revenue it reports. "
        "The government has asked about its latest operations and about the moves of its share; the company has "
        "explained itself, and has promised to do more for social services."
    ),
}
"""Stock → background of its company."""

BOTH = (
    "The government has met the two companies to encourage them to serve society, and agreements on subsidies were "
    "signed with both."
)
"""Public background of both companies."""

SESSIONS_SHOWN = 5
"""Maximum number of session prices that an observation lists for each stock."""

FORUM_CHARACTERS = 3_900
"""Maximum number of characters of the forum in one reading; a tool's result may have 4,000."""

EXCERPT_CHARACTERS = 400
"""Maximum number of characters of one post if not all posts fit."""

_EXCERPT = "On the forum ({shown:,} of {count:,} posts, drawn at random; long ones are cut):"

_CANCELLED = ": one that cannot be paid or delivered when its turn comes is cancelled"


@dataclass(frozen=True, slots=True)
class Screen:
    """Contents of an observation."""

    max_orders: int = 200
    """Maximum number of orders listed of each side of a book, best first."""

    shows_posts: bool = False
    """Whether the loan decision shows the forum, as in the original; otherwise a tool does (Shachi)."""


def instructions(calendar: Calendar, trading: Any, lending: Any) -> str:
    """Describe the exchange, in the same words for every trader and moment."""
    lines = [
        "You trade two stocks on a small exchange.",
        *(f"- {stock}: {introduction(COMPANIES[stock])}." for stock in STOCKS),
        "The exchange is open day after day. Each day you may take one loan, then trade in "
        f"{counted(calendar.sessions, 'session')}, then say what you expect to do tomorrow, then write on the forum.",
        "In a session the traders act one after another, in random order. Each may place one order to buy or "
        f"to sell. {_CROSSING if trading.cross else _EQUAL_PRICES} What is left waits in the book until the "
        f"day ends. Waiting orders reserve no cash or shares{_CANCELLED if trading.settlement == 'strict' else ''}. "
        "The price of the last trade becomes the price of the session.",
        f"You are encouraged to trade actively, and may name any price {_price_range(trading)}.",
        f"Every {counted(lending.interest_every_days, 'day')} you pay a twelfth of its rate on each loan; on its due "
        "day you pay it back with interest at its full rate. If your cash does not suffice, your shares are sold at "
        "the latest prices; if they do not suffice either, you leave the exchange for good.",
    ]
    if trading.fees:
        fees = trading.fees
        lines.append(f"Each trade costs you {fees.per_share} a share, at least {fees.minimum}, at most {fees.maximum}.")
    return "\n".join(lines)


def _price_range(trading: Any) -> str:
    """Describe which prices are accepted."""
    return f"from {trading.tick:g} up, in steps of {trading.tick:g}" if trading.settlement == "strict" else "above 0"


@cache
def company_news(day: int) -> str:
    """Describe the background of both companies, their past figures, and their reports of the day."""
    lines = [f"Company {stock}: {BACKGROUNDS[stock]}" for stock in STOCKS]
    figures = [line for stock in STOCKS for line in _company_lines(COMPANIES[stock], day)]
    return "\n".join([*lines, BOTH, *figures])


def situation(facts: TraderFacts, board: Board, *, shows_posts: bool) -> str:
    """Describe the situation of a trader in the present stage, and its decision."""
    match facts.now.stage:
        case "loan":
            return _loan_text(facts, facts.posts if shows_posts else ())
        case "trade":
            return _trade_text(facts, board.text)
        case "estimate":
            return _estimate_text(facts)
        case "post":
            return _post_text(facts)
        case "closed":
            return "The exchange has closed."


def forum_text(posts: Sequence[ForumPost]) -> str:
    """List the posts and announcements on the forum."""
    return "\n".join(["On the forum:", *map(_post_line, posts)])


def forum_excerpt(posts: Sequence[ForumPost], rng: random.Random, characters: int = FORUM_CHARACTERS) -> str:
    """List announcements and as many posts as fit, drawn at random, with their number and the total.

    Args:
        posts: Posts and announcements on the forum.
        rng: Source of random draws.
        characters: Maximum number of characters of the list.
    """
    full_text = forum_text(posts)
    if len(full_text) <= characters:
        return full_text
    official = [post for post in posts if post.author == OFFICIAL]
    others = [post for post in posts if post.author != OFFICIAL]
    characters_left = characters - len(forum_text(official)) - len(_EXCERPT)
    indices: list[int] = []
    for index in rng.sample(range(len(others)), len(others)):
        characters_left -= len(_post_line(others[index], EXCERPT_CHARACTERS)) + 1
        if characters_left < 0:
            break
        indices.append(index)
    heading = _EXCERPT.format(shown=len(indices), count=len(others))
    lines = [_post_line(others[index], EXCERPT_CHARACTERS) for index in sorted(indices)]
    return "\n".join([heading, *map(_post_line, official), *lines])


def _post_line(post: ForumPost, characters: int = MAX_QUOTE) -> str:
    """Return the line of one post, cut to a number of characters, or of one announcement."""
    if post.author == OFFICIAL:
        return f"Announcement: {post.text}"
    return f"Trader {post.author}: {quoted(post.text, characters)}"


def outcome_text(trader: int, stock: Stock, side: Side, quantity: int, match: Any) -> str:
    """Describe the result of an order to its trader."""
    did = "bought" if side == "buy" else "sold"
    traded = "".join(f" {did} {shares_text(fill.quantity)} at {fill.price}," for fill in match.fills if fill.quantity)
    unfilled = quantity - sum(fill.quantity for fill in match.fills)
    is_cancelled = any(order.side == side for order in match.cancelled_orders)
    remainder = (
        "all of it traded"
        if unfilled <= 0
        else f"{shares_text(unfilled)} {'cancelled' if is_cancelled else 'waiting in the book'}"
    )
    is_own = any(order.trader == trader and order.side != side for order in match.cancelled_orders)
    own_order = " Your own waiting order that it met was withdrawn." if is_own else ""
    return f"Order to {side} {counted(quantity, 'share')} of {stock}:{traded} {remainder}.{own_order}"


def _loan_text(facts: TraderFacts, posts: Sequence[ForumPost]) -> str:
    """Describe the situation of a trader before a loan, with some posts."""
    offers = "; ".join(
        f"type {kind}, {counted(days, 'day')}, {rate:.2%}"
        for kind, (days, rate) in enumerate(zip(facts.term_days, facts.rates, strict=True))
    )
    lines = [f"Day {facts.now.day}, before trading.", _state(facts)]
    lines.append(f"The bank lends for: {offers}. You may borrow up to {spendable_text(facts.loan_limit)}.")
    if posts:
        lines.append(forum_text(posts))
    lines.append("Take one loan, or do nothing.")
    return "\n".join(lines)


def _trade_text(facts: TraderFacts, books: str) -> str:
    """Describe the situation of a trader before an order."""
    return (
        f"Day {facts.now.day}, session {facts.now.session}.\n{_state(facts)}{_cancellations(facts)}\n{books}\n"
        f"{_means_text(facts)}\nBuy or sell one of the stocks, or do nothing."
    )


def _estimate_text(facts: TraderFacts) -> str:
    """Ask a trader what it expects to do tomorrow."""
    return (
        f"Trading of day {facts.now.day} is over.\n{_state(facts)}{_cancellations(facts)}\n"
        "Say whether you will buy A, buy B, sell A, sell B, and take a loan tomorrow."
    )


def _post_text(facts: TraderFacts) -> str:
    """Ask a trader for a post."""
    return (
        f"Trading of day {facts.now.day} is over.\n{_state(facts)}{_cancellations(facts)}\n"
        "Write a short post for the forum, where all traders can read it tomorrow."
    )


def _state(facts: TraderFacts) -> str:
    """Describe a trader's assets and debts, and the prices."""
    owned = ", ".join(f"{shares_text(facts.shares[stock])} shares of {stock}" for stock in STOCKS)
    prices = ", ".join(f"{stock} {money_text(facts.prices[stock])}" for stock in STOCKS)
    loans = "; ".join(f"{loan.principal:.2f} due on day {loan.due_day}" for loan in facts.loans) or "none"
    change = f"{'up' if facts.profit >= 0 else 'down'} {money_text(abs(round(facts.profit, 2)))} since the start"
    lines = [f"Latest prices: {prices}.{_course_text(facts)}"]
    lines.append(f"You have {spendable_text(facts.cash)} cash, {owned}. Your loans: {loans}.")
    worth = money_text(round(facts.worth, 2))
    lines.append(f"All that, less your debts, is worth {worth} to you at these prices, {change}.")
    return "\n".join(lines)


def _course_text(facts: TraderFacts) -> str:
    """Describe the prices of the last sessions, and how much was traded in the last one; empty before the first."""
    paths = {stock: facts.recent_prices[stock][-SESSIONS_SHOWN:] for stock in STOCKS}
    if any(len(path) < 2 for path in paths.values()):
        return ""
    courses = "; ".join(f"{stock} {', '.join(map(money_text, path))}" for stock, path in paths.items())
    volumes = ", ".join(f"{shares_text(facts.volumes[stock])} of {stock}" for stock in STOCKS)
    return f" In the last sessions, oldest first: {courses}. Shares traded in the last one: {volumes}."


def _means_text(facts: TraderFacts) -> str:
    """Say how many shares a trader's cash buys at the latest prices."""
    shares = " or ".join(
        f"{counted(math.floor(facts.cash / facts.prices[stock]), 'share')} of {stock}" for stock in STOCKS
    )
    return f"At the latest prices your cash would buy up to {shares}."


def order_sentence(outcome: Any) -> str:
    """Say what a trader ordered, and what came of it."""
    order = outcome.arguments
    shares = f"{counted(int(order['quantity']), 'share')} of {order['stock']} at {money_text(float(order['price']))}"
    did = f"You {'bid for' if outcome.action == 'buy' else 'offered'} {shares}"
    result = str(outcome.result)
    return f"{did}; {result.partition(': ')[2]}" if result.startswith("Order to") else f"{did}. {result}"


def forecast_sentence(outcome: Any) -> str:
    """Say what a trader expected to do on the next day."""
    names = {"buy_a": "buy A", "buy_b": "buy B", "sell_a": "sell A", "sell_b": "sell B", "take_loan": "take a loan"}
    plans = [text for name, text in names.items() if outcome.arguments.get(name)]
    return f"You expected to {listed(plans or ['do nothing'])} on the next day."


def _cancellations(facts: TraderFacts) -> str:
    """List which of a trader's waiting orders were cancelled today; empty if none were."""
    lines = [
        f"{cancellation.side} {shares_text(cancellation.quantity)} {cancellation.stock} "
        f"at {money_text(cancellation.price)} (session {cancellation.session})"
        for cancellation in facts.cancellations
    ]
    return f"\nCancelled today, as you could not honour them when their turn came: {'; '.join(lines)}." if lines else ""


def spendable_text(money: float) -> str:
    """Format a sum rounded down, so that all of it can be spent or borrowed."""
    return f"{math.floor(money * 100) / 100:.2f}"


def money_text(money: float) -> str:
    """Format a price or a sum, with no more decimals than it takes, at most four."""
    return f"{money:.4f}".rstrip("0").rstrip(".")


def introduction(company: Company) -> str:
    """Describe a company's business, and how long it has been listed, in a clause."""
    return f"{BUSINESSES[company.stock]}, listed for {counted(company.listed_years, 'year')}"


def _company_lines(company: Company, day: int) -> list[str]:
    """List a company's past quarters, and its report on a day if there is one."""
    lines = [f"Company {company.stock}, past quarters, oldest first, in millions:"]
    for name, figures in (
        ("revenue", company.revenue),
        ("net profit", company.net_profit),
        ("cash flow", company.cash_flow),
    ):
        lines.append(f"  {name}: {', '.join(f'{figure:.2f}' for figure in figures)}")
    report = report_on(company, day)
    return [*lines, _report_line(company, report)] if report else lines


def _report_line(company: Company, report: QuarterlyReport) -> str:
    return (
        f"Company {company.stock} reports today on its last quarter: revenue {report.revenue:.2f} million, "
        f"{report.revenue_growth_pct:+.2f}% on the year before; gross margin {report.gross_margin_pct}%; in "
        f"shares of revenue: income tax {report.income_tax_pct}%, selling {report.selling_expense_pct}%, "
        f"management {report.management_expense_pct}%, depreciation {report.depreciation_pct}%, capital "
        f"expenditure {report.capital_expenditure_pct}%, change of working capital "
        f"{report.working_capital_change_pct}%; net profit {report.net_profit:.2f} million; cash flow "
        f"{report.cash_flow:.2f} million."
    )


class Board:
    """The books of all stocks as text, rewritten only where they have changed."""

    def __init__(self, books: Mapping[Stock, OrderBook], max_orders: int) -> None:
        """Keep the books.

        Args:
            books: The books by stock.
            max_orders: Maximum number of orders listed of each side of a book, best first.
        """
        self._books = books
        self._max_orders = max_orders
        self._written: dict[tuple[Stock, Side], tuple[int, str]] = {}

    @property
    def text(self) -> str:
        """One line for each side of each book, offers before bids."""
        return "\n".join(self._line(stock, side) for stock in STOCKS for side in reversed(SIDES))

    def _line(self, stock: Stock, side: Side) -> str:
        """Return the line of one side, rewritten if the side has changed since the last reading."""
        changes = self._books[stock].changes[side]
        line = self._written.get((stock, side))
        if line is None or line[0] != changes:
            line = self._written[stock, side] = (changes, self._write(stock, side))
        return line[1]

    def _write(self, stock: Stock, side: Side) -> str:
        book, maximum = self._books[stock], self._max_orders
        count = book.counts[side]
        orders = "; ".join(map(order_text, book.ranked(side, maximum))) or "none"
        more = f"; and {count - maximum} more" if count > maximum else ""
        return f"{'Bids to buy' if side == 'buy' else 'Offers to sell'} {stock}, best first: {orders}{more}."


def order_text(order: Order) -> str:
    """Describe an order as others see it."""
    return f"trader {order.trader}: {shares_text(order.quantity)} at {order.price}"


def shares_text(shares: float) -> str:
    """Format a number of shares; fractions, which only the original rules make, to four decimals."""
    return str(shares) if isinstance(shares, int) else f"{shares:.4f}".rstrip("0").rstrip(".")


def event_of(source: str, happening: Happening) -> Event:
    """Return the event of a price move, a forced sale, a bankruptcy or a change of the rates; its `time` is the day."""
    match happening:
        case Close():
            change = happening.price / happening.before - 1
            facts = {**happening._asdict(), "change": change}
            text = f"Stock {happening.stock} went from {happening.before} to {happening.price} ({change:+.2%})."
            return Event(source, "price_move", facts, text, happening.day)
        case Liquidation():
            kind = "bankruptcy" if happening.has_left else "forced_sale"
            did = "is insolvent and has left" if happening.has_left else "had to sell shares to pay its debts"
            text = f"Trader {happening.trader} {did}."
            return Event(source, kind, happening._asdict(), text, happening.day)
        case RateChange():
            facts = {"day": happening.day, "rates": list(happening.rates)}
            return Event(source, "policy_change", facts, happening.text, happening.day)
