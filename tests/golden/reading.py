"""Reads the golden files: what the original programs computed from given inputs.

The environment variable MESA_LLM_GOLDEN names their folder; without it, the tests that need it are skipped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def golden(task: str) -> Any:
    """Read a golden file, or skip the module that asks for it."""
    folder = os.environ.get("MESA_LLM_GOLDEN")
    if not folder:
        pytest.skip("MESA_LLM_GOLDEN names no folder of golden files", allow_module_level=True)
    return decoded(json.loads(Path(folder, f"{task}.json").read_text(encoding="utf-8")))


def decoded(value: Any) -> Any:
    """Turn `{"$f": "nan"}` back into the float it stands for, at every depth."""
    if isinstance(value, dict):
        if set(value) == {"$f"}:
            return float(value["$f"])
        return {key: decoded(inner) for key, inner in value.items()}
    return [decoded(inner) for inner in value] if isinstance(value, list) else value


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


def assert_close(found: Any, wanted: Any, rel: float = 1e-9, place: str = "") -> None:
    """Compare floats to a relative tolerance and all else exactly; say where the first difference lies."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), f"{place}: {sorted(found)}, wanted {sorted(wanted)}"
        for key, inner in wanted.items():
            assert_close(found[key], inner, rel, f"{place}.{key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), f"{place}: {len(found)} items, wanted {len(wanted)}"
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_close(one, other, rel, f"{place}[{number}]")
    elif isinstance(wanted, float):
        same = math.isclose(found, wanted, rel_tol=rel, abs_tol=1e-12) or (found != found and wanted != wanted)
        assert same, f"{place}: {found!r}, wanted {wanted!r}"
    else:
        assert found == wanted, f"{place}: {found!r}, wanted {wanted!r}"
