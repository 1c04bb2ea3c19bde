"""No more requests are sent at once, or in a minute, than allowed."""

from __future__ import annotations

import asyncio
import itertools
import selectors
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mesa_llm.errors import (
    RateLimited,
)
from mesa_llm.llm import limits
from mesa_llm.llm.limits import START, Limits, PerMinute, RateControl
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.retry import Retry
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.records import Reply
from tests.faulty_server import FaultyServer, rate_limited
from tests.llm.human.questions import ask
from tests.llm.layers import gathered, served

CLOCK_S = 0.02
"""What timers may wake up too early by, in seconds."""


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
    monkeypatch.setattr(limits, "PATIENCE_S", 0.02)
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


async def send(
    slow: RateControl, answered: asyncio.Event, refused: bool = False, retry_after_s: float | None = None
) -> None:
    """Send one request; when the event is set, it is answered or refused."""
    epoch = await slow.enter()
    try:
        await answered.wait()
        if refused:
            slow.reject(epoch, retry_after_s)
        else:
            slow.accept()
    finally:
        slow.leave()


async def rounds(slow: RateControl, sizes: list[tuple[int, int]]) -> list[int]:
    """Send rounds of requests, of which some are refused; give what is allowed after each."""
    allowed: list[int] = []
    for number, refusals in sizes:
        answered = asyncio.Event()
        sent = [asyncio.ensure_future(send(slow, answered, place < refusals)) for place in range(number)]
        await asyncio.sleep(0.01)
        answered.set()
        await asyncio.gather(*sent)
        allowed.append(slow.allowed)
    return allowed


def test_it_starts_low_and_grows_fast_while_it_is_full() -> None:
    assert asyncio.run(rounds(RateControl(max_in_flight=64), [(200, 0), (5, 0)])) == [64, 64]
    assert asyncio.run(rounds(RateControl(max_in_flight=64), [(START - 1, 0)])) == [START]


def test_a_burst_of_refusals_leaves_room_for_what_was_taken() -> None:
    assert asyncio.run(rounds(RateControl(max_in_flight=64), [(START, 6)])) == [START - 6]


def test_after_a_refusal_it_grows_slowly_and_stays_near_what_was_taken() -> None:
    first, *later = asyncio.run(rounds(RateControl(max_in_flight=64), [(START, 2), *[(40, 0)] * 5]))
    assert 0.85 * START <= first < START
    assert max(later) <= START


def test_everyone_waits_until_retry_after_has_passed() -> None:
    async def pause() -> float:
        slow, answered = RateControl(max_in_flight=4), asyncio.Event()
        answered.set()
        await send(slow, answered, refused=True, retry_after_s=0.2)
        started = time.perf_counter()
        await asyncio.gather(send(slow, answered), send(slow, answered))
        return time.perf_counter() - started

    assert asyncio.run(pause()) >= 0.2 - CLOCK_S


def test_what_is_learned_lasts_into_the_next_event_loop() -> None:
    slow = RateControl(max_in_flight=64)
    (learned,) = asyncio.run(rounds(slow, [(8, 7)]))
    assert asyncio.run(rounds(slow, [(1, 0)])) == [learned]
    assert learned < START


def test_a_request_that_is_given_up_while_it_waits_gives_its_turn_back() -> None:
    async def cancelled() -> None:
        slow, answered = RateControl(max_in_flight=1), asyncio.Event()
        sent = [asyncio.ensure_future(send(slow, answered)) for _ in range(3)]
        await asyncio.sleep(0.01)
        sent[0].cancel()
        sent[1].cancel()
        answered.set()
        await asyncio.wait_for(sent[2], 1)

    asyncio.run(cancelled())


class Clock(selectors.DefaultSelector):
    """Time that passes only while nothing is to be done."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        self.now += 1e-6 if ready or not timeout else timeout + 1e-6
        return ready


def simulated(number: int, is_refused: Callable[[int, float], bool]) -> tuple[float, int]:
    """Send requests of 64 ms as fast as allowed; return the simulated seconds, and how many requests it took."""
    clock = Clock()
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = lambda: clock.now  # type: ignore[method-assign]
    slow, left, sent = RateControl(max_in_flight=64), iter(range(number)), itertools.count(1)

    async def worker() -> None:
        for _ in left:
            while await send_for(slow, 0.064, is_refused):
                await asyncio.sleep(1.0)

    async def send_for(slow: RateControl, seconds: float, is_refused: Callable[[int, float], bool]) -> bool:
        epoch = await slow.enter()
        refused = is_refused(next(sent), clock.now)
        await asyncio.sleep(0 if refused else seconds)
        slow.reject(epoch, 1.0) if refused else slow.accept()
        slow.leave()
        return refused

    async def all_workers() -> None:
        await asyncio.gather(*(worker() for _ in range(64)))

    loop.run_until_complete(all_workers())
    loop.close()
    return clock.now, next(sent) - 1


@pytest.mark.parametrize("strays", [{40}, {40, 41}, {500, 800, 1100}, set(range(500, 10_000, 1000))])
def test_stray_rejections_cost_their_pauses_and_little_more(strays: set[int]) -> None:
    seconds, _ = simulated(10_000, lambda number, now: number in strays)
    assert seconds < 10_000 / (64 / 0.064) + 1.3 * len(strays) + 2


def test_a_rate_limit_is_found_kept_to_and_forgotten_once_it_is_gone() -> None:
    granted: Counter[int] = Counter()

    def limited(number: int, now: float) -> bool:
        granted[int(now)] += now < 60
        return granted[int(now)] > 100

    seconds, sent = simulated(12_000, limited)
    assert sent < 1.2 * 12_000
    assert seconds < 60 + 45


def test_an_endpoint_that_only_rejects_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GIVE_UP_S", 0.05)

    async def hopeless() -> None:
        slow, answered = RateControl(max_in_flight=1), asyncio.Event()
        answered.set()
        for _ in range(5):
            await send(slow, answered, refused=True, retry_after_s=0.04)

    with pytest.raises(RateLimited, match="nothing but 429"):
        asyncio.run(hopeless())


def test_an_amount_a_minute_is_never_exceeded_and_comes_spread() -> None:
    async def count(seconds: float) -> tuple[int, float]:
        limiter, taken, begun = PerMinute(1200), 0, time.perf_counter()
        while time.perf_counter() < begun + seconds:
            await limiter.take(1)
            taken += 1
        return taken, time.perf_counter() - begun

    # At first a twentieth at once (60), then 19 a second: 60 + 60 * 19 = 1200 in the first minute.
    taken, seconds = asyncio.run(count(0.5))
    assert 60 < taken <= 60 + seconds * 19 + 1


def test_an_amount_larger_than_the_burst_is_taken_in_parts() -> None:
    async def wait() -> float:
        limiter = PerMinute(6000)
        started = time.perf_counter()
        await limiter.take(300)
        await limiter.take(19)
        return time.perf_counter() - started

    # 300 at once, then 95 a second.
    assert asyncio.run(wait()) >= 19 / 95 - CLOCK_S
