"""A Mesa model that can step again whatever happened in a step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import mesa
from mesa.time import Priority, Schedule

from mesa_llm.activation import Stage
from mesa_llm.errors import Stopped
from mesa_llm.records import Observation


class LastingModel(mesa.Model[Any, Any]):
    """A model whose steps may fail or be stopped.

    Mesa (3.5.1 and 4.0.0a0) never schedules a step again that has raised: the model is silently dead. Here it is
    scheduled anew. A step that was stopped while agents observed or decided has not happened: the time is set back,
    and the next step goes on with it. One in which an action or a rule of the world broke is over.

    Attributes:
        now: The step that is being decided, from 1.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Make the model; Mesa takes what it schedules from `self.step`.

        Args:
            **kwargs: `rng` or `scenario`, for Mesa.
        """
        self.step = self._guarded_step
        self._in_run = self._in_step = self._stopping = self._is_acting = False
        self._stages: list[Stage] | None = None  # what is left of a step that is under way
        self._seen: list[Observation] | None = None  # what the agents of its current stage see
        super().__init__(**kwargs)

    @property
    def now(self) -> int:
        """The step that is being decided, from 1."""
        return int(self.time) + (0 if self._in_step else 1)

    def advance(self) -> None:
        """Let Mesa make one step."""
        step: Any = vars(self)["step"]
        step()

    def run_for(self, duration: float) -> None:
        """Run for a number of steps, or until `stop` is called."""
        with self._run():
            super().run_for(duration)

    def run_until(self, end_time: float) -> None:
        """Run until a time, or until `stop` is called."""
        with self._run():
            super().run_until(end_time)

    @contextmanager
    def _run(self) -> Generator[None]:
        self._in_run, self._stopping = True, False
        try:
            yield
        finally:
            self._in_run = False

    def stop(self) -> None:
        """Stop what is under way, from any thread: the step before its next stage, a run before its next step."""
        self._stopping = True

    def _guarded_step(self) -> None:
        """Run one step, and leave a model that can step again."""
        if not self.running:
            return
        self._in_step, self._is_acting = True, False
        self._stopping &= self._in_run
        is_early = self._stopping
        try:
            if is_early:
                raise Stopped("stopped between two steps; run_for() goes on with the next")
            type(self).step(self)
        except BaseException:
            if is_early or (self._stages is not None and not self._is_acting):
                self.time -= 1
                if "steps" in vars(self):  # Mesa 3 counts steps as well
                    self.steps -= 1
            else:
                self._stages = self._seen = None
            self._rearm()
            raise
        finally:
            self._in_step = False

    def _rearm(self) -> None:
        """Schedule the next step, as Mesa would have done."""
        broken = self._default_schedule
        run: Any = broken.function()  # pyright: ignore[reportOptionalCall]
        broken.stop()
        schedule = Schedule(interval=1.0, start=self.time + 1)
        self._default_schedule = self.schedule_recurring(run, schedule, priority=Priority.HIGH)
