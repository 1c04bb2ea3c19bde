"""One SQLite file per run: requests and replies, decisions, and their outcomes.

Replies cost money, so each is committed as it arrives. They are looked up by a digest of everything that affects them.
Everything else (decisions, outcomes, events, messages, one row per step) can be recomputed from them, and is written at
the end of each step together with the digest of the run so far.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, cast

from mesa_llm.canonical import canonical_json, text_json
from mesa_llm.errors import ConfigError, ReplayError, TransportError
from mesa_llm.records import Decision, Event, Failure, Message, Outcome, Reply, Request, Usage
from mesa_llm.runlog.compact import RECORDED_ON, write_clean, write_compact
from mesa_llm.runlog.database import Mode
from mesa_llm.runlog.disk import reason_of
from mesa_llm.runlog.file import save_copy
from mesa_llm.runlog.layout import FORMAT, FORMATS, columns
from mesa_llm.runlog.queries import UNANSWERED, Queries, unanswered_in
from mesa_llm.runlog.tables import (
    CHECKED,
    CHECKSUM_ERRORS,
    OUTCOME,
    SQL_ERRORS,
    call_checksum,
    difference,
    failure_of,
    is_under_lower_limit,
    is_whole_call,
    readable,
    reply_of,
    storable,
    stored_keys,
    stored_reply,
)
from mesa_llm.runlog.versions import DISTRIBUTION

_INSERT = f"INSERT OR REPLACE INTO calls VALUES ({','.join('?' * len(columns()['calls']))})"

_INSERT_FACT = "INSERT OR REPLACE INTO manifest VALUES (?, ?)"

_SELECT_REPLY = {
    version: f"SELECT rowid, {'checksum' if version > 3 else 'NULL'}, {', '.join(OUTCOME)} FROM calls "
    "WHERE time = ? AND agent = ? AND key = ?"
    for version in FORMATS
}
"""Format of a log → query that looks up a reply."""

MAX_ENDED = 20_000
"""Maximum number of rows of ended steps that a log in memory holds back; they are also written before any is read."""

_IN_PLACE = "FROM calls WHERE agent = ? AND time = ? AND purpose = ? AND call = ?"

_OTHER = f"SELECT 1 {_IN_PLACE} AND rowid > ? AND rowid <= ? AND (error_kind IS NULL OR NOT ?) LIMIT 1"

_ANSWER = "INSERT INTO answers VALUES (:time, :agent, :question, :answer, :failure, :purpose)"

REQUEST_VERSION = "requests"
"""Manifest key: how requests are put together. 2: agents are offered only what their worlds would accept, and read last
who they are; 3: tools that have nothing more to say are not offered again; 4: where only one decision is possible,
the decision is by nobody, and a reply that was cut, filtered or broken off is no decision; 5: questionnaires are
answered by probabilities or by several draws, unless a run says otherwise. Logs with a lower number, or
none (those of before 0.12), are continued and replayed with the requests of before."""

_NEWEST_REQUESTS = 5
"""How the requests of a new run are put together."""

CAPABILITIES = "capabilities"
"""Manifest key: capabilities of custom transports, by name."""

MODELS = "models"
"""Manifest key: name of a model → how it was reached; of local weights, also their file, SHA-256 and quantisation."""

_REPLACED_AFTER = "asked_again_after"
"""Manifest key: number of the last call recorded before a run first retried failed requests.

What follows such a retry can differ from the recording, so calls up to that number may no longer belong to the run.
"""

_DELETE_ANSWER = (
    "DELETE FROM answers WHERE time = :time AND agent = :agent AND question = :question AND rowid <= :before"
)

PreparedCall = tuple[Any, ...]
"""First columns of a call's row, which depend only on its request."""


class RunLog(Queries):
    """The record of one run, used to resume, replay and analyse it.

    Attributes:
        path: The file, or None for a log in memory.
        mode: `record` (reuse recorded replies and append new ones), `replay` (only recorded replies), or `read`.
        may_repeat: Whether requests must be looked up because some may have been recorded before.
        request_version: How requests are put together; see `REQUEST_VERSION`.
        n_copied: Number of replies copied from the parent's log.
        on_found: Called with the row of each recorded reply that is used, and the request for it (None: the recorded
            one had a lower limit of tokens); None: nothing is called.
        is_light: Whether nothing is kept, so that no language model may be asked.
        is_in_place: Whether a request that is not recorded takes the reply to the one recorded in its place, as in a
            run whose prompts have changed since. Only in mode `replay`.
        n_in_place: Number of replies taken so.
    """

    is_light: ClassVar[bool] = False

    def __init__(
        self,
        path: str | Path | None = None,
        mode: Mode = "record",
        retry_failures: bool = False,
        ask_again: bool = False,
        *,
        parent: RunLog | None = None,
        parent_steps: int = 0,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Open a log, creating the file if necessary.

        Args:
            path: File of the run; None or `":memory:"` keeps the log in memory.
            mode: `record` is for one model at a time; `replay` and `read` do not change the file, and a replay keeps
                its new trace in memory.
            retry_failures: Send a request again if it failed in the recording.
            ask_again: Send a request if the recording holds a different one in its place, as after a change to a
                prompt. The recording is kept.
            parent: Log of the run that this one branches from; replies to equal requests are copied from it.
            parent_steps: Number of steps in which every request must be in the parent's log.
            facts: Further facts of a new run, such as its parent, written together with its identity.

        Raises:
            ConfigError: If the file is missing (replay, read), is not a run log, is damaged, or is being recorded by
                another model.
        """
        self._pending: list[tuple[Any, ...]] = []  # rows of calls for the next commit
        self._ended: dict[str, list[tuple[Any, ...]]] = {}  # rows of steps that are not written yet
        self._ended_span: tuple[int, int] | None = None  # first and last of these steps
        self._n_ended = 0  # number of these rows
        super().__init__(path, mode)
        self._retry_failures = retry_failures
        self._may_differ = ask_again
        self._parent, self._parent_steps = parent, parent_steps
        self._new_facts = dict(facts or {})
        self._changed: list[str] = []  # what differs now from the recording, for people
        self._identity: dict[str, Any] = {}  # of the run that uses this log
        self.on_found: Callable[[int, Request | None], None] | None = None
        self._calls_before: int = self._read_one(self._replies, "SELECT ifnull(max(rowid), 0) FROM calls")
        self.n_copied = 0
        self.is_in_place, self.n_in_place = False, 0
        self._taken: dict[tuple[Any, ...], int] = {}  # place → row of its reply that was taken last
        self._rows_of: dict[str, int] = {}  # key of a request that is not recorded → row of the reply that it took
        self.may_repeat = self._calls_before > 0 or parent is not None
        recorded = self.manifest
        own = recorded.get(REQUEST_VERSION, 1) if recorded else _NEWEST_REQUESTS
        self.request_version: int = parent.request_version if parent else own
        self._answers_before: int = self._read_one(self._trace, "SELECT ifnull(max(rowid), 0) FROM answers")
        self._replaced = 0  # see `_REPLACED_AFTER`
        self._is_past_replaced = False  # whether this run has used a call recorded after that one
        self._changes = ""  # versions that differ from the recording
        self._is_whole = self._calls_before == 0  # whether the recording is known to be intact
        self._has_new_replies = False
        self._first_open = 0  # all earlier steps have ended
        self._digest = hashlib.sha256()
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._facts: list[list[Any]] = []
        self._written: dict[int, tuple[object, str]] = {}  # id → value decided in this step, its JSON

    def __repr__(self) -> str:
        """Show the file and the mode."""
        return f"<RunLog {'in memory' if self.path is None else self.path}, {self.mode}>"

    @property
    def may_differ(self) -> bool:
        """Whether requests may be sent in place of those that the recording holds."""
        return self._may_differ

    # -- what the run is

    def models(self) -> list[str]:
        """List the models that replied, as `Queries.models` does, including the parent's if its steps are repeated."""
        parents = self._parent.models() if self._parent is not None and self._parent_steps else []
        return list(dict.fromkeys([*super().models(), *parents]))

    def begin(self, identity: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Write the identity of the run, rejecting a file that holds another run. Only in mode `record`.

        Args:
            identity: Facts that must be those of the recording for it to be continued.
            about: Further facts, which may differ: versions, options, digests of prompts.

        Raises:
            ConfigError: If the file holds a run with another identity, or cannot be written.
        """
        own = json.loads(canonical_json(identity))
        recorded = self.manifest
        self._identity = own
        self._changed = list(_changes_since(recorded, json.loads(canonical_json(about))))
        if self.mode != "record":
            return
        replaced = recorded.get(_REPLACED_AFTER)
        self._replaced = replaced if isinstance(replaced, int) else 0
        known = {name: recorded.get(name) for name in own}
        if self._retry_failures:
            known = _with_raised_limit(known, own)
        if recorded and (differences := "; ".join(_differing(known, own))):
            self.close()
            raise ConfigError(
                f"{str(self.path)!r} holds another run ({differences}). Give another log=, or the same parameters."
            )
        self._check_writable()
        if "versions" in recorded and "versions" in about:
            current = json.loads(canonical_json(about["versions"]))
            self._changes = "; ".join(_differing({"versions": recorded["versions"]}, {"versions": current}))
        facts = {name: value for name, value in self._new_facts.items() if name not in recorded}
        facts |= {} if recorded else {RECORDED_ON: date.today().isoformat()}
        version = {REQUEST_VERSION: self.request_version} if self.request_version > 1 else {}
        written = {"format": FORMAT, **own, **about, **facts, **version}
        rows = [(name, storable(canonical_json(value))) for name, value in written.items()]
        try:
            with self._lock, self._db:
                self._db.executemany(_INSERT_FACT, rows)
        except sqlite3.Error as error:
            fault = self._give_up(error)
            self.close()
            raise fault from error
        self._checkpoint()

    @property
    def changes(self) -> tuple[str, ...]:
        """What has changed since the recording, in sentences: prompts, the model's code, the version of this package.

        Empty if nothing has, or the recording does not say.
        """
        return tuple(self._changed)

    def identity_changes(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield the facts of the recording that are not those of the run that uses this log, with both values."""
        recorded = self.manifest
        for name, value in {**self._identity, "format": self.format}.items():
            is_whole = name != "parameters"  # which later versions may have more of
            then, now = {name: recorded.get(name)}, {name: value}
            if name in recorded and (then != now if is_whole else any(_differing_in_both(then, now))):
                yield f"manifest.{name}", recorded[name], value

    def note_capabilities(self, model: str, flags: Mapping[str, bool]) -> None:
        """Record the capabilities of a custom transport for replays, which only know its name.

        Args:
            model: Name of the transport.
            flags: Capabilities that differ from the default.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        capabilities = self.manifest.get(CAPABILITIES)
        recorded: dict[str, Any] = capabilities if isinstance(capabilities, dict) else {}
        if self.mode != "record" or not flags or recorded.get(model) == flags:
            return
        self.note(CAPABILITIES, {**recorded, model: dict(flags)}, commit=False)

    def note(self, name: str, value: Any, *, commit: bool = True) -> None:
        """Record a further fact in the manifest; ignored in a replay.

        Args:
            name: Key, different from those of the run's identity.
            value: Any JSON value.
            commit: Whether to commit now instead of with the next reply.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        if self.mode != "record":
            return
        if self._fault is None:
            self._check_writable()
        try:
            with self._lock:
                self._write_fact(name, value)
        except sqlite3.Error as error:
            raise self._give_up(error) from error
        if commit:
            self.commit()

    def _write_fact(self, name: str, value: Any) -> None:
        """Write a fact within the open transaction; if the log cannot be written any more, leave it to `commit`."""
        row = (name, storable(canonical_json(value)))
        self._uncommitted += ((_INSERT_FACT, [row]),)
        if self._fault is None:
            self._trace.execute(_INSERT_FACT, row)

    def note_unanswered(self, model: str, paid: Usage) -> None:
        """Add to the usage of requests that never got a reply because the run ended first.

        Args:
            model: Name of the model.
            paid: Their usage.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        recorded = unanswered_in(self.manifest)
        recorded[model] = recorded.get(model, Usage()) + paid
        fields = ("requests", "prompt_tokens", "reply_tokens", "cached_tokens", "dollars")
        self.note(
            UNANSWERED, {name: {field: getattr(one, field) for field in fields} for name, one in recorded.items()}
        )

    def holds_step(self, step: int) -> bool:
        """Check whether the opened recording holds at least part of this step or a later one."""
        if self._query(self._recorded, "SELECT 1 FROM steps WHERE time >= ? LIMIT 1", (step,)):
            return True
        decided = "SELECT 1 FROM calls WHERE time >= ? AND rowid <= ? AND purpose = 'decide' LIMIT 1"
        return bool(self._query(self._recorded, decided, (step, self._calls_before)))

    def copy_to(self, path: Path) -> None:
        """Copy the recording so far to a new file.

        Raises:
            ConfigError: If it cannot be written, or this is a replay, whose recording already is a file.
        """
        if self.mode == "replay":
            raise ConfigError(f"this run is a replay; copy its recording instead, {str(self.path)!r}")
        self.commit()
        try:
            with self._lock:
                copy, _ = save_copy(self._db, (), path)
            os.replace(copy, path)
        except (OSError, *SQL_ERRORS) as error:
            raise ConfigError(f"{str(path)!r} cannot be written: {reason_of(path, error)}") from error

    def compact_to(self, path: Path) -> int:
        """Write a compact copy of the recording so far, which replays like the log itself; see `compact`.

        Returns:
            Its size, in bytes.

        Raises:
            ConfigError: If it cannot be written.
        """
        self.commit()
        try:
            with self._lock:
                return write_compact(self._recorded, path)
        except (OSError, *SQL_ERRORS) as error:
            raise ConfigError(f"{str(path)!r} cannot be written: {reason_of(path, error)}") from error

    def clean_to(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Write a copy of the recording so far that names neither process nor host, and replays like the log itself.

        Args:
            path: The new file.
            facts: Entries of the manifest that differ in the copy.

        Raises:
            ConfigError: If it cannot be written.
        """
        self.commit()
        try:
            with self._lock:
                write_clean(self._recorded, path, facts)
        except SQL_ERRORS as error:
            raise ConfigError(f"{str(path)!r} cannot be written: {reason_of(path, error)}") from error

    # -- replies

    def find(self, request: Request) -> Reply | TransportError | None:
        """Look up the reply to a request; a recorded failure is returned as its error.

        Raises:
            ConfigError: If the log can no longer be written or is damaged, or the recording holds another request in
                this place and `ask_again` is not set.
            ReplayError: If the parent must hold the request, and does not.
        """
        self._check_writable()
        self._is_used = True
        if not self.may_repeat:
            return None
        key, salt = bytes.fromhex(request.key), request.salt
        rows = self._query(self._recorded, _SELECT_REPLY[self._format], (salt.time, salt.agent, key))
        if self.is_in_place and self.mode == "replay":
            if not rows:
                return self._in_place(request)
            self._taken[salt[1:]] = rows[0][0]
        if not rows:
            if self.mode == "record":
                self._require_whole_calls()
            if (reply := self._copied(request) or self._under_lower_limit(request)) is not None:
                return reply
            self._check_same_request(request)
            return None
        row_id, check, *outcome = rows[0]
        if not is_whole_call(check, key, salt.agent, salt.time, *outcome):
            raise self._call_error(*salt[1:])
        reply_text, kind, text, *values = outcome
        if kind and self._retry_failures:
            self._allow_differences()
            return None
        self._is_past_replaced |= row_id > self._replaced
        if self.on_found is not None:
            self.on_found(row_id, request)
        try:
            return failure_of(kind, text) if kind else reply_of(reply_text, *values)
        except ValueError as error:
            raise self._damage_error(error) from error

    def holds(self, request: Request) -> bool:
        """Check whether a reply to a request, or its failure, is recorded, so that `find` returns it."""
        if not self.may_repeat:
            return False
        key = bytes.fromhex(request.key)
        rows = self._query(self._recorded, _SELECT_REPLY[self._format], (request.salt.time, request.salt.agent, key))
        if rows:
            return not (rows[0][3] and self._retry_failures)
        return self._parent is not None and self._parent.holds(request)

    def _in_place(self, request: Request) -> Reply | TransportError | None:
        """Return the reply to the next request that was recorded in the place of one that is not; None if none is."""
        place = request.salt[1:]
        first = self._rows_of.get(request.key, self._taken.get(place, 0) + 1)
        query = f"SELECT rowid, {', '.join(OUTCOME)} {_IN_PLACE} AND rowid >= ? ORDER BY rowid LIMIT 1"
        for row_id, reply_text, kind, text, *values in self._query(self._recorded, query, (*place, first)):
            self.n_in_place += request.key not in self._rows_of
            self._rows_of[request.key] = self._taken[place] = row_id
            try:
                return failure_of(kind, text) if kind else reply_of(reply_text, *values)
            except ValueError as error:
                raise self._damage_error(error) from error
        return None

    def _under_lower_limit(self, request: Request) -> Reply | None:
        """Return the reply to the same request under a lower limit of tokens; None if there is none, or it was cut.

        What was whole under a lower limit is whole under a higher one. With `retry_failures`, a reply that was cut may
        be asked for again.
        """
        limit = request.settings.get("max_tokens")
        if not isinstance(limit, int) or self._format <= 3:  # whose calls have no checksum
            return None
        columns = f"rowid, key, checksum, model, prompt, parameters, options, {', '.join(OUTCOME)}"
        query = f"SELECT {columns} {_IN_PLACE} AND rowid <= ? AND error_kind IS NULL"
        current = readable(request)
        for row in self._query(self._recorded, query, (*request.salt[1:], self._calls_before)):
            row_id, key, check, model, prompt, parameters, options, *outcome = row
            with self._lock:
                texts = self._texts
                recorded = model, texts.prompt(prompt), texts.parameters(parameters), texts.text(options)
            if not is_under_lower_limit(recorded, current):
                continue
            if not is_whole_call(check, key, request.salt.agent, request.salt.time, *outcome):
                raise self._call_error(*request.salt[1:])
            reply_text, _, _, *values = outcome
            reply = reply_of(reply_text, *values)
            if reply.finish != "length":
                self._is_past_replaced |= row_id > self._replaced
                if self.on_found is not None:
                    self.on_found(row_id, None)
                return reply
            if self._retry_failures:
                self._allow_differences()
        return None

    def _copied(self, request: Request) -> Reply | TransportError | None:
        """Copy the reply to a request from the parent's log; None if there is no parent, or it has no reply.

        Raises:
            ReplayError: If the parent has no reply to a request of the first `parent_steps` steps.
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
        """Record that requests may differ from the recording from here on, even after this run is resumed."""
        if self._may_differ or self.mode != "record":
            return
        self._may_differ = True
        try:
            with self._lock:  # committed with the next reply
                self._write_fact(_REPLACED_AFTER, self._calls_before)
        except sqlite3.Error as error:
            raise self._give_up(error) from error

    def _check_same_request(self, request: Request) -> None:
        """Check that the recording holds no other request in this place; the run would pay for both.

        Raises:
            ConfigError: If it does.
        """
        if self.mode != "record" or self._may_differ:
            return
        after = self._replaced if self._is_past_replaced else 0
        values = (*request.salt[1:], after, self._calls_before, self._retry_failures)
        if self._query(self._recorded, _OTHER, values):
            hint = f" (changed since: {self._changes})" if self._changes else ""
            raise ConfigError(
                f"{self.explain(request)}\nThe prompt, the code or a version has changed{hint}. To send "
                "new requests from here on, give --ask-again (in Python ask_again=True); the recording is kept."
            )

    def prepare(self, request: Request) -> PreparedCall:
        """Write the texts of a request while waiting for its reply, to record the reply faster.

        They are committed with the next reply.

        Returns:
            The columns that depend on the request, for `keep`.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        self._check_writable()
        try:
            with self._lock:
                prepared = self._prepared(request)
                self._texts.write()
                return prepared
        except sqlite3.Error as error:
            raise self._give_up(error) from error

    def _prepared(self, request: Request) -> PreparedCall:
        return (bytes.fromhex(request.key), *request.salt[1:], request.model, *self._texts.kept(request))

    def keep(
        self,
        request: Request,
        reply: Reply | TransportError,
        latency_s: float,
        *,
        prepared: PreparedCall | None = None,
        commit: bool = True,
        paid: Usage | None = None,
    ) -> None:
        """Record a reply.

        Args:
            request: The request.
            reply: The reply or the error.
            latency_s: Seconds until it arrived.
            prepared: Result of `prepare` for the request; None if it was not called.
            commit: Whether to commit now; False if the caller commits once for all replies that arrived together.
            paid: Usage of the failed requests, if `reply` is an error; None if none was sent.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        if isinstance(reply, Reply):
            cost = (reply.prompt_tokens, reply.reply_tokens, reply.dollars, latency_s, reply.attempts)
            outcome = (stored_reply(reply), None, None, *cost)
        else:
            used = paid or Usage(requests=1)
            cost = (used.prompt_tokens, used.reply_tokens, used.dollars or None, latency_s, used.requests)
            outcome = (None, type(reply).__name__, storable(str(reply)), *cost)
        if self._fault is None:  # else `commit` puts the reply where there is room
            self._check_writable()
        try:
            with self._lock:
                request_columns = prepared or self._prepared(request)
                key, agent, time, *_ = request_columns
                check = call_checksum(key, agent, time, *outcome)
                self._pending.append((*request_columns, *outcome, check))
        except (sqlite3.Error, *CHECKSUM_ERRORS) as error:  # a transport may return non-numeric values
            raise self._give_up(error) from error
        self._has_new_replies = True
        if commit:
            self.commit()

    def _write_pending(self) -> None:
        """Write the buffered replies with one statement, which is faster than one each, then the steps that ended."""
        self._write_replies()
        self._write_ended()

    def _collect_pending(self) -> None:
        rows, self._pending = self._pending, []
        self._texts.collect()
        self._uncommitted += ((_INSERT, rows),) if rows else ()

    def _write_replies(self) -> None:
        if not self._pending or self._fault is not None:
            return
        try:
            with self._lock:
                rows, self._pending = self._pending, []
                self._uncommitted += ((_INSERT, rows),)
                self._texts.write()
                self._trace.executemany(_INSERT, rows)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:  # a value that SQLite cannot store
            raise self._give_up(error) from error

    def explain(self, request: Request) -> str:
        """Describe how a request without a recorded reply differs from the one recorded in its place.

        Raises:
            ConfigError: If the file is damaged, which may be the reason.
        """
        self._require_whole_calls()
        salt = request.salt
        query = f"SELECT model, prompt, parameters, options {_IN_PLACE} ORDER BY rowid DESC LIMIT 1"
        recorded = None
        for model, prompt, parameters, options in self._query(self._recorded, query, salt[1:]):
            with self._lock:
                texts = self._texts
                recorded = model, texts.prompt(prompt), texts.parameters(parameters), texts.text(options)
        position = f"agent {salt.agent}, step {salt.time}, {salt.purpose} call {salt.call}"
        if recorded is None:
            text = f"no reply is recorded for {position}; the recording ends earlier, or others acted then"
        else:
            text = f"no reply is recorded for this request of {position}. It differs from the recorded one:\n"
            text += difference(recorded, readable(request))
        return "\n".join([text, *self._changed])

    def _require_whole_calls(self) -> None:
        """Check once that every call of the recording is intact and correctly indexed.

        Raises:
            ConfigError: If one is not. The message names the first.
        """
        if self._is_whole:
            return
        source, last = self._recorded, -1
        selected = f"SELECT rowid, purpose, call, {', '.join(CHECKED)} FROM calls NOT INDEXED"
        batch = f"{selected} WHERE rowid > ? ORDER BY rowid LIMIT 1000"
        while self._format > 3 and (rows := self._query(source, batch, (last,))):
            for row_id, purpose, call, *values in rows:
                if row_id <= last or not is_whole_call(*values):
                    raise self._call_error(values[2], values[3], purpose, call)
                last = int(row_id)
        ((fault,),) = self._query(source, "PRAGMA integrity_check(1)")
        if fault != "ok":
            raise self._damage_error(ValueError(str(fault)))
        self._is_whole = True

    def _call_error(self, agent: object, time: object, purpose: object, call: object) -> ConfigError:
        """Return the error for a corrupt call."""
        place = f"agent {agent}, step {time}, {purpose} call {call}"
        return self._damage_error(ValueError(f"the reply recorded for {place} is corrupt"))

    # -- trace

    def add(self, record: Decision | Failure | Outcome | Event | Message, time: int) -> None:
        """Buffer a record, to be written at the end of the step.

        Args:
            record: The record.
            time: Step in which it happened.

        Raises:
            ConfigError: If the log is closed.
        """
        self._check_open()
        self._is_used = True
        match record:
            case Decision():
                self._add_decision(record, time)
            case Outcome():
                self._add_outcome(record, time)
            case Failure():
                origin = (record.kind, record.reason, stored_keys(record.keys), record.label, record.reading)
                facts = ["failure", time, record.agent, record.kind, record.label]
                self._buffer("decisions", facts, (time, record.agent, record.by, None, None, *origin))
            case Event():
                event_facts = canonical_json(record.facts)
                facts = ["event", time, record.source, record.kind, event_facts]
                self._buffer("events", facts, (time, record.source, record.kind, event_facts, record.text))
            case Message():
                recipients = canonical_json(record.recipients)
                facts = ["message", time, record.sender, recipients, record.text]
                self._buffer("messages", facts, (time, record.sender, recipients, record.text))

    def add_all(self, records: Sequence[Decision | Failure], time: int) -> None:
        """Buffer the decisions of a stage, in order; see `add`.

        Raises:
            ConfigError: If the log is closed.
        """
        for record in records:
            self.add(record, time)

    def _buffer(self, table: str, facts: list[Any], row: tuple[Any, ...]) -> None:
        self._facts.append(facts)
        self._rows.setdefault(table, []).append(row)

    def _add_decision(self, record: Decision, time: int) -> None:
        acts = [f"[{text_json(call.name)},{self._json_of(call.arguments)}]" for call in record.actions]
        decision = f"[[{','.join(acts)}],{self._json_of(record.answer)}]"
        agent, label, keys = record.agent, record.label, record.keys
        row = (time, agent, record.by, decision, record.text, None, None, stored_keys(keys), label, record.reading)
        self._buffer("decisions", ["decision", time, agent, decision, label], row)

    def _add_outcome(self, record: Outcome, time: int) -> None:
        if record.action == "answer" and tuple(record.arguments) == ("answer",):
            arguments = f'{{"answer":{self._json_of(record.arguments["answer"])}}}'
        else:
            arguments = self._json_of(record.arguments)
        result = text_json(record.result) if type(record.result) is str else canonical_json(record.result)
        row = (time, record.agent, record.action, arguments, record.ok, result, record.label)
        facts = canonical_json(record.facts) if record.facts else None
        self._buffer("actions", ["outcome", *row], (*row, facts))

    def _json_of(self, value: Any) -> str:
        """Serialise arguments or an answer, cached for the step: decision and outcome share it."""
        if value is None:
            return "null"
        if type(value) is str:
            return text_json(value)
        entry = self._written.get(id(value))
        if entry is None:
            text = "{}" if type(value) is dict and not value else canonical_json(value)
            entry = self._written[id(value)] = (value, text)  # holding the value keeps its id unique
        return entry[1]

    def end_step(self, time: int, row: Mapping[str, Any]) -> str:
        """End a step: extend the digest and write the trace of the step in one transaction.

        Args:
            time: The step.
            row: Data that the model collected in it.

        Returns:
            The digest of the run so far.

        Raises:
            ConfigError: If it cannot be written, as on a full disk, or the file was deleted.
        """
        self._check_writable()
        collected = canonical_json(row)
        record = json.dumps([self._facts, collected], ensure_ascii=False)
        self._digest.update(record.encode("utf-8", "surrogatepass"))
        digest = self.digest
        self._rows["steps"] = [(time, storable(collected), digest)]
        self._end_rows((min(self._first_open, time), time))  # includes steps broken off since the last completed one
        if self.path is not None or self._n_ended > MAX_ENDED:
            self.commit()
        if self._has_new_replies or clock.monotonic() >= self._check_due_s:
            self._checkpoint()
            self._has_new_replies = False
        self._first_open = time + 1
        self._facts.clear()
        self._written.clear()
        return digest

    def _end_rows(self, span: tuple[int, int]) -> None:
        """Add the buffered rows of a range of steps (first, last) to those that are written together."""
        with self._lock:
            if self._ended_span is not None and span[0] <= self._ended_span[1]:  # a step is written again
                self._write_ended()
            first = span[0] if self._ended_span is None else self._ended_span[0]
            self._ended_span = (first, span[1])
            for table, rows in self._rows.items():
                self._ended.setdefault(table, []).extend(rows)
                self._n_ended += len(rows)
            self._rows.clear()

    def _write_ended(self) -> None:
        """Write the rows of the steps that have ended since the last time, in one transaction."""
        if self._ended_span is None or self._fault is not None:
            return
        try:
            with self._lock, self._trace:
                span, ended = self._ended_span, self._ended
                self._ended_span, self._ended, self._n_ended = None, {}, 0
                for table in ("decisions", "actions", "events", "messages", "steps"):
                    self._replace_rows(table, ended.get(table, ()), span)
        except sqlite3.Error as error:
            raise self._give_up(error) from error
        del self._uncommitted[:]

    def _replace_rows(self, table: str, rows: Sequence[tuple[Any, ...]], span: tuple[int, int]) -> None:
        """Replace the rows of a table for a range of steps (first, last)."""
        self._trace.execute(f"DELETE FROM {table} WHERE time BETWEEN ? AND ?", span)
        if rows:
            insert = f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})"
            try:
                self._trace.executemany(insert, rows)
            except UnicodeEncodeError:
                self._trace.execute(f"DELETE FROM {table} WHERE time BETWEEN ? AND ?", span)
                self._trace.executemany(insert, map(_storable_row, rows))

    @property
    def digest(self) -> str:
        """Digest of all completed steps: decisions, outcomes, events, messages, collected rows."""
        return self._digest.hexdigest()

    def keep_answer(self, row: Mapping[str, Any]) -> None:
        """Record an answer to a survey question, which is not part of the digest.

        It replaces an answer that an earlier run with this log recorded for the same agent, question and step.

        Args:
            row: time, agent, question, answer, failure and purpose.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        self._check_writable()
        try:
            with self._lock, self._trace:
                texts = {name: storable(value) if isinstance(value, str) else value for name, value in row.items()}
                self._trace.execute(_ANSWER, texts)
                self._trace.execute(_DELETE_ANSWER, {**texts, "before": self._answers_before})
        except sqlite3.Error as error:
            raise self._give_up(error) from error
        del self._uncommitted[:]

    def close(self) -> None:
        """Close the file and the parent's; write errors are not raised a second time."""
        super().close()
        if self._parent is not None:
            self._parent.close()


def _with_raised_limit(recorded: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a recorded identity with the limit of tokens of a run, if that is a higher one."""
    before, now = recorded.get("parameters"), own.get("parameters")
    if not isinstance(before, dict) or not isinstance(now, dict):
        return recorded
    before, now = cast("dict[str, Any]", before), cast("dict[str, Any]", now)
    limit, raised = before.get("reply_tokens"), now.get("reply_tokens")
    if not isinstance(raised, int) or (isinstance(limit, int) and limit >= raised):
        return recorded
    return {**recorded, "parameters": {**before, "reply_tokens": raised}}


def _differing(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parameters that differ between two runs, including those that only the first has."""
    for name, value in current.items():
        old = recorded.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            inner = cast("dict[str, Any]", old)
            yield from _differing(inner, dict.fromkeys(inner) | cast("dict[str, Any]", value))
        elif old != value:
            yield f"{name}: {old!r}, now {value!r}"


def _differing_in_both(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parameters that differ between two runs and that both have."""
    for name, value in current.items():
        old = recorded.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            yield from _differing_in_both(cast("dict[str, Any]", old), cast("dict[str, Any]", value))
        elif name in recorded and old != value:
            yield name


def _storable_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with its texts in a form that SQLite can store."""
    return tuple([storable(value) if type(value) is str and not value.isascii() else value for value in row])


def _changes_since(recorded: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[str]:
    """List what has changed since a recording: prompts, the model's code, and the version of this package.

    Args:
        recorded: The manifest of the recording.
        about: Facts of the present run.
    """
    for name, files in (("prompts", "prompts"), ("code", "files of the model's code")):
        then, now = recorded.get(name), about.get(name)
        if isinstance(then, dict) and isinstance(now, dict):
            before, after = cast("dict[str, Any]", then), cast("dict[str, Any]", now)
            if changed := sorted(file for file in before.keys() | after if before.get(file) != after.get(file)):
                yield f"These {files} have changed since it was recorded: {', '.join(changed)}."
    version = _version_in(recorded)
    if version and version != (present := _version_in(about)):
        yield (
            f"It was recorded with {DISTRIBUTION} {version}, and this is {present}; that version replays it: "
            f"pip install {DISTRIBUTION}=={version}"
        )


def _version_in(manifest: Mapping[str, Any]) -> str:
    versions = manifest.get("versions")
    return str(cast("dict[str, Any]", versions).get(DISTRIBUTION, "")) if isinstance(versions, dict) else ""
