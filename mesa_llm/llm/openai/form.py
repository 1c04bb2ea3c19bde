"""Describes in words the form that a reply must have, for endpoints that do not enforce it.

The sentences are templates, `mesa_llm/prompts/endpoint_*.md`; what a schema allows is put into words here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from mesa_llm.llm.schema.ranges import bound_text
from mesa_llm.prompts import Prompts
from mesa_llm.records import ToolSpec

MAX_DEPTH = 6
"""Maximum depth to which a schema is described."""

MAX_EXAMPLE = 4
"""Maximum number of properties that an example shows."""

_FORMATS = {"date": "a date as YYYY-MM-DD", "date-time": "a time as YYYY-MM-DDTHH:MM:SSZ", "email": "an e-mail address"}

Schema = Mapping[str, Any]
"""Any JSON schema, as pydantic writes it."""


def answer_text(schema: Schema, prompts: Prompts, *, has_tools: bool = False) -> str:
    """Describe the JSON that a reply has to be: one line that says everything, and one example without values.

    An example with values would draw replies towards them.

    Args:
        schema: The schema of the reply.
        prompts: Templates of the model.
        has_tools: Whether tools may be called first.
    """
    fields = _resolved(schema, schema)
    return prompts.fill(
        "endpoint_answer.md",
        description=description_of(schema),
        example=_example(fields),
        is_object=fields.get("type") == "object",
        has_tools=has_tools,
    )


def call_text(functions: Sequence[Schema], prompts: Prompts, max_calls: int = 1) -> str:
    """Describe tools, all that a model may do with them, and how it calls one in its text.

    Args:
        functions: Name, description and parameters of each tool, as they are sent to endpoints.
        prompts: Templates of the model.
        max_calls: Maximum number of actions in one reply.
    """
    offers = "\n".join(f"- {signature_of(function)}: {function.get('description', '')}" for function in functions)
    return prompts.fill("endpoint_calls.md", offers=offers, max_calls=max_calls)


def signature_of(function: Schema) -> str:
    """Describe how a tool is called: `walk(metres?: a whole number from 1 to 9)`."""
    parameters: Schema = function.get("parameters", {})
    required = parameters.get("required", ())
    return f"{function['name']}({', '.join(_members(parameters, parameters, required, 0))})"


def limits_text(functions: Sequence[Schema], prompts: Prompts) -> str:
    """Describe the arguments of tools whose schemas cannot be sent whole."""
    return prompts.fill("endpoint_arguments.md", signatures="; ".join(map(signature_of, functions)))


def brief_call_text(tools: Sequence[ToolSpec], prompts: Prompts, max_calls: int = 1) -> str:
    """Ask for a call of a tool, from a model that can call tools but cannot be made to."""
    return prompts.fill("endpoint_call_now.md", names=[tool.name for tool in tools], max_calls=max_calls)


def description_of(schema: Schema) -> str:
    """Describe what a JSON schema allows: `{"vote": "Green" or "Oil", "score": a whole number from 1 to 5}`."""
    return _words(schema, schema, 0)


def _words(schema: Any, root: Schema, depth: int) -> str:
    fields = _resolved(schema, root)
    if not fields or depth > MAX_DEPTH:
        return "any JSON"
    if "const" in fields:
        return _json(fields["const"])
    if "enum" in fields:
        return _either([_json(value) for value in fields["enum"]])
    for key in ("anyOf", "oneOf"):
        if key in fields:
            return _either([_words(part, root, depth + 1) for part in fields[key]])
    kind = fields.get("type")
    if isinstance(kind, list):
        names = cast("list[Any]", kind)
        return _either([_words({**fields, "type": name}, root, depth + 1) for name in names])
    match kind:
        case "string":
            return _text_words(fields)
        case "integer" | "number":
            return _number_words(fields)
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case "array":
            return _list_words(fields, root, depth)
        case "object":
            return _object_words(fields, root, depth)
        case _:
            return "any JSON"


def _resolved(schema: Any, root: Schema) -> Schema:
    """Return a schema with its reference and its parts put together; empty if it is none."""
    if not isinstance(schema, Mapping):
        return {}
    fields: dict[str, Any] = dict(cast("Schema", schema))
    for _ in range(MAX_DEPTH):
        if "$ref" in fields:
            named = {**root.get("definitions", {}), **root.get("$defs", {})}
            target = named.get(str(fields["$ref"]).rpartition("/")[2], {})
            fields = {**target, **{key: value for key, value in fields.items() if key != "$ref"}}
        elif "allOf" in fields:
            own = {key: value for key, value in fields.items() if key != "allOf"}
            fields = {key: value for part in [*fields["allOf"], own] for key, value in part.items()}
        else:
            return fields
    return {}


def _text_words(schema: Schema) -> str:
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    words = _FORMATS.get(schema.get("format", ""), "text")
    if schema.get("format") and words == "text":
        words = f"a text in the format {schema['format']}"
    if low and high is not None:
        words += f" of {high} characters" if low == high else f" of {low} to {high} characters"
    elif low:
        words += " that is not empty" if low == 1 else f" of at least {low} characters"
    elif high is not None:
        words += f" of at most {high} characters"
    return f"{words} that matches the pattern {schema['pattern']}" if "pattern" in schema else words


def _number_words(schema: Schema) -> str:
    words = "a whole number" if schema["type"] == "integer" else "a number"
    low, high = bound_text(schema.get("minimum")), bound_text(schema.get("maximum"))
    if low and high:
        words += f" from {low} to {high}"
    elif low or high:
        words += f" of at most {high}" if high else f" of at least {low}"
    limits = (("exclusiveMinimum", "above"), ("exclusiveMaximum", "below"), ("multipleOf", "a multiple of"))
    more = [f"{limit} {text}" for name, limit in limits if (text := bound_text(schema.get(name)))]
    return ", ".join([words, *more])


def _list_words(schema: Schema, root: Schema, depth: int) -> str:
    if parts := schema.get("prefixItems"):
        return f"[{', '.join(_words(part, root, depth + 1) for part in parts)}]"
    low, high = schema.get("minItems", 0), schema.get("maxItems")
    count = f"{low}" if low == high and low else f"{low} to {high}" if low and high is not None else ""
    count = count or (f"at least {low}" if low else f"at most {high}" if high is not None else "")
    words = f"a list of {count} {'item' if high == 1 else 'items'}" if count else "a list"
    unique = ", all different" if schema.get("uniqueItems") else ""
    return f"{words}{unique}, each {_words(schema.get('items', {}), root, depth + 1)}"


def _object_words(schema: Schema, root: Schema, depth: int) -> str:
    members = _members(schema, root, schema.get("required", ()), depth, '"')
    free = schema.get("additionalProperties")
    if not members and free is not False:
        return f'{{"name": {_words(free, root, depth + 1)}, …}}' if isinstance(free, Mapping) else "any JSON object"
    return f"{{{', '.join(members)}}}"


def _members(schema: Schema, root: Schema, required: Sequence[str], depth: int, quote: str = "") -> list[str]:
    """Describe properties; neighbours that allow the same are described together, as the items of a questionnaire."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    described = [
        (f"{quote}{name}{quote}{'' if name in required else '?'}", _property_words(part, root, depth))
        for name, part in properties.items()
    ]
    members: list[str] = []
    for words, group in groupby(described, key=lambda member: member[1]):
        names = [name for name, _ in group]
        if len(names) < 3:
            members += [f"{name}: {words}" for name in names]
        else:
            members.append(f"each of {_listing(names)}: {words}")
    return members


def _listing(names: Sequence[str]) -> str:
    """List names; those that are numbers in a row by the first and the last of them."""
    digits = [name.strip('"') for name in names]
    if all(digit.isdecimal() for digit in digits) and digits == [str(int(digits[0]) + n) for n in range(len(digits))]:
        return f"{names[0]} to {names[-1]}"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _property_words(schema: Any, root: Schema, depth: int) -> str:
    words = _words(schema, root, depth + 1)
    note = _resolved(schema, root).get("description", "")
    return f"{words} ({' '.join(str(note).split()).rstrip('.')})" if note else words


def _example(schema: Schema) -> str:
    """Return an object with its properties' names and without their values; empty if it is no object."""
    names = list(schema.get("properties", {}))
    if not names:
        return ""
    shown = [f"{_json(name)}: …" for name in names[:MAX_EXAMPLE]]
    return f"{{{', '.join(shown)}}}" if len(names) <= MAX_EXAMPLE else f"{{{', '.join(shown)}, and so on}}"


def _either(alternatives: Sequence[str]) -> str:
    *first, last = dict.fromkeys(alternatives) or ("nothing",)
    return f"{', '.join(first)} or {last}" if first else last


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
