"""The file of a run log, its tables, and how requests are kept in them and compared."""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache, lru_cache

from mesa_llm import errors
from mesa_llm.canonical import canonical_json
from mesa_llm.errors import TransportError
from mesa_llm.records import Request, ToolSpec

FORMAT = 2
"""Version of the layout; it stands in `PRAGMA user_version`, and in the manifest."""

SCHEMA = f"""
PRAGMA user_version={FORMAT};
CREATE TABLE IF NOT EXISTS manifest (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS writer (pid INTEGER, host TEXT, since TEXT);
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, agent INTEGER, time INTEGER, purpose TEXT, call INTEGER, model TEXT,
    prompt TEXT, asked TEXT, options TEXT, reply TEXT, error_kind TEXT, error TEXT,
    prompt_tokens INTEGER, reply_tokens INTEGER, dollars REAL, latency_s REAL, attempts INTEGER);
CREATE INDEX IF NOT EXISTS calls_of_agent ON calls (agent, time);
CREATE TABLE IF NOT EXISTS decisions (
    time INTEGER, agent INTEGER, by TEXT, decided TEXT, text TEXT, kind TEXT, reason TEXT, keys TEXT);
CREATE TABLE IF NOT EXISTS actions (
    time INTEGER, agent INTEGER, action TEXT, arguments TEXT, ok INTEGER, result TEXT);
CREATE TABLE IF NOT EXISTS events (time INTEGER, source TEXT, kind TEXT, facts TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS messages (time INTEGER, sender INTEGER, recipients TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS steps (time INTEGER PRIMARY KEY, collected TEXT, digest TEXT);
CREATE TABLE IF NOT EXISTS answers (time INTEGER, agent INTEGER, question TEXT, answer TEXT, failure TEXT);
CREATE INDEX IF NOT EXISTS decisions_at ON decisions (time);
CREATE INDEX IF NOT EXISTS actions_at ON actions (time);
CREATE INDEX IF NOT EXISTS events_at ON events (time);
CREATE INDEX IF NOT EXISTS messages_at ON messages (time);
CREATE INDEX IF NOT EXISTS answers_at ON answers (time, agent);
"""
"""Layout of a run log."""


def connect(path: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a database for all threads."""
    return sqlite3.connect(path, check_same_thread=False, uri=uri, timeout=30)


@cache
def columns() -> dict[str, list[str]]:
    """Return the columns of each table of a run log."""
    with closing(connect(":memory:")) as empty:
        empty.executescript(SCHEMA)
        tables = [name for (name,) in empty.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: [field[1] for field in empty.execute(f"PRAGMA table_info({table})")] for table in tables}


def kept_prompt(request: Request) -> tuple[str, str, str]:
    """Give what is kept of a request: its messages, what else was asked with them, and the options."""
    messages = _MESSAGES.encode([message.to_wire() for message in request.messages])
    schema = "null" if request.schema is None else canonical_json(request.schema)
    asked = f'{{"schema":{schema},"settings":{request.settings_text},{_told_of(request.tools)}}}'
    return messages, asked, canonical_json(request.options) if request.options else "{}"


_MESSAGES = json.JSONEncoder(ensure_ascii=False)


@lru_cache(maxsize=1024)
def _told_of(tools: tuple[ToolSpec, ...]) -> str:
    """Give what is kept of tools: the same for every request that offers them."""
    names, digests = [tool.name for tool in tools], [tool.digest[:12] for tool in tools]
    return f'"tools":{canonical_json(names)},"tools_digest":{canonical_json(digests)}'


def difference(recorded: Sequence[str], now: Sequence[str]) -> str:
    """Show how two kept requests differ, line by line.

    Args:
        recorded: Model, prompt, what else was asked, and the options, as kept.
        now: The same of the new request.
    """
    before, after = (_lines(*kept) for kept in (recorded, now))
    shown = list(difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=1))
    return "\n".join(shown[:40]) or "only the run seed differs"


def _lines(model: str, prompt: str, asked: str, options: str) -> list[str]:
    lines = [f"model: {model}"]
    for message in json.loads(prompt):
        lines += [f"{message['role']}: {line}" for line in str(message["content"]).splitlines() or [""]]
    fields = {**json.loads(asked), "options": json.loads(options)}
    return lines + [f"{name}: {canonical_json(value)}" for name, value in fields.items()]


def failure_of(kind: str, text: str) -> TransportError:
    """Make a recorded failure the error it was."""
    found = getattr(errors, kind, TransportError)
    return found(text) if isinstance(found, type) and issubclass(found, TransportError) else TransportError(text)
