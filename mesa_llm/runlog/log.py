"""One SQLite file a run: what was asked and answered, what was decided, and what came of it.

The replies are what is paid for: each is committed as it arrives, and found again by a digest of everything that can
change it. The rest (decisions, outcomes, events, messages, one row a step) can be computed again from them, and is
written at the end of each step, together with the digest of the run so far.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sqlite3
import threading
import time as clock
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError, ReplayError, TransportError
from mesa_llm.records import Decision, Event, Failure, Message, Outcome, Reply, Request
from mesa_llm.runlog.file import WriteLock, begin_to_write, open_to_read, open_to_write
from mesa_llm.runlog.tables import (
    FORMAT,
    IN_COLUMNS,
    SCHEMA,
    SQL_ERRORS,
    Texts,
    columns,
    connect,
    difference,
    failure_of,
    keys_of,
    line_of,
    loaded,
    readable,
    reply_of,
    storable,
    stored_keys,
    stored_reply,
)

if TYPE_CHECKING:
    import pandas as pd

Mode = Literal["record", "replay", "read"]

_INSERT = f"INSERT OR REPLACE INTO calls VALUES ({','.join('?' * 17)})"

_SELECT = f"SELECT rowid, error_kind, error, reply, {', '.join(IN_COLUMNS)} FROM calls"

_SELECT_REPLY = f"{_SELECT} WHERE time = ? AND agent = ? AND key = ?"

_IN_PLACE = "FROM calls WHERE agent = ? AND time = ? AND purpose = ? AND call = ?"

_OTHER = f"SELECT 1 {_IN_PLACE} AND rowid > ? AND rowid <= ? AND (error_kind IS NULL OR NOT ?) LIMIT 1"

_ANSWER = "INSERT INTO answers VALUES (:time, :agent, :question, :answer, :failure, :purpose)"

CAPABILITIES = "capabilities"
"""In the manifest: what transports of somebody's own are, by their names."""

_REPLACED_AFTER = "asked_again_after"
"""In the manifest: number of the last call of the story that another one replaced, when failures were asked again."""

_USAGE = """
SELECT model, count(*), count(error_kind), sum(prompt_tokens), sum(reply_tokens), total(dollars), avg(latency_s)
FROM calls WHERE :agent IS NULL OR agent = :agent GROUP BY model ORDER BY model"""

_DELETE_ANSWER = (
    "DELETE FROM answers WHERE time = :time AND agent = :agent AND question = :question AND rowid <= :before"
)

CHECKPOINT_EVERY_S = 0.05
"""Seconds between two checkpoints of steps that brought no new reply."""

_WRITERS: weakref.WeakValueDictionary[Path, RunLog] = weakref.WeakValueDictionary()
"""Which log of this process writes a file."""


class RunLog:
    """Record, replay, resume and trace of one run.

    Attributes:
        path: The file, or None for a log in memory.
        mode: `record` (use what is recorded, keep the rest), `replay` (never ask), or `read` (look only).
        may_repeat: Whether a request may have been recorded before, so that it is worth looking up.
        n_copied: Number of replies that came from the parent's log.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        mode: Mode = "record",
        retry_failures: bool = False,
        ask_again: bool = False,
        *,
        parent: RunLog | None = None,
        parent_steps: int = 0,
    ) -> None:
        """Open a log, making the file if there is none.

        Args:
            path: File of the run; None or `":memory:"` keeps the log in memory.
            mode: `record` is for one model at a time; `replay` and `read` change nothing, and a replay keeps its new
                trace in memory.
            retry_failures: Ask again where the recording holds a failed request.
            ask_again: Ask again where the recording holds another request than the one that is made now, as after a
                prompt was changed; what is recorded is kept.
            parent: Log of the run that this one branches from: replies to equal requests are copied from it.
            parent_steps: Number of steps in which nothing else may be asked than in the parent.

        Raises:
            ConfigError: If the file is missing (replay, read), is no run log, or is being recorded by another model.
        """
        self.path = Path(path) if path is not None and str(path) != ":memory:" else None
        self.mode: Mode = mode
        self._retry_failures = retry_failures
        self._may_differ = ask_again
        self._lock = threading.RLock()
        self._is_closed = False
        self._process = os.getpid()
        self._fault: str | None = None  # why nothing can be written any more
        self._is_used = self._is_written = False
        self._write_lock: WriteLock | None = None
        self._replies = self._open()
        self._trace = connect(":memory:") if mode == "replay" else self._replies
        if mode == "replay" or self.path is None:
            self._trace.executescript(SCHEMA)
        self._calls_before: int = self._read_one(self._replies, "SELECT ifnull(max(rowid), 0) FROM calls")
        self._parent, self._parent_steps = parent, parent_steps
        self.n_copied = 0
        self.may_repeat = self._calls_before > 0 or parent is not None
        self._texts = Texts(self._replies)
        self._answers_before: int = self._read_one(self._trace, "SELECT ifnull(max(rowid), 0) FROM answers")
        self._replaced = 0  # calls up to this one may belong to a story that another one has replaced
        self._is_replaced = False  # whether this run is in the other one
        self._changes = ""  # what of versions differs from the recording
        self._has_new_replies = False
        self._checkpoint_due_s = 0.0
        self._first_open = 0  # all steps before it are closed
        self._digest = hashlib.sha256()
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._facts: list[list[Any]] = []

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            if self.mode != "record":
                raise ConfigError("a run log in memory is gone with its model; give the file of a recorded run")
            return connect(":memory:")
        if self.mode != "record" and not self.path.is_file():
            raise ConfigError(f"there is no run log at {str(self.path)!r}; record a run with log= first")
        try:
            if self.mode != "record":
                database = open_to_read(self.path)
                if self.mode == "read":
                    database.text_factory = _decode
                return database
            self._close_unused(self.path.resolve())
            database, self._write_lock = open_to_write(self.path)
        except (*SQL_ERRORS, OSError) as error:
            is_damaged = isinstance(error, (sqlite3.DatabaseError, UnicodeDecodeError))
            hint = f". If it is a damaged one: mesa-llm inspect {self.path} --salvage NEW.sqlite" if is_damaged else ""
            raise ConfigError(f"{str(self.path)!r} cannot be used as a run log: {line_of(error)}{hint}") from error
        _WRITERS[self.path.resolve()] = self
        return database

    @staticmethod
    def _close_unused(path: Path) -> None:
        """Close what this process left open without a step: the log of a model whose constructor failed later on."""
        other = _WRITERS.get(path)
        if other is None or other._is_closed:
            return
        del other
        gc.collect()
        other = _WRITERS.get(path)
        if other is not None and not other._is_used:
            other.close()

    def _read_one(self, database: sqlite3.Connection, query: str) -> Any:
        try:
            return database.execute(query).fetchone()[0]
        except SQL_ERRORS as error:
            self.close()
            raise self._damage_error(error) from error

    def _damage_error(self, error: Exception) -> ConfigError:
        return ConfigError(
            f"{str(self.path)!r} is damaged: {line_of(error)}. What can still be read of it is read by "
            f"mesa-llm inspect {self.path} --salvage NEW.sqlite"
        )

    def _give_up(self, error: sqlite3.Error) -> ConfigError:
        """Stop using a log that cannot be written."""
        with suppress(sqlite3.Error):
            self._trace.rollback()
        self._fault = (
            f"{str(self.path)!r} cannot be written: {line_of(error)}. Nothing more is asked; what was recorded before "
            "is kept, and the same run with the same log goes on as soon as there is room"
        )
        return ConfigError(self._fault)

    def _query(self, source: sqlite3.Connection, query: str, values: Any = ()) -> list[Any]:
        """Read rows.

        Raises:
            ConfigError: If the file is damaged.
        """
        try:
            with self._lock:
                return source.execute(query, values).fetchall()
        except SQL_ERRORS as error:
            raise self._damage_error(error) from error

    @property
    def _recorded(self) -> sqlite3.Connection:
        """The recording that replies are looked up in."""
        self._check_open()
        return self._replies

    @property
    def _db(self) -> sqlite3.Connection:
        """The database that this run writes."""
        self._check_open()
        return self._trace

    def _check_open(self) -> None:
        if self._is_closed:
            name = f" {str(self.path)!r}" if self.path is not None else ""
            raise ConfigError(f"the run log{name} is closed; to go on, make the model anew with the same log=")

    def _check_writable(self) -> None:
        self._check_open()
        if self._fault is not None:
            raise ConfigError(self._fault)
        if self._process != os.getpid() and self.path is not None:
            raise ConfigError(
                f"{str(self.path)!r} is being recorded by process {self._process}, which this one was forked from; "
                "make the model anew here, with another log="
            )
        if not self._is_written and self._write_lock is not None:
            self._is_written = True
            try:
                begin_to_write(self._trace)
            except sqlite3.Error as error:
                raise self._give_up(error) from error

    # -- what the run is

    @property
    def manifest(self) -> dict[str, Any]:
        """Identity of the run: model, parameters, seed, versions. Empty before the first run."""
        rows = self._query(self._recorded, "SELECT name, value FROM manifest")
        try:
            return {str(name): loaded(value) for name, value in rows}
        except ValueError as error:
            raise self._damage_error(error) from error

    def begin(self, identity: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Write the identity of the run; refuse a file that holds another one.

        Args:
            identity: What has to be equal for a recording to be continued.
            about: Further facts, which may differ: versions, options.

        Raises:
            ConfigError: If the file holds a run with another identity.
        """
        own = json.loads(canonical_json({"format": FORMAT, **identity}))
        recorded = self.manifest
        if self.mode != "record":
            return
        replaced = recorded.get(_REPLACED_AFTER)
        self._replaced = replaced if isinstance(replaced, int) else 0
        if recorded and (differences := "; ".join(_differing({name: recorded.get(name) for name in own}, own))):
            self.close()
            raise ConfigError(
                f"{str(self.path)!r} holds another run ({differences}). Give another log=, or the same parameters."
            )
        self._check_writable()
        if "versions" in recorded and "versions" in about:
            current = json.loads(canonical_json(about["versions"]))
            self._changes = "; ".join(_differing({"versions": recorded["versions"]}, {"versions": current}))
        rows = [(name, canonical_json(value)) for name, value in {**own, **about}.items()]
        try:
            with self._lock, self._db:
                self._db.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", rows)
            self._checkpoint()
        except sqlite3.Error as error:
            self.close()
            raise self._give_up(error) from error

    def note_capabilities(self, model: str, flags: Mapping[str, bool]) -> None:
        """Record the capabilities of a custom transport, for a replay that knows only its name.

        Args:
            model: Its name.
            flags: Those of its capabilities that are not the default.
        """
        found = self.manifest.get(CAPABILITIES)
        recorded: dict[str, Any] = found if isinstance(found, dict) else {}
        if self.mode != "record" or not flags or recorded.get(model) == flags:
            return
        self.note(CAPABILITIES, {**recorded, model: dict(flags)}, commit=False)

    def note(self, name: str, value: Any, *, commit: bool = True) -> None:
        """Record a further fact of the run in its manifest; a replay records none.

        Args:
            name: Its name, which is none of those of the run's identity.
            value: Anything that JSON can hold.
            commit: False if it may be committed with the next reply.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        if self.mode != "record":
            return
        self._check_writable()
        try:
            with self._lock:
                row = (name, canonical_json(value))
                self._trace.execute("INSERT OR REPLACE INTO manifest VALUES (?, ?)", row)
        except sqlite3.Error as error:
            raise self._give_up(error) from error
        if commit:
            self.commit()

    def holds_step(self, step: int) -> bool:
        """Check whether the recording that was opened holds a step, or one after it, at least in part."""
        if self._query(self._recorded, "SELECT 1 FROM steps WHERE time >= ? LIMIT 1", (step,)):
            return True
        decided = "SELECT 1 FROM calls WHERE time >= ? AND rowid <= ? AND purpose = 'decide' LIMIT 1"
        return bool(self._query(self._recorded, decided, (step, self._calls_before)))

    def copy_to(self, path: Path) -> None:
        """Copy what is recorded so far into a new file.

        Raises:
            ConfigError: If it cannot be written, or this is a replay, whose recording is a file already.
        """
        if self.mode == "replay":
            raise ConfigError(f"this run is a replay; copy the file that it replays, {str(self.path)!r}")
        self.commit()
        try:
            with self._lock, closing(connect(str(path))) as target:
                self._db.backup(target)
        except sqlite3.Error as error:
            raise ConfigError(f"{str(path)!r} cannot be written: {line_of(error)}") from error

    # -- replies

    def find(self, request: Request) -> Reply | TransportError | None:
        """Look up a reply; a recorded failure is returned as its error.

        Raises:
            ConfigError: If the log cannot be written any more, or the recording holds another request in this place
                and `ask_again` is not set.
        """
        self._check_writable()
        self._is_used = True
        if not self.may_repeat:
            return None
        rows = self._query(
            self._recorded, _SELECT_REPLY, (request.salt.time, request.salt.agent, bytes.fromhex(request.key))
        )
        if not rows:
            if (reply := self._copied(request)) is not None:
                return reply
            self._check_same_request(request)
            return None
        row_id, kind, text, *values = rows[0]
        if kind and self._retry_failures:
            self._allow_differences()
            return None
        self._is_replaced |= row_id > self._replaced
        try:
            return failure_of(kind, text) if kind else reply_of(*values)
        except ValueError as error:
            raise self._damage_error(error) from error

    def _copied(self, request: Request) -> Reply | TransportError | None:
        """Copy the reply to a request from the parent's log; None if it has none, and need not have one.

        Raises:
            ReplayError: If the request is one of the steps that are the parent's, and it has none.
        """
        if self._parent is None:
            return None
        reply = self._parent.find(request)
        if reply is None:
            if request.salt.time <= self._parent_steps:
                raise ReplayError(self._parent.explain(request))
            return None
        self.keep(request, reply, reply.latency_s if isinstance(reply, Reply) else 0.0, commit=False)
        self.n_copied += 1
        return reply

    def _allow_differences(self) -> None:
        """Record that requests may differ from the recording from here on, also in a run that resumes this one."""
        if self._may_differ or self.mode != "record":
            return
        self._may_differ = True
        try:
            with self._lock:  # committed with the next reply
                rows = (_REPLACED_AFTER, canonical_json(self._calls_before))
                self._trace.execute("INSERT OR REPLACE INTO manifest VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            raise self._give_up(error) from error

    def _check_same_request(self, request: Request) -> None:
        """Check that the recording holds no other request in this place, which would be paid for twice."""
        if self.mode != "record" or self._may_differ:
            return
        after = self._replaced if self._is_replaced else 0
        values = (*request.salt[1:], after, self._calls_before, self._retry_failures)
        if self._query(self._recorded, _OTHER, values):
            hint = f" (changed since: {self._changes})" if self._changes else ""
            raise ConfigError(
                f"{self.explain(request)}\nThe prompt, the code or a version is not what it was{hint}. To ask "
                "again from here on, give --ask-again (in Python ask_again=True); what is recorded is kept."
            )

    def keep(self, request: Request, reply: Reply | TransportError, latency_s: float, *, commit: bool = True) -> None:
        """Record a reply at once.

        Args:
            request: The request.
            reply: The reply, or the error in its place.
            latency_s: Seconds until it came.
            commit: False if `commit` is called as soon as all that came at the same moment is kept.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        if isinstance(reply, Reply):
            outcome = (stored_reply(reply), None, None)
            cost = (reply.prompt_tokens, reply.reply_tokens, reply.dollars, latency_s, reply.attempts)
        else:
            outcome = (None, type(reply).__name__, storable(str(reply)))
            cost = (0, 0, None, latency_s, 1)
        salt = request.salt
        row = (bytes.fromhex(request.key), *salt[1:], request.model)
        self._check_writable()
        try:
            with self._lock:
                self._trace.execute(_INSERT, (*row, *self._texts.kept(request), *outcome, *cost))
        except sqlite3.Error as error:
            raise self._give_up(error) from error
        self._has_new_replies = True
        if commit:
            self.commit()

    def models(self) -> list[str]:
        """List the names, model and endpoint, that replies were recorded under; not where nothing but failures came."""
        replied = "SELECT DISTINCT model FROM calls WHERE error_kind IS NULL ORDER BY model"
        with self._lock:
            return [name for (name,) in self._recorded.execute(replied)]

    def commit(self) -> None:
        """Commit the recorded replies, so that they outlive the process.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        with self._lock:
            if self._is_closed:
                return
            try:
                self._trace.commit()
            except sqlite3.Error as error:
                raise self._give_up(error) from error

    def _checkpoint(self) -> None:
        """Move commits from the write-ahead log into the file; waits for nobody."""
        if self._write_lock is not None:
            self._trace.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._has_new_replies = False
            self._checkpoint_due_s = clock.monotonic() + CHECKPOINT_EVERY_S

    def explain(self, request: Request) -> str:
        """Describe how a request that was not recorded differs from the recorded one."""
        salt = request.salt
        query = f"SELECT model, prompt, parameters, options {_IN_PLACE} ORDER BY rowid DESC LIMIT 1"
        recorded = None
        for model, prompt, parameters, options in self._query(self._recorded, query, salt[1:]):
            with self._lock:
                recorded = model, self._texts.prompt(prompt), self._texts.text(parameters), self._texts.text(options)
        position = f"agent {salt.agent}, step {salt.time}, {salt.purpose} call {salt.call}"
        if recorded is None:
            return f"no reply is recorded for {position}; the recording ends earlier, or others acted then"
        return f"no reply is recorded for this request of {position}. It differs from the recorded one:\n" + difference(
            recorded, readable(request)
        )

    # -- trace

    def add(self, record: Decision | Failure | Outcome | Event | Message, time: int) -> None:
        """Note what happened; it is written at the end of the step.

        Args:
            record: What happened.
            time: Step in which it happened.

        Raises:
            ConfigError: If the log is closed.
        """
        self._check_open()
        self._is_used = True
        label = getattr(record, "label", "")
        match record:
            case Decision():
                acts = [[call.name, call.arguments] for call in record.actions]
                decision = canonical_json([acts, record.answer])
                facts = ["decision", time, record.agent, decision, label]
                values = (decision, record.text, None, None, stored_keys(record.keys), label)
                table, row = "decisions", (time, record.agent, record.by, *values)
            case Outcome():
                arguments, result = canonical_json(record.arguments), canonical_json(record.result)
                facts = ["outcome", time, record.agent, record.action, arguments, record.ok, result, label]
                table, row = "actions", (time, record.agent, record.action, arguments, record.ok, result, label)
            case Failure():
                facts = ["failure", time, record.agent, record.kind, label]
                values = (None, None, record.kind, record.reason, stored_keys(record.keys), label)
                table, row = "decisions", (time, record.agent, record.by, *values)
            case Event():
                event_facts = canonical_json(record.facts)
                facts = ["event", time, record.source, record.kind, event_facts]
                table, row = "events", (time, record.source, record.kind, event_facts, record.text)
            case Message():
                recipients = canonical_json(record.recipients)
                facts = ["message", time, record.sender, recipients, record.text]
                table, row = "messages", (time, record.sender, recipients, record.text)
        self._facts.append(facts)
        self._rows.setdefault(table, []).append(row)

    def end_step(self, time: int, row: Mapping[str, Any]) -> str:
        """Close a step: extend the digest, and write the step's trace in one transaction.

        Args:
            time: The step.
            row: What the model collected in it.

        Returns:
            The digest of the run so far.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        self._check_writable()
        collected = canonical_json(row)
        record = json.dumps([self._facts, collected], ensure_ascii=False)
        self._digest.update(record.encode("utf-8", "surrogatepass"))
        digest = self.digest
        self.commit()
        written_anew = (min(self._first_open, time), time)  # with the steps that broke since the last one was closed
        try:
            with self._lock, self._trace:
                for table in ("decisions", "actions", "events", "messages", "steps"):
                    self._write_anew(table, written_anew)
                self._trace.execute("INSERT INTO steps VALUES (?, ?, ?)", (time, storable(collected), digest))
            if self._has_new_replies or clock.monotonic() >= self._checkpoint_due_s:
                self._checkpoint()
        except sqlite3.Error as error:
            raise self._give_up(error) from error
        self._first_open = time + 1
        self._facts.clear()
        self._rows.clear()
        return digest

    def _write_anew(self, table: str, times: tuple[int, int]) -> None:
        """Write what happened into a table, in place of what it holds of these steps, first and last."""
        self._trace.execute(f"DELETE FROM {table} WHERE time BETWEEN ? AND ?", times)
        if rows := self._rows.get(table):
            insert = f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})"
            try:
                self._trace.executemany(insert, rows)
            except UnicodeEncodeError:
                self._trace.execute(f"DELETE FROM {table} WHERE time BETWEEN ? AND ?", times)
                self._trace.executemany(insert, map(_storable_row, rows))

    @property
    def digest(self) -> str:
        """Digest of all steps closed so far: decisions, outcomes, events, messages, collected rows."""
        return self._digest.hexdigest()

    # -- reading

    def table(self, name: str) -> pd.DataFrame:
        """Read a table: `calls`, `decisions`, `actions`, `events`, `messages`, `steps` or `answers`."""
        import pandas as pd

        return pd.DataFrame.from_records(list(self.rows(name)), columns=columns()[name])

    def rows(self, name: str, agent: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Read a table row by row, however large it is; prompts and keys are readable.

        Args:
            name: See `table`.
            agent: Only rows of this agent, where the table says whose they are.

        Raises:
            ConfigError: If there is no such table, or the file is damaged.
        """
        if name not in columns():
            raise ConfigError(f"a run log has no table {name!r}; it has {', '.join(columns())}")
        source = self._recorded if name in ("calls", "texts") else self._db
        is_one = agent is not None and "agent" in columns()[name]
        query = (
            f"SELECT rowid, * FROM {name} WHERE rowid > :after{' AND agent = :agent' * is_one} ORDER BY rowid LIMIT 500"
        )
        after = -1
        while True:
            batch = self._query(source, query, {"after": after, "agent": agent})
            for row_id, *row in batch:
                if row_id <= after:
                    raise self._damage_error(ValueError(f"the rows of {name} are out of order"))
                after = int(row_id)
                yield self._readable(name, row)
            if len(batch) < 500:
                return

    def _readable(self, table: str, row: Sequence[Any]) -> tuple[Any, ...]:
        """Put texts in place of their numbers, and digits in place of bytes."""
        if table == "decisions":
            *values, keys, label = row
            return *values, keys_of(keys), label
        if table != "calls":
            return tuple(row)
        key, agent, time, purpose, call, model, prompt, parameters, options, *rest = row
        with self._lock:
            texts = self._texts.prompt(prompt), self._texts.text(parameters), self._texts.text(options)
        return keys_of(key), agent, time, purpose, call, model, *texts, *rest

    def rows_of(self, name: str, time: Any, agent: Any) -> list[tuple[Any, ...]]:
        """Read the rows of a table about one agent in one step, as `rows` does.

        Args:
            name: `calls`, `decisions`, `actions` or `answers`.
            time: The step.
            agent: The agent's number.
        """
        source = self._recorded if name == "calls" else self._db
        query = f"SELECT * FROM {name} WHERE time = ? AND agent = ? ORDER BY rowid"
        return [self._readable(name, row) for row in self._query(source, query, (time, agent))]

    def latest(self, name: str, size: int, skip: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Read the end of a table, as pages do, however long it is.

        Args:
            name: See `table`.
            size: Maximum number of rows.
            skip: Number of rows at the end that are left out.

        Returns:
            The rows by column, the last first; and the number of rows in the table.

        Raises:
            ConfigError: If there is no such table, or the file is damaged.
        """
        if name not in columns():
            raise ConfigError(f"a run log has no table {name!r}; it has {', '.join(columns())}")
        source = self._recorded if name in ("calls", "texts") else self._db
        rows = self._query(source, f"SELECT * FROM {name} ORDER BY rowid DESC LIMIT ? OFFSET ?", (size, skip))
        count = self._read_one(source, f"SELECT count(*) FROM {name}")
        return [dict(zip(columns()[name], self._readable(name, row), strict=True)) for row in rows], count

    def agents(self) -> list[int]:
        """Return the numbers of all agents that were asked something or decided, in order."""
        tables = {"calls": self._recorded, "decisions": self._db, "answers": self._db}
        batches = [self._query(source, f"SELECT DISTINCT agent FROM {name}") for name, source in tables.items()]
        return sorted({agent for rows in batches for (agent,) in rows if isinstance(agent, int)})

    def calls(self) -> pd.DataFrame:
        """Every request with its reply or error, tokens, dollars and latency."""
        return self.table("calls")

    def decisions(self) -> pd.DataFrame:
        """Every decision asked for; `kind` and `reason` are set where it failed."""
        return self.table("decisions")

    def actions(self) -> pd.DataFrame:
        """Every action run, with what came of it."""
        return self.table("actions")

    def events(self) -> pd.DataFrame:
        """Every event the worlds told of."""
        return self.table("events")

    def messages(self) -> pd.DataFrame:
        """Every message delivered between agents."""
        return self.table("messages")

    def steps(self) -> pd.DataFrame:
        """One row a step: what the model collected, and the digest so far."""
        return self.table("steps")

    def failures(self) -> list[str]:
        """Return the reasons of all failed decisions, in order."""
        rows = self._query(self._db, "SELECT reason FROM decisions WHERE kind IS NOT NULL ORDER BY rowid")
        return [str(reason) for (reason,) in rows]

    def calls_of(self, agent: int, limit: int = 20, last_step: int | None = None) -> list[dict[str, Any]]:
        """Return the latest requests made for an agent with their replies, newest first.

        Args:
            agent: The agent's number.
            limit: Maximum number of requests.
            last_step: Only requests up to this step; None: all, in a replay also those of steps to come.
        """
        query = (
            "SELECT * FROM calls WHERE agent = ? AND (? IS NULL OR time <= ?) ORDER BY time DESC, rowid DESC LIMIT ?"
        )
        rows = self._query(self._recorded, query, (agent, last_step, last_step, limit))
        return [dict(zip(columns()["calls"], self._readable("calls", row), strict=True)) for row in rows]

    def usage(self, agent: int | None = None) -> pd.DataFrame:
        """Sum what a run used: one row a model.

        Args:
            agent: Only what this agent used.

        Returns:
            model, calls, failed, prompt_tokens, reply_tokens, dollars, mean_latency_s.
        """
        import pandas as pd

        rows = self._query(self._recorded, _USAGE, {"agent": agent})
        names = ["model", "calls", "failed", "prompt_tokens", "reply_tokens", "dollars", "mean_latency_s"]
        return pd.DataFrame(rows, columns=names)

    def keep_answer(self, row: Mapping[str, Any]) -> None:
        """Note an answer given aside; it is no part of the run's digest.

        It replaces what an earlier run with this log was answered to the same question, by the same agent, in the
        same step.

        Args:
            row: time, agent, question, answer, failure and purpose.
        """
        self._check_writable()
        try:
            with self._lock, self._trace:
                texts = {name: storable(value) if isinstance(value, str) else value for name, value in row.items()}
                self._trace.execute(
                    "INSERT INTO answers VALUES (:time, :agent, :question, :answer, :failure, :purpose)", texts
                )
                self._trace.execute(_DELETE_ANSWER, {**texts, "before": self._answers_before})
        except sqlite3.Error as error:
            raise self._give_up(error) from error

    def close(self) -> None:
        """Close the file; it then stands alone. What could not be written was said when it was."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._process != os.getpid():
                return  # it is the other process's to close
            with suppress(sqlite3.Error):
                self._trace.commit()
                if self._write_lock is not None:
                    self._trace.execute("PRAGMA journal_mode=DELETE")  # somebody who reads it now keeps it as it is
            if self._parent is not None:
                self._parent.close()
            self._replies.close()
            self._trace.close()
            if self._write_lock is not None:
                self._write_lock.free()


def _decode(encoded: bytes) -> str:
    return encoded.decode("utf-8", "replace")


def _differing(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[str]:
    """Name what differs between two runs; of their parameters, each by itself, also one that only the first has."""
    for name, value in current.items():
        old = recorded.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            inner = cast("dict[str, Any]", old)
            yield from _differing(inner, dict.fromkeys(inner) | cast("dict[str, Any]", value))
        elif old != value:
            yield f"{name}: {old!r}, now {value!r}"


def _storable_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row as SQLite can keep it."""
    return tuple([storable(value) if type(value) is str and not value.isascii() else value for value in row])
