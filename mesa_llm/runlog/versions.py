"""Versions of the packages that a run uses."""

from __future__ import annotations

import platform
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "mesa-llm-worlds"
"""Name under which this project is installed."""

PACKAGES = (DISTRIBUTION, "mesa", "numpy", "pydantic", "pycurl", "litellm", "xllamacpp", "wordllama", "solara")
"""Packages that can affect a run."""


def is_before(version: str, other: str) -> bool:
    """Check whether a version of this package is before another one; an empty one is before any other.

    Args:
        version: Such as `1.4.0`; what follows its numbers does not count.
        other: Such as `1.5.0`; empty: nothing is before it.
    """
    numbers, others = (
        tuple(int(number) for number in re.findall(r"\d+", re.match(r"[\d.]*", text)[0]))  # type: ignore[index]
        for text in (version, other)
    )
    return numbers < others


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages, by name."""
    by_name = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            by_name[package] = version(package)
        except PackageNotFoundError:
            continue
    return by_name
