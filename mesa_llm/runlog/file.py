"""Open run log files, with one writer at a time and any number of readers.

During a step, replies are in SQLite's write-ahead log beside the file (`-wal`); the file of a closed log is
self-contained. SQLite's locks are only as reliable as those of the file system, so do not record a log on a network
share.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.runlog.compact import is_compact, unpacked
from mesa_llm.runlog.disk import other_places
from mesa_llm.runlog.layout import SCHEMA, check, columns, connect, upgrade
from mesa_llm.runlog.spill import take_in
from mesa_llm.runlog.tables import SQL_ERRORS, Statement, close_with

MAX_WAL = 4_000_000
"""Size of the write-ahead log, in bytes, beyond which it is checkpointed within a step."""

MAX_CACHE = 32_000_000
"""Size of the writer's page cache, in bytes; cached pages survive if another program overwrites the file."""


class WriteLock:
    """Exclusive lock for writing a run log, held until it is freed or its process ends.

    The lock is an uncommitted transaction in an empty database beside the log (`.lock`), which SQLite manages on every
    system, between processes and within one.
    """

    def __init__(self, log: Path) -> None:
        """Acquire the lock.

        Args:
            log: The run log.

        Raises:
            BlockingIOError: If another writer holds it.
            sqlite3.Error: If its folder is not writable.
        """
        self.path = log.with_name(f"{log.name}.lock")
        while True:
            self._database = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            identity = self._identity()
            try:
                self._database.execute("PRAGMA journal_mode=MEMORY")  # nothing is written, so no journal file is needed
                self._database.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                self._database.close()
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                    raise BlockingIOError(str(self.path)) from error
                raise
            if identity is not None and identity == self._identity():
                close_with(self, self._database)
                return
            self._database.close()  # the previous holder has just deleted the file that is open here

    def _identity(self) -> tuple[int, int] | None:
        """Return the device and inode of the lock's file; None if it does not exist."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def free(self) -> None:
        """Release the lock."""
        with suppress(OSError):  # Windows cannot delete open files, so an empty one remains
            self.path.unlink()
        self._database.close()


def open_to_write(path: Path) -> tuple[sqlite3.Connection, WriteLock]:
    """Open a run log as its only writer, creating it if necessary.

    Raises:
        ConfigError: If another writer holds it, or it is not a run log of this format.
        OSError: If its folder cannot be created.
        sqlite3.Error: If it cannot be read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path = path.resolve()
    if path.is_file() and is_compact(path):
        raise ConfigError(
            f"{str(path)!r} is a compact recording, which can be replayed but not continued: give another log, or "
            "unpack it with gunzip"
        )
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
    """Create the tables of a run log in an empty file; check any other, and add the replies that it had no room for."""
    try:
        if database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            check(database, path)
            take_in(database)
        else:
            database.executescript(f"BEGIN; {SCHEMA} COMMIT;")
    except (*SQL_ERRORS, ConfigError):
        database.close()
        raise
    return database


def is_damage(error: Exception) -> bool:
    """Check whether an error means that a file is corrupt, for example truncated."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
        return True
    return code in (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ) or isinstance(error, UnicodeDecodeError)


class OpenFile:
    """The file of a log that is being written, with its last known state to detect changes by other programs.

    Sync clients and users replace, move, overwrite and delete files that SQLite has open, and SQLite would keep writing
    to a file that no longer has a name. Only `checkpoint` writes to the file itself; commits go to the write-ahead log.
    """

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        """Record which file is open.

        Args:
            path: The file as named by the user; the target of a symbolic link may change later.
            database: Its connection.
        """
        self.path = path.absolute()
        self._database = database
        self._wal = f"{path.resolve()}-wal"
        self._identity = _state(self.path)[:2]
        self._left: tuple[_State, _State] | None = None  # the file and its write-ahead log; None: not written yet

    def is_free(self) -> bool:
        """Check whether the file no longer exists and a new one can be written in its place."""
        return not os.path.lexists(self.path) and self.path.parent.is_dir()

    def change(self) -> str:
        """Describe how another program has changed the file; empty if it has not, or the file system cannot tell."""
        try:
            state = _state(self.path)
        except FileNotFoundError:
            return "deleted or moved away"
        except OSError:
            return ""
        if state[:2] != self._identity:
            return "replaced by another file"
        if self._left is None:
            return ""
        file, wal = self._left
        if state != file:
            return "overwritten by another program"
        try:
            is_there = _state(self._wal)[:2] == wal[:2]
        except OSError:
            is_there = False
        return "" if is_there else "left without its write-ahead log (-wal)"

    def has_large_wal(self) -> bool:
        """Check whether the write-ahead log is too large to wait for the end of the step."""
        try:
            return os.stat(self._wal).st_size > MAX_WAL
        except OSError:
            return False

    def checkpoint(self) -> None:
        """Move commits from the write-ahead log into the file, without waiting for readers.

        Raises:
            sqlite3.Error: If it cannot be written.
        """
        try:
            self._database.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:  # on a full disk, half of it is written, and this is not another program's doing
            with suppress(OSError):
                self._left = (_state(self.path), _state(self._wal))

    def sync(self) -> None:
        """Wait until what was committed is on the disk.

        Raises:
            OSError: If it cannot be written.
        """
        if not os.path.exists(self._wal):  # each commit is on the disk, where there is no write-ahead log
            return
        for path in (self._wal, os.path.dirname(self._wal)) if os.name != "nt" else (self._wal,):
            number = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    def abandon(self, *, is_saved: bool) -> Path | None:
        """Leave the changed file alone, also on closing the database, and take this writer's write-ahead log away.

        Otherwise it would be taken for that of the file that is there now.

        Args:
            is_saved: Whether a checked copy holds all that is in the write-ahead log, which can then be deleted.

        Returns:
            Where the write-ahead log is kept; None if it was deleted, or is not there.
        """
        self._database.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
        wal = Path(self._wal)
        with suppress(OSError):  # Windows cannot delete open files
            if self._left is not None and wal.exists() and _state(wal)[:2] != self._left[1][:2]:
                return None  # it is that of another program
            wal.with_name(f"{wal.name.removesuffix('wal')}shm").unlink(missing_ok=True)
            if is_saved:
                wal.unlink(missing_ok=True)
                return None
            kept = _new_name(wal.parent, wal.name, ".kept")
            wal.rename(kept)
            return kept
        return None


_State = tuple[int, int, int, int]
"""Device, inode, size and modification time of a file; the last two are 0 on Windows, which reports them late."""


def _state(path: str | Path) -> _State:
    status = os.stat(path)
    written = (status.st_size, status.st_mtime_ns) if os.name != "nt" else (0, 0)
    return (status.st_dev, status.st_ino, *written)


def recovery_files(path: Path) -> Iterator[Path]:
    """Yield paths for a copy of a recording, beside its log at first, then where there may be another disk."""
    for folder in (path.parent, *other_places()):
        if folder.is_dir():
            yield _new_name(folder, f"{path.stem}.recovered", path.suffix)


def _new_name(folder: Path, stem: str, suffix: str) -> Path:
    """Return the path of a file that does not exist yet."""
    for number in count(1):
        file = folder / f"{stem}{'' if number == 1 else number}{suffix}"
        if not file.exists():
            return file
    raise AssertionError


def save_copy(source: sqlite3.Connection, missing: Sequence[Statement], file: Path) -> tuple[Path, bool]:
    """Copy an open log to a file beside the one that it will be, which nobody takes for whole before it is renamed.

    Args:
        source: Connection to the log, which has no open transaction.
        missing: What is not committed to it.
        file: What the copy will be.

    Returns:
        The copy, and whether it is whole: sound, and with as many rows as the log.

    Raises:
        OSError: If it cannot be written.
        sqlite3.Error: If the log cannot be read, or the copy not be written.
    """
    unfinished = _new_name(file.parent, file.name, ".unfinished")
    try:
        with closing(connect(str(unfinished))) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")
            is_whole = target.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
            is_whole = is_whole and n_rows(target) == n_rows(source)
            with target:
                for statement, rows in missing:
                    target.executemany(statement, rows)
    except (*SQL_ERRORS, OSError):
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
            unfinished.with_name(f"{unfinished.name}-journal").unlink(missing_ok=True)
        raise
    return unfinished, is_whole


def n_rows(database: sqlite3.Connection) -> list[int]:
    """Count the rows of each table of a log.

    Raises:
        sqlite3.Error: If it cannot be read.
    """
    return [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in columns()]


def begin_to_write(database: sqlite3.Connection, path: Path) -> None:
    """Record which process writes a log, and enable write-ahead logging for fast commits.

    A log of an earlier format is upgraded first, in the same transaction.

    Raises:
        OSError: If it is gone.
        sqlite3.Error: If it cannot be written.
    """
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    database.execute(f"PRAGMA cache_size=-{MAX_CACHE // 1024}")
    if path.stat().st_size < MAX_CACHE:
        database.execute("PRAGMA quick_check(1)")  # reads every page
    database.execute("PRAGMA wal_autocheckpoint=0")  # `OpenFile` must know when the file itself is written
    now = datetime.now(UTC).isoformat(" ", "seconds")
    with database:
        database.execute("BEGIN IMMEDIATE")
        upgrade(database)
        database.execute("DELETE FROM writer")
        database.execute("INSERT INTO writer VALUES (?, ?, ?)", (os.getpid(), socket.gethostname(), now))


def _writer(path: Path) -> str:
    """Describe the process that has locked a log, and what to do about it."""
    try:
        database = open_to_read(path)
        row = database.execute("SELECT pid, host, since FROM writer").fetchone()
        database.close()
    except (*SQL_ERRORS, ConfigError):
        row = None
    if row is None:
        return "another run, which has just started; give another log, or wait until that run is over"
    pid, host, since = row
    if (pid, host) == (os.getpid(), socket.gethostname()):
        return f"another model of this process (since {since}); close that one first: model.close()"
    return f"process {pid} on {host} (since {since}); give another log, or wait until that run is over"


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a run log for reading, compact or not, even in a read-only folder.

    Raises:
        ConfigError: If it is not a run log of this format, or is compact and damaged.
        OSError: If it has to be copied, and cannot be.
        sqlite3.Error: If it cannot be read.
    """
    if is_compact(path):
        return _checked(unpacked(path), path)
    address = path.absolute().as_uri()
    try:
        return _checked(connect(f"{address}?mode=ro", uri=True), path)
    except sqlite3.OperationalError:
        wal = path.with_name(f"{path.name}-wal")
        if _is_writable(path.parent):
            raise
        if not (wal.is_file() and wal.stat().st_size):
            return _checked(connect(f"{address}?mode=ro&immutable=1", uri=True), path)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows cannot delete open files
        copy = copied(path, Path(folder))
        return _checked(connect(f"{copy.as_uri()}?mode=ro", uri=True), path)


def _is_writable(folder: Path) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def copied(path: Path, folder: Path) -> Path:
    """Copy a log and its write-ahead log, if any, into a folder.

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


def _checked(database: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """Return an open database, but close it if it is not a run log."""
    try:
        check(database, path)
    except (*SQL_ERRORS, ConfigError):
        database.close()
        raise
    return database
