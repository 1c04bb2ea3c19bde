"""Items, and sheets that present one or more of them to an agent at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import WithJsonSchema

Answer = int | str
"""Answer to an item: one of its choices, or a free text."""

PAGE = ", page "
"""Stands between the name of a questionnaire and the number of a page in the label of a sheet."""


DRAW = ", draw "
"""Stands between the label of a sheet that is handed out several times and the number of its draw."""


@dataclass(frozen=True)
class Item:
    """One question or statement."""

    label: str
    """Name of the item, unique on a sheet; answers are counted by this label."""

    text: str
    """The statement or question for respondents."""

    choices: tuple[Answer, ...] = ()
    """All possible answers, either all numbers or all texts; empty for free text."""

    facts: Any = field(default=None, compare=False)
    """Further facts about it, for rule twins and scores."""

    series: str = ""
    """Name of its instrument, whose answers are judged together; empty if it stands alone."""

    is_reversed: bool = False
    """Whether it is keyed against the other items of its instrument."""


@dataclass(frozen=True)
class Sheet:
    """The questions of one turn: one item, or a page of several, in the order of presentation."""

    label: str
    """Name of the sheet, unique among an agent's sheets in a step."""

    items: tuple[Item, ...]
    """The items, in the order of presentation."""

    text: str = ""
    """Text before the items: a situation, or the meaning of the numbers."""

    instructions: str = ""
    """Instructions shared by all sheets of a questionnaire; they precede the agent's persona."""

    @classmethod
    def of(cls, item: Item, text: str = "", instructions: str = "") -> Sheet:
        """Put one item on its own sheet, labelled like the item."""
        return cls(item.label, (item,), text, instructions)

    def drawn(self, n_draws: int) -> list[Sheet]:
        """Return the sheet as often as it is handed out, labelled `LABEL, draw 2` where that is more than once.

        Args:
            n_draws: Number of times.
        """
        if n_draws == 1:
            return [self]
        return [replace(self, label=f"{self.label}{DRAW}{number}") for number in range(1, n_draws + 1)]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Numbers of the items on the page, from 1."""
        return _numbers(len(self.items))

    def numbered(self, given: Mapping[str, Answer]) -> dict[str, Answer]:
        """Return answers by number on the page instead of by item label."""
        pairs = zip(self.numbers, self.items, strict=True)
        return {number: given[item.label] for number, item in pairs if item.label in given}

    @property
    def answer(self) -> Any:
        """The type of its answer: that of its only item, or an object of answers by number on the page, from 1.

        A language model is offered only the choices. Other numbers are accepted too, so `Questionnaire` can count them.
        """
        return _answer(tuple(item.choices for item in self.items))


@lru_cache(maxsize=512)
def _numbers(n_items: int) -> tuple[str, ...]:
    return tuple(map(str, range(1, n_items + 1)))


@lru_cache(maxsize=512)
def _answer(choices: tuple[tuple[Answer, ...], ...]) -> Any:
    if len(choices) == 1:
        kind = int if choices[0] and all(isinstance(choice, int) for choice in choices[0]) else str
        return Annotated[kind, WithJsonSchema(_schema(choices[0]))] if choices[0] else str
    properties = {str(number): _schema(options) for number, options in enumerate(choices, 1)}
    page = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return Annotated[dict[str, Any], WithJsonSchema(page)]


def _schema(choices: tuple[Answer, ...]) -> dict[str, Any]:
    if not choices:
        return {"type": "string"}
    return {"type": "integer" if isinstance(choices[0], int) else "string", "enum": list(choices)}


def pages(items: Sequence[Item], size: int | None) -> Iterator[tuple[Item, ...]]:
    """Divide items into pages, in order.

    Args:
        items: The items.
        size: Maximum number of items on a page; None for all on one.
    """
    size = len(items) if size is None else size
    for start in range(0, len(items), max(size, 1)):
        yield tuple(items[start : start + size])


def sheets_of(
    label: str,
    items: Sequence[Item],
    *,
    per_sheet: int | None = 1,
    text: str = "",
    instructions: str = "",
) -> list[Sheet]:
    """Put items on sheets, in the given order.

    Args:
        label: Name of the questionnaire. A page is named `LABEL, page 2`, a sheet with one item like the item.
        items: The items, in the order of presentation.
        per_sheet: Maximum number of items on a sheet; None for all on one.
        text: Text before the items of each sheet.
        instructions: Instructions shared by all sheets.
    """
    if per_sheet == 1:
        return [Sheet.of(item, text, instructions) for item in items]
    parts = list(pages(items, per_sheet))
    names = [label] if len(parts) == 1 else [f"{label}{PAGE}{number}" for number in range(1, len(parts) + 1)]
    return [Sheet(name, part, text, instructions) for name, part in zip(names, parts, strict=True)]


def in_item_order(order: Sequence[int], presented: Sequence[Any]) -> dict[int, Any]:
    """Map answers in the order of presentation back to item numbers.

    Args:
        order: Item number of each answer, as a permutation of 1 … n.
        presented: The answers, in the order of presentation.

    Returns:
        Item number → answer, by item number.

    Raises:
        ValueError: If the order is not a permutation, or its length differs from the number of answers.
    """
    if sorted(order) != list(range(1, len(order) + 1)) or len(presented) != len(order):
        raise ValueError(f"{len(presented)} answers and the order {list(order)!r:.80} are not a permutation of 1 … n")
    return dict(sorted(zip(order, presented, strict=True)))


def read_choice(item: Item, value: Any) -> Answer | None:
    """Read an answer as a number or text, depending on the item. It need not be among the choices.

    Returns:
        The answer; None if it has the wrong type.
    """
    if type(value) is int and value in item.choices:  # the usual case, checked first for speed
        return value
    if not item.choices or isinstance(item.choices[0], str):
        return value if isinstance(value, str) else None
    if isinstance(value, str):
        digits = value.strip().removeprefix("-")
        return int(value) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > 1e9:
        return None
    return int(value) if value == int(value) else None


Answers = Mapping[int, float]
"""Item number → answer; an expected answer, where the probabilities of all answers are known."""
