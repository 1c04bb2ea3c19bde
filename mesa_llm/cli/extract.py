"""Characters and questions extracted from a text, on the command line."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from mesa_llm.cli.command import Say
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.model.text_extraction import bets_from, characters_from, personas_of
from mesa_llm.records import Failure
from mesa_llm.reports.private_data import write_without_keys
from mesa_llm.tables import read_text
from mesa_llm.text import counted


def extract_characters(
    file: Path,
    llm: str,
    n: int,
    out: Path,
    *,
    goal: str,
    n_markets: int,
    markets: Path | None,
    options: dict[str, Any],
    as_json: bool,
    say: Say,
    warn: Say,
) -> dict[str, Any]:
    """Read a text, and write the characters that it names and the questions that could be bet on into files.

    Args:
        file: The text, in UTF-8.
        llm: Language model to ask; `rule` takes the capitalised words and the questions of the text.
        n: Maximum number of characters.
        out: File for the characters: a population, as `--users` and `users=` read it.
        goal: Question in which they have a say or a stake; empty: none.
        n_markets: Maximum number of questions.
        markets: File for the questions, as the model `market` reads them; None: none are extracted.
        options: Options of the run that asks: log, budgets, address.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.
        warn: Prints a warning where a language model gave no usable reply and the rule replaced it.

    Returns:
        `cast` and `markets` (the contents of the files), and `by` (who found them).

    Raises:
        ConfigError: If the text cannot be read, names nobody or holds no question, or a file cannot be written; a wrong
            suffix or a missing folder is reported before any request.
    """
    text = read_text(file)
    if not text.strip():
        raise ConfigError(f"{str(file)!r} is empty; it should name people or institutions")
    for option, place in (("--out", out), ("--markets", markets)):
        if place is not None and place.suffix != ".json":
            raise ConfigError(f"{option} {place}: expected a file name ending in .json")
        if place is not None and not place.parent.is_dir():
            raise ConfigError(f"{option} {place}: there is no folder {str(place.parent)!r}")
    with closing(LLMModel(rng=1, **options)) as model:
        characters, failure = characters_from(model, llm, text, n, goal)
        bets, second = bets_from(model, llm, text, n_markets, goal) if markets is not None else ([], None)
    failures: list[Failure] = [one for one in (failure, second) if one is not None]
    for one in failures:
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
    return contents


def _write(file: Path, rows: Any) -> None:
    try:
        write_without_keys(file, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be written: {error.strerror}") from error
