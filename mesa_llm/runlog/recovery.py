"""Recover the readable rows of a damaged run log into a new one."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mesa_llm.errors import ConfigError
from mesa_llm.runlog.disk import disk_fault
from mesa_llm.runlog.file import copied
from mesa_llm.runlog.layout import FORMATS, SCHEMA, check, columns, connect, format_of, selection
from mesa_llm.runlog.tables import (
    CHECKED,
    IN_COLUMNS,
    SQL_ERRORS,
    is_intact,
    is_whole_call,
    line_of,
    loaded,
    reply_of,
)

SALVAGED = ("manifest", "texts", "calls", "decisions", "actions", "events", "messages", "steps", "answers")
"""Tables in reading order."""

MAX_ROWS = 1 << 40
"""Maximum row number; recovery does not search beyond it."""


@dataclass(frozen=True)
class RecoveredTable:
    """Result of recovering one table."""

    table: str
    """Its name."""

    kept: int
    """Number of recovered rows."""

    lost: int
    """Number of rows known to be lost; there may be more if the end of a table is missing."""

    is_whole: bool
    """False if more rows may be lost than `lost` counts."""


def recover(damaged: Path, new: Path) -> list[RecoveredTable]:
    """Copy everything readable from a damaged log into a new file; the damaged file is not changed.

    Args:
        damaged: The run log.
        new: A file that does not exist yet.

    Returns:
        Result for each table.

    Raises:
        ConfigError: If `damaged` is not a file, `new` exists or cannot be written, or nothing can be read.
    """
    if not damaged.is_file():
        raise ConfigError(f"there is no run log at {str(damaged)!r}")
    if new.exists():
        raise ConfigError(f"{str(new)!r} already exists; name a new file")
    if not os.access(new.absolute().parent, os.W_OK):
        raise ConfigError(f"{str(new)!r} cannot be written; name a new file in a writable folder")
    unfinished = new.with_name(f"{new.name}.unfinished")
    place = Path(tempfile.gettempdir(), "copy")
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            copy = copied(damaged, Path(folder))
            with closing(_open_copy(copy, damaged)) as source:
                place = unfinished.absolute()
                unfinished.unlink(missing_ok=True)
                with closing(connect(str(unfinished))) as target:
                    target.executescript(SCHEMA)
                    results = [_recover(table, source, target) for table in SALVAGED]
        if any(result.kept for result in results):
            os.replace(unfinished, new)
    except (*SQL_ERRORS, OSError) as error:
        wal = damaged.with_name(f"{damaged.name}-wal")
        size = damaged.stat().st_size + (wal.stat().st_size if wal.is_file() else 0)
        fault = disk_fault(place, error, size)
        reason = line_of(error) if fault is None else f"{fault.text}. Run this again {fault.remedy}"
        if fault is not None and place != unfinished.absolute():
            reason += f"; it is copied to {str(place.parent)!r} first, or to the folder that TMPDIR names"
        raise ConfigError(f"{str(damaged)!r} cannot be recovered into {str(new)!r}: {reason}") from error
    finally:
        with suppress(OSError):  # in a read-only folder, there is nothing to remove
            unfinished.unlink(missing_ok=True)
            unfinished.with_name(f"{unfinished.name}-journal").unlink(missing_ok=True)
    if not any(result.kept for result in results):
        raise ConfigError(f"nothing can be recovered from {str(damaged)!r}: it contains no row of a run log")
    return results


def _open_copy(copy: Path, damaged: Path) -> sqlite3.Connection:
    """Open a copy of a log, replacing a damaged header or schema by those of a new log."""
    try:
        return _checked(copy, damaged)
    except (*SQL_ERRORS, ConfigError):
        if _is_of_another_format(copy):
            raise
        pristine = copy.with_name("pristine.sqlite")
        with closing(connect(str(pristine))) as empty:
            empty.executescript(SCHEMA)
        _graft(pristine, copy)
        return _checked(copy, damaged)


def _is_of_another_format(file: Path) -> bool:
    """Check whether the manifest also names another format, which means that the header is not damaged."""
    try:
        with closing(connect(str(file))) as database:
            row = database.execute("SELECT value FROM manifest WHERE name = 'format'").fetchone()
    except SQL_ERRORS:
        return False
    return row is not None and row[0] not in map(str, FORMATS)


def _checked(file: Path, damaged: Path) -> sqlite3.Connection:
    """Open a copy of a log; close it again if it is not a run log."""
    database = connect(str(file))
    try:
        check(database, damaged)
    except (*SQL_ERRORS, ConfigError):
        database.close()
        raise
    return database


def _graft(pristine: Path, copy: Path) -> None:
    """Replace the header and the schema of a damaged log by those of a new one.

    Except for the number of pages, they are the same in all logs of a format, since tables are created in fixed order.
    """
    with closing(connect(str(pristine))) as empty:
        roots = {root for (root,) in empty.execute("SELECT rootpage FROM sqlite_master")}
        (size,) = empty.execute("PRAGMA page_size").fetchone()
    contents = pristine.read_bytes()
    with copy.open("r+b") as file:
        pages = max(file.seek(0, os.SEEK_END) // size, 1)
        for index in range(1, len(contents) // size + 1):
            if index in roots:
                continue
            page = bytearray(contents[(index - 1) * size : index * size])
            if index == 1:
                page[28:32] = pages.to_bytes(4)
                page[32:40] = bytes(8)  # empty freelist
            file.seek((index - 1) * size)
            file.write(page)


def _recover(table: str, source: sqlite3.Connection, target: sqlite3.Connection) -> RecoveredTable:
    """Copy the readable, valid rows of a table."""
    names = columns()[table]
    slots = ",".join("?" * (len(names) + 1))
    n_kept, n_lost, last = 0, 0, 0
    is_whole, follows_gap = True, False
    with target:
        for row in _rows(source, table):
            if row is None:
                follows_gap = True
                continue
            row_id, *values = row
            if follows_gap and table in _NUMBERED:
                n_lost += row_id - last - 1
            elif follows_gap:
                is_whole = False
            last, follows_gap = row_id, False
            try:
                if not _is_sound(table, values):
                    raise ValueError(f"row {row_id} of {table} is not sound")
                target.execute(f"INSERT INTO {table} (rowid, {', '.join(names)}) VALUES ({slots})", row)
                n_kept += 1
            except (sqlite3.IntegrityError, ValueError):  # other errors end the recovery
                n_lost += 1
    return RecoveredTable(table, n_kept, n_lost, is_whole and not follows_gap)


_NUMBERED = frozenset({"texts", "calls"})
"""Tables whose row numbers have almost no gaps, so lost rows can be counted."""


def _rows(source: sqlite3.Connection, table: str) -> Iterator[Sequence[Any] | None]:
    """Yield all readable rows in order, and None for each unreadable stretch."""
    query = f"SELECT rowid, {selection(table, format_of(source))} FROM {table} WHERE rowid > ? ORDER BY rowid"
    pages, size = (source.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    after, max_gap = cast("int | None", -1), pages * size // 4  # a row takes at least four bytes
    while after is not None:
        try:
            for row in source.execute(query, (after,)):
                max_gap -= 1
                if after < row[0] <= MAX_ROWS:
                    after = int(row[0])
                    yield row
                elif max_gap < 0:  # pages point at each other
                    return
            return
        except SQL_ERRORS:
            yield None
            after = _next_readable(source, query, after)


def _next_readable(source: sqlite3.Connection, query: str, broken: int) -> int | None:
    """Find where reading can continue after an unreadable stretch of rows.

    Args:
        source: The damaged log.
        query: Reads the rows after a row number.
        broken: Row number after which reading fails.

    Returns:
        The smallest row number after which reading succeeds; None if there is none up to `MAX_ROWS`.
    """

    def is_readable(row_id: int) -> bool:
        try:
            source.execute(query, (row_id,)).fetchone()
        except SQL_ERRORS:
            return False
        return True

    low, high = broken, broken + 1
    while not is_readable(high):
        low, high = high, high + 2 * (high - broken)
        if high > MAX_ROWS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_readable(middle) else (middle, high)
    return high


def _is_sound(table: str, values: Sequence[Any]) -> bool:
    """Check whether a row is valid for its table; text that is not UTF-8 has already been rejected."""
    row = dict(zip(columns()[table], values, strict=True))
    try:
        match table:
            case "manifest":
                loaded(row["value"])
                return isinstance(row["name"], str)
            case "texts":
                return isinstance(row["text"], str) and is_intact(row["text"], row["hash"])
            case "calls":
                if not isinstance(row["key"], bytes) or len(row["key"]) != 32:
                    return False
                if not is_whole_call(*(row[name] for name in CHECKED)):
                    return False
                if not row["error_kind"]:
                    reply_of(*(row[name] for name in ("reply", *IN_COLUMNS)))
            case _:
                for name in _JSON.intersection(row):
                    if row[name] is not None:
                        loaded(row[name])
    except ValueError:
        return False
    return True


_JSON = frozenset({"decision", "arguments", "result", "facts", "recipients", "measures", "answer"})
"""Columns that hold JSON."""
