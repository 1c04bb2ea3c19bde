"""An endpoint's honest answer to a request: valid, and a function of the request's body alone."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mesa_llm.llm.schema.sampling import sample_value

Schema = Mapping[str, Any]


def honest(body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a chat completion: call one of the offered tools, or fill the schema, or write a few words.

    An integer that is named `post_id`, and that no enum holds to values, is one of the numbers that the messages show.

    Args:
        body: The request, as it was sent.

    Returns:
        A chat completion; equal bodies give equal ones.
    """
    chance = random.Random(hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest())
    texts = [content for message in body["messages"] if isinstance(content := message.get("content"), str)]
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if body.get("tools"):
        function = chance.choice(body["tools"])["function"]
        arguments = sample_value(function["parameters"], chance, _shown_ids(function["parameters"], texts))
        return completion(calls=[(function["name"], json.dumps(arguments))], body=body)
    if schema is not None:
        return completion(json.dumps(sample_value(schema, chance, _shown_ids(schema, texts))), body=body)
    return completion("{}" if "response_format" in body else sample_value({"type": "string"}, chance), body=body)


def completion(
    text: Any = "",
    calls: Sequence[tuple[Any, Any]] = (),
    body: Mapping[str, Any] | None = None,
    **usage: Any,
) -> dict[str, Any]:
    """Write a chat completion.

    Args:
        text: Its content, of any type.
        calls: Name and arguments (JSON text) of each tool call, of any type.
        body: The request it answers, for the model's name and the count of tokens.
        **usage: Fields of its usage, instead of the counts.
    """
    asked = body or {}
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
        message["tool_calls"] = [
            {"id": f"call_{place}", "type": "function", "function": function}
            for place, function in enumerate(functions)
        ]
    counts = {
        "prompt_tokens": len(json.dumps(asked)) // 4,
        "completion_tokens": 1 + len(json.dumps(message)) // 4,
    }
    finish = "tool_calls" if calls else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": asked.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage or counts,
    }


def _shown_ids(schema: Schema, texts: Sequence[str]) -> dict[str, list[int]]:
    """Give, for every integer property named `…_id`, the ids it can take that are shown."""
    shown: dict[str, list[int]] = {}
    for name, field in _id_fields(schema):
        low, high = field.get("minimum", 0), field.get("maximum", 10**9)
        ids = [number for number in _numbers(name.removesuffix("_id"), texts) if low <= number <= high]
        if ids:
            shown[name] = ids
    return shown


def _id_fields(schema: Any) -> Iterator[tuple[str, Schema]]:
    """Find the integer properties named `…_id`, at any depth."""
    if isinstance(schema, list):
        for part in schema:
            yield from _id_fields(part)
    if isinstance(schema, Mapping):
        for name, field in schema.get("properties", {}).items():
            if name.endswith("_id") and field.get("type") == "integer" and "enum" not in field:
                yield name, field
        for part in schema.values():
            yield from _id_fields(part)


def _numbers(kind: str, texts: Sequence[str]) -> list[int]:
    """Find the ids in the last message that shows numbers: those named so, else marked ones, else all numbers."""
    named = rf"\b{re.escape(kind)}(?:s|_id)?\b\W{{0,4}}(?:id\W{{0,3}})?(\d{{1,9}})"
    for text in reversed(texts):
        for pattern in (named, r"(?:#|\bid\W{0,3})(\d{1,9})", r"\b(\d{1,9})\b"):
            found = re.findall(pattern, text, re.IGNORECASE)
            if found:
                return [int(number) for number in found]
    return []
