"""`mesa-llm people`: simulated answers and results compared with those of people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from mesa_llm.cli.command import command, log_named, say
from mesa_llm.cli.options import AsJson
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.people.answers import answer_table, is_log, log_answers
from mesa_llm.experiments.people.comparison import compare_with
from mesa_llm.runlog.comparison import not_checked
from mesa_llm.tables import MISSING
from mesa_llm.text import spreadsheet_cell


@command("people")
def people(
    file: Annotated[
        Path,
        typer.Argument(
            help="Table of what people said or did: CSV, .xlsx or others, with the columns question and answer, or "
            "with a column for each question."
        ),
    ],
    answers: Annotated[
        list[str],
        typer.Argument(
            help="Run logs with surveys, names of recorded runs, or tables, such as that of a sweep; as NAME=FILE to "
            "name a source. Several files of one name are put together."
        ),
    ],
    by: Annotated[
        list[str] | None, typer.Option(help="Column of both sides, whose groups are compared too; repeatable.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="Question to compare; by default all that both sides have; repeatable.")
    ] = None,
    as_choice: Annotated[
        list[str] | None, typer.Option(help="Question whose numbers are names of choices; repeatable.")
    ] = None,
    traits: Annotated[
        Path | None, typer.Option(help="Table with the column agent, and further columns of the simulated agents.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Column of both sides that names the same respondent; adds prediction-powered estimates."),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            help="Lowest and highest number that a question allows, as QUESTION=LOW:HIGH; people's other answers are "
            "taken for missing; repeatable."
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(help="Cell of people's table that is no answer, such as -9, besides the usual ones; repeatable."),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of people's table, such as cp1250; by default determined from it.")
    ] = None,
    purpose: Annotated[str | None, typer.Option(help="Purpose of the surveys in run logs; by default all.")] = None,
    csv: Annotated[Path | None, typer.Option(help="CSV file for the figures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare simulated answers or results with those of people: distances, spread, subgroups, split-half ceiling."""
    if not file.exists():
        raise ConfigError(f"there is no file {str(file)!r} with what people said")
    files: dict[str, list[Path]] = {}
    for text in answers:
        name, path = _named(text)
        files.setdefault(name, []).append(path)
    found = compare_with(
        file,
        {name: _answers(paths, name, purpose) for name, paths in files.items()},
        by=by or (),
        questions=question or None,
        as_choices=as_choice or (),
        traits=traits,
        unit=unit,
        scales=_scales(scale or ()),
        missing=MISSING | set(missing or ()),
        encoding=encoding,
    )
    notes = [f"{name}: {not_checked(path)}" for name, paths in files.items() for path in paths if is_log(path)]
    found = replace(found, notes=[*found.notes, *notes])
    if csv is not None:
        try:
            found.table.map(spreadsheet_cell).to_csv(csv, index=False, lineterminator="\n")
        except OSError as error:
            raise ConfigError(f"--csv {csv}: cannot be written: {error.strerror}") from error
    say(json.dumps(found.to_json()) if as_json else found.text())


def _scales(typed: Sequence[str]) -> dict[str, tuple[float, float]]:
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
