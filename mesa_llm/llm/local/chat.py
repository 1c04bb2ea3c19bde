"""Writes requests in the form that a local model understands, and reads its replies.

A local model has no tool calls: the prompt describes the tools, and a grammar allows it nothing but to call one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from mesa_llm.errors import Refused
from mesa_llm.llm.local.profile import Profile
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.form import answer_text, call_text
from mesa_llm.llm.openai.request import adapted, written_calls
from mesa_llm.llm.schema.description import description_of, signature
from mesa_llm.llm.schema.flat import Schema, call_choices, choices, either, flat_schema, narrow
from mesa_llm.llm.schema.grammar import Notation, schema_to_gbnf
from mesa_llm.records import ChatMessage, Request, ToolCall, ToolSpec

MAX_DESCRIPTION = 160
"""Maximum number of characters of a tool's description in a brief form; each costs time."""

MAX_FORM = 2_000
"""Maximum number of characters that describe the form of an answer in a brief form."""

IN_TURNS = Dialect(tools=False, tool_messages=False, system="first", alternates=True)
"""What any chat template understands: one system message, then the user and the assistant in turns."""


def wire_messages(request: Request, profile: Profile) -> list[dict[str, str]]:
    """Return the messages of a request for the model's chat template.

    All system messages become one, at the front. Results of tools become messages of the user.

    Args:
        request: The request.
        profile: How the model is asked.
    """
    messages = _without_tool_messages(request, profile.notation)
    form = reply_form(request, profile)
    messages = _with_brief_form(messages, form) if profile.has_brief_form else _with_form(messages, form)
    return [{"role": message.role, "content": plain(message.content)} for message in messages]


def _with_brief_form(messages: Sequence[ChatMessage], form: str) -> list[ChatMessage]:
    """Put the form after the first system message; that part is the same for all agents, and is read only once."""
    system = [message.content for message in messages if message.role == "system"]
    shared = "\n\n".join(text for text in (*system[:1], form, *system[1:]) if text)
    first = [ChatMessage("system", shared)] if shared else []
    return [*first, *(message for message in messages if message.role != "system")]


def _with_form(messages: Sequence[ChatMessage], form: str) -> list[ChatMessage]:
    """Put the form after all instructions, and join messages as chat templates need it.

    All that stands before it is the same for all agents, so that it is read once.
    """
    written = sorted(messages, key=lambda message: message.role != "system")
    if form:
        written.insert(sum(message.role == "system" for message in written), ChatMessage("system", form))
    return adapted(written, IN_TURNS, "")


def _without_tool_messages(request: Request, notation: Notation) -> list[ChatMessage]:
    """Write calls in the notation that the model has to use itself, and their results as messages of the user."""
    written: list[ChatMessage] = []
    names: dict[str, str] = {}
    for message in request.messages:
        names |= {call.call_id: call.name for call in message.tool_calls}
        if message.role == "tool":
            name = names.get(message.call_id, "The tool")
            text = request.prompts.fill("embedded_result.md", name=name, result=message.content)
            written.append(ChatMessage("user", text))
        else:
            written.append(ChatMessage(message.role, _message_text(message, notation, request)))
    return written


def _message_text(message: ChatMessage, notation: Notation, request: Request) -> str:
    """Return the text of a message, with its calls in the form that the model has to use itself."""
    separators = (f",{notation.blank}", f":{notation.blank}")
    calls = written_calls(message.tool_calls, request)
    calls_json = [json.dumps(call, ensure_ascii=False, separators=separators, default=repr) for call in calls]
    return "\n".join([message.content, *calls_json] if message.content else calls_json)


def plain(text: str) -> str:
    """Break up marks that could end a message early (`<|im_end|>`), and replace what UTF-8 cannot hold."""
    return text.replace("<|", "< |").encode("utf-8", "replace").decode("utf-8")


def reply_form(request: Request, profile: Profile) -> str:
    """Describe what can be done and in which form; empty if the answer is free.

    What `options` allow is enforced by the grammar alone, so that the description is the same for all agents.
    """
    if profile.has_brief_form:
        offers = "\n".join(f"{signature(tool)} – {_brief_description(tool)}" for tool in request.tools)
        answer = "" if request.schema is None else description_of(flat_schema(request.schema))[:MAX_FORM]
        fields = {"offers": offers, "answer": answer, "max_calls": request.max_calls}
        return request.prompts.fill("embedded_form.md", **fields) if offers or answer else ""
    tools = [tool for tool in _offered(request, profile) if choices([tool], request.options)]
    functions = [tool.wire["function"] for tool in tools]
    parts = [call_text(functions, request.prompts, request.max_calls)] if tools else []
    if request.schema is not None:
        parts.append(answer_text(request.schema, request.prompts, has_tools=bool(tools)))
    return "\n\n".join(parts)


def _brief_description(tool: ToolSpec) -> str:
    return tool.description.partition(". ")[0][:MAX_DESCRIPTION].rstrip(".")


def _offered(request: Request, profile: Profile) -> list[ToolSpec]:
    """Return the actions and tools that may be called.

    Where a typed answer is wanted, actions are not offered. Once a tool has returned a result, a model with a brief
    form is not offered tools beside actions or a typed answer any more: it would go on calling them.
    """
    actions = [tool for tool in request.tools if tool.is_action and request.schema is None]
    readers = [tool for tool in request.tools if not tool.is_action]
    has_result = any(message.role == "tool" for message in request.messages)
    if profile.has_brief_form and has_result and (actions or request.schema is not None):
        readers = []
    return [*actions, *readers]


def grammar(request: Request, profile: Profile) -> str | None:
    """Compile the grammar of what the model may write; None: anything.

    Args:
        request: The request.
        profile: How the model is asked.

    Raises:
        Refused: If there is nothing that it may write.
    """
    if request.schema is None and not request.tools:
        return None
    schemas: list[Schema | None] = []
    if request.schema is not None:
        schemas.append(narrow(flat_schema(request.schema), request.options))
    schemas += call_choices(_offered(request, profile), request.options, request.max_calls)
    schema = either(schemas)
    if schema is None:
        raise Refused("nothing can be answered: an argument that is needed has no possible value")
    return _compiled(json.dumps(schema, default=repr), profile.notation)


@lru_cache(maxsize=256)
def _compiled(schema: str, notation: Notation) -> str:
    return plain(schema_to_gbnf(json.loads(schema), notation))


def read_calls(text: str, request: Request) -> tuple[ToolCall, ...]:
    """Read the calls in what the model wrote; none if it wrote something else, or was cut off in the middle."""
    try:
        parsed: Any = json.loads(text) if request.tools else None
    except ValueError:
        return ()
    several = cast("dict[str, Any]", parsed).get("actions") if isinstance(parsed, dict) else None
    members = cast("list[Any]", several) if request.max_calls > 1 and isinstance(several, list) else [parsed]
    calls = [_read_call(member, request) for member in members]
    return tuple(call for call in calls if call is not None) if None not in calls else ()


def _read_call(parsed: Any, request: Request) -> ToolCall | None:
    if not isinstance(parsed, dict):
        return None
    fields = cast("dict[str, Any]", parsed)
    name, arguments = fields.get("action"), fields.get("arguments")
    if name not in [tool.name for tool in request.tools] or not isinstance(arguments, dict):
        return None
    return ToolCall(name, cast("dict[str, Any]", arguments))
