"""Writes requests in the format of OpenAI's chat completions, as far as an endpoint supports it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast

from mesa_llm.canonical import compact_json
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.form import answer_text, brief_call_text, call_text, limits_text
from mesa_llm.llm.openai.schema_keywords import keywords_in, without_keywords
from mesa_llm.llm.probabilities import token_settings
from mesa_llm.llm.schema.flat import call_choices, flat_schema, offered_tools, wire_tools
from mesa_llm.records import ChatMessage, Request, ToolCall, ToolSpec
from mesa_llm.records.requests import CALLS

OPENING = "Begin."
"""First message of the user, where a conversation that the model begins has to begin with the user."""

PARALLEL = "parallel_tool_calls"
"""Field of a body that allows several calls in one reply; an endpoint that refuses it is asked for a list as text."""


class _Form(NamedTuple):
    """The form of a reply, as far as an endpoint does not enforce it by itself."""

    text: str
    """Its description in words; empty: everything is enforced."""

    schema: Mapping[str, Any] | None
    """JSON schema of a call as text, for an endpoint without tool calls; None: there is no such schema."""


_NO_FORM = _Form("", None)


@lru_cache(maxsize=64)
def without_tools(dialect: Dialect) -> Dialect:
    """Return the dialect in which a choice of actions is written as text, as calls of tools have no probabilities."""
    return replace(dialect, tools=False)


class Writer:
    """Writes requests to one model, and caches the JSON of tools and schemas, which many requests share."""

    def __init__(self, model: str) -> None:
        """Store the name of the model at its endpoint."""
        self.model = model
        self._tools: dict[tuple[str, ...], list[bytes]] = {}
        self._fixed_tools: dict[tuple[ToolSpec, ...], bytes] = {}
        self._formats: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
        self._forms: dict[Any, tuple[Mapping[str, Any] | None, _Form]] = {}
        self._learn(Dialect())

    def write(self, request: Request, dialect: Dialect) -> bytes:
        """Return the body of a request as JSON, in UTF-8.

        Args:
            request: The request.
            dialect: How much of the format the endpoint supports.
        """
        if request.tools and (request.choices or (request.max_calls > 1 and PARALLEL in dialect.omitted)):
            dialect = without_tools(dialect)
        if dialect is not self._dialect:
            self._learn(dialect)
        body: dict[str, Any] = {"model": request.adapter or self.model, "stream": dialect.stream, **request.settings}
        if request.choices:
            body |= token_settings(request)
        body.setdefault("seed", request.salt.seed)
        if not self._sends_all:
            _simplify(body, dialect)
        form = _NO_FORM if self._enforces_all else self._form(request)
        if not request.tools or (dialect.tools and dialect.both):
            schema = request.schema
        else:
            schema = None if dialect.tools else form.schema
        if schema is not None and dialect.schema != "none":
            body["response_format"] = self._format(schema, dialect.schema)
        tools = b""
        if request.tools and dialect.tools:
            if dialect.choice != "none":
                body["tool_choice"] = tool_choice(request) if dialect.choice == "required" else "auto"
            if request.max_calls > 1:
                body[PARALLEL] = True  # llama.cpp's server holds replies to one call without it
            tools = b',"tools":%b' % self._tools_json(request)
        messages: Sequence[ChatMessage] = request.messages
        if form.text or not dialect.has_plain_messages:
            messages = adapted(messages, dialect, form.text, request)
        encoded = b",".join([message.wire_json for message in messages])
        return b'%b,"messages":[%b]%b}' % (compact_json(body)[:-1], encoded, tools)

    def _learn(self, dialect: Dialect) -> None:
        """Forget what was cached for another dialect."""
        self._dialect = dialect
        for cache in (self._tools, self._fixed_tools, self._formats, self._forms):
            cache.clear()
        is_plain = dialect.length == "max_tokens" and not dialect.min_temperature and dialect.room is None
        self._sends_all = is_plain and not dialect.omitted and dialect.alternatives is None
        is_enforcing = dialect.schema == "schema" and dialect.choice == "required" and dialect.both and dialect.tools
        self._enforces_all = is_enforcing and not (dialect.schema_words or dialect.keywords)

    def _form(self, request: Request) -> _Form:
        """Return what an endpoint that does not enforce the form of a reply has to be told, cached."""
        if request.schema is None and not request.tools:
            return _NO_FORM
        key = (request.tools, id(request.schema), request.options_text if request.options else "", request.max_calls)
        entry = self._forms.get(key)
        if entry is None:
            if len(self._forms) >= 256:
                self._forms.clear()
            form = _Form(form_text(request, self._dialect), None if self._dialect.tools else call_schema(request))
            entry = self._forms[key] = (request.schema, form)  # holds the schema: its id stays
        return entry[1]

    def _format(self, schema: Mapping[str, Any], form: Literal["schema", "object"]) -> dict[str, Any]:
        """Return the `response_format` of a schema, cached, as the same schema is used again."""
        if form == "object":
            return response_format(schema, form)
        entry = self._formats.get(id(schema))
        if entry is None:
            if len(self._formats) >= 256:
                self._formats.clear()
            known = without_keywords(schema, self._dialect.keywords) if self._dialect.keywords else schema
            entry = self._formats[id(schema)] = (schema, response_format(known))  # holds the schema: its id stays
        return entry[1]

    def _tools_json(self, request: Request) -> bytes:
        """Return the tools as JSON; without options, it is the same for many requests, and cached."""
        if request.options:
            return self._tools_with_options(request)
        encoded = self._fixed_tools.get(request.tools)
        if encoded is None:
            if len(self._fixed_tools) >= 256:
                self._fixed_tools.clear()
            encoded = self._fixed_tools[request.tools] = self._tools_with_options(request)
        return encoded

    def _tools_with_options(self, request: Request) -> bytes:
        """Return the tools as JSON: cached parts, which many requests share, with the request's options in between."""
        tools, options = offered_tools(request.tools, request.options)
        key = (*(tool.digest for tool in tools), *options)
        parts = self._tools.get(key)
        if parts is None:
            if len(self._tools) >= 256:
                self._tools.clear()
            gaps = {name: f"\0{name}\0" for name in options}
            wire = wire_tools(tools, gaps)
            if self._dialect.keywords:
                return compact_json(_without_keywords(wire_tools(tools, options), self._dialect.keywords))
            parts = self._tools[key] = _GAP.split(compact_json(wire))
        if len(parts) == 1:
            return parts[0]
        values = {name.encode(): compact_json(option_values) for name, option_values in options.items()}
        return b"".join([values[part] if index % 2 else part for index, part in enumerate(parts)])


_GAP = re.compile(rb'"\\u0000(.*?)\\u0000"')
"""Placeholder of an argument's values in the JSON of tools."""


def response_format(schema: Mapping[str, Any], form: Literal["schema", "object"] = "schema") -> dict[str, Any]:
    """Return the `response_format` for a reply that follows a JSON schema, or is any JSON object."""
    if form == "object":
        return {"type": "json_object"}
    definition = {"name": "answer", "schema": schema, "strict": _is_strict(schema)}
    return {"type": "json_schema", "json_schema": definition}


def _is_strict(schema: object) -> bool:
    """Check whether a schema can be strict: each of its objects requires all its properties, and allows no others."""
    if isinstance(schema, list):
        return all(_is_strict(part) for part in cast("list[object]", schema))
    if not isinstance(schema, Mapping):
        return True
    fields = cast("Mapping[str, Any]", schema)
    if fields.get("type") == "object" or "properties" in fields:
        properties: Mapping[str, Any] = fields.get("properties", {})
        if fields.get("additionalProperties") is not False or set(fields.get("required", ())) != set(properties):
            return False
        return all(_is_strict(part) for part in properties.values()) and _is_strict(fields.get("$defs", {}))
    return all(_is_strict(part) for part in fields.values())


def tool_choice(request: Request) -> Literal["required", "auto"]:
    """Return `required` where the reply must call a tool: if one is an action, or there is no schema to follow."""
    must_call = request.schema is None or any(tool.is_action for tool in request.tools)
    return "required" if must_call else "auto"


# -- what only some endpoints need


def _simplify(body: dict[str, Any], dialect: Dialect) -> None:
    """Leave out or rename the fields of a body that an endpoint does not know."""
    for name in dialect.omitted:
        body.pop(name, None)
    if dialect.room is not None and body.get("max_tokens", 0) > dialect.room:
        body["max_tokens"] = dialect.room
    if dialect.alternatives is not None and "top_logprobs" in body:
        body["top_logprobs"] = min(body["top_logprobs"], dialect.alternatives)
    if dialect.length != "max_tokens" and "max_tokens" in body:
        limit = body.pop("max_tokens")
        if dialect.length != "none":
            body[dialect.length] = limit
    if dialect.min_temperature and body.get("temperature") == 0:
        body["temperature"] = dialect.min_temperature


def _without_keywords(wire: Sequence[dict[str, Any]], keywords: frozenset[str]) -> list[dict[str, Any]]:
    """Leave keywords out of the schemas of tools, the descriptions of tools excepted."""
    return [
        {**tool, "function": {**function, "parameters": without_keywords(function["parameters"], keywords)}}
        for tool in wire
        for function in [tool["function"]]
    ]


def form_text(request: Request, dialect: Dialect) -> str:
    """Describe in words what of the form of a reply an endpoint does not enforce; empty if it enforces all of it.

    Args:
        request: The request.
        dialect: How much of the format the endpoint supports.
    """
    parts: list[str] = []
    functions = [tool["function"] for tool in wire_tools(request.tools, request.options)]
    if functions and not dialect.tools:
        parts.append(call_text(functions, request.prompts, request.max_calls))
    elif functions:
        lossy = [one for one in functions if dialect.keywords.intersection(keywords_in(one["parameters"]))]
        if lossy:
            parts.append(limits_text(lossy, request.prompts))
        if dialect.choice != "required" and tool_choice(request) == "required":
            parts.append(brief_call_text(request.tools, request.prompts, request.max_calls))
    if request.schema is not None:
        is_enforced = dialect.schema == "schema" and not dialect.schema_words and (dialect.both or not functions)
        if not is_enforced or dialect.keywords.intersection(keywords_in(request.schema)):
            parts.append(answer_text(request.schema, request.prompts, has_tools=bool(functions)))
    return "\n\n".join(parts)


def call_schema(request: Request) -> dict[str, Any] | None:
    """Return the JSON schema of calls as text, or of the answer; None if no tool can be called."""
    offers = call_choices(request.tools, request.options, request.max_calls)
    answers = [] if request.schema is None else [flat_schema(request.schema)]
    if not offers:
        return None
    if request.choices and not answers and request.max_calls == 1:
        arguments = [offer["properties"]["arguments"] for offer in offers]
        if all(one == arguments[0] for one in arguments):
            names = [name for offer in offers for name in offer["properties"]["action"]["enum"]]
            return {**offers[0], "properties": {"action": {"enum": names}, "arguments": arguments[0]}}
    return {"anyOf": [*answers, *offers]} if answers or len(offers) > 1 else offers[0]


def written_calls(calls: Sequence[ToolCall], request: Request) -> list[dict[str, Any]]:
    """Return calls in the form in which a model writes them as text: one list where several are possible."""
    written = [_as_text(call) for call in calls]
    return [{"actions": written}] if written and request.max_calls > 1 else written


def _as_text(call: ToolCall) -> dict[str, Any]:
    return {"action": call.name, "arguments": dict(call.arguments)}


def adapted(
    messages: Sequence[ChatMessage], dialect: Dialect, form: str, request: Request | None = None
) -> list[ChatMessage]:
    """Return the messages of a prompt as an endpoint takes them.

    Args:
        messages: The messages.
        dialect: How much of the format the endpoint supports.
        form: What is said about the form of the reply, at the end of the first message; empty: nothing.
        request: The request, by which earlier calls are written as text.
    """
    written = [_uncarried(message, dialect) for message in messages] if dialect.uncarried else list(messages)
    if form:
        first, *rest = written or [ChatMessage("user", "")]
        written = [replace(first, content=f"{first.content}\n\n{form}".lstrip()), *rest]
    if not (dialect.tools and dialect.tool_messages):
        written = _without_tool_messages(written, request)
    if dialect.system != "any":
        written = _with_one_system(written, dialect.system)
    if dialect.alternates:
        written = _in_turns(written)
    return [_with_short_ids(message) for message in written] if dialect.short_ids else written


def _without_tool_messages(messages: Sequence[ChatMessage], request: Request | None) -> list[ChatMessage]:
    """Write calls as the text that the model has to write itself, and their results as messages of the user."""
    written: list[ChatMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        names |= {call.call_id: call.name for call in message.tool_calls}
        if message.role == "tool":
            written.append(ChatMessage("user", f"{names.get(message.call_id, 'The tool')} replies: {message.content}"))
        elif message.tool_calls:
            calls = message.tool_calls
            written_as = written_calls(calls, request) if request is not None else [_as_text(call) for call in calls]
            texts = [message.content, *(compact_json(call).decode() for call in written_as)]
            written.append(ChatMessage(message.role, "\n".join(filter(None, texts))))
        else:
            written.append(message)
    return written


def _with_one_system(messages: Sequence[ChatMessage], place: Literal["first", "none"]) -> list[ChatMessage]:
    """Join all system messages into one at the front, or into the first message of the user."""
    text = "\n\n".join(message.content for message in messages if message.role == "system")
    others = [message for message in messages if message.role != "system"]
    if not text:
        return others
    if place == "first":
        return [ChatMessage("system", text), *others]
    if not others or others[0].role != "user":
        return [ChatMessage("user", text), *others]
    return [replace(others[0], content=f"{text}\n\n{others[0].content}"), *others[1:]]


def _in_turns(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Join neighbours of one role, results of tools excepted, and let the user begin."""
    written: list[ChatMessage] = []
    for message in messages:
        last = written[-1] if written else None
        if message.role == "assistant" and (last is None or last.role == "system"):
            written.append(ChatMessage("user", OPENING))
        elif last is not None and last.role == message.role != "tool":
            text = "\n\n".join(filter(None, (last.content, message.content)))
            calls, images = (*last.tool_calls, *message.tool_calls), (*last.images, *message.images)
            written[-1] = ChatMessage(message.role, text, calls, images=images, carried=_carried_by_both(last, message))
            continue
        written.append(message)
    return written


def _carried_by_both(one: ChatMessage, other: ChatMessage) -> dict[str, Any]:
    """Return what two messages that are joined bring back; a content of its own would hide that of the other one."""
    if not (one.carried or other.carried):
        return {}
    joined = {name: value for name, value in {**one.carried, **other.carried}.items() if name != "content"}
    calls = [[*message.carried.get(CALLS, ())] for message in (one, other)]
    if any(calls):
        joined[CALLS] = [*calls[0], *[{}] * (len(one.tool_calls) - len(calls[0])), *calls[1]]
    return joined


def _uncarried(message: ChatMessage, dialect: Dialect) -> ChatMessage:
    """Leave out what an endpoint does not take back of its own replies."""
    if not message.carried:
        return message
    carried = {name: value for name, value in message.carried.items() if name not in dialect.uncarried}
    if CALLS in carried:
        carried[CALLS] = [_without(call, dialect.uncarried) for call in carried[CALLS]]
    return replace(message, carried=carried)


def _without(call: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    left = {name: value for name, value in call.items() if name not in names}
    if "function" in left:
        left["function"] = {name: value for name, value in left["function"].items() if name not in names}
    return left


def _with_short_ids(message: ChatMessage) -> ChatMessage:
    """Write ids of calls as nine letters and digits."""
    calls = tuple(replace(call, call_id=_short_id(call.call_id)) for call in message.tool_calls)
    return replace(message, tool_calls=calls, call_id=_short_id(message.call_id) if message.call_id else "")


def _short_id(call_id: str) -> str:
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]
