"""Replies that the disk of a run log had no room for, kept on another disk until the log is opened again."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from mesa_llm.canonical import canonical_json
from mesa_llm.runlog.disk import other_places
from mesa_llm.runlog.layout import SCHEMA, columns, connect
from mesa_llm.runlog.tables import SQL_ERRORS, Statement, line_of

_FOLDER = f"mesa-llm-unsaved-{os.getuid()}" if hasattr(os, "getuid") else "mesa-llm-unsaved"
"""Folder of such files, in each of `other_places`."""

_BELONGS_TO = "CREATE TABLE belongs_to (manifest TEXT, writer TEXT, last_text INTEGER)"
"""The log that the replies are missing from, as `_Mark` tells it from others."""

_Mark = tuple[str, str, int]
"""The SHA-256 of a log's manifest, the process that wrote it last, as JSON, and the number of its last text."""

_TABLES = ("manifest", "texts", "calls")
"""Tables that may hold what cannot be computed again."""


class Spill:
    """The replies of one run for which its log's disk has no room.

    Attributes:
        path: The file that they are in.
        n_replies: Number of replies.
    """

    def __init__(self, log: Path, source: sqlite3.Connection) -> None:
        """Create the file.

        Args:
            log: The log.
            source: Its connection, which has no open transaction.

        Raises:
            OSError: If it can be created nowhere.
            sqlite3.Error: If the log cannot be read.
        """
        self.n_replies = 0
        mark = _mark_of(source)
        fault: Exception = OSError("there is no other folder")
        for place in other_places():
            try:
                self.path = _new_file(place / _FOLDER, log)
            except OSError as error:
                fault = error
                continue
            self._database = connect(str(self.path))
            try:
                self._database.executescript(f"PRAGMA page_size=512; BEGIN; {SCHEMA} {_BELONGS_TO}; COMMIT;")
                with self._database:
                    self._database.execute("INSERT INTO belongs_to VALUES (?, ?, ?)", mark)
            except sqlite3.Error as error:
                fault = error
                self.discard()
                continue
            return
        raise OSError(line_of(fault)) from fault

    def add(self, statements: Sequence[Statement]) -> None:
        """Write further rows, which are on the disk when this returns.

        Raises:
            sqlite3.Error: If there is no room here, either.
        """
        with self._database:
            for statement, rows in statements:
                self._database.executemany(statement, rows)
        (self.n_replies,) = self._database.execute("SELECT count(*) FROM calls").fetchone()

    def close(self) -> None:
        """Close the file, which stays."""
        self._database.close()

    def discard(self) -> None:
        """Close the file and delete it."""
        self._database.close()
        _delete(self.path)


def _new_file(folder: Path, log: Path) -> Path:
    """Create an empty file that nobody else can read or write.

    Raises:
        OSError: If it cannot be created.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    _require_own(folder)
    descriptor, name = tempfile.mkstemp(".sqlite", f"{log.stem}-", folder)
    os.close(descriptor)
    return Path(name)


def _require_own(folder: Path) -> None:
    """Check that nobody else can write to a folder, which may lie where everybody can.

    Raises:
        PermissionError: If somebody can.
    """
    status = folder.lstat()
    if hasattr(os, "geteuid") and (folder.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise PermissionError(f"{str(folder)!r} belongs to somebody else")


def _delete(file: Path) -> None:
    """Delete a file, and its folder if there is no other in it."""
    with suppress(OSError):
        file.unlink()
        file.parent.rmdir()


def _mark_of(log: sqlite3.Connection) -> _Mark:
    """Return what tells a log, as far as it is committed, from all others."""
    manifest = canonical_json(dict(log.execute("SELECT name, value FROM manifest").fetchall()))
    writer = canonical_json(log.execute("SELECT pid, host, since FROM writer").fetchall())
    (last,) = log.execute("SELECT ifnull(max(id), 0) FROM texts").fetchone()
    return hashlib.sha256(manifest.encode()).hexdigest(), writer, last


def _is_of(mark: _Mark, log: _Mark) -> bool:
    """Check whether replies belong to a log; one that was recovered from damage does not name its writer."""
    (manifest, writer, last), (own_manifest, own_writer, own_last) = mark, log
    return manifest == own_manifest and (writer == own_writer or own_writer == "[]") and last >= own_last


def take_in(log: sqlite3.Connection) -> None:
    """Move the replies that its disk had no room for into a log, if there are any.

    Args:
        log: Connection to the log, which has no open transaction.

    Raises:
        sqlite3.Error: If they cannot be written; they stay where they are.
    """
    for file in _files():
        if _move(file, log):
            _delete(file)


def _files() -> Iterator[Path]:
    """Yield the files with replies of any log."""
    for place in other_places():
        folder = place / _FOLDER
        with suppress(OSError):
            _require_own(folder)
            yield from sorted(folder.glob("*.sqlite"))


def _move(file: Path, log: sqlite3.Connection) -> bool:
    """Copy the rows of a file into a log if they belong to it, and return whether they do."""
    try:
        with closing(connect(str(file))) as source:
            mark = source.execute("SELECT manifest, writer, last_text FROM belongs_to").fetchone()
            if mark is None or not _is_of(mark, _mark_of(log)):
                return False
            rows = {table: source.execute(f"SELECT * FROM {table}").fetchall() for table in _TABLES}
    except SQL_ERRORS:  # it is being written, or is something else
        return False
    with log:
        log.execute("BEGIN IMMEDIATE")
        for table, found in rows.items():
            slots = ",".join("?" * len(columns()[table]))
            log.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({slots})", found)
    return True
