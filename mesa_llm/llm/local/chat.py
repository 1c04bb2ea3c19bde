"""Writes requests in the form that the embedded model understands, and reads its replies.

The model has no tool calls: the prompt describes the tools, and a grammar allows it nothing but to call one.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, cast

from mesa_llm.errors import Refused
from mesa_llm.llm.schema.description import description_of, signature
from mesa_llm.llm.schema.flat import Schema, choices, either, flat_schema, narrow
from mesa_llm.llm.schema.grammar import schema_to_gbnf
from mesa_llm.records import ChatMessage, Request, ToolCall, ToolSpec

MAX_DESCRIPTION = 160
"""Maximum number of characters of a tool's description in the prompt; each costs time."""

MAX_FORM = 2_000
"""Maximum number of characters that describe the form of an answer."""


def wire_messages(request: Request) -> list[dict[str, str]]:
    """Return the messages of a request for the model's chat template.

    All system messages become one, at the front. What can be done, and in which form, follows the first of them: that
    part is the same for all agents, so that the model reads it only once. Results of tools become messages of the user.
    """
    system = [message.content for message in request.messages if message.role == "system"]
    form = reply_form(request)
    shared = "\n\n".join(text for text in (*system[:1], form, *system[1:]) if text)
    wire = [{"role": "system", "content": plain(shared)}] if shared else []
    names: dict[str, str] = {}
    for message in request.messages:
        names |= {call.call_id: call.name for call in message.tool_calls}
        if message.role == "tool":
            name = names.get(message.call_id, "The tool")
            text = request.prompts.fill("embedded_result.md", name=name, result=message.content)
            wire.append({"role": "user", "content": plain(text)})
        elif message.role != "system":
            wire.append({"role": message.role, "content": plain(_message_text(message))})
    return wire


def _message_text(message: ChatMessage) -> str:
    """Return the text of a message, with its calls in the form that the model has to use itself."""
    calls = [{"action": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls]
    calls_json = [json.dumps(call, ensure_ascii=False, separators=(",", ":"), default=repr) for call in calls]
    return "\n".join([message.content, *calls_json] if message.content else calls_json)


def plain(text: str) -> str:
    """Break up marks that could end a message early (`<|im_end|>`), and replace what UTF-8 cannot hold."""
    return text.replace("<|", "< |").encode("utf-8", "replace").decode("utf-8")


def reply_form(request: Request) -> str:
    """Describe what can be done and in which form; empty if the answer is free."""
    offers = "\n".join(f"{signature(tool)} – {_brief_signature(tool)}" for tool in request.tools)
    answer = "" if request.schema is None else description_of(flat_schema(request.schema))[:MAX_FORM]
    return request.prompts.fill("embedded_form.md", offers=offers, answer=answer) if offers or answer else ""


def _brief_signature(tool: ToolSpec) -> str:
    return tool.description.partition(". ")[0][:MAX_DESCRIPTION].rstrip(".")


def grammar(request: Request) -> str | None:
    """Compile the grammar of what the model may write; None: anything.

    Where a typed answer is wanted, actions are not offered. Once a tool has returned a result, tools are not offered
    beside actions or a typed answer any more: a small model would go on calling them.

    Raises:
        Refused: If there is nothing that it may write.
    """
    if request.schema is None and not request.tools:
        return None
    schemas: list[Schema | None] = []
    actions = [tool for tool in request.tools if tool.is_action and request.schema is None]
    readers = [tool for tool in request.tools if not tool.is_action]
    if any(message.role == "tool" for message in request.messages) and (actions or request.schema is not None):
        readers = []
    if request.schema is not None:
        schemas.append(narrow(flat_schema(request.schema), request.options))
    schemas += choices([*actions, *readers], request.options)
    schema = either(schemas)
    if schema is None:
        raise Refused("nothing can be answered: an argument that is needed has no possible value")
    return _compiled(json.dumps(schema, default=repr))


@lru_cache(maxsize=256)
def _compiled(schema: str) -> str:
    return plain(schema_to_gbnf(json.loads(schema)))


def read_call(text: str, request: Request) -> ToolCall | None:
    """Read the call in what the model wrote; None if it wrote something else, or was cut off in the middle."""
    try:
        parsed: Any = json.loads(text) if request.tools else None
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    fields = cast("dict[str, Any]", parsed)
    name, arguments = fields.get("action"), fields.get("arguments")
    if name not in [tool.name for tool in request.tools] or not isinstance(arguments, dict):
        return None
    return ToolCall(name, cast("dict[str, Any]", arguments))
