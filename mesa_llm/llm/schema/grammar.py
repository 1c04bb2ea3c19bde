r"""Compiles JSON schemas to grammars, to which llama.cpp restricts what a model writes.

Such a grammar accepts one JSON text on one line, in one notation: as models write it by themselves, or without blanks
and with bounded strings and lists, as the smallest models pad with spaces and never close a string. Never is there a
choice between a blank and none: a model that is kept from writing what it would have written next is pushed off its
path, and what it then writes says less about what it was asked. An accepted text satisfies the schema, except for
`uniqueItems`, distinct names for a `minProperties`, a `multipleOf` with more than `MAX_MULTIPLES` values, lengths above
`MAX_COUNTED`, and what `flat_schema` leaves out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mesa_llm.errors import Refused
from mesa_llm.llm.schema.flat import Schema, flat_schema
from mesa_llm.llm.schema.ranges import Range, number_range

MAX_COUNTED = 1000
"""Maximum length of a string that the grammar counts; one that may be longer ends where the model ends it."""

REASONING = "reasoning"
"""Name of the field in which a model reasons before it decides, in a few sentences. Unless its schema bounds it, it
ends after `MAX_COUNTED` characters: a small model that repeats itself would fill its whole reply with it."""

MAX_NAME = 40
"""Maximum number of characters of a property's name, where names are free."""

ANY_DEPTH = 2
"""Maximum depth of a value that the schema does not restrict."""

MAX_NUMBER = Decimal(999_999_999)
"""Maximum magnitude of a number that the schema does not bound."""

MAX_DECIMALS = 12
"""Maximum number of decimal places of a number."""

FINENESS = 9
"""Minimum number of steps that a range is divided into, if `MAX_DECIMALS` places allow as many."""

CHARACTER = r'[^"\\\x00-\x1F\x7F-\x9F] | "\\" '
"""Beginning of the expression of one character of a JSON string: no control character, or an escape."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How a model writes JSON, and how much of it."""

    blank: str
    """What follows each colon and comma: a blank or nothing."""

    escapes: str
    """Set of the characters that may be escaped."""

    max_text: int | None
    """Maximum number of characters of a string, unless its `minLength` asks for more; None: as the schema says."""

    max_items: int | None
    """The same for items of a list, and for properties with free names."""

    has_short_numbers: bool
    """Whether a number may have fewer decimal places than its range allows."""


NATURAL = Notation(blank=" ", escapes=r'["\\/nt]', max_text=None, max_items=None, has_short_numbers=True)
"""The notation of Python's `json.dumps`, which language models use by themselves."""

COMPACT = Notation(blank="", escapes=r'["\\]', max_text=200, max_items=8, has_short_numbers=False)
"""The notation for a model that pads with spaces and never ends a text or a list."""


def schema_to_gbnf(schema: Mapping[str, Any], notation: Notation = COMPACT) -> str:
    """Compile a JSON schema to a GBNF grammar.

    Args:
        schema: Any JSON schema, as pydantic writes it; properties keep its order.
        notation: How JSON is written.

    Returns:
        The grammar; its first rule is `root`.

    Raises:
        Refused: If no value satisfies the schema.

    Source:
        GBNF as in the guide to grammars in the repository of llama.cpp.
    """
    writer = _Writer(notation)
    root = writer.value(flat_schema(schema))
    rules = [f"{name} ::= {body}" for name, body in writer.rules.items()]
    return "\n".join([f"root ::= {root}", *rules]) + "\n"


class _Writer:
    """Writes expressions of a grammar; long ones become rules, equal ones the same rule."""

    def __init__(self, notation: Notation) -> None:
        self.notation = notation
        self.comma, self.colon = f'",{notation.blank}"', f'":{notation.blank}"'
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
            return _either([self.quoted(value) for value in schema["enum"]])
        if "anyOf" in schema:
            return self.rule(_either([self.value(inner) for inner in schema["anyOf"]]))
        match schema.get("type"):
            case "string":
                return self.string(schema, self.notation.max_text)
            case "integer" | "number":
                return self.rule(_number(schema, self.notation.has_short_numbers))
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
            pair = f"{self.string({}, MAX_NAME)} {self.colon} {inner}"
            max_items = self.notation.max_items
            kinds += [f'"[" {self.listed(inner, 0, max_items)} "]"', f'"{{" {self.listed(pair, 0, max_items)} "}}"']
        return self.rule(_either(kinds))

    def string(self, schema: Schema, max_length: int | None) -> str:
        """Return the expression of a string, of `minLength` to `maxLength` characters, but at most `max_length`."""
        low = int(schema.get("minLength", 0))
        high = _smaller(schema.get("maxLength"), max_length, low)
        character = self.rule(CHARACTER + self.notation.escapes, "char")
        return self.rule(rf'"\"" {_times(character, low, None if high and high > MAX_COUNTED else high)} "\""')

    def array(self, schema: Schema) -> str:
        """Return the expression of a list; after `prefixItems`, it has only as many items as it requires."""
        prefix = [self.value(inner) for inner in schema.get("prefixItems", ())]
        low = int(schema.get("minItems", 0)) - len(prefix)
        if not prefix:
            high = _smaller(schema.get("maxItems"), self.notation.max_items, low)
            return f'"[" {self.listed(self.value(schema["items"]), low, high)} "]"'
        max_items = int(schema.get("maxItems", max(low, 0) + len(prefix))) - len(prefix)
        if max_items < 0:
            prefix, max_items = prefix[:max_items], 0
        repeated = _times(f"({self.comma} {self.value(schema['items'])})", max(low, 0), min(max_items, max(low, 0)))
        return f'"[" {f" {self.comma} ".join(prefix)} {repeated} "]"'

    def object(self, schema: Schema) -> str:
        """Return the expression of an object: its properties in order, or pairs with free names if it declares none."""
        if schema["properties"] or schema["additionalProperties"] is False:
            members = [
                (f"{self.quoted(name)} {self.colon} {self.value(_bounded(name, inner))}", name in schema["required"])
                for name, inner in schema["properties"].items()
            ]
            return f'"{{" {self.members(members, anything_before=False)} "}}"'
        name = self.value(schema["propertyNames"]) if "propertyNames" in schema else self.string({}, MAX_NAME)
        pair = f"{name} {self.colon} {self.value(schema['additionalProperties'])}"
        low = int(schema.get("minProperties", 0))
        return (
            f'"{{" {self.listed(pair, low, _smaller(schema.get("maxProperties"), self.notation.max_items, low))} "}}"'
        )

    def members(self, members: list[tuple[str, bool]], anything_before: bool) -> str:
        """Return the expression of properties in order, of which some may be left out.

        Args:
            members: Expression of each property, and whether it is required.
            anything_before: Whether a property precedes them, so that the first needs a comma.
        """
        if not members:
            return ""
        (member, is_required), *following = members
        if anything_before:
            text = f"{self.comma} {member}" if is_required else f"({self.comma} {member})?"
            return f"{text} {self.members(following, anything_before=True)}"
        text = f"{member} {self.members(following, anything_before=True)}"
        if is_required:
            return text
        return f"({text} | {self.members(following, anything_before=False)})" if following else f"({text})?"

    def listed(self, item: str, low: int, high: int | None) -> str:
        """Return the expression of `low` to `high` items with commas between them; None: any number."""
        if high is not None and high <= 0:
            return ""
        repeated = _times(f"({self.comma} {item})", max(low - 1, 0), None if high is None else high - 1)
        return f"{item} {repeated}" if low > 0 else f"({item} {repeated})?"

    def quoted(self, value: Any) -> str:
        """Return the JSON of a value as a literal of the grammar."""
        blank = self.notation.blank
        return _literal(json.dumps(value, ensure_ascii=False, separators=(f",{blank}", f":{blank}")))


def _bounded(name: str, schema: Schema) -> Schema:
    """Return the schema of a property, with a maximum length if it is the reasoning and has none."""
    return {"maxLength": MAX_COUNTED, **schema} if name == REASONING and schema.get("type") == "string" else schema


def _smaller(limit: float | None, bound: int | None, low: int) -> int | None:
    """Return the smaller of a limit of the schema and a bound, but at least `low`; None: neither is set."""
    limits = [int(one) for one in (limit, bound) if one is not None]
    return max(low, min(limits)) if limits else None


def _times(atom: str, low: int, high: int | None) -> str:
    """Return the expression of `low` to `high` repetitions; None: any number from `low`."""
    if high is None:
        return f"{atom}*" if low <= 0 else f"{atom}{{{low},}}"
    return f"{atom}{{{low},{high}}}" if high > 0 else ""


def _either(alternatives: list[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"({' | '.join(alternatives)})"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(schema: Schema, has_short: bool) -> str:
    """Return the expression of a range's numbers: integers, or numbers of two decimal places, more if it is narrow.

    Args:
        schema: A flat schema of numbers.
        has_short: Whether fewer decimal places are accepted as well.
    """
    span = number_range(schema)
    if schema["type"] == "integer":
        return _grid(*_ends(span, 0), 0)
    grids = {places: _ends(span, places) for places in range(2, MAX_DECIMALS + 1)}
    filled = [places for places, (low_index, high_index) in grids.items() if low_index <= high_index]
    if not filled:
        raise Refused(f"no number of at most {MAX_DECIMALS} decimal places lies in {schema}")
    fine = (places for places in filled if grids[places][1] - grids[places][0] >= FINENESS)
    places = next(fine, filled[0])
    shorter = {fewer: _ends(span, fewer) for fewer in range(places)} if has_short else {}
    counts = [fewer for fewer, (low_index, high_index) in shorter.items() if low_index <= high_index]
    return _either([*(_grid(*shorter[fewer], fewer) for fewer in counts), _grid(*grids[places], places)])


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
