"""Endpoints that want a part of their reply back, and refuse a request without it, each in its own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.faulty_server import Fault, refused
from tests.honest_reply import completion

Body = dict[str, Any]
SIGNATURE = "CqsBAb4+9v" + "A" * 300
"""A signature of thought, longer than any name."""

TOOL, ACTION = "count", "pay"
"""What is called first, and what is decided upon its result."""


def calling(extra: Mapping[str, Any], beside: Mapping[str, Any], call_id: str = "call_7f") -> Body:
    """Write a reply that calls the tool.

    Args:
        extra: What stands beside the call.
        beside: What stands in its message.
        call_id: Id of the call.
    """
    body = completion(None, [(TOOL, "{}")])
    message = body["choices"][0]["message"]
    message["tool_calls"][0] |= {"id": call_id, **extra}
    message |= beside
    return body


def _assistants(body: Body) -> Iterator[Body]:
    yield from (message for message in body["messages"] if message["role"] == "assistant")


def _gemini(body: Body) -> str:
    calls = [call for message in _assistants(body) for call in message.get("tool_calls", ())]
    if all(call.get("extra_content", {}).get("google", {}).get("thought_signature") == SIGNATURE for call in calls):
        return ""
    return "Function call is missing a thought_signature in functionCall parts. This is required for tools to work."


def _deepseek(body: Body) -> str:
    for index, message in enumerate(body["messages"]):
        if "tool_calls" in message and message.get("reasoning_content") != "Moss?":
            return f"Missing `reasoning_content` field in the assistant message at message index {index}."
    return ""


def _kimi(body: Body) -> str:
    for index, message in enumerate(body["messages"]):
        if "tool_calls" in message and not message.get("reasoning_content"):
            return (
                f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
            )
    return _ids(body)


def _anthropic(body: Body) -> str:
    for message in _assistants(body):
        blocks = message.get("thinking_blocks") or [{}]
        if "tool_calls" in message and blocks[0].get("signature") != SIGNATURE:
            return "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    return _ids(body)


def _openrouter(body: Body) -> str:
    for message in _assistants(body):
        if "tool_calls" in message and message.get("reasoning_details") != DETAILS:
            return "reasoning_details of the previous response must be passed back unmodified"
    return ""


def _ids(body: Body) -> str:
    """Refuse calls whose results do not follow them, by their exact ids."""
    for message, following in zip(body["messages"], [*body["messages"][1:], {}], strict=True):
        for call in message.get("tool_calls", ()):
            if following.get("tool_call_id") != call["id"] or not call["id"].startswith("call_7f"):
                return (
                    "An assistant message with 'tool_calls' must be followed by tool messages for each 'tool_call_id'."
                )
    return ""


DETAILS = [
    {"type": "reasoning.encrypted", "data": SIGNATURE, "id": "rs_1", "format": "openai-responses-v1", "index": 0}
]

PROVIDERS: dict[str, tuple[Callable[[Body], str], Body]] = {
    "Gemini": (_gemini, calling({"extra_content": {"google": {"thought_signature": SIGNATURE}}}, {})),
    "DeepSeek": (_deepseek, calling({}, {"reasoning_content": "Moss?", "content": ""})),
    "Kimi": (_kimi, calling({}, {"reasoning_content": "Hm."}, "call_7f:0")),
    "Anthropic": (
        _anthropic,
        calling({}, {"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE}]}),
    ),
    "OpenRouter": (_openrouter, calling({}, {"reasoning_details": DETAILS, "reasoning": None})),
    "OpenAI": (_ids, calling({}, {}, "call_7f" + "x" * 400)),
}
"""Provider → its rule, as the words of its refusal or nothing, and its first reply."""


def behaviour(name: str, *, loses: bool = False) -> Callable[[Body, int], Any]:
    """Return how a provider answers: a call of the tool, and after its result a decision.

    Args:
        name: Name of the provider.
        loses: Whether it gives nothing that it could be brought back.
    """
    rule, first = PROVIDERS[name]
    if loses:
        first = calling({}, {})

    def behave(body: Body, number: int) -> Fault | Body:
        if words := rule(body):
            return refused(400, words)
        has_result = any(message["role"] == "assistant" for message in body["messages"])
        return completion(None, [(ACTION, '{"coins": 3}')]) if has_result else first

    return behave
