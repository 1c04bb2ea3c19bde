"""What an endpoint bears is learned from few rejections, and is never more than the user allows."""

from __future__ import annotations

import asyncio
import itertools
import random
import selectors
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import pytest

from mesa_llm.errors import RateLimited
from mesa_llm.llm import rate_control
from mesa_llm.llm.rate_control import START, PerMinute, RateControl

CLOCK_S = 0.02
"""What timers may wake up too early by, in seconds."""


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
            slow.accept(epoch)
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
        slow.reject(epoch, 1.0) if refused else slow.accept(epoch)
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
    assert seconds < 10_000 / (64 / 0.064) + 1.3 * len(strays) + 3


def test_a_rate_limit_is_found_kept_to_and_forgotten_once_it_is_gone() -> None:
    granted: Counter[int] = Counter()

    def limited(number: int, now: float) -> bool:
        granted[int(now)] += now < 60
        return granted[int(now)] > 100

    seconds, sent = simulated(12_000, limited)
    assert sent < 1.2 * 12_000
    assert seconds < 60 + 45


# -- endpoints of every kind, on a clock of their own

LATENCY_S, REJECTION_S, WORKERS, REQUESTS = 0.5, 0.05, 64, 2000

Endpoint = Callable[[float, int], bool]
"""Takes the time, and the number of requests in flight; returns whether it rejects."""


def per_window(number: float, window_s: float = 1.0) -> Endpoint:
    """Accept a number of requests in each fixed window."""
    accepted: Counter[int] = Counter()

    def is_rejected(now: float, in_flight: int) -> bool:
        accepted[int(now / window_s)] += 1
        return accepted[int(now / window_s)] > number

    return is_rejected


def bucket(per_s: float, burst: float) -> Endpoint:
    """Accept what a token bucket holds."""
    state = [burst, 0.0]

    def is_rejected(now: float, in_flight: int) -> bool:
        tokens = min(burst, state[0] + per_s * (now - state[1]))
        state[:] = tokens - (tokens >= 1), now
        return tokens < 1

    return is_rejected


def sliding_minute(number: int) -> Endpoint:
    """Accept a number of requests in any minute."""
    accepted: deque[float] = deque()

    def is_rejected(now: float, in_flight: int) -> bool:
        while accepted and accepted[0] <= now - 60:
            accepted.popleft()
        if len(accepted) < number:
            accepted.append(now)
            return False
        return True

    return is_rejected


def at_once(number: int) -> Endpoint:
    """Accept a number of requests in flight."""
    return lambda now, in_flight: in_flight > number


def stray(share: float, then: Endpoint = lambda now, in_flight: False) -> Endpoint:
    """Reject a share of all requests, whatever they are."""
    rng = random.Random(1)
    return lambda now, in_flight: rng.random() < share or then(now, in_flight)


def changing(at_s: float, first: Endpoint, then: Endpoint) -> Endpoint:
    """Be one endpoint up to a time, and another one after it."""
    return lambda now, in_flight: (first if now < at_s else then)(now, in_flight)


def paced(endpoint: Endpoint, retry_after_s: float | None) -> tuple[float, float]:
    """Send requests as an engine does; return the seconds until 95 % have a reply, and rejections a request."""
    clock, rng, in_flight, accepted, rejected = Clock(), random.Random(0), Counter[str](), list[float](), 0
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = lambda: clock.now  # type: ignore[method-assign]
    control, left = RateControl(WORKERS), iter(range(REQUESTS))

    async def is_accepted() -> bool:
        nonlocal rejected
        epoch = await control.enter()
        in_flight["now"] += 1
        is_rejected = endpoint(clock.now, in_flight["now"])
        await asyncio.sleep((REJECTION_S if is_rejected else LATENCY_S) * rng.uniform(0.5, 1.5))
        in_flight["now"] -= 1
        control.reject(epoch, retry_after_s) if is_rejected else control.accept(epoch)
        control.leave()
        rejected += is_rejected
        return not is_rejected

    async def worker() -> None:
        for _ in left:
            longest_s = 0.5
            while not await is_accepted():
                own_s = rng.uniform(longest_s / 2, longest_s)
                await asyncio.sleep(own_s if retry_after_s is None else retry_after_s + rng.uniform(0, 0.5))
                longest_s = min(2 * longest_s, 30.0)
            accepted.append(clock.now)

    async def all_workers() -> None:
        await asyncio.gather(*(worker() for _ in range(WORKERS)))

    loop.run_until_complete(all_workers())
    loop.close()
    return accepted[int(0.95 * REQUESTS) - 1], rejected / REQUESTS


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("retry_after_s", [None, 0.1, 1.0])
def test_strays_cost_a_quarter_of_the_pace_at_most(share: float, retry_after_s: float | None) -> None:
    wait_s = share / (1 - share) * (0.4 if retry_after_s is None else retry_after_s + 0.25)  # of the request itself
    seconds, _ = paced(stray(share), retry_after_s)
    assert seconds <= 0.95 * REQUESTS * (LATENCY_S + wait_s) / WORKERS / 0.75 + (share == 0.5) * 45


@pytest.mark.parametrize(
    ("endpoint", "retry_after_s", "per_s"),
    [
        (per_window(20), None, 20),
        (per_window(20), 1.0, 20),
        (per_window(5), 1.0, 5),
        (bucket(20, 40), None, 20),
        (bucket(20, 40), 1.0, 20),
        (sliding_minute(300), 30.0, 5),
        (at_once(4), None, 8),
        (at_once(4), 1.0, 8),
        (at_once(16), None, 32),
        (at_once(40), None, 80),
    ],
)
def test_a_limit_is_used_to_three_quarters_and_rejects_little(
    endpoint: Endpoint, retry_after_s: float | None, per_s: float
) -> None:
    seconds, rejected = paced(endpoint, retry_after_s)
    assert seconds <= 0.95 * REQUESTS / per_s / 0.75
    assert rejected <= 0.25


@pytest.mark.parametrize(
    ("endpoint", "ideal_s"),
    [
        (lambda: changing(15, per_window(60), per_window(10)), 115),
        (lambda: changing(30, per_window(10), per_window(60)), 57),
        (lambda: changing(10, at_once(40), at_once(8)), 78),
        (lambda: changing(30, at_once(8), at_once(40)), 48),
    ],
)
@pytest.mark.parametrize("retry_after_s", [None, 1.0])
def test_a_limit_that_changes_is_learned_anew(
    endpoint: Callable[[], Endpoint], retry_after_s: float | None, ideal_s: float
) -> None:
    seconds, rejected = paced(endpoint(), retry_after_s)
    assert seconds <= 2 * ideal_s
    assert rejected <= 0.3


def test_an_endpoint_that_only_rejects_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_control, "GIVE_UP_S", 0.05)

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
