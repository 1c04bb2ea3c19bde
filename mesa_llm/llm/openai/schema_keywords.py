"""Leaves keywords out of JSON schemas, for endpoints that do not know them; what remains allows more, never less."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

LIMITS = frozenset(
    re.findall(
        r"\w+",
        "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format minItems "
        "maxItems uniqueItems minProperties maxProperties propertyNames title description default examples "
        "discriminator contentMediaType contentEncoding",
    )
)
"""Keywords that limit values of a type, or explain them."""

STRUCTURE = frozenset(
    ("additionalProperties", "$defs", "definitions", "$ref", "anyOf", "oneOf", "allOf", "const", "enum", "prefixItems")
)
"""Keywords that say how values are built; some are replaced by what says nearly the same."""

REMOVABLE = LIMITS | STRUCTURE
"""Keywords that can be left out of a schema."""

MAX_NESTING = 2
"""Maximum number of times a schema may contain itself once its references are replaced."""

MAX_DEPTH = 50
"""Maximum depth at which keywords are looked for."""

_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def keywords_in(schema: Any, depth: int = 0) -> Iterator[str]:
    """Find the removable keywords of a schema, at any depth."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return
    for key, value in cast("Mapping[str, Any]", schema).items():
        if key in REMOVABLE:
            yield key
        parts: Any = value.values() if key in _NAMED and isinstance(value, Mapping) else value if key in _LISTED else ()
        for part in (*parts, *([value] if key in ("items", "additionalProperties") else [])):
            yield from keywords_in(part, depth + 1)


def without_keywords(schema: Mapping[str, Any], keywords: frozenset[str]) -> dict[str, Any]:
    """Return a schema without some keywords.

    A constant becomes an enum of one value, `oneOf` becomes `anyOf`, and what references name is put in their place,
    as far as these are still known.

    Args:
        schema: Any JSON schema, as pydantic writes it.
        keywords: Names of the keywords.
    """
    if keywords & {"$defs", "definitions", "$ref"}:
        keywords |= {"$defs", "definitions", "$ref"}
    named = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    return _Reduction(keywords, named).visit(schema, ())


class _Reduction:
    """A walk through a schema that leaves keywords out."""

    def __init__(self, keywords: frozenset[str], named: Mapping[str, Any]) -> None:
        self.keywords = keywords
        self.named = named

    def visit(self, schema: Any, within: tuple[str, ...]) -> Any:
        if not isinstance(schema, Mapping):
            return schema
        fields = dict(cast("Mapping[str, Any]", schema))
        if "$ref" in self.keywords and "$ref" in fields:
            name = str(fields.pop("$ref")).rpartition("/")[2]
            target = {**self.named.get(name, {}), **fields}
            return {} if within.count(name) > MAX_NESTING else self.visit(target, (*within, name))
        if "const" in fields and "const" in self.keywords:
            fields["enum"] = [fields.pop("const")]
        if "enum" in fields and "enum" in self.keywords:
            fields.setdefault("type", _type_of(fields.pop("enum")))
        if "oneOf" in fields and "oneOf" in self.keywords:
            fields["anyOf"] = fields.pop("oneOf")
        if "allOf" in fields and "allOf" in self.keywords:
            parts = fields.pop("allOf")
            fields = {key: value for part in [*parts, fields] for key, value in part.items()}
        result: dict[str, Any] = {}
        for key, value in fields.items():
            if key in self.keywords or (key == "type" and value is None):
                continue
            if key in _NAMED and isinstance(value, Mapping):
                result[key] = {name: self.visit(part, within) for name, part in value.items()}
            elif key in _LISTED and isinstance(value, list):
                result[key] = [self.visit(part, within) for part in cast("list[Any]", value)]
            else:
                result[key] = self.visit(value, within) if key in ("items", "additionalProperties") else value
        return result


def _type_of(values: list[Any]) -> str | None:
    """Return the JSON type of values; None if they have several."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    types = {names.get(type(value)) for value in values}
    return types.pop() if len(types) == 1 else None
