"""Canonical JSON: equal values give equal text, for digests, keys and the run log."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import chain
from json.encoder import encode_basestring
from typing import Any, cast
from uuid import UUID

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python


def canonical_json(value: object) -> str:
    """Serialise a value to JSON with sorted keys and no spaces."""
    if value is None:
        return "null"
    try:
        if type(value) is dict:
            fields = cast("dict[Any, Any]", value)
            if _WRITTEN_ALIKE.issuperset(map(type, fields)) and _are_written_alike(fields.values()):
                return _sorted_json(fields)
        return _CANONICAL.encode(value)
    except TypeError:  # keys that JSON does not support (tuples, classes), or that cannot be sorted
        return _CANONICAL.encode(with_text_names(value))


def text_json(text: str) -> str:
    """Serialise a text as `canonical_json` does, only faster."""
    return encode_basestring(text)


def legible_json(value: object) -> str:
    """Serialise a value as `canonical_json` does, but with keys in natural order: 2 before 10."""
    return json.dumps(in_natural_order(canonical_json(value)), separators=(",", ":"), ensure_ascii=False)


def in_natural_order(text: str) -> Any:
    """Parse JSON, with the keys of each object in natural order: numbers in them compare as numbers."""
    return json.loads(text, object_pairs_hook=lambda fields: dict(sorted(fields, key=_with_wide_numbers)))


def _with_wide_numbers(field: tuple[str, Any]) -> str:
    return re.sub(r"\d+", lambda digits: digits[0].zfill(12), field[0])


def options_json(options: Mapping[str, Sequence[Any]]) -> str:
    """Serialise named lists as `canonical_json` does, but faster if they hold only integers and strings."""
    if _WRITTEN_ALIKE.issuperset(map(type, chain(options, *filter(None, options.values())))):
        return _sorted_json(options)
    return canonical_json(options)


_WRITTEN_ALIKE = frozenset({int, str})
"""Types that pydantic serialises as `json` does, only faster."""

_WRITTEN_BY_PYDANTIC = date, time, timedelta, Decimal, UUID
"""Types that pydantic serialises to strings and parses back."""

_NUMBERS_AND_TEXTS = frozenset({int, str, float})

_NO_EXPONENT = 1e-4, 1e16
"""Range of magnitudes of floats that both write without an exponent; the upper bound is excluded."""


def _are_written_alike(values: Collection[Any]) -> bool:
    """Check whether both give the same text: strings, integers, floats without an exponent, and lists of them."""
    kinds = set(map(type, values))
    if list in kinds:
        values = [part for one in values for part in (one if type(one) is list else (one,))]
        kinds = set(map(type, values))
    if not _NUMBERS_AND_TEXTS.issuperset(kinds):
        return False
    first, end = _NO_EXPONENT
    return float not in kinds or all(first <= abs(one) < end or one == 0 for one in values if type(one) is float)


def _sorted_json(fields: Mapping[Any, Any]) -> str:
    try:
        return to_json({name: fields[name] for name in sorted(fields)} if len(fields) > 1 else fields).decode()
    except PydanticSerializationError:  # halves of surrogate pairs, which UTF-8 cannot hold
        return _CANONICAL.encode(fields)


def schema_json(schema: Mapping[str, Any]) -> str:
    """Serialise a JSON schema as `canonical_json` does, cached by object identity."""
    known = _SCHEMAS.get(id(schema))
    if known is None:
        if len(_SCHEMAS) >= 256:
            _SCHEMAS.clear()
        known = _SCHEMAS[id(schema)] = (schema, canonical_json(schema))  # keeping the schema alive keeps its id unique
    return known[1]


def flat_json(fields: Mapping[str, Any]) -> str:
    """Serialise an object as `canonical_json` does, cached if it is flat."""
    try:
        return _flat_json(*fields, *fields.values())
    except TypeError:  # contains a list or another object
        return canonical_json(fields)


@lru_cache(maxsize=256, typed=True)  # typed: 1 and 1.0 are equal, but their JSON differs
def _flat_json(*names_and_values: Any) -> str:
    n = len(names_and_values) // 2
    return canonical_json(dict(zip(names_and_values[:n], names_and_values[n:], strict=True)))


def compact_json(value: object) -> bytes:
    """Serialise a plain value to JSON without sorting keys, several times faster than `json`."""
    try:
        return to_json(value)
    except PydanticSerializationError:  # halves of surrogate pairs, which UTF-8 cannot hold
        return json.dumps(value, separators=(",", ":")).encode()


def plain(value: object) -> object:
    """Convert a value that JSON does not support (NumPy scalars, sets, records, enums, dates) to one that it does."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, _WRITTEN_BY_PYDANTIC):
        return to_jsonable_python(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, Mapping):
        return dict(value)
    for method in ("model_dump", "tolist", "_asdict"):
        convert = None if isinstance(value, type) else getattr(value, method, None)
        if callable(convert):
            return convert()
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return _ADDRESS.sub("", repr(value))


def member_value(value: Any) -> Any:
    """Return the JSON value of an enum member; return anything else unchanged."""
    return value.value if isinstance(value, Enum) else value


def with_text_names(value: object) -> Any:
    """Convert all keys to strings: numbers as in JSON, tuples as `[1,2]`."""
    match value:
        case dict():
            fields = cast("dict[object, object]", value)
            return {
                name if isinstance(name, str) else canonical_json(name).strip('"'): with_text_names(field)
                for name, field in fields.items()
            }
        case list() | tuple():
            return [with_text_names(item) for item in cast("Sequence[object]", value)]
        case str() | int() | float() | None:
            return value
        case _:
            return with_text_names(plain(value))


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

_SCHEMAS: dict[int, tuple[Mapping[str, Any], str]] = {}

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=plain, check_circular=False
)
