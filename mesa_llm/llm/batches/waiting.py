"""Decisions whose requests wait for others: those that are sent with a batch, or for which a budget has no room yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import ClassVar


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
