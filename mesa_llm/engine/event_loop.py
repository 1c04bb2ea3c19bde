"""The only event loop: one per process, on a daemon thread of its own.

This makes `step()` an ordinary function in scripts, in Jupyter (which runs a loop itself), and in a page's threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from mesa_llm.llm.protocol import Closable

T = TypeVar("T")

GRACE_S = 5.0
"""Maximum number of seconds to wait for transports to close."""


class _Future(asyncio.Future[Any]):
    """A future that also ends with `StopIteration`, which asyncio's own refuses, so that the task waits for ever."""

    def set_exception(self, exception: type[BaseException] | BaseException, /) -> None:
        """End with an error, such as one that came out of a thread."""
        if isinstance(exception, type):
            exception = exception()
        if isinstance(exception, StopIteration):
            stop, exception = exception, RuntimeError(f"a thread raised StopIteration({exception.value!r:.100})")
            exception.__cause__ = stop
        super().set_exception(exception)


class _Loop(asyncio.SelectorEventLoop):  # which watches libcurl's connections, on Windows too
    """A loop that no exception out of a thread can hang."""

    def create_future(self) -> asyncio.Future[Any]:
        """Return the future by which a task waits for anything."""
        return _Future(loop=self)


class EventLoop:
    """The process's event loop and its thread; a forked child creates its own."""

    lock = threading.Lock()
    loop: asyncio.AbstractEventLoop | None = None
    thread: threading.Thread | None = None

    @classmethod
    def get(cls) -> asyncio.AbstractEventLoop:
        """Return the running loop."""
        with cls.lock:
            if cls.loop is None or cls.thread is None or not cls.thread.is_alive():
                cls.loop = _Loop()
                cls.thread = threading.Thread(target=_run_for_ever, args=(cls.loop,), name="mesa-llm", daemon=True)
                cls.thread.start()
            return cls.loop

    @classmethod
    def forget(cls) -> None:
        """Start over in a forked child, where the loop's thread does not run."""
        cls.lock, cls.loop, cls.thread = threading.Lock(), None, None


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=EventLoop.forget)


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop, also after a task of it has called `sys.exit`, whose exception is for whoever waits for the task."""
    while True:
        try:
            return loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            continue


def submit(work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Start a coroutine on the event loop from any other thread.

    Raises:
        RuntimeError: If called on the loop's own thread, where waiting for it would never end.
    """
    loop = EventLoop.get()
    if threading.current_thread() is EventLoop.thread:
        work.close()
        raise RuntimeError("called on the event loop's own thread; await the coroutine instead")
    return asyncio.run_coroutine_threadsafe(work, loop)


class Workers:
    """Tasks that begin at once and end together; one that fails cancels the others.

    A `TaskGroup` does the same, with two passes of the event loop more for each task, which take longer than the JSON
    of its request.

        async with workers:
            workers.start(work())
    """

    def __init__(self) -> None:
        """Start with no task."""
        self._tasks: list[asyncio.Task[None]] = []
        self._n_working = 0
        self._error: BaseException | None = None
        self._all_ended: asyncio.Future[Any] | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine up to where it first waits; it calls `end_one` last of all, and `fail` before that."""
        self._n_working += 1
        self._tasks.append(asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True))

    def fail(self, error: BaseException) -> None:
        """Cancel all tasks, and raise the first such error in the end."""
        if self._error is None:
            self._error = error
            for task in self._tasks:
                task.cancel()

    def end_one(self) -> None:
        """Count a task as ended."""
        self._n_working -= 1
        if not self._n_working and self._all_ended is not None and not self._all_ended.done():
            self._all_ended.set_result(None)

    async def __aenter__(self) -> None:
        """Begin."""

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Wait until all have ended.

        Raises:
            BaseException: What one of them has failed with, or what has cancelled them.
        """
        if error is not None:
            self.fail(error)
        while self._n_working:
            self._all_ended = asyncio.get_running_loop().create_future()
            try:
                await self._all_ended
            except asyncio.CancelledError as cancelled:
                self.fail(cancelled)
        if self._error is not None and self._error is not error:
            raise self._error


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, without an event loop.

    Raises:
        RuntimeError: If it does wait.
    """
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError("the coroutine waits for something; run it on the event loop")


def close_all(closables: Sequence[Closable]) -> None:
    """Close objects on the event loop; waits up to `GRACE_S` seconds, unless called on the loop itself."""
    if not closables:
        return
    try:
        loop = EventLoop.get()
    except RuntimeError:  # the interpreter is shutting down, and whatever is open goes with it
        return
    futures = [asyncio.run_coroutine_threadsafe(closable.close(), loop) for closable in closables]
    if threading.current_thread() is not EventLoop.thread:
        concurrent.futures.wait(futures, timeout=GRACE_S)
