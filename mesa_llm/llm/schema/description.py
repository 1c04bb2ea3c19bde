"""Describes schemas and tools briefly, for a small model or a person, and reads values that a person writes."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from mesa_llm.llm.schema.flat import Schema, flat_schema
from mesa_llm.llm.schema.ranges import bound_text, number_range
from mesa_llm.records import ToolSpec

YES, NO = {"true", "yes", "y", "1"}, {"false", "no", "n", "0"}
"""Spellings of true and of false."""

MAX_DIGITS = 300
"""Maximum decimal exponent of a number that a person writes."""

MAX_NAMED = 8
"""Maximum number of values of an enum that are listed."""

_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
"""A number as its bounds are written, with commas between thousands."""


def signature(tool: ToolSpec) -> str:
    """Describe how a tool is called: `name(argument: type, …)`; an argument that may be left out ends in `?`."""
    return f"{tool.name}({_members(flat_schema({'type': 'object', **tool.parameters}))})"


def description_of(schema: Schema) -> str:
    """Describe what a flat schema allows: `integer 1..5`, `"Green" or "Oil"`, `{vote: text, score: number}`."""
    if "enum" in schema:
        values: list[Any] = schema["enum"]
        listing = " or ".join(json.dumps(value, ensure_ascii=False) for value in values[:MAX_NAMED])
        return listing if len(values) <= MAX_NAMED else f"{listing}, … ({len(values)} values)"
    if "anyOf" in schema:
        return " or ".join(description_of(inner) for inner in schema["anyOf"])
    match schema.get("type"):
        case "string":
            return "text" + _at_most(schema, "maxLength", "characters")
        case "integer" | "number":
            return schema["type"] + _span(schema)
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case "array":
            return _list_description(schema)
        case "object":
            return f"{{{_members(schema)}}}"
        case _:
            return "any JSON"


def _members(schema: Schema) -> str:
    members = [
        f"{name}{'' if name in schema['required'] else '?'}: {description_of(inner)}"
        for name, inner in schema["properties"].items()
    ]
    if not members and schema["additionalProperties"] is not False:
        members = [f"name: {description_of(schema['additionalProperties'])}, …"]
    return ", ".join(members)


def _list_description(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(description_of(inner) for inner in schema['prefixItems'])}]"
    if schema.get("maxItems") == 0:
        return "[]"
    return f"list of {description_of(schema['items'])}" + _at_most(schema, "maxItems", "items")


def _at_most(schema: Schema, limit: str, unit: str) -> str:
    return f" of at most {schema[limit]} {unit}" if limit in schema else ""


def _span(schema: Schema) -> str:
    span = number_range(schema)
    low, high = bound_text(span.low), bound_text(span.high)
    if low and high:
        return f" {low}..{high}"
    return f" from {low}" if low else f" up to {high}" if high else ""


def read_value(line: str, schema: Schema) -> Any:
    """Read a value that a person has written in one line.

    Args:
        line: A choice, a text or a number as it is; yes or no; items, or pairs `name: value`, separated by commas;
            else JSON.
        schema: A flat schema that the value has to fit.

    Raises:
        ValueError: If it does not fit; the message says what would.
    """
    if "anyOf" in schema:
        return _first_that_fits(line, schema)
    text = line.strip()
    match "enum" if "enum" in schema else schema.get("type"):
        case "enum":
            matches = [value for value in schema["enum"] if text in {str(value), json.dumps(value)}]
            return _fitting(matches, schema)
        case "string":
            fits = schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", math.inf)
            return _fitting([text] if fits else [], schema)
        case "integer" | "number":
            return _fitting(_numbers_in(text, schema), schema)
        case "boolean":
            word = text.lower()
            return _fitting([word in YES] if word in YES | NO else [], schema)
        case "null":
            return _fitting([None] if text.lower() in {"", "null", "none"} else [], schema)
        case "array" if not text.startswith("[") and "prefixItems" not in schema:
            items = [read_value(item, schema["items"]) for item in text.split(",") if item.strip()]
            fits = schema.get("minItems", 0) <= len(items) <= schema.get("maxItems", math.inf)
            return _fitting([items] if fits else [], schema)
        case "object" if not text.startswith("{") and schema["additionalProperties"] is not False:
            pairs = [item.rpartition(":")[::2] for item in text.split(",") if item.strip()]
            return _named_values([(name.strip(), value) for name, value in pairs], schema)
        case _:
            return _read_json(text, schema)


def _fitting(matches: list[Any], schema: Schema) -> Any:
    """Return the first value; without any, raise what would fit."""
    if not matches:
        raise ValueError(f"Expected {description_of(schema)}.")
    return matches[0]


def _first_that_fits(line: str, schema: Schema) -> Any:
    """Read a value of one of several types; text is tried last, as every line is one."""
    for inner in sorted(schema["anyOf"], key=lambda inner: inner.get("type") == "string"):
        try:
            return read_value(line, inner)
        except ValueError:
            continue
    raise ValueError(f"Expected {description_of(schema)}.")


def _numbers_in(text: str, schema: Schema) -> list[int | float]:
    """Return the number in a text, as a list; empty if it does not fit."""
    try:
        number = Decimal(text.replace(",", "") if _GROUPED.fullmatch(text) else text)
    except InvalidOperation:
        return []
    if not number.is_finite() or number.adjusted() > MAX_DIGITS or not number_range(schema).holds(number):
        return []
    if schema["type"] == "number":
        return [float(number)]
    return [int(number)] if number == int(number) else []


def _named_values(pairs: list[tuple[str, str]], schema: Schema) -> dict[str, Any]:
    names = schema.get("propertyNames", {}).get("enum")
    if any(not name or (names is not None and name not in names) for name, _ in pairs):
        hint = f" The names are {', '.join(names)}." if names else ""
        raise ValueError(f"Expected {description_of(schema)}, with a colon after each name.{hint}")
    return {name: read_value(value, schema["additionalProperties"]) for name, value in pairs}


def _read_json(text: str, schema: Schema) -> Any:
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)  # refuses NaN and 1e999, which are not JSON
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected JSON of {description_of(schema)}: {error}") from None
    kind = {"object": dict, "array": list}.get(schema.get("type", ""), object)
    return _fitting([value] if isinstance(value, kind) else [], schema)
