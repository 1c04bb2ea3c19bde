"""The text that a trader reads of the prediction markets."""

from __future__ import annotations

import math

from mesa_llm.text import MAX_NAME, one_line, quoted, sentences
from mesa_llm_models.market.world.facts import MarketFacts, MarketView, floor_shares
from mesa_llm_models.market.world.state import Market, Trade, TradeLimits

INSTRUCTIONS = (
    "You trade in prediction markets. Every market asks a question. Once it is answered, each share of the "
    "right answer pays $1 and each share of the other answer pays nothing. A price is therefore the traders' joint "
    "estimate of the probability of that answer: buy what you think is too cheap, sell what you think is too "
    "expensive. Buying an answer raises its price, selling lowers it, and a large trade moves its own price."
)
"""Text that all traders read first, under the corrected rules."""

ORIGINAL_INSTRUCTIONS = (
    "You trade in prediction markets. Every market asks a question and has YES shares and NO shares. Buying "
    "an answer raises its percentage, selling lowers it."
)
"""The same under SimSwarm's rules, where shares never pay anything."""


def instructions(fee: float, limits: TradeLimits) -> str:
    """Write the text that all traders read first under the corrected rules, with the fee and the limits of a trade.

    Args:
        fee: Share of the dollars of a trade that is kept as a fee.
        limits: Limits of one trade.
    """
    sentences = [INSTRUCTIONS]
    if fee:
        sentences.append(f"The house keeps {fee * 100:.4g}% of the dollars of every trade; quotes are after this fee.")
    if limits.dollars is not None:
        sentences.append(f"A single trade may be worth at most ${limits.dollars:,.2f}.")
    if limits.price_move is not None:
        sentences.append(f"A single trade may move a price by at most ${limits.price_move:g}.")
    return " ".join(sentences)


def trade_text(trade: Trade, *, has_sold: bool = False) -> str:
    """Report a trade to the trader."""
    did = "sold" if has_sold else "bought"
    return (
        f"You {did} {trade.shares:.2f} {trade.outcome.upper()} shares of [{trade.market_id}] for ${trade.dollars:.2f}."
    )


def comment_text(market_id: str) -> str:
    """Report a remark to its author."""
    return f"You wrote about [{market_id}]."


def market_line(market: Market) -> str:
    """List a market: its id, question and prices."""
    prices = f"YES ${market.maker.price('yes'):.3f}, NO ${market.maker.price('no'):.3f}"
    return f"[{market.market_id}] {market.question.text} {prices}" + ("" if market.is_open else " (closed)")


REMARK_CHARACTERS = 500
"""Maximum number of characters of a remark."""


def write_corrected(facts: MarketFacts, names: dict[int, str]) -> str:
    """Write what a trader sees under the corrected rules.

    Args:
        facts: What it sees, as values.
        names: Trader id → name; traders without one go by their id.
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
        f"{market.price_no * 100:.0f}%. You hold {market.yes_shares} YES and {market.no_shares} NO."
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
    if market.yes_for_all is not None and market.no_for_all is not None:
        yes_all, no_all = market.yes_for_all, market.no_for_all
        lines.append(
            f"The most that you could spend, ${yes_all.dollars:.2f}, would buy {floor_shares(yes_all.shares):.2f} YES "
            f"shares and move YES to ${yes_all.price:.3f}, or {floor_shares(no_all.shares):.2f} NO shares and move NO "
            f"to ${no_all.price:.3f}."
        )
    if not market.is_open:
        lines.append("Closed: no trades are taken until it is answered.")
    lines.append(
        f"You hold {floor_shares(market.yes_shares):.2f} YES and {floor_shares(market.no_shares):.2f} NO shares."
    )
    for comment in market.comments:
        name = one_line(names.get(comment.agent_id, ""), MAX_NAME) or f"Trader {comment.agent_id}"
        lines.append(f"- {name} says: {quoted(comment.text, REMARK_CHARACTERS)}")
    return lines


REASONS = {
    "cash": "${amount:.10g} is more than the ${cash:.2f} of cash you have.",
    "shares": "you hold {owned:.2f} {side} shares of [{market_id}], not {shares:.10g}.",
    "empty": "the remark is empty; write what you want to say.",
    "no_market": "there is no market {market_id!r}; choose one of: {markets}.",
    "not_finite": "the {name} must be a finite number, got {size}.",
    "closed": "market [{market_id}] is closed and takes no trades.",
    "too_large": "this trade is worth ${dollars:.2f}; one trade may be worth ${maximum:.2f} at most.",
    "too_far": "this trade would move the price by {move:.3f}; one may move it by {maximum:g} at most.",
    "no_outcome": "there is no answer {outcome!r}; say yes or no.",
    "not_positive": "the {name} must be positive, got {size:.10g}.",
    "no_variable": (
        "{variable} = {value!r}; wanted fee, a share from 0 on and below 1, or max_trade_dollars or max_trade_move, "
        "above 0 or null"
    ),
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)
