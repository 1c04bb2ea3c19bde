"""Decisions whose requests wait for others: those that are sent with a batch, or for which a budget has no room yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import ClassVar

LOOKS_FOR_S = 180.0
"""Seconds for which something is looked for again that a provider should have, and does not show yet."""

FIRST_LOOK_S, MAX_LOOK_S = 0.25, 60.0
"""Seconds between two looks: at first, and at most."""

LOOK_GROWTH = 1.5
"""Factor by which that time grows from one look to the next."""


class BatchClock:
    """The clock that batches wait by, which take up to a day."""

    of_batches: ClassVar[BatchClock]
    """The one of this process."""

    def now(self) -> float:
        """Return the time since any moment, in seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


BatchClock.of_batches = BatchClock()


async def patiently(for_s: float | None = None) -> AsyncGenerator[bool]:
    """Yield whether a look is the last one, for looks that come ever less often.

    Args:
        for_s: Seconds for which to look; None: `LOOKS_FOR_S`.
    """
    clock, pause_s = BatchClock.of_batches, FIRST_LOOK_S
    end = clock.now() + (LOOKS_FOR_S if for_s is None else for_s)
    while clock.now() < end:
        yield False
        await clock.sleep(pause_s)
        pause_s = min(LOOK_GROWTH * pause_s, MAX_LOOK_S)
    yield True


class BatchedDecision:
    """A decision in the making, and how many of its requests wait for others."""

    __slots__ = ("_count", "_n_open", "_n_waiting")

    of_task: ClassVar[ContextVar[BatchedDecision | None]] = ContextVar("mesa_llm_batched_decision", default=None)
    """The decision that the current task belongs to."""

    def __init__(self, count: Callable[[int], None]) -> None:
        """Begin without a request.

        Args:
            count: Called with 1 if the decision begins to wait, with -1 if it goes on, and with 0 after other changes.
        """
        self._count = count
        self._n_open = self._n_waiting = 0

    @property
    def is_waiting(self) -> bool:
        """Whether all its requests wait for others."""
        return 0 < self._n_open == self._n_waiting

    def change(self, n_open: int = 0, n_waiting: int = 0) -> None:
        """Count requests that begin or end, or that begin or end to wait."""
        before = self.is_waiting
        self._n_open += n_open
        self._n_waiting += n_waiting
        self._count(self.is_waiting - before)


@contextmanager
def waits() -> Generator[None]:
    """Mark a block in which a request waits for others, so that it adds to no batch before one of them has ended."""
    decision = BatchedDecision.of_task.get()
    if decision is None:
        yield
        return
    decision.change(n_waiting=1)
    try:
        yield
    finally:
        decision.change(n_waiting=-1)


@asynccontextmanager
async def waiting_for(lock: asyncio.Lock) -> AsyncGenerator[None]:
    """Hold a lock in this block; while it is waited for, the request waits for others as in `waits`."""
    with waits():
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()
