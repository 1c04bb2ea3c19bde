"""Why a call cannot be made, as the language model reads it that made it."""

from __future__ import annotations

from mesa_llm.text import sentences

REASONS = {
    "no_tool": "there is no tool {name!r}.",
    "unknown_tool": "there is no tool {name!r}; choose one of: {names}.",
    "no_tools": "there is no tool {name!r}; none can be used now.",
    "not_json": "{tool}: the arguments cannot be written as JSON: {error}.",
    "too_long": "the arguments are longer than {maximum} characters; write less.",
    "too_large": "{tool}: {name}: the number is too large.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)
