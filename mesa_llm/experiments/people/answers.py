"""Tables of answers, of people and of simulations: long (a row per answer) or wide (a column per question).

A long table has the columns `question` and `answer`. Any other table is wide: every column may be a question, such as
the reporters of a model with one row per run. Further columns say who answered: an agent, a trait, a group.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np
import pandas as pd

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.people.distributions import Kind
from mesa_llm.runlog.log import RunLog
from mesa_llm.tables import (
    MISSING,
    READERS,
    TableSource,
    columns_of,
    folded,
    kind_of,
    number_in,
    numbers_of,
    read_table,
    whole_rows,
)
from mesa_llm.text import one_line

QUESTION, ANSWER, FAILURE, AGENT, TIME = "question", "answer", "failure", "agent", "time"
"""Columns of a table of answers, as `model.survey` returns it."""

RUN = "run"
"""Column with the number of the run, where a table is made of several run logs."""

OTHERS = frozenset({TIME, AGENT, FAILURE, RUN, "purpose", "probabilities", "seed"})
"""Columns that are no questions in a wide table."""


@dataclass(frozen=True)
class AnswerTable:
    """Answers of one source: of people, or of a simulation."""

    name: str
    """Name of the source."""

    frame: pd.DataFrame
    """Its rows."""

    is_long: bool
    """Whether it has a row per answer."""

    @property
    def questions(self) -> list[str]:
        """Names of its questions; of a wide table, of all columns that may be one."""
        if self.is_long:
            return [str(name) for name in dict.fromkeys(self.frame[QUESTION]) if not is_missing(name)]
        return [name for name in self.frame.columns if name not in OTHERS]

    @property
    def asked(self) -> list[str]:
        """Names of the questions that somebody answered; not those of a run's measures."""
        if not self.is_long or AGENT not in self.frame.columns:
            return self.questions
        by_agents = self.frame.loc[[not is_missing(agent) for agent in self.frame[AGENT]]]
        return [name for name in self.questions if name in set(by_agents[QUESTION])]

    def answers_to(self, question: str) -> pd.DataFrame:
        """Return the rows of a question, with its answers in the column `answer`; None where there is none."""
        if self.is_long:
            rows = self.frame[self.frame[QUESTION] == question]
            answers = list(rows[ANSWER])
            if FAILURE in rows.columns:
                failures = list(rows[FAILURE])
                answers = [None if not is_missing(why) else one for one, why in zip(answers, failures, strict=True)]
        else:
            rows = self.frame
            answers = list(rows[question])
        plain = [one.item() if isinstance(one, np.generic) else one for one in answers]
        cells = [None if is_missing(one) else one for one in plain]
        return rows.assign(**{ANSWER: pd.Series(cells, index=rows.index, dtype=object)})

    def with_traits(self, traits: pd.DataFrame) -> AnswerTable:
        """Return the table with the traits of its agents as further columns.

        Args:
            traits: One row per agent, with the column `agent`.

        Raises:
            ConfigError: If it has no column `agent`, or names an agent twice.
        """
        for place, columns in ((self.name, self.frame.columns), ("the traits", traits.columns)):
            if AGENT not in columns:
                raise ConfigError(f"{place} has no column {AGENT!r}, by which traits are matched to answers")
        keys = [AGENT, "seed"] if {"seed"} <= set(traits.columns) & set(self.frame.columns) else [AGENT]
        new = [name for name in traits.columns if name in keys or name not in self.frame.columns]
        own, ours = (frame.assign(**{AGENT: [_key(cell) for cell in frame[AGENT]]}) for frame in (traits, self.frame))
        if own.duplicated(subset=keys).any():
            raise ConfigError("the traits name an agent twice; give each agent one row")
        frame = ours.merge(own[new], on=keys, how="left", validate="many_to_one")
        return AnswerTable(self.name, frame, self.is_long)


def _key(cell: Any) -> str:
    """Return a cell as a key: 3, 3.0 and "3" are the same agent."""
    number = number_in(cell)
    return one_line(str(cell)) if number is None or not math.isfinite(number) else f"{number:g}"


def answer_table(
    source: TableSource | pd.Series,
    name: str,
    *,
    missing: Collection[str] | None = None,
    encoding: str | None = None,
) -> AnswerTable:
    """Read answers from a table, its file, or a run log.

    Of a survey that was made several times, the last answer of each agent counts.

    Args:
        source: A table or one column of it, as `model.survey`, a sweep or a data collector return it; a file with a
            table; or a run log, whose answers to surveys and last measures are read.
        name: Name of the source.
        missing: Cells that stand for a missing answer. None: those of `mesa_llm.tables.MISSING` in a file, and none in
            a table in memory, which is taken as it is.
        encoding: Encoding of a text file; None: determined from it.

    Raises:
        ConfigError: If the file cannot be read, or holds no answers.
    """
    if isinstance(source, str | Path):
        marks = MISSING if missing is None else missing
        frame = log_answers([source]) if is_log(source) else _read(source, marks, encoding)
    elif isinstance(source, pd.Series):
        if source.name is None:
            raise ConfigError(f"{name} is a column without a name; rename it like the question that it answers")
        frame = source.to_frame()
    elif missing is None and isinstance(source, pd.DataFrame):
        frame = source
    else:
        frame = _read(source, missing or (), encoding)
    named = [level for level in frame.index.names if level is not None]
    frame = frame.reset_index() if named and not set(named) & set(frame.columns) else frame.reset_index(drop=True)
    frame = frame.rename(columns=_known_names(frame.columns))
    if not len(frame):
        raise ConfigError(f"{name} holds no answers")
    is_long = {QUESTION, ANSWER} <= set(frame.columns)
    if is_long:
        frame = frame.assign(**{QUESTION: [one_line(str(text)) for text in frame[QUESTION]]})
        frame = _latest(frame)
    return AnswerTable(name, frame, is_long)


def _known_names(columns: Iterable[Hashable]) -> dict[Hashable, str]:
    """Return the columns by the names that this module uses for them; those of questions stay as they are."""
    known = {QUESTION, ANSWER, FAILURE, AGENT, TIME}
    names = {column: one_line(str(column)) for column in columns}
    return {column: folded(name) if folded(name) in known else name for column, name in names.items()}


def _read(source: TableSource, missing: Collection[str], encoding: str | None) -> pd.DataFrame:
    rows = whole_rows(source, read_table(source, (QUESTION, ANSWER), missing=missing, encoding=encoding))
    columns = columns_of(rows)
    if isinstance(source, pd.DataFrame):  # a column in which nobody answered is one too
        columns += [str(name) for name in source.columns if str(name) not in columns and isinstance(name, str)]
    return pd.DataFrame({name: pd.Series([row.get(name) for row in rows], dtype=object) for name in columns})


def _latest(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the last answer of each agent to each question, where a table says when agents were asked."""
    if not {TIME, AGENT} <= set(frame.columns):
        return frame
    keys = [name for name in (RUN, "seed", AGENT, QUESTION) if name in frame.columns]
    return frame.sort_values(TIME, kind="stable").drop_duplicates(keys, keep="last").sort_index()


def is_log(source: Any) -> TypeGuard[str | Path]:
    """Check whether a source of answers is taken for a run log, as no table has such a name."""
    return isinstance(source, str | Path) and kind_of(source) not in READERS


def log_answers(files: Sequence[str | Path], purpose: str | None = None) -> pd.DataFrame:
    """Read the answers to surveys from run logs, and the measures of each run's last step.

    Args:
        files: The run logs.
        purpose: Purpose of the surveys; None: all.

    Returns:
        A long table: run, time, agent, question, answer, failure.

    Raises:
        ConfigError: If a file is no run log.
    """
    rows: list[dict[str, Any]] = []
    for run, file in enumerate(files, 1):
        with closing(RunLog(file, "read")) as log:
            for row in log.table("answers").to_dict("records"):
                if purpose in (None, row["purpose"]):
                    rows.append({RUN: run, **row, ANSWER: json.loads(row[ANSWER]) if row[ANSWER] else None})
            steps = log.steps()
            if len(steps) and steps["measures"].iloc[-1]:
                rows += _measured(json.loads(steps["measures"].iloc[-1]), run)
    frame = pd.DataFrame(rows, columns=[RUN, TIME, AGENT, QUESTION, ANSWER, FAILURE, "purpose"])
    for name in (ANSWER, FAILURE):
        frame[name] = pd.Series([row.get(name) for row in rows], dtype=object)
    return frame


def _measured(measures: Any, run: int) -> list[dict[str, Any]]:
    if not isinstance(measures, Mapping):
        return []
    named = cast("Mapping[str, Any]", measures)
    return [{RUN: run, QUESTION: name, ANSWER: value} for name, value in named.items() if not _is_compound(value)]


def _is_compound(value: Any) -> bool:
    return isinstance(value, list | Mapping)


def is_missing(cell: Any) -> bool:
    """Check whether a cell holds nothing: None, NaN or white space."""
    return not cell.strip() if isinstance(cell, str) else cell is None or (isinstance(cell, float) and math.isnan(cell))


# -- answers as numbers or as names of choices


def as_plain_numbers(
    question: str, answers: Mapping[str, Sequence[Any]]
) -> tuple[Mapping[str, Sequence[Any]], list[str]]:
    """Take units, labels of codes and separators off numbers, where another source answers with plain numbers.

    Args:
        question: Name of the question.
        answers: Source → its answers, without missing ones.

    Returns:
        The answers, and what is to be said about them.

    Raises:
        ConfigError: If a number can be read in two ways.
    """
    try:
        are_plain = {
            name: all(_number(one, question) is not None for one in own) for name, own in answers.items() if own
        }
    except ConfigError:  # a comma that another number of the column explains
        are_plain = {name: all(isinstance(one, int | float) for one in own) for name, own in answers.items() if own}
    converted, notes = dict(answers), list[str]()
    if all(are_plain.values()) or not any(are_plain.values()):
        return answers, notes
    for name, is_plain in are_plain.items():
        if is_plain:
            continue
        try:
            found = numbers_of(answers[name])
        except ConfigError as error:
            raise ConfigError(f"{name}, {question!r:.80}: {error}") from None
        if found is not None:
            converted[name] = found[0]
            notes += [f"{name}: {question!r:.60}: {found[1]}"] if found[1] else []
    return converted, notes


def kind_of_answers(question: str, answers: Mapping[str, Sequence[Any]], as_choices: Collection[str]) -> Kind:
    """Find out whether a question asks for a number or for a choice.

    Args:
        question: Name of the question.
        answers: Source → its answers, without missing ones, those of people first.
        as_choices: Names of questions whose numbers are names of choices.

    Raises:
        ConfigError: If some sources answer with numbers and others do not.
    """
    if question in as_choices:
        return "choice"
    filled = {name: values for name, values in answers.items() if values}
    are_numbers = {name: all(_number(one, question) is not None for one in values) for name, values in filled.items()}
    if len(set(are_numbers.values())) > 1:
        odd = {
            name: next((one for one in values if (_number(one, question) is None) != are_numbers[name]), values[0])
            for name, values in filled.items()
        }
        examples = "; ".join(f"{name}: {one!r:.40}" for name, one in odd.items())
        raise ConfigError(
            f"some answers to {question!r:.80} are numbers and some are not ({examples}); write them alike, name the "
            "question in as_choices= (--as-choice), or what is no answer in missing= "
            "(--missing)"
        )
    return "number" if all(are_numbers.values()) else "choice"


def _number(answer: Any, question: str) -> float | None:
    try:
        return number_in(answer)
    except ConfigError as error:
        raise ConfigError(f"{question!r:.80}: {error}") from None


def as_numbers(answers: Iterable[Any], question: str) -> list[float]:
    """Return answers as numbers."""
    return [cast("float", _number(one, question)) for one in answers]


def as_choice_names(answers: Iterable[Any]) -> list[str]:
    """Return answers as names of choices; case and spaces do not count, and true is yes."""
    whole = [int(one) if isinstance(one, float) and one.is_integer() else one for one in answers]
    names = [one if isinstance(one, str) else canonical_json(one) for one in whole]
    folded_names = [" ".join(name.casefold().split()) for name in names]
    return [{"true": "yes", "false": "no"}.get(name, name) for name in folded_names]
