"""The records of the prediction markets: questions, markets, what traders own, and what was traded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Literal

from mesa_llm.worlds.market.makers import Maker, Outcome

SLUG_CHARACTERS = 40
"""Longest id made from a question."""

NUMBERED_SLUG_CHARACTERS = 45
"""Longest id once a number keeps it apart from others."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with two answers, and what is first thought of it."""

    text: str
    """The question."""

    price_yes: float = 0.5
    """Price of YES before the first trade."""

    due: int | None = None
    """Step at whose end it is answered, as traders are told; None: they are not told."""


@dataclass(frozen=True, slots=True)
class TradeLimits:
    """How large one trade may be; None: no limit."""

    dollars: float | None = None
    """Most dollars that may change hands."""

    price_move: float | None = None
    """Most by which it may move a price, as a difference of probabilities."""


@dataclass(slots=True)
class Market:
    """The market of one question. Its maker changes with every trade."""

    market_id: str
    """What actions name it by."""

    question: Question
    """What it asks."""

    maker: Maker
    """Who trades with everyone."""

    maker_cash: float
    """Dollars the maker has: its subsidy, and what it took in less what it paid."""

    prices_yes: list[float]
    """Price of YES at the opening, at the end of every step, and when the question was answered."""

    fees: float = 0.0
    """Dollars of fees collected here."""

    is_open: bool = True
    """Whether it takes trades."""

    answer: Outcome | None = None
    """The right answer, once it is known."""


@dataclass(slots=True)
class Portfolio:
    """What one trader owns."""

    cash: float
    """Dollars."""

    shares: dict[str, dict[Outcome, float]] = field(default_factory=dict[str, dict[Outcome, float]])
    """Shares by market and answer; a market appears with the first share bought there."""

    def held(self, market_id: str, outcome: Outcome) -> float:
        """Count the shares held of one answer."""
        return self.shares.get(market_id, {}).get(outcome, 0.0)

    def add(self, market_id: str, outcome: Outcome, shares: float) -> None:
        """Put shares to those held."""
        self.shares.setdefault(market_id, {"yes": 0.0, "no": 0.0})[outcome] += shares


@dataclass(frozen=True, slots=True)
class Trade:
    """One trade that took place."""

    actor: int
    """Mesa `unique_id` of the trader."""

    side: Literal["buy", "sell"]
    """What the trader did."""

    market_id: str
    """The market."""

    outcome: Outcome
    """The answer traded."""

    shares: float
    """Shares that changed hands."""

    dollars: float
    """Dollars the trader paid, fee included, or received, fee taken off."""

    fee: float
    """Dollars of the fee."""

    price: float
    """Price of the traded answer afterwards."""

    price_yes: float
    """Price of YES afterwards, whatever was traded."""

    step: int
    """Step in which it took place."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A remark on a market, for everyone to read."""

    actor: int
    """Mesa `unique_id` of who wrote it."""

    market_id: str
    """The market it is about."""

    text: str
    """The remark."""

    step: int
    """Step in which it was made."""


def question_slug(question: str) -> str:
    """Make an id of a question: lower case, `_` between words, 40 characters; it may be empty."""
    return re.sub(r"[^a-z0-9]+", "_", question.lower()).strip("_")[:SLUG_CHARACTERS]


def unused_slug(question: str, taken: Container[str], *, keep_readable: bool = True) -> str:
    """Make an id that no other market has, by a number from 2 on if need be.

    Args:
        question: The question.
        taken: Ids in use.
        keep_readable: Write accented letters without their accents, and never return an empty id; False is
            what SimSwarm does.
    """
    if keep_readable:
        plain = unicodedata.normalize("NFKD", question).encode("ascii", "ignore").decode()
        base = question_slug(plain).rstrip("_") or "market"
    else:
        base = question_slug(question)
    slug, number = base, 2
    while slug in taken:
        ending = f"_{number}"
        slug = base[: NUMBERED_SLUG_CHARACTERS - len(ending)] + ending
        number += 1
    return slug
