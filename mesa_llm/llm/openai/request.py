"""Writes requests in the format of OpenAI's chat completions, as far as an endpoint supports it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from mesa_llm.canonical import compact_json
from mesa_llm.llm.openai.errors import ErrorDetail
from mesa_llm.llm.schema.flat import with_enums
from mesa_llm.records import ChatMessage, Request, ToolSpec, options_for

_ERRORS = {
    "choice": r"tool.?choice",
    "schema": r"response.?format|json.?(schema|mode|object)|structured.?output|guided|grammar",
    "length": r"max_completion_tokens",
    "effort": r"reasoning.?effort",
    "seed": r"\bseed\b",
    "sampling": r"\btemperature\b|\btop_p\b",
    "tools": r"support\w* (the )?(tool|function)|tool.call.parser|tools param|'body', 'tools'"
    r"|(tool|function)\w*( call\w*| use)? (is|are)( not|n't) supported",
}
"""Part of the format → pattern of an endpoint's errors about it."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How much of the format an endpoint supports."""

    schema: Literal["schema", "object", "none"] = "schema"
    """Whether replies can be held to a JSON schema, to any JSON object, or to nothing."""

    choice: Literal["required", "auto", "none"] = "required"
    """Values of `tool_choice` that it supports; none: leave it out."""

    tools: bool = True
    """False: describe tools in a message; the model calls them in its text."""

    seed: bool = True
    """False: leave the seed out."""

    length: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Its name of the setting `max_tokens`."""

    sampling: bool = True
    """False: leave out `temperature` and `top_p`, which reasoning models often do not support."""

    effort: bool = True
    """False: leave out `reasoning_effort`."""

    def without(self, detail: ErrorDetail) -> Dialect | None:
        """Return a simpler dialect, which avoids what an endpoint rejects.

        Args:
            detail: The endpoint's error.

        Returns:
            The dialect; None if the error is about nothing that can be left out.
        """
        simpler = self._simpler()
        for text in (detail.about, detail.text):
            for part, pattern in _ERRORS.items():
                if part in simpler and re.search(pattern, text, re.IGNORECASE):
                    return simpler[part]
        return None

    def _simpler(self) -> dict[str, Dialect]:
        """Return, for each part of the format that can be left out or changed, the dialect without it."""
        simpler: dict[str, Dialect] = {}
        if self.choice != "none":
            simpler["choice"] = replace(self, choice="auto" if self.choice == "required" else "none")
        if self.schema != "none":
            simpler["schema"] = replace(self, schema="object" if self.schema == "schema" else "none")
        if self.length == "max_tokens":
            simpler["length"] = replace(self, length="max_completion_tokens")
        if self.seed:
            simpler["seed"] = replace(self, seed=False)
        if self.effort:
            simpler["effort"] = replace(self, effort=False)
        if self.sampling:
            simpler["sampling"] = replace(self, sampling=False)
        if self.tools:
            simpler["tools"] = replace(self, tools=False)
        return simpler


class Writer:
    """Writes requests to one model, and caches the JSON of tools and schemas, which many requests share."""

    def __init__(self, model: str) -> None:
        """Store the name of the model at its endpoint."""
        self.model = model
        self._tools: dict[tuple[str, ...], list[bytes]] = {}
        self._fixed_tools: dict[tuple[ToolSpec, ...], bytes] = {}
        self._formats: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}

    def write(self, request: Request, dialect: Dialect) -> bytes:
        """Return the body of a request as JSON, in UTF-8.

        Args:
            request: The request.
            dialect: How much of the format the endpoint supports.
        """
        messages = [message.wire_json for message in request.messages]
        body: dict[str, Any] = {"model": request.adapter or self.model, **request.settings}
        if not dialect.sampling:
            body = {name: value for name, value in body.items() if name not in ("temperature", "top_p")}
        if not dialect.effort:
            body.pop("reasoning_effort", None)
        if dialect.length != "max_tokens" and "max_tokens" in body:
            body[dialect.length] = body.pop("max_tokens")
        if dialect.seed:
            body.setdefault("seed", request.salt.seed)
        if request.schema is not None and dialect.schema != "none":
            body["response_format"] = self._format(request.schema, dialect.schema)
        tools = b""
        if request.tools and not dialect.tools:
            messages.append(ChatMessage("user", tools_text(request)).wire_json)
        elif request.tools:
            if dialect.choice != "none":
                body["tool_choice"] = tool_choice(request) if dialect.choice == "required" else "auto"
            tools = b',"tools":%b' % self._tools_json(request)
        return b'%b,"messages":[%b]%b}' % (compact_json(body)[:-1], b",".join(messages), tools)

    def _format(self, schema: Mapping[str, Any], form: Literal["schema", "object"]) -> dict[str, Any]:
        """Return the `response_format` of a schema, cached, as the same schema is used again."""
        if form == "object":
            return response_format(schema, form)
        entry = self._formats.get(id(schema))
        if entry is None:
            if len(self._formats) >= 256:
                self._formats.clear()
            entry = self._formats[id(schema)] = (schema, response_format(schema))  # holds the schema: its id stays
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
        tools, options = _offered_tools(request.tools, request.options)
        key = (*(tool.digest for tool in tools), *options)
        parts = self._tools.get(key)
        if parts is None:
            if len(self._tools) >= 256:
                self._tools.clear()
            gaps = {name: f"\0{name}\0" for name in options}
            parts = self._tools[key] = _GAP.split(compact_json(wire_tools(tools, gaps)))
        if len(parts) == 1:
            return parts[0]
        values = {name.encode(): compact_json(option_values) for name, option_values in options.items()}
        return b"".join([values[part] if index % 2 else part for index, part in enumerate(parts)])


_GAP = re.compile(rb'"\\u0000(.*?)\\u0000"')
"""Placeholder of an argument's values in the JSON of tools."""


def wire_tools(tools: Sequence[ToolSpec], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return tools in the form of OpenAI's chat completions, with the values that arguments may take now as enums.

    Args:
        tools: The tools.
        options: As in `Observation.options`.
    """
    tools, options = _offered_tools(tools, options)
    if not options:
        return [tool.wire for tool in tools]
    wire: list[dict[str, Any]] = []
    for tool in tools:
        function = {**tool.wire["function"], "parameters": with_enums(tool.parameters, options_for(tool.name, options))}
        wire.append({"type": "function", "function": function})
    return wire


def _offered_tools(
    tools: Sequence[ToolSpec], options: Mapping[str, Any]
) -> tuple[Sequence[ToolSpec], Mapping[str, Any]]:
    """Leave out options without any value, and tools that require such an argument, unless that leaves no tool."""
    if all(options.values()):
        return tools, options
    possible = [
        tool
        for tool in tools
        if all(options_for(tool.name, options).get(name, True) for name in tool.parameters.get("required", ()))
    ]
    return possible or tools, {name: values for name, values in options.items() if values}


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


def tools_text(request: Request) -> str:
    """Describe tools in a message, for endpoints without tool calls."""
    functions = [tool["function"] for tool in wire_tools(request.tools, request.options)]
    descriptions = [{**function, "parameters": function["parameters"].get("properties", {})} for function in functions]
    return (
        'Choose one of these and reply with only a JSON object {"action": its name, "arguments": {…}}. '
        f"Its `parameters` say what each argument may be:\n{compact_json(descriptions).decode()}"
    )
