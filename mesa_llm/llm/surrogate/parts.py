"""The parts of a surrogate: models of one choice or one number, and what they choose from."""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import OutsideSurrogate
from mesa_llm.llm.schema.flat import Schema, choices, flat_schema, narrow
from mesa_llm.llm.schema.ranges import number_range
from mesa_llm.records import Request

DIGITS = 9
"""Number of decimals to which probabilities are rounded before anything is drawn."""

OPEN_END = 1e-6
"""Distance from a bound that a number must not reach."""

Scalar = str | int | float | bool | None
"""A value that may be chosen."""

Bounded = Annotated[float, Field(ge=-1e12, le=1e12)]
"""A number of a file, small enough that no sum of products overflows."""

Weights = Annotated[list[Bounded], Field(max_length=2_000)]


def offered(request: Request) -> Schema:
    """Return what a request allows, as a flat schema: an `anyOf` of actions with arguments, or an object of answers.

    Raises:
        OutsideSurrogate: If it asks for free text.
        Refused: If nothing is possible.
    """
    if request.schema is not None:
        narrowed = narrow(flat_schema(request.schema), request.options)
        if narrowed is not None and narrowed.get("type") == "object":
            return narrowed
    elif actions := [tool for tool in request.tools if tool.is_action]:
        return {"anyOf": choices(actions, request.options)}
    raise OutsideSurrogate("it decides among actions or gives typed answers, and was asked for a text")


def actions_of(offer: Schema) -> dict[str, Schema]:
    """Return the schema of the arguments of each action that is offered; of an answer, its own under no name."""
    if "anyOf" not in offer:
        return {"": offer}
    fields = [alternative["properties"] for alternative in offer["anyOf"]]
    return {properties["action"]["enum"][0]: properties["arguments"] for properties in fields}


def plain_part(schema: Schema) -> Schema:
    """Return the alternative of a schema that is not null, as an argument that may be left out has."""
    alternatives = [inner for inner in schema.get("anyOf", ()) if inner.get("type") != "null"]
    return alternatives[0] if len(alternatives) == 1 else schema


def listed(schema: Schema) -> list[Any] | None:
    """Return the values that a flat schema lists; None if it lists none."""
    if "enum" in schema:
        return list(schema["enum"])
    return [False, True] if schema.get("type") == "boolean" else None


class FilePart(BaseModel):
    """A record of the file: finite numbers, no unknown fields."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, hide_input_in_errors=True, frozen=True)


class NumberFact(FilePart):
    """A fact that is a number."""

    kind: Literal["number"] = "number"
    minimum: Bounded
    """Smallest value in the recordings."""

    maximum: Bounded
    """Largest value in the recordings."""

    mean: Bounded
    scale: Annotated[float, Field(ge=1e-12, le=1e12)]
    """Standard deviation, by which it is divided."""

    may_be_missing: bool = False
    """Whether some recorded observations lacked it."""


class CategoryFact(FilePart):
    """A fact that is one of a few texts."""

    kind: Literal["category"] = "category"
    values: Annotated[list[str], Field(max_length=500)]
    """Values in the recordings; empty text: the fact was missing."""


Fact = Annotated[NumberFact | CategoryFact, Field(discriminator="kind")]


class Tree(FilePart):
    """A binary tree over the columns of the facts, as arrays over its nodes; node 0 is its root."""

    column: Annotated[list[Annotated[int, Field(ge=-1)]], Field(max_length=500)] = [-1]
    """Column that each node compares; -1: it is a leaf."""

    threshold: Annotated[list[Bounded], Field(max_length=500)] = [0.0]
    """Number up to which the left branch is taken."""

    left: Annotated[list[int], Field(max_length=500)] = [-1]
    right: Annotated[list[int], Field(max_length=500)] = [-1]

    @model_validator(mode="after")
    def _ends(self) -> Self:
        n = len(self.column)
        if not n or any(len(nodes) != n for nodes in (self.threshold, self.left, self.right)):
            raise ValueError("the arrays of a tree must be of one length")
        for index, column in enumerate(self.column):
            if column >= 0 and not (index < self.left[index] < n and index < self.right[index] < n):
                raise ValueError("a branch of a tree must lead to a later node")
        return self

    @property
    def leaves(self) -> list[int]:
        """Its leaves."""
        return [index for index, column in enumerate(self.column) if column < 0]

    def leaf(self, columns: Sequence[float]) -> int:
        """Return the position among its leaves of the one that some columns lead to."""
        node = 0
        while self.column[node] >= 0:
            is_left = columns[self.column[node]] <= self.threshold[node]
            node = self.left[node] if is_left else self.right[node]
        return self.leaves.index(node)


class Choice(FilePart):
    """A choice among values that are the same in every observation, though not all may be offered: a logit."""

    kind: Literal["choice"] = "choice"
    values: Annotated[list[Scalar], Field(min_length=1, max_length=200)]
    intercepts: Weights
    weights: Annotated[list[Weights], Field(max_length=200)]
    """Weight of each column of the facts, and of each leaf of the tree, for each value."""

    tree: Tree = Tree()

    def columns(self, facts: Sequence[float]) -> list[float]:
        """Return the columns of the facts with those of the leaves of its tree."""
        leaf = self.tree.leaf(facts)
        return [*facts, *(float(index == leaf) for index in range(len(self.tree.leaves)))]

    def probabilities(
        self, values: Sequence[Any], facts: Sequence[float], _: Mapping[str, Mapping[str, float]] = MappingProxyType({})
    ) -> list[float]:
        """Return the probability of each value that is offered.

        Raises:
            OutsideSurrogate: If one was never offered in the recordings.
        """
        known = {canonical_json(value): index for index, value in enumerate(self.values)}
        columns = self.columns(facts)
        utilities: list[float] = []
        for value in values:
            index = known.get(canonical_json(value))
            if index is None:
                raise OutsideSurrogate(f"{value!r} was never offered in the recordings")
            utilities.append(self.intercepts[index] + _dot(self.weights[index], columns))
        return softmax(utilities)


class OptionChoice(FilePart):
    """A choice among options that differ from observation to observation, by facts of the options."""

    kind: Literal["options"] = "options"
    facts: dict[str, NumberFact] = {}
    """Numbers known of each option."""

    weights: Weights
    """Weights of the position in the list (0 to 1), and, for each fact: standardised, being highest, being lowest."""

    def columns(self, values: Sequence[Any], known: Mapping[str, Mapping[str, float]]) -> list[list[float]]:
        """Return the columns of each option.

        Args:
            values: The options.
            known: Facts of the options, as `option_facts` finds them.

        Raises:
            OutsideSurrogate: If a fact of an option is unknown, or out of the recorded range.
        """
        last = max(len(values) - 1, 1)
        rows = [[index / last] for index in range(len(values))]
        for name, fact in self.facts.items():
            numbers = [known.get(canonical_json(value), {}).get(name) for value in values]
            for number in numbers:
                require_in_range(f"{name} of an option", number, fact)
            plain = [fact.mean if number is None else number for number in numbers]
            low, high = min(plain), max(plain)
            for row, number in zip(rows, plain, strict=True):
                row += [(number - fact.mean) / fact.scale, float(number == high), float(number == low)]
        return rows

    def probabilities(
        self, values: Sequence[Any], _: Sequence[float], known: Mapping[str, Mapping[str, float]]
    ) -> list[float]:
        """Return the probability of each option; see `columns`."""
        return softmax([_dot(self.weights, row) for row in self.columns(values, known)])


class Number(FilePart):
    """A number: a line in the facts, and around it the recorded deviations in a leaf of a tree."""

    kind: Literal["number"] = "number"
    intercept: Bounded = 0.0
    weights: Weights = []
    """Weight of each column of the facts; none: there is no line."""

    tree: Tree = Tree()
    deviations: Annotated[list[Annotated[list[Bounded], Field(min_length=1, max_length=500)]], Field(min_length=1)]
    """Recorded deviations from the line in each leaf, or evenly spaced quantiles of them, ascending."""

    minimum: Bounded
    """Smallest recorded value."""

    maximum: Bounded
    """Largest recorded value."""

    def values(self, facts: Sequence[float], schema: Schema) -> list[float]:
        """Return equally likely values, ascending, within the recorded range and the bounds of a schema."""
        line = self.intercept + _dot(self.weights, facts) if self.weights else self.intercept
        low, high = _bounds(schema)
        low, high = max(low, min(self.minimum, high)), min(high, max(self.maximum, low))
        is_whole, step = schema.get("type") == "integer", schema.get("multipleOf")
        values = [min(max(line + each, low), high) for each in self.deviations[self.tree.leaf(facts)]]
        if step:
            values = [round(value / step) * step for value in values]
        return [float(round(value)) if is_whole else round(value, 6) for value in values]


class Prose(FilePart):
    """A text, list or object, which a surrogate cannot write."""

    kind: Literal["text"] = "text"


Part = Annotated[Choice | OptionChoice | Number | Prose, Field(discriminator="kind")]


def require_in_range(name: str, value: float | str | None, fact: NumberFact) -> float | None:
    """Return a fact that is a number; None if it may be missing, and is.

    Raises:
        OutsideSurrogate: If it is missing, no number, or out of the recorded range.
    """
    if value is None and fact.may_be_missing:
        return None
    if not isinstance(value, float):
        found = "missing" if value is None else f"{value!r:.60}"
        raise OutsideSurrogate(f"{name} is {found}; in the recordings it was a number")
    if not fact.minimum <= value <= fact.maximum:
        recorded = f"{fact.minimum:g} to {fact.maximum:g}"
        raise OutsideSurrogate(f"{name} is {value:g}; in the recordings it was {recorded}")
    return value


def softmax(utilities: Sequence[float]) -> list[float]:
    """Return choice probabilities under the logit model, rounded to `DIGITS` decimals.

    Source:
        McFadden (1974), Conditional Logit Analysis of Qualitative Choice Behavior, in Frontiers in Econometrics.
    """
    highest = max(utilities)
    powers = [math.exp(max(utility - highest, -700.0)) for utility in utilities]
    total = math.fsum(powers)
    return [round(power / total, DIGITS) for power in powers]


def draw_index(shares: Sequence[float], rng: random.Random) -> int:
    """Draw an index with the given probabilities."""
    sums: list[float] = []
    for share in shares:
        sums.append(share + (sums[-1] if sums else 0.0))
    return min(bisect(sums, rng.random() * sums[-1]), len(shares) - 1)


def _dot(weights: Sequence[float], columns: Sequence[float]) -> float:
    return math.fsum(weight * column for weight, column in zip(weights, columns, strict=True))


def _bounds(schema: Schema) -> tuple[float, float]:
    """Return the smallest and the largest number that a schema allows; infinity where it sets no bound."""
    span = number_range(schema)
    low = -math.inf if span.low is None else float(span.low) + OPEN_END * span.low_is_open
    high = math.inf if span.high is None else float(span.high) - OPEN_END * span.high_is_open
    return low, high
