"""Reads replies in the format of OpenAI's chat completions, and checks every part of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from mesa_llm.errors import BadReply
from mesa_llm.llm.lenient_json import DECODER, UNREAD
from mesa_llm.llm.openai.response_body import REASONING
from mesa_llm.llm.tokens import dollars_of, usage_in
from mesa_llm.records import Reply, Request, ToolCall, Usage

MAX_CALLS = 50
"""Maximum number of tool calls of one reply that are read."""

MAX_ARGUMENTS = 100_000
"""Maximum number of characters of a call's arguments that are kept where they are no JSON object."""

MAX_PARTS = 10_000
"""Maximum number of parts of a message's content that are read."""

_THOUGHTS = frozenset(
    {"thinking", "reasoning", "thought", "reasoning_text", "reasoning_content", "redacted_thinking", "summary_text"}
)
"""Types of the parts of a message that hold reasoning."""

MAX_REASONING = 100_000
"""Maximum number of characters of a model's reasoning that are kept."""

_CUT = frozenset({"length", "max_tokens", "max_length", "max_output_tokens", "model_length"})
"""Endpoints' words for a reply that was cut at its maximum number of tokens."""


def read_reply(body: object, request: Request, latency_s: float = 0.0) -> Reply:
    """Read the reply in the parsed JSON of a chat completion, whatever that holds.

    Args:
        body: The parsed JSON.
        request: The request that it answers.
        latency_s: Seconds that it took.

    Raises:
        BadReply: If it holds no choice with a message, or what its message holds in place of text and calls is
            unusable.
    """
    fields = _mapping(body)
    choices = fields.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BadReply("the reply holds no `choices`")
    choice = _mapping(cast("list[Any]", choices)[0])
    message = choice.get("message")
    if message is None and isinstance(choice.get("text"), str):
        message = {"content": choice["text"]}
    if not isinstance(message, dict):
        raise BadReply("the reply's first choice holds no `message`")
    message_fields = cast("dict[str, Any]", message)
    faults: list[str] = []
    text, thought = _text_of(message_fields.get("content"), faults)
    calls = _calls_of(_entries_of(message_fields), faults)
    finish = finish_of(_short(choice.get("finish_reason")))
    if faults and not text and not calls:
        prefix = (
            "the reply was cut (finish=length); raise reply_tokens= (--reply-tokens): " if finish == "length" else ""
        )
        raise BadReply(prefix + "; ".join(faults[:3]))
    reasoning = _reasoning_of(message_fields) or thought
    if not text and not calls and isinstance(message_fields.get("refusal"), str):
        text, finish = _clean(message_fields["refusal"]), "refusal"
    usage = usage_in(body) or Usage()
    return Reply(
        text,
        calls,
        usage.prompt_tokens,
        usage.reply_tokens,
        dollars_of(_mapping(fields.get("usage")).get("cost")),
        _short(fields.get("model")),
        finish,
        latency_s,
        reasoning=_clean(reasoning[:MAX_REASONING]),
        cached_tokens=usage.cached_tokens,
        stored_tokens=usage.stored_tokens,
    )


def finish_of(reason: str) -> str:
    """Return why a reply ended, in the endpoint's word; `length` for all words that mean its maximum of tokens."""
    return "length" if reason.lower() in _CUT else reason


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text_of(content: object, faults: list[str]) -> tuple[str, str]:
    """Return text and reasoning of a message's content, and append what is wrong with it to `faults`."""
    if content is None:
        return "", ""
    if isinstance(content, str):
        return _clean(content), ""
    if not isinstance(content, list | dict):
        faults.append(f"the reply's content is a {type(content).__name__}, not text")
        return "", ""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in cast("list[Any]", content if isinstance(content, list) else [content])[:MAX_PARTS]:
        fields = {"text": part} if isinstance(part, str) else _mapping(part)
        is_thought = fields.get("type") in _THOUGHTS or fields.get("thought") is True
        (thoughts if is_thought else texts).append(_text_in(fields, is_thought))
    return _clean("".join(texts)), "".join(thoughts)


def _text_in(part: Mapping[str, Any], is_thought: bool) -> str:
    """Return the text of a part of a message; empty if it is a part of another kind."""
    if is_thought:
        value = next(
            (part[name] for name in ("thinking", "reasoning", "text", "summary", "content") if part.get(name)), ""
        )
        if isinstance(value, list):
            inner = (_mapping(piece).get("text") for piece in cast("list[Any]", value)[:MAX_PARTS])
            return "".join(text for text in inner if isinstance(text, str))
        return value if isinstance(value, str) else ""
    is_text = part.get("type") in (None, "text", "output_text", "input_text") and isinstance(part.get("text"), str)
    return part["text"] if is_text else ""


def _reasoning_of(message: Mapping[str, Any]) -> str:
    """Return the reasoning that stands beside a message's content."""
    for name in REASONING:
        if name in message and (value := message[name]) and isinstance(value, str):
            return value
    details = message.get("reasoning_details")
    if not isinstance(details, list):
        return ""
    return "".join(_text_in(_mapping(part), True) for part in cast("list[Any]", details)[:MAX_PARTS])


def _entries_of(message: Mapping[str, Any]) -> object:
    """Return the entries of tool calls; those of endpoints that know only a single `function_call` as one entry."""
    entries = message.get("tool_calls")
    if entries:
        return [entries] if isinstance(entries, dict) else entries
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        return [{"function": legacy}]
    content = message.get("content")
    parts = [_mapping(part) for part in cast("list[Any]", content)[:MAX_PARTS]] if isinstance(content, list) else []
    uses = [{**part, "arguments": part.get("input")} for part in parts if part.get("type") == "tool_use"]
    return uses or entries


def _calls_of(entries: object, faults: list[str]) -> tuple[ToolCall, ...]:
    """Return the usable tool calls of a message, and append what is wrong with the others to `faults`."""
    if entries is None:
        return ()
    if not isinstance(entries, list):
        faults.append(f"`tool_calls` is a {type(entries).__name__}, not a list")
        return ()
    calls: list[ToolCall] = []
    for item in cast("list[Any]", entries)[:MAX_CALLS]:
        entry = _mapping(item)
        function = _mapping(entry.get("function")) or entry
        name = function.get("name")
        if not isinstance(name, str):
            faults.append("a tool call names no tool")
            continue
        arguments = _arguments_of(function.get("arguments"))
        calls.append(ToolCall(_clean(name), arguments, _short(entry.get("id"))))
    return tuple(calls)


def _arguments_of(encoded: object) -> dict[str, Any]:
    """Return the arguments of a call; under `UNREAD` what is no JSON object, for the reader of replies to mend."""
    if encoded is None or (isinstance(encoded, str) and not encoded.strip()):
        return {}
    text = encoded if isinstance(encoded, str) else json.dumps(encoded)
    try:
        arguments = DECODER.decode(text)
        if "\\u" in text or not text.isascii():
            arguments = json.loads(_clean(json.dumps(arguments, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return {UNREAD: _clean(text[:MAX_ARGUMENTS])}
    if arguments is None:
        return {}
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {UNREAD: _clean(text[:MAX_ARGUMENTS])}


def _clean(text: str) -> str:
    """Replace lone surrogates, which neither files nor databases can hold."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _short(value: object) -> str:
    """Return the first 200 characters of a text; empty for anything else."""
    return _clean(value[:200]) if isinstance(value, str) else ""
