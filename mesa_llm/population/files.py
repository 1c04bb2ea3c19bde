"""Personas from files in the formats of OASIS."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from mesa_llm.errors import ConfigError
from mesa_llm.population.activity import HOURS, hourly_activity
from mesa_llm.population.persona import Persona
from mesa_llm.population.tables import Row, columns_of, from_table, persona_of, rows_of

FREQUENCY = "activity_level_frequency"
"""Column with how often a user was active, by the hour."""

X_COLUMNS = {"name", "username", "user_char", "description"}
"""Columns of OASIS's table of X users; a cell may be empty in some rows."""

REDDIT_COLUMNS = {"realname", "username", "bio", "persona"}
"""Columns of OASIS's list of Reddit users."""

NOT_USERS: dict[frozenset[str], str] = {
    frozenset({"source_tweet", "topic_name"}): "posts that spread on X and how far (OASIS's all_topics)",
    frozenset({"RS", "RC_1"}): "Reddit posts with their comments (OASIS's counterfactual_36)",
    frozenset({"content"}): "texts of posts (such as OASIS's product)",
    frozenset({FREQUENCY}): "hours of activity (such as OASIS's user_activity_24h; give it as `activity` beside the "
    "users' file)",
}
"""Columns of files of OASIS that hold no users → what they hold."""

REDDIT_TRAITS = ("age", "gender", "mbti", "country", "profession")


def from_file(path: str | Path, n: int | None = None) -> list[Persona]:
    """Read a population: in one of OASIS's formats if the file has its columns, else as any table.

    Args:
        path: The file.
        n: Most personas, from the start of the file; None: all.

    Raises:
        ConfigError: If the file cannot be read, or holds nobody; says what it holds instead, if that is known.
    """
    rows = rows_of(path)
    if not rows:
        raise ConfigError(f"{path} holds no personas")
    is_oasis = _has(rows, X_COLUMNS) or _has(rows, REDDIT_COLUMNS)
    _demand_users(rows, path)
    return (from_oasis(path) if is_oasis else from_table(path))[:n]


def from_oasis(
    path: str | Path, activity: str | Path | None = None, rule: Literal["paper", "code"] = "paper"
) -> list[Persona]:
    """Read users as OASIS keeps them: a CSV table of X users, or a JSON list of Reddit users.

    Lists in cells are Python literals. `following_agentid_list` names rows, from 0; who follows itself there does
    not here. Hours of activity, where there are any, become probabilities.

    Args:
        path: The file.
        activity: Table of the same users' hours of activity, row by row.
        rule: How those become probabilities, see `hourly_activity`.

    Raises:
        ConfigError: If the format is another, or a cell cannot be used; says which file, row and column.
    """
    rows = rows_of(path)
    if _has(rows, REDDIT_COLUMNS):
        personas = [_reddit_user(row, path, row_number) for row_number, row in enumerate(rows, start=1)]
    elif _has(rows, X_COLUMNS):
        personas = [_x_user(row, path, row_number, len(rows)) for row_number, row in enumerate(rows, start=1)]
    else:
        _demand_users(rows, path)
        expected = f"{sorted(X_COLUMNS)} (X) or {sorted(REDDIT_COLUMNS)} (Reddit)"
        raise ConfigError(f"{path} has the columns {sorted(columns_of(rows))}; users of OASIS have {expected}")
    if activity is None and not all(FREQUENCY in row for row in rows):
        return personas
    counts = read_activity(path if activity is None else activity)
    if len(counts) != len(personas):
        raise ConfigError(f"{activity} has {len(counts)} rows, but {path} has {len(personas)} users")
    hours = hourly_activity(counts, rule).tolist()
    return [persona.model_copy(update={"activity": tuple(day)}) for persona, day in zip(personas, hours, strict=True)]


def read_activity(path: str | Path) -> npt.NDArray[np.int64]:
    """Read how often each user was active in each hour, from the column `activity_level_frequency`.

    Returns:
        Counts, shape `(users, 24)`.

    Raises:
        ConfigError: If the column is missing, or a cell is no list of 24 counts.
    """
    counts: list[list[int]] = []
    for row_number, row in enumerate(rows_of(path), start=1):
        hours = _literals(row, FREQUENCY, path, row_number, int)
        if len(hours) != HOURS or min(hours) < 0:
            raise ConfigError(
                f"{_place(path, row_number, FREQUENCY)}: found {hours!r:.80}; wanted {HOURS} counts from 0"
            )
        counts.append(hours)
    return np.array(counts, dtype=np.int64).reshape(-1, HOURS)


def _has(rows: Sequence[Row], columns: set[str] | frozenset[str]) -> bool:
    return columns <= set(columns_of(rows))


def _demand_users(rows: Sequence[Row], path: str | Path) -> None:
    """Check that a file is none of those of OASIS that hold something else than users.

    Raises:
        ConfigError: If it is one; says what it holds.
    """
    names = {"name", "realname", "persona", "user_char", "username"}
    for columns, contents in NOT_USERS.items():
        if _has(rows, columns) and not names & set(columns_of(rows)):
            raise ConfigError(f"{path} holds no users but {contents}; wanted one row for each user, with a name")


def _place(path: str | Path, row_number: int, column: str) -> str:
    return f"{path}, row {row_number}, column {column!r}"


def _x_user(row: Row, path: str | Path, row_number: int, n: int) -> Persona:
    follows = _literals(row, "following_agentid_list", path, row_number, int)
    for followed in follows:
        if not 0 <= followed < n:
            position = _place(path, row_number, "following_agentid_list")
            raise ConfigError(f"{position}: found user {followed}; the file has users 0 to {n - 1}")
    bio = str(row.get("description", ""))
    return Persona(
        name=str(row.get("name", "")),
        persona=str(row.get("user_char", bio)),
        username=str(row.get("username", "")),
        bio=bio,
        follows=tuple(sorted({followed for followed in follows if followed != row_number - 1})),
        posts=tuple(_literals(row, "previous_tweets", path, row_number, str)),
    )


def _reddit_user(row: Row, path: str | Path, row_number: int) -> Persona:
    traits = {trait: row[trait] for trait in REDDIT_TRAITS if trait in row}
    return persona_of(row, str(path), row_number, traits=traits)


def _literals(row: Row, column: str, path: str | Path, row_number: int, kind: type[Any]) -> list[Any]:
    """Read a cell that holds a Python list; an empty or missing cell is an empty list."""
    cell = row.get(column, [])
    try:
        values = ast.literal_eval(cell) if isinstance(cell, str) else cell
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ConfigError(f"{_place(path, row_number, column)}: found {cell!r:.80}; wanted a Python list") from error
    items = cast("list[Any]", values) if isinstance(values, list) else None
    if items is None or not all(type(item) is kind for item in items):
        expected = f"a list of {kind.__name__}"
        raise ConfigError(f"{_place(path, row_number, column)}: found {cell!r:.80}; wanted {expected}")
    return items
