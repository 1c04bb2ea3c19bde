"""What is forced is read, what is chosen is drawn, and a reply is the same bit for bit whatever is kept."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Literal

import pytest

from mesa_llm.engine.reading.answers import answer_schema
from mesa_llm.llm.local.decoder import drawn
from mesa_llm.llm.local.model import EmbeddedModel, chat_body
from mesa_llm.llm.local.profile import SMALLEST
from mesa_llm.records import ChatMessage, Request
from tests.llm.human.questions import ACTIONS, TOOLS, ask

SETTINGS: dict[str, Any] = {"max_tokens": 8, "temperature": 0.8}
RULES = ChatMessage("system", "You live in a village by the sea, and know everybody. " * 5)
ANN, BOB = (ChatMessage("user", f"You are {name}. {'It rains and the road is long. ' * 6}") for name in ("Ann", "Bob"))
SAID = ChatMessage("assistant", "I stay at home today.")
BUT = ChatMessage("user", "But all the others go out, and there will be music, dance and food until midnight. " * 2)


def requests() -> list[Request]:
    """Return requests of several conversations: choices, several actions, texts, and what goes on from earlier ones."""
    shared: dict[str, Any] = {"settings": SETTINGS}
    answer = answer_schema(Literal["go out", "go home", "stay"])
    return [
        ask(RULES, ANN, schema=answer, **shared),
        ask(RULES, BOB, schema=answer, number=1, **shared),
        ask(RULES, ANN, schema=answer, number=2, **shared),
        ask(RULES, ANN, SAID, BUT, schema=answer, number=3, **shared),
        ask(RULES, ANN, number=4, **shared),
        ask(RULES, ANN, SAID, BUT, number=5, **shared),
        ask(RULES, BOB, tools=tuple(TOOLS.values()), options={"neighbour": (4, 17)}, number=6, **shared),
        ask(RULES, ANN, tools=ACTIONS, options={"neighbour": (4, 17)}, max_actions=3, number=7, **shared),
        ask(RULES, BOB, schema=answer_schema(float), number=8, **shared),
        ask(RULES, ANN, schema=answer, choices=("go out", "go home", "stay"), number=9, **shared),
    ]


@pytest.fixture(scope="module")
def embedded(model_path: Path) -> EmbeddedModel:
    """Load the model, for this module alone."""
    return EmbeddedModel(model_path, SMALLEST)


def outcome(model: EmbeddedModel, request: Request) -> tuple[Any, ...]:
    """Return all that is recorded of a reply."""
    reply = model.submit(request, threading.Event()).result()
    calls, probabilities = repr(reply.tool_calls), dict(reply.probabilities)
    return reply.text, calls, probabilities, reply.off_list, reply.prompt_tokens, reply.reply_tokens, reply.finish


def test_a_reply_is_the_same_bit_for_bit_whatever_was_asked_before(embedded: EmbeddedModel) -> None:
    asked, cold = requests(), list[tuple[Any, ...]]()
    for request in asked:
        embedded.forget()
        cold.append(outcome(embedded, request))
    embedded.forget()
    for index in (*reversed(range(len(asked))), 3, 0, 5, 4, 5, 9, 2, 7, 6, 7):
        assert outcome(embedded, asked[index]) == cold[index]


def test_equal_prompts_are_read_once_and_drawn_by_their_seeds(embedded: EmbeddedModel) -> None:
    settings = {"temperature": 2.0, "top_p": 1.0, "min_p": 0.0}
    schema = answer_schema(Literal[1, 2, 3, 4, 5])
    asked = [ask(RULES, ANN, schema=schema, number=number, settings=settings) for number in range(20)]
    outcome(embedded, asked[0])
    n_read = embedded.n_read
    assert len({outcome(embedded, request)[0] for request in asked}) > 1
    assert embedded.n_read == n_read


def test_llama_cpp_alone_is_still_there_to_compare_with(model_path: Path) -> None:
    plain = EmbeddedModel(model_path, SMALLEST, is_plain=True)
    request = ask(RULES, ANN, schema=answer_schema(Literal["Green", "Oil"]), settings=SETTINGS)
    assert plain.write(chat_body(request, SMALLEST), threading.Event()).n_reply > 5


# -- draws


ALL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
SHARES = {b"a": 0.06, b"b": 0.03, b"c": 0.01}


def counts(settings: dict[str, float]) -> dict[bytes, int]:
    """Count draws at 1,000 chances that are equally spaced."""
    draws = [drawn(SHARES, settings, (number + 0.5) / 1000) for number in range(1000)]
    return {token: draws.count(token) for token in SHARES}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [600, 300, 100]),
        ({"temperature": 0.5}, [783, 196, 22]),
        ({"temperature": 0.0}, [1000, 0, 0]),
        ({"top_k": 1}, [1000, 0, 0]),
        ({"top_p": 0.8}, [667, 333, 0]),
        ({"min_p": 0.4}, [667, 333, 0]),
    ],
)
def test_a_draw_follows_the_probabilities_of_what_is_allowed(settings: dict[str, float], expected: list[int]) -> None:
    assert list(counts({**ALL, **settings}).values()) == pytest.approx(expected, abs=1)
