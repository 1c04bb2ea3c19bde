"""A Mesa model that can continue after a step that failed or was stopped."""

from __future__ import annotations

import math
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NoReturn

import mesa
from mesa.time import Priority, Schedule

from mesa_llm.engine.activation import Turn, llm_agents
from mesa_llm.engine.setup import require_methods
from mesa_llm.errors import BudgetExceeded, ConfigError, Stopped
from mesa_llm.records import Observation


class ResumableModel(mesa.Model[Any, Any]):
    """A model whose steps may fail or be stopped.

    Mesa (3.5.1 and 4.0.0a0) schedules no further step once a step has raised, so the model silently stops. Here the
    next step is scheduled again. If a step is stopped while agents observe or decide, the time is set back, and the
    next step resumes it. If an action or a rule of the world raises, the step is over. If a step is interrupted after
    agents have begun to act, it can only be resumed by a new model with the same run log.

    Attributes:
        now: The current step, from 1.
        is_stepping: Whether a step is in progress.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Create the model; Mesa schedules the present `self.step`.

        Args:
            **kwargs: `rng` or `scenario`, for Mesa.
        """
        self.step = self._guarded_step
        self._in_run = self._in_step = self._stopping = self._is_writing = self._is_over = False
        self._interval = 0  # the last one that has begun, by the number of its step
        self._this_step = 0  # Mesa's `time` during a step, which is slower to read
        self._stages: list[list[Turn]] | None = None  # remaining stages of the current step
        self._seen: list[Observation] | None = None  # observations of the current stage
        self._broken_off = ""
        self._stepping = threading.RLock()
        self._advancing_thread: int | None = None
        super().__init__(**kwargs)
        self._mesa_step = self.step
        self.step = self.advance

    @property
    def now(self) -> int:
        """The current step, from 1."""
        return self._this_step if self._in_step else int(self.time) + 1

    @property
    def is_stepping(self) -> bool:
        """Whether a step is in progress, so that requests belong to the run."""
        return self._in_step or self._is_writing

    @property
    def is_between_steps(self) -> bool:
        """Whether no step has begun, in this thread or another."""
        if not self._stepping.acquire(blocking=False):
            return False
        try:
            return not self.is_stepping and self._stages is None
        finally:
            self._stepping.release()

    @property
    def is_advancing_here(self) -> bool:
        """Whether this thread is advancing the model, so that what is called now is called by the model."""
        return self._advancing_thread == threading.get_ident()

    def advance(self) -> None:
        """Run one step, unless the run is over (`running` is False).

        Raises:
            ConfigError: If another thread is stepping the model, a step is in progress, or one was broken off for good.
        """
        with self._alone():
            self._require_outside()
            if self.running:
                self._begin_interval()
                self._mesa_step()

    def run(self, max_steps: int | None = None) -> None:
        """Run until the model is done (`running` is False), or `stop` is called.

        Args:
            max_steps: Maximum number of steps; None: no limit, for models that end by themselves.
        """
        with self._run():
            n_steps = 0
            while self.running and (max_steps is None or n_steps < max_steps):
                self.advance()
                n_steps += 1

    def run_for(self, duration: float) -> None:
        """Run for a number of steps, until the model is done, or `stop` is called."""
        self.run_until(self.time + duration)

    def run_until(self, end_time: float) -> None:
        """Run until a time, until the model is done, or `stop` is called."""
        with self._run():
            while self.running and self.time < end_time:
                self._begin_interval()
                super().run_until(min(math.floor(self.time) + 1, end_time))

    def _begin_interval(self) -> None:
        """Call the hook of an interval, once, before its first event."""
        if self._interval < self.now and self.time == self.now - 1 and self._stages is None and not self._broken_off:
            self._interval = self.now
            self._open_interval()

    def _open_interval(self) -> None:
        """Do what comes before the events of an interval."""

    @contextmanager
    def _run(self) -> Generator[None]:
        with self._alone():
            self._require_outside()
            self._in_run, self._stopping = True, False
            try:
                yield
            finally:
                self._in_run = self._stopping = False

    def _require_outside(self) -> None:
        """Reject a step within a step, such as that of an agent that steps its model when it acts."""
        if self._in_step:
            raise ConfigError(f"step {self.now} is in progress, and steps cannot be nested; see next_stage()")

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Prevent other threads from stepping the model at the same time."""
        if not self._stepping.acquire(blocking=False):
            raise ConfigError("another thread is stepping this model; wait for it, or stop() it, and step again")
        outer, self._advancing_thread = self._advancing_thread, threading.get_ident()
        try:
            yield
        finally:
            self._advancing_thread = outer
            self._stepping.release()

    def stop(self) -> None:
        """Stop a step before its next stage, and a run before its next step, from any thread.

        A step whose agents have acted is finished first.
        """
        self._stopping = self._in_run or self._in_step

    def _guarded_step(self) -> None:
        """Run one step and make sure that the model can step again."""
        if self._broken_off:
            self._take_back()
            raise ConfigError(self._broken_off)
        self._in_step, self._is_writing, self._is_over = True, False, False
        self._this_step = int(self.time)
        self._stopping &= self._in_run
        is_early = self._stopping
        try:
            if is_early:
                raise Stopped("stopped between two steps; run_for() continues with the next")
            type(self).step(self)
        except BaseException as error:
            if is_early or (self._stages is not None and not self._is_writing):
                self._take_back()
            else:
                self._end_broken(error)
                self._rearm()
            if isinstance(error, TypeError):
                require_methods(llm_agents(self))
            raise
        finally:
            self._in_step = False
            self._stopping &= self._in_run

    def _end_broken(self, error: BaseException) -> None:
        """End a step that raised after agents had acted.

        An error in an action or a rule ends the step. A stop from outside breaks it off, and no valid step can follow.
        """
        self._stages = self._seen = None
        self._is_writing = False
        is_from_outside = isinstance(error, (BudgetExceeded, ConfigError, Stopped)) or not isinstance(error, Exception)
        if self._is_over or not is_from_outside:
            return
        why = f"{type(error).__name__}: {error}".rstrip(": ")
        self._broken_off = (
            f"step {int(self.time)} was broken off after agents had begun to act ({why}), so this model cannot "
            "continue; create it again with the same log=, which reuses all replies"
        )

    def _take_back(self) -> None:
        """Set the time back to before the step."""
        self.time -= 1
        if "steps" in vars(self):  # Mesa 3 also counts steps
            self.steps -= 1
        self._rearm()

    def _rearm(self) -> None:
        """Schedule the next step as Mesa does."""
        broken = self._default_schedule
        run: Any = broken.function()  # pyright: ignore[reportOptionalCall]
        broken.stop()
        schedule = Schedule(interval=1.0, start=self.time + 1)
        self._default_schedule = self.schedule_recurring(run, schedule, priority=Priority.HIGH)

    def __getstate__(self) -> NoReturn:
        """Reject copying and pickling, with advice on what to do instead.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(
            f"{type(self).__name__} holds connections and an open run log, and cannot be copied or pickled; "
            "create it again with the same parameters and log=, which replays it for free (a DataCollector copies what "
            "its reporters return: let them return numbers and texts, not agents, cells or methods)"
        )
