"""`mesa-llm extract`: characters and questions extracted from a text."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli.command import command, say, warn
from mesa_llm.cli.options import AccessFlags, AsJson, Log
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.model.text_extraction import bets_from, characters_from, personas_of
from mesa_llm.reports.private_data import write_without_keys
from mesa_llm.tables import read_text
from mesa_llm.text import counted


@command("extract")
def extract(
    file: Annotated[Path, typer.Argument(help="Text that names people and institutions, in UTF-8.")],
    out: Annotated[Path, typer.Option(help="JSON file for the characters; models read it with --users.")],
    options: AccessFlags,
    llm: Annotated[str, typer.Option(help="Language model that finds them; `rule` takes capitalised words.")] = "rule",
    n: Annotated[int, typer.Option("--n", min=1, max=100, help="Maximum number of people and institutions.")] = 12,
    goal: Annotated[str, typer.Option(help="Question in which the characters have a say or a stake.")] = "",
    markets: Annotated[
        Path | None,
        typer.Option(help="JSON file for questions to bet on; the model `market` reads it with --set questions=FILE."),
    ] = None,
    n_markets: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of questions.")] = 4,
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Extract characters from a text, and questions to bet on."""
    text = read_text(file)
    if not text.strip():
        raise ConfigError(f"{str(file)!r} is empty; it should name people or institutions")
    for option, place in (("--out", out), ("--markets", markets)):
        if place is not None and place.suffix != ".json":
            raise ConfigError(f"{option} {place}: expected a file name ending in .json")
        if place is not None and not place.parent.is_dir():
            raise ConfigError(f"{option} {place}: there is no folder {str(place.parent)!r}")
    with closing(LLMModel(rng=1, log=log, **options.access)) as model:
        characters, failure = characters_from(model, llm, text, n, goal)
        bets, second = bets_from(model, llm, text, n_markets, goal) if markets is not None else ([], None)
    for one in (failure, second):
        if one is not None:
            warn(f"{llm} gave no usable reply, so the rule was used: {one.kind}: {one.reason[:300]}")
    if not characters:
        raise ConfigError(f"{str(file)!r} names nobody: apart from common words, none is capitalised")
    people = [
        {"name": one.name, "type": character.type, "username": one.username, "bio": one.bio, "persona": one.persona}
        for one, character in zip(personas_of(characters), characters, strict=True)
    ]
    contents = {"cast": people, "markets": [bet.model_dump() for bet in bets], "by": "rule" if failure else llm}
    _write(out, people)
    say(json.dumps(contents) if as_json else f"{counted(len(people), 'character')}: {out}")
    if markets is not None:
        if not bets:
            raise ConfigError(
                f"{str(file)!r} asks no question to bet on, so that {markets} was not written; name one with "
                f"--goal 'Will …?', or let a language model find some with --llm. The characters are in {out}"
            )
        _write(markets, contents["markets"])
        if not as_json:
            say(f"{counted(len(bets), 'question')}: {markets}")


def _write(file: Path, rows: Any) -> None:
    try:
        write_without_keys(file, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be written: {error.strerror}") from error
