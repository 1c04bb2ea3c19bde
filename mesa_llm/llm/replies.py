"""Makes replies of the answers of people, scripts and random draws."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mesa_llm.records import Reply, ToolCall

Answer = Reply | ToolCall | Mapping[str, Any] | str
"""Answer of a script: a reply, one call, an object, or a text."""


def call(name: str, /, **arguments: Any) -> Reply:
    """Make a reply that calls one tool or action."""
    return as_reply(ToolCall(name, arguments))


def as_reply(answer: Answer, model: str = "") -> Reply:
    """Convert an answer to a reply; an object becomes JSON text.

    Args:
        answer: The answer; a reply is returned unchanged.
        model: Name of the model in the reply.

    Raises:
        TypeError: If it is no `Answer`, or an object that JSON cannot hold.
    """
    match answer:
        case Reply():
            return answer
        case ToolCall():
            return Reply(tool_calls=(answer,), dollars=0.0, model=model)
        case str():
            return Reply(answer, dollars=0.0, model=model)
        case Mapping():
            return Reply(json.dumps(dict(answer), ensure_ascii=False), dollars=0.0, model=model)
        case _:
            raise TypeError(f"an answer is a Reply, a ToolCall, a mapping or a str, not {type(answer).__name__}")
