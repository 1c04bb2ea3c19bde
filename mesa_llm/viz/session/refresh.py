"""The one thread that sets a page's state while its model runs.

Two threads that set state can make Solara render without end: what one sets while the other renders is rendered by the
other, which never finishes. So the runner's thread sets no state, and click handlers set only what the visitor chose.
The ticker watches the runner and reports its progress, and reports nothing more until the last report is shown.

All pages of a server share one interpreter, and drawing is expensive: some 80 ms of processor time a plot. So one page
draws at a time while the others keep reporting in words, and nothing is drawn for a page that nobody has open.
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
"""Seconds between two checks."""

MAX_REST_S = 1.0
"""Maximum number of seconds before a page is drawn again; within it, a page rests as long as its drawing took."""

SETTLING_S = 10.0
"""Seconds after which the ticker goes on even if its last report was never shown, as when a drawing failed."""

AWAY_S = 20.0
"""Seconds without an open browser page after which no further step begins; a lost connection returns sooner."""

words = solara.reactive(object())
"""Changes whenever the words about a running step have to be updated.

Mesa's `update_counter` changes when the model itself has changed and has to be redrawn.
"""

last_moment: solara.Reactive[tuple[object, ...]] = solara.reactive(())
"""The last `moment` that a page has shown completely."""

_turn = threading.Lock()
"""Held by the page that draws."""

_seen_at: WeakKeyDictionary[Watched, float] = WeakKeyDictionary()
"""Model → time at which a browser last had a page of it open; several pages may show one model."""


class Watched(Protocol):
    """A model that the ticker watches."""

    @property
    def drawn(self) -> int:
        """Counter that changes with the model."""
        ...

    @property
    def state(self) -> tuple[object, ...]:
        """Everything that is said in words about the run."""
        ...

    def still(self) -> AbstractContextManager[None]:
        """Hold the model still, so that all parts of a page show the same moment."""
        ...

    def rest(self) -> None:
        """Begin no further step, as nobody is watching."""
        ...


def watch(
    watched: Watched, baseline: tuple[int, tuple[object, ...]] | None = None, arrival: threading.Event | None = None
) -> Callable[[], None]:
    """Start the thread, and return a function that ends it.

    Args:
        watched: The model to watch.
        baseline: Values of `drawn` and `state` when the page was first drawn; None: their present values.
        arrival: Set as soon as the browser shows the page, which may lose earlier updates; None: it shows it already.
    """
    is_closed = threading.Event()
    arguments = (watched, is_closed, *(baseline or (watched.drawn, watched.state)), arrival)
    threading.Thread(target=_tell, args=arguments, name="mesa-llm-ticker", daemon=True).start()
    return is_closed.set


def moment() -> tuple[object, ...]:
    """Return the moment that a page drawn now shows; a component that calls this is redrawn whenever it changes."""
    return update_counter.get(), words.get()


def use_moment() -> None:
    """Redraw the calling component at each `moment`, and note when the whole page shows it."""
    now = moment()
    use_effect(lambda: last_moment.set(now), [now])  # runs once all of the page is drawn


def is_seen() -> bool:
    """Check whether a browser has the page of this thread open; outside Solara's server this is always true."""
    contexts = _contexts()
    if contexts is None:
        return True
    return contexts.PageStatus.CONNECTED in tuple(contexts.get_current_context().page_status.values())


def browser() -> str:
    """Return the session of the browser that has the page of this thread open; outside Solara's server it is empty."""
    contexts = _contexts()
    return "" if contexts is None else str(contexts.get_current_context().session_id)


def _contexts() -> Any:
    """Return Solara's kernel contexts if this thread has one, else None; importing the module would start a thread."""
    contexts = sys.modules.get("solara.server.kernel_context")
    return contexts if contexts is not None and contexts.has_current_context() else None


def _tell(
    watched: Watched,
    is_closed: threading.Event,
    signature: int,
    state: tuple[object, ...],
    arrival: threading.Event | None,
) -> None:
    rested_at = 0.0
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
    """Draw a whole page, unless other pages hold the turn for too long; return whether it was drawn."""
    with watched.still():
        if not _turn.acquire(timeout=TICK_S):
            return False
        try:
            force_update()
        finally:
            _turn.release()
    return True
