"""What a schema allows is said briefly, and what a person writes is read accordingly."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm.llm.schema.description import description_of, read_value, signature
from mesa_llm.llm.schema.flat import flat_schema
from tests.llm.human.questions import TOOLS, VOTE

OPTIONAL = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}
FLAGS = {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}


def test_a_tool_is_said_with_its_arguments() -> None:
    assert signature(TOOLS["walk"]) == "walk(metres?: integer 1..9)"
    assert signature(TOOLS["rest"]) == "rest()"


def test_an_answer_is_said_with_its_choices() -> None:
    assert description_of(flat_schema(VOTE)) == '{vote: "Green" or "Oil", score: integer 1..5}'


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "number", "minimum": 0.5}, "number from 0.5"),
        ({"type": "integer", "maximum": 1000}, "integer up to 1,000"),
        ({"type": "number", "minimum": 0, "maximum": 1e12}, "number from 0"),
        ({"enum": list(range(20))}, "0 or 1 or 2 or 3 or 4 or 5 or 6 or 7, … (20 values)"),
        (FLAGS, "list of true or false of at most 2 items"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{name: number, …}"),
        ({}, "any JSON"),
    ],
)
def test_limits_are_said(schema: dict[str, Any], words: str) -> None:
    assert description_of(flat_schema(schema)) == words


@pytest.mark.parametrize(
    ("line", "schema", "value"),
    [
        (" Green ", {"enum": ["Green", "Oil"]}, "Green"),
        ("3", {"enum": [2, 3]}, 3),
        ("yes", {"type": "boolean"}, True),
        ("1.5", {"type": "number"}, 1.5),
        ("1,500", {"type": "integer"}, 1500),
        ("no, yes", FLAGS, [False, True]),
        ("[true]", FLAGS, [True]),
        ("none", OPTIONAL, None),
        ("12", OPTIONAL, 12),
        ("12 apples", OPTIONAL, "12 apples"),
        ('{"a": 1}', {}, {"a": 1}),
    ],
)
def test_a_line_is_read_as_the_value_wanted(line: str, schema: dict[str, Any], value: object) -> None:
    assert read_value(line, flat_schema(schema)) == value


@pytest.mark.parametrize(
    ("line", "schema"),
    [
        ("2.5", {"type": "integer"}),
        ("nan", {"type": "number"}),
        ("1e999999999", {"type": "integer"}),
        ("6", {"type": "integer", "maximum": 5}),
        ("maybe", {"type": "boolean"}),
        ("yes, no, yes", FLAGS),
        ("abc", {"type": "string", "maxLength": 2}),
        ("[NaN]", {"type": "array", "items": {"type": "number"}}),
        ("[1e999]", {"type": "array", "items": {"type": "number"}}),
        ("[" * 100_000, {}),
    ],
)
def test_a_line_that_does_not_fit_is_told_what_would(line: str, schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        read_value(line, flat_schema(schema))
