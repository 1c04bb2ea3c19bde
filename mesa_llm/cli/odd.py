"""ODD documents on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from mesa_llm.cli.command import Say
from mesa_llm.errors import ConfigError
from mesa_llm.registry import ModelEntry
from mesa_llm.reports.odd import OddDocument, odd_of
from mesa_llm.reports.private_data import write_without_keys
from mesa_llm.text import counted


def write_odd(entry: ModelEntry, out: Path | None, *, as_json: bool, say: Say, warn: Say) -> OddDocument:
    """Write the ODD document of a model.

    Args:
        entry: The model.
        out: File for the document; None: it is printed.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.
        warn: Prints a warning: which parts nobody has written.

    Raises:
        ConfigError: If the model cannot be made, or the file not be written.
    """
    document = odd_of(entry.load(), entry.name)
    text = document.markdown()
    if out is not None:
        try:
            write_without_keys(out, text)
        except OSError as error:
            raise ConfigError(f"--out {out}: cannot be written: {error.strerror}") from error
    if as_json:
        where = {"text": text} if out is None else {"out": str(out)}
        say(json.dumps({"model": document.model, "blanks": list(document.blanks), **where}))
        return document
    say(text.rstrip("\n") if out is None else f"ODD document: {out}")
    if document.blanks:
        blanks = counted(len(document.blanks), "part")
        place = f"{document.file} beside the code"
        warn(f"{blanks} to be written, under these headings of {place}: {', '.join(document.blanks)}")
    return document
