"""Steps a model in a thread of its own, so that a page answers at once however slowly the model thinks."""

from __future__ import annotations

import threading
import time as clock
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mesa_llm.errors import Absent, ConfigError, Stopped
from mesa_llm.model.model import LLMModel
from mesa_llm.records import Usage
from mesa_llm.viz.gate import gate_of
from mesa_llm.viz.interview import InterviewDesk
from mesa_llm.viz.markup import fault_text
from mesa_llm.viz.newsdesk import NewsDesk

CLOSING = "mesa-llm-closing"
"""Name of every thread that closes a model."""

INSIST_S = 0.2
"""Seconds after which a step that has not stopped is told again: just before it asks, it does not hear."""


MAX_REASON = 600
"""Maximum number of characters of a reason that a page shows."""

ADVICE_ON_ENDPOINTS = (
    "Check under Parameters what agents think with: whether the endpoint runs, its address, the model's name and the "
    "key. Then press Reset for new choices, or Play to go on with the same."
)

ADVICE_ON_REPLIES = (
    "The tab Agents shows what was asked and replied. A longer reply length or another model may help: choose it under "
    "Parameters and press Reset, or press Play to go on all the same."
)

ADVICE_ON_RULES = (
    "It is what rule() of the agents' class returned: only what an agent can do now may be chosen. Mend it, or choose "
    "under Parameters what else agents think with."
)

ADVICE = {
    "ServerTrouble": ADVICE_ON_ENDPOINTS,
    "BadReply": ADVICE_ON_ENDPOINTS,
    "Refused": ADVICE_ON_ENDPOINTS,
    "TransportError": ADVICE_ON_ENDPOINTS,
    "RateLimited": (
        "The endpoint asks to be called less often. Wait a while and press Play, take fewer agents, or set a limit of "
        "requests_per_min in mesa-llm.toml."
    ),
}
"""Kind of a failure → what to do when most decisions of a step fail of it."""


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

    hide: Callable[[str], str]
    """Takes secrets out of what the model raises."""

    is_quiet: bool = False
    """Whether only the last step is to be drawn."""

    halted: threading.Event = field(default_factory=threading.Event)
    """Set when no further step may begin."""

    why: str = ""
    """Why no further step may begin, where a person does not know it."""

    is_stopping: bool = False
    """Whether the step that runs is to stop."""

    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the last step is over."""


class Runner:
    """Steps a model in a daemon thread. Knows nothing of Solara: a page looks at its plain attributes.

    Attributes:
        model: The model that is stepped.
        pause_s: Seconds between two steps while playing.
        last_step: Last step that a recording holds, at which its replay ends; None: nothing is replayed.
        error: What went wrong, for a person to read; empty if nothing did.
        alarm: Why so many decisions of the last step failed that Play stopped, and what to do; empty if they did not.
        note: What a person should know besides: that a step was stopped, or that the model has ended.
        drawn: Rises whenever the model has changed: after each step, and with every new model.
        version: Rises whenever the runner does something else than before.
        decided: Decisions made in the step that runs.
        n_failed: Decisions of the last step that failed; those that people left to the rule twin have not.
    """

    def __init__(
        self,
        model: LLMModel,
        pause_s: float = 0.1,
        hide: Callable[[str], str] = str,
        on_closed: Callable[[LLMModel], None] | None = None,
    ) -> None:
        """Start with a model.

        Args:
            model: The model.
            pause_s: Seconds between two steps while playing.
            hide: Takes secrets out of what the model raises.
            on_closed: Called with each model that was closed.

        Raises:
            ConfigError: If it is a plain Mesa model.
        """
        self.pause_s = pause_s
        self._on_closed = on_closed
        self.version = self.drawn = 0
        self._lock = threading.Lock()
        self._take(model, hide)

    def _take(self, model: Any, hide: Callable[[str], str]) -> None:
        if not isinstance(model, LLMModel):
            raise ConfigError(
                f"Runner steps LLMModels, and {type(model).__name__} is a plain Mesa model: step it with its own "
                "run_for, or show it with Mesa's SolaraViz (docs/pages.md has an example), or make it an LLMModel"
            )
        self.model = model
        self._hide = hide
        self.error = self.note = self.alarm = ""
        self.last_step: int | None = None
        self.decided = self.n_failed = 0
        self._begun: float | None = None
        self._run: _Run | None = None
        gate_of(model)
        InterviewDesk.of(model).hide = hide
        NewsDesk.of(model).hide = hide
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
        """Whether the step that runs is to stop."""
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
        start = self._begun
        return Pulse(
            self.drawn, self.version, self.decided, None if start is None else int(clock.perf_counter() - start)
        )

    # -- what a page does

    def start(self, steps: int | None = None, *, quietly: bool = False) -> None:
        """Begin to step; does nothing if it steps already.

        Args:
            steps: How many steps; None: until `pause` or `stop`.
            quietly: Whether only the last step is to be drawn.
        """
        with self._lock:
            if self._run is not None:
                return
            self._run = run = _Run(steps, self._hide, quietly)
            self.error = self.note = self.alarm = ""
            self.version += 1
        _daemon(self._work, self.model, run)

    def pause(self, reason: str = "") -> None:
        """Begin no further step; the one that runs goes on to its end.

        Args:
            reason: What to tell then; empty: nothing, for somebody just pressed Pause.
        """
        with self._lock:
            if self._run is not None and not self._run.halted.is_set():
                self._run.why = reason
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
        """Replace the model; the old one is stopped, and closed as soon as it stands still.

        Args:
            model: The model to step from now on.
            hide: Takes secrets out of what the model raises.

        Raises:
            ConfigError: If it is a plain Mesa model.
        """
        self.stop()
        with self._lock:
            old_model, run = self.model, self._run
            self._take(model, hide)
        _daemon(self._close, old_model, run, name=CLOSING)

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
        try:
            note = self._steps(model, run)
        except Stopped as stopped:
            note = f"Stopped. {str(stopped)[:1].upper()}{str(stopped)[1:]}."
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page tells what it raised
            error = fault_text("The step", fault, run.hide)
        with self._lock:
            run.ended.set()
            if self._run is run:
                self.error, self.note = error, note
                self._run = self._begun = None
                self.version += 1
                self.drawn += bool(error or note or run.is_quiet)

    def _steps(self, model: LLMModel, run: _Run) -> str:
        n_steps, last = 0, self.last_step
        while model.running and n_steps != run.steps and (last is None or model.now <= last):
            with gate_of(model).writing():
                if run.halted.is_set():  # also while it waited for the page to be drawn
                    break
                if self._run is run:
                    self.decided, self._begun = 0, clock.perf_counter()
                model.step()
                decisions, failed = _last_decisions(model)
                alarm = run.hide(failed_step(model, decisions, failed))
            n_steps += 1
            if self._run is run:
                self.decided, self._begun = 0, None
                self.alarm, self.n_failed = alarm, len(failed)
                self.drawn += not run.is_quiet
            if alarm and run.steps is None:
                break
            if run.steps is None:
                run.halted.wait(self.pause_s)
        if not model.running:
            return "The model has ended; Reset begins anew."
        if last is not None and model.now > last:
            return "The recording ends here; Resume in the tab Runs goes on from here."
        return run.why

    def _close(self, model: LLMModel, run: _Run | None) -> None:
        if run is not None:
            run.ended.wait()
        with gate_of(model).writing():
            model.close()
        if self._on_closed is not None:
            self._on_closed(model)


def failed_step(model: LLMModel, rows: Any, failed: Any) -> str:
    """Describe why most decisions of the last step failed, and what to do; empty if no more than half did.

    Args:
        model: A model that has just stepped.
        rows: Its decisions of that step.
        failed: Those of them that failed.
    """
    n_failed = len(failed)
    n_twins = int(rows["kind"].notna().sum()) if n_failed and model.on_error == "rule" else 0
    n_decisions = len(rows) - n_twins  # a rule twin stood in for each that failed
    if not n_failed or 2 * n_failed <= n_decisions:
        return ""
    reasons = Counter(f"{kind}: {reason}" for kind, reason in zip(failed["kind"], failed["reason"], strict=True))
    reason, count = reasons.most_common(1)[0]
    all_of_them = f"All {n_failed} decisions" if n_failed > 1 else "The only decision"
    share = all_of_them if n_failed == n_decisions else f"{n_failed} of {n_decisions} decisions"
    often = "" if count == n_failed else f" (the reason of {count} of them)"
    advice = ADVICE.get(failed["kind"].mode().iloc[0], ADVICE_ON_REPLIES)
    if set(failed["by"]) == {"rule"}:
        advice = ADVICE_ON_RULES
    return f"{share} of step {model.now - 1} failed. {reason[:MAX_REASON].rstrip('.')}{often}. {advice}"


def _last_decisions(model: LLMModel) -> tuple[Any, Any]:
    """Return the decisions of the last step, and those of them that failed: no rows of either if none did."""
    if not model.step_failures:
        return (), ()
    rows: Any = model.runlog.decisions()
    rows = rows[rows["time"] == model.now - 1]
    return rows, rows[rows["kind"].notna() & (rows["kind"] != Absent.__name__)]


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
