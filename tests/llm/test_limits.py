"""No more requests are sent at once, or in a minute, than allowed."""

from __future__ import annotations

import asyncio
import time

import pytest

from mesa_llm.errors import (
    RateLimited,
)
from mesa_llm.llm import rate_control
from mesa_llm.llm.limits import Limits
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.retry import Retry
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.records import Reply
from tests.faulty_server import FaultyServer, rate_limited
from tests.llm.human.questions import ask
from tests.llm.layers import gathered, served


def test_the_latency_of_a_reply_is_that_of_its_call_and_not_of_its_turn() -> None:
    async def all_at_once() -> list[Reply]:
        llm = Limits(ScriptedLLM(lambda request: "Fine.", delay_s=lambda request: 0.05), concurrency=1)
        return await asyncio.gather(*(llm.reply(ask(agent=agent)) for agent in range(5)))

    begun = time.perf_counter()
    replies = asyncio.run(all_at_once())
    assert sum(reply.latency_s for reply in replies) <= time.perf_counter() - begun


def test_no_more_are_in_flight_than_allowed() -> None:
    with FaultyServer(latency_s=0.01) as server:
        replies = served(server, lambda transport: Limits(transport, concurrency=5), 40)
    assert all(isinstance(reply, Reply) for reply in replies)
    assert server.peak_in_flight == 5


@pytest.mark.parametrize("taken", [4, 16, 40])
def test_a_limit_in_flight_costs_few_requests(taken: int) -> None:
    with FaultyServer(latency_s=0.01, max_in_flight=taken) as server:
        replies = served(server, lambda transport: Retry(Limits(transport, 64), base_s=0.05), 400)
    assert sum(isinstance(reply, Reply) for reply in replies) == 400
    assert server.count <= 480
    assert server.peak_in_flight <= taken + 1


@pytest.mark.parametrize(("retry_after", "most"), [(1, 480), (None, 600)])
def test_a_limit_per_second_costs_few_requests(retry_after: float | None, most: int) -> None:
    with FaultyServer(latency_s=0.02, max_per_s=200, retry_after=retry_after) as server:
        replies = served(server, lambda transport: Retry(Limits(transport, 64)), 400)
    assert sum(isinstance(reply, Reply) for reply in replies) == 400
    assert server.count <= most


def test_a_learned_limit_lasts() -> None:
    async def rounds(url: str) -> list[int]:
        transport = OpenAIHTTP("tiny", url)
        llm = Retry(Limits(transport, 64), base_s=0.02)
        refusals: list[int] = []
        for agent in range(4):
            await asyncio.gather(*(llm.reply(ask(agent=100 * agent + n)) for n in range(60)))
            refusals.append(server.refusals)
        await transport.close()
        return refusals

    with FaultyServer(latency_s=0.01, max_in_flight=6) as server:
        first, *_, last = asyncio.run(rounds(server.url))
    assert last - first <= 4


def test_an_endpoint_that_always_limits_ends_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_control, "PATIENCE_S", 0.02)
    with FaultyServer(lambda body, number: rate_limited()) as server:
        replies = served(server, lambda transport: Retry(Limits(transport, 8), attempts=2, base_s=0.01), 4)
    assert [type(reply) for reply in replies] == [RateLimited] * 4
    assert server.count == 8


def test_tokens_a_minute_slow_long_requests_down() -> None:
    # 12,000 a minute: 600 at once, then 190 a second; each of these takes about 100.
    llm = Limits(ScriptedLLM(lambda request: Reply("hm", prompt_tokens=90, reply_tokens=10)), tokens_per_min=12_000)
    started = time.perf_counter()
    gathered(llm, 7, "word " * 80)
    assert time.perf_counter() - started > 0.25
