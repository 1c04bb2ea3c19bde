"""The endpoint of the tests: its honest replies are valid and depend on the request alone; it counts what it sees."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.openai.reply import read_reply
from mesa_llm.llm.openai.request import Dialect, Writer
from mesa_llm.records import ChatMessage, Request
from mesa_llm.tools.toolbox import ToolBox
from tests.faulty_server import FaultyServer
from tests.honest_reply import honest
from tests.llm.human.questions import ACTIONS, TOOLS, VOTE, Village, ask


def body_of(request: Request) -> dict[str, Any]:
    return json.loads(Writer("tiny").write(request, Dialect()))


@given(st.integers(1, 10_000))
def test_a_call_passes_the_check_of_its_arguments(agent: int) -> None:
    request = ask(agent=agent, tools=tuple(TOOLS.values()))
    reply = read_reply(honest(body_of(request)), request)
    assert ToolBox.of(object(), 1, [Village()]).check(reply.tool_calls[0]).name in TOOLS


@given(st.integers(1, 10_000))
def test_a_text_follows_the_schema(agent: int) -> None:
    request = ask(agent=agent, schema=VOTE)
    jsonschema.validate(json.loads(read_reply(honest(body_of(request)), request).text), VOTE)


def test_the_body_alone_decides() -> None:
    bodies = [body_of(ask(agent=agent, tools=ACTIONS)) for agent in range(30)]
    replies = [json.dumps(honest(body)) for body in bodies]
    assert replies == [json.dumps(honest(body)) for body in bodies]
    assert len(set(replies)) > 5


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("In step 5 you see post 12 by user 3, and post #14.", {12, 14}),
        ("post_id: 7, likes: 100", {7}),
        ("[post id=31] hello 99", {31}),
        ("#8 was said at 10:30; #9 later", {8, 9}),
        ("There are 41 and 42.", {41, 42}),
    ],
)
def test_ids_are_taken_from_what_is_shown(text: str, ids: set[int]) -> None:
    schema = {"type": "object", "properties": {"post_id": {"type": "integer"}}, "required": ["post_id"]}
    requests = [ask(ChatMessage("user", "1 2 3"), ChatMessage("user", text), agent=n, schema=schema) for n in range(30)]
    replies = [honest(body_of(request)) for request in requests]
    assert {json.loads(reply["choices"][0]["message"]["content"])["post_id"] for reply in replies} == ids


def test_a_server_counts_what_it_sees() -> None:
    async def both(url: str) -> None:
        llm = OpenAIHTTP("tiny", url)
        await asyncio.gather(llm.reply(ask(agent=1)), llm.reply(ask(agent=2)))
        await llm.close()

    with FaultyServer(lambda body, number: f"number {number}", latency_s=0.05) as server:
        asyncio.run(both(server.url))
    assert (server.count, server.peak_in_flight, server.refusals) == (2, 2, 0)
    assert server.last["model"] == "tiny"
