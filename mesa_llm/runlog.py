"""One SQLite file a run: what was asked and answered, what was decided, and what came of it.

The replies are what is paid for: each is committed as it arrives, and found again by a digest of everything that can
change it. The rest (decisions, outcomes, events, messages, one row a step) can be computed again from them, and is
written at the end of each step, together with the digest of the run so far.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from mesa_llm.canonical import canonical_json, compact_json
from mesa_llm.errors import ConfigError, TransportError
from mesa_llm.records import Decision, Event, Failure, Message, Outcome, Reply, Request, ToolCall
from mesa_llm.runlog_tables import SCHEMA, checked, connect, difference, failure_of, kept_prompt

if TYPE_CHECKING:
    import pandas as pd

Mode = Literal["record", "replay", "read"]

_REPLY_VALUES = attrgetter(*Reply.__slots__)

_KEEP = f"INSERT OR REPLACE INTO calls VALUES ({','.join('?' * 17)})"

_FORGET = "DELETE FROM answers WHERE time = :time AND agent = :agent AND question = :question AND rowid <= :before"

FORMAT = 1
"""Version of the file's layout."""


class RunLog:
    """Record, replay, resume and trace of one run.

    Attributes:
        path: The file, or None for a log in memory.
        mode: `record` (use what is recorded, keep the rest), `replay` (never ask), or `read` (look only).
        may_repeat: Whether a request may be one that was kept before, so that it is worth looking up.
    """

    def __init__(self, path: str | Path | None = None, mode: Mode = "record", retry_failures: bool = False) -> None:
        """Open a log, making the file if there is none.

        Args:
            path: File of the run; None keeps the log in memory.
            mode: `replay` and `read` open the file read-only; a replay keeps its new trace in memory.
            retry_failures: Ask again where the recording holds a failed request.

        Raises:
            ConfigError: If the file is missing (replay, read) or is no run log.
        """
        self.path = Path(path) if path is not None else None
        self.mode: Mode = mode
        self._retry_failures = retry_failures
        self._lock = threading.RLock()
        self._is_closed = False
        self._replies = self._open()
        self._trace = connect(":memory:") if mode == "replay" else self._replies
        if mode != "read":
            self._trace.executescript(SCHEMA)
        self.may_repeat = self._recorded.execute("SELECT count(*) FROM calls").fetchone()[0] > 0
        self._answers_before: int = self._db.execute("SELECT ifnull(max(rowid), 0) FROM answers").fetchone()[0]
        self._first_open = 0  # all steps before it are closed
        self._digest = hashlib.sha256()
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._facts: list[list[Any]] = []

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            return connect(":memory:")
        if self.mode != "record" and not self.path.is_file():
            raise ConfigError(f"there is no run log at {str(self.path)!r}; record a run with log= first")
        try:
            if self.mode != "record":
                return checked(connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return checked(connect(str(self.path)), write=True)
        except (sqlite3.DatabaseError, OSError) as error:
            raise ConfigError(f"{str(self.path)!r} cannot be used as a run log: {error}") from error

    @property
    def _recorded(self) -> sqlite3.Connection:
        """What was recorded before, to look replies up in."""
        self._demand_open()
        return self._replies

    @property
    def _db(self) -> sqlite3.Connection:
        """What this run writes."""
        self._demand_open()
        return self._trace

    def _demand_open(self) -> None:
        if self._is_closed:
            named = f" {str(self.path)!r}" if self.path is not None else ""
            raise ConfigError(f"the run log{named} is closed; to go on, make the model anew with the same log=")

    # -- what the run is

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run is: model, parameters, seed, versions. Empty before the first run."""
        with self._lock:
            rows = self._recorded.execute("SELECT name, value FROM manifest").fetchall()
        return {name: json.loads(value) for name, value in rows}

    def begin(self, identity: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """State what the run is; refuse a file that holds another one.

        Args:
            identity: What has to be equal for a recording to be gone on with.
            about: What is only noted: versions, options.

        Raises:
            ConfigError: If the file holds a run with another identity.
        """
        wanted = json.loads(canonical_json({"format": FORMAT, **identity}))
        found = self.manifest
        if found and self.mode == "record" and (told := "; ".join(_differing(found, wanted))):
            raise ConfigError(
                f"{str(self.path)!r} holds another run ({told}). Give another log=, or the same parameters."
            )
        if self.mode == "record":
            rows = [(name, canonical_json(value)) for name, value in {**wanted, **about}.items()]
            with self._lock, self._db:
                self._db.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", rows)

    # -- replies

    def find(self, request: Request) -> Reply | TransportError | None:
        """Look a reply up; a recorded failure comes back as the error it was."""
        self._demand_open()
        if not self.may_repeat:
            return None
        with self._lock:
            row = self._recorded.execute(
                "SELECT reply, error_kind, error FROM calls WHERE key = ?", (request.key,)
            ).fetchone()
        if row is None or (row[1] and self._retry_failures):
            return None
        if row[1]:
            return failure_of(row[1], row[2])
        reply = json.loads(row[0])
        calls = tuple(ToolCall(*call) for call in reply.pop("tool_calls"))
        return Reply(tool_calls=calls, **reply)

    def keep(self, request: Request, reply: Reply | TransportError, latency_s: float, *, commit: bool = True) -> None:
        """Record what came back, at once.

        Args:
            request: What was asked.
            reply: What came back, or why nothing did.
            latency_s: Seconds it took.
            commit: False if `commit` is called as soon as all that came at the same moment is kept.
        """
        if isinstance(reply, Reply):
            fields = dict(zip(Reply.__slots__, _REPLY_VALUES(reply), strict=True))
            fields["tool_calls"] = [[c.name, c.arguments, c.call_id] for c in reply.tool_calls]
            outcome = (compact_json(fields).decode(), None, None)
            cost = (reply.prompt_tokens, reply.reply_tokens, reply.dollars, latency_s, reply.attempts)
        else:
            outcome = (None, type(reply).__name__, str(reply))
            cost = (0, 0, None, latency_s, 1)
        salt = request.salt
        row = (request.key, salt.agent, salt.time, salt.purpose, salt.call, request.model, *kept_prompt(request))
        with self._lock:
            self._db.execute(_KEEP, (*row, *outcome, *cost))
        if commit:
            self.commit()

    def models(self) -> list[str]:
        """List the names, model and endpoint, that replies were recorded under."""
        with self._lock:
            return [name for (name,) in self._recorded.execute("SELECT DISTINCT model FROM calls ORDER BY model")]

    def commit(self) -> None:
        """Make sure that what was kept outlives the process."""
        with self._lock:
            if not self._is_closed:
                self._db.commit()

    def explain(self, request: Request) -> str:
        """Say how a request that was not recorded differs from what was."""
        salt = request.salt
        with self._lock:
            row = self._recorded.execute(
                "SELECT model, prompt, asked FROM calls WHERE agent=? AND time=? AND purpose=? AND call=?",
                (salt.agent, salt.time, salt.purpose, salt.call),
            ).fetchone()
        where = f"agent {salt.agent}, step {salt.time}, {salt.purpose} call {salt.call}"
        if row is None:
            return f"no reply is recorded for {where}; the recording ends earlier, or others acted then"
        return f"no reply is recorded for this request of {where}. It differs from the recorded one:\n" + difference(
            row, (request.model, *kept_prompt(request))
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
        self._demand_open()
        match record:
            case Decision():
                acts = [[call.name, call.arguments] for call in record.actions]
                told = canonical_json([acts, record.answer])
                facts = ["decision", time, record.agent, told]
                row = (time, record.agent, record.by, told, record.text, None, None, " ".join(record.keys))
                table = "decisions"
            case Failure():
                facts = ["failure", time, record.agent, record.kind]
                row = (time, record.agent, record.by, None, None, record.kind, record.reason, " ".join(record.keys))
                table = "decisions"
            case Outcome():
                arguments, result = canonical_json(record.arguments), canonical_json(record.result)
                facts = ["outcome", time, record.agent, record.action, arguments, record.ok, result]
                row = (time, record.agent, record.action, arguments, record.ok, result)
                table = "actions"
            case Event():
                told = canonical_json(record.facts)
                facts = ["event", time, record.source, record.kind, told]
                row = (time, record.source, record.kind, told, record.text)
                table = "events"
            case Message():
                told = canonical_json(record.recipients)
                facts = ["message", time, record.sender, told, record.text]
                row = (time, record.sender, told, record.text)
                table = "messages"
        self._facts.append(facts)
        self._rows.setdefault(table, []).append(row)

    def end_step(self, time: int, row: Mapping[str, Any]) -> str:
        """Close a step: extend the digest, and write the step's trace in one transaction.

        Args:
            time: The step.
            row: What the model collected in it.

        Returns:
            The digest of the run so far.
        """
        collected = canonical_json(row)
        told = json.dumps([self._facts, collected], ensure_ascii=False)
        self._digest.update(told.encode("utf-8", "surrogatepass"))
        digest = self.digest
        self.commit()
        written_anew = (min(self._first_open, time), time)  # with the steps that broke since the last one was closed
        with self._lock, self._db:
            for table in ("decisions", "actions", "events", "messages", "steps"):
                self._db.execute(f"DELETE FROM {table} WHERE time BETWEEN ? AND ?", written_anew)
                if rows := self._rows.get(table):
                    slots = ",".join("?" * len(rows[0]))
                    self._db.executemany(f"INSERT INTO {table} VALUES ({slots})", rows)
            self._db.execute("INSERT INTO steps VALUES (?, ?, ?)", (time, collected, digest))
        self._first_open = time + 1
        self._facts.clear()
        self._rows.clear()
        return digest

    @property
    def digest(self) -> str:
        """Digest of all steps closed so far: decisions, outcomes, events, messages, collected rows."""
        return self._digest.hexdigest()

    # -- reading

    def table(self, name: str) -> pd.DataFrame:
        """Read a table: `calls`, `decisions`, `actions`, `events`, `messages`, `steps` or `answers`."""
        import pandas as pd

        source = self._recorded if name == "calls" else self._db
        with self._lock:
            return pd.read_sql_query(f"SELECT * FROM {name} ORDER BY rowid", source)

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
        """Give the reasons of all failed decisions, in order."""
        with self._lock:
            rows = self._db.execute("SELECT reason FROM decisions WHERE kind IS NOT NULL ORDER BY rowid")
            return [reason for (reason,) in rows]

    def calls_of(self, agent: int, limit: int = 20) -> list[dict[str, Any]]:
        """Give the latest requests made for an agent with their replies, newest first."""
        with self._lock:
            cursor = self._recorded.execute(
                "SELECT * FROM calls WHERE agent = ? ORDER BY time DESC, rowid DESC LIMIT ?", (agent, limit)
            )
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def keep_answer(self, row: Mapping[str, Any]) -> None:
        """Note an answer given aside; it is no part of the run's digest.

        It replaces what an earlier run with this log was answered to the same question, by the same agent, in the
        same step.

        Args:
            row: time, agent, question, answer and failure.
        """
        with self._lock, self._db:
            self._db.execute("INSERT INTO answers VALUES (:time, :agent, :question, :answer, :failure)", row)
            self._db.execute(_FORGET, {**row, "before": self._answers_before})

    def close(self) -> None:
        """Close the file."""
        self.commit()
        with self._lock:
            self._is_closed = True
            self._replies.close()
            self._trace.close()


def _differing(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Name what differs between two runs; of their parameters, each by itself."""
    for name, value in wanted.items():
        before = found.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            yield from _differing(cast("dict[str, Any]", before), cast("dict[str, Any]", value))
        elif before != value:
            yield f"{name}: {before!r}, now {value!r}"
