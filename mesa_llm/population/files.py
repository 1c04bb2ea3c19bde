"""Read personas from files in OASIS's formats."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from mesa_llm.errors import ConfigError
from mesa_llm.population.activity import HOURS, hourly_activity
from mesa_llm.population.persona import Persona
from mesa_llm.population.tables import (
    KNOWN,
    ItemFault,
    fault_of,
    person_row,
    persona_of,
    place,
    require_people,
)
from mesa_llm.tables import MISSING, PlacedRow, Row, columns_of, folded, read_table

FREQUENCY = "activity_level_frequency"
"""Column with a user's hourly counts of activity."""

FOLLOWING, POSTS = "following_agentid_list", "previous_tweets"
"""Columns with the followees and earlier posts of an X user."""

X_FIELDS = {"name": "name", "user_char": "persona", "username": "username", "description": "bio"}
"""Column of OASIS's table of X users → field of a persona."""

X_COLUMNS = {"name", "username", "user_char", "description"}
"""Columns of OASIS's table of X users; a cell may be empty in some rows."""

X_FOLLOWS = {"name", "username", "following_agentid_list"}
"""Columns that identify such a table if no user has a description."""

REDDIT_COLUMNS = {"realname", "username", "bio", "persona"}
"""Columns of OASIS's list of Reddit users."""

NOT_USERS: dict[frozenset[str], str] = {
    frozenset({"source_tweet", "topic_name"}): "posts that spread on X and how far (OASIS's all_topics)",
    frozenset({"RS", "RC_1"}): "Reddit posts with their comments (OASIS's counterfactual_36)",
    frozenset({"content"}): "texts of posts (such as OASIS's product)",
    frozenset(
        {"scale", "depth", "max_breadth"}
    ): "curves of how a post spread (OASIS's real_propagation); `read_curves` reads them",
    frozenset({FREQUENCY}): "hours of activity (such as OASIS's user_activity_24h; give it as `activity` beside the "
    "users' file)",
}
"""Columns of OASIS's files without users → what they hold."""

MAX_POST = 5000
"""Maximum number of characters of an earlier post, the same as for new posts."""

MAX_LINES = 10
"""Maximum number of lines that an error about broken rows lists."""

MAX_LITERAL = 2_000_000
"""Maximum number of characters of a cell with a list of earlier posts."""

INTEGERS = re.compile(r"\[ *(?:(?:0|-?[1-9][0-9]{0,18})(?: *, *(?:0|-?[1-9][0-9]{0,18}))*)? *\]")
"""A list of whole numbers, which is JSON as well."""

REDDIT_TRAITS = ("age", "gender", "mbti", "country", "profession")


Rule = Literal["paper", "code"]
"""Rule that converts counts of activity to probabilities; see `hourly_activity`."""

RowReader = Callable[[Row, str, int, ItemFault], Persona]
"""Builds a persona from a row: its cells, its file and line, its index, and `fault` as for `persona_of`."""


ID_COLUMNS = ("user_id", "userid", "agent_id", "node_id", "id")
"""Columns with the ids that files of follows use, most likely first."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row of a file, or an item in a row, that cannot be used."""

    line: int
    """Line of the file on which the row begins, from 1."""

    reason: str
    """Actual and expected content, with file, line, row and column."""


@dataclass(frozen=True, slots=True)
class Users:
    """Users read from a file."""

    personas: list[Persona]
    """Personas of the usable rows, in order."""

    refusals: tuple[Refusal, ...] = ()
    """The rows that cannot be used, in order."""

    counts: npt.NDArray[np.int64] | None = None
    """Hourly counts of activity, shape `(personas, 24)`, with −1 where they cannot be read; None if unknown."""

    dropped: tuple[Refusal, ...] = ()
    """Unusable items of usable rows, in order: cells, or single follows and posts."""

    rows: tuple[int, ...] = ()
    """Index of each persona's row in the file, from 0."""

    ids: tuple[str, ...] = ()
    """Each persona's cell in the first of `ID_COLUMNS` that the file has; empty without such a column."""


def from_file(
    path: str | Path, n: int | None = None, *, missing: Collection[str] = MISSING, encoding: str | None = None
) -> list[Persona]:
    """Read a population from a file in one of OASIS's formats, or from any other table.

    Args:
        path: The file.
        n: Maximum number of personas, from the start of the file; None: all.
        missing, encoding: As for `mesa_llm.tables.read_table`.

    Raises:
        ConfigError: If the file cannot be read or holds no users. The message says what it holds instead, if known.
    """
    return read_users(path, missing=missing, encoding=encoding).personas[:n]


def from_oasis(path: str | Path, activity: str | Path | None = None, rule: Rule = "paper") -> list[Persona]:
    """Read users in OASIS's formats: a CSV table of X users, or a JSON list of Reddit users.

    Lists in cells are Python literals. `following_agentid_list` holds row indices, from 0; follows of oneself are
    dropped. Hours of activity, if there are any, are converted to probabilities.

    Args:
        path: The file.
        activity: Table of the same users' hours of activity, row by row.
        rule: Rule that converts them to probabilities; see `hourly_activity`.

    Raises:
        ConfigError: If the file has neither format, or rows cannot be used. The message names file, line, row and
            column.
    """
    return _read_oasis(path, _numbered_rows(path), activity, rule, skip=False).personas


def read_users(
    path: str | Path,
    activity: str | Path | None = None,
    rule: Rule = "paper",
    *,
    skip: bool = False,
    missing: Collection[str] = MISSING,
    encoding: str | None = None,
) -> Users:
    """Read a population as `from_file` does, and report unusable rows and items.

    An item is unusable if it does not fit its column: a follow of a user who is not in the file, an earlier post that
    is too long, a name that is a list. A row is unusable if it has too many or too few cells, or does not identify a
    person. Every row is a user, even if names or usernames repeat.

    Args:
        path: The file.
        activity: Table of the same users' hours of activity, row by row, for users in OASIS's formats.
        rule: Rule that converts them to probabilities; see `hourly_activity`.
        skip: Whether to leave out unusable items and rows instead of raising an error.
        missing, encoding: As for `mesa_llm.tables.read_table`.

    Raises:
        ConfigError: If the file cannot be read, holds no users or, without `skip`, has unusable rows or items.
    """
    placed = _numbered_rows(path, missing, encoding)
    rows = _whole(placed)
    if _is_x(rows) or _has(rows, REDDIT_COLUMNS):
        return _read_oasis(path, placed, activity, rule, skip=skip)
    _require_users(rows, path)
    require_people(rows, str(path))
    content = _read_rows(path, placed, lambda row, *where: persona_of(row, where[0], where[1] + 1, where[2]), skip=skip)
    return content.users(list(content.personas.values()))


def _numbered_rows(
    path: str | Path, missing: Collection[str] = MISSING, encoding: str | None = None
) -> list[PlacedRow]:
    """Read the rows of a file of users."""
    placed = read_table(path, KNOWN, missing=missing, encoding=encoding)
    return [
        (line, person_row(row, f"{path}, line {line}") if isinstance(row, dict) else row) for line, row in placed if row
    ]


@dataclass
class _Rows:
    """Contents of the rows of a file."""

    placed: Sequence[PlacedRow]
    """The rows with their lines."""

    personas: dict[int, Persona]
    """Index of each usable row → its persona."""

    refusals: list[Refusal]
    """Unusable rows."""

    dropped: list[Refusal]
    """Unusable items of usable rows."""

    def users(self, personas: list[Persona], counts: npt.NDArray[np.int64] | None = None) -> Users:
        """Return the users, with their final personas."""
        rows = [cast("Row", self.placed[index][1]) for index in self.personas]
        names = {folded(column): column for column in reversed(columns_of(rows))}
        column = next((names[name] for name in ID_COLUMNS if name in names), None)
        ids = () if column is None else tuple(str(row.get(column, "")) for row in rows)
        dropped = tuple(sorted(self.dropped, key=lambda refusal: refusal.line))
        return Users(personas, tuple(self.refusals), counts, dropped, tuple(self.personas), ids)


def _read_rows(path: str | Path, placed: Sequence[PlacedRow], read: RowReader, *, skip: bool) -> _Rows:
    """Read the usable rows.

    Args:
        path: The file.
        placed: Its rows.
        read: Builds a persona from a row.
        skip: Whether to leave out unusable rows and items instead of raising an error.

    Raises:
        ConfigError: If no row is usable or, without `skip`, any row or item is not.
    """
    content = _Rows(placed, {}, [], [])
    for index, (line, row) in enumerate(placed):
        source = f"{path}, line {line}"
        faults: list[str] = []
        try:
            if isinstance(row, str):
                raise ConfigError(f"{source}, row {index + 1}: {row}")
            persona = read(row, source, index, faults.append if skip else _refuse)
            if faults and not (persona.name or persona.username or persona.persona or persona.bio):
                raise ConfigError(faults[0])
        except ConfigError as error:
            content.refusals.append(Refusal(line, str(error)))
        else:
            content.personas[index] = persona
            content.dropped += [Refusal(line, fault) for fault in faults]
    if content.refusals and not (skip and content.personas):
        raise ConfigError(_refusal_text(content.refusals, len(placed)))
    return content


def _refuse(reason: str) -> None:
    raise ConfigError(reason)


def _read_oasis(
    path: str | Path, placed: Sequence[PlacedRow], activity: str | Path | None, rule: Rule, *, skip: bool
) -> Users:
    """Read the rows of a file in one of OASIS's formats."""
    rows = _whole(placed)
    is_x = not _has(rows, REDDIT_COLUMNS)
    if is_x and not _is_x(rows):
        _require_users(rows, path)
        expected = f"{sorted(X_COLUMNS)} (X) or {sorted(REDDIT_COLUMNS)} (Reddit)"
        raise ConfigError(f"{path} has the columns {sorted(columns_of(rows))}; users of OASIS have {expected}")
    has_hours = activity is None and all(FREQUENCY in row for row in rows)
    hours: dict[int, list[int]] = {}

    def read(row: Row, source: str, index: int, fault: ItemFault) -> Persona:
        n = len(placed)
        persona = _x_user(row, source, index + 1, n, fault) if is_x else _reddit_user(row, source, index + 1, fault)
        if not (persona.name or persona.username or persona.persona):
            raise ConfigError(f"{source}, row {index + 1}: found no name, username or persona; wanted at least one")
        if has_hours:
            try:
                hours[index] = _counts(row, source, index + 1)
            except ConfigError as error:
                fault(str(error))
                hours[index] = [-1] * HOURS
        return persona

    content = _read_rows(path, placed, read, skip=skip)
    counts = np.array([hours[index] for index in content.personas], dtype=np.int64) if has_hours else None
    if activity is not None:
        counts = _activity_of(activity, path, len(placed))[list(content.personas)]
    return content.users(_final_personas(content, counts, rule), counts)


def _refusal_text(refusals: Sequence[Refusal], n_rows: int) -> str:
    """Describe the rows that cannot be used."""
    first, *others = refusals
    if not others:
        return first.reason
    lines = ", ".join(str(refusal.line) for refusal in others[:MAX_LINES])
    more = ", …" if len(others) > MAX_LINES else ""
    n_others = len(others)
    return f"{first.reason} ({n_others} more of {n_rows} rows cannot be used either, on lines {lines}{more})"


def _activity_of(activity: str | Path, path: str | Path, n: int) -> npt.NDArray[np.int64]:
    counts = read_activity(activity)
    if len(counts) != n:
        raise ConfigError(f"{activity} has {len(counts)} rows, but {path} has {n} users")
    return counts


def _final_personas(content: _Rows, counts: npt.NDArray[np.int64] | None, rule: Rule) -> list[Persona]:
    """Renumber the users without those left out, and convert their hours of activity to probabilities."""
    new_index = {index: new for new, index in enumerate(content.personas)}
    table: list[tuple[float, ...]] = [()] * len(new_index)
    if counts is not None:
        known = np.flatnonzero(counts.min(axis=1) >= 0)
        for index, day in zip(known.tolist(), hourly_activity(counts[known], rule).tolist(), strict=True):
            table[index] = tuple(day)
    personas: list[Persona] = []
    for (index, persona), day in zip(content.personas.items(), table, strict=True):
        line = content.placed[index][0]
        lost = [followed for followed in persona.follows if followed not in new_index]
        content.dropped += [Refusal(line, f"line {line}: follows user {one}, whose row cannot be used") for one in lost]
        follows = tuple(new_index[followed] for followed in persona.follows if followed in new_index)
        personas.append(persona.model_copy(update={"follows": follows, "activity": day}))
    return personas


def read_activity(path: str | Path) -> npt.NDArray[np.int64]:
    """Read hourly counts of activity from the column `activity_level_frequency`.

    Returns:
        Counts, shape `(users, 24)`.

    Raises:
        ConfigError: If the column is missing, or a cell is not a list of 24 counts.
    """
    counts: list[list[int]] = []
    for row_number, (line, row) in enumerate(read_table(path, {FREQUENCY}), start=1):
        if isinstance(row, str):
            raise ConfigError(f"{path}, line {line}, row {row_number}: {row}")
        counts.append(_counts(row, f"{path}, line {line}", row_number))
    return np.array(counts, dtype=np.int64).reshape(-1, HOURS)


def _counts(row: Row, source: str | Path, row_number: int) -> list[int]:
    """Read the hourly counts of activity of one user."""
    hours = _literals(row, FREQUENCY, source, row_number, int, _refuse)
    if len(hours) != HOURS or min(hours) < 0 or max(hours) >= 2**63:
        raise ConfigError(f"{place(source, row_number, FREQUENCY)}: found {hours!r:.80}; wanted {HOURS} counts from 0")
    return hours


def _whole(placed: Iterable[PlacedRow]) -> list[Row]:
    return [row for _, row in placed if not isinstance(row, str)]


def _has(rows: Sequence[Row], columns: set[str] | frozenset[str]) -> bool:
    return columns <= set(columns_of(rows))


def _is_x(rows: Sequence[Row]) -> bool:
    return _has(rows, X_COLUMNS) or _has(rows, X_FOLLOWS)


def _require_users(rows: Sequence[Row], path: str | Path) -> None:
    """Check that a file is not one of OASIS's files without users.

    Raises:
        ConfigError: If it is one. The message says what it holds.
    """
    names = {"name", "realname", "persona", "user_char", "username"}
    for columns, contents in NOT_USERS.items():
        if _has(rows, columns) and not names & set(columns_of(rows)):
            raise ConfigError(f"{path} holds no users but {contents}; wanted one row for each user, with a name")


def _x_user(row: Row, path: str, row_number: int, n: int, fault: ItemFault) -> Persona:
    fields: dict[str, Any] = {}
    for column, field in X_FIELDS.items():
        if (cell := row.get(column)) is not None:
            if reason := fault_of(cell):
                fault(f"{place(path, row_number, column)}: {reason}")
            else:
                fields[field] = str(cell)
    fields.setdefault("persona", fields.get("bio", ""))
    follows: set[int] = set()
    for followed in _literals(row, FOLLOWING, path, row_number, int, fault):
        if 0 <= followed < n:
            follows.add(followed)
        else:
            fault(f"{place(path, row_number, FOLLOWING)}: found user {followed}; the file has users 0 to {n - 1}")
    follows.discard(row_number - 1)
    posts: list[str] = []
    for post in _literals(row, POSTS, path, row_number, str, fault):
        if post.strip() and len(post) <= MAX_POST:
            posts.append(post)
        else:
            length = f"a post of {len(post):,} characters" if post.strip() else "an empty post"
            fault(f"{place(path, row_number, POSTS)}: found {length}; wanted 1 to {MAX_POST:,} characters")
    return Persona(**fields, follows=tuple(sorted(follows)), posts=tuple(posts))


def _reddit_user(row: Row, path: str, row_number: int, fault: ItemFault) -> Persona:
    traits = {trait: row[trait] for trait in REDDIT_TRAITS if trait in row}
    return persona_of(row, path, row_number, fault, traits=traits)


def _literals(row: Row, column: str, path: str | Path, row_number: int, kind: type[Any], fault: ItemFault) -> list[Any]:
    """Read a cell that holds a Python list, dropping items of other types; an empty cell is an empty list."""
    cell = row.get(column, [])
    values = _list_of(cell) if isinstance(cell, str) else cell
    if not isinstance(values, list):
        expected = "Python list" if values is None else f"list of {kind.__name__}"
        fault(f"{place(path, row_number, column)}: found {cell!r:.80}; wanted a {expected}")
        return []
    items = cast("list[Any]", values)
    odd = [item for item in items if type(item) is not kind]
    for item in odd:
        fault(f"{place(path, row_number, column)}: found {item!r:.80}; wanted a list of {kind.__name__}")
    return [item for item in items if type(item) is kind] if odd else items


def _list_of(text: str) -> Any:
    """Return the value of a Python literal; None if it is not one, or too long."""
    if INTEGERS.fullmatch(text):
        return json.loads(text)  # much faster than literal_eval
    try:
        return ast.literal_eval(text) if len(text) <= MAX_LITERAL else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
