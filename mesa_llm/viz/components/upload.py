"""Upload of text files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import solara
from solara.core import component

from mesa_llm.errors import ConfigError

T = TypeVar("T")

MAX_BYTES = 2_000_000
"""Maximum size of a file, in bytes."""


@solara.component_vue("upload.vue")
def _Upload(
    label: str = "", accept: str = "", max_bytes: int = MAX_BYTES, event_take: Callable[[Any], None] | None = None
) -> None:
    """Let a visitor choose a file; see `upload.vue`."""


@component
def Upload(label: str, on_file: Callable[[str, str], None], on_fault: Callable[[str], None], accept: str = "") -> None:
    """Let a visitor choose a text file on their own machine.

    Args:
        label: Label of the field.
        on_file: Called with its name and its text.
        on_fault: Called with a reason if the file is too large.
        accept: Accepted file name extensions, comma-separated; empty: all.
    """

    def take(file: Any) -> None:
        name, text = str(file.get("name"))[:200], file.get("text")
        if not isinstance(text, str) or file.get("size", 0) > MAX_BYTES or len(text) > MAX_BYTES:
            on_fault(f"{name} is larger than {MAX_BYTES:,} bytes; choose a smaller file.")
        else:
            on_file(name, text)

    _Upload(label=label, accept=accept, event_take=take)


def read_text(read: Callable[[Path], T], name: str, text: str) -> T:
    """Read an uploaded text with a function that reads files.

    Args:
        read: Reads a file.
        name: Name of the file on the visitor's machine.
        text: Its contents.

    Raises:
        ConfigError: As `read` does, with the name of the file on the visitor's machine.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, f"file{Path(name).suffix[:10]}")
        path.write_text(text, encoding="utf-8")
        try:
            return read(path)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), name)) from error
