"""Rate control: how fast an endpoint may be sent requests, learned from those it rejects, within the user's limits."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from math import inf

from aiolimiter import AsyncLimiter

from mesa_llm.errors import RateLimited

START = 48
"""Number of requests in flight at first; while more wait, each reply admits one, until the endpoint rejects one."""

WINDOW, WINDOW_WITH_STRAYS = 24, 64
"""Number of results by which a pace is judged."""

FEW = 8
"""Number of results, or requests, below which nothing is inferred, and from which a slow pace is judged."""

SLOW_S = 2.0
"""Seconds after which a pace is judged by few results."""

TRIAL, MARGIN = 0.6, 0.92
"""Share of what was accepted that is sent to tell a limit from strays, and afterwards if there is a limit."""

MAX_STRAYS = 0.65
"""Maximum share of rejections that is taken for strays; of more, the endpoint has to be relieved."""

MEMORY = 400
"""Number of results after which rejections at lowered paces are forgotten."""

MEASURED_S = 20.0
"""Seconds after which what is accepted is measured anew."""

PATIENCE_S = 0.5
"""Pause, in seconds, after the only request in flight was rejected without `Retry-After`; it doubles each time."""

MAX_PATIENCE_S = 30.0
"""Maximum of that pause, in seconds."""

GIVE_UP_S = 180.0
"""Seconds of nothing but rejections after which requests fail at once in place of waiting for the next pause to end."""


class RateBound:
    """A bound of the pace, which is raised as long as that succeeds: fast, and by little near what has failed.

    Attributes:
        value: The bound.
    """

    def __init__(self, value: float, maximum: float = inf) -> None:
        """Set the bound, and its maximum."""
        self.value = value
        self._maximum = maximum
        self._failed = inf
        self._raised_from: float | None = None
        self._gain, self._hold, self._held = 1.25, 1, 0

    @property
    def is_raised(self) -> bool:
        """Whether it was raised, and is not known to be right."""
        return self._raised_from is not None

    def set(self, value: float, failed: float = inf, gain: float = 1.25) -> None:
        """Set the bound.

        Args:
            value: The bound.
            failed: Value that is too high, as far as known.
            gain: Factor by which it is raised next.
        """
        self.value, self._failed = min(value, self._maximum), failed
        self._raised_from, self._gain, self._held = None, gain, 0

    def succeed(self, least: float = 0.0) -> None:
        """Raise the bound, which has held requests back and was not too high.

        Args:
            least: Minimum of the raise.
        """
        if self._raised_from is not None:
            self._raised_from, self._hold = None, max(1, self._hold // 2)
            self._gain = min(1.25 * self._gain, 2.0)
            if self.value >= self._failed:
                self._failed, self._gain = inf, 1.5
        self._held += 1
        gain = 2.0 if self.value < self._failed / 2 < inf else self._gain
        target = max(gain * self.value, self.value + least)
        if target > 0.95 * self._failed:
            if self.value < 0.9 * self._failed:
                target = 0.95 * self._failed
            elif self._held < self._hold:
                return
            else:
                target = max(1.1 * self.value, self.value + least)
        if self.value < self._maximum:
            self._raised_from, self.value, self._held = self.value, min(target, self._maximum), 0

    def fail(self) -> bool:
        """Take back a raise, and wait longer before the next one; return whether there was one."""
        if self._raised_from is None:
            return False
        self._failed, self.value, self._raised_from = self.value, self._raised_from, None
        self._hold, self._gain, self._held = min(2 * self._hold, 8), 1.25, 0
        return True


class RateControl:
    """Lets requests through as fast as an endpoint accepts them.

    The number in flight starts low and grows fast. A rejection (429) pauses all requests for its `Retry-After`; then
    they are spaced at well below what was accepted, which tells a limit from stray rejections: below a limit there are
    none, and strays go on. Strays are borne: the pace is as before, and none of them holds back other requests, until
    there are clearly more. Below a limit, requests are sent at somewhat less than was accepted, and raised from time to
    time; a raise that fails is taken back, and the next one waits longer.

    One object belongs to one event loop at a time. Requests of one pace make an epoch: results of an earlier one say
    nothing about the present pace.

    Attributes:
        maximum: Maximum number of requests in flight.
        strays: Share of requests that are rejected however slowly they are sent, as far as known.
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
        self.strays = 0.0
        self._slot_bound = RateBound(float(min(max_in_flight, START)), float(max_in_flight))
        self._rate_bound = RateBound(inf)
        self._has_rejected = self._is_trial = self._follows = False
        self._is_settled = self._is_known = True
        self._before, self._share_before = (self._slot_bound.value, inf), 0.0
        self._trials: tuple[int, int] | None = None  # results, and rejections, at paces that were lowered since then
        self._needed = 2  # rejections that show strays; more, each time that this was wrong
        self._epoch = self._measured_epoch = 0
        self._begun = self._window_per_s = 0.0
        self._n_sent = self._n_results = self._n_rejected = self._in_a_row = 0
        self._is_full = self._is_spaced = False
        self._measured_since, self._measured_sent, self._measured_rejected = 0.0, 0, 0
        self._accepted_per_s = self._least_per_s = 0.0
        self._patience_s = PATIENCE_S
        self._in_flight = 0
        self._resume = self._next = 0.0
        self._rejecting_since: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots, self._turn = Slots(self.allowed), Slots(1)

    @property
    def allowed(self) -> int:
        """Number of requests that may be in flight now."""
        return max(1, int(self._slot_bound.value))

    @property
    def rate(self) -> float | None:
        """Requests a second at which they are spaced; None: they are not."""
        return None if self._rate_bound.value == inf else self._rate_bound.value

    async def enter(self, tokens: float = 0.0) -> int:
        """Wait for a turn; `leave` must be called afterwards.

        Args:
            tokens: Estimated number of tokens of the request and its reply.

        Returns:
            Number of the epoch that the request belongs to, for `accept` and `reject`.

        Raises:
            RateLimited: If the endpoint has done nothing but reject for a long time.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move_to(loop)
        if self._slots.n_taken == 0 and not self._has_rejected:
            self._is_full, self._measured_since, self._measured_sent = False, loop.time(), 0
        if not self._slots.take_free():
            self._is_full |= not self._has_rejected
            await self._slots.acquire()
        if self._has_rejected or self._requests or self._tokens:
            try:
                await self._wait(tokens)
            except BaseException:
                self._slots.release()
                raise
        self._in_flight += 1
        self._n_sent += 1
        self._measured_sent += 1
        self._is_full |= self._in_flight >= self.allowed
        return self._epoch

    async def _wait(self, tokens: float) -> None:
        """Wait until a request that has its slot may be sent."""
        if self._requests is not None:
            await self._requests.take(1)
        if self._tokens is not None:
            await self._tokens.take(tokens)
        await self._pause()
        if not self._is_settled:
            self._settle()
        if self._rate_bound.value == inf:
            return
        await self._turn.acquire()
        try:
            while (wait_s := self._next - self._now()) > 0:
                self._is_spaced = True
                await asyncio.sleep(wait_s)
            await self._pause()
            self._next = max(self._now(), self._next) + 1 / self._rate_bound.value
        finally:
            self._turn.release()

    async def _pause(self) -> None:
        """Wait until the endpoint may be asked again.

        Raises:
            RateLimited: If it has done nothing but reject for `GIVE_UP_S`.
        """
        while (pause_s := self._resume - self._now()) > 0:
            if self._rejecting_since is not None and self._now() - self._rejecting_since > GIVE_UP_S:
                raise RateLimited(f"for {GIVE_UP_S:g} s the endpoint has answered nothing but 429; not sent")
            await asyncio.sleep(pause_s)

    def leave(self) -> None:
        """Release the turn."""
        self._in_flight -= 1
        self._slots.release()

    def accept(self, epoch: int | None = None) -> None:
        """Record a reply of the endpoint, and admit more requests if it keeps replying.

        Args:
            epoch: What `enter` returned; None: the present one.
        """
        self._patience_s = PATIENCE_S
        self._rejecting_since = None
        if not self._has_rejected:
            if self._is_full and self._slot_bound.value < self.maximum:
                self._allow(self._slot_bound.value + 1)
        elif epoch is None or epoch == self._epoch:
            self._n_results += 1
            self._in_a_row = 0
            self._judge()

    def reject(self, epoch: int, retry_after_s: float | None) -> None:
        """Record a rejection by the endpoint, and slow down if that can help.

        Args:
            epoch: What `enter` returned.
            retry_after_s: Seconds that it asks to wait; None: it does not say.
        """
        others = self._in_flight - 1
        if self._rejecting_since is None:
            self._rejecting_since = self._now()
        if epoch >= self._measured_epoch:
            self._measured_rejected += 1
        if epoch != self._epoch:  # of a burst that has slowed the pace already
            if self._follows and not self._is_settled:
                self._allow(min(self._slot_bound.value, others))
            if not self.strays:
                self._hold_back(others, retry_after_s)
            return
        self._n_results += 1
        self._n_rejected += 1
        self._in_a_row += 1
        if self.strays and self._n_rejected <= _expected_at_most(self._n_sent, self.strays):
            self._judge()
            return
        if not self._is_trial or self._in_a_row > 1:
            self._hold_back(others, retry_after_s)
        if self._is_trial:
            self._judge_trial(others)
        elif self._slot_bound.fail() | self._rate_bound.fail():
            self._begin()
        else:
            self._begin_trial(others)

    def _hold_back(self, others: int, retry_after_s: float | None) -> None:
        """Pause all requests as the endpoint asks, or if a request was rejected that was alone."""
        if retry_after_s is None and others == 0:  # the number in flight is not the reason
            retry_after_s = self._patience_s
            self._patience_s = min(2 * self._patience_s, MAX_PATIENCE_S)
        if retry_after_s is not None:
            self._resume = max(self._resume, self._now() + retry_after_s)

    # -- telling a limit from strays

    def _begin_trial(self, others: int) -> None:
        """Slow down after a rejection that neither strays nor a raise explain."""
        if self.strays:  # they did not explain it, so the next ones have to be shown by more
            self._needed, self._trials = min(2 * self._needed, 16), None
        if self._trials is None:
            self._before, self._share_before, self._trials = (
                (self._slot_bound.value, self._rate_bound.value),
                -1,
                (0, 0),
            )
        else:
            self._trials = self._trials[0] + self._n_sent, self._trials[1] + self._n_rejected
        self._least_per_s = 0.0 if self.rate is None else 0.8 * self.rate
        self._slow_down(others)

    def _slow_down(self, others: int) -> None:
        """Allow fewer requests in flight, if all were, and have the next one set the rate."""
        self._has_rejected, self._is_trial, self._is_settled = True, True, False
        self._follows = self.rate is None or others + 1 >= 0.9 * self._slot_bound.value
        if self._follows:
            self._slot_bound.set(self._slot_bound.value, failed=self._slot_bound.value)
            self._allow(min(0.9 * self._slot_bound.value, others))
        self._begin()

    def _settle(self) -> None:
        """Space requests at well below what was accepted, now that the burst of rejections is over."""
        self._is_settled = True
        seconds, n = max(1.0, self._now() - self._measured_since), self._measured_sent - self._measured_rejected
        if self._share_before < 0:
            self._share_before = self._measured_rejected / max(1, self._measured_sent)
        if n >= FEW or self.rate is None:
            self._accepted_per_s = max(max(n, 1) / seconds, self._least_per_s)
        elif n > 0:
            self._accepted_per_s = 0.7 * self._rate_bound.value
        else:
            return
        self._is_known = n >= FEW
        self._rate_bound.set(TRIAL * self._accepted_per_s)
        self._measure()

    def _judge_trial(self, others: int) -> None:
        """Look after a rejection in a trial whether it shows strays, or that the pace is still too fast."""
        if self._n_sent < FEW and self._in_a_row < 4:
            return
        if self._n_rejected > MAX_STRAYS * self._n_sent:
            self._least_per_s = 0.0
            self._slow_down(others)
            return
        n, rejected = self._tried()
        if rejected >= self._needed and n >= 1.5 * FEW:
            self._end_trial()

    def _tried(self) -> tuple[int, int]:
        """Return the number of requests, and of rejections, at lowered paces."""
        n, rejected = self._trials or (0, 0)
        return n + self._n_sent, rejected + self._n_rejected

    def _end_trial(self) -> None:
        """Go on as before if there are strays and nothing else; else, at somewhat less than was accepted."""
        n, rejected = self._tried()
        self._is_trial = False
        has_strays = rejected >= self._needed
        self._trials = None if has_strays else (n, rejected)
        self.strays = min(MAX_STRAYS, (rejected + rejected**0.5) / n) if has_strays else 0.0
        if has_strays and self._share_before <= 1.5 * rejected / n + 0.15:
            slots, rate = self._before
            self._slot_bound.set(slots)
            self._rate_bound.set(rate)
            self._resume = 0.0
        else:
            per_s = self._accepted_per_s / (1 - self.strays)
            failed = per_s if self._is_known and self._share_before > 0.1 else inf
            self._rate_bound.set(MARGIN * per_s, failed, 1.5 if self._is_known else 2.0)
        self._begin()

    # -- judging a pace

    def _judge(self) -> None:
        """After enough results, end a trial, or raise what has held requests back."""
        seconds = max(1e-6, self._now() - self._begun)
        if self._is_trial:
            is_short = not self._is_known or self._share_before <= 0.1
            if self._n_results >= (FEW if is_short else WINDOW):
                self._end_trial()
            return
        least = WINDOW_WITH_STRAYS if self.strays else WINDOW
        is_slow = seconds >= SLOW_S and self._n_results >= (FEW if self._is_known else FEW / 2)
        if self._n_results < max(least, min(self.allowed, self._in_flight)) and not is_slow:
            return
        self._remember()
        accepted_per_s = (self._n_results - self._n_rejected) / seconds
        is_spaced = self._is_spaced and self._n_sent > 0.8 * self._rate_bound.value * seconds
        if not (self.strays and accepted_per_s < self._window_per_s and self._take_back(is_spaced)):
            self._window_per_s = accepted_per_s
            if is_spaced:
                self._rate_bound.succeed()
            if self._is_full:
                self._slot_bound.succeed(1.0)
        self._begin()

    def _take_back(self, is_spaced: bool) -> bool:
        """Take back raises after which no more was accepted, as strays hide rejections; return whether any was."""
        has_failed = self._is_full and self._slot_bound.fail()
        return (is_spaced and self._rate_bound.fail()) or has_failed

    def _remember(self) -> None:
        """Count the results of this window among those at lowered paces, and lower an estimate of strays."""
        if self.strays:
            n_at_most = self._n_rejected + self._n_rejected**0.5 + 1
            self.strays = min(self.strays, n_at_most / self._n_results)
        if self._trials is not None and not (self._rate_bound.is_raised or self._slot_bound.is_raised):
            n, rejected = self._trials
            n += self._n_results
            self._trials = None if n > MEMORY else (n, rejected)

    def _begin(self) -> None:
        """Begin an epoch."""
        self._epoch += 1
        self._begun = self._now()
        self._n_sent = self._n_results = self._n_rejected = self._in_a_row = 0
        self._is_full = self._is_spaced = False
        self._slots.resize(self.allowed)
        if self._is_settled and self._begun - self._measured_since > MEASURED_S:
            self._measure()

    def _measure(self) -> None:
        """Measure anew what is accepted, unless too little is known for that."""
        if self._measured_sent - self._measured_rejected >= FEW:
            self._measured_since, self._measured_sent, self._measured_rejected = self._now(), 0, 0
            self._measured_epoch = self._epoch

    def _allow(self, n_requests: float) -> None:
        """Set how many requests may be in flight, at least 1."""
        self._slot_bound.value = max(1.0, n_requests)
        self._slots.resize(self.allowed)

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start anew on another event loop, with what was learned."""
        self._loop = loop
        self._slots, self._turn = Slots(self.allowed), Slots(1)
        self._in_flight, self._resume, self._next, self._rejecting_since = 0, 0.0, 0.0, None
        self._measured_since, self._measured_sent, self._measured_rejected = loop.time(), 0, 0
        self._begun = loop.time()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _expected_at_most(n: int, share: float) -> float:
    """Return how many rejections of some requests strays explain: two standard deviations above the mean, and two."""
    return n * share + 2 * (n * share * (1 - share)) ** 0.5 + 2


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
