"""A flat schema says the same as the schema it came from, and holds properties to their options."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.errors import Refused
from mesa_llm.llm.schema.flat import choice_schema, flat_schema, narrow
from mesa_llm.records import ToolSpec
from tests.llm.human.questions import ACTIONS, TOOLS


def values_of(schema: dict[str, Any] | None, name: str) -> Any:
    assert schema is not None
    return schema["properties"][name]


def test_a_choice_names_the_action_and_its_arguments() -> None:
    rest = choice_schema([TOOLS["rest"]], {})["anyOf"][0]
    assert rest["properties"]["action"] == {"enum": ["rest"]}
    assert rest["properties"]["arguments"]["properties"] == {}


def test_a_choice_holds_arguments_to_their_options() -> None:
    talk = choice_schema([TOOLS["talk_to"]], {"neighbour": (4, 7)})["anyOf"][0]
    assert values_of(talk["properties"]["arguments"], "neighbour") == {"enum": [4, 7]}


def test_an_action_whose_argument_has_no_value_now_is_no_choice() -> None:
    alternatives = choice_schema(ACTIONS, {"neighbour": (), "metres": ()})["anyOf"]
    assert [choice["properties"]["action"]["enum"][0] for choice in alternatives] == ["walk", "rest"]
    assert alternatives[0]["properties"]["arguments"]["properties"] == {}


def test_no_choice_at_all_is_refused() -> None:
    with pytest.raises(Refused, match="talk_to"):
        choice_schema([TOOLS["talk_to"]], {"neighbour": ()})


def test_the_items_of_a_list_are_held_to_the_options_each_once() -> None:
    schema = flat_schema({"properties": {"ids": {"type": "array", "items": {"type": "integer"}}}})
    ids = values_of(narrow(schema, {"ids": (1, 2)}), "ids")
    assert (ids["items"], ids["maxItems"], ids["uniqueItems"]) == ({"enum": [1, 2]}, 2, True)


def test_what_may_be_null_still_may() -> None:
    schema = flat_schema({"properties": {"to": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}})
    assert values_of(narrow(schema, {"to": (3,)}), "to") == {"anyOf": [{"enum": [3]}, {"type": "null"}]}
    assert values_of(narrow(schema, {"to": ()}), "to") == {"type": "null"}


def test_options_reach_properties_at_any_depth() -> None:
    inner = {"type": "object", "properties": {"to": {"type": "integer"}}, "required": ["to"]}
    schema = flat_schema({"type": "array", "minItems": 1, "items": inner})
    assert values_of((narrow(schema, {"to": (3,)}) or {})["items"], "to") == {"enum": [3]}
    assert narrow(schema, {"to": ()}) is None


def test_references_are_written_out_with_what_stands_beside_them() -> None:
    schema = {"$ref": "#/$defs/Age", "maximum": 9, "$defs": {"Age": {"type": "integer", "minimum": 1}}}
    assert flat_schema(schema) == {"type": "integer", "minimum": 1, "maximum": 9}


def test_one_of_all_and_a_list_of_types_are_written_out() -> None:
    assert flat_schema({"allOf": [{"type": "string"}], "maxLength": 3}) == {"type": "string", "maxLength": 3}
    assert flat_schema({"type": ["string", "null"]}) == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_a_list_of_what_cannot_be_stays_empty() -> None:
    assert flat_schema({"type": "array", "items": False}) == {"type": "array", "items": {}, "maxItems": 0}


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": []},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "number", "exclusiveMinimum": 1, "maximum": 1},
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        {"type": "array", "items": False, "minItems": 1},
        {"properties": {"a": False}, "required": ["a"]},
        {
            "$ref": "#/$defs/Endless",
            "$defs": {"Endless": {"properties": {"a": {"$ref": "#/$defs/Endless"}}, "required": ["a"]}},
        },
    ],
)
def test_what_nothing_satisfies_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="no value can satisfy"):
        flat_schema(schema)


@given(step=st.sampled_from([2, 5, 0.02, 0.5]), high=st.integers(1, 9))
def test_few_multiples_of_a_step_become_a_choice(step: float, high: int) -> None:
    flat = flat_schema({"type": "number", "minimum": 0, "maximum": high, "multipleOf": step})
    assert flat["enum"] == pytest.approx([step * n for n in range(int(high / step + 1e-9) + 1)])


def test_options_of_one_action_hold_that_action_alone() -> None:
    parameters = {"type": "object", "properties": {"lot": {"type": "string"}}, "required": ["lot"]}
    tools = [ToolSpec(name, name, parameters, is_action=True) for name in ("bid", "sell")]
    offered = choice_schema(tools, {"lot": ("Pot", "Pan"), "sell.lot": ("Pan",)})["anyOf"]
    held = [choice["properties"]["arguments"]["properties"]["lot"] for choice in offered]
    assert held == [{"enum": ["Pot", "Pan"]}, {"enum": ["Pan"]}]
