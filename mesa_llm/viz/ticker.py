"""The one thread that sets a page's state while its model runs.

Two threads that set state can make Solara render without end. So the runner's thread sets none; handlers of clicks set
only what the visitor chose; and all that the runner does, the ticker looks at and tells.
"""

from __future__ import annotations

import logging
import threading
import time as clock
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import solara
from mesa.visualization.utils import force_update

logger = logging.getLogger(__name__)

TICK_S = 0.15
"""Seconds between two looks."""

words = solara.reactive(object())
"""Changes whenever what is said about a running step has to be said anew.

Mesa's `update_counter` changes when the model itself has changed, and is to be drawn anew.
"""


class Watched(Protocol):
    """What the ticker looks at."""

    @property
    def drawn(self) -> int:
        """A number that changes with the model."""
        ...

    @property
    def state(self) -> tuple[object, ...]:
        """All that is said in words about the run."""
        ...

    def still(self) -> AbstractContextManager[None]:
        """Hold what is drawn still, so that all of a page shows one moment."""
        ...


def watch(watched: Watched) -> Callable[[], None]:
    """Start the thread; give what ends it.

    Args:
        watched: What it looks at.
    """
    closed = threading.Event()
    threading.Thread(target=_tell, args=(watched, closed), name="mesa-llm-ticker", daemon=True).start()
    return closed.set


def _tell(watched: Watched, closed: threading.Event) -> None:
    drawn, state, pause_s = watched.drawn, watched.state, TICK_S
    while not closed.wait(pause_s):
        begun = clock.perf_counter()
        is_drawn, is_said = watched.drawn == drawn, watched.state == state
        drawn, state = watched.drawn, watched.state
        try:
            if not is_drawn:
                with watched.still():
                    force_update()
            elif not is_said:
                words.set(object())
        except Exception:
            logger.exception("a page could not be drawn")
        pause_s = min(max(TICK_S, clock.perf_counter() - begun), 3 * TICK_S)  # time for clicks, as for drawing
