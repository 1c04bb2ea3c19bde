"""What a reply has to bring back: parts of its message that its endpoint wants in the next request, as they came.

Gemini wants the signature of thought beside each call (`extra_content`), DeepSeek, Kimi and Qwen their
`reasoning_content`, OpenRouter `reasoning_details`, Anthropic's models their blocks of thinking, OpenAI its encrypted
reasoning. None of this is read here; it is recorded with the reply, and written into the message that repeats it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from mesa_llm.records.requests import CALLS

PLAIN_FIELDS = frozenset(
    {"role", "content", CALLS, "function_call", "refusal", "annotations", "audio", "name", "images"}
)
"""Fields of a message that the next request writes anew, or does not need."""

PLAIN_CALL = frozenset({"id", "type", "index", "function"})
"""Fields of a call of which the same is true."""

PLAIN_FUNCTION = frozenset({"name", "arguments"})
"""Fields of the function of a call of which it is true, too."""

_OWN_CALL = PLAIN_CALL | PLAIN_FUNCTION | {"input", "text"}

_WANTED = re.compile(
    r"reason|think|thought|signature|extra_content|encrypted|provider_specific|opaque|redacted", re.IGNORECASE
)
"""Names of fields that endpoints want back."""

_THINKING = re.compile(r"thinking|reasoning|thought")
"""Types of the parts of a message that hold a thought."""


def is_wanted(name: str) -> bool:
    """Check whether a field of a message is one that endpoints want back."""
    return _WANTED.search(name) is not None


def carried_of(message: Mapping[str, Any], entries: object, reasoning: str) -> dict[str, Any]:
    """Return what a message has to bring back, as in `Reply.carried`.

    Args:
        message: The message.
        entries: The entries of its tool calls.
        reasoning: What is kept of its reasoning.
    """
    carried = {
        name: True if value == reasoning else value
        for name, value in message.items()
        if name not in PLAIN_FIELDS and value and is_wanted(name)
    }
    if (content := _content_of(message.get("content"))) is not None:
        carried["content"] = content
    named = filter(_has_name, cast("list[Any]", entries) if isinstance(entries, list) else ())
    calls = [_of_call(entry) for entry in named]
    if any(calls):
        carried[CALLS] = calls
    return _storable(carried) if carried else carried


def carried_by(carried: Mapping[str, Any], reasoning: str) -> Mapping[str, Any]:
    """Return what a message brings back, with the text of its reasoning in place.

    Args:
        carried: As in `Reply.carried`.
        reasoning: The reasoning of the reply.
    """
    if True not in carried.values():
        return carried
    return {name: reasoning if value is True else value for name, value in carried.items()}


def _content_of(content: object) -> list[Any] | None:
    """Return the content of a message with its thoughts, if it holds any; calls stand elsewhere."""
    if not isinstance(content, list):
        return None
    parts = [cast("dict[str, Any]", part) for part in cast("list[Any]", content) if isinstance(part, dict)]
    has_thought = any(_THINKING.search(str(part.get("type"))) or "thought_signature" in part for part in parts)
    return [part for part in parts if part.get("type") != "tool_use"] if has_thought else None


def _has_name(entry: object) -> bool:
    """Check whether an entry is one of those that are read as calls."""
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    function = fields.get("function") or fields
    return isinstance(function, dict) and isinstance(cast("dict[str, Any]", function).get("name"), str)


def _of_call(entry: object) -> dict[str, Any]:
    """Return what stands beside a call, in its entry and in its function."""
    if not isinstance(entry, dict):
        return {}
    fields = cast("dict[str, Any]", entry)
    own = {name: value for name, value in fields.items() if name not in _OWN_CALL and value}
    function = fields.get("function")
    if isinstance(function, dict):
        inner = cast("dict[str, Any]", function)
        if beside := {name: value for name, value in inner.items() if name not in PLAIN_FUNCTION and value}:
            own["function"] = beside
    return own


def _storable(carried: dict[str, Any]) -> dict[str, Any]:
    """Return values that JSON and a database can hold; nothing if they are no JSON."""
    try:
        text = json.dumps(carried, ensure_ascii=False, allow_nan=False)
        if not text.isascii():
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}


# -- in pieces


def merge(fields: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of what is to be brought back to what has arrived of it."""
    for name, value in piece.items():
        known = fields.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            merge(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        elif isinstance(known, list) and isinstance(value, list):
            for part in cast("list[Any]", value):
                _append(cast("list[Any]", known), part)
        elif value is not None and value != "":
            fields[name] = [*cast("list[Any]", value)] if isinstance(value, list) else value


_TEXTS = ("text", "summary", "thinking", "data")
"""Fields of a detail of reasoning that arrive in pieces."""


def _append(parts: list[Any], part: Any) -> None:
    """Append a detail of reasoning, or a piece of the last one of its index and type."""
    last = parts[-1] if parts else None
    if not (isinstance(last, dict) and isinstance(part, dict)):
        parts.append(part)
        return
    whole, piece = cast("dict[str, Any]", last), cast("dict[str, Any]", part)
    same = all(whole.get(name) == piece.get(name) for name in ("index", "type")) and piece.get("type") is not None
    ids = {one for one in (whole.get("id"), piece.get("id")) if one}
    if not same or len(ids) > 1:
        parts.append(dict(piece))
        return
    for name, value in piece.items():
        is_text = name in _TEXTS and isinstance(value, str) and isinstance(whole.get(name), str)
        whole[name] = whole[name] + value if is_text else (whole.get(name) if value is None else value)
