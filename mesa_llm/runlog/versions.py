"""Versions of the packages that a run uses."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "mesa-llm-worlds"
"""Name under which this project is installed."""

PACKAGES = (DISTRIBUTION, "mesa", "numpy", "pydantic", "pycurl", "litellm", "xllamacpp", "wordllama", "solara")
"""Packages that can affect a run."""


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
