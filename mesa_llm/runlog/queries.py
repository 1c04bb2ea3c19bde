"""Read a run log as values, rows and tables."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mesa_llm._deprecated import FAILURES, with_current_names
from mesa_llm.errors import ConfigError
from mesa_llm.records import Usage
from mesa_llm.runlog.compact import RECORDED_ON
from mesa_llm.runlog.database import Database, Mode
from mesa_llm.runlog.layout import columns
from mesa_llm.runlog.tables import Texts, keys_of, loaded

if TYPE_CHECKING:
    import pandas as pd

_CACHED = """total(CASE WHEN reply LIKE '%"cached_tokens":%' AND json_valid(reply)
    THEN json_extract(reply, '$.cached_tokens') ELSE 0 END)"""

_USAGE = f"""
SELECT model, count(*), count(error_kind), sum(prompt_tokens), sum(reply_tokens), total(dollars), avg(latency_s),
    sum(attempts), {_CACHED}
FROM calls WHERE :agent IS NULL OR agent = :agent GROUP BY model ORDER BY model"""

_PAID = f"""
SELECT count(reply), sum(prompt_tokens), sum(reply_tokens), total(dollars), sum(attempts), {_CACHED} FROM calls"""

UNANSWERED = "unanswered"
"""Manifest key: usage of requests that never got a reply, by model."""


_FACTS = {
    "decisions": "agent, decision, kind, label",
    "actions": "agent, action, arguments, ok, result, label",
    "events": "source, kind, facts",
    "messages": "sender, recipients, text",
    "steps": "measures",
}
"""Table → columns covered by the digest."""

BATCHES = "batches"
"""Manifest key: the batches of a run, in the order in which they were created."""


class Queries(Database):
    """A readable run log."""

    def __init__(self, path: str | Path | None, mode: Mode) -> None:
        """Open the file, as `Database` does."""
        super().__init__(path, mode)
        self._texts = Texts(self._replies, self._uncommitted)

    @property
    def format(self) -> int:
        """Format version of the recording."""
        return self._format

    @property
    def manifest(self) -> dict[str, Any]:
        """Identity of the run and further facts: model, parameters, seed, versions. Empty before the first run."""
        rows = self._query(self._recorded, "SELECT name, value FROM manifest")
        try:
            return {str(name): with_current_names(loaded(value)) for name, value in rows}
        except ValueError as error:
            raise self._damage_error(error) from error

    @property
    def recorded_on(self) -> str:
        """Date on which the recording began, as `2026-11-26`; empty: unknown.

        Raises:
            ConfigError: If the file is damaged.
        """
        date = self.manifest.get(RECORDED_ON)
        rows = self._query(self._recorded, "SELECT since FROM writer LIMIT 1")
        return str(date or next((str(since)[:10] for (since,) in rows if since), ""))

    def models(self) -> list[str]:
        """List the models that replied at least once, by their names in the log (model and endpoint).

        Raises:
            ConfigError: If the file is damaged.
        """
        query = "SELECT DISTINCT model FROM calls WHERE error_kind IS NULL ORDER BY model"
        return [name for (name,) in self._query(self._recorded, query)]

    def recorded_keys(self) -> frozenset[str]:
        """Return the keys of all requests with a recorded reply or failure.

        Raises:
            ConfigError: If the file is damaged.
        """
        return frozenset(bytes(key).hex() for (key,) in self._query(self._recorded, "SELECT key FROM calls"))

    def table(self, name: str) -> pd.DataFrame:
        """Read a table: `calls`, `decisions`, `actions`, `events`, `messages`, `steps` or `answers`.

        Decisions and actions of an `LLMModel` appear once their step is over.

        Raises:
            ConfigError: If there is no such table, or the file is damaged.
        """
        import pandas as pd

        frame = pd.DataFrame.from_records(list(self.rows(name)), columns=columns()[name])
        return frame.astype({"ok": bool}) if name == "actions" else frame

    def rows(self, name: str, agent: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Read a table row by row, in constant memory, with prompts and keys as text.

        Args:
            name: See `table`.
            agent: Mesa `unique_id` to filter by, if the table has an agent column; None: all rows.

        Raises:
            ConfigError: If there is no such table, or the file is damaged.
        """
        if name not in columns():
            raise ConfigError(f"a run log has no table {name!r}; it has {', '.join(columns())}")
        source = self._recorded if name in ("calls", "texts") else self._db
        condition = " AND agent = :agent" if agent is not None and "agent" in columns()[name] else ""
        selection = f"SELECT rowid, {self._columns_of(name, source)} FROM {name}"
        query = f"{selection} WHERE rowid > :after{condition} ORDER BY rowid LIMIT 500"
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
        """Replace the numbers of texts by the texts, and keys in bytes by hexadecimal digits; missing facts by none."""
        if table == "decisions":
            *values, keys, label, reading = row
            return *values, keys_of(keys), label, reading
        if table == "actions":
            *values, facts = row
            return *values, facts or "{}"  # none, or a log from before format 5
        if table != "calls":
            return tuple(row)
        key, agent, time, purpose, call, model, prompt, parameters, options, *rest = row
        with self._lock:
            texts = self._texts.prompt(prompt), self._texts.parameters(parameters), self._texts.text(options)
        return keys_of(key), agent, time, purpose, call, model, *texts, *rest

    def rows_of(self, name: str, time: Any, agent: Any) -> list[tuple[Any, ...]]:
        """Read the rows of a table for one agent and step, in the form of `rows`.

        Args:
            name: `calls`, `decisions`, `actions` or `answers`.
            time: The step.
            agent: Mesa `unique_id` of the agent.

        Raises:
            ConfigError: If the file is damaged.
        """
        source = self._recorded if name == "calls" else self._db
        query = f"SELECT {self._columns_of(name, source)} FROM {name} WHERE time = ? AND agent = ? ORDER BY rowid"
        return [self._readable(name, row) for row in self._query(source, query, (time, agent))]

    def latest(self, name: str, size: int, skip: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Read the last rows of a table, for paging.

        Args:
            name: See `table`.
            size: Maximum number of rows.
            skip: Number of rows to skip at the end.

        Returns:
            The rows by column, newest first, and the number of rows in the table.

        Raises:
            ConfigError: If there is no such table, or the file is damaged.
        """
        if name not in columns():
            raise ConfigError(f"a run log has no table {name!r}; it has {', '.join(columns())}")
        source = self._recorded if name in ("calls", "texts") else self._db
        query = f"SELECT {self._columns_of(name, source)} FROM {name} ORDER BY rowid DESC LIMIT ? OFFSET ?"
        rows = self._query(source, query, (size, skip))
        ((count,),) = self._query(source, f"SELECT count(*) FROM {name}")
        return [dict(zip(columns()[name], self._readable(name, row), strict=True)) for row in rows], count

    def step_facts(self, step: int) -> list[list[Any]]:
        """Read what the digest of a step covers: decisions, outcomes, events, messages and collected data.

        Raises:
            ConfigError: If the file is damaged.
        """
        facts: list[list[Any]] = []
        for table, names in _FACTS.items():
            query = f"SELECT {names} FROM {table} WHERE time = ? ORDER BY rowid"
            rows = [[value_of(value) for value in row] for row in self._query(self._db, query, (step,))]
            if table == "decisions":
                kind = names.split(", ").index("kind")
                rows = [[*row[:kind], FAILURES.get(row[kind], row[kind]), *row[kind + 1 :]] for row in rows]
            facts.append(rows)
        return facts

    def rows_at(self, table: str, step: int) -> list[tuple[Any, ...]]:
        """Read the rows of a table of the trace for one step, as they are stored.

        Raises:
            ConfigError: If the file is damaged.
        """
        query = f"SELECT {self._columns_of(table, self._db)} FROM {table} WHERE time = ? ORDER BY rowid"
        return self._query(self._db, query, (step,))

    def trace_digest(self, last: int) -> str:
        """Return a digest of all that the log holds of the steps up to one, but not of requests and replies.

        Args:
            last: The last step.

        Raises:
            ConfigError: If the file is damaged.
        """
        digest = hashlib.sha256()
        for table in _FACTS:
            query = f"SELECT {self._columns_of(table, self._db)} FROM {table} WHERE time <= ? ORDER BY rowid"
            for row in self._query(self._db, query, (last,)):
                digest.update(repr((table, *row)).encode())
        return digest.hexdigest()

    def steps_in(self, table: str) -> set[Any]:
        """Return the steps of which a table of the trace holds rows.

        Raises:
            ConfigError: If the file is damaged.
        """
        return {step for (step,) in self._query(self._db, f"SELECT DISTINCT time FROM {table}")}

    def has_values(self, table: str, column: str) -> bool:
        """Check whether any row of a table has a value in a column, which may be one of a later format.

        Raises:
            ConfigError: If the file is damaged.
        """
        selected = self._columns_of(table, self._db)
        query = f"SELECT 1 FROM (SELECT {selected} FROM {table}) WHERE {column} IS NOT NULL LIMIT 1"
        return bool(self._query(self._db, query))

    def request_at(self, row_id: int) -> tuple[Any, ...]:
        """Read a recorded request: purpose, call, model, and the texts of its prompt, parameters and options.

        Args:
            row_id: Its row in the table of calls.

        Raises:
            ConfigError: If the file is damaged.
        """
        query = "SELECT purpose, call, model, prompt, parameters, options FROM calls WHERE rowid = ?"
        ((*where, prompt, parameters, options),) = self._query(self._recorded, query, (row_id,))
        with self._lock:
            return *where, self._texts.prompt(prompt), self._texts.parameters(parameters), self._texts.text(options)

    def purposes_but(self, row_ids: Collection[int]) -> Counter[str]:
        """Count the recorded requests by purpose, without those in some rows.

        Raises:
            ConfigError: If the file is damaged.
        """
        rows = self._query(self._recorded, "SELECT rowid, purpose FROM calls ORDER BY rowid")
        return Counter(str(purpose) for row_id, purpose in rows if row_id not in row_ids)

    def agents(self) -> list[int]:
        """List the Mesa `unique_id` of every agent with a request or a decision, in order."""
        tables = {"calls": self._recorded, "decisions": self._db, "answers": self._db}
        batches = [self._query(source, f"SELECT DISTINCT agent FROM {name}") for name, source in tables.items()]
        return sorted({agent for rows in batches for (agent,) in rows if isinstance(agent, int)})

    def calls(self) -> pd.DataFrame:
        """Read every request with its reply or error, tokens, US dollars and latency in seconds."""
        return self.table("calls")

    def decisions(self) -> pd.DataFrame:
        """Read every decision; `kind` and `reason` are set for failures, `reading` for parsed replies."""
        return self.table("decisions")

    def probabilities(self) -> pd.DataFrame:
        """Read the probabilities of all choices, of a run with `scoring="probabilities"`.

        Returns:
            A row per request and choice: `key`, `time`, `agent`, `purpose`, `call`, `label`, `choice`, `probability`
            (adding up to 1 over the choices), and `off_list`, the probability that lay on none of them.
        """
        import pandas as pd

        labels: dict[str, str] = {}
        for *_, keys, label, _ in self.rows("decisions"):
            labels |= dict.fromkeys(str(keys).split(), label or "")
        rows: list[tuple[Any, ...]] = []
        for values in self.rows("calls"):
            call = dict(zip(columns()["calls"], values, strict=True))
            if call["reply"] is None:
                continue
            reply = loaded(call["reply"])
            place = (
                call["key"],
                call["time"],
                call["agent"],
                call["purpose"],
                call["call"],
                labels.get(call["key"], ""),
            )
            for choice, probability in reply.get("probabilities", {}).items():
                rows.append((*place, choice, probability, reply.get("off_list", 0.0)))
        names = ["key", "time", "agent", "purpose", "call", "label", "choice", "probability", "off_list"]
        return pd.DataFrame.from_records(rows, columns=names)

    def actions(self) -> pd.DataFrame:
        """Read every action with its result and its facts (JSON); `ok` is False where it was refused."""
        return self.table("actions")

    def events(self) -> pd.DataFrame:
        """Read every event that the worlds reported."""
        return self.table("events")

    def messages(self) -> pd.DataFrame:
        """Read every message between agents."""
        return self.table("messages")

    def steps(self) -> pd.DataFrame:
        """Read one row per step: the data that the model collected, and the digest so far."""
        return self.table("steps")

    def failures(self) -> list[str]:
        """List the reasons of all failed decisions, in order."""
        rows = self._query(self._db, "SELECT reason FROM decisions WHERE kind IS NOT NULL ORDER BY rowid")
        return [str(reason) for (reason,) in rows]

    def calls_of(self, agent: int, limit: int = 20, last_step: int | None = None) -> list[dict[str, Any]]:
        """Return an agent's latest requests with their replies, newest first.

        Args:
            agent: Mesa `unique_id` of the agent.
            limit: Maximum number of requests.
            last_step: Last step to include; None: no limit, so a replay includes later steps of the recording.
        """
        source = self._recorded
        query = (
            f"SELECT {self._columns_of('calls', source)} FROM calls WHERE agent = ? AND (? IS NULL OR time <= ?) "
            "ORDER BY time DESC, rowid DESC LIMIT ?"
        )
        rows = self._query(source, query, (agent, last_step, last_step, limit))
        return [dict(zip(columns()["calls"], self._readable("calls", row), strict=True)) for row in rows]

    def usage(self, agent: int | None = None) -> pd.DataFrame:
        """Sum the usage of a run, one row per language model.

        Args:
            agent: Mesa `unique_id` of the agent; None: all agents.

        Returns:
            Columns model, calls, failed, prompt_tokens, reply_tokens, dollars, mean_latency_s, requests (including
            retries and requests without a reply), cached_tokens.
        """
        import pandas as pd

        unanswered = self._unanswered() if agent is None else {}
        rows: list[tuple[Any, ...]] = []
        for model, *counts, latency_s, requests, cached in self._query(self._recorded, _USAGE, {"agent": agent}):
            calls, failed, prompt, reply, dollars = counts
            paid = Usage(0, 0, prompt, reply, dollars, 0, requests, int(cached)) + unanswered.pop(model, Usage())
            rows.append((model, calls, failed, latency_s, paid))
        rows += [(model, 0, 0, None, paid) for model, paid in unanswered.items()]
        before, after = ("prompt_tokens", "reply_tokens", "dollars"), ("requests", "cached_tokens")
        table = [
            [*first, *(getattr(paid, name) for name in before), latency_s, *(getattr(paid, name) for name in after)]
            for *first, latency_s, paid in rows
        ]
        return pd.DataFrame(table, columns=["model", "calls", "failed", *before, "mean_latency_s", *after])

    def paid(self) -> Usage:
        """Sum the usage of all requests ever sent for this run, in this session and earlier ones.

        Raises:
            ConfigError: If the file is damaged.
        """
        ((calls, prompt, reply, dollars, requests, cached),) = self._query(self._recorded, _PAID)
        paid = Usage(calls, 0, prompt or 0, reply or 0, dollars, 0, requests or 0, int(cached))
        return sum(self._unanswered().values(), paid)

    def _unanswered(self) -> dict[str, Usage]:
        """Return, by model, the usage of requests that have no reply, including those in batches not collected yet."""
        found = unanswered_in(self.manifest)
        for model, used in taken_by_batches(self).items():
            found[model] = found.get(model, Usage()) + used
        return found


def unanswered_in(manifest: Mapping[str, Any]) -> dict[str, Usage]:
    """Read the usage, by model, of requests that never got a reply; non-numeric values are ignored."""
    recorded = manifest.get(UNANSWERED)
    usage: dict[str, Usage] = {}
    for model, fields in cast("Mapping[str, Any]", recorded).items() if isinstance(recorded, dict) else ():
        numbers = cast("Mapping[str, Any]", fields) if isinstance(fields, dict) else {}
        kept = {name: value for name, value in numbers.items() if name in _FIELDS and isinstance(value, int | float)}
        usage[model] = Usage(**cast("dict[str, Any]", kept))
    return usage


_FIELDS = frozenset({"requests", "prompt_tokens", "reply_tokens", "cached_tokens", "dollars"})
"""Usage fields that are recorded for unanswered requests."""


def value_of(stored: Any) -> Any:
    """Parse a column that may hold JSON; return other text unchanged."""
    try:
        return loaded(stored) if isinstance(stored, str) else stored
    except ValueError:
        return stored


def taken_by_batches(runlog: Queries) -> dict[str, Usage]:
    """Return, by model, what the requests are taken to cost that are in batches and have no recorded reply."""
    found: dict[str, Usage] = {}
    n_open: dict[int, int] = {}
    batches = batches_in(runlog.manifest)
    for batch in open_in(batches, runlog).values():
        n_open[id(batch)] = n_open.get(id(batch), 0) + 1
    for batch in (batch for batch in batches if id(batch) in n_open):
        share = n_open[id(batch)] / max(len(batch["keys"]), 1)
        taken = cast("dict[str, dict[str, Any]]", batch.get("taken")) or {"": {}}
        for index, (model, fields) in enumerate(taken.items()):
            n_tokens, dollars = (float(fields.get(name) or 0) for name in ("prompt_tokens", "dollars"))
            requests = 0 if index else n_open[id(batch)]
            used = Usage(prompt_tokens=round(share * n_tokens), dollars=share * dollars, requests=requests)
            found[model] = found.get(model, Usage()) + used
    return found


def batches_in(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the batches of a manifest, which may be damaged.

    Each has an id, an address (`at`) and a number of requests and, until it is collected, the keys of these. While a
    batch is being created it has, in place of the id, a `mark` and the time in seconds since 1970 (`since`).
    """
    recorded = manifest.get(BATCHES)
    batches = cast("list[Any]", recorded) if isinstance(recorded, list) else []
    return [cast("dict[str, Any]", batch) for batch in batches if _is_batch(batch)]


def open_in(batches: Sequence[dict[str, Any]], runlog: Queries) -> dict[tuple[str, str], dict[str, Any]]:
    """Return address and key of each request without a recorded reply → the last batch that holds it."""
    found = {(batch["at"], str(key)): batch for batch in batches for key in batch.get("keys", ())}
    recorded = runlog.recorded_keys() if found else frozenset[str]()
    return {place: batch for place, batch in found.items() if place[1] not in recorded}


def _is_batch(batch: object) -> bool:
    fields = cast("dict[str, Any]", batch) if isinstance(batch, dict) else {}
    is_named = isinstance(fields.get("id"), str) or (
        isinstance(fields.get("mark"), str) and isinstance(fields.get("since"), int | float)
    )
    has_keys = isinstance(fields.get("keys", []), list) and isinstance(fields.get("taken", {}), dict)
    return is_named and has_keys and isinstance(fields.get("at"), str) and isinstance(fields.get("requests"), int)
