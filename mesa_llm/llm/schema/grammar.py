r"""Compiles JSON schemas to grammars, to which llama.cpp restricts what a model writes.

Such a grammar accepts one JSON text without whitespace, with bounded strings, numbers, lists and nesting: without
bounds, a small model pads with spaces and never closes a string. An accepted text satisfies the schema, except for
`uniqueItems`, distinct names for a `minProperties`, a `multipleOf` with more than `MAX_MULTIPLES` values, and what
`flat_schema` leaves out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mesa_llm.errors import Refused
from mesa_llm.llm.schema.flat import Schema, flat_schema
from mesa_llm.llm.schema.ranges import Range, number_range

FREE_TEXT = 200
"""Maximum number of characters of a string, unless the schema asks for more."""

MAX_NAME = 40
"""Maximum number of characters of a property's name, where names are free."""

MAX_ITEMS = 8
"""Maximum number of items of a list, and of properties with free names, unless the schema asks for more."""

ANY_DEPTH = 2
"""Maximum depth of a value that the schema does not restrict."""

MAX_NUMBER = Decimal(999_999_999)
"""Maximum magnitude of a number that the schema does not bound."""

MAX_DECIMALS = 12
"""Maximum number of decimal places of a number."""

FINENESS = 9
"""Minimum number of steps that a range is divided into, if `MAX_DECIMALS` places allow as many."""

CHARACTER = r'[^"\\\x00-\x1F\x7F-\x9F] | "\\" ["\\]'
"""One character of a JSON string: no control character, and only quote and backslash escaped."""


def schema_to_gbnf(schema: Mapping[str, Any], free_text: int = FREE_TEXT) -> str:
    """Compile a JSON schema to a GBNF grammar without whitespace.

    Args:
        schema: Any JSON schema, as pydantic writes it; properties keep its order.
        free_text: Maximum number of characters of a string, unless its `minLength` asks for more.

    Returns:
        The grammar; its first rule is `root`.

    Raises:
        Refused: If no value satisfies the schema.

    Source:
        GBNF as in the guide to grammars in the repository of llama.cpp.
    """
    writer = _Writer(free_text)
    root = writer.value(flat_schema(schema))
    rules = [f"{name} ::= {body}" for name, body in writer.rules.items()]
    return "\n".join([f"root ::= {root}", *rules]) + "\n"


class _Writer:
    """Writes expressions of a grammar; long ones become rules, equal ones the same rule."""

    def __init__(self, free_text: int) -> None:
        self.free_text = free_text
        self.rules: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def rule(self, body: str, name: str = "") -> str:
        """Make an expression a rule, and return the rule's name."""
        if body not in self.names:
            self.names[body] = name or f"r{len(self.rules)}"
            self.rules[self.names[body]] = body
        return self.names[body]

    def value(self, schema: Schema) -> str:
        """Return the expression of a flat schema."""
        if "enum" in schema:
            return _either([_quoted(value) for value in schema["enum"]])
        if "anyOf" in schema:
            return self.rule(_either([self.value(inner) for inner in schema["anyOf"]]))
        match schema.get("type"):
            case "string":
                return self.string(schema, self.free_text)
            case "integer" | "number":
                return self.rule(_number(schema))
            case "boolean":
                return '("true" | "false")'
            case "null":
                return '"null"'
            case "array":
                return self.rule(self.array(schema))
            case "object":
                return self.rule(self.object(schema))
            case _:
                return self.anything(ANY_DEPTH)

    def anything(self, depth: int) -> str:
        """Return the expression of any JSON of at most this depth."""
        flat = [{"type": kind} for kind in ("string", "integer", "boolean", "null")]
        kinds = [self.value(schema) for schema in flat]
        if depth > 0:
            inner = self.anything(depth - 1)
            pair = f'{self.string({}, MAX_NAME)} ":" {inner}'
            kinds += [f'"[" {_listed(inner, 0, MAX_ITEMS)} "]"', f'"{{" {_listed(pair, 0, MAX_ITEMS)} "}}"']
        return self.rule(_either(kinds))

    def string(self, schema: Schema, max_length: int) -> str:
        """Return the expression of a string, of `minLength` to `maxLength` characters, but at most `max_length`."""
        low = int(schema.get("minLength", 0))
        high = max(low, min(int(schema.get("maxLength", max_length)), max_length))
        character = self.rule(CHARACTER, "char")
        return self.rule(rf'"\"" {_times(character, low, high)} "\""')

    def array(self, schema: Schema) -> str:
        """Return the expression of a list; after `prefixItems`, it has only as many items as it requires."""
        prefix = [self.value(inner) for inner in schema.get("prefixItems", ())]
        low = int(schema.get("minItems", 0)) - len(prefix)
        max_items = int(schema.get("maxItems", max(low, 0 if prefix else MAX_ITEMS) + len(prefix))) - len(prefix)
        if not prefix:
            return f'"[" {_listed(self.value(schema["items"]), low, min(max_items, max(low, MAX_ITEMS)))} "]"'
        if max_items < 0:
            prefix, max_items = prefix[:max_items], 0
        repeated = _times(f'("," {self.value(schema["items"])})', max(low, 0), min(max_items, max(low, 0)))
        return f'"[" {' "," '.join(prefix)} {repeated} "]"'

    def object(self, schema: Schema) -> str:
        """Return the expression of an object: its properties in order, or pairs with free names if it declares none."""
        if schema["properties"] or schema["additionalProperties"] is False:
            members = [
                (f'{_quoted(name)} ":" {self.value(inner)}', name in schema["required"])
                for name, inner in schema["properties"].items()
            ]
            return f'"{{" {_members(members, anything_before=False)} "}}"'
        name = self.value(schema["propertyNames"]) if "propertyNames" in schema else self.string({}, MAX_NAME)
        pair = f'{name} ":" {self.value(schema["additionalProperties"])}'
        low = int(schema.get("minProperties", 0))
        high = max(low, min(int(schema.get("maxProperties", MAX_ITEMS)), MAX_ITEMS))
        return f'"{{" {_listed(pair, low, high)} "}}"'


def _members(members: list[tuple[str, bool]], anything_before: bool) -> str:
    """Return the expression of properties in order, of which some may be left out.

    Args:
        members: Expression of each property, and whether it is required.
        anything_before: Whether a property precedes them, so that the first needs a comma.
    """
    if not members:
        return ""
    (member, is_required), *following = members
    if anything_before:
        text = f'"," {member}' if is_required else f'("," {member})?'
        return f"{text} {_members(following, anything_before=True)}"
    text = f"{member} {_members(following, anything_before=True)}"
    if is_required:
        return text
    return f"({text} | {_members(following, anything_before=False)})" if following else f"({text})?"


def _listed(item: str, low: int, high: int) -> str:
    """Return the expression of `low` to `high` items with commas between them."""
    if high <= 0:
        return ""
    repeated = _times(f'("," {item})', max(low - 1, 0), high - 1)
    return f"{item} {repeated}" if low > 0 else f"({item} {repeated})?"


def _times(atom: str, low: int, high: int) -> str:
    """Return the expression of `low` to `high` repetitions."""
    if high <= 0:
        return ""
    return f"{atom}{{{low},{high}}}"


def _either(alternatives: list[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"({' | '.join(alternatives)})"


def _quoted(value: Any) -> str:
    """Return the JSON of a value as a literal of the grammar."""
    return _literal(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(schema: Schema) -> str:
    """Return the expression of a range's numbers: integers, or numbers of two decimal places, more if it is narrow."""
    span = number_range(schema)
    if schema["type"] == "integer":
        return _grid(*_ends(span, 0), 0)
    grids = {places: _ends(span, places) for places in range(2, MAX_DECIMALS + 1)}
    filled = [places for places, (low_index, high_index) in grids.items() if low_index <= high_index]
    if not filled:
        raise Refused(f"no number of at most {MAX_DECIMALS} decimal places lies in {schema}")
    fine = (places for places in filled if grids[places][1] - grids[places][0] >= FINENESS)
    places = next(fine, filled[0])
    return _grid(*grids[places], places)


def _ends(span: Range, places: int) -> tuple[int, int]:
    """Return the first and the last number in a range, counted in units of the last decimal place."""
    low = min(-MAX_NUMBER, 2 * (span.high or Decimal(0))) if span.low is None else span.low
    high = max(MAX_NUMBER, 2 * (span.low or Decimal(0))) if span.high is None else span.high
    low, high = low.scaleb(places), high.scaleb(places)
    first = math.floor(low) + 1 if span.low_is_open else math.ceil(low)
    last = math.ceil(high) - 1 if span.high_is_open else math.floor(high)
    return first, last


def _grid(first: int, last: int, places: int) -> str:
    """Return the expression of the numbers from `first` to `last`, counted in units of the last decimal place."""
    signed = [f'"-" {_magnitudes(max(1, -last), -first, places)}'] if first < 0 else []
    return _either(signed + ([_magnitudes(max(0, first), last, places)] if last >= 0 else []))


def _magnitudes(low: int, high: int, places: int) -> str:
    """Return the expression of numbers without a sign or superfluous zeros in front, by their number of digits."""
    min_digits = places + 1
    classes: list[str] = []
    for digits in range(max(min_digits, len(str(low))), max(min_digits, len(str(high))) + 1):
        start = max(low, 10 ** (digits - 1) if digits > min_digits else 0)
        stop = min(high, 10**digits - 1)
        classes.append(_between(_dotted(start, digits, places), _dotted(stop, digits, places)))
    return _either(classes)


def _dotted(units: int, digits: int, places: int) -> str:
    """Return a number, in units of its last decimal place, with all its digits and the point."""
    text = str(units).zfill(digits)
    return f"{text[:-places]}.{text[-places:]}" if places else text


def _between(low: str, high: str) -> str:
    """Return the expression of all texts between two of equal length with the point, if any, in the same place."""
    if low == high:
        return _literal(low)
    if not low.strip("0.") and not high.strip("9."):
        return ' "." '.join(f"[0-9]{{{len(digits)}}}" if digits else "" for digits in low.split("."))
    if low[0] == high[0]:
        return f"{_literal(low[0])} {_between(low[1:], high[1:])}"
    first, last, parts = int(low[0]), int(high[0]), list[str]()
    if low[1:].strip("0."):
        parts.append(f"{_literal(low[0])} {_between(low[1:], _filled(low[1:], '9'))}")
        first += 1
    if high[1:].strip("9."):
        parts.append(f"{_literal(high[0])} {_between(_filled(high[1:], '0'), high[1:])}")
        last -= 1
    if first <= last:
        anything = _between(_filled(low[1:], "0"), _filled(low[1:], "9")) if low[1:] else ""
        parts.append(f"[{first}-{last}] {anything}")
    return _either(parts)


def _filled(text: str, digit: str) -> str:
    """Return a number with all its digits replaced by one."""
    return "".join("." if character == "." else digit for character in text)
