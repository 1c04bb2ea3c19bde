"""The file of a run log, its tables, and how requests are kept in them and compared."""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections.abc import Sequence
from functools import lru_cache

from mesa_llm import errors
from mesa_llm.canonical import canonical_json
from mesa_llm.errors import TransportError
from mesa_llm.records import Request, ToolSpec

SCHEMA = """
CREATE TABLE IF NOT EXISTS manifest (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, agent INTEGER, time INTEGER, purpose TEXT, call INTEGER, model TEXT,
    prompt TEXT, asked TEXT, options TEXT, reply TEXT, error_kind TEXT, error TEXT,
    prompt_tokens INTEGER, reply_tokens INTEGER, dollars REAL, latency_s REAL, attempts INTEGER);
CREATE INDEX IF NOT EXISTS calls_of_agent ON calls (agent, time);
CREATE TABLE IF NOT EXISTS decisions (
    time INTEGER, agent INTEGER, by TEXT, decided TEXT, text TEXT, kind TEXT, reason TEXT, keys TEXT, label TEXT);
CREATE TABLE IF NOT EXISTS actions (
    time INTEGER, agent INTEGER, action TEXT, arguments TEXT, ok INTEGER, result TEXT, label TEXT);
CREATE TABLE IF NOT EXISTS events (time INTEGER, source TEXT, kind TEXT, facts TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS messages (time INTEGER, sender INTEGER, recipients TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS steps (time INTEGER PRIMARY KEY, collected TEXT, digest TEXT);
CREATE TABLE IF NOT EXISTS answers (time INTEGER, agent INTEGER, question TEXT, answer TEXT, failure TEXT,
    purpose TEXT);
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


def checked(database: sqlite3.Connection, *, write: bool = False) -> sqlite3.Connection:
    """Give a database back if it is a run log; close it, untouched, and refuse it if it holds something else.

    Args:
        database: The database.
        write: Make an empty one a run log, and prepare to write.

    Raises:
        sqlite3.DatabaseError: If it is no run log.
    """
    try:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        fields = [field[1] for field in database.execute("PRAGMA table_info(manifest)")]
        if tables and fields != ["name", "value"]:
            raise sqlite3.DatabaseError(f"it is a database of something else (tables: {', '.join(tables)})")
        if write:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.executescript(SCHEMA)
        database.execute("SELECT 1 FROM manifest, calls, steps, answers LIMIT 0")
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


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
        recorded: Model, prompt and what else was asked, as kept.
        now: The same of the new request.
    """
    before, after = (_lines(kept[0], kept[1], kept[2]) for kept in (recorded, now))
    shown = list(difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=1))
    return "\n".join(shown[:40]) or "only the run seed or the options differ"


def _lines(model: str, prompt: str, asked: str) -> list[str]:
    lines = [f"model: {model}"]
    for message in json.loads(prompt):
        lines += [f"{message['role']}: {line}" for line in str(message["content"]).splitlines() or [""]]
    fields = json.loads(asked)
    return lines + [f"{name}: {canonical_json(value)}" for name, value in fields.items()]


def failure_of(kind: str, text: str) -> TransportError:
    """Make a recorded failure the error it was."""
    found = getattr(errors, kind, TransportError)
    return found(text) if isinstance(found, type) and issubclass(found, TransportError) else TransportError(text)
