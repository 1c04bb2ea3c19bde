"""Personas from files in the formats of OASIS."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from mesa_llm.errors import ConfigError
from mesa_llm.population.activity import HOURS, hourly_activity
from mesa_llm.population.persona import Persona
from mesa_llm.population.tables import PlacedRow, Row, columns_of, persona_of, placed_rows, typed_rows

FREQUENCY = "activity_level_frequency"
"""Column with how often a user was active, by the hour."""

X_COLUMNS = {"name", "username", "user_char", "description"}
"""Columns of OASIS's table of X users; a cell may be empty in some rows."""

X_FOLLOWS = {"name", "username", "following_agentid_list"}
"""Columns by which such a table is known if nobody has a description."""

REDDIT_COLUMNS = {"realname", "username", "bio", "persona"}
"""Columns of OASIS's list of Reddit users."""

NOT_USERS: dict[frozenset[str], str] = {
    frozenset({"source_tweet", "topic_name"}): "posts that spread on X and how far (OASIS's all_topics)",
    frozenset({"RS", "RC_1"}): "Reddit posts with their comments (OASIS's counterfactual_36)",
    frozenset({"content"}): "texts of posts (such as OASIS's product)",
    frozenset({FREQUENCY}): "hours of activity (such as OASIS's user_activity_24h; give it as `activity` beside the "
    "users' file)",
}
"""Columns of OASIS's files without users → what they hold."""

MAX_POST = 5000
"""Maximum number of characters of an earlier post, as of posts that users write."""

MAX_LINES = 10
"""Maximum number of lines that an error about broken rows lists."""

REDDIT_TRAITS = ("age", "gender", "mbti", "country", "profession")


Rule = Literal["paper", "code"]
"""How counts of activity become probabilities, see `hourly_activity`."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row of a file that cannot be used."""

    line: int
    """Line of the file on which the row begins, from 1."""

    reason: str
    """What was found and what was wanted, with file, line, row and column."""


@dataclass(frozen=True, slots=True)
class Users:
    """What a file of users holds."""

    personas: list[Persona]
    """One for each row that can be used, in order."""

    refusals: tuple[Refusal, ...] = ()
    """The rows that cannot be used, in order."""

    counts: npt.NDArray[np.int64] | None = None
    """How often each persona was active in each hour, shape `(personas, 24)`; None: not known."""


def from_file(path: str | Path, n: int | None = None) -> list[Persona]:
    """Read a population: in one of OASIS's formats if the file has its columns, else as any table.

    Args:
        path: The file.
        n: Maximum number of personas, from the start of the file; None: all.

    Raises:
        ConfigError: If the file cannot be read, or holds no users; says what it holds instead, if that is known.
    """
    return read_users(path).personas[:n]


def from_oasis(path: str | Path, activity: str | Path | None = None, rule: Rule = "paper") -> list[Persona]:
    """Read users as OASIS keeps them: a CSV table of X users, or a JSON list of Reddit users.

    Lists in cells are Python literals. `following_agentid_list` names rows, from 0; users who follow themselves there
    do not here. Hours of activity, if there are any, become probabilities.

    Args:
        path: The file.
        activity: Table of the same users' hours of activity, row by row.
        rule: How those become probabilities, see `hourly_activity`.

    Raises:
        ConfigError: If the format is neither, or rows cannot be used; says which file, line, row and column.
    """
    return _read_oasis(path, placed_rows(path), activity, rule, skip=False).personas


def read_users(
    path: str | Path, activity: str | Path | None = None, rule: Rule = "paper", *, skip: bool = False
) -> Users:
    """Read a population as `from_file` does, and count the rows that cannot be used.

    A row cannot be used if it has too many or too few cells, if a cell is not what its column holds, or if its
    username is that of an earlier row.

    Args:
        path: The file.
        activity: Table of the same users' hours of activity, row by row, for users in OASIS's formats.
        rule: How those become probabilities, see `hourly_activity`.
        skip: Whether to leave out rows that cannot be used, with the follows that name them; else they are an error.

    Raises:
        ConfigError: If the file cannot be read, holds nobody, or, without `skip`, has rows that cannot be used.
    """
    placed = placed_rows(path)
    rows = _whole(placed)
    if not placed:
        raise ConfigError(f"{path} holds no personas")
    if _is_x(rows) or _has(rows, REDDIT_COLUMNS):
        return _read_oasis(path, placed, activity, rule, skip=skip)
    _demand_users(rows, path)
    return _read_table(path, placed, skip=skip)


def _read_table(path: str | Path, placed: Sequence[PlacedRow], *, skip: bool) -> Users:
    """Read the rows of a table of any columns."""
    refusals = [Refusal(line, f"{path}, line {line}: {fault}") for line, fault in placed if isinstance(fault, str)]
    lines = [line for line, row in placed if not isinstance(row, str)]
    if refusals and not (skip and lines):
        raise ConfigError(_refused(refusals, len(placed)))
    personas: list[Persona] = []
    line_of: dict[str, int] = {}
    for row_number, (line, row) in enumerate(zip(lines, typed_rows(path, placed), strict=True), start=1):
        try:
            persona = persona_of(row, f"{path}, line {line}", row_number)
            _check_username(persona, line_of, f"{path}, line {line}", row_number)
        except ConfigError as error:
            refusals.append(Refusal(line, str(error)))
        else:
            personas.append(persona)
            line_of.setdefault(persona.username, line)
    refusals.sort(key=lambda refusal: refusal.line)
    if refusals and not (skip and personas):
        raise ConfigError(_refused(refusals, len(placed)))
    return Users(personas, tuple(refusals))


def _read_oasis(
    path: str | Path, placed: Sequence[PlacedRow], activity: str | Path | None, rule: Rule, *, skip: bool
) -> Users:
    """Read the rows of a file of OASIS."""
    rows = _whole(placed)
    is_x = not _has(rows, REDDIT_COLUMNS)
    if is_x and not _is_x(rows):
        _demand_users(rows, path)
        expected = f"{sorted(X_COLUMNS)} (X) or {sorted(REDDIT_COLUMNS)} (Reddit)"
        raise ConfigError(f"{path} has the columns {sorted(columns_of(rows))}; users of OASIS have {expected}")
    has_hours = activity is None and all(FREQUENCY in row for row in rows)
    personas: dict[int, Persona] = {}
    hours: dict[int, list[int]] = {}
    refusals: list[Refusal] = []
    lines: dict[str, int] = {}
    for index, (line, row) in enumerate(placed):
        source = f"{path}, line {line}"
        try:
            persona = _user(row, source, index, len(placed), lines, is_x=is_x)
            if has_hours:
                hours[index] = _counts(cast("Row", row), source, index + 1)
        except ConfigError as error:
            refusals.append(Refusal(line, str(error)))
        else:
            personas[index] = persona
            lines.setdefault(persona.username, line)
    if refusals and not (skip and personas):
        raise ConfigError(_refused(refusals, len(placed)))
    counts = np.array(list(hours.values()), dtype=np.int64) if has_hours else None
    if activity is not None:
        counts = _matching(activity, path, len(placed))[list(personas)]
    return Users(_settled(personas, counts, rule), tuple(refusals), counts)


def _user(row: Row | str, source: str, index: int, n: int, lines: Mapping[str, int], *, is_x: bool) -> Persona:
    """Read one user.

    Args:
        row: Its cells; a text: what is wrong with them.
        source: File and line, for errors.
        index: Index of the row, from 0.
        n: Number of rows.
        lines: Username → line of the row that has it.
        is_x: Whether it is a user of X, else of Reddit.

    Raises:
        ConfigError: If the row cannot be used.
    """
    if isinstance(row, str):
        raise ConfigError(f"{source}, row {index + 1}: {row}")
    persona = _x_user(row, source, index + 1, n) if is_x else _reddit_user(row, source, index + 1)
    if not (persona.name or persona.username or persona.persona):
        raise ConfigError(f"{source}, row {index + 1}: found no name, username or persona; wanted one at least")
    _check_username(persona, lines, source, index + 1)
    return persona


def _check_username(persona: Persona, lines: Mapping[str, int], source: str, row_number: int) -> None:
    """Check that no earlier row has the same username.

    Raises:
        ConfigError: If one has; says on which line.
    """
    if persona.username and persona.username in lines:
        raise ConfigError(
            f"{_place(source, row_number, 'username')}: found {persona.username!r:.80} again, which line "
            f"{lines[persona.username]} has; wanted a name of its own for each user"
        )


def _refused(refusals: Sequence[Refusal], n_rows: int) -> str:
    """Describe the rows that cannot be used."""
    first, *others = refusals
    if not others:
        return first.reason
    lines = ", ".join(str(refusal.line) for refusal in others[:MAX_LINES])
    more = ", …" if len(others) > MAX_LINES else ""
    n_others = len(others)
    return f"{first.reason} ({n_others} more of {n_rows} rows cannot be used either, on lines {lines}{more})"


def _matching(activity: str | Path, path: str | Path, n: int) -> npt.NDArray[np.int64]:
    counts = read_activity(activity)
    if len(counts) != n:
        raise ConfigError(f"{activity} has {len(counts)} rows, but {path} has {n} users")
    return counts


def _settled(personas: Mapping[int, Persona], counts: npt.NDArray[np.int64] | None, rule: Rule) -> list[Persona]:
    """Number the users anew, without those that were left out, and turn their hours into probabilities."""
    new_index = {index: new for new, index in enumerate(personas)}
    table = [()] * len(personas) if counts is None else [tuple(day) for day in hourly_activity(counts, rule).tolist()]
    return [
        persona.model_copy(
            update={"follows": tuple(new_index[b] for b in persona.follows if b in new_index), "activity": day}
        )
        for persona, day in zip(personas.values(), table, strict=True)
    ]


def read_activity(path: str | Path) -> npt.NDArray[np.int64]:
    """Read how often each user was active in each hour, from the column `activity_level_frequency`.

    Returns:
        Counts, shape `(users, 24)`.

    Raises:
        ConfigError: If the column is missing, or a cell is no list of 24 counts.
    """
    counts: list[list[int]] = []
    for row_number, (line, row) in enumerate(placed_rows(path), start=1):
        if isinstance(row, str):
            raise ConfigError(f"{path}, line {line}, row {row_number}: {row}")
        counts.append(_counts(row, f"{path}, line {line}", row_number))
    return np.array(counts, dtype=np.int64).reshape(-1, HOURS)


def _counts(row: Row, source: str | Path, row_number: int) -> list[int]:
    """Read how often one user was active in each hour."""
    hours = _literals(row, FREQUENCY, source, row_number, int)
    if len(hours) != HOURS or min(hours) < 0 or max(hours) >= 2**63:
        raise ConfigError(f"{_place(source, row_number, FREQUENCY)}: found {hours!r:.80}; wanted {HOURS} counts from 0")
    return hours


def _whole(placed: Iterable[PlacedRow]) -> list[Row]:
    return [row for _, row in placed if not isinstance(row, str)]


def _has(rows: Sequence[Row], columns: set[str] | frozenset[str]) -> bool:
    return columns <= set(columns_of(rows))


def _is_x(rows: Sequence[Row]) -> bool:
    return _has(rows, X_COLUMNS) or _has(rows, X_FOLLOWS)


def _demand_users(rows: Sequence[Row], path: str | Path) -> None:
    """Check that a file is none of OASIS's files without users.

    Raises:
        ConfigError: If it is one; says what it holds.
    """
    names = {"name", "realname", "persona", "user_char", "username"}
    for columns, contents in NOT_USERS.items():
        if _has(rows, columns) and not names & set(columns_of(rows)):
            raise ConfigError(f"{path} holds no users but {contents}; wanted one row for each user, with a name")


def _place(path: str | Path, row_number: int, column: str) -> str:
    return f"{path}, row {row_number}, column {column!r}"


def _x_user(row: Row, path: str, row_number: int, n: int) -> Persona:
    follows = _literals(row, "following_agentid_list", path, row_number, int)
    for followed in follows:
        if not 0 <= followed < n:
            position = _place(path, row_number, "following_agentid_list")
            raise ConfigError(f"{position}: found user {followed}; the file has users 0 to {n - 1}")
    posts = _literals(row, "previous_tweets", path, row_number, str)
    for post in posts:
        if not post.strip() or len(post) > MAX_POST:
            found = f"a post of {len(post):,} characters" if post.strip() else "an empty post"
            position = _place(path, row_number, "previous_tweets")
            raise ConfigError(f"{position}: found {found}; wanted 1 to {MAX_POST:,} characters")
    bio = str(row.get("description", ""))
    return Persona(
        name=str(row.get("name", "")),
        persona=str(row.get("user_char", bio)),
        username=str(row.get("username", "")),
        bio=bio,
        follows=tuple(sorted({followed for followed in follows if followed != row_number - 1})),
        posts=tuple(posts),
    )


def _reddit_user(row: Row, path: str, row_number: int) -> Persona:
    traits = {trait: row[trait] for trait in REDDIT_TRAITS if trait in row}
    return persona_of(row, path, row_number, traits=traits)


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
