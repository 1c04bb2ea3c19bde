"""Endpoints that speak one dialect each, and refuse anything else in the words of the field."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from tests.faulty_server import Fault, refused
from tests.honest_reply import honest

Body = dict[str, Any]
Refuses = Callable[[Body], Fault | None]
"""Takes a request; gives the refusal, or None."""


def roles_of(body: Body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def no_system(words: str = "System role not supported", status: int = 400) -> Refuses:
    return lambda body: refused(status, words) if "system" in roles_of(body) else None


def one_system_at_the_front(body: Body) -> Fault | None:
    return refused(400, "System message must be at the beginning.") if "system" in roles_of(body)[1:] else None


def taking_turns(words: str, status: int = 400) -> Refuses:
    """Refuse neighbours of one role, results of tools excepted, and a conversation that the model begins."""

    def refuse(body: Body) -> Fault | None:
        roles = [role for role in roles_of(body) if role != "system"]
        is_wrong = roles[0] != "user" or any(role == following != "tool" for role, following in pairwise(roles))
        return refused(status, words) if is_wrong else None

    return refuse


def only_users_and_assistants(body: Body) -> Fault | None:
    is_wrong = not {"user", "assistant"} >= set(roles_of(body)) or any("tool_calls" in m for m in body["messages"])
    return refused(400, "Only user and assistant roles are supported!") if is_wrong else None


def no_field(name: str, words: str, status: int = 400, **fields: Any) -> Refuses:
    return lambda body: refused(status, words, **fields) if name in body else None


def no_value(name: str, value: Any, words: str, **fields: Any) -> Refuses:
    return lambda body: refused(400, words, **fields) if body.get(name) == value else None


def no_both(words: str) -> Refuses:
    return lambda body: refused(400, words) if "tools" in body and "response_format" in body else None


def no_format(kind: str, words: str) -> Refuses:
    return lambda body: refused(400, words) if body.get("response_format", {}).get("type") == kind else None


def no_keyword(keyword: str, words: str, status: int = 400) -> Refuses:
    """Refuse a keyword in the schemas of answers and of tools."""
    return lambda body: refused(status, words) if f'"{keyword}":' in json.dumps(_schemas(body)) else None


def _schemas(body: Body) -> list[Any]:
    return [body.get("response_format"), [tool["function"]["parameters"] for tool in body.get("tools", ())]]


def json_has_to_be_mentioned(body: Body) -> Fault | None:
    is_silent = "response_format" in body and "json" not in json.dumps(body["messages"]).lower()
    return refused(400, "Prompt must contain the word 'json' in some form") if is_silent else None


def nine_characters(body: Body) -> Fault | None:
    ids = [message["tool_call_id"] for message in body["messages"] if "tool_call_id" in message]
    words = "Tool call id was {} but must be a-z, A-Z, 0-9, with a length of 9."
    return refused(400, words.format(ids[0])) if any(len(one) != 9 or not one.isalnum() for one in ids) else None


def strict(*rules: Refuses) -> Callable[[Body, int], Any]:
    """Refuse what the first of the rules refuses, and answer all else honestly."""

    def behave(body: Body, number: int) -> Any:
        return next((fault for rule in rules if (fault := rule(body)) is not None), None) or honest(body)

    return behave


def texts_of(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(message["content"] or "" for message in messages)
