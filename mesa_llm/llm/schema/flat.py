"""Flattens JSON schemas, so that they can be sampled from, described in words, or compiled to a grammar.

A flat schema has no references, no `allOf`, no lists of types, and no part that no value can satisfy. It is one of:
`{}` (any JSON), `{"enum": […]}`, `{"anyOf": […]}` with two or more alternatives, or `{"type": …}` with the limits of
that type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import Refused
from mesa_llm.llm.schema.ranges import number_range, number_step
from mesa_llm.records import ToolCall, ToolSpec, options_for

Schema = dict[str, Any]
"""A flat schema."""

MAX_NESTING = 2
"""Maximum number of times a schema may contain itself."""

LIMITS: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "boolean": (),
    "null": (),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "object": ("minProperties", "maxProperties"),
}
"""Type → keywords that limit its values; all others are for readers."""

SIGNS = {
    "properties": "object",
    "items": "array",
    "prefixItems": "array",
    "maxLength": "string",
    "minimum": "number",
}
"""Keyword → type of a schema that has it and names no type."""


def choice_schema(tools: Sequence[ToolSpec], options: Mapping[str, tuple[Any, ...]]) -> Schema:
    """Return the JSON schema of a choice of one tool and its arguments.

    Args:
        tools: The tools to choose from.
        options: As in `Observation.options`. A tool that requires an argument without any value is left out.

    Returns:
        The schema of `{"action": name, "arguments": {…}}`: an `anyOf`, even of a single tool, in the order of tools.

    Raises:
        Refused: If no tool can be called.
    """
    possible = choices(tools, options)
    if not possible:
        raise Refused(f"none of {[tool.name for tool in tools]} can be called: an argument has no possible value")
    return {"anyOf": possible}


def choices(tools: Sequence[ToolSpec], options: Mapping[str, tuple[Any, ...]]) -> list[Schema]:
    """Return the alternatives of `choice_schema`; empty if no tool can be called."""
    schemas = [_arguments(_Described(tool.digest, tool)) for tool in tools]
    offers = [
        (tool.name, narrow(schema, options_for(tool.name, options)))
        for tool, schema in zip(tools, schemas, strict=True)
    ]
    return [_choice(name, arguments) for name, arguments in offers if arguments is not None]


@dataclass(frozen=True, slots=True)
class _Described:
    """A tool as the key of a cache, compared by its digest."""

    digest: str
    tool: ToolSpec = field(compare=False)


@lru_cache(maxsize=1024)
def _arguments(described: _Described) -> Schema:
    return flat_schema({"type": "object", **described.tool.parameters})


def _choice(name: str, arguments: Schema) -> Schema:
    properties = {"action": {"enum": [name]}, "arguments": arguments}
    return {
        "type": "object",
        "properties": properties,
        "required": ["action", "arguments"],
        "additionalProperties": False,
    }


def call_choices(tools: Sequence[ToolSpec], options: Mapping[str, tuple[Any, ...]], max_calls: int = 1) -> list[Schema]:
    """Return the alternatives of what one reply may call.

    Args:
        tools: The tools to choose from.
        options: As in `Observation.options`.
        max_calls: Maximum number of actions in one reply.

    Returns:
        Those of `choices`; where several actions are possible, `{"actions": [{"action": name, "arguments": {…}}, …]}`
        with a list of actions, or of one tool that reads. Empty if no tool can be called.
    """
    if max_calls <= 1:
        return choices(tools, options)
    actions = choices([tool for tool in tools if tool.is_action], options)
    readers = choices([tool for tool in tools if not tool.is_action], options)
    return [_list_of_calls(calls, n_calls) for calls, n_calls in ((actions, max_calls), (readers, 1)) if calls]


def _list_of_calls(calls: list[Schema], max_calls: int) -> Schema:
    item = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return {
        "type": "object",
        "properties": {"actions": {"type": "array", "items": item, "minItems": 1, "maxItems": max_calls}},
        "required": ["actions"],
        "additionalProperties": False,
    }


def only_value(schema: Schema) -> tuple[Any, ...]:
    """Return the one value that satisfies a flat schema, in a tuple; an empty one if there are several.

    What may be left out counts as a second value, and so does any other text of a length.
    """
    if "enum" in schema:
        return tuple(schema["enum"]) if len(schema["enum"]) == 1 else ()
    match schema.get("type"):
        case "null":
            return (None,)
        case "integer":
            span = number_range(schema)
            is_one = span.low is not None and span.low == span.high and span.holds(span.low)
            return (int(span.low),) if is_one and span.low is not None else ()
        case "object":
            properties: Mapping[str, Schema] = schema["properties"]
            if schema["additionalProperties"] is not False or set(properties) != set(schema["required"]):
                return ()
            values = {name: only_value(inner) for name, inner in properties.items()}
            return ({name: value for name, (value,) in values.items()},) if all(values.values()) else ()
        case _:
            return ()


def only_call(tools: Sequence[ToolSpec], options: Mapping[str, tuple[Any, ...]]) -> ToolCall | None:
    """Return the one action and its arguments that tools allow; None if there are several, or none.

    Args:
        tools: The tools to choose from; any that only reads is a second choice.
        options: As in `Observation.options`.
    """
    if len(tools) > 1 and all(options.values()):  # nearly always
        return None
    if not options and not any(_may_be_only(_Described(tool.digest, tool)) for tool in tools):
        return None
    possible = [tool for tool in tools if not _lacks_value(tool, options)]
    if len(possible) != 1 or not possible[0].is_action:
        return None
    offers = choices(possible, options)
    values = only_value(offers[0]) if offers else ()
    return ToolCall(values[0]["action"], values[0]["arguments"]) if values else None


@lru_cache(maxsize=1024)
def _may_be_only(described: _Described) -> bool:
    """Check whether a tool can be called in one way only. Cached, since many requests offer the same ones."""
    offers = choices([described.tool], {})
    return bool(offers and only_value(offers[0]))


def _lacks_value(tool: ToolSpec, options: Mapping[str, tuple[Any, ...]]) -> bool:
    """Check whether an argument that a tool requires has no possible value now."""
    own = options_for(tool.name, options)
    return not all(own.get(name, True) for name in tool.parameters.get("required", ()))


def narrow(schema: Schema | None, options: Mapping[str, Sequence[Any]]) -> Schema | None:
    """Narrow the properties of a flat schema, at any depth, to the values they may take now.

    Args:
        schema: A flat schema; None: nothing satisfies it.
        options: Name of a property → its values. The items of a list are narrowed to them, each at most once; what
            may be null still may.

    Returns:
        A flat schema; None if no value can satisfy it.
    """
    if not options or schema is None:
        return schema
    if "anyOf" in schema:
        return either([narrow(inner, options) for inner in schema["anyOf"]])
    if schema.get("type") == "array":
        items = narrow(schema["items"], options)
        return _no_items(schema) if items is None else {**schema, "items": items}
    if schema.get("type") != "object":
        return schema
    properties = {
        name: _one_of(inner, options[name]) if name in options else narrow(inner, options)
        for name, inner in schema["properties"].items()
    }
    if any(properties[name] is None for name in schema["required"]):
        return None
    return {**schema, "properties": {name: inner for name, inner in properties.items() if inner is not None}}


def _one_of(schema: Schema, values: Sequence[Any]) -> Schema | None:
    """Narrow a flat schema, or the items of a list, to some values."""
    alternatives: list[Schema] = schema.get("anyOf", [schema])
    narrowed: Schema | None = {"enum": list(values)} if values else None
    array = next((alternative for alternative in alternatives if alternative.get("type") == "array"), None)
    if array is not None:
        max_items = min(array.get("maxItems", len(values)), len(values))
        limits = {"maxItems": max_items, "uniqueItems": True}
        narrowed = _no_items(array) if narrowed is None else {**array, **limits, "items": narrowed}
        narrowed = None if narrowed is None or array.get("minItems", 0) > max_items else narrowed
    return either([narrowed, {"type": "null"} if {"type": "null"} in alternatives else None])


def with_enums(schema: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema whose properties, at any depth, are enums of the values they may take now.

    Args:
        schema: Any JSON schema, as pydantic writes it.
        options: Name of a property → its values. In a list, the items are enums; what may be null still may.
    """
    result: dict[str, Any] = {}
    for key, inner in schema.items():
        if key in ("properties", "$defs"):
            result[key] = {
                name: _with_enum(part, options[name])
                if key == "properties" and name in options
                else with_enums(part, options)
                for name, part in inner.items()
            }
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            result[key] = [with_enums(part, options) for part in inner]
        else:
            result[key] = with_enums(inner, options) if key == "items" and isinstance(inner, Mapping) else inner
    return result


def _with_enum(schema: Mapping[str, Any], values: Any) -> dict[str, Any]:
    if schema.get("type") == "array":
        return {**schema, "items": _with_enum(schema.get("items", {}), values), "uniqueItems": True}
    shared = {key: value for key, value in schema.items() if key in ("type", "description", "default")}
    alternatives: Sequence[Mapping[str, Any]] = schema.get("anyOf", ())
    array = next((alternative for alternative in alternatives if alternative.get("type") == "array"), None)
    narrowed = {"enum": values} if array is None else _with_enum(array, values)
    if {"type": "null"} in alternatives:
        return {**shared, "anyOf": [narrowed, {"type": "null"}]}
    return {**shared, **narrowed}


def _no_items(array: Schema) -> Schema | None:
    """Return a list without items after its `prefixItems`, as no value satisfies `items`; None if it needs more."""
    n_prefix = len(array.get("prefixItems", ()))
    return None if array.get("minItems", 0) > n_prefix else {**array, "items": {}, "maxItems": n_prefix}


def either(alternatives: Iterable[Schema | None]) -> Schema | None:
    """Join alternatives into one flat schema; those that no value satisfies (None) are dropped."""
    flat: list[Schema] = []
    for alternative in alternatives:
        if alternative is not None:
            flat += alternative.get("anyOf", [alternative])
    return None if not flat else flat[0] if len(flat) == 1 else {"anyOf": flat}


def flat_schema(schema: Mapping[str, Any]) -> Schema:
    """Flatten a JSON schema.

    References are replaced by what they refer to; a schema that contains itself does so at most `MAX_NESTING` times.
    `pattern` and dependencies between properties are left out.

    Args:
        schema: Any JSON schema, as pydantic writes it.

    Raises:
        Refused: If no value can satisfy it.
    """
    flat = _Flattening(schema).visit(schema, ())
    if flat is None:
        raise Refused(f"no value can satisfy this JSON schema: {canonical_json(schema)[:300]}")
    return flat


class _Flattening:
    """A walk through a schema, in which None stands for a part that no value satisfies."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.named: Mapping[str, Any] = {**root.get("definitions", {}), **root.get("$defs", {})}

    def visit(self, schema: Any, within: tuple[str, ...]) -> Schema | None:
        if not isinstance(schema, Mapping):
            return None if schema is False else {}
        schema = cast("Mapping[str, Any]", schema)
        if "$ref" in schema:
            return self.resolve(schema, within)
        if "allOf" in schema:
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            merged = {key: value for part in [rest, *schema["allOf"]] for key, value in part.items()}
            return self.visit(merged, within)
        if "const" in schema:
            return {"enum": [schema["const"]]}
        if "enum" in schema:
            return {"enum": list(schema["enum"])} if schema["enum"] else None
        for key in ("anyOf", "oneOf"):
            if key in schema:
                tag = schema.get("discriminator", {}).get("propertyName")
                return either([_tagged(self.visit(inner, within), tag) for inner in schema[key]])
        kind = schema.get("type") or next((SIGNS[sign] for sign in SIGNS if sign in schema), None)
        if isinstance(kind, list):
            names = cast("list[str]", kind)
            return either([self.visit({**schema, "type": name}, within) for name in names])
        return self.typed(schema, kind, within) if kind in LIMITS else {}

    def resolve(self, schema: Mapping[str, Any], within: tuple[str, ...]) -> Schema | None:
        """Replace a reference by its target; keywords beside the reference override the target's."""
        reference = str(schema["$ref"])
        if within.count(reference) > MAX_NESTING:
            return None
        name = reference.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        target = self.root if reference == "#" else self.named.get(name, {})
        beside = {key: value for key, value in schema.items() if key not in {"$ref", "$defs", "definitions"}}
        return self.visit({**target, **beside}, (*within, reference))

    def typed(self, schema: Mapping[str, Any], kind: str, within: tuple[str, ...]) -> Schema | None:
        flat: Schema = {"type": kind}
        flat |= {limit: schema[limit] for limit in LIMITS[kind] if isinstance(schema.get(limit), (int, float))}
        match kind:
            case "object":
                return self.object(schema, flat, within)
            case "array":
                return self.array(schema, flat, within)
            case "integer" | "number":
                return _number(flat)
            case "string" if "format" in schema:
                return {**flat, "format": schema["format"]}
            case _:
                return None if flat.get("minLength", 0) > flat.get("maxLength", math.inf) else flat

    def array(self, schema: Mapping[str, Any], flat: Schema, within: tuple[str, ...]) -> Schema | None:
        prefix = [self.visit(inner, within) for inner in schema.get("prefixItems", ())]
        if None in prefix or flat.get("minItems", 0) > flat.get("maxItems", math.inf):
            return None
        flat |= {"prefixItems": prefix} if prefix else {}
        items = self.visit(schema.get("items", {}), within)
        return _no_items(flat) if items is None else {**flat, "items": items}

    def object(self, schema: Mapping[str, Any], flat: Schema, within: tuple[str, ...]) -> Schema | None:
        free = self.visit(schema.get("additionalProperties", {}), within)
        required = [str(name) for name in schema.get("required", ())]
        properties = {name: self.visit(inner, within) for name, inner in schema.get("properties", {}).items()}
        properties |= {name: free for name in required if name not in properties}
        if any(properties[name] is None for name in required):
            return None
        flat["properties"] = {name: inner for name, inner in properties.items() if inner is not None}
        flat["required"] = required
        names = self.visit({"type": "string", **schema.get("propertyNames", {})}, within)
        flat["additionalProperties"] = False if free is None or names is None else free
        return {**flat, "propertyNames": names} if "propertyNames" in schema and names is not None else flat


def _tagged(schema: Schema | None, tag: str | None) -> Schema | None:
    """Require the property that distinguishes alternatives, even if it has a default."""
    if schema is None or tag not in schema.get("properties", {}) or tag in schema["required"]:
        return schema
    return {**schema, "required": [*schema["required"], tag]}


def _number(flat: Schema) -> Schema | None:
    """Flatten a number: None for an empty range, an enum for a few multiples of a step."""
    span = number_range(flat)
    if span.is_empty:
        return None
    step = number_step(flat)
    multiples = None if step is None else span.multiples(step)
    if multiples is None:
        return flat
    kind = int if flat["type"] == "integer" else float
    return {"enum": [kind(number) for number in multiples]} if multiples else None


def wire_tools(tools: Sequence[ToolSpec], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return tools in the form of OpenAI's chat completions, with the values that arguments may take now as enums.

    Args:
        tools: The tools.
        options: As in `Observation.options`.
    """
    tools, options = offered_tools(tools, options)
    if not options:
        return [tool.wire for tool in tools]
    wire: list[dict[str, Any]] = []
    for tool in tools:
        function = {**tool.wire["function"], "parameters": with_enums(tool.parameters, options_for(tool.name, options))}
        wire.append({"type": "function", "function": function})
    return wire


def offered_tools(
    tools: Sequence[ToolSpec], options: Mapping[str, Any]
) -> tuple[Sequence[ToolSpec], Mapping[str, Any]]:
    """Leave out options without any value, and tools that require such an argument, unless that leaves no tool."""
    if all(options.values()):
        return tools, options
    possible = [
        tool
        for tool in tools
        if all(options_for(tool.name, options).get(name, True) for name in tool.parameters.get("required", ()))
    ]
    return possible or tools, {name: values for name, values in options.items() if values}
