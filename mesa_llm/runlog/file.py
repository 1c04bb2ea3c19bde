"""The file of a run log: one writer at a time, any number of readers, refused if it holds something else.

While it is written, replies are in a write-ahead log beside it (`-wal`) until the end of the step; a file that was
closed stands alone, and is read anywhere. SQLite's locks are only as good as the file system's: keep a log that is
being recorded off network shares.
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
from mesa_llm.runlog.tables import FORMAT, SCHEMA, SQL_ERRORS, close_with, columns, connect


class WriteLock:
    """The right to write a run log, until it is freed or its process ends, however that ends.

    It is a transaction of an empty database beside the log that is begun and never made: SQLite knows how to hold and
    free that on every system, between processes and within one.
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
            file = self._file()
            try:
                self._database.execute("PRAGMA journal_mode=MEMORY")  # nothing is written that a journal could undo
                self._database.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                self._database.close()
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                    raise BlockingIOError(str(self.path)) from error
                raise
            if file is not None and file == self._file():
                close_with(self, self._database)
                return
            self._database.close()  # who had it has just freed it, and this is no longer the file that others see

    def _file(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def free(self) -> None:
        """Release the lock."""
        with suppress(OSError):  # Windows removes no open file: there, an empty one stays
            self.path.unlink()
        self._database.close()


def open_to_write(path: Path) -> tuple[sqlite3.Connection, WriteLock]:
    """Open a run log as its only writer, creating it if there is none.

    Raises:
        ConfigError: If another writer holds it, or it is not a run log of this format.
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
    """Create the tables of a run log in an empty file; leave any other file as it is."""
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
    """Check whether an error of SQLite is about the place of a file: no room, no right to write, no such folder."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without its details
    return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def is_deleted(path: Path) -> bool:
    """Check whether a file is gone; a file system that does not answer now says nothing of that."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def begin_to_write(database: sqlite3.Connection) -> None:
    """Record who writes a log, and make its commits quick.

    Raises:
        sqlite3.Error: If it cannot be written.
    """
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    now = datetime.now(UTC).isoformat(" ", "seconds")
    with database:
        database.execute("DELETE FROM writer")
        database.execute("INSERT INTO writer VALUES (?, ?, ?)", (os.getpid(), socket.gethostname(), now))


def _writer(path: Path) -> str:
    """Describe the writer of a locked log."""
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
    """Open a run log for reading, even in a read-only place.

    Raises:
        ConfigError: If it is not a run log of this format.
        sqlite3.Error: If it cannot be read.
    """
    address = path.absolute().as_uri()
    try:
        return _checked(f"{address}?mode=ro", path)
    except sqlite3.OperationalError:
        beside = path.with_name(f"{path.name}-wal")
        if _is_writable(path.parent):
            raise
        if not (beside.is_file() and beside.stat().st_size):
            return _checked(f"{address}?mode=ro&immutable=1", path)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # on Windows it stays until it is closed
        copy = copied(path, Path(folder))
        return _checked(f"{copy.as_uri()}?mode=ro", path)


def _is_writable(folder: Path) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def copied(path: Path, folder: Path) -> Path:
    """Copy a log into a folder, with the replies that are still beside it.

    Returns:
        The copy.
    """
    copy = folder.absolute() / "copy.sqlite"
    shutil.copyfile(path, copy)
    beside = path.with_name(f"{path.name}-wal")
    if beside.is_file():
        shutil.copyfile(beside, copy.with_name("copy.sqlite-wal"))
    return copy


def _checked(uri: str, path: Path) -> sqlite3.Connection:
    database = connect(uri, uri=True)
    try:
        check(database, path)
    except (*SQL_ERRORS, ConfigError):
        database.close()
        raise
    return database


def check(database: sqlite3.Connection, path: Path) -> None:
    """Check that a database is a run log of this format.

    Raises:
        ConfigError: If it is something else, or has another format.
        sqlite3.Error: If it cannot be read.
    """
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    fields = [field[1] for field in database.execute("PRAGMA table_info(manifest)")]
    if fields != ["name", "value"]:
        columns_text = f"it is a database of something else (tables: {', '.join(tables)})" if tables else "it is empty"
        raise ConfigError(f"{str(path)!r} cannot be used as a run log: {columns_text}")
    if version != FORMAT:
        raise ConfigError(
            f"{str(path)!r} is a run log of format {version or 1}, and this version of mesa_llm reads format {FORMAT}: "
            "open it with the version that recorded it"
        )
    if missing := sorted(set(columns()) - set(tables)):
        raise ConfigError(f"{str(path)!r} cannot be used as a run log: it has no table {', '.join(missing)}")
    for table, names in columns().items():
        columns_text = [field[1] for field in database.execute(f"PRAGMA table_info({table})")]
        if columns_text != names:
            wanted = f"its table {table} has the columns {', '.join(columns_text)}, not {', '.join(names)}"
            raise ConfigError(f"{str(path)!r} cannot be used as a run log: {wanted}")
        database.execute(f"SELECT * FROM {table} LIMIT 0")
