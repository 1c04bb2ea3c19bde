"""What a trader sees of the prediction markets: as values, and as text."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mesa_llm.text import MAX_NAME, one_line, quoted
from mesa_llm.worlds.market.accounts import Comment, TradeLimits
from mesa_llm.worlds.market.makers import Outcome

RULES_TEXT = (
    "You trade in prediction markets. Every market asks a question. Once it is answered, each share of the "
    "right answer pays $1 and each share of the other answer pays nothing. A price is therefore what traders "
    "together take for the probability of that answer: buy what you think is too cheap, sell what you think "
    "is too dear. Buying makes an answer dearer, selling makes it cheaper, and a large trade moves its own "
    "price."
)
"""What every trader is told, under the corrected rules."""

ORIGINAL_RULES_TEXT = (
    "You trade in prediction markets. Every market asks a question and has YES shares and NO shares. Buying "
    "an answer raises its percentage, selling lowers it."
)
"""What every trader is told under SimSwarm's rules, where shares never pay anything."""


def instructions(fee: float, limits: TradeLimits) -> str:
    """Write what every trader is told under the corrected rules, with the fee and the limits of a trade.

    Args:
        fee: Share of the dollars of every trade that the house keeps.
        limits: How large one trade may be.
    """
    sentences = [RULES_TEXT]
    if fee:
        sentences.append(f"The house keeps {fee * 100:.4g}% of the dollars of every trade; quotes are after this fee.")
    if limits.dollars is not None:
        sentences.append(f"One trade may be worth ${limits.dollars:,.2f} at most.")
    if limits.price_move is not None:
        sentences.append(f"One trade may move a price by ${limits.price_move:g} at most.")
    return " ".join(sentences)


REMARK_CHARACTERS = 500
"""Maximum number of characters of a remark."""


@dataclass(frozen=True, slots=True)
class MarketView:
    """One market, as one trader sees it."""

    market_id: str
    """What actions name it by."""

    question: str
    """What it asks."""

    price_yes: float
    """Shown price of YES, 0 to 1."""

    price_no: float
    """Shown price of NO, 0 to 1."""

    yes_held: float
    """YES shares this trader has (under the original rules rounded down to hundredths)."""

    no_held: float
    """NO shares this trader has (likewise)."""

    yes_quote: float | None
    """YES shares that a small buy (`MarketFacts.quote_dollars`) would bring; None without quotes."""

    no_quote: float | None
    """NO shares that the same buy would bring."""

    is_open: bool
    """Whether it takes trades."""

    due: int | None
    """Step at whose end it is answered; None: nobody is told."""

    answer: Outcome | None
    """The right answer, once it is known."""

    past_prices: tuple[float, ...]
    """Price of YES at the end of the last steps, oldest first."""

    comments: tuple[Comment, ...]
    """Latest remarks, oldest first."""


@dataclass(frozen=True, slots=True)
class MarketFacts:
    """All that one trader sees, as values."""

    step: int
    """The market's own time, from 1."""

    cash: float | None
    """Dollars the trader has; None under the original rules, which do not show them."""

    markets: tuple[MarketView, ...]
    """Every market, in the order they were opened."""

    quote_dollars: float
    """Size of the small buy that is quoted, in dollars."""

    results: tuple[str, ...] = ()
    """What came of the trader's actions in the last step in which it acted, refusals included."""


def floor_shares(shares: float) -> float:
    """Round a holding down to hundredths, so that what is shown can be sold.

    Raises:
        ValueError: If it is NaN.
        OverflowError: If it is infinite.
    """
    return math.floor(shares * 100) / 100


def write_corrected(facts: MarketFacts, names: dict[int, str]) -> str:
    """Write what a trader sees under the corrected rules.

    Args:
        facts: What it sees.
        names: What to call other traders, by id; those without a name go by their number.
    """
    lines = [f"Step {facts.step}. You have ${math.floor((facts.cash or 0.0) * 100) / 100:.2f} in cash."]
    lines += [f"Last time: {one_line(result)}" for result in facts.results]
    for market in facts.markets:
        lines += ["", *_write_market(market, facts, names)]
    return "\n".join(lines)


def write_original(facts: MarketFacts) -> str:
    """Write what a trader sees under the original rules: percentages and holdings, and no more."""
    return "\n".join(
        f"[{market.market_id}] {market.question} Now YES at {market.price_yes * 100:.0f}% and NO at "
        f"{market.price_no * 100:.0f}%. You hold {market.yes_held} YES and {market.no_held} NO."
        for market in facts.markets
    )


def _write_market(market: MarketView, facts: MarketFacts, names: dict[int, str]) -> list[str]:
    lines = [f"[{market.market_id}] {market.question}"]
    if market.answer is not None:
        lines.append(f"Answered: {market.answer}. Its shares have been paid out.")
        return lines
    if market.due is not None:
        when = "this step" if market.due <= facts.step else f"step {market.due}"
        lines.append(f"It is answered at the end of {when}.")
    lines.append(f"Prices: YES ${market.price_yes:.3f}, NO ${market.price_no:.3f}.")
    if len(market.past_prices) > 1:
        lines.append("YES in the last steps: " + ", ".join(f"${price:.3f}" for price in market.past_prices) + ".")
    if market.yes_quote is not None and market.no_quote is not None:
        yes, no = floor_shares(market.yes_quote), floor_shares(market.no_quote)
        lines.append(f"${facts.quote_dollars:g} would buy {yes:.2f} YES or {no:.2f} NO shares.")
    if not market.is_open:
        lines.append("Closed: it takes no trades until it is answered.")
    lines.append(f"You hold {floor_shares(market.yes_held):.2f} YES and {floor_shares(market.no_held):.2f} NO shares.")
    for comment in market.comments:
        name = one_line(names.get(comment.actor, ""), MAX_NAME) or f"Trader {comment.actor}"
        lines.append(f"- {name} says: {quoted(comment.text, REMARK_CHARACTERS)}")
    return lines
