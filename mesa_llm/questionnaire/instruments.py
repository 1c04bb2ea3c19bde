"""Instruments: scales, keys, and the scores of numbered answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar

from mesa_llm.questionnaire.items import Answers, Item

Mode = Literal["sum", "mean"]
"""Way to combine keyed answers into a score."""


Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Scale:
    """Numbered answers with their key: a reversed item counts `low + high - answer`."""

    low: int
    """Lowest answer."""

    high: int
    """Highest answer."""

    reversed_items: frozenset[int] = frozenset()
    """Numbers of the reversed items."""

    anchors: Mapping[int, str] = field(default_factory=dict, compare=False)
    """Answer → its label; not every answer needs one."""

    @property
    def choices(self) -> tuple[int, ...]:
        """All answers, lowest first."""
        return tuple(range(self.low, self.high + 1))

    @property
    def middle(self) -> float:
        """Mean of uniformly random answers."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:
        """Variance of a random answer, from a discrete uniform distribution."""
        return ((self.high - self.low + 1) ** 2 - 1) / 12

    def keyed(self, item: int, answer: Number) -> Number:
        """Return the keyed value of an answer.

        Raises:
            ValueError: If the answer is not on the scale.
        """
        if not self.low <= answer <= self.high:
            raise ValueError(f"outside {self.low}..{self.high}: {{{item}: {answer}}}")
        return self.low + self.high - answer if item in self.reversed_items else answer

    def score(self, answers: Answers) -> float:
        """Sum the keyed values of answers.

        Args:
            answers: Item number → answer.

        Raises:
            ValueError: If answers are not on the scale. The message names them.
        """
        if outside := {item: answer for item, answer in answers.items() if not self.low <= answer <= self.high}:
            raise ValueError(f"outside {self.low}..{self.high}: {outside}")
        return sum(self.keyed(item, answer) for item, answer in answers.items())


@dataclass(frozen=True)
class Norm:
    """Published score of a group of people."""

    group: str
    """Name of the group."""

    mean: float
    """Mean of their scores."""

    sd: float
    """Sample standard deviation of their scores."""

    n: int
    """Number of people."""


@dataclass(frozen=True)
class Subscale:
    """A score of an instrument."""

    name: str
    """Name of the score."""

    items: tuple[int, ...]
    """Numbers of its items."""

    mode: Mode = "mean"
    """Whether keyed answers are summed or averaged."""

    factor: float = 1
    """Factor applied to the sum or mean."""

    norms: tuple[Norm, ...] = ()
    """Published scores; empty if there are none for exactly these items."""


@dataclass(frozen=True)
class Instrument:
    """A questionnaire with one scale for all its items, and its scores."""

    name: str
    """Its name."""

    instructions: str
    """Text before the items."""

    items: Mapping[int, str]
    """Item number, from 1 → text. Items in no subscale are asked but not scored."""

    scale: Scale
    """Answers, and which items are reversed."""

    subscales: tuple[Subscale, ...]
    """The scores."""

    group: str = ""
    """Kind of instrument, for tables and plots."""

    is_original: bool = False
    """Whether these are exactly the items of the norms."""

    def __post_init__(self) -> None:
        """Check that keys and items are consistent.

        Raises:
            ValueError: If a subscale or the key names an unknown item, two subscales share a name, one has no name, or
                a subscale repeats an item or has none.
        """
        keyed = {number for subscale in self.subscales for number in subscale.items} | self.scale.reversed_items
        if unknown := sorted(keyed - set(self.items)):
            raise ValueError(f"{self.name}: the key names unknown items {unknown}")
        names = [subscale.name for subscale in self.subscales]
        has_names = all(name.strip() for name in names) and len(set(names)) == len(names)
        if not has_names or not all(subscale.items for subscale in self.subscales):
            raise ValueError(f"{self.name}: each subscale needs a unique name and at least one item, got {names}")
        for subscale in self.subscales:
            if repeated := sorted(number for number, times in Counter(subscale.items).items() if times > 1):
                raise ValueError(f"{self.name}: {subscale.name} counts items {repeated} more than once; name each once")

    def only(self, subscales: Collection[str]) -> Instrument:
        """Return the instrument with some of its scores, and the items of these alone.

        Args:
            subscales: Names of the scores.

        Raises:
            ValueError: If it has none of them.
        """
        kept = tuple(subscale for subscale in self.subscales if subscale.name in subscales)
        numbers = {number for subscale in kept for number in subscale.items}
        if not kept:
            names = ", ".join(subscale.name for subscale in self.subscales)
            raise ValueError(f"{self.name} has none of the scores {sorted(subscales)}; it has {names}")
        items = {number: text for number, text in self.items.items() if number in numbers}
        scale = replace(self.scale, reversed_items=self.scale.reversed_items & numbers)
        return replace(self, items=items, subscales=kept, scale=scale)

    def item(self, number: int) -> Item:
        """Return an item to ask; its label is `NAME NUMBER`, its facts are the instrument and the number."""
        is_reversed = number in self.scale.reversed_items
        label, text = f"{self.name} {number}", self.items[number]
        return Item(label, text, self.scale.choices, (self, number), self.name, is_reversed)

    def items_in(self, order: Sequence[int] | None = None) -> list[Item]:
        """Return the items to ask.

        Args:
            order: Item numbers in order of presentation; None for numerical order.
        """
        return [self._items[number] for number in (self.items if order is None else order)]

    @cached_property
    def _items(self) -> dict[int, Item]:
        return {number: self.item(number) for number in self.items}

    def score(self, answers: Answers) -> dict[str, float | None]:
        """Compute the scores of one administration.

        Args:
            answers: Item number → answer.

        Returns:
            Name of each subscale → its score; None if one of its items has no answer.

        Raises:
            ValueError: If an answer is not on the scale.
        """
        return {subscale.name: self._score(subscale, answers) for subscale in self.subscales}

    def _score(self, subscale: Subscale, answers: Answers) -> float | None:
        scored = {number: answers[number] for number in subscale.items if number in answers}
        if len(scored) < len(subscale.items):
            return None
        total = self.scale.score(scored)
        return subscale.factor * (total / len(scored) if subscale.mode == "mean" else total)

    def score_range(self, subscale: Subscale) -> tuple[float, float]:
        """Return the lowest and highest possible score."""
        n = 1 if subscale.mode == "mean" else len(subscale.items)
        return subscale.factor * n * self.scale.low, subscale.factor * n * self.scale.high

    def random_mean(self, subscale: Subscale) -> float:
        """Return the expected score of random answers."""
        n = 1 if subscale.mode == "mean" else len(subscale.items)
        return subscale.factor * n * self.scale.middle

    def random_sd(self, subscale: Subscale) -> float:
        """Return the standard deviation of the score of random answers."""
        n = len(subscale.items)
        spread = math.sqrt(self.scale.variance * n)
        return subscale.factor * (spread / n if subscale.mode == "mean" else spread)


def require_texts(name: str, items: Mapping[int, str]) -> None:
    """Check that every item in a file has a text.

    Args:
        name: Name of the instrument.
        items: Item number → text.

    Raises:
        ValueError: If some are blank. The message names them.
    """
    if blank := [number for number, text in items.items() if not text.strip()]:
        raise ValueError(f"{name}: items {blank} are blank; expected a text for each")
