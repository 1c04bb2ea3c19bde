"""What an agent sees, as numbers and categories."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from numbers import Real
from typing import Any, cast

from pydantic import BaseModel

from mesa_llm.canonical import canonical_json
from mesa_llm.records import ChoiceSituation

MAX_FACTS = 200
"""Maximum number of facts that are read of an observation."""

MAX_NESTING = 3
"""Number of levels to which facts within facts are read."""

MAX_CATEGORY = 200
"""Maximum number of characters of a text that counts as a category; longer ones are prose."""

_DIGITS_IN_LABEL = re.compile(r"\d+")
_ID = re.compile(r"(^|_)ids?$")


def facts_of(situation: ChoiceSituation) -> dict[str, float | str]:
    """Read the facts of a situation as numbers and categories.

    Fields of records and keys of mappings are joined by dots; a list counts by its length (`posts.n`). True and false
    are categories. Ids, objects, prose and None are left out. The agent's persona and traits are facts, too.

    Args:
        situation: What an agent decides about.

    Returns:
        Name → number or category, at most `MAX_FACTS`, in the order in which they are found.
    """
    found: dict[str, float | str] = {}
    for name, value in _fields(situation.facts) or [("facts", situation.facts)]:
        _read(value, name, found, 1)
    _read(dict(situation.traits), "traits", found, 1)
    if situation.persona:
        found["persona"] = situation.persona
    return dict(list(found.items())[:MAX_FACTS])


def _read(value: Any, name: str, found: dict[str, float | str], depth: int) -> None:
    """Add a fact, or the facts in it."""
    if isinstance(value, Enum):
        value = value.value
    if _ID.search(name.rpartition(".")[2]) or value is None:
        return
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        found[name] = "true" if value else "false"
    elif isinstance(value, Real):
        if math.isfinite(number := float(value)):
            found[name] = number
    elif isinstance(value, str):
        if len(value) <= MAX_CATEGORY:
            found[name] = value
    elif isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields"):
        found[f"{name}.n"] = float(len(cast("Sequence[Any]", value)))
    elif depth < MAX_NESTING and len(found) < MAX_FACTS:
        for key, inner in _fields(value):
            _read(inner, f"{name}.{key}", found, depth + 1)


def _fields(value: Any) -> list[tuple[str, Any]]:
    """Return the public fields of a record or mapping of plain values; empty for anything else."""
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return [(key, inner) for key, inner in items if isinstance(key, str)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, BaseModel):
        names = list(type(value).model_fields)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        names = list(cast("Any", value)._fields)
    else:
        return []
    return [(name, getattr(value, name)) for name in names if not name.startswith("_")]


def option_facts(facts: Any, options: Sequence[Any], depth: int = 1) -> dict[str, dict[str, float]]:
    """Find facts of the options that may be chosen among the facts of an observation.

    They are a mapping whose keys include all options, or a list of records of which one field holds them.

    Args:
        facts: Facts of the observation.
        options: The options.
        depth: Level of the facts.

    Returns:
        Option, as JSON → name → number; empty if there are none.
    """
    wanted = {canonical_json(option) for option in options}
    for records in _records(facts):
        if wanted <= records.keys():
            return {key: _numbers(record) for key, record in records.items() if key in wanted}
    if depth < MAX_NESTING:
        for _, inner in _fields(facts):
            if found := option_facts(inner, options, depth + 1):
                return found
    return {}


def _records(facts: Any) -> Iterator[dict[str, Any]]:
    """Yield every way of reading a value as records by a key, which is written as JSON."""
    if isinstance(facts, Mapping):
        by_key = cast("Mapping[Any, Any]", facts)
        yield {canonical_json(key): value for key, value in by_key.items() if isinstance(key, str | int)}
    elif isinstance(facts, list | tuple) and facts and (names := [name for name, _ in _fields(facts[0])]):
        rows = [dict(_fields(one)) for one in cast("Sequence[Any]", facts)]
        for name in names:
            if all(isinstance(row.get(name), str | int) for row in rows):
                yield {canonical_json(row[name]): row for row in rows}


def _numbers(record: Any) -> dict[str, float]:
    """Return the numbers of a record."""
    found: dict[str, float | str] = {}
    for name, value in _fields(record) or [("value", record)]:
        _read(value, name, found, MAX_NESTING)
    return {name: value for name, value in found.items() if isinstance(value, float)}


def label_of(situation: ChoiceSituation) -> str:
    """Return the kind of question: the observation's label without its numbers."""
    return _DIGITS_IN_LABEL.sub("#", situation.label)
