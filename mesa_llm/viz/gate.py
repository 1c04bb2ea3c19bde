"""Keeps pages from reading a model while it writes.

Many readers or one writer; and the writer lets readers in while it waits for replies.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from reacton.core import ComponentFunction, Element
from solara.core import component

from mesa_llm.engine.engine import Engine


class Gate:
    """A lock that readers share and a writer has alone.

    Writers take turns, first come, first served; one that waits for replies lets readers in, but no other writer. A
    reader never waits for a writer that waits itself, so that a thread may read within its own reading: a page
    draws from several threads, and each holds other locks meanwhile. Readers who wait go before the next writer: a
    model that steps without a break still lets its page look in between.
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
        """Read: wait until nobody writes."""
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
        """Write: wait until nobody reads, and no writer that came before is left. Not within another writing."""
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
        """Let readers in while this thread, which writes, waits for something. Other threads just go on."""
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
    """Makes one thing for each model when it is first wanted, and drops it with the model."""

    def __init__(self, make: Callable[[Any], Thing]) -> None:
        """Start with none.

        Args:
            make: Makes it.
        """
        self._make = make
        self._made: WeakKeyDictionary[Any, Thing] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, model: Any) -> Thing:
        """Return the one of a model."""
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

    Agents only read while they decide, so a page may look at the model then, for as long as it takes.
    """
    return _gates.of(model)


def steady(model: Any) -> AbstractContextManager[None]:
    """Hold a model still: within this block its agents may decide, but nothing is done in its worlds.

    Args:
        model: The model that a component of a page is about to read.
    """
    return gate_of(model).reading()


def place_steady(result: Any, model: Any) -> None:
    """Place what a component made, also one of Mesa's own, so that its body runs only while the model stands still.

    A page is drawn by whichever thread comes first: the ticker, or the one of a click. What the click's thread draws,
    the ticker does not hold still.

    Args:
        result: The element of a component; anything else places itself.
        model: What its body may read.
    """
    if isinstance(result, Element) and isinstance(result.component, ComponentFunction):
        _Steady(result, model).key(f"{result.component.f.__module__}.{result.component.f.__qualname__}")


@component
def _Steady(result: Any, model: Any) -> Any:
    with steady(model):
        return result.component.f(*result.args, **result.kwargs)
