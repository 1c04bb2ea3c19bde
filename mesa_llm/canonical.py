"""Values as JSON: in one form for equal values, for digests; and quickly."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pydantic_core import PydanticSerializationError, to_json


def canonical_json(value: object) -> str:
    """Write a value as JSON that is equal for equal values: sorted keys, no spaces, no NaN trouble."""
    return _CANONICAL.encode(value)


def compact_json(value: object) -> bytes:
    """Write a plain value as JSON, its keys in their order: several times faster than `json`."""
    try:
        return to_json(value)
    except PydanticSerializationError:  # halves of surrogate pairs, which UTF-8 cannot hold
        return json.dumps(value, separators=(",", ":")).encode()


def plain(value: object) -> object:
    """Turn what JSON does not know (numpy scalars, tuples in sets, records) into what it does."""
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


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=plain)
