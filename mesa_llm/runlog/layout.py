"""The database schema of a run log, and upgrades from earlier formats.

A file is only used if its schema is exactly one that this package creates, since a trigger, a view or a generated
column in a file from elsewhere could alter or hide data.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError

FORMAT = 5
"""Version of the layout, written to `PRAGMA user_version` and to the manifest."""

MAX_VALUE = 16_000_000
"""Maximum size of a value in a run log, in bytes; SQLite refuses to read or write larger ones."""

FORMATS = range(3, FORMAT + 1)
"""Supported formats."""

_TABLES = """
CREATE TABLE manifest (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE writer (pid INTEGER, host TEXT, since TEXT);
CREATE TABLE texts (id INTEGER PRIMARY KEY, hash NOT NULL, text TEXT NOT NULL);
CREATE TABLE calls (
    key BLOB NOT NULL, agent INTEGER, time INTEGER, purpose TEXT, call INTEGER, model TEXT,
    prompt TEXT, parameters INTEGER, options INTEGER, reply TEXT, error_kind TEXT, error TEXT,
    prompt_tokens INTEGER, reply_tokens INTEGER, dollars REAL, latency_s REAL, attempts INTEGER);
CREATE UNIQUE INDEX calls_at ON calls (time, agent, key);
CREATE TABLE decisions (
    time INTEGER, agent INTEGER, by TEXT, decision TEXT, text TEXT, kind TEXT, reason TEXT, keys BLOB,
    label TEXT);
CREATE TABLE actions (
    time INTEGER, agent INTEGER, action TEXT, arguments TEXT, ok INTEGER, result TEXT, label TEXT);
CREATE TABLE events (time INTEGER, source TEXT, kind TEXT, facts TEXT, text TEXT);
CREATE TABLE messages (time INTEGER, sender INTEGER, recipients TEXT, text TEXT);
CREATE TABLE steps (time INTEGER PRIMARY KEY, measures TEXT, digest TEXT);
CREATE TABLE answers (time INTEGER, agent INTEGER, question TEXT, answer TEXT, failure TEXT,
    purpose TEXT);
CREATE INDEX decisions_at ON decisions (time);
CREATE INDEX actions_at ON actions (time);
CREATE INDEX events_at ON events (time);
CREATE INDEX messages_at ON messages (time);
CREATE INDEX answers_at ON answers (time, agent);
"""
"""The tables of format 3. A call's prompt, parameters and options are ids of texts; see `tables.Texts`.

No index is ordered by a digest, so rows written together are stored on few pages.
"""

_UPGRADES = {
    4: (
        "ALTER TABLE calls ADD COLUMN checksum INTEGER",  # of what a replay reads: see `tables.call_checksum`
        "ALTER TABLE decisions ADD COLUMN reading TEXT",
    ),
    5: ("ALTER TABLE actions ADD COLUMN facts TEXT",),
}
"""Format → statements that upgrade to it from the previous one; new columns are NULL in older rows."""

_OLDER_TABLES = ("hash NOT NULL", "hash BLOB NOT NULL")
"""Declaration of `texts.hash` since version 0.9.1, and before."""

_STATISTICS = frozenset(
    {"CREATE TABLE sqlite_stat1(tbl,idx,stat)", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"}
)
"""Tables created by SQLite's ANALYZE, which are harmless."""

SCHEMA = f"{_TABLES}{';'.join(sum(_UPGRADES.values(), ()))};PRAGMA user_version={FORMAT};"
"""Creates the tables of a run log in an empty database."""


def connect(path: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a database for use by all threads, without trusting functions and views declared in the file."""
    database = sqlite3.connect(path, check_same_thread=False, uri=uri, timeout=30)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    database.execute("PRAGMA trusted_schema=OFF")
    database.execute("PRAGMA cell_size_check=ON")
    return database


@cache
def columns() -> dict[str, list[str]]:
    """Return the column names of each table of a run log."""
    return _columns(FORMAT)


@cache
def _columns(version: int) -> dict[str, list[str]]:
    with closing(_empty(version)) as empty:
        tables = [name for (name,) in empty.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: [field[1] for field in empty.execute(f"PRAGMA table_info({table})")] for table in tables}


@cache
def later_columns(table: str) -> list[str]:
    """Return the columns of a table that logs of the first format lack."""
    return [name for name in columns()[table] if name not in _columns(FORMATS[0])[table]]


@cache
def selection(table: str, version: int) -> str:
    """Return the columns of a table for a query, with NULL for those that the log's format lacks."""
    present = _columns(version)[table]
    return ", ".join(name if name in present else f"NULL AS {name}" for name in columns()[table])


def format_of(database: sqlite3.Connection) -> int:
    """Return the format of a run log.

    Raises:
        sqlite3.Error: If it cannot be read.
    """
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def upgrade(database: sqlite3.Connection) -> None:
    """Upgrade a run log of an earlier format, within the open transaction.

    Raises:
        sqlite3.Error: If it cannot be written.
    """
    for version in range(format_of(database) + 1, FORMAT + 1):
        for statement in _UPGRADES[version]:
            database.execute(statement)
        database.execute(f"PRAGMA user_version={version}")
        database.execute("UPDATE manifest SET value = ? WHERE name = 'format'", (canonical_json(version),))


def check(database: sqlite3.Connection, path: Path) -> None:
    """Check that a database is a run log of a supported format.

    Raises:
        ConfigError: If it is not, or its schema contains anything else.
        sqlite3.Error: If it cannot be read.
    """
    schema = _schema(database)
    tables = sorted(name for kind, name, _, _ in schema if kind == "table")
    if "manifest" not in tables:
        reason = f"it is a database of something else (tables: {', '.join(tables)[:200]})" if tables else "it is empty"
        raise ConfigError(f"{str(path)!r} cannot be used as a run log: {reason}")
    version = format_of(database)
    if version not in FORMATS:
        raise ConfigError(
            f"{str(path)!r} is a run log of format {version or 1}, and this version of mesa_llm reads "
            f"formats {FORMATS[0]} to {FORMAT}: open it with the version that recorded it"
        )
    if reason := _foreign_parts(schema, version):
        raise ConfigError(f"{str(path)!r} cannot be used as a run log: {reason}")
    for table in columns():
        database.execute(f"SELECT * FROM {table} LIMIT 0")


_Part = tuple[str, str, str, str]
"""A table, index, view or trigger: its type, its name, its table's name, and the SQL that created it."""


def _schema(database: sqlite3.Connection) -> Counter[_Part]:
    """Count the parts of a schema, with their SQL on one line; a damaged schema may contain the same part twice."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return Counter((str(kind), str(name), str(table), " ".join(str(sql).split())) for kind, name, table, sql in rows)


@cache
def _own_schemas(version: int) -> tuple[Counter[_Part], ...]:
    """Return every schema that this package has used for a format, the current one first."""
    schemas: list[Counter[_Part]] = []
    for texts in _OLDER_TABLES:
        with closing(_empty(version, texts)) as empty:
            schemas.append(_schema(empty))
    return tuple(schemas)


def _empty(version: int, texts: str = _OLDER_TABLES[0]) -> sqlite3.Connection:
    """Create an empty in-memory run log of a format."""
    database = connect(":memory:")
    database.executescript(_TABLES.replace(_OLDER_TABLES[0], texts))
    for later in FORMATS[1 : FORMATS.index(version) + 1]:
        database.executescript(";".join(_UPGRADES[later]))
    return database


def _foreign_parts(schema: Counter[_Part], version: int) -> str:
    """Describe how a schema differs from a run log's; empty if it does not."""
    own_schemas = _own_schemas(version)
    schema = Counter({part: count for part, count in schema.items() if part[-1] not in _STATISTICS})
    if schema in own_schemas:
        return ""
    own = min(own_schemas, key=lambda each: (schema - each).total() + (each - schema).total())
    names = {(kind, name) for kind, name, _, _ in own}
    foreign = [
        f"{kind} {name} that no run log has" if (kind, name) not in names else f"{kind} {name} declared as {sql[:200]}"
        for kind, name, _, sql in sorted(schema - own)
    ]
    present = {(kind, name) for kind, name, _, _ in schema}
    missing = [f"no {kind} {name}" for kind, name, _, _ in sorted(own - schema) if (kind, name) not in present]
    return f"it has {', '.join((foreign + missing)[:10])}"
