"""Pauses of Python's garbage collector while many agents observe, decide and act, unless they wait for replies.

Observations create millions of small objects that live for one step. The collector would scan them over and over,
which takes a third of a step's time, and find nothing: reference counting frees them.
"""

from __future__ import annotations

import gc
import threading


class _Pauses(threading.local):
    """Number of open blocks of this thread that pause the collector."""

    n = 0


_own = _Pauses()
_all = [0]
_LOCK = threading.Lock()


class _Change:
    """A block in which this thread has more or fewer blocks that pause the collector; one a step, so no generator."""

    __slots__ = ("_change",)

    def __init__(self, change: int) -> None:
        self._change = change

    def __enter__(self) -> None:
        self._change = self._change if _change(self._change) else 0

    def __exit__(self, *error: object) -> None:
        _change(-self._change)


def gc_paused() -> _Change:
    """Pause the collector in the block; if the program has disabled it itself, leave it disabled."""
    return _Change(1)


def gc_running() -> _Change:
    """Let the collector run in the block if this thread has paused it, as while the thread waits for replies."""
    return _Change(-_own.n)


def _change(change: int) -> bool:
    """Enter or leave blocks of this thread; return whether the collector is under the control of such blocks."""
    with _LOCK:
        if not change or (not _all[0] and not gc.isenabled()):
            return False
        _own.n += change
        _all[0] += change
        (gc.disable if _all[0] else gc.enable)()
        return True
