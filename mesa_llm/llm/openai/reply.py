"""Reads replies in the format of OpenAI's chat completions, and checks every part of them.

The body of a response is JSON, server-sent events, or JSON lines, whether or not streaming was asked for: some
endpoints stream unless they are told not to, end plain JSON with `data: [DONE]`, keep a connection open by blank lines
and comments, or speak Ollama's own format. All of these become the one body of a chat completion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_core import from_json

from mesa_llm.errors import BadReply, ServerError
from mesa_llm.llm.endings import CUT, DECLINED, INTERRUPTED, UNENDED, ending_of
from mesa_llm.llm.lenient_json import DECODER, UNREAD
from mesa_llm.llm.openai.carried import PLAIN_CALL, PLAIN_FIELDS, PLAIN_FUNCTION, carried_of, is_wanted, merge
from mesa_llm.llm.openai.errors import ErrorDetail
from mesa_llm.llm.tokens import count_tokens, dollars_of, usage_in
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

MAX_ID = 100_000
"""Maximum number of characters of a call's id: some endpoints put a signature of thought into it."""

Body = dict[str, Any]
"""A JSON object."""

REASONING = ("reasoning_content", "reasoning", "thinking")
"""Names under which endpoints return a model's reasoning, in the order in which they are looked for."""

_IN_TEXTS = PLAIN_FIELDS | set(REASONING)
"""Fields of a message that arrive as pieces of text."""

_NOT_DATA = re.compile(r"^(?::.*|(?:event|id|retry):.*|data:\s*\[DONE\]\s*|\[DONE\]\s*)$", re.MULTILINE)
"""Lines of server-sent events that hold no data."""

_DATA = re.compile(r"^data: ?", re.MULTILINE)

_BLANKS = re.compile(r"[\s,]+")


def read_reply(body: object, request: Request, latency_s: float = 0.0) -> Reply:
    """Read the reply in the parsed JSON of a chat completion, whatever that holds.

    Args:
        body: The parsed JSON.
        request: The request that it answers.
        latency_s: Seconds that it took.

    Raises:
        BadReply: If it holds no choice with a message, or what its message holds in place of text and calls is
            unusable.
        ServerError: If the endpoint failed in the middle of it.
    """
    fields = _mapping(body)
    choices: Any = fields.get("choices")
    choice = _mapping(choices[0]) if type(choices) is list and choices else {}
    message = choice.get("message")
    if message is None and isinstance(choice.get("text"), str):
        message = {"content": choice["text"]}
    reason = choice.get("finish_reason")
    is_plain = (reason == "stop" or reason == "tool_calls") and _TELLING.isdisjoint(choice)
    finish = str(reason) if is_plain else _clean(ending_of(choice, fields))
    if finish == INTERRUPTED:
        raise ServerError("the endpoint failed in the middle of its reply (finish_reason=error)")
    if type(message) is not dict:
        if finish not in UNENDED:
            raise BadReply("the reply's first choice holds no `message`" if choices else "the reply holds no `choices`")
        message = {}  # withheld
    message_fields: Body = message
    faults: list[str] = []
    content = message_fields.get("content")
    text, thought = (_clean(content), "") if type(content) is str else _text_of(content, faults)
    entries = _entries_of(message_fields)
    beside: list[str] = []
    calls = _calls_of(entries, faults, beside)
    for name in message_fields:
        if (name not in PLAIN_FIELDS and message_fields[name]) or (name == "content" and type(message[name]) is list):
            beside.append(name)
    if faults and not text and not calls and (finish == CUT or finish not in UNENDED):
        prefix = "the reply was cut (finish=length); raise reply_tokens= (--reply-tokens): " if finish == CUT else ""
        raise BadReply(prefix + "; ".join(faults[:3]))
    reasoning = _reasoning_of(message_fields) or thought
    if not text and not calls and message_fields.get("refusal") and isinstance(message_fields["refusal"], str):
        text, finish = _clean(message_fields["refusal"]), DECLINED
    if reasoning:
        reasoning = _clean(reasoning[:MAX_REASONING])
    usage, reported = usage_in(fields) or _NO_USAGE, fields.get("usage")
    return Reply(
        text,
        calls,
        usage.prompt_tokens,
        usage.reply_tokens,
        dollars_of(reported["cost"]) if type(reported) is dict and "cost" in reported else None,
        _short(fields.get("model")),
        finish,
        latency_s,
        reasoning=reasoning,
        cached_tokens=usage.cached_tokens,
        stored_tokens=usage.stored_tokens,
        carried=carried_of(message_fields, entries, reasoning) if beside else _NOTHING,
    )


_TELLING = frozenset({"native_finish_reason", "provider_specific_fields", "content_filter_results"})
"""Fields of a choice that may say more about how its reply ended."""

_NO_USAGE = Usage()

_NOTHING: Mapping[str, Any] = {}


def quoted_reply(detail: ErrorDetail, request: Request, used: Usage | None) -> Reply:
    """Return what a language model wrote as a reply, where its endpoint could not use it, and quotes it in an error.

    Args:
        detail: The error.
        request: The request that it answers.
        used: What the endpoint reports of it; its tokens are counted here if that is nothing.
    """
    text = _clean((detail.wrote or "")[:MAX_ARGUMENTS])
    is_cut = re.search(r"max\w*[ _](?:completion[ _])?tokens|length|truncated", detail.text, re.IGNORECASE) is not None
    counts = (count_tokens(request), count_tokens(text))
    if used is not None and used.tokens:
        counts = (used.prompt_tokens, used.reply_tokens)
    return Reply(text, (), *counts, finish=CUT if is_cut else "")


def _mapping(value: Any) -> Body:
    return value if type(value) is dict else {}  # parsed JSON holds no other mapping


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


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


def _calls_of(entries: Any, faults: list[str], beside: list[str]) -> tuple[ToolCall, ...]:
    """Return the usable tool calls of a message; append the faults of others, and fields that stand beside a call."""
    if entries is None:
        return ()
    if type(entries) is not list:
        faults.append(f"`tool_calls` is a {type(entries).__name__}, not a list")
        return ()
    calls: list[ToolCall] = []
    for item in entries[:MAX_CALLS]:
        entry = _mapping(item)
        function = _mapping(entry.get("function")) or entry
        name = function.get("name")
        if type(name) is not str:
            faults.append("a tool call names no tool")
            continue
        for part, plain in ((entry, PLAIN_CALL), (function, PLAIN_FUNCTION)):
            for key in part:
                if key not in plain:
                    beside.append(key)
        arguments = _arguments_of(function.get("arguments"))
        calls.append(ToolCall(_clean(name), arguments, _id_of(entry.get("id"))))
    return tuple(calls)


def _arguments_of(encoded: Any) -> Body:
    """Return the arguments of a call; under `UNREAD` what is no JSON object, for the reader of replies to mend."""
    if encoded is None:
        return {}
    text: str = encoded if type(encoded) is str else json.dumps(encoded)
    if not (stripped := text.strip()):
        return {}
    try:
        arguments, end = DECODER.raw_decode(stripped)  # faster than `decode`
        if end < len(stripped):
            return {UNREAD: _clean(text[:MAX_ARGUMENTS])}
        if "\\u" in text or not text.isascii():
            arguments = json.loads(_clean(json.dumps(arguments, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return {UNREAD: _clean(text[:MAX_ARGUMENTS])}
    if arguments is None:
        return {}
    return arguments if type(arguments) is dict else {UNREAD: _clean(text[:MAX_ARGUMENTS])}


def _clean(text: str) -> str:
    """Replace lone surrogates, which neither files nor databases can hold."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _short(value: object) -> str:
    """Return the first 200 characters of a text; empty for anything else."""
    return _clean(value[:200]) if isinstance(value, str) else ""


def _id_of(value: object) -> str:
    """Return the id of a call as it came; empty if it has none."""
    if type(value) is int:
        return str(value)
    return _clean(value[:MAX_ID]) if isinstance(value, str) else ""


class Cut(ValueError):
    """A body ends before what it holds is complete."""


def parse(body: bytes) -> Any:
    """Parse the body of a successful response.

    Args:
        body: The body.

    Returns:
        JSON values; of several events, the chat completion that they add up to.

    Raises:
        Cut: If it ends too early.
        ValueError: If it is neither JSON nor events.
        RecursionError: If it is nested too deeply.
    """
    parsed: Any = None
    is_ended = True
    try:
        parsed = from_json(body)
        if parsed["choices"][0]["message"] is not None:
            return parsed
    except (TypeError, LookupError):
        pass
    except ValueError:
        parsed, is_ended = _objects(body)
    if isinstance(parsed, list):
        objects = [cast("Body", part) for part in cast("list[Any]", parsed) if isinstance(part, dict)]
        return _joined(objects, is_ended) if objects else parsed
    return _joined([cast("Body", parsed)], True) if isinstance(parsed, dict) and not _is_whole(parsed) else parsed


def _objects(body: bytes) -> tuple[list[Any], bool]:
    """Return the JSON values of a body that holds several, or one among comments and marks; and if it says it ended."""
    text = body.decode(json.detect_encoding(body), "surrogatepass").lstrip("\ufeff")
    text = _DATA.sub("", _NOT_DATA.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    decoder, values = json.JSONDecoder(), list[Any]()
    place = _after_blanks(text, 0)
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            if text[place] in "{[" and not text.rstrip().endswith(("}", "]")):
                raise Cut(str(error)) from None
            raise
        values.append(value)
        place = _after_blanks(text, place)
    if not values:
        raise ValueError("it holds no data")
    return values, b"[DONE]" in body[-100:]


def _after_blanks(text: str, place: int) -> int:
    blanks = _BLANKS.match(text, place)
    return place if blanks is None else blanks.end()


def _joined(events: Sequence[Body], is_ended: bool) -> Body:
    """Return the chat completion that events add up to, or the error among them.

    Raises:
        Cut: If the last event says neither that it is the last nor why the reply ended.
    """
    if (failed := next(filter(_is_error, events), None)) is not None:
        return failed if failed.get("error") else {"error": _choice(failed).get("error") or failed}
    if whole := next(filter(_is_whole, reversed(events)), None) if len(events) <= 2 else None:
        return whole
    message, joined, ending, tokens = _Message(), Body(), Body(), list[Any]()
    for event in map(_as_completion, events):
        joined |= {name: event[name] for name in ("id", "model", "usage") if event.get(name)}
        if usage := _mapping(event.get("x_groq")).get("usage"):
            joined["usage"] = usage
        choice = _choice(event)
        message.add(_mapping(choice.get("delta") or choice.get("message")))
        if isinstance(choice.get("text"), str):
            message.add({"content": choice["text"]})
        ending |= {name: choice[name] for name in ("finish_reason", *_TELLING) if choice.get(name)}
        tokens += _list(_mapping(choice.get("logprobs")).get("content"))
    if not message.has_anything:
        return {**events[-1], **joined}
    if not (is_ended or "finish_reason" in ending):
        raise Cut("the events end without a mark of their end")
    choice = {"index": 0, "message": message.fields, "finish_reason": None, **ending}
    return {**joined, "choices": [{**choice, "logprobs": {"content": tokens}} if tokens else choice]}


def _is_whole(body: Body) -> bool:
    """Check whether a body is a chat completion that is not in pieces."""
    choices = body.get("choices")
    return isinstance(choices, list) and bool(choices) and "message" in _mapping(cast("list[Any]", choices)[0])


def _is_error(event: Body) -> bool:
    if event.get("error") or _choice(event).get("error"):
        return True
    is_reply = "choices" in event or "done" in event
    return not is_reply and isinstance(event.get("message") or event.get("detail"), str)


def _choice(body: Body) -> Body:
    """Return the first choice of a chunk; empty if it has none."""
    choices = body.get("choices")
    listed = cast("list[Any]", choices) if isinstance(choices, list) else []
    first = [_mapping(choice) for choice in listed if _mapping(choice).get("index") in (0, None)]
    return first[0] if first else {}


class _Message:
    """A message, as its pieces arrive."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._parts: list[Any] = []
        self._calls: dict[Any, Body] = {}
        self._last_call: Any = None
        self._other: Body = {}

    def add(self, delta: Body) -> None:
        """Append a piece."""
        for name in ("content", "refusal", *REASONING):
            value = delta.get(name)
            if isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif isinstance(value, list):
                self._parts += value
        merge(self._other, {name: value for name, value in delta.items() if name not in _IN_TEXTS and is_wanted(name)})
        if isinstance(delta.get("function_call"), dict):
            _append_call(self._other.setdefault("function_call", {}), delta["function_call"])
        calls = delta.get("tool_calls")
        for call in cast("list[Any]", calls) if isinstance(calls, list) else []:
            self._add_call(_mapping(call))

    def _add_call(self, piece: Body) -> None:
        """Append a piece of a tool call, which belongs to that of its index or id, else to the last one."""
        key = piece.get("index")
        if key is None:
            key = piece.get("id") or (self._last_call if not _mapping(piece.get("function")).get("name") else None)
        if key is None or not isinstance(key, int | str):
            key = f"call {len(self._calls)}"
        known = self._calls.get(key)
        if known is not None and piece.get("id") and known.get("id") and piece["id"] != known["id"]:
            key = f"call {len(self._calls)}"  # some endpoints number all calls 0
        self._last_call = key
        call = self._calls.setdefault(key, {"type": "function", "function": {}})
        if piece.get("id"):
            call["id"] = piece["id"]
        merge(call, {name: value for name, value in piece.items() if name not in PLAIN_CALL})
        function = _mapping(piece.get("function"))
        merge(call["function"], {name: value for name, value in function.items() if is_wanted(name)})
        _append_call(call["function"], function)

    @property
    def has_anything(self) -> bool:
        """Whether anything has arrived, be it empty."""
        return bool(self._texts or self._parts or self._calls or self._other)

    @property
    def fields(self) -> Body:
        """The message so far."""
        fields: Body = {name: "".join(texts) for name, texts in self._texts.items()}
        if self._parts:
            text = fields.get("content")
            fields["content"] = [*self._parts, *([{"type": "text", "text": text}] if text else [])]
        fields.setdefault("content", None)
        return {**fields, **self._other, **({"tool_calls": list(self._calls.values())} if self._calls else {})}


def _append_call(call: Body, piece: Mapping[str, Any]) -> None:
    """Append a piece of a function's name and arguments."""
    name, arguments = piece.get("name"), piece.get("arguments")
    if isinstance(name, str) and name and call.get("name") != name:
        call["name"] = call.get("name", "") + name
    if isinstance(arguments, str) and isinstance(call.get("arguments", ""), str):
        call["arguments"] = call.get("arguments", "") + arguments
    elif isinstance(arguments, dict):
        call["arguments"] = arguments


def _as_completion(body: Body) -> Body:
    """Return a body in Ollama's own format as a chat completion; any other body unchanged."""
    message = body.get("message")
    if "choices" in body or not isinstance(message, dict) or "done" not in body:
        return body
    counts = {"prompt_tokens": body.get("prompt_eval_count"), "completion_tokens": body.get("eval_count")}
    usage = {name: count for name, count in counts.items() if count is not None}
    finish = (body.get("done_reason") or "stop") if body["done"] else None
    choice = {"index": 0, "delta": message, "finish_reason": finish}
    return {"model": body.get("model", ""), "choices": [choice], **({"usage": usage} if usage else {})}
