"""Reads the golden files: what the original programs computed from given inputs.

The environment variable MESA_LLM_GOLDEN names their folder; without it, the tests that need it are skipped.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest


class NotRecorded(KeyError):
    """A case lacks a key that its test needs, so that the test is skipped."""


class Recorded(dict[str, Any]):
    """An object of a golden file, which notes which of its keys are read."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Begin with nothing read."""
        super().__init__(fields)
        self.read: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys; with an iterator of its own, copies of a dict go through `__getitem__`."""
        return super().__iter__()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def __missing__(self, key: str) -> Any:
        raise NotRecorded(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def items(self) -> Any:
        self.read.update(self.keys())
        return super().items()

    def values(self) -> Any:
        self.read.update(self.keys())
        return super().values()

    def __deepcopy__(self, memo: dict[int, Any]) -> Recorded:
        return Recorded({key: deepcopy(inner, memo) for key, inner in dict.items(self)})

    def __eq__(self, other: object) -> bool:
        self.read_all()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def read_all(self) -> None:
        """Count every key as read, at every depth: what is compared as a whole."""
        for inner in self.values():
            for one in _objects_in(inner):
                one.read_all()


def golden(task: str) -> Any:
    """Read a golden file, or skip the module that asks for it where there is none."""
    folder = os.environ.get("MESA_LLM_GOLDEN")
    if not folder:
        pytest.skip("MESA_LLM_GOLDEN names no folder of golden files", allow_module_level=True)
    path = Path(folder, f"{task}.json")
    if not path.is_file():
        pytest.skip(f"MESA_LLM_GOLDEN holds no {path.name}", allow_module_level=True)
    return decoded(json.loads(path.read_text(encoding="utf-8")))


def decoded(value: Any) -> Any:
    """Turn `{"$f": "nan"}` back into the float it stands for, and other objects into `Recorded`, at every depth."""
    if isinstance(value, dict):
        if set(value) == {"$f"}:
            return float(value["$f"])
        return Recorded({key: decoded(inner) for key, inner in value.items()})
    return [decoded(inner) for inner in value] if isinstance(value, list) else value


def unread(value: Any, place: str = "") -> set[str]:
    """Return the paths of the keys that nobody has read; the elements of a list share the path of the list."""
    found: set[str] = set()
    for one in _objects_in(value):
        for key, inner in dict.items(one):
            path = f"{place}.{key}" if place else key
            found |= unread(inner, path) if key in one.read else {path}
    return found


def unlisted(value: Any, not_compared: Mapping[str, str]) -> list[str]:
    """Return the paths of the keys that are neither read nor covered by one of the patterns of `not_compared`."""
    return sorted(path for path in unread(value) if not any(fnmatchcase(path, one) for one in not_compared))


class UnreadKeys(UserWarning):
    """A recorded case has keys that its test neither read nor lists as not compared."""


def warn_of_unread(value: Any, not_compared: Mapping[str, str]) -> None:
    """Warn of what `unlisted` returns, if it is anything."""
    if left := unlisted(value, not_compared):
        warnings.warn(f"neither read nor listed in NOT_COMPARED: {left}", UnreadKeys, stacklevel=2)


def failure_of(case: Mapping[str, Any]) -> str | None:
    """Return the exception with which a script did not even start; None if it did."""
    beginning = case.get("init") or {}
    return case.get("raises", beginning.get("raises") if isinstance(beginning, dict) else None)


def section(cases: Mapping[str, Any], name: str) -> list[Any]:
    """Return the cases of one section of a file; none if the file has no such section.

    A section that is an object is a single case.
    """
    found = cases.get(name, [])
    return [found] if isinstance(found, dict) else found


def entry(cases: Mapping[str, Any], name: str, key: str) -> Any:
    """Return one entry of a section that other sections refer to; skip the test if the file lacks it."""
    found = cases.get(name, {})
    if key not in found:
        pytest.skip(f"the file has no {key} in {name}")
    return found[key]


def name_of(case: Mapping[str, Any]) -> str:
    """Return what a case is called; empty if it has no name."""
    return next((str(case[key]) for key in ("id", "label", "name", "scale") if key in case), "")


def outcome_of(call: Callable[[], Any]) -> dict[str, Any]:
    """Run something, and write down what came of it as the golden files do."""
    try:
        return {"ok": call()}
    except Exception as error:  # noqa: BLE001 - whatever the original raised is part of what is compared
        return {"raises": type(error).__name__}


def is_same(found: Any, wanted: Any) -> bool:
    """Compare to the last bit; NaN equals NaN, and tuples equal lists."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(is_same(found[key], wanted[key]) for key in wanted)
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(is_same, found, wanted))
    return found == wanted or (found != found and wanted != wanted)


def assert_close(found: Any, wanted: Any, rel: float = 1e-9, place: str = "", absolute: float = 1e-12) -> None:
    """Compare floats to a relative or absolute tolerance, all else exactly; say where the first difference lies."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), f"{place}: {sorted(found)}, wanted {sorted(wanted)}"
        for key, inner in wanted.items():
            assert_close(found[key], inner, rel, f"{place}.{key}", absolute)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), f"{place}: {len(found)} items, wanted {len(wanted)}"
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_close(one, other, rel, f"{place}[{number}]", absolute)
    elif isinstance(wanted, float):
        same = math.isclose(found, wanted, rel_tol=rel, abs_tol=absolute) or (found != found and wanted != wanted)
        assert same, f"{place}: {found!r}, wanted {wanted!r}"
    else:
        assert found == wanted, f"{place}: {found!r}, wanted {wanted!r}"


def recorded_part(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return those fields of what we found that a case records."""
    return {key: value for key, value in found.items() if key in wanted}


def _objects_in(value: Any) -> Iterator[Recorded]:
    """Iterate over the objects that a value is or, as a list, holds."""
    if isinstance(value, Recorded):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _objects_in(inner)
