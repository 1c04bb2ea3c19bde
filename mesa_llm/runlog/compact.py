"""Compact run logs: finished recordings in one small file, to be kept with a model or sent to somebody.

A compact log is a run log without companions, compressed with gzip. Every reader of run logs reads it as it is; nothing
is written beside it, and it cannot be continued.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError
from mesa_llm.runlog.layout import connect

SUFFIX = ".sqlite.gz"
"""End of the name of a compact log."""

RECORDED_ON = "recorded_on"
"""Manifest key: date on which the writing of a log began, as `2026-11-26`; before 1.1, only compact logs have it."""

MAX_BYTES = 200_000_000
"""Maximum size of a compact log that is unpacked into the memory, in bytes."""

_MAGIC = b"\x1f\x8b"
"""First bytes of a gzip file."""

SQLITE = b"SQLite format 3\x00"
"""First bytes of a database."""


def is_compact(path: Path) -> bool:
    """Check whether a file is a compact log, by its first bytes.

    Raises:
        OSError: If it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def unpacked(path: Path) -> sqlite3.Connection:
    """Open a compact log in the memory; its schema is not checked yet.

    Raises:
        ConfigError: If it is no compact log, is damaged, or is too large.
        OSError: If it cannot be read.
    """
    try:
        with gzip.open(path) as file:
            contents = file.read(MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(f"{str(path)!r} is damaged: {error}") from error
    if not contents.startswith(SQLITE):
        found = "nothing" if not contents else "no database"
        raise ConfigError(f"{str(path)!r} cannot be used as a run log: unpacked, it holds {found}; get the file again")
    if len(contents) > MAX_BYTES:
        raise ConfigError(
            f"{str(path)!r} holds more than {MAX_BYTES:,} bytes; unpack it with gunzip, and open the file that results"
        )
    database = connect(":memory:")
    database.deserialize(contents)
    return database


def write_compact(source: sqlite3.Connection, target: Path) -> int:
    """Write a compact copy of an open run log, replacing the target; equal logs give equal files.

    The process that wrote the log, and its host, are left out.

    Args:
        source: Connection to the log, which has no open transaction.
        target: The new file; its name should end with `SUFFIX`.

    Returns:
        Its size, in bytes.

    Raises:
        OSError: If it cannot be written.
        sqlite3.Error: If the log cannot be read.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        copy, packed = Path(folder, "copy.sqlite"), Path(folder, "packed")
        write_clean(source, copy)
        with packed.open("wb") as file:
            with gzip.GzipFile("", "wb", 9, file, mtime=0) as archive:
                archive.write(copy.read_bytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(packed, target)
    return target.stat().st_size


def write_clean(source: sqlite3.Connection, target: Path, facts: Mapping[str, Any] | None = None) -> None:
    """Write a copy of an open run log without the process that wrote it, and its host; equal logs give equal files.

    Args:
        source: Connection to the log, which has no open transaction.
        target: The new file, which must not exist.
        facts: Entries of the manifest that differ in the copy.

    Raises:
        sqlite3.Error: If the log cannot be read, or the copy not be written.
    """
    source.execute("VACUUM INTO ?", (str(target),))
    with closing(connect(str(target))) as database:
        with database:
            row = database.execute("SELECT since FROM writer").fetchone()
            database.execute("DELETE FROM writer")
            if row is not None:
                date = canonical_json(str(row[0])[:10])
                database.execute("INSERT OR IGNORE INTO manifest VALUES (?, ?)", (RECORDED_ON, date))
            for name, value in (facts or {}).items():
                database.execute("UPDATE manifest SET value = ? WHERE name = ?", (canonical_json(value), name))
        database.execute("VACUUM")
