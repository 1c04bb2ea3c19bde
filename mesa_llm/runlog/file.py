"""Opens the file of a run log: one writer at a time, any number of readers; a file of another kind is refused.

During a step, replies are in SQLite's write-ahead log beside the file (`-wal`); the file of a closed log is complete by
itself and can be read anywhere. SQLite's locks are only as reliable as the file system's: do not record a log on a
network share.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.runlog.layout import SCHEMA, check, connect, upgrade
from mesa_llm.runlog.tables import SQL_ERRORS, close_with


class WriteLock:
    """Exclusive right to write a run log, until it is freed or its process ends, however it ends.

    The lock is a transaction in an empty database beside the log (`.lock`), begun and never committed: SQLite holds and
    releases it on every system, between processes and within one.
    """

    def __init__(self, log: Path) -> None:
        """Acquire the lock.

        Args:
            log: The run log.

        Raises:
            BlockingIOError: If another writer holds it.
            sqlite3.Error: If its folder cannot be written to.
        """
        self.path = log.with_name(f"{log.name}.lock")
        while True:
            self._database = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            identity = self._identity()
            try:
                self._database.execute("PRAGMA journal_mode=MEMORY")  # nothing is written: no journal file is needed
                self._database.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                self._database.close()
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                    raise BlockingIOError(str(self.path)) from error
                raise
            if identity is not None and identity == self._identity():
                close_with(self, self._database)
                return
            self._database.close()  # its last holder has just deleted the file that is open here

    def _identity(self) -> tuple[int, int] | None:
        """Return the device and inode of the lock's file; None if it does not exist."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def free(self) -> None:
        """Release the lock."""
        with suppress(OSError):  # Windows deletes no open file: there, an empty one remains
            self.path.unlink()
        self._database.close()


def open_to_write(path: Path) -> tuple[sqlite3.Connection, WriteLock]:
    """Open a run log as its only writer, creating it if there is none.

    Raises:
        ConfigError: If another writer holds it, or it is not a run log of this format.
        OSError: If its folder cannot be created.
        sqlite3.Error: If it cannot be read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path = path.resolve()
    try:
        lock = WriteLock(path)
    except BlockingIOError:
        raise ConfigError(f"{str(path)!r} is being recorded by {_writer(path)}") from None
    try:
        return _with_schema(connect(str(path)), path), lock
    except (*SQL_ERRORS, ConfigError):
        lock.free()
        raise


def _with_schema(database: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """Create the tables of a run log in an empty file; check any other file, and leave it as it is."""
    try:
        if database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            check(database, path)
        else:
            database.executescript(f"BEGIN; {SCHEMA} COMMIT;")
    except (*SQL_ERRORS, ConfigError):
        database.close()
        raise
    return database


def is_about_place(error: Exception) -> bool:
    """Check whether an SQLite error is about where a file lies, not what it holds: full disk, read-only, no folder."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary result code
    return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def is_deleted(path: Path) -> bool:
    """Check whether a file is gone; False where the file system cannot tell."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def begin_to_write(database: sqlite3.Connection) -> None:
    """Record which process writes a log, and switch on write-ahead logging, in which commits are fast.

    A log of an earlier format is brought to this one first, in the same transaction.

    Raises:
        sqlite3.Error: If it cannot be written.
    """
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    now = datetime.now(UTC).isoformat(" ", "seconds")
    with database:
        database.execute("BEGIN IMMEDIATE")
        upgrade(database)
        database.execute("DELETE FROM writer")
        database.execute("INSERT INTO writer VALUES (?, ?, ?)", (os.getpid(), socket.gethostname(), now))


def _writer(path: Path) -> str:
    """Describe the writer of a locked log, and what to do about it."""
    try:
        database = open_to_read(path)
        row = database.execute("SELECT pid, host, since FROM writer").fetchone()
        database.close()
    except (*SQL_ERRORS, ConfigError):
        row = None
    if row is None:
        return "somebody else, who has just begun; give another log, or wait until that run is over"
    pid, host, since = row
    if (pid, host) == (os.getpid(), socket.gethostname()):
        return f"another model of this process (since {since}); close that one first: model.close()"
    return f"process {pid} on {host} (since {since}); give another log, or wait until that run is over"


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a run log for reading, even in a read-only folder.

    Raises:
        ConfigError: If it is not a run log of this format.
        OSError: If it has to be copied, and cannot be.
        sqlite3.Error: If it cannot be read.
    """
    address = path.absolute().as_uri()
    try:
        return _checked(f"{address}?mode=ro", path)
    except sqlite3.OperationalError:
        wal = path.with_name(f"{path.name}-wal")
        if _is_writable(path.parent):
            raise
        if not (wal.is_file() and wal.stat().st_size):
            return _checked(f"{address}?mode=ro&immutable=1", path)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows deletes no open file
        copy = copied(path, Path(folder))
        return _checked(f"{copy.as_uri()}?mode=ro", path)


def _is_writable(folder: Path) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def copied(path: Path, folder: Path) -> Path:
    """Copy a log into a folder, with the write-ahead log that may lie beside it.

    Returns:
        Path of the copy.

    Raises:
        OSError: If it cannot be copied.
    """
    copy = folder.absolute() / "copy.sqlite"
    shutil.copyfile(path, copy)
    wal = path.with_name(f"{path.name}-wal")
    if wal.is_file():
        shutil.copyfile(wal, copy.with_name("copy.sqlite-wal"))
    return copy


def _checked(uri: str, path: Path) -> sqlite3.Connection:
    """Open a database, and close it again if it is not a run log."""
    database = connect(uri, uri=True)
    try:
        check(database, path)
    except (*SQL_ERRORS, ConfigError):
        database.close()
        raise
    return database
