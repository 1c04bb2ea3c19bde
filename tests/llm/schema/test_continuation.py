"""What a grammar forces, what can follow a beginning, and that the grammar of the rest accepts just that."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm.llm.schema.continuation import Continuation
from mesa_llm.llm.schema.grammar import COMPACT, NATURAL, schema_to_gbnf
from tests.llm.schema.gbnf import Grammar

MOVE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "move": {"enum": ["move_north", "move_south", 'say "é"']},
        "steps": {"type": "integer", "minimum": 8, "maximum": 12},
        "why": {"type": "string", "maxLength": 20},
    },
    "required": ["move", "steps"],
    "additionalProperties": False,
}


def answer(schema: dict[str, Any]) -> Continuation:
    """Return what an answer of a schema may be."""
    wrapped = {"type": "object", "properties": {"answer": schema}, "required": ["answer"]}
    return Continuation.of(schema_to_gbnf({**wrapped, "additionalProperties": False}, NATURAL))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"enum": ["go", "stay"]}, '{"answer": "'),
        ({"enum": ["go north", "go south"]}, '{"answer": "'),
        ({"type": "boolean"}, '{"answer":'),
        ({"type": "integer", "minimum": 1, "maximum": 7}, '{"answer": '),
        ({"type": "integer", "minimum": -1, "maximum": 1}, '{"answer":'),
        ({"type": "string"}, '{"answer": "'),
        ({"enum": ["go"]}, '{"answer": "go"}'),
        ({"type": "array", "items": {"enum": [True]}, "minItems": 2, "maxItems": 2}, '{"answer": [true, true]}'),
    ],
)
def test_what_is_forced_is_put_in_front_up_to_where_a_token_may_begin(schema: dict[str, Any], expected: str) -> None:
    assert answer(schema).prefilled()[0].decode() == expected


@pytest.mark.parametrize("notation", [NATURAL, COMPACT])
@pytest.mark.parametrize("n", [0, 1, 9, 12, 20, 30, 34, 38])
def test_the_grammar_of_the_rest_accepts_what_the_whole_one_does(notation: Any, n: int) -> None:
    texts = ['{"move": "move_south", "steps": 12, "why": "a b \\" c"}', '{"move": "say \\"é\\"", "steps": 8}']
    refused = ['{"move": "move_south", "steps": 13}', '{"move": "move_south"}']
    whole = Continuation.of(schema_to_gbnf(MOVE, notation))
    for text in [*texts, *refused]:
        written = text if notation is NATURAL else text.replace(": ", ":").replace(", ", ",")
        rest = whole.after(written[:n].encode())
        if written in texts or rest is not None:
            assert rest is not None
            assert Grammar(rest.grammar).accepts(written[n:]) is (text in texts)


def test_what_cannot_follow_is_refused_and_an_end_is_known() -> None:
    whole = Continuation.of(schema_to_gbnf(MOVE))
    assert whole.after(b'{"move":"fly') is None
    over = whole.after('{"move":"say \\"é\\"","steps":9}'.encode())
    assert over is not None
    assert over.is_over


def test_only_a_text_is_free() -> None:
    assert answer({"type": "string"}).prefilled()[1].is_free
    assert not answer({"enum": ["go", "stay"]}).prefilled()[1].is_free
    assert not answer({"type": "number", "minimum": 0, "maximum": 99}).prefilled()[1].is_free
