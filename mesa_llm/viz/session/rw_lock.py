"""A readers-writer lock that keeps pages from reading a model while it is written to.

The writer lets readers in while it waits for replies.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from mesa_llm.engine.engine import Engine


class Gate:
    """A lock that readers share and a writer has alone.

    Writers take turns, first come, first served; a writer that waits for replies lets readers in, but no other writer.
    A reader never waits for a writer that is itself waiting, so reading may be nested: a page draws from several
    threads, each of which holds other locks meanwhile. Waiting readers go before the next writer, so that a model that
    steps without a break still lets its page read in between.
    """

    def __init__(self) -> None:
        """Start open."""
        self._changed = threading.Condition()
        self._readers = 0
        self._awaiting = 0
        self._writer: int | None = None
        self._line: deque[int] = deque()

    @contextmanager
    def reading(self) -> Generator[None]:
        """Read, once nobody writes."""
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
        """Write, once nobody reads and all earlier writers are done; this cannot be nested."""
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
        """Let readers in while this thread, if it is the writer, waits for something."""
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


class OnePerModel[Thing]:
    """One object for each model, made on first use and dropped with the model."""

    def __init__(self, make: Callable[[Any], Thing]) -> None:
        """Start with none.

        Args:
            make: Makes the object of a model.
        """
        self._make = make
        self._made: WeakKeyDictionary[Any, Thing] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, model: Any) -> Thing:
        """Return the object of a model."""
        with self._lock:
            if model not in self._made:
                self._made[model] = self._make(model)
            return self._made[model]


def _new_gate(model: Any) -> Gate:
    gate = Gate()
    engine = Engine.of(model)
    if engine is not None:  # a plain model may get its own later, and then steps by itself: Mesa knows no gate
        engine.while_waiting = gate.waiting
    return gate


_gates = OnePerModel(_new_gate)


def gate_of(model: Any) -> Gate:
    """Return the gate of a model, which lets readers in whenever the model waits for replies.

    Agents only read while they decide, so a page may read the model then, for as long as it takes.
    """
    return _gates.of(model)


def steady(model: Any) -> AbstractContextManager[None]:
    """Hold a model still: during this block its agents may decide, but not act.

    Args:
        model: The model that a component of a page is about to read.
    """
    return gate_of(model).reading()
