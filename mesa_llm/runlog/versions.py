"""The versions of the packages that a run was made with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("mesa-llm-worlds", "mesa", "numpy", "pydantic", "pycurl", "litellm", "xllamacpp", "wordllama", "solara")
"""Packages that a run can depend on."""


@cache
def versions() -> dict[str, str]:
    """Return the installed versions, by package; a package that is not installed is left out."""
    by_name = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            by_name[package] = version(package)
        except PackageNotFoundError:
            continue
    return by_name
