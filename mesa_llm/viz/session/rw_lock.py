"""A readers-writer lock: pages read a model only while nothing writes to it.

The writer lets readers in while it waits for replies.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mesa_llm.engine.engine import Engine
from mesa_llm.viz.session.per_model import PerModel


class RWLock:
    """A lock that many readers or one writer can hold.

    Writers take turns, first come, first served. A writer that waits for replies lets readers in, but no other writer.
    A reader never waits for a waiting writer, so reading can be nested: a page draws from several threads, each of
    which holds other locks meanwhile. Waiting readers precede the next writer, so that a page can read between two
    steps of a model that never pauses.
    """

    def __init__(self) -> None:
        """Start unlocked."""
        self._changed = threading.Condition()
        self._readers = 0
        self._awaiting = 0
        self._writer: int | None = None
        self._line: deque[int] = deque()

    def __reduce__(self) -> tuple[type[RWLock], tuple[()]]:
        """Copy or pickle as a new lock, so that a model can be copied after a page has shown it."""
        return type(self), ()

    @contextmanager
    def reading(self) -> Generator[None]:
        """Read as soon as nothing writes."""
        me = threading.get_ident()
        with self._changed:
            self._awaiting += 1
            try:
                self._changed.wait_for(lambda: self._writer in (None, me))
            finally:
                self._awaiting -= 1
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Generator[None]:
        """Write as soon as nothing reads and all earlier writers are done; this cannot be nested."""
        me = threading.get_ident()
        with self._changed:
            self._line.append(me)
        try:
            self._enter()
            try:
                yield
            finally:
                self._leave()
        finally:
            with self._changed:
                self._line.remove(me)
                self._changed.notify_all()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Let readers in while this thread waits, if it is the writer."""
        if self._writer != threading.get_ident():
            yield
            return
        self._leave()
        try:
            yield
        finally:
            self._enter()

    def _enter(self) -> None:
        with self._changed:
            me = threading.get_ident()
            self._changed.wait_for(lambda: self._line[0] == me and not self._readers and not self._awaiting)
            self._writer = me

    def _leave(self) -> None:
        with self._changed:
            self._writer = None
            self._changed.notify_all()


_locks = PerModel("_rw_lock", RWLock)


def lock_of(model: Any) -> RWLock:
    """Return the lock of a model, which lets readers in whenever the model waits for replies.

    Agents only read while they decide, so a page may read the model then, for as long as it takes.
    """
    lock = _locks.of(model)
    engine = Engine.of(model)
    if engine is not None:  # a plain model may have none yet, and is never written to under this lock: Mesa steps it
        engine.while_waiting = lock.waiting
    return lock


def steady(model: Any) -> AbstractContextManager[None]:
    """Hold a model still: during this block its agents may decide, but not act.

    Args:
        model: The model that a component of a page is about to read.
    """
    return lock_of(model).reading()
