"""Reads replies in the format of OpenAI's chat completions, and checks every part of them."""

from __future__ import annotations

import json
from typing import Any, cast

from mesa_llm.errors import BadReply
from mesa_llm.llm.notation import UNREAD
from mesa_llm.llm.tokens import dollars_of, usage_in
from mesa_llm.records import Reply, Request, ToolCall, Usage

MAX_CALLS = 50
"""Maximum number of tool calls of one reply that are read."""

MAX_ARGUMENTS = 100_000
"""Maximum number of characters of a call's arguments that are kept where they are no JSON object."""

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
    if not isinstance(message, dict):
        raise BadReply("the reply's first choice holds no `message`")
    message_fields = cast("dict[str, Any]", message)
    faults: list[str] = []
    text = _text_of(message_fields.get("content"), faults)
    calls = _calls_of(message_fields.get("tool_calls"), request, faults)
    finish = finish_of(_short(choice.get("finish_reason")))
    if faults and not text and not calls:
        prefix = (
            "the reply was cut (finish=length); raise reply_tokens= (--reply-tokens): " if finish == "length" else ""
        )
        raise BadReply(prefix + "; ".join(faults[:3]))
    reasoning = message_fields.get("reasoning_content") or message_fields.get("reasoning")
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
        reasoning=_clean(reasoning[:MAX_REASONING]) if isinstance(reasoning, str) else "",
        cached_tokens=usage.cached_tokens,
        stored_tokens=usage.stored_tokens,
    )


def finish_of(reason: str) -> str:
    """Return why a reply ended, in the endpoint's word; `length` for all words that mean its maximum of tokens."""
    return "length" if reason.lower() in _CUT else reason


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text_of(content: object, faults: list[str]) -> str:
    """Return the text of a message's content, and append what is wrong with it to `faults`."""
    if content is None:
        return ""
    if isinstance(content, str):
        return _clean(content)
    if isinstance(content, list):
        texts = [_mapping(part).get("text") for part in cast("list[Any]", content)]
        return _clean("".join(text for text in texts if isinstance(text, str)))
    faults.append(f"the reply's content is a {type(content).__name__}, not text")
    return ""


def _calls_of(entries: object, request: Request, faults: list[str]) -> tuple[ToolCall, ...]:
    """Return the usable tool calls of a message, and append what is wrong with the others to `faults`."""
    if entries is None:
        return ()
    if not isinstance(entries, list):
        faults.append(f"`tool_calls` is a {type(entries).__name__}, not a list")
        return ()
    calls: list[ToolCall] = []
    for item in cast("list[Any]", entries)[:MAX_CALLS]:
        function = _mapping(_mapping(item).get("function"))
        name = function.get("name")
        if not isinstance(name, str):
            faults.append("a tool call names no tool")
            continue
        arguments = _arguments_of(function.get("arguments"))
        calls.append(ToolCall(_clean(name), arguments, _short(_mapping(item).get("id"))))
    return tuple(calls)


def _arguments_of(encoded: object) -> dict[str, Any]:
    """Return the arguments of a call; under `UNREAD` what is no JSON object, for the reader of replies to mend."""
    if encoded is None or (isinstance(encoded, str) and not encoded.strip()):
        return {}
    text = encoded if isinstance(encoded, str) else json.dumps(encoded)
    try:
        arguments = _STRICT.decode(text)
        if "\\u" in text or not text.isascii():
            arguments = json.loads(_clean(json.dumps(arguments, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return {UNREAD: _clean(text[:MAX_ARGUMENTS])}
    if arguments is None:
        return {}
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {UNREAD: _clean(text[:MAX_ARGUMENTS])}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key occurs twice")
    return fields


_STRICT = json.JSONDecoder(object_pairs_hook=_once)


def _clean(text: str) -> str:
    """Replace lone surrogates, which neither files nor databases can hold."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _short(value: object) -> str:
    """Return the first 200 characters of a text; empty for anything else."""
    return _clean(value[:200]) if isinstance(value, str) else ""
