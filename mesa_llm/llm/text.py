"""Why an object cannot be read, as a language model reads it before it tries again."""

from __future__ import annotations

from mesa_llm.text import sentences

REASONS = {
    "too_many_brackets": "the reply holds too many brackets to be searched",
    "too_deep": "it is nested more than {maximum} times",
    "too_many_layers": "it is encoded too many times",
    "more_follows": "something follows the value",
    "no_json": "{name} is no JSON",
    "key_twice": "the key {name!r} occurs twice, with two values",
    "argument_twice": "the argument {name!r} occurs twice, with two values",
    "no_value": "no value at {text!r}",
    "in_comment": "the text ends within a comment",
    "in_value": "the text ends within a value",
    "in_string": "the text ends within a string",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)
