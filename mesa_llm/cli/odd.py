"""`mesa-llm odd`: a model described by the ODD protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import command, model_named, say, warn
from mesa_llm.cli.options import AsJson, Model
from mesa_llm.errors import ConfigError
from mesa_llm.reports.odd import odd_of
from mesa_llm.reports.private_data import write_without_keys
from mesa_llm.text import counted


@command("odd")
def odd(
    model: Model,
    out: Annotated[Path | None, typer.Option(help="Markdown file; by default the document is printed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a model by the ODD protocol (Grimm et al. 2020); what nobody has written is marked."""
    entry = model_named(model)
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
        return
    say(text.rstrip("\n") if out is None else f"ODD document: {out}")
    if document.blanks:
        blanks = counted(len(document.blanks), "part")
        place = f"{document.file} beside the code"
        warn(f"{blanks} to be written, under these headings of {place}: {', '.join(document.blanks)}")
