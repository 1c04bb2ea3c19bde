"""The thin client reads probabilities from `logprobs`, and says what to do where there are none."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any, Literal

import pytest

from mesa_llm.engine.reading.answers import answer_schema
from mesa_llm.errors import NoProbabilities
from mesa_llm.llm.litellm import LiteLLM
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.records import Reply, Request
from tests.faulty_server import Behaviour, Fault, FaultyServer, refused
from tests.honest_reply import completion
from tests.llm.human.questions import TOOLS, ask

CHOICES = (1, 3, 10)
QUESTION = ask(schema=answer_schema(Literal[1, 3, 10]), choices=CHOICES)

Path = list[tuple[str, dict[str, float]]]


def entry(text: str, probability: float) -> dict[str, Any]:
    return {"token": text, "bytes": list(text.encode()), "logprob": math.log(probability)}


def with_tokens(body: dict[str, Any], path: Path) -> dict[str, Any]:
    """Answer with some tokens; their alternatives are returned if the request asks for them."""
    whole = completion("".join(text for text, _ in path), body=body)
    if body.get("logprobs"):
        content = [
            {**entry(text, shares[text]), "top_logprobs": [entry(*one) for one in shares.items()]}
            for text, shares in path
        ]
        whole["choices"][0]["logprobs"] = {"content": content}
    return whole


def three(body: dict[str, Any], number: int) -> dict[str, Any]:
    """Answer 3; if only 1 and 10 are allowed, 10."""
    allowed = body["response_format"]["json_schema"]["schema"]["properties"]["answer"]["enum"]
    first = {"1": 0.6, "3": 0.4}
    if 3 in allowed:
        return with_tokens(body, [('{"answer": ', {'{"answer": ': 1.0}), ("3", first), ("}", {"}": 1.0})])
    path: Path = [('{"answer": ', {'{"answer": ': 1.0}), ("1", first), ("0", {"0": 0.5, "}": 0.5}), ("}", {"}": 1.0})]
    return with_tokens(body, path)


def replied(request: Request, behaviour: Behaviour) -> tuple[Reply, FaultyServer]:
    with FaultyServer(behaviour) as server:
        return asyncio.run(OpenAIHTTP("tiny", server.url).reply(request)), server


def test_probabilities_come_with_the_reply_that_was_sampled() -> None:
    reply, server = replied(QUESTION, three)
    assert json.loads(reply.text) == {"answer": 3}
    assert reply.probabilities == pytest.approx({"1": 0.3, "3": 0.4, "10": 0.3})
    assert (server.requests[0].body["top_logprobs"], reply.attempts) == (20, 2)


def test_nothing_is_asked_for_without_choices() -> None:
    reply, server = replied(ask(schema=answer_schema(Literal[1, 3, 10])), three)
    assert (dict(reply.probabilities), "logprobs" in server.last) == ({}, False)


def test_actions_are_chosen_in_words_as_calls_have_no_probabilities() -> None:
    def rest(body: dict[str, Any], number: int) -> dict[str, Any]:
        shares = {"rest": 0.75, "walk": 0.25}
        start, end = '{"action": "', '", "arguments": {}}'
        return with_tokens(body, [(start, {start: 1.0}), ("rest", shares), (end, {end: 1.0})])

    reply, server = replied(ask(tools=(TOOLS["walk"], TOOLS["rest"]), choices=("walk", "rest")), rest)
    assert reply.probabilities == pytest.approx({"walk": 0.25, "rest": 0.75})
    assert "tools" not in server.last
    assert "rest" in json.dumps(server.last["response_format"])


def test_an_endpoint_that_streams_returns_them_in_pieces() -> None:
    def streamed(body: dict[str, Any], number: int) -> Fault:
        content = with_tokens(body, [("3", {"1": 0.6, "3": 0.4})])["choices"][0]["logprobs"]["content"]
        start = '{"answer": '
        pieces: list[dict[str, Any]] = [
            {"delta": {"content": start}, "logprobs": {"content": [entry(start, 1.0)]}},
            {"delta": {"content": "3"}, "logprobs": {"content": content}},
            {"delta": {"content": "}"}, "finish_reason": "stop"},
        ]
        return Fault(body="".join(f"data: {json.dumps({'choices': [piece]})}\n\n" for piece in pieces).encode())

    request = ask(schema=answer_schema(Literal[1, 3]), choices=(1, 3))
    assert replied(request, streamed)[0].probabilities == pytest.approx({"1": 0.6, "3": 0.4})


def test_an_endpoint_without_any_says_what_to_do() -> None:
    with pytest.raises(NoProbabilities, match=r"returns no probabilities of tokens \(logprobs\).*leave that out"):
        replied(QUESTION, lambda body, number: completion('{"answer": 3}', body=body))


def test_an_endpoint_that_refuses_the_field_says_the_same() -> None:
    def strict(body: dict[str, Any], number: int) -> Any:
        return refused(400, "logprobs is not supported") if "logprobs" in body else completion('{"answer": 3}')

    with pytest.raises(NoProbabilities, match="leave that out"):
        replied(QUESTION, strict)


def test_endpoint_is_asked_for_as_many_alternatives_as_it_supports() -> None:
    def few(body: dict[str, Any], number: int) -> Any:
        if body.get("top_logprobs", 0) > 5:
            return refused(400, "top_logprobs must be less than or equal to 5")
        return three(body, number)

    reply, server = replied(QUESTION, few)
    assert (server.last["top_logprobs"], reply.probabilities["3"]) == (5, pytest.approx(0.4))


def test_litellm_reads_them_too() -> None:
    with FaultyServer(three) as server:
        reply = asyncio.run(LiteLLM("openai/tiny", api_base=server.url, api_key="a key").reply(QUESTION))
    assert reply.probabilities == pytest.approx({"1": 0.3, "3": 0.4, "10": 0.3})
