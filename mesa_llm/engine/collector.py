"""Python's garbage collector, held back while many agents observe, decide and act, as long as replies come at once.

What agents see makes millions of small objects that live for a step. The collector would go through them again and
again, for a third of the time of a step, and find nothing: they are freed as soon as nobody refers to them.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager


class _Pauses(threading.local):
    """Number of blocks of this thread that hold the collector back."""

    n = 0


_own = _Pauses()
_all = [0]
_LOCK = threading.Lock()


@contextmanager
def collector_paused() -> Generator[None]:
    """Hold the collector back in the block; where the program has turned it off itself, leave it so."""
    if not _change(1):
        yield
        return
    try:
        yield
    finally:
        _change(-1)


@contextmanager
def collector_running() -> Generator[None]:
    """Let the collector work in the block, such as while replies are waited for, if this thread holds it back."""
    pauses = _own.n
    _change(-pauses)
    try:
        yield
    finally:
        _change(pauses)


def _change(change: int) -> bool:
    """Begin or end blocks of this thread; return whether the collector is left to such blocks."""
    with _LOCK:
        if not change or (not _all[0] and not gc.isenabled()):
            return False
        _own.n += change
        _all[0] += change
        (gc.disable if _all[0] else gc.enable)()
        return True
