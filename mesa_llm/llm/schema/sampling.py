"""Draw values from what a JSON schema allows: the naive baseline, and the input of tests."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from mesa_llm.errors import Refused
from mesa_llm.llm.schema.flat import Schema, flat_schema, held_to
from mesa_llm.llm.schema.ranges import number_range

_TEXT = """
    about after again always around because before between bring chair clear cloud corner could daily early
    enough evening every field first found garden given glass green hold house inside just keep kitchen large
    later letter light little lunch many matter middle minute morning mostly near often other paper part place
    quite rather room same second sentence simple small some sound spring still street summer table there
    thing today together town under usual water week which while window winter without word work year
"""
WORDS = _TEXT.split()
"""Words that say nothing for or against anything."""

LEAST_WORDS, MOST_WORDS = 3, 8
"""How many words a text of free length has."""

SCALARS: tuple[Schema, ...] = tuple({"type": kind} for kind in ("string", "integer", "boolean", "null"))
"""What a value of any kind is drawn as."""

MOST_TRIES = 20
"""How often a value is drawn again, for each that has to differ from the others."""

SPAN = 100
"""How far numbers go from their one bound, or from zero."""

MOST_FREE = 3
"""Maximum number of items of a list, and most properties with free names, unless the schema asks for more."""


def sample_value(
    schema: Mapping[str, Any], rng: random.Random, options: Mapping[str, Sequence[Any]] | None = None
) -> Any:
    """Draw a value uniformly from what a JSON schema allows.

    Alternatives are equally likely; what may be left out is left out half of the time; numbers without bounds
    go from 0 to 100; texts are a few neutral words. `pattern` and `format` are not looked at.

    Args:
        schema: Any JSON schema, as pydantic gives it.
        rng: Where all draws come from.
        options: Name of a property → the values it may take.

    Raises:
        Refused: If no value satisfies the schema.
    """
    held = held_to(flat_schema(schema), options or {})
    if held is None:
        raise Refused("no value can satisfy the JSON schema: a property has no possible value now")
    return draw(held, rng)


def draw(schema: Schema, rng: random.Random) -> Any:
    """Draw a value from what a flat schema allows; see `sample_value`."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return draw(rng.choice(schema["anyOf"]), rng)
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


def _text(schema: Schema, rng: random.Random) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    text = " ".join(rng.choices(WORDS, k=rng.randint(LEAST_WORDS, MOST_WORDS)))
    while len(text) < least:
        text = f"{text} {rng.choice(WORDS)}"
    text = text[:most]
    return text.rstrip() + "." * (len(text) - len(text.rstrip()))


def _number(schema: Schema, rng: random.Random) -> int | float:
    span = number_range(schema)
    step = max(1, int(schema.get("multipleOf", 1)))
    high = span.high if span.high is not None else (span.low or Decimal(0)) + SPAN * step
    low = span.low if span.low is not None else min(Decimal(0), high - SPAN * step if high < 0 else high)
    if schema["type"] == "integer":
        return rng.randint(math.ceil(low / step), math.floor(high / step)) * step
    drawn = rng.uniform(float(low), float(high))
    candidates = (round(drawn, 2), drawn, float(low) / 2 + float(high) / 2)
    return next((number for number in candidates if span.holds(Decimal(str(number)))), drawn)


def _list(schema: Schema, rng: random.Random) -> list[Any]:
    drawn = [draw(inner, rng) for inner in schema.get("prefixItems", ())][: schema.get("maxItems")]
    least = max(schema.get("minItems", 0), len(drawn))
    wanted = rng.randint(least, max(least, min(schema.get("maxItems", math.inf), least + MOST_FREE)))
    for _ in range(MOST_TRIES * wanted):
        if len(drawn) == wanted:
            break
        item = draw(schema["items"], rng)
        if item not in drawn or not schema.get("uniqueItems"):
            drawn.append(item)
    return drawn


def _object(schema: Schema, rng: random.Random) -> dict[str, Any]:
    drawn = {
        name: draw(inner, rng)
        for name, inner in schema["properties"].items()
        if name in schema["required"] or rng.random() < 0.5
    }
    if schema["properties"] or schema["additionalProperties"] is False:
        return drawn
    least = schema.get("minProperties", 0)
    wanted = rng.randint(least, max(least, min(schema.get("maxProperties", math.inf), least + MOST_FREE)))
    names = schema.get("propertyNames", {"enum": WORDS})
    for _ in range(MOST_TRIES * wanted):
        if len(drawn) < wanted:
            drawn[draw(names, rng)] = draw(schema["additionalProperties"], rng)
    return drawn
