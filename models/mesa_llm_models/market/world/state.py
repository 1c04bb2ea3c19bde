"""Records of the prediction markets: questions, markets, portfolios, trades and comments."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Literal

from mesa_llm_models.market.world.makers import Maker, Outcome

SLUG_CHARACTERS = 40
"""Maximum number of characters of an id made from a question."""

NUMBERED_SLUG_CHARACTERS = 45
"""Maximum number of characters of an id with a number at the end for uniqueness."""


@dataclass(frozen=True, slots=True)
class MarketQuestion:
    """A question with two answers."""

    text: str
    """The question."""

    price_yes: float = 0.5
    """YES price before the first trade."""

    due: int | None = None
    """Step at the end of which it is resolved, shown to traders; None if not shown."""


@dataclass(frozen=True, slots=True)
class TradeLimits:
    """Maximum size of a trade; None for no limit."""

    dollars: float | None = None
    """Maximum number of dollars that may change hands."""

    price_move: float | None = None
    """Maximum change of a price, as a difference of probabilities."""


@dataclass(slots=True)
class Market:
    """The market of one question. Its maker changes with every trade."""

    market_id: str
    """Id used in actions."""

    question: MarketQuestion
    """The question."""

    maker: Maker
    """The market maker, counterparty of every trade."""

    maker_cash: float
    """Dollars of the maker: its subsidy, plus receipts, less payments."""

    prices_yes: list[float]
    """YES price at the opening, at the end of every step, and at resolution."""

    fees: float = 0.0
    """Dollars of fees collected here."""

    is_open: bool = True
    """Whether it is open for trading."""

    answer: Outcome | None = None
    """The right answer, once it is known."""


@dataclass(slots=True)
class Portfolio:
    """Cash and shares of one trader."""

    cash: float
    """Dollars."""

    shares: dict[str, dict[Outcome, float]] = field(default_factory=dict[str, dict[Outcome, float]])
    """Shares by market and answer. A market appears with the first share bought there."""

    def shares_of(self, market_id: str, outcome: Outcome) -> float:
        """Return the number of shares of one answer."""
        return self.shares.get(market_id, {}).get(outcome, 0.0)

    def add(self, market_id: str, outcome: Outcome, shares: float) -> None:
        """Add shares of one answer."""
        self.shares.setdefault(market_id, {"yes": 0.0, "no": 0.0})[outcome] += shares


@dataclass(frozen=True, slots=True)
class Trade:
    """One executed trade."""

    agent_id: int
    """Mesa `unique_id` of the trader."""

    side: Literal["buy", "sell"]
    """Whether the trader bought or sold."""

    market_id: str
    """The market."""

    outcome: Outcome
    """The answer traded."""

    shares: float
    """Shares traded."""

    dollars: float
    """Dollars paid, including the fee, or received, net of the fee."""

    fee: float
    """Dollars of the fee."""

    price: float
    """Price of the traded answer after the trade."""

    price_yes: float
    """YES price after the trade, whichever answer was traded."""

    step: int
    """Step of the trade."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a market, for everyone to read."""

    agent_id: int
    """Mesa `unique_id` of its author."""

    market_id: str
    """The market."""

    text: str
    """The comment."""

    step: int
    """Step of the comment."""


def question_slug(question: str) -> str:
    """Make an id from a question: lower case, `_` between words, at most 40 characters. May be empty."""
    return re.sub(r"[^a-z0-9]+", "_", question.lower()).strip("_")[:SLUG_CHARACTERS]


def unused_slug(question: str, slugs: Container[str], *, keep_readable: bool = True) -> str:
    """Make an unused market id, with a number from 2 on where needed.

    Args:
        question: The question.
        slugs: Ids in use.
        keep_readable: Write accented letters without accents, and never return an empty id. False for SimSwarm's
            behaviour.
    """
    if keep_readable:
        ascii_text = unicodedata.normalize("NFKD", question).encode("ascii", "ignore").decode()
        base = _whole_words(question_slug(ascii_text), ascii_text) or "market"
    else:
        base = question_slug(question)
    slug, number = base, 2
    while slug in slugs:
        suffix = f"_{number}"
        slug = base[: NUMBERED_SLUG_CHARACTERS - len(suffix)] + suffix
        number += 1
    return slug


def _whole_words(slug: str, question: str) -> str:
    """Return an id without a last word that was cut, unless it is the only one."""
    next_character = re.sub(r"[^a-z0-9]+", "_", question.lower()).strip("_")[len(slug) : len(slug) + 1]
    is_cut = next_character not in ("", "_") and not slug.endswith("_")
    return (slug.rpartition("_")[0] or slug if is_cut else slug).rstrip("_")
