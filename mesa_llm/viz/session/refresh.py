"""The one thread that redraws a page while its model runs.

Two threads that set state can make Solara render forever: each renders what the other has just set. So the runner's
thread sets no state, click handlers set only what the visitor chose, and this thread does the rest: it watches the
model, updates the page when something has changed, and waits until the page shows one update before it sends the next.

All pages of a server share one interpreter, and drawing takes a twentieth of a second or, with Matplotlib, as long for
each plot. So only one page draws at a time, the others update their text meanwhile, and pages that nobody has open are
not drawn at all. A model that plays waits for its page, which is never more than one step behind.
"""

from __future__ import annotations

import logging
import threading
import time as clock
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

logger = logging.getLogger(__name__)

CHECK_S = 0.05
"""Seconds between two checks."""

LINE_S = 0.15
"""Seconds for which a page waits in line while another is drawn; then it updates its text."""

MAX_REST_S = 1.0
"""Maximum number of seconds between two drawings of a page; up to that, it rests as long as the last drawing took of
its thread's processor time."""

SETTLE_S = 10.0
"""Seconds after which the next update is sent although the last one never appeared, as when a component failed."""

AWAY_S = 20.0
"""Seconds without an open browser page after which the run is paused; a lost connection returns sooner."""


class Watched(Protocol):
    """A model whose page is kept up to date."""

    seen_at: float
    """Time at which a browser last had a page of the model open; several pages may show one model."""

    @property
    def drawn(self) -> int:
        """Counter that rises whenever the model has changed."""
        ...

    @property
    def state(self) -> tuple[object, ...]:
        """Everything that the page says about the run in words."""
        ...

    def catch_up(self) -> None:
        """Apply what the visitor has chosen meanwhile."""
        ...

    def note_shown(self, drawn: int | None) -> None:
        """Note the value of `drawn` that a browser shows; None: no browser has the page open."""
        ...

    def still(self) -> AbstractContextManager[None]:
        """Hold the model still, so that all parts of a page show the same moment."""
        ...

    def rest(self) -> None:
        """Begin no further step, as nobody is watching."""
        ...


class RefreshedPage(Protocol):
    """A page in a browser."""

    @property
    def is_open(self) -> bool:
        """Whether a browser has the page open."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether the page shows the last update completely."""
        ...

    def redraw(self) -> None:
        """Redraw the whole page."""
        ...

    def update_text(self) -> None:
        """Update the text about the run; plots stay as they are."""
        ...


def watch(
    watched: Watched,
    page: RefreshedPage,
    drawing: threading.Lock,
    baseline: tuple[int, tuple[object, ...]] | None = None,
    arrival: threading.Event | None = None,
) -> Callable[[], None]:
    """Start the thread, and return a function that ends it.

    Args:
        watched: The model to watch.
        page: Its page.
        drawing: Held while a page is drawn; shared by all pages of a server.
        baseline: Values of `drawn` and `state` when the page was first drawn; None: their present values.
        arrival: Set as soon as the browser shows the page, which may miss earlier updates; None: it shows it already.
    """
    is_closed = threading.Event()
    arguments = (watched, page, drawing, is_closed, *(baseline or (watched.drawn, watched.state)), arrival)
    threading.Thread(target=_refresh, args=arguments, name="mesa-llm-refresh", daemon=True).start()
    return is_closed.set


def _refresh(
    watched: Watched,
    page: RefreshedPage,
    drawing: threading.Lock,
    is_closed: threading.Event,
    signature: int,
    state: tuple[object, ...],
    arrival: threading.Event | None,
) -> None:
    rested_at = 0.0
    if arrival is not None:
        arrival.wait(SETTLE_S)
    settled_at = watched.seen_at = clock.monotonic()
    while not is_closed.wait(CHECK_S):
        now = clock.monotonic()
        if not page.is_open:
            watched.note_shown(None)
            if now - watched.seen_at > AWAY_S:
                watched.rest()
            continue
        watched.seen_at = now
        if page.is_settled:
            watched.note_shown(signature)
        elif now - settled_at < SETTLE_S:
            continue
        settled_at, old_signature, old_state = now, signature, state
        watched.catch_up()
        signature, state = watched.drawn, watched.state  # read once: later changes are for the next check
        spent = clock.thread_time()
        try:
            if signature != old_signature and now >= rested_at and _draw(watched, page, drawing):
                rest = min(clock.thread_time() - spent, MAX_REST_S)  # leave as much time for clicks as for drawing
                rested_at = clock.monotonic() + rest
                continue
            signature = old_signature
            if state != old_state:
                page.update_text()
        except Exception:  # whatever a model's own drawings raise: Solara shows it, and the page goes on
            logger.exception("a page could not be drawn")


def _draw(watched: Watched, page: RefreshedPage, drawing: threading.Lock) -> bool:
    """Draw a page, unless other pages are being drawn for too long; return whether it was drawn."""
    with watched.still():
        if not drawing.acquire(timeout=LINE_S):
            return False
        try:
            page.redraw()
        finally:
            drawing.release()
    return True
