"""Which answers a question allows, and answers of people that it does not: codes of missing values, mostly."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import PydanticUserError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.people.answers import as_choice_names
from mesa_llm.tables import number_in
from mesa_llm.text import clip, counted

MAX_SHOWN = 5
"""Maximum number of answers that a message shows."""

_CODE = re.compile(r"-?([6-9])\1*|-?9+[5-9]|-\d+")
"""A number that questionnaires use for a missing answer, such as 9, 99, 888, 97 or -1."""


@dataclass(frozen=True)
class AnswerScale:
    """Answers that a question allows."""

    low: float = -math.inf
    """The lowest number."""

    high: float = math.inf
    """The highest number."""

    choices: tuple[str, ...] = ()
    """Names of the choices, as `as_choice_names` gives them; empty for numbers."""

    def __contains__(self, answer: Any) -> bool:
        """Check whether an answer is allowed."""
        if self.choices:
            return as_choice_names([answer])[0] in self.choices
        try:
            number = number_in(answer)
        except ConfigError:
            return True  # it is refused where it is read
        if number is None:  # a code with its label, or a word such as "refused"
            return isinstance(answer, str) and any(map(str.isdigit, answer))
        return self.low <= number <= self.high

    def __str__(self) -> str:
        """Describe the answers, for people to read."""
        if self.choices:
            return clip(", ".join(map(repr, self.choices)), 200)
        return f"{self.low:g} to {self.high:g}"


def scale_of(answer: Any) -> AnswerScale | None:
    """Return the answers that a type allows; None if it has no bounds.

    Args:
        answer: A type, as in `Question.answer`, or the lowest and highest number.
    """
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        low, high = cast("Sequence[float]", answer)
        return AnswerScale(low, high)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", answer))
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, TypeError):
        return None
    options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    return _of_schema(options[0]) if len(options) == 1 else None


def _of_schema(schema: Mapping[str, Any]) -> AnswerScale | None:
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values or schema.get("type") == "boolean":
        return AnswerScale(choices=tuple(dict.fromkeys(as_choice_names(values or [True, False]))))
    bounds = [schema.get(name) for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")]
    if all(bound is None for bound in bounds):
        return None
    low, high = ([float(one) for one in pair if one is not None] for pair in (bounds[:2], bounds[2:]))
    return AnswerScale(low[0] if low else -math.inf, high[0] if high else math.inf)


def within_scale(answers: Sequence[Any], scale: AnswerScale, question: str, source: str) -> tuple[list[Any], list[str]]:
    """Return answers with None for those that a question does not allow, and what is to be said about it.

    Raises:
        ConfigError: If it allows none of them.
    """
    kept = [one if one is not None and one in scale else None for one in answers]
    odd = [one for one, own in zip(answers, kept, strict=True) if one is not None and own is None]
    if not odd:
        return kept, []
    shown = clip(", ".join(map(repr, list(dict.fromkeys(odd))[:MAX_SHOWN])), 120)
    if all(one is None for one in kept):
        raise ConfigError(f"{source} has no answer to {question!r:.80} that it allows: found {shown}; wanted {scale}")
    note = f"{source}: {counted(len(odd), 'answer')} to {question!r:.60} taken for missing ({shown}); it allows {scale}"
    return kept, [note]


def odd_codes(theirs: Sequence[Any], ours: Sequence[Any], question: str, source: str) -> list[str]:
    """Say which of people's numbers look like codes of missing answers, beside simulated ones.

    Args:
        theirs: People's answers.
        ours: Simulated answers.
        question: Name of the question.
        source: Name of the table of people.
    """
    people, simulated = ([float(one) for one in own if _is_number(one)] for own in (theirs, ours))
    if not people or not simulated:
        return []
    low, high = min(simulated), max(simulated)
    span = max(high - low, 1.0)
    far = [one for one in people if not low - 1 <= one <= high + 1]
    odd = [one for one in dict.fromkeys(far) if _CODE.fullmatch(f"{one:g}") or not low - span <= one <= high + span]
    if not odd:
        return []
    shown = ", ".join(f"{one:g}" for one in odd[:MAX_SHOWN])
    n = sum(one in odd for one in people)
    return [
        f"{source}: {counted(n, 'answer')} to {question!r:.60} far from the simulated {low:g} to {high:g} ({shown}); "
        f"if these are codes of missing answers, give scales={{{question!r:.60}: (lowest, highest)}} "
        "(--scale)"
    ]


def doubtful_numbers(theirs: Sequence[Any], ours: Sequence[Any], question: str, source: str) -> list[str]:
    """Say where people's numbers and simulated ones may be written in two ways: shares, first points, several answers.

    Args:
        theirs: People's answers.
        ours: Simulated answers.
        question: Name of the question.
        source: Name of the table of people.
    """
    simulated = [float(one) for one in ours if _is_number(one)]
    people = [float(one) for one in theirs if _is_number(one)]
    pairs = [one.strip() for one in theirs if isinstance(one, str) and re.fullmatch(r"\s*\d,\d\s*", one)]
    are_whole = all(one.is_integer() for one in [*people, *simulated])
    where = f"{source}: {question!r:.60}"
    if pairs and are_whole and simulated:
        return [f"{where}: {pairs[0]!r} is read as {pairs[0].replace(',', '.')}; if it is two answers, split it"]
    if not people or not simulated:
        return []
    if (_are_shares(people) and max(simulated) > 2) or (_are_shares(simulated) and max(people) > 2):
        return [
            f"{where}: one side has numbers up to 1, the other up to {max(*people, *simulated):g}; write both alike"
        ]
    if are_whole and min(people) == 0 < min(simulated) and 1 < max(people) < max(simulated):
        return [
            f"{where}: people's answers begin at 0, simulated ones at {min(simulated):g}; if both mean one scale, "
            "shift one of them"
        ]
    return []


def _are_shares(numbers: Sequence[float]) -> bool:
    return min(numbers) >= 0 and max(numbers) <= 1 and not all(one.is_integer() for one in numbers)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)
