"""The bar of an experiment: runs done, decisions, failures, dollars and time left, which moves within a run."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from mesa_llm.experiments.runs.runner import Progress

REFRESH_S = 0.1
"""Minimum number of seconds between two drawings."""


class RunBar(AbstractContextManager["RunBar"]):
    """A bar in a terminal or a notebook. A run that is under way counts by the share of its steps."""

    def __init__(self, is_shown: bool | None = None, n_runs: int | None = None) -> None:
        """Start without runs.

        Args:
            is_shown: Whether it is shown; None: on terminals and in notebooks.
            n_runs: Number of runs of all parts of the experiment; None: that of the part under way.
        """
        from tqdm.auto import tqdm  # in a notebook, it imports widgets

        hides = None if is_shown is None else not is_shown
        self._bar: Any = tqdm(total=n_runs, unit="run", disable=hides, dynamic_ncols=True)
        self._is_total_known = n_runs is not None
        self._lock = threading.Lock()
        self._over: set[str] = set()
        self._running: dict[str, Progress] = {}
        self._decisions, self._failures, self._dollars = 0, 0, 0.0
        self._steps: int | None = None
        self._drawn_s = 0.0

    def expect(self, n_runs: int, done: Iterable[str] = (), steps: int | None = None) -> None:
        """Expect the runs of a part of the experiment.

        Args:
            n_runs: Their number.
            done: Labels of those that were made before.
            steps: Number of steps of each; None where they end by themselves.
        """
        with self._lock:
            before, self._steps = len(self._over), steps
            self._over |= set(done)
            if not self._bar.disable:
                self._bar.initial += len(self._over) - before
                self._bar.total = self._bar.total if self._is_total_known else n_runs
            self._draw()

    def progress(self, progress: Progress) -> None:
        """Show how far a run has come; called from any thread."""
        with self._lock:
            if progress.label not in self._over:
                self._running[progress.label] = progress
                self._draw()

    def end(self, label: str, decisions: int, failures: int, dollars: float) -> None:
        """Show that a run has ended.

        Args:
            label: Label of its job.
            decisions: Number of its decisions.
            failures: Number of failed ones.
            dollars: US dollars for its live replies in this session.
        """
        with self._lock:
            self._over.add(label)
            self._running.pop(label, None)
            self._decisions, self._failures = self._decisions + decisions, self._failures + failures
            self._dollars += dollars
            self._draw()

    def _draw(self) -> None:
        now_s = clock.monotonic()
        if self._bar.disable or now_s - self._drawn_s < REFRESH_S:
            return
        self._drawn_s = now_s
        self._set_figures()
        self._bar.refresh()

    def _set_figures(self) -> None:
        self._bar.n, figures = self.text()
        self._bar.set_postfix_str(figures, refresh=False)

    def text(self) -> tuple[float, str]:
        """Return the number of runs so far, with shares of those under way, and the figures beside the bar."""
        running = list(self._running.values())
        share = sum(min(one.steps / self._steps, 1) for one in running) if self._steps else 0
        decisions = self._decisions + sum(one.decisions for one in running)
        failures = self._failures + sum(one.failures for one in running)
        dollars = self._dollars + sum(one.dollars for one in running)
        n = round(len(self._over) + share, 1) if share else len(self._over)
        return n, f"{decisions} decisions, {failures} failed, ${dollars:.4f}"

    def __enter__(self) -> Self:
        """Return the bar."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the bar."""
        self.close()

    def close(self) -> None:
        """Draw it as it is, and begin a new line."""
        with self._lock:
            if not self._bar.disable:
                self._set_figures()
            self._bar.close()
