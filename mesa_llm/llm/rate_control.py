"""Rate control: how fast an endpoint may be sent requests, learned from those it rejects, within the user's limits."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from aiolimiter import AsyncLimiter

from mesa_llm.errors import RateLimited

START = 48
"""Number of requests in flight at first; while more wait, each reply admits one, until the endpoint rejects one."""

PROBE_AFTER = 500
"""Number of replies after which one request in flight more is tried than the endpoint accepted; then ever fewer."""

RATE_GROWTH = 0.02
"""Share by which a learned rate grows at first; it doubles every `RATE_GROWTH_S` without a rejection, up to 1."""

RATE_GROWTH_S = 5.0
"""Seconds between two increases of a learned rate."""

FORGET_FACTOR = 16.0
"""Multiple of its learned value beyond which a rate, grown without a rejection, is forgotten."""

SOON_S = 5.0
"""Seconds after a pause within which another burst of rejections shows that there is a rate limit."""

STRAY_AFTER = 50
"""Number of replies since the last rejection after which a rejection may be a stray one, while it is the only one."""

PATIENCE_S = 0.5
"""Pause, in seconds, after the only request in flight was rejected without `Retry-After`; it doubles each time."""

MAX_PATIENCE_S = 30.0
"""Maximum of that pause, in seconds."""

GIVE_UP_S = 180.0
"""Seconds of nothing but rejections after which requests fail at once in place of waiting for the next pause to end."""


class RateControl:
    """Lets requests through as fast as an endpoint accepts them.

    The number in flight starts low and grows fast. A rejection (429) lowers it to what the endpoint had accepted; from
    then on it grows by one for as many replies as are in flight. A rejection with `Retry-After` pauses all requests
    until then, and a second one soon afterwards also spaces requests evenly, at the rate that had been accepted. What
    was learned lasts as long as the endpoint confirms it: without rejections the rate grows ever faster, and is
    forgotten, so that a stray 429 or two cost a minute at most.

    One object belongs to one event loop at a time.

    Attributes:
        maximum: Maximum number of requests in flight.
        rate: Requests a second at which they are spaced; None: they are not.
    """

    def __init__(
        self, max_in_flight: int, requests_per_min: float | None = None, tokens_per_min: float | None = None
    ) -> None:
        """Start with nothing learned.

        Args:
            max_in_flight: Maximum number of requests in flight.
            requests_per_min: Maximum number of requests in any minute; None: no limit.
            tokens_per_min: Maximum number of tokens in any minute; None: no limit.
        """
        self.maximum = max_in_flight
        self._requests = None if requests_per_min is None else PerMinute(requests_per_min)
        self._tokens = None if tokens_per_min is None else PerMinute(tokens_per_min)
        self.rate: float | None = None
        self._allowed = float(min(max_in_flight, START))
        self._ceiling = float(max_in_flight)
        self._level = self._allowed
        self._has_rejected = False
        self._epoch = 0
        self._patience_s = PATIENCE_S
        self._waiting = 0
        self._in_flight = 0
        self._resume = 0.0
        self._rejecting_since: float | None = None
        self._stretch_start = 0.0
        self._stretch_taken = 0
        self._has_been_full = False
        self._rate_set = 0.0
        self._rate_learned = 0.0
        self._growth = RATE_GROWTH
        self._soon = 0.0
        self._rejections = 0
        self._stretch = (0, 0.0, False)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = Slots(self.allowed)
        self._spacing: AsyncLimiter | None = None

    @property
    def allowed(self) -> int:
        """Number of requests that may be in flight now."""
        return int(self._allowed)

    async def enter(self, tokens: float = 0.0) -> int:
        """Wait for a turn; `leave` must be called afterwards.

        Args:
            tokens: Estimated number of tokens of the request and its reply.

        Returns:
            Number of the burst that the request belongs to, for `reject`.

        Raises:
            RateLimited: If the endpoint has done nothing but reject for a long time.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move_to(loop)
        if self._slots.n_taken == 0:
            self._stretch_start, self._stretch_taken, self._has_been_full = loop.time(), 0, False
        if self._slots.n_taken >= self._slots.maximum:
            self._has_been_full = True
        if not self._slots.take_free():
            self._waiting += 1
            try:
                await self._slots.acquire()
            finally:
                self._waiting -= 1
        if self._resume or self._spacing or self._requests or self._tokens:
            try:
                await self._wait(tokens)
            except BaseException:
                self._slots.release()
                raise
        self._in_flight += 1
        return self._epoch

    async def _wait(self, tokens: float) -> None:
        """Wait until a request that has its slot may be sent."""
        if self._requests is not None:
            await self._requests.take(1)
        if self._tokens is not None:
            await self._tokens.take(tokens)
        if self._spacing is not None:
            await self._spacing.acquire()
        while (pause_s := self._resume - self._now()) > 0:
            self._check_hope()
            await asyncio.sleep(pause_s)

    def leave(self) -> None:
        """Release the turn."""
        self._in_flight -= 1
        self._slots.release()

    def accept(self) -> None:
        """Record a reply of the endpoint, and admit more requests if it keeps replying."""
        self._stretch_taken += 1
        self._patience_s = PATIENCE_S
        self._rejecting_since = None
        if not self._has_rejected:
            if self._has_been_full:
                self._allow(self._allowed + 1)
        elif self._in_flight >= self.allowed or (self._waiting and self.rate is None):
            if self._allowed < self._ceiling or self.rate is not None:
                step = 1 / self._allowed
            else:
                step = (1 + self._allowed - self._ceiling) / PROBE_AFTER
            self._allow(self._allowed + step)
        if self.rate is not None and self._now() - self._rate_set > RATE_GROWTH_S:
            self._speed_up(self.rate)

    def reject(self, epoch: int, retry_after_s: float | None) -> None:
        """Record a rejection by the endpoint, and slow down.

        Args:
            epoch: What `enter` returned; rejections of one burst count as one.
            retry_after_s: Seconds that it asks to wait; None: it does not say.
        """
        others = self._in_flight - 1
        if self._rejecting_since is None:
            self._rejecting_since = self._now()
        if retry_after_s is None and others == 0:  # rejected alone: the number in flight is not the reason
            retry_after_s = self._patience_s
            self._patience_s = min(2 * self._patience_s, MAX_PATIENCE_S)
        if epoch == self._epoch:
            self._epoch += 1
            self._level = self._allowed
            self._rejections = 0
            self._stretch = (self._stretch_taken + others, self._now() - self._stretch_start, self._now() < self._soon)
            self._has_rejected = True
        self._rejections += 1
        if retry_after_s is not None and self._rejections == (2 if self._stretch[0] >= STRAY_AFTER else 1):
            self._learn_rate(retry_after_s)
        elif self._rejections == 1 and self.rate is not None:
            self._space(0.97 * self.rate)
        if retry_after_s is not None:
            pause_end = self._now() + retry_after_s
            self._stretch_start, self._stretch_taken = pause_end, 0
            self._soon = pause_end + max(SOON_S, retry_after_s)
            self._resume = max(self._resume, pause_end)
        self._ceiling = max(1.0, others, self._level / 2)
        self._allow(max(self._level / 4, min(0.9 * self._level, others)))

    def _check_hope(self) -> None:
        """Raise `RateLimited` if the endpoint has done nothing but reject for `GIVE_UP_S`."""
        if self._rejecting_since is not None and self._now() - self._rejecting_since > GIVE_UP_S:
            raise RateLimited(f"for {GIVE_UP_S:g} s the endpoint has answered nothing but 429; not sent")

    def _learn_rate(self, retry_after_s: float) -> None:
        """Space requests at the rate accepted since the last pause, or further apart than before."""
        n_requests, seconds, is_soon = self._stretch
        slowest = 1 / max(retry_after_s, 1.0)  # after each pause, one request can be sent
        if self.rate is not None:
            rate = 0.85 * self.rate
        elif is_soon and n_requests > 0 and retry_after_s > 0:
            rate = 0.95 * n_requests / (seconds + retry_after_s)
        else:
            return
        self._rate_learned, self._growth, self._rate_set = max(rate, slowest), RATE_GROWTH, self._now()
        self._space(self._rate_learned)

    def _speed_up(self, rate: float) -> None:
        """Raise the rate, each time by a larger share, until it is forgotten."""
        rate *= 1 + self._growth
        self._growth, self._rate_set = min(2 * self._growth, 1.0), self._now()
        if rate > FORGET_FACTOR * self._rate_learned:
            self.rate = self._spacing = None
        else:
            self._space(rate)

    def _space(self, rate: float) -> None:
        """Space requests at a rate per second."""
        self.rate = rate
        self._spacing = AsyncLimiter(1, 1 / rate)

    def _allow(self, n_requests: float) -> None:
        """Set how many requests may be in flight, within 1 and the maximum."""
        self._allowed = min(max(n_requests, 1.0), float(self.maximum))
        if self._slots.maximum != self.allowed:
            self._slots.resize(self.allowed)

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start anew on another event loop, with what was learned."""
        self._loop = loop
        self._slots = Slots(self.allowed)
        self._waiting, self._in_flight, self._resume, self._rejecting_since = 0, 0, 0.0, None
        self._soon, self._rate_set = 0.0, loop.time()
        self._spacing = None if self.rate is None else AsyncLimiter(1, 1 / self.rate)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


class Slots:
    """Slots for requests, whose number may change while some requests wait; first come, first served."""

    def __init__(self, maximum: int) -> None:
        """Start with all slots free.

        Args:
            maximum: Number of slots.
        """
        self.maximum = maximum
        self.n_taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    def take_free(self) -> bool:
        """Take a slot if one is free and no request waits; return whether it was taken."""
        if self.n_taken >= self.maximum or self._queue:
            return False
        self.n_taken += 1
        return True

    async def acquire(self) -> None:
        """Take a slot, and wait for one if all are taken."""
        if self.take_free():
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    self._queue.remove(turn)
            else:  # its turn came at the same moment
                self.release()
            raise

    def release(self) -> None:
        """Free a slot."""
        self.n_taken -= 1
        self._admit()

    def resize(self, maximum: int) -> None:
        """Change the number of slots; those that are taken stay so."""
        self.maximum = maximum
        self._admit()

    def _admit(self) -> None:
        while self._queue and self.n_taken < self.maximum:
            turn = self._queue.popleft()
            if not turn.done():
                self.n_taken += 1
                turn.set_result(None)


class PerMinute:
    """Lets at most an amount through in any minute, spread over the minute."""

    def __init__(self, amount: float) -> None:
        """Set the amount.

        Args:
            amount: Number of requests or tokens a minute, 1 or more.
        """
        self.amount = amount
        self._burst = max(1.0, amount / 20)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bucket: AsyncLimiter | None = None

    async def take(self, amount: float) -> None:
        """Wait until this much may go through."""
        loop = asyncio.get_running_loop()
        if self._bucket is None or loop is not self._loop:
            # A full bucket and what flows into it during a minute add up to the amount at most.
            per_s = max(1.0, self.amount - self._burst) / 60
            self._loop, self._bucket = loop, AsyncLimiter(self._burst, self._burst / per_s)
        while amount > 0:
            await self._bucket.acquire(min(amount, self._burst))
            amount -= self._burst
