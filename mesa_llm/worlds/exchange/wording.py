"""The words in which a trader is told what it sees."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from mesa_llm.text import MAX_QUOTE, quoted
from mesa_llm.worlds.exchange.accounts import STOCKS, Stock
from mesa_llm.worlds.exchange.board import Board, share_words
from mesa_llm.worlds.exchange.book import Side
from mesa_llm.worlds.exchange.companies import BOTH, COMPANIES, Company, Report, report_on
from mesa_llm.worlds.exchange.facts import TraderFacts
from mesa_llm.worlds.exchange.forum import OFFICIAL, Post
from mesa_llm.worlds.exchange.lending import Lending
from mesa_llm.worlds.exchange.matching import Match
from mesa_llm.worlds.exchange.schedule import Calendar
from mesa_llm.worlds.exchange.settlement import TradingRules

_EQUAL_PRICES = (
    "It trades at once with waiting orders of the other side at exactly the same price, oldest first. A bid "
    "above an offer does not trade: to be sure of a trade, name a price that the other side shows."
)
_CROSSING = (
    "It trades at once with waiting orders of the other side whose price is as good as yours or better: the "
    "best price first, the oldest of equals first, at the waiting order's price."
)


FORUM_CHARACTERS = 3_900
"""Maximum number of characters that a look at the forum shows; a tool's answer may have 4,000."""

EXCERPT_CHARACTERS = 400
"""Maximum number of characters of one post where not all posts fit."""

_EXCERPT = "On the forum ({shown:,} of {count:,} posts, drawn at random; long ones are cut):"

_CANCELLED = ": one that cannot be paid or delivered when its turn comes is cancelled"


@dataclass(frozen=True, slots=True)
class Screen:
    """How much a trader is shown unasked."""

    orders_shown: int = 200
    """Orders listed of each side of a book, best first."""

    shows_posts: bool = False
    """Whether the loan decision shows the forum, as in the original; else a trader has to look (Shachi)."""


def house_rules(calendar: Calendar, trading: TradingRules, lending: Lending) -> str:
    """Say how the exchange works; the same for every trader and moment."""
    lines = [
        "You trade two stocks on a small exchange.",
        *(f"- {stock}: {_introduction(COMPANIES[stock])}." for stock in STOCKS),
        "The exchange is open day after day. Each day you may take one loan, then trade in "
        f"{calendar.sessions} sessions, then say what you expect to do tomorrow, then write on the forum.",
        "In a session the traders act one after another, in random order. Each may place one order to buy or "
        f"to sell. {_CROSSING if trading.cross else _EQUAL_PRICES} What is left waits in the book until the "
        f"day ends. Waiting orders set no cash or shares aside{_CANCELLED if trading.settlement == 'strict' else ''}. "
        "The price of the last trade becomes the price of the session.",
        f"Trading actively is welcome, and you may name any price {_priced(trading)}.",
        f"Every {lending.interest_every_days} days you pay a twelfth of its rate on each loan; on its due "
        "day you pay it back with its full rate. If your cash does not suffice, your shares are sold at the "
        "latest prices; if they do not suffice either, you leave the exchange for good.",
    ]
    if trading.fees:
        fees = trading.fees
        lines.append(f"Each trade costs you {fees.per_share} a share, at least {fees.least}, at most {fees.most}.")
    return "\n".join(lines)


def _priced(trading: TradingRules) -> str:
    """Say which prices are taken."""
    return f"from {trading.tick:g} up, in steps of {trading.tick:g}" if trading.settlement == "strict" else "above 0"


@cache
def company_news(day: int) -> str:
    """Write what is known of both companies, their past figures, and what they report today."""
    known = [f"Company {stock}: {COMPANIES[stock].background}" for stock in STOCKS]
    figures = [line for stock in STOCKS for line in _company_lines(COMPANIES[stock], day)]
    return "\n".join([*known, BOTH, *figures])


def situation(facts: TraderFacts, board: Board, *, shows_posts: bool) -> str:
    """Tell a trader what it needs to decide in the present stage, and what to decide."""
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


def forum_text(posts: Sequence[Post]) -> str:
    """List what is on the forum."""
    return "\n".join(["On the forum:", *map(_post_line, posts)])


def forum_excerpt(posts: Sequence[Post], rng: random.Random, characters: int = FORUM_CHARACTERS) -> str:
    """List announcements and as many posts as fit, drawn at random; say how many of how many they are.

    Args:
        posts: What is on the forum.
        rng: Source of the draw.
        characters: Maximum number of characters of the list.
    """
    whole = forum_text(posts)
    if len(whole) <= characters:
        return whole
    official = [post for post in posts if post.author == OFFICIAL]
    others = [post for post in posts if post.author != OFFICIAL]
    left = characters - len(forum_text(official)) - len(_EXCERPT)
    drawn: list[int] = []
    for index in rng.sample(range(len(others)), len(others)):
        left -= len(_post_line(others[index], EXCERPT_CHARACTERS)) + 1
        if left < 0:
            break
        drawn.append(index)
    heading = _EXCERPT.format(shown=len(drawn), count=len(others))
    lines = [_post_line(others[index], EXCERPT_CHARACTERS) for index in sorted(drawn)]
    return "\n".join([heading, *map(_post_line, official), *lines])


def _post_line(post: Post, characters: int = MAX_QUOTE) -> str:
    """Write one post, cut to a number of characters, or one announcement."""
    if post.author == OFFICIAL:
        return f"Announcement: {post.text}"
    return f"Trader {post.author}: {quoted(post.text, characters)}"


def order_text(trader: int, stock: Stock, side: Side, quantity: int, match: Match) -> str:
    """Tell a trader what came of its order."""
    did = "bought" if side == "buy" else "sold"
    traded = "".join(f" {did} {share_words(fill.quantity)} at {fill.price}," for fill in match.fills if fill.quantity)
    left = quantity - sum(fill.quantity for fill in match.fills)
    lost = any(order.side == side for order in match.cancelled)
    rest = "all of it traded" if left <= 0 else f"{share_words(left)} {'cancelled' if lost else 'waiting in the book'}"
    withdrawn = any(order.trader == trader and order.side != side for order in match.cancelled)
    own = " Your own waiting order that it met was withdrawn." if withdrawn else ""
    return f"Order to {side} {quantity} shares of {stock}:{traded} {rest}.{own}"


def _loan_text(facts: TraderFacts, posts: Sequence[Post]) -> str:
    """Tell a trader what it needs to decide about a loan; `posts` are shown unasked."""
    offers = "; ".join(
        f"type {kind}, {days} days, {rate:.2%}"
        for kind, (days, rate) in enumerate(zip(facts.term_days, facts.rates, strict=True))
    )
    lines = [f"Day {facts.now.day}, before trading. Your style of investing: {facts.style}.", _state(facts)]
    lines.append(f"The bank lends for: {offers}. You may borrow up to {spendable_words(facts.loan_limit)}.")
    if posts:
        lines.append(forum_text(posts))
    lines.append("Take one loan, or do nothing.")
    return "\n".join(lines)


def _trade_text(facts: TraderFacts, books: str) -> str:
    """Tell a trader what it needs to place an order."""
    return (
        f"Day {facts.now.day}, session {facts.now.session}.\n{_state(facts)}{_cancellations(facts)}\n{books}\n"
        "Buy or sell one of the stocks, or do nothing."
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
    """Say what a trader owns and owes, and the prices."""
    owned = ", ".join(f"{share_words(facts.shares[stock])} shares of {stock}" for stock in STOCKS)
    prices = ", ".join(f"{stock} {facts.prices[stock]}" for stock in STOCKS)
    loans = "; ".join(f"{loan.principal:.2f} due on day {loan.due_day}" for loan in facts.loans) or "none"
    return f"Latest prices: {prices}. You have {spendable_words(facts.cash)} cash, {owned}. Your loans: {loans}."


def _cancellations(facts: TraderFacts) -> str:
    """Say which of its waiting orders were cancelled today; empty if none were."""
    gone = [
        f"{one.side} {share_words(one.quantity)} {one.stock} at {money_words(one.price)} (session {one.session})"
        for one in facts.cancelled
    ]
    return f"\nCancelled today, as you could not honour them when their turn came: {'; '.join(gone)}." if gone else ""


def spendable_words(money: float) -> str:
    """Write a sum rounded down, so that all of what is shown can be spent or borrowed."""
    return f"{math.floor(money * 100) / 100:.2f}"


def money_words(money: float) -> str:
    """Write a price or a sum, with no more decimals than it takes, four at most."""
    return f"{money:.4f}".rstrip("0").rstrip(".")


def _introduction(company: Company) -> str:
    return f"{company.business}, listed for {company.listed_years} years"


def _company_lines(company: Company, day: int) -> list[str]:
    """Write a company's past quarters, and the report of a day if there is one."""
    lines = [f"Company {company.stock}, past quarters, oldest first, in millions:"]
    for words, figures in (
        ("revenue", company.revenue),
        ("net profit", company.net_profit),
        ("cash flow", company.cash_flow),
    ):
        lines.append(f"  {words}: {', '.join(f'{figure:.2f}' for figure in figures)}")
    report = report_on(company, day)
    return [*lines, _report_line(company, report)] if report else lines


def _report_line(company: Company, report: Report) -> str:
    return (
        f"Company {company.stock} reports today on its last quarter: revenue {report.revenue:.2f} million, "
        f"{report.revenue_growth_pct:+.2f}% on the year before; gross margin {report.gross_margin_pct}%; in "
        f"shares of revenue: income tax {report.income_tax_pct}%, selling {report.selling_expense_pct}%, "
        f"management {report.management_expense_pct}%, depreciation {report.depreciation_pct}%, capital "
        f"expenditure {report.capital_expenditure_pct}%, change of working capital "
        f"{report.working_capital_change_pct}%; net profit {report.net_profit:.2f} million; cash flow "
        f"{report.cash_flow:.2f} million."
    )
