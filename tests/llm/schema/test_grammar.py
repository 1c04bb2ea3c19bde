"""The grammar accepts nothing that the schema does not, and all that it can say briefly."""

from __future__ import annotations

import json
import random
from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from mesa_llm.errors import Refused
from mesa_llm.llm.schema.grammar import COMPACT, NATURAL, Notation, schema_to_gbnf
from mesa_llm.llm.schema.sampling import sample_value
from tests.llm.schema.gbnf import Grammar


def accepts(schema: dict[str, Any], text: str, notation: Notation = COMPACT) -> bool:
    return Grammar(schema_to_gbnf(schema, notation)).accepts(text)


def ranges(numbers: st.SearchStrategy[Any], kind: str) -> st.SearchStrategy[dict[str, Any]]:
    pairs = st.tuples(numbers, numbers).map(sorted)
    return pairs.map(lambda pair: {"type": kind, "minimum": pair[0], "maximum": pair[1]})


names = st.sampled_from(["vote", "why", "score", "id", "tags"])
lengths = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
strings = lengths.map(lambda pair: {"type": "string", "minLength": pair[0], "maxLength": pair[1]})
enums = st.lists(st.one_of(st.integers(), st.text(max_size=5), st.booleans(), st.none()), min_size=1, max_size=4)
scalars = st.one_of(
    st.sampled_from([{"type": "string"}, {"type": "boolean"}, {"type": "null"}, {"type": "integer"}, {}]),
    strings,
    enums.map(lambda values: {"enum": values}),
    ranges(st.integers(-300, 300), "integer"),
)
numbers = st.one_of(
    ranges(st.integers(-(10**6), 10**6), "integer"),
    ranges(st.decimals(-100, 100, places=2).map(float), "number"),
    st.floats(-50, 50).map(lambda bound: {"type": "number", "minimum": bound}),
    st.floats(-50, 50).map(lambda bound: {"type": "number", "maximum": bound}),
    st.integers(-50, 50).map(lambda n: {"type": "number", "exclusiveMinimum": n, "exclusiveMaximum": n + 1}),
    st.just({"type": "number"}),
)


def containers(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(names, inner, max_size=4)
    required = st.lists(names, max_size=2, unique=True)
    return st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 2)),
        st.builds(lambda items: {"type": "array", "prefixItems": items, "maxItems": 2}, st.lists(inner, min_size=2)),
        st.lists(inner, min_size=1, max_size=3).map(lambda choices: {"anyOf": choices}),
        inner.map(lambda values: {"type": "object", "additionalProperties": values}),
        st.builds(
            lambda fields, needed: {
                "type": "object",
                "properties": fields,
                "required": [name for name in needed if name in fields],
                "additionalProperties": False,
            },
            properties,
            required,
        ),
    )


schemas = st.recursive(scalars, containers, max_leaves=5)
notations = st.sampled_from([COMPACT, NATURAL])
schemas_with_numbers = st.recursive(st.one_of(scalars, numbers), containers, max_leaves=5)


@given(schema=schemas_with_numbers, seed=st.integers(0, 9), notation=notations)
def test_what_a_grammar_accepts_satisfies_the_schema(schema: dict[str, Any], seed: int, notation: Notation) -> None:
    text = Grammar(schema_to_gbnf(schema, notation)).write(random.Random(seed))
    jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft202012Validator)


@given(schema=schemas_with_numbers, seed=st.integers(0, 9), notation=notations)
def test_what_a_grammar_writes_it_accepts(schema: dict[str, Any], seed: int, notation: Notation) -> None:
    grammar = Grammar(schema_to_gbnf(schema, notation))
    assert grammar.accepts(grammar.write(random.Random(seed)))


@given(schema=schemas, seed=st.integers(0, 9))
def test_a_value_drawn_from_a_schema_can_be_written(schema: dict[str, Any], seed: int) -> None:
    value = sample_value(schema, random.Random(seed))
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert accepts(schema, text)
    assert accepts(schema, json.dumps(value, ensure_ascii=False), NATURAL)


@given(bounds=st.tuples(st.integers(-2000, 2000), st.integers(-2000, 2000)).map(sorted), near=st.integers(-3, 3))
def test_integers_are_accepted_exactly_within_their_bounds(bounds: list[int], near: int) -> None:
    low, high = bounds
    grammar = Grammar(schema_to_gbnf({"type": "integer", "minimum": low, "maximum": high}))
    for number in (low + near, high + near, (low + high) // 2):
        assert grammar.accepts(str(number)) == (low <= number <= high)


@pytest.mark.parametrize("text", ["-0", "007", "1.0", "+1", "1e3", ""])
def test_integers_have_one_way_to_be_written(text: str) -> None:
    assert not accepts({"type": "integer"}, text)


def test_a_narrow_range_gets_more_decimal_places() -> None:
    schema = {"type": "number", "minimum": 0.001, "maximum": 0.002}
    assert accepts(schema, "0.0015")
    assert not accepts(schema, "0.0021")


def test_multiples_of_a_step_are_written_out() -> None:
    schema = {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.02}
    assert accepts(schema, "0.58")
    assert not accepts(schema, "0.57")


def test_a_text_holds_no_control_characters_and_no_other_escapes() -> None:
    assert accepts({"type": "string"}, r'"a \"quoted\" word \\ é 😀"')
    assert not any(accepts({"type": "string"}, text) for text in ['"a\nb"', r'"a\nb"', r'"\u0041"', '"\x7f"'])


def test_free_text_is_bounded_even_where_the_schema_allows_more() -> None:
    assert accepts({"type": "string", "maxLength": 9000}, f'"{"a" * 200}"')
    assert not accepts({"type": "string", "maxLength": 9000}, f'"{"a" * 201}"')


def test_properties_come_in_order_and_the_optional_ones_may_be_left_out() -> None:
    fields = {name: {"const": 1} for name in "abc"}
    schema = {"type": "object", "properties": fields, "required": ["b"], "additionalProperties": False}
    accepted = [
        text for text in ('{"b":1}', '{"a":1,"b":1}', '{"b":1,"c":1}', '{"b":1,"a":1}') if accepts(schema, text)
    ]
    assert accepted == ['{"b":1}', '{"a":1,"b":1}', '{"b":1,"c":1}']


def test_whitespace_is_never_written_or_always_as_models_write_it() -> None:
    answer = {"properties": {"answer": {"type": "array", "items": {"enum": [1, [2, 3]]}}}, "required": ["answer"]}
    texts = ['{"answer":[1,[2,3]]}', '{"answer": [1, [2, 3]]}', '{"answer":  [1, [2, 3]]}', '{ "answer": [1, [2, 3]]}']
    assert [accepts(answer, text) for text in texts] == [True, False, False, False]
    assert [accepts(answer, text, NATURAL) for text in texts] == [False, True, False, False]


def test_reasoning_ends_though_a_model_repeats_itself() -> None:
    fields = {"reasoning": {"type": "string"}, "bid": {"const": 1}}
    schema = {"type": "object", "properties": fields, "required": ["reasoning", "bid"], "additionalProperties": False}
    texts = [f'{{"reasoning": "{"a" * n}", "bid": 1}}' for n in (1000, 1001)]
    assert [accepts(schema, text, NATURAL) for text in texts] == [True, False]


def test_a_capable_model_writes_as_much_as_the_schema_allows() -> None:
    assert accepts({"type": "string"}, f'"{"a" * 3000}\\n"', NATURAL)
    assert not accepts({"type": "string", "maxLength": 90}, f'"{"a" * 91}"', NATURAL)
    assert accepts({"type": "array", "items": {"const": 1}}, str([1] * 30), NATURAL)
    assert all(accepts({"type": "number", "minimum": 0, "maximum": 1}, text, NATURAL) for text in ("1", "0.7", "0.75"))


def test_a_schema_that_nothing_satisfies_is_refused() -> None:
    with pytest.raises(Refused, match="no value can satisfy"):
        schema_to_gbnf({"type": "integer", "minimum": 3, "maximum": 2})


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Leaf(BaseModel):
    kind: Literal["leaf"]
    weight: Annotated[float, Field(gt=0, le=1)]


class Tree(BaseModel):
    """A type with everything pydantic likes to put into a schema."""

    kind: Literal["tree"] = "tree"
    children: list[Annotated[Tree | Leaf, Field(discriminator="kind")]] = []
    mood: Mood
    note: str | None = None
    ages: dict[Literal["ann", "bob"], Annotated[int, Field(ge=0, lt=120)]] = {}
    place: tuple[int, str] = (0, "")


@given(seed=st.integers(0, 1000))
def test_a_type_that_contains_itself_is_written_to_a_bounded_depth(seed: int) -> None:
    adapter = TypeAdapter(Tree)
    text = Grammar(schema_to_gbnf(adapter.json_schema())).write(random.Random(seed))
    assert isinstance(adapter.validate_json(text), Tree)
