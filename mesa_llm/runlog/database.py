"""The two database connections of a run log: the recording with the replies, and the trace that the run writes.

They are one connection, except in a replay, which keeps its new trace in memory.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
import time as clock
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

from mesa_llm.errors import ConfigError
from mesa_llm.runlog.disk import Reserve, disk_fault, is_about_place, is_full, reason_of
from mesa_llm.runlog.file import (
    OpenFile,
    WriteLock,
    begin_to_write,
    is_damage,
    open_to_read,
    open_to_write,
    recovery_files,
    save_copy,
)
from mesa_llm.runlog.layout import FORMAT, SCHEMA, connect, selection
from mesa_llm.runlog.spill import Spill, take_in
from mesa_llm.runlog.tables import INSERT_TEXT, SQL_ERRORS, Statement, close_with, line_of
from mesa_llm.text import counted

Mode = Literal["record", "replay", "read"]

CHECK_EVERY_S = 0.05
"""Minimum number of seconds between two checks of the file while nothing new is recorded, or within a step."""

_WRITERS: weakref.WeakValueDictionary[Path, Database] = weakref.WeakValueDictionary()
"""File → the log of this process that records to it."""


class Database:
    """The open database of a run log; SQLite errors are raised as a `ConfigError` that says what to do.

    Attributes:
        path: The file, or None for a log in memory.
        mode: `record` (reuse recorded replies and append new ones), `replay` (only recorded replies), or `read`.
    """

    def __init__(self, path: str | Path | None, mode: Mode) -> None:
        """Open the file, creating it if necessary.

        Args:
            path: File of the run; None or `":memory:"` keeps the log in memory.
            mode: `record` writes; `replay` and `read` leave the file unchanged.

        Raises:
            ConfigError: If the file is missing (replay, read), is not a run log, is damaged, or is being recorded by
                another model.
        """
        self.path = Path(path) if path is not None and str(path) != ":memory:" else None
        self.mode: Mode = mode
        self._lock = threading.RLock()
        self._is_closed = False
        self._process = os.getpid()
        self._fault: str | None = None  # why the log can no longer be written
        self._first_fault = ""  # the same, before any reply was written elsewhere
        self._is_sound = True  # whether the file could be written if there were room
        self._is_used = self._is_written = False
        self._check_due_s = 0.0
        self._write_lock: WriteLock | None = None
        self._file: Path | None = None  # resolved path, if recording
        self._opened: OpenFile | None = None  # its state after the last write
        self._uncommitted: list[Statement] = []  # what the open transaction has written that was paid for
        self._reserve: Reserve | None = None  # room on its disk
        self._spill: Spill | None = None  # replies that its disk has no room for
        self._replies = self._open()
        self._trace = connect(":memory:") if mode == "replay" else self._replies
        close_with(self, self._replies, self._trace)
        self._format = FORMAT if self.path is None else self._read_one(self._replies, "PRAGMA user_version")
        if mode == "replay" or self.path is None:
            self._trace.executescript(SCHEMA)

    def _open(self) -> sqlite3.Connection:
        """Open the recording; in mode `record`, as the only writer."""
        if self.path is None:
            if self.mode != "record":
                raise ConfigError("a run log in memory is lost with its model; give the file of a recorded run")
            return connect(":memory:")
        if self.mode != "record" and not self.path.is_file():
            raise ConfigError(f"there is no run log at {str(self.path)!r}; record a run with log= (--log) first")
        if self.path.is_dir():
            raise ConfigError(
                f"{str(self.path)!r} is a folder; name a file in it, such as {str(self.path / 'run.sqlite')!r}"
            )
        try:
            if self.mode != "record":
                database = open_to_read(self.path)
                if self.mode == "read":
                    database.text_factory = _decode
                return database
            self._file = self.path.resolve()  # the working directory may change later
            self._close_unused(self._file)
            database, self._write_lock = open_to_write(self.path)
        except (*SQL_ERRORS, OSError) as error:
            raise ConfigError(self._opening_fault(self.path, error)) from error
        _WRITERS[self._file] = self
        self._opened = OpenFile(self.path, database)
        return database

    @staticmethod
    def _opening_fault(path: Path, error: Exception) -> str:
        """Return why a file cannot be opened."""
        fault = None if is_damage(error) else disk_fault(path.resolve(), error)
        if fault is not None:
            return f"{str(path)!r} cannot be used as a run log: {fault.text}. Run this again {fault.remedy}"
        is_damaged = isinstance(error, (sqlite3.DatabaseError, UnicodeDecodeError)) and not is_about_place(error)
        hint = f". If the log is damaged: mesa-llm inspect {path} --recover NEW.sqlite" if is_damaged else ""
        return f"{str(path)!r} cannot be used as a run log: {line_of(error)}{hint}"

    @staticmethod
    def _close_unused(path: Path) -> None:
        """Close a log of this file that was never used because the constructor of its model failed."""
        other = _WRITERS.get(path)
        if other is None or other._is_closed:
            return
        del other
        gc.collect()
        other = _WRITERS.get(path)
        if other is not None and not other._is_used:
            other.close()

    def _read_one(self, database: sqlite3.Connection, query: str) -> Any:
        """Read a single value while opening the log; close the log if the file is damaged."""
        try:
            return database.execute(query).fetchone()[0]
        except SQL_ERRORS as error:
            self.close()
            raise self._damage_error(error) from error

    def _damage_error(self, error: Exception) -> ConfigError:
        """Return the error for a file that is damaged or was changed by another program."""
        if change := self._change():
            return self._save_elsewhere(change)
        return ConfigError(self._damage(error))

    def _damage(self, error: Exception) -> str:
        return (
            f"{str(self.path)!r} is damaged: {line_of(error)}. To recover what is still readable: "
            f"mesa-llm inspect {self.path} --recover NEW.sqlite"
        )

    def _give_up(self, error: Exception) -> ConfigError:
        """Mark the log as no longer writable, save the replies that are not committed, and return the error."""
        with suppress(sqlite3.Error):
            self._trace.rollback()
        if change := self._change():
            return self._save_elsewhere(change)
        if self._fault is None:
            self._first_fault = self._fault_of(error)
            self._is_sound = not is_damage(error)
        self._save_uncommitted()
        return ConfigError(str(self._fault))

    def _fault_of(self, error: Exception) -> str:
        """Return why the log can no longer be written, and what is to be done."""
        if is_damage(error):
            return f"{self._damage(error)}. No more requests are sent; to resume, run again with the new log"
        fault = None if self._file is None else disk_fault(self._file, error)
        reason = line_of(error) if fault is None else fault.text
        remedy = "once the language model returns values that a log can store" if fault is None else fault.remedy
        if fault is None and isinstance(error, sqlite3.OperationalError):
            remedy = "as soon as there is room" if is_full(error) else "as soon as the file and its folder are writable"
        return (
            f"{str(self.path)!r} cannot be written: {reason}. No more requests are sent. What was recorded is kept, "
            f"and the same run with the same log can be resumed {remedy}{self._size()}"
        )

    def _size(self) -> str:
        """Describe how large the log is for each reply; empty if it holds none."""
        try:
            (n,) = self._replies.execute("SELECT count(*) FROM calls").fetchone()
        except SQL_ERRORS:
            return ""
        size = self._sizes()
        return f" (so far it has taken {size // n:,} bytes a reply)" if n and size else ""

    def _sizes(self) -> int:
        """Return the number of bytes in the file and its write-ahead log."""
        files = [] if self._file is None else [self._file, self._file.with_name(f"{self._file.name}-wal")]
        return sum(os.path.getsize(file) for file in files if file.is_file())

    def _save_uncommitted(self) -> None:
        """Commit what is not committed in the room that was reserved, or write it to another disk; say so in the fault.

        It is called again for each reply that was in flight, and on closing, when there may be room.
        """
        if self._reserve is not None:
            self._reserve.free()
        self._collect_pending()
        unsaved = ""
        try:
            if self._uncommitted:
                self._commit_again()
        except (*SQL_ERRORS, OSError, OverflowError) as error:
            n = sum(len(rows) for statement, rows in self._uncommitted if statement != INSERT_TEXT)
            unsaved = f". {counted(n, 'row')} of replies could be kept nowhere: {line_of(error)}"
        self._fault = f"{self._first_fault}{self._spilled()}{unsaved}"

    def _spilled(self) -> str:
        """Say which replies are on another disk; empty if none are."""
        if self._spill is None:
            return ""
        replies = counted(self._spill.n_replies, "reply", "replies")
        place = str(self._spill.path)
        return f". {replies} had no room there; this log takes them from {place!r} when it is opened on this machine"

    def _commit_again(self) -> None:
        """Write what was rolled back; to another disk if there is no room.

        Raises:
            OSError, OverflowError, sqlite3.Error: If it can be written nowhere.
        """
        if self._is_sound and self._spill is None:
            try:
                with self._trace:
                    for statement, rows in self._uncommitted:
                        for row in list(rows):
                            try:
                                self._trace.execute(statement, row)
                            except (OverflowError, UnicodeError, sqlite3.DataError):
                                rows.remove(row)  # no log can hold it
            except sqlite3.Error:
                if self._file is None:
                    raise
            else:
                del self._uncommitted[:]
                return
        if self._file is None or self._process != os.getpid():
            return
        self._spill = self._spill or Spill(self._file, self._trace)
        self._spill.add(self._uncommitted)
        del self._uncommitted[:]

    def _change(self) -> str:
        """Describe how another program has changed the file since it was opened for writing; empty if it has not."""
        return "" if self._opened is None or self._fault is not None else self._opened.change()

    def _require_file(self) -> None:
        """Check that the file is the one that was opened, and that no other program has written to it.

        Raises:
            ConfigError: If it is not. The recording has then been saved in another file.
        """
        if change := self._change():
            raise self._save_elsewhere(change)

    def _save_elsewhere(self, change: str) -> ConfigError:
        """Save the recording from the open connection, since another program has changed the file.

        A file that was deleted is written again; a file that was changed is left alone.

        Returns:
            An error that says what happened to the file, and where the recording is now.
        """
        opened, self._opened = cast("OpenFile", self._opened), None
        text = f"{str(self.path)!r} was {change} while it was being recorded"
        self._is_sound = False
        if self._reserve is not None:
            self._reserve.free()
        with suppress(sqlite3.Error):
            self._trace.rollback()
        self._collect_pending()
        fault, size = "", self._sizes()
        for file in (*([opened.path] if opened.is_free() else []), *recovery_files(opened.path)):
            try:
                copy, is_whole = save_copy(self._trace, self._uncommitted, file)
                wal = opened.abandon(is_saved=is_whole)
                os.replace(copy, file)
            except (*SQL_ERRORS, OSError, OverflowError) as error:
                fault = fault or reason_of(file, error, size)
                continue
            saved = "The recording is saved" if is_whole else "Only part of the recording could be saved"
            way = "run again with that log to resume" if is_whole else f"mesa-llm inspect {file} --recover NEW.sqlite"
            text += f". {saved} in {str(file)!r}: {way}"
            del self._uncommitted[:]
            break
        else:
            wal = opened.abandon(is_saved=False)
            text += f", and the recording cannot be saved: {fault}"
        if wal is not None:
            text += f". What was written last is kept in {str(wal)!r}"
        self._first_fault = f"{text}. No more requests are sent"
        self._save_uncommitted()
        return ConfigError(str(self._fault))

    def _query(self, source: sqlite3.Connection, query: str, values: Any = ()) -> list[Any]:
        """Return all rows of a query.

        Raises:
            ConfigError: If the file is damaged.
        """
        try:
            with self._lock:
                return source.execute(query, values).fetchall()
        except SQL_ERRORS as error:
            raise self._damage_error(error) from error

    def _columns_of(self, table: str, source: sqlite3.Connection) -> str:
        """Return the columns of a table for a query of the recording or the trace."""
        return selection(table, self._format if source is self._replies else FORMAT)

    @property
    def _recorded(self) -> sqlite3.Connection:
        """The recording, including every reply kept so far."""
        self._check_open()
        self._write_pending()
        return self._replies

    @property
    def _db(self) -> sqlite3.Connection:
        """The trace that this run writes."""
        self._check_open()
        self._write_pending()
        return self._trace

    def _check_open(self) -> None:
        if self._is_closed:
            name = f" {str(self.path)!r}" if self.path is not None else ""
            raise ConfigError(f"the run log{name} is closed; to resume, create the model again with the same log=")

    def _check_writable(self) -> None:
        """Check that this process may write the log; the first time, record that it does."""
        if self._is_closed:
            self._check_open()
        if self._fault is not None:
            raise ConfigError(self._fault)
        if self.path is not None and self._process != os.getpid():
            raise ConfigError(
                f"{str(self.path)!r} is being recorded by process {self._process}, which this one was forked from; "
                "create the model again in this process, with another log="
            )
        if not self._is_written and self._write_lock is not None:
            self._is_written = True
            self._require_file()
            try:
                begin_to_write(self._trace, cast("Path", self._file))
                self._reserve = Reserve(cast("Path", self._file).parent)
                self._format = FORMAT
            except (sqlite3.Error, OSError) as error:
                raise self._give_up(error) from error

    def _collect_pending(self) -> None:
        """Add what a subclass has buffered to what is not committed; does nothing by default."""

    def _write_pending(self) -> None:
        """Write what a subclass has buffered, before anything is read or committed; does nothing by default.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """

    def commit(self) -> None:
        """Commit the recorded replies, so that they survive the process.

        Raises:
            ConfigError: If it cannot be written, as on a full disk, or another program has changed the file.
        """
        with self._lock:
            if self._is_closed:
                return
            if self._fault is not None:
                self._save_uncommitted()
                raise ConfigError(self._fault)
            self._write_pending()
            try:
                self._trace.commit()
            except sqlite3.Error as error:
                raise self._give_up(error) from error
            del self._uncommitted[:]
            if self._opened is not None and clock.monotonic() >= self._check_due_s:
                self._require_file()
                self._check_due_s = clock.monotonic() + CHECK_EVERY_S
                if self._opened.has_large_wal():
                    self._checkpoint()

    def sync(self) -> None:
        """Wait until what was committed is on the disk, so that it survives a loss of power.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        with self._lock:
            if self._is_closed or self._opened is None:
                return
            try:
                self._opened.sync()
            except OSError as error:
                raise self._give_up(error) from error

    def _checkpoint(self) -> None:
        """Move commits from the write-ahead log into the file, without waiting for readers.

        Raises:
            ConfigError: If it cannot be written, or another program has changed the file.
        """
        if self._opened is None:
            return
        self._require_file()
        try:
            self._opened.checkpoint()
        except sqlite3.Error as error:
            raise self._give_up(error) from error
        self._check_due_s = clock.monotonic() + CHECK_EVERY_S

    def close(self) -> None:
        """Close the file, which is then self-contained; a fault is not raised a second time.

        Raises:
            ConfigError: If the file cannot be written, as on a full disk, or another program has changed it.
        """
        with self._lock:
            if self._is_closed:
                return
            if self._process != os.getpid():
                self._is_closed = True
                return  # the parent of this fork closes it
            raised = self._fault
            try:
                with suppress(ConfigError):
                    self.commit()
                    if self._is_written:
                        self._require_file()
                self._close_file()
            finally:
                self._is_closed = True
                self._replies.close()
                self._trace.close()
                if self._write_lock is not None:
                    self._write_lock.free()
            if self._fault != raised:
                raise ConfigError(str(self._fault))

    def _close_file(self) -> None:
        """Write everything into the file, which then needs no write-ahead log, if its disk has room by now."""
        if self._reserve is not None:
            self._reserve.free()
        if self._spill is not None:
            self._spill.close()
        if self._opened is None:
            return
        try:
            if self._spill is not None:
                take_in(self._trace)
                self._spill, self._fault = None, self._first_fault
            self._trace.execute("PRAGMA journal_mode=DELETE")  # fails while another process reads the file
        except sqlite3.Error as error:
            if self._fault is None and self._is_written and (fault := disk_fault(cast("Path", self._file), error)):
                self._fault = (
                    f"{str(self.path)!r} cannot be closed: {fault.text}. Everything is recorded, part of it in "
                    f"'{self.path}-wal': keep the two files together, and run this again {fault.remedy}"
                )


def _decode(encoded: bytes) -> str:
    """Decode a text of a log that may be damaged."""
    return encoded.decode("utf-8", "replace")
