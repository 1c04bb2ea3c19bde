"""The one thread that sets a page's state while its model runs.

Two threads that set state can make Solara render without end: what one sets while the other renders is rendered by the
other, which never gets done. So the runner's thread sets none; handlers of clicks set only what the visitor chose; all
that the runner does, the ticker looks at and tells; and it says nothing more until what was said before is shown.

All pages of a server share one interpreter, and drawing is what costs: some 80 ms of processor time a plot. So one page
draws at a time, the others go on telling in words meanwhile; and nothing is drawn for a page that nobody has open.
"""

from __future__ import annotations

import logging
import sys
import threading
import time as clock
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import solara
from mesa.visualization.utils import force_update, update_counter
from reacton import use_effect

logger = logging.getLogger(__name__)

TICK_S = 0.15
"""Seconds between two looks."""

MAX_REST_S = 1.0
"""Seconds for which a page that was drawn is not drawn again, at most; at least as long as drawing took."""

SETTLING_S = 10.0
"""Seconds after which the ticker goes on even if what it said last was never shown: a drawing may have failed."""

AWAY_S = 20.0
"""Seconds without an open browser page after which no further step begins: a lost connection is back before."""

words = solara.reactive(object())
"""Changes whenever what is said about a running step has to be said anew.

Mesa's `update_counter` changes when the model itself has changed, and is to be drawn anew.
"""

last_moment: solara.Reactive[tuple[object, ...]] = solara.reactive(())
"""The last `moment` that a page has shown to the end."""

_turn = threading.Lock()
"""Held by the page that draws."""

_seen_at: WeakKeyDictionary[Watched, float] = WeakKeyDictionary()
"""When a browser last had a page of each model open; several pages may show one."""


class Watched(Protocol):
    """A model that the ticker watches."""

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

    def rest(self) -> None:
        """Begin no further step: nobody looks."""
        ...


def watch(watched: Watched, drawn: int | None = None, arrival: threading.Event | None = None) -> Callable[[], None]:
    """Start the thread, and return what ends it.

    Args:
        watched: What it looks at.
        drawn: What `drawn` was when the page was drawn first; None: what it is now.
        arrival: Set as soon as the browser shows the page: what it is told before, it may lose. None: it shows it.
    """
    is_closed = threading.Event()
    signature = watched.drawn if drawn is None else drawn
    arguments = (watched, is_closed, signature, arrival)
    threading.Thread(target=_tell, args=arguments, name="mesa-llm-ticker", daemon=True).start()
    return is_closed.set


def moment() -> tuple[object, ...]:
    """Return what a page that is drawn now shows; a component that calls this is drawn anew whenever it changes."""
    return update_counter.get(), words.get()


def use_moment() -> None:
    """Draw the component that calls this anew at each `moment`, and note when all of the page shows it."""
    now = moment()
    use_effect(lambda: last_moment.set(now), [now])  # runs once all of the page is drawn


def is_seen() -> bool:
    """Check whether a browser has the page of this thread open; outside Solara's server, somebody always looks."""
    contexts = _contexts()
    if contexts is None:
        return True
    return contexts.PageStatus.CONNECTED in tuple(contexts.get_current_context().page_status.values())


def _contexts() -> Any:
    """Return Solara's module of visitors, if this thread serves one, else None; importing it would start a thread."""
    contexts = sys.modules.get("solara.server.kernel_context")
    return contexts if contexts is not None and contexts.has_current_context() else None


def _tell(watched: Watched, is_closed: threading.Event, signature: int, arrival: threading.Event | None) -> None:
    state, rested_at = watched.state, 0.0
    if arrival is not None and _contexts() is not None:
        arrival.wait(SETTLING_S)
    settled_at = _seen_at[watched] = clock.monotonic()
    while not is_closed.wait(TICK_S):
        now = clock.monotonic()
        if not is_seen():
            if now - _seen_at[watched] > AWAY_S:
                watched.rest()
            continue
        _seen_at[watched] = now
        if last_moment.peek() != (update_counter.peek(), words.peek()) and now - settled_at < SETTLING_S:
            continue
        settled_at, was_drawn, was_said = now, signature, state
        signature, state = watched.drawn, watched.state  # read once: what changes from here on is for the next look
        try:
            if signature != was_drawn and now >= rested_at and _draw(watched):
                ended = clock.monotonic()
                rested_at = ended + min(ended - now, MAX_REST_S)  # as much time for clicks as for drawing
                continue
            signature = was_drawn
            if state != was_said:
                words.set(object())
        except Exception:  # whatever a model's own drawings raise: Solara shows it, and the page goes on
            logger.exception("a page could not be drawn")


def _draw(watched: Watched) -> bool:
    """Draw all of a page, unless other pages keep their turn for too long; return whether it was drawn."""
    with watched.still():
        if not _turn.acquire(timeout=TICK_S):
            return False
        try:
            force_update()
        finally:
            _turn.release()
    return True
