"""Files that a page offers for download."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mesa_llm.viz.render.mesa_adapter import steps_over

KINDS = MappingProxyType(
    {
        "csv": "text/csv",
        "html": "text/html",
        "json": "application/json",
        "md": "text/markdown",
        "png": "image/png",
        "sqlite": "application/vnd.sqlite3",
        "svg": "image/svg+xml",
        "txt": "text/plain",
        "zip": "application/zip",
    }
)
"""File name extension → media type."""


@dataclass(frozen=True)
class Download:
    """A file that a page offers for download."""

    label: str
    """Label of its button."""

    name: str
    """Name of the file."""

    content: Callable[[], bytes]
    """Returns its contents when it is downloaded."""


def file_name(*parts: str, suffix: str) -> str:
    """Return a file name of letters and digits of any language, separated by dashes.

    Args:
        *parts: Texts to join.
        suffix: Extension, without the dot.
    """
    stem = re.sub(r"[\W_]+", "-", " ".join(parts)).strip("-").lower()
    return f"{stem[:100] or 'file'}.{suffix}"


def plot_downloads(
    model: Any, title: str, content: Callable[[str], bytes], *, has_table: bool = False
) -> list[Download]:
    """Return the downloads of a plot.

    Args:
        model: The model.
        title: Title of the plot.
        content: Draws the plot as `png` or `svg`, or writes its numbers as `csv`.
        has_table: Whether its numbers are offered.
    """

    def offer(kind: str) -> Download:
        name = file_name(type(model).__name__, title, f"step {steps_over(model)}", suffix=kind)
        return Download(kind.upper(), name, lambda: content(kind))

    return [offer("png"), offer("svg"), *([offer("csv")] if has_table else [])]
