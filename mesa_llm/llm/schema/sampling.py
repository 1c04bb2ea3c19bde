"""Draws values that a JSON schema allows, for the baseline and for tests."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from mesa_llm.errors import Refused
from mesa_llm.llm.schema.flat import Schema, flat_schema, narrow
from mesa_llm.llm.schema.ranges import number_range, number_step

_TEXT = """
    about after again always around because before between bring chair clear cloud corner could daily early
    enough evening every field first found garden given glass green hold house inside just keep kitchen large
    later letter light little lunch many matter middle minute morning mostly near often other paper part place
    quite rather room same second sentence simple small some sound spring still street summer table there
    thing today together town under usual water week which while window winter without word work year
"""
WORDS = _TEXT.split()
"""Neutral words, of which texts are made."""

MIN_FREE_WORDS, MAX_FREE_WORDS = 3, 8
"""Minimum and maximum number of words of a text of free length."""

SCALARS: tuple[Schema, ...] = tuple({"type": kind} for kind in ("string", "integer", "boolean", "null"))
"""Schemas of the types that a value of any type is drawn from."""

MAX_DRAWS = 20
"""Maximum number of draws for each item of a list, or pair of an object, as some may have to be drawn again."""

SPAN = 100
"""Number of steps from the only bound of a range, or from zero, to its other end."""

CENTURY = datetime(2000, 1, 1)
"""The earliest time that is drawn."""

CENTURY_S = 36_525 * 86_400
"""Length of the period that times are drawn from, in seconds."""

MAX_FREE_ITEMS = 3
"""Maximum number of items of a list, or properties with free names, beyond those that the schema requires."""


def sample_value(
    schema: Mapping[str, Any], rng: random.Random, options: Mapping[str, Sequence[Any]] | None = None
) -> Any:
    """Draw a value uniformly from what a JSON schema allows.

    Alternatives are equally likely; what may be left out is left out half of the time; numbers without bounds go from 0
    to 100; texts are a few neutral words, or a date or time of this century where the `format` says so. Of a number and
    any text, which is how pydantic describes a `Decimal`, the number is drawn. `pattern` and other formats are ignored.

    Args:
        schema: Any JSON schema, as pydantic writes it.
        rng: Source of all draws.
        options: Name of a property → the values that it may take.

    Raises:
        Refused: If no value satisfies the schema.
    """
    narrowed = narrow(flat_schema(schema), options or {})
    if narrowed is None:
        raise Refused("no value can satisfy the JSON schema: a property has no possible value now")
    return draw(narrowed, rng)


def draw(schema: Schema, rng: random.Random) -> Any:
    """Draw a value from what a flat schema allows; see `sample_value`."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return draw(rng.choice(_readable(schema["anyOf"])), rng)
    match schema.get("type"):
        case "string":
            return _text(schema, rng)
        case "integer" | "number":
            return _number(schema, rng)
        case "boolean":
            return rng.random() < 0.5
        case "null":
            return None
        case "array":
            return _list(schema, rng)
        case "object":
            return _object(schema, rng)
        case _:
            return draw(rng.choice(SCALARS), rng)


def _readable(alternatives: list[Schema]) -> list[Schema]:
    """Leave out any text beside a number: a `Decimal` is written as either, and words are none."""
    is_number = any(alternative.get("type") == "number" for alternative in alternatives)
    return [alternative for alternative in alternatives if not is_number or alternative != {"type": "string"}]


def _text(schema: Schema, rng: random.Random) -> str:
    if schema.get("format") in ("date", "date-time", "time", "duration"):
        return _time(schema["format"], rng.randrange(CENTURY_S))
    min_length, max_length = schema.get("minLength", 0), schema.get("maxLength")
    text = " ".join(rng.choices(WORDS, k=rng.randint(MIN_FREE_WORDS, MAX_FREE_WORDS)))
    while len(text) < min_length:
        text = f"{text} {rng.choice(WORDS)}"
    text = text[:max_length]
    return text.rstrip() + "." * (len(text) - len(text.rstrip()))


def _time(kind: str, seconds: int) -> str:
    moment = CENTURY + timedelta(seconds=seconds)
    match kind:
        case "date":
            return moment.date().isoformat()
        case "time":
            return moment.time().isoformat()
        case "duration":
            return f"PT{seconds % 86_400}S"
        case _:
            return moment.isoformat()


def _number(schema: Schema, rng: random.Random) -> int | float:
    span, schema_step = number_range(schema), number_step(schema)
    step = Decimal(1) if schema_step is None else schema_step
    high = span.high if span.high is not None else (span.low or Decimal(0)) + SPAN * step
    low = span.low if span.low is not None else min(Decimal(0), high - SPAN * step if high < 0 else high)
    if schema["type"] == "integer":
        return int(rng.randint(math.ceil(low / step), math.floor(high / step)) * step)
    if schema_step is not None:
        first, last = math.ceil(low / step), math.floor(high / step)
        return float(rng.randint(first + (not span.holds(first * step)), last - (not span.holds(last * step))) * step)
    value = rng.uniform(float(low), float(high))
    candidates = (round(value, 2), value, float(low) / 2 + float(high) / 2)
    return next((number for number in candidates if span.holds(Decimal(str(number)))), value)


def _list(schema: Schema, rng: random.Random) -> list[Any]:
    items = [draw(inner, rng) for inner in schema.get("prefixItems", ())][: schema.get("maxItems")]
    min_items = max(schema.get("minItems", 0), len(items))
    n_items = rng.randint(min_items, max(min_items, min(schema.get("maxItems", math.inf), min_items + MAX_FREE_ITEMS)))
    for _ in range(MAX_DRAWS * n_items):
        if len(items) == n_items:
            break
        item = draw(schema["items"], rng)
        if item not in items or not schema.get("uniqueItems"):
            items.append(item)
    return items


def _object(schema: Schema, rng: random.Random) -> dict[str, Any]:
    properties = {
        name: draw(inner, rng)
        for name, inner in schema["properties"].items()
        if name in schema["required"] or rng.random() < 0.5
    }
    if schema["properties"] or schema["additionalProperties"] is False:
        return properties
    min_properties = schema.get("minProperties", 0)
    n_properties = rng.randint(
        min_properties, max(min_properties, min(schema.get("maxProperties", math.inf), min_properties + MAX_FREE_ITEMS))
    )
    names = schema.get("propertyNames", {"enum": WORDS})
    for _ in range(MAX_DRAWS * n_properties):
        if len(properties) < n_properties:
            properties[draw(names, rng)] = draw(schema["additionalProperties"], rng)
    return properties
