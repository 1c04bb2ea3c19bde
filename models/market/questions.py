"""Invented questions about a small town, and how likely each is to come true."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from mesa_llm.errors import ConfigError

QUESTIONS = (
    "Will it rain on market day?",
    "Will the old bridge be open again before the holidays?",
    "Will the town's football team win its next match?",
    "Will the bakery on the square sell out by noon?",
    "Will the council vote for the new bicycle lane?",
    "Will the night train stop here again this year?",
    "Will more than 300 people come to the spring fair?",
    "Will the library lend more books than last month?",
    "Will the river rise above the two-metre mark?",
    "Will the school choir reach the final?",
    "Will the price of firewood fall before winter?",
    "Will the mayor stand for another term?",
    "Will the cinema show a film in the open air this summer?",
    "Will the first snow fall before the end of the month?",
    "Will the storks come back to the mill this year?",
    "Will the new café still be open in a year?",
    "Will the ferry run on Sundays from now on?",
    "Will the apple harvest be larger than last year's?",
    "Will the town hall clock be repaired in time?",
    "Will the broken street lamps be replaced this week?",
)
"""What is asked where nobody asks anything else."""

LEAST_CHANCE = 0.02
"""Chances nearer to 0 or 1 are known to traders as this much."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one question. No trader sees this."""

    text: str
    """The question."""

    chance: float
    """Probability of yes, 0 to 1; traders have hints of it."""

    is_yes: bool
    """The answer."""

    due: int
    """Step in which it is answered."""


def fates(texts: Sequence[str], chances: Sequence[float] | None, horizon: int, rng: random.Random) -> list[Fate]:
    """Draw what becomes of questions.

    Args:
        texts: The questions.
        chances: Probability of yes of each; None: drawn, uniform from 0.05 to 0.95.
        horizon: Step in which the last question is answered; the others are answered before, evenly spread.
        rng: Source of draws.

    Raises:
        ConfigError: If there are no questions, or one text instead of a list, or not one probability for each.
    """
    if isinstance(texts, str):
        raise ConfigError(f"questions are a list of texts, got one text: {texts[:80]!r}; write [{texts[:80]!r}]")
    if not texts:
        raise ConfigError("a market needs at least one question")
    if horizon < 1:
        raise ConfigError(f"horizon is the step of the last answer, from 1 on; got {horizon}")
    likely = [rng.uniform(0.05, 0.95) for _ in texts] if chances is None else [float(chance) for chance in chances]
    if len(likely) != len(texts) or not all(0 <= chance <= 1 for chance in likely):
        raise ConfigError(f"chances are one number from 0 to 1 for each of {len(texts)} questions, got {likely}")
    n = len(texts)
    return [
        Fate(text, chance, rng.random() < chance, math.ceil(horizon * (place + 1) / n))
        for place, (text, chance) in enumerate(zip(texts, likely, strict=True))
    ]


def asked(n: int) -> list[str]:
    """Give invented questions; beyond the stock they come again, for a later year."""
    years = ("", *(f" (year {year})" for year in range(2, n // len(QUESTIONS) + 2)))
    return [f"{text}{year}" for year in years for text in QUESTIONS][:n]


def hint(chance: float, noise: float, rng: random.Random) -> float:
    """Draw what one trader finds out: the chance, off by a normal error of its log-odds.

    Args:
        chance: Probability of yes, 0 to 1.
        noise: Standard deviation of the error, in units of log-odds.
        rng: Source of draws.

    Returns:
        A probability between 0 and 1, both excluded.
    """
    kept = min(max(chance, LEAST_CHANCE), 1 - LEAST_CHANCE)
    return expit(math.log(kept / (1 - kept)) + rng.gauss(0.0, noise))


def expit(log_odds: float) -> float:
    """Turn log-odds into a probability, kept within 0.001 of the ends."""
    return min(max(1 / (1 + math.exp(-min(max(log_odds, -50.0), 50.0))), 0.001), 0.999)
