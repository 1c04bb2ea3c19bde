"""Comparisons with people on the command line: sources by name, and what is printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from mesa_llm.cli.command import Say, log_named
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.people.answers import answer_table, is_log, log_answers
from mesa_llm.experiments.people.comparison import compare_with
from mesa_llm.runlog.comparison import not_checked
from mesa_llm.text import spreadsheet_cell


def compare_people(
    people: Path,
    typed: Sequence[str],
    *,
    csv: Path | None,
    purpose: str | None,
    as_json: bool,
    say: Say,
    **options: Any,
) -> None:
    """Compare files of answers with people, and print the figures.

    Args:
        people: What people said.
        typed: Run logs or tables, each as `FILE` or `NAME=FILE`.
        csv: File for the figures; None: none.
        purpose: Purpose of the surveys in run logs; None: all.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.
        **options: As for `compare_with`.

    Raises:
        ConfigError: If nothing can be compared, or the file cannot be written.
    """
    if not people.exists():
        raise ConfigError(f"there is no file {str(people)!r} with what people said")
    files: dict[str, list[Path]] = {}
    for text in typed:
        name, path = _named(text)
        files.setdefault(name, []).append(path)
    found = compare_with(people, {name: _answers(paths, name, purpose) for name, paths in files.items()}, **options)
    notes = [f"{name}: {not_checked(path)}" for name, paths in files.items() for path in paths if is_log(path)]
    found = replace(found, notes=[*found.notes, *notes])
    if csv is not None:
        try:
            found.table.map(spreadsheet_cell).to_csv(csv, index=False, lineterminator="\n")
        except OSError as error:
            raise ConfigError(f"--csv {csv}: cannot be written: {error.strerror}") from error
    say(json.dumps(found.summary()) if as_json else found.text())


def scales_of(typed: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the lowest and highest number of each question, from texts such as `mood=1:5`.

    Raises:
        ConfigError: If a text is none.
    """
    scales: dict[str, tuple[float, float]] = {}
    for text in typed:
        question, _, bounds = text.rpartition("=")
        low, _, high = bounds.partition(":")
        try:
            scales[question] = float(low), float(high)
        except ValueError:
            raise ConfigError(f"--scale {text}: expected QUESTION=LOW:HIGH, such as mood=1:5") from None
    return scales


def _named(text: str) -> tuple[str, Path]:
    """Return the name of a source and its file; without a name, that of the file."""
    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        path, name = text, Path(text).name.partition(".")[0]
    if not name or not path:
        raise ConfigError(f"{text!r}: expected FILE or NAME=FILE")
    return name, log_named(Path(path))


def _answers(paths: Sequence[Path], name: str, purpose: str | None) -> pd.DataFrame:
    """Read the files of one source."""
    for path in paths:
        if not path.exists():
            raise ConfigError(f"there is no file {str(path)!r}, and no recorded run of this name")
    logs = [path for path in paths if is_log(path)]
    tables = [answer_table(path, name) for path in paths if path not in logs]
    if logs and any(not one.is_long for one in tables):
        raise ConfigError(f"{name}: run logs can be put together with tables with a row per answer alone")
    frames = [*([log_answers(logs, purpose)] if logs else []), *(one.frame for one in tables)]
    return pd.concat(frames, ignore_index=True)
