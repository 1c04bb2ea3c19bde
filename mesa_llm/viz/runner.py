"""Steps a model in a thread of its own, so that a page answers at once however slowly the model thinks."""

from __future__ import annotations

import logging
import threading
import time as clock
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mesa_llm.errors import MesaLLMError, Stopped
from mesa_llm.model import LLMModel
from mesa_llm.records import Usage
from mesa_llm.viz.gate import gate_of

logger = logging.getLogger(__name__)

CLOSING = "mesa-llm-closing"
"""Name of every thread that closes a model."""

INSIST_S = 0.2
"""Seconds after which a step that has not stopped is told again: just before it asks, it does not hear."""


class Pulse(NamedTuple):
    """What of a runner a page shows between two steps; a page draws its words anew when this changes."""

    drawn: int
    """Rises whenever the model has changed: what shows the model is then drawn anew."""

    version: int
    """Rises whenever the runner does something else than before."""

    decided: int
    """Decisions made in the step that runs."""

    seconds: int | None
    """Whole seconds since that step began; None between two steps."""


@dataclass(eq=False)
class _Run:
    """One stretch of steps."""

    steps: int | None
    """Steps to run; None: until paused."""

    halted: threading.Event = field(default_factory=threading.Event)
    """Set when no further step may begin."""

    why: str = ""
    """Why no further step may begin, where a person does not know it."""

    is_stopping: bool = False
    """True once the step that runs has been told to stop."""

    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the last step is over."""


class Runner:
    """Steps a model in a daemon thread. Knows nothing of Solara: a page looks at its plain attributes.

    Attributes:
        model: The model that is stepped.
        pause_s: Seconds between two steps while playing.
        error: What went wrong, for a person to read; empty if nothing did.
        note: What a person should know besides: that a step was stopped, or that the model has ended.
        drawn: Rises whenever the model has changed: after each step, and with every new model.
        version: Rises whenever the runner does something else than before.
        decided: Decisions made in the step that runs.
    """

    def __init__(
        self,
        model: LLMModel,
        pause_s: float = 0.1,
        hide: Callable[[str], str] = str,
        on_closed: Callable[[LLMModel], None] | None = None,
    ) -> None:
        """Take a model.

        Args:
            model: The model.
            pause_s: Seconds between two steps while playing.
            hide: Takes secrets out of what the model raises.
            on_closed: Called with each model that was closed.
        """
        self.pause_s = pause_s
        self._on_closed = on_closed
        self.version = self.drawn = 0
        self._lock = threading.Lock()
        self._take(model, hide)

    def _take(self, model: LLMModel, hide: Callable[[str], str]) -> None:
        self.model = model
        self._hide = hide
        self.error = self.note = ""
        self.decided = 0
        self._begun: float | None = None
        self._run: _Run | None = None
        gate_of(model)
        model.engine.on_decision = lambda usage: self._count(model, usage)
        self.version += 1
        self.drawn += 1

    def _count(self, model: LLMModel, usage: Usage) -> None:
        if model is self.model:
            self.decided += 1

    # -- what a page asks

    @property
    def busy(self) -> bool:
        """Whether steps are being run."""
        return self._run is not None

    @property
    def playing(self) -> bool:
        """Whether steps are run until further notice."""
        run = self._run
        return run is not None and run.steps is None and not run.halted.is_set()

    @property
    def stopping(self) -> bool:
        """Whether the step that runs has been told to stop."""
        run = self._run
        return run is not None and run.is_stopping

    @property
    def finishing(self) -> bool:
        """Whether the step that runs is the last for now."""
        run = self._run
        return run is not None and run.halted.is_set()

    @property
    def pulse(self) -> Pulse:
        """What changes while a step runs."""
        begun = self._begun
        return Pulse(
            self.drawn, self.version, self.decided, None if begun is None else int(clock.perf_counter() - begun)
        )

    # -- what a page does

    def start(self, steps: int | None = None) -> None:
        """Begin to step; does nothing if it steps already.

        Args:
            steps: How many steps; None: until `pause` or `stop`.
        """
        with self._lock:
            if self._run is not None:
                return
            self._run = run = _Run(steps)
            self.error = self.note = ""
            self.version += 1
        _daemon(self._work, self.model, run)

    def pause(self, why: str = "") -> None:
        """Begin no further step; the one that runs goes on to its end.

        Args:
            why: What to tell then; empty: nothing, for somebody just pressed Pause.
        """
        with self._lock:
            if self._run is not None and not self._run.halted.is_set():
                self._run.why = why
                self._run.halted.set()
                self.version += 1

    def stop(self) -> None:
        """Stop in the middle of a step: what was asked is withdrawn, what was answered is kept."""
        with self._lock:
            run = self._run
            if run is None or run.is_stopping:
                return
            run.is_stopping = True
            run.halted.set()
            self.version += 1
        _daemon(self._insist, self.model, run)

    def reset(self, model: LLMModel, hide: Callable[[str], str] = str) -> None:
        """Take another model; the old one is stopped, and closed as soon as it stands still.

        Args:
            model: The model to step from now on.
            hide: Takes secrets out of what the model raises.
        """
        self.stop()
        with self._lock:
            old, run = self.model, self._run
            self._take(model, hide)
        _daemon(self._close, old, run, name=CLOSING)

    def close(self) -> None:
        """Stop, and close the model as soon as it stands still; the runner cannot be used after."""
        self.stop()
        _daemon(self._close, self.model, self._run, name=CLOSING)

    # -- the threads

    def _insist(self, model: LLMModel, run: _Run) -> None:
        while True:
            with self._lock:
                if run.ended.is_set():
                    return
                model.stop()
            run.ended.wait(INSIST_S)

    def _work(self, model: LLMModel, run: _Run) -> None:
        error = note = ""
        hide = self._hide
        try:
            note = self._steps(model, run)
        except Stopped as stopped:
            note = f"Stopped. {str(stopped)[:1].upper()}{str(stopped)[1:]}."
        except MesaLLMError as known:
            error = hide(str(known))
        except Exception as unknown:  # noqa: BLE001 - a model is anybody's code; the page tells what it raised
            logger.error("a step failed\n%s", hide("".join(traceback.format_exception(unknown))))
            error = hide(f"The step failed with {type(unknown).__name__}: {unknown}")
        with self._lock:
            run.ended.set()
            if self._run is run:
                self.error, self.note = error, note
                self._run = self._begun = None
                self.version += 1
                self.drawn += bool(error or note)

    def _steps(self, model: LLMModel, run: _Run) -> str:
        done = 0
        while model.running and done != run.steps:
            with gate_of(model).writing():
                if run.halted.is_set():  # also while it waited for the page to be drawn
                    break
                if self._run is run:
                    self.decided, self._begun = 0, clock.perf_counter()
                model.step()
            done += 1
            if self._run is run:
                self.decided, self._begun = 0, None
                self.drawn += 1
            if run.steps is None:
                run.halted.wait(self.pause_s)
        return run.why if model.running else "The model has ended; Reset begins anew."

    def _close(self, model: LLMModel, run: _Run | None) -> None:
        if run is not None:
            run.ended.wait()
        with gate_of(model).writing():
            model.close()
        if self._on_closed is not None:
            self._on_closed(model)


def wait_until_closed(timeout_s: float) -> None:
    """Wait until the models of all runners that were closed are closed themselves.

    Args:
        timeout_s: Maximum seconds to wait for each.
    """
    for thread in threading.enumerate():
        if thread.name == CLOSING:
            thread.join(timeout_s)


def _daemon(work: Callable[..., None], *arguments: Any, name: str = "mesa-llm-page") -> None:
    threading.Thread(target=work, args=arguments, name=name, daemon=True).start()
