"""Store requests and replies in the tables of a run log, and compare them."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import sqlite3
import struct
import weakref
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from mesa_llm import errors
from mesa_llm._deprecated import FAILURES
from mesa_llm.canonical import canonical_json, compact_json, schema_json
from mesa_llm.errors import ConfigError, TransportError
from mesa_llm.records import ChatMessage, Reply, Request, ToolCall, ToolSpec

IN_COLUMNS = ("prompt_tokens", "reply_tokens", "dollars", "latency_s", "attempts")
"""Reply fields with their own columns; the others, if not empty, are stored as one JSON object."""

OUTCOME = ("reply", "error_kind", "error", *IN_COLUMNS)
"""Columns with the outcome of a call."""

CHECKED = ("checksum", "key", "agent", "time", *OUTCOME)
"""Columns of a call that `is_whole_call` checks."""

SQL_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors from reading a damaged file; `UnicodeDecodeError` if SQLite's message quotes damaged bytes."""

LOST = "[this text is lost]"
"""Placeholder for a text that a damaged log has lost."""

INSERT_TEXT = "INSERT OR REPLACE INTO texts VALUES (?, ?, ?)"

Statement = tuple[str, list[tuple[Any, ...]]]
"""A statement of SQL, and the rows that it is executed with."""

MAX_KNOWN = 4_000_000
"""Number of characters after which a text cache is cleared.

Lines of prompts that were used since the last clearing are kept.
"""

MAX_RECALLED = 5_000
"""Number of texts that a resumed run loads from the beginning and from the end of the log."""

MAX_PROMPT = 16_000_000
"""Maximum number of characters of a prompt on reading, since a damaged log may repeat a long line many times."""

MAX_SPAN = 100_000
"""Maximum number of lines in a span, since a damaged span could fill the memory."""


def close_with(owner: object, *databases: sqlite3.Connection) -> None:
    """Close databases when their owner is garbage-collected or Python exits; forks leave them to their parent."""
    weakref.finalize(owner, _close_own, os.getpid(), databases)


def _close_own(process: int, databases: tuple[sqlite3.Connection, ...]) -> None:
    if process == os.getpid():
        for database in databases:
            database.close()


class Texts:
    """The texts of all requests, each stored once. Prompts are stored by line, since they have many lines in common.

    A message is stored as the ids of its lines, with consecutive ids as a span: `"1-25 31 40"`.
    """

    def __init__(self, database: sqlite3.Connection, uncommitted: list[Statement]) -> None:
        """Store the database; nothing is read yet.

        Args:
            database: The run log.
            uncommitted: Takes what is written within the open transaction; whoever commits it empties the list.
        """
        self._database = database
        self._uncommitted = uncommitted
        self._next = 0  # id of the next new text; 0: not read yet
        self._numbers: dict[str, int] = {}
        self._older_numbers: dict[str, int] = {}  # ids of texts not used since the last clearing
        self._stored_contents: dict[str, str] = {}
        self._texts: dict[int, str] = {}
        self._new: list[tuple[int, int, str]] = []
        self._written_size = self._contents_size = self._read_size = 0

    def kept(self, request: Request) -> tuple[str, int, int]:
        """Queue the new texts of a request for `write`.

        Returns:
            References of a call to its texts: its messages as JSON, and the ids of its parameters and options.
        """
        if not self._next:
            self._next = self._database.execute("SELECT ifnull(max(id), 0) FROM texts").fetchone()[0] + 1
            self._recall()
        if self._written_size > MAX_KNOWN:
            self._older_numbers, self._numbers = self._numbers, {}
            self._written_size = 0
        if self._contents_size > MAX_KNOWN:
            self._stored_contents.clear()
            self._contents_size = 0
        messages: list[tuple[str, str] | tuple[str, str, int]] = []
        for message in request.messages:
            content = self._stored_contents.get(message.content)
            if content is None:
                content = self._write(message.content)
                if message is not request.messages[-1]:  # later prompts repeat all but the last message
                    self._stored_contents[message.content] = content
                    self._contents_size += len(message.content)
            if message.tool_calls or message.call_id or message.images:
                rest = {name: value for name, value in message.to_wire().items() if name not in ("role", "content")}
                if message.images:
                    rest["images"] = [image.note for image in message.images]
                messages.append((message.role, content, self.number(_PLAIN.encode(rest))))
            else:
                messages.append((message.role, content))
        prompt, parameters = compact_json(messages).decode(), _parameters(request)
        if request.sent:
            parameters = f'{parameters[:-1]}{_SENT}{self._write(request.sent)}"}}'
        return prompt, self.number(parameters), self.number(request.options_text)

    def write(self) -> None:
        """Write the queued texts within the open transaction."""
        if self._new:
            texts, self._new = self._new, []
            self._uncommitted += ((INSERT_TEXT, texts),)
            self._database.executemany(INSERT_TEXT, texts)

    def collect(self) -> None:
        """Add the queued texts to what is not committed, without writing them."""
        texts, self._new = self._new, []
        self._uncommitted += ((INSERT_TEXT, texts),) if texts else ()

    def _recall(self) -> None:
        """Load the first and the last stored texts, which are most likely to be reused."""
        last = self._next - MAX_RECALLED
        recalled = "SELECT text, id FROM texts WHERE id <= ? OR id > ? ORDER BY id DESC"
        for text, text_id in self._database.execute(recalled, (MAX_RECALLED, last)):
            self._numbers[text] = text_id
            self._written_size += len(text)
            if self._written_size > MAX_KNOWN // 2:
                break

    def number(self, text: str) -> int:
        """Return the id of a text; a new text is queued for `write`."""
        text_id = self._numbers.get(text)
        if text_id is not None:
            return text_id
        text_id = self._older_numbers.get(text)
        if text_id is None:
            text_id, self._next = self._next, self._next + 1
            stored = storable(text)
            self._new.append((text_id, checksum(stored), stored))
            self._written_size += len(text)
        self._numbers[text] = text_id
        return text_id

    def _write(self, content: str) -> str:
        """Encode the content of a message as the ids of its lines."""
        lines = content.split("\n")
        spans: list[int | str] = []
        first = last = -1
        for line, known in zip(lines, map(self._numbers.get, lines), strict=True):
            text_id = known or self.number(line)
            if text_id == last + 1:
                last = text_id
                continue
            if last > first:
                spans[-1] = f"{first}-{last}"
            spans.append(text_id)
            first = last = text_id
        if last > first:
            spans[-1] = f"{first}-{last}"
        return " ".join(map(str, spans))

    def text(self, text_id: object) -> str:
        """Return the text with an id; `LOST` if it is missing from a damaged log."""
        if not isinstance(text_id, int):
            return LOST
        text = self._texts.get(text_id)
        if text is None:
            try:
                row = self._database.execute("SELECT text FROM texts WHERE id = ?", (text_id,)).fetchone()
            except sqlite3.DatabaseError:
                row = None
            text = row[0] if row is not None and isinstance(row[0], str) else LOST
            if self._read_size > MAX_KNOWN:
                self._texts.clear()
                self._read_size = 0
            self._texts[text_id] = text
            self._read_size += len(text)
        return text

    def parameters(self, text_id: object) -> str:
        """Return the parameters of a call as JSON, with what its transport has sent beside the messages.

        Args:
            text_id: The call's `parameters` column.
        """
        text = self.text(text_id)
        before, mark, spans = text.removesuffix('"}').rpartition(_SENT)
        if not mark:
            return text
        try:
            sent = "\n".join(self._lines(spans))
        except ValueError:
            return text
        return f"{before}{_SENT[:-1]}{_PLAIN.encode(sent)}}}"

    def prompt(self, stored: object) -> str:
        """Return the messages of a call as JSON, in the form of OpenAI's chat completions.

        Args:
            stored: The call's `prompt` column.

        Raises:
            ConfigError: If it has more than `MAX_PROMPT` characters, which no real prompt has.
        """
        messages: list[dict[str, Any]] = []
        size = 0
        try:
            for role, content, *rest in loaded(stored):
                lines: list[str] = []
                for line in self._lines(str(content)):
                    lines.append(line)
                    size += len(line) + 1
                    if size > MAX_PROMPT:
                        raise ConfigError(f"a prompt of the run log has more than {MAX_PROMPT:,} characters")
                message = {"role": role, "content": "\n".join(lines)}
                for text_id in rest:
                    message |= loaded(self.text(text_id))
                messages.append(message)
        except (ValueError, TypeError):
            messages.append({"role": "user", "content": LOST})
        return _PLAIN.encode(messages)

    def _lines(self, content: str) -> Iterator[str]:
        """Yield the lines of a stored content.

        Raises:
            ValueError: If it contains anything but spans of texts, as in a damaged log.
        """
        for span in content.split(" "):
            first, _, last = span.partition("-")
            begin, end = int(first), int(last or first)
            if not 0 < begin <= end <= begin + MAX_SPAN:
                raise ValueError(f"{span!r} is not a span of texts")
            for text_id in range(begin, end + 1):
                yield self.text(text_id)


def checksum(text: str) -> int:
    """Compute the CRC-32 of a text, to detect damage."""
    return zlib.crc32(text.encode())


def is_intact(text: str, check: object) -> bool:
    """Check whether a text is undamaged; logs from before version 0.9.1 hold digests instead of checksums."""
    if isinstance(check, bytes):
        return hashlib.blake2b(text.encode(), digest_size=12).digest() == check
    return checksum(text) == check


def call_checksum(
    key: bytes,
    agent: int,
    time: int,
    reply: str | None,
    error_kind: str | None,
    error: str | None,
    prompt_tokens: int,
    reply_tokens: int,
    dollars: float | None,
    latency_s: float,
    attempts: int,
) -> int:
    """Compute the CRC-32 of the columns of a call that a replay uses, to detect damage.

    Raises:
        struct.error: If a value has the wrong type, as in a damaged log; or another of `CHECKSUM_ERRORS`.
    """
    price = -1.0 if dollars is None else dollars
    numbers = _NUMBERS(agent, time, prompt_tokens, reply_tokens, price, latency_s, attempts)
    text = reply if reply is not None and error_kind is error is None else f"{error_kind}: {error} {reply}"
    return zlib.crc32(key + numbers + text.encode())


_NUMBERS = struct.Struct("<qq5d").pack

CHECKSUM_ERRORS = (struct.error, AttributeError, TypeError, OverflowError, UnicodeError)
"""Errors of `call_checksum` if a value has the wrong type."""


def is_whole_call(check: object, *values: Any) -> bool:
    """Check whether a call is undamaged; calls from before format 4 have no checksum.

    Args:
        check: Its `checksum`.
        *values: The arguments of `call_checksum`.
    """
    if check is None:
        return True
    try:
        return call_checksum(*values) == check
    except CHECKSUM_ERRORS:
        return False


def storable(text: str) -> str:
    """Escape lone surrogates, which UTF-8 and hence SQLite cannot store."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


_SENT = ',"sent":"'
"""Beginning of the last member of a call's parameters: what was sent beside the messages, as spans of lines."""


def readable(request: Request) -> tuple[str, str, str, str]:
    """Return a request in the form for `difference`: model, messages, parameters, options."""
    messages = _PLAIN.encode([_without_images(message) for message in request.messages])
    return request.model, messages, _parameters(request), request.options_text


def _without_images(message: ChatMessage) -> dict[str, Any]:
    """Return a message as it is sent, with what is kept of its images in their place."""
    if not message.images:
        return message.to_wire()
    wire = replace(message, images=()).to_wire()
    return {**wire, "images": [image.note for image in message.images]}


def _parameters(request: Request) -> str:
    """Return a request's tools, schema, sampling settings and choices as JSON."""
    choices = f'"choices":{canonical_json(request.choices)},' if request.choices else ""
    schema = "null" if request.schema is None else schema_json(request.schema)
    return f'{{{choices}"schema":{schema},"settings":{request.settings_text},{_tools_document(request.tools)}}}'


def stored_keys(keys: Sequence[str]) -> bytes | str:
    """Encode the keys of a decision's calls for storage: as bytes, to halve their size, if all are digests."""
    try:
        if len(keys) == 1 and len(keys[0]) == _KEY_DIGITS:  # nearly all decisions
            return bytes.fromhex(keys[0])
        return bytes.fromhex("".join(keys)) if {_KEY_DIGITS}.issuperset(map(len, keys)) else " ".join(keys)
    except ValueError:
        return " ".join(keys)


def keys_of(stored: object) -> str:
    """Return stored keys as text, separated by spaces."""
    if not isinstance(stored, bytes):
        return "" if stored is None else str(stored)
    digits = stored.hex()
    return " ".join(digits[start : start + _KEY_DIGITS] for start in range(0, len(digits), _KEY_DIGITS))


_KEY_DIGITS = 64
"""Number of hexadecimal digits of a key."""


def line_of(error: Exception) -> str:
    """Return the message of an error on one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]


def loaded(text: object) -> Any:
    """Parse JSON from a log.

    Raises:
        ValueError: If it is not JSON, as in a damaged log, or nested too deeply.
    """
    try:
        return json.loads(str(text))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def stored_reply(reply: Reply) -> str:
    """Serialise the fields of a reply that have no columns of their own."""
    calls = [[call.name, call.arguments, call.call_id] for call in reply.tool_calls] if reply.tool_calls else ()
    fields: dict[str, Any] = {"text": reply.text, "tool_calls": calls}
    for name, value in zip(_DOCUMENT_FIELDS, _document_values(reply), strict=True):
        if value:
            fields[name] = value
    return compact_json(fields).decode()


_DOCUMENT_FIELDS = tuple(each.name for each in fields(Reply) if each.name not in ("text", "tool_calls", *IN_COLUMNS))

_document_values = attrgetter(*_DOCUMENT_FIELDS)


def reply_of(document: str, *columns: Any) -> Reply:
    """Rebuild a stored reply.

    Args:
        document: Result of `stored_reply`.
        *columns: Values of its `IN_COLUMNS`.

    Raises:
        ValueError: If it is not a reply, as in a damaged log.
    """
    try:
        fields = loaded(document)
        fields["tool_calls"] = calls = tuple([ToolCall(*call) for call in fields["tool_calls"]])
        fields.update(zip(IN_COLUMNS, columns, strict=True))
        reply = Reply(**fields)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"a reply cannot be read: {error}") from error
    texts = [reply.text, reply.model, reply.finish, reply.reasoning]
    for call in calls:
        texts += [call.name, call.call_id]
        if type(call.arguments) is not dict:
            raise ValueError("a reply cannot be read: the arguments of a call are not an object")
    counts = (reply.prompt_tokens, reply.reply_tokens, reply.attempts)
    numbers = (reply.latency_s, 0.0 if reply.dollars is None else reply.dollars, reply.off_list)
    if type(reply.carried) is not dict:
        raise ValueError(f"a reply cannot be read: found {str(reply.carried)[:300]}")
    if type(reply.probabilities) is not dict or not _NUMBER.issuperset(map(type, reply.probabilities.values())):
        raise ValueError(f"a reply cannot be read: found {str(reply.probabilities)[:300]}")
    for values, kinds in ((texts, _TEXT), (counts, _COUNT), (numbers, _NUMBER)):
        if not kinds.issuperset(map(type, values)):
            raise ValueError(f"a reply cannot be read: found {str(values)[:300]}")
    return reply


_TEXT, _COUNT, _NUMBER = frozenset({str}), frozenset({int}), frozenset({int, float})


_PLAIN = json.JSONEncoder(ensure_ascii=False)


@lru_cache(maxsize=1024)
def _tools_document(tools: tuple[ToolSpec, ...]) -> str:
    """Return the tools of a request as members of a JSON object, by name and digest."""
    names, digests = [tool.name for tool in tools], [tool.digest[:12] for tool in tools]
    return f'"tools":{canonical_json(names)},"tools_digest":{canonical_json(digests)}'


def is_under_lower_limit(recorded: Sequence[str], current: Sequence[str]) -> bool:
    """Check whether two requests differ in nothing but the limit of tokens, which was lower in the recording.

    Args:
        recorded: Model, messages, parameters and options of the recorded request, as `readable` returns them.
        current: The same for the new request.
    """
    try:
        before, now = loaded(recorded[2]), loaded(current[2])
        limit, raised = (fields["settings"].pop("max_tokens", None) for fields in (before, now))
        before.pop("sent", None)
        is_lower = isinstance(limit, int) and isinstance(raised, int) and limit < raised
        same = recorded[0] == current[0] and before == now and loaded(recorded[3]) == loaded(current[3])
        return is_lower and same and loaded(recorded[1]) == loaded(current[1])
    except (ValueError, TypeError, KeyError, AttributeError):
        return False


def difference(recorded: Sequence[str], current: Sequence[str]) -> str:
    """Show how two requests differ, line by line.

    Args:
        recorded: Model, messages, parameters and options of the recorded request, as `readable` returns them.
        current: The same for the new request.

    Returns:
        The first 40 lines of a unified diff.
    """
    before, after = (_lines(*request) for request in (recorded, current))
    lines = list(difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=1))
    return "\n".join(lines[:40]) or "only the run seed differs"


def _lines(model: str, prompt: str, parameters: str, options: str) -> list[str]:
    """Format a request as lines for comparison."""
    lines = [f"model: {model}"]
    for message in loaded(prompt):
        lines += [f"{message['role']}: {line}" for line in str(message["content"]).splitlines() or [""]]
    try:
        fields = {**loaded(parameters), "options": loaded(options)}
        fields.pop("sent", None)  # the same for equal requests
    except (ValueError, TypeError):
        fields = {"the rest": LOST}
    return lines + [f"{name}: {canonical_json(value)}" for name, value in fields.items()]


def failure_of(kind: object, text: object) -> TransportError:
    """Rebuild the error of a recorded failure; a `TransportError` if its kind is unknown."""
    error = getattr(errors, FAILURES.get(str(kind), str(kind)), TransportError)
    is_known = isinstance(error, type) and issubclass(error, TransportError)
    return error(str(text)) if is_known else TransportError(str(text))
