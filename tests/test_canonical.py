"""Equal values are written as equal JSON, whatever their names are."""

import json
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from mesa_llm.canonical import canonical_json, legible_json, options_json


class Sheep(Enum):
    """A name that JSON does not know."""

    WHITE = 1


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({(1, 0): 2, (0, 1): 3}, '{"[0,1]":3,"[1,0]":2}'),
        ({"b": 1, 2: 3, None: 4}, '{"2":3,"b":1,"null":4}'),
        ({Sheep: 1}, f'{{"{__name__}.Sheep":1}}'),
        ({"cells": [{(0, 1): {2}}]}, '{"cells":[{"[0,1]":[2]}]}'),
        ({2: 1, 1: True}, '{"1":true,"2":1}'),
    ],
)
def test_names_of_any_type_are_written_as_texts(value: dict[Any, Any], written: str) -> None:
    assert canonical_json(value) == written


def test_a_member_of_an_enum_is_written_as_its_value() -> None:
    assert canonical_json({"colour": Sheep.WHITE, "all": {Sheep.WHITE}, Sheep.WHITE: [Sheep.WHITE]}) == (
        '{"1":[1],"all":[1],"colour":1}'
    )


@pytest.mark.parametrize("value", [date(2026, 1, 31), timedelta(hours=1), Decimal("0.10")])
def test_what_pydantic_reads_from_a_text_is_written_as_one(value: Any) -> None:
    assert TypeAdapter(type(value)).validate_json(canonical_json(value)) == value
    assert canonical_json({"value": value}) == f'{{"value":{canonical_json(value)}}}'


VALUES = st.one_of(st.integers(), st.text(st.characters(exclude_categories=())), st.booleans(), st.none(), st.floats())


@given(st.dictionaries(st.text(), VALUES), st.dictionaries(st.text(), st.lists(VALUES).map(tuple)))
def test_flat_values_are_written_as_json_writes_them(fields: dict[str, Any], options: dict[str, Any]) -> None:
    as_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
    assert canonical_json(fields) == as_json(fields)
    assert options_json(options) == as_json(options)


def test_numbers_of_items_are_in_their_order_where_people_read_them() -> None:
    sheet = {"answers": {str(item): 1 for item in (10, 2, 1)}, "Q10b": 1, "Q9": [{"b": 1, "a": "é"}]}
    assert legible_json(sheet) == '{"Q9":[{"a":"é","b":1}],"Q10b":1,"answers":{"1":1,"2":1,"10":1}}'
