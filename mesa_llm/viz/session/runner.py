"""Steps a model in a thread, so that a page stays responsive however slowly the agents decide."""

from __future__ import annotations

import threading
import time as clock
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from mesa_llm.errors import ConfigError, HumanTimeout, Stopped
from mesa_llm.model.model import LLMModel
from mesa_llm.records import Usage
from mesa_llm.viz.render.markup import fault_text
from mesa_llm.viz.session.interventions import InterventionRunner
from mesa_llm.viz.session.interviews import InterviewQueue
from mesa_llm.viz.session.rw_lock import lock_of

CLOSING = "mesa-llm-closing"
"""Name of every thread that closes a model."""

PLAY_S = 0.1
"""Seconds between two steps while playing, unless the visitor chooses otherwise."""

PAGE_S = 2.0
"""Maximum number of seconds that a playing model waits until its page shows the last step."""

INSIST_S = 0.2
"""Seconds between attempts to stop a step: a stop just before a request can be missed."""

MAX_REASON = 600
"""Maximum number of characters of a reason that a page shows."""

ADVICE_ON_ENDPOINTS = (
    "Check the language model under Parameters: is the endpoint running, and are its address, the model name and the "
    "key right? Then press Reset to apply changes, or Play to continue as before."
)

ADVICE_ON_REPLIES = (
    "The Agents tab shows the prompts and replies. A longer reply length or another model may help: set it under "
    "Parameters and press Reset, or press Play to continue anyway."
)

ADVICE_ON_RULES = (
    "The decision came from rule() of the agent class, which may only choose what the agent can do now. Fix it, or "
    "choose a language model under Parameters."
)

ADVICE = MappingProxyType(
    {
        "ServerError": ADVICE_ON_ENDPOINTS,
        "BadReply": ADVICE_ON_ENDPOINTS,
        "Refused": ADVICE_ON_ENDPOINTS,
        "TransportError": ADVICE_ON_ENDPOINTS,
        "Filtered": (
            "A content filter of the provider stopped the prompts or the replies. Change what agents read, or the "
            "filter's settings at the provider."
        ),
        "RateLimited": (
            "The endpoint is rate-limiting requests. Wait a while and press Play, use fewer agents, or set "
            "requests_per_min in mesa-llm.toml."
        ),
    }
)
"""Kind of failure → advice when most decisions of a step fail that way."""


class RunnerState(NamedTuple):
    """The state of a runner; a page updates its text when this changes."""

    drawn: int
    """Counter that rises whenever the model has to be redrawn."""

    version: int
    """Counter that rises whenever the runner's activity changes."""

    decided: int
    """Number of decisions in the current step."""

    seconds: int | None
    """Whole seconds since the step began; None between two steps."""


@dataclass(eq=False)
class _Run:
    """One series of steps."""

    steps: int | None
    """Steps to run; None: until paused."""

    hide: Callable[[str], str]
    """Removes secrets from error messages."""

    is_quiet: bool = False
    """Whether to draw only the last step."""

    halted: threading.Event = field(default_factory=threading.Event)
    """Set when no further step may begin."""

    why: str = ""
    """Why it was paused, if the visitor did not ask for it."""

    is_stopping: bool = False
    """Whether to stop the current step."""

    is_dropped: bool = False
    """Whether the model is discarded, so that even a step whose agents have acted is not finished."""

    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the last step is over."""


class Runner:
    """Steps a model in a daemon thread; a page reads its attributes.

    Attributes:
        model: The model that is stepped.
        pause_s: Seconds between two steps while playing.
        last_step: Last step of the recording that is replayed; None: nothing is replayed.
        is_resumable: Whether that recording is among the saved runs of the page.
        error: Error message for the visitor; empty if there is none.
        alarm: Why most decisions of the last step failed, with advice; empty if they did not.
        note: Any other message for the visitor, such as that the model has ended.
        drawn: Counter that rises whenever the model has changed: after each step, and with every new model.
        shown: Value of `drawn` that the page shows; None: nobody has it open.
        version: Counter that rises whenever the runner's activity changes.
        decided: Number of decisions in the current step.
        n_failed: Number of failed decisions in the last step, not counting those that people left to the rule twin.
    """

    def __init__(
        self,
        model: LLMModel,
        pause_s: float = PLAY_S,
        hide: Callable[[str], str] = str,
        on_closed: Callable[[LLMModel], None] | None = None,
    ) -> None:
        """Start with a model.

        Args:
            model: The model.
            pause_s: Seconds between two steps while playing.
            hide: Removes secrets from error messages.
            on_closed: Called with each model that has been closed.

        Raises:
            ConfigError: If it is a plain Mesa model.
        """
        self.pause_s = pause_s
        self._on_closed = on_closed
        self.version = self.drawn = 0
        self.shown: int | None = None
        self._lock = threading.Lock()
        self._take(model, hide)

    def _take(self, model: Any, hide: Callable[[str], str]) -> None:
        if not isinstance(model, LLMModel):
            raise ConfigError(
                f"Runner steps LLMModels, and {type(model).__name__} is a plain Mesa model: step it yourself, show "
                "it with Mesa's SolaraViz (docs/pages.md has an example), or make it an LLMModel"
            )
        self.model = model
        self._hide = hide
        self.error = self.note = self.alarm = ""
        self.last_step: int | None = None
        self.is_resumable = False
        self.decided = self.n_failed = 0
        self._begun: float | None = None
        self._run: _Run | None = None
        lock_of(model)
        InterviewQueue.of(model).hide = hide
        InterventionRunner.of(model).hide = hide
        model.engine.on_decision = lambda usage: self._count(model, usage)
        self.version += 1
        self.drawn += 1

    def _count(self, model: LLMModel, usage: Usage) -> None:
        if model is self.model:
            self.decided += 1

    # -- state

    @property
    def busy(self) -> bool:
        """Whether steps are being run."""
        return self._run is not None

    @property
    def playing(self) -> bool:
        """Whether steps are run until `pause` or `stop`."""
        run = self._run
        return run is not None and run.steps is None and not run.halted.is_set()

    @property
    def stopping(self) -> bool:
        """Whether the current step is being stopped."""
        run = self._run
        return run is not None and run.is_stopping

    @property
    def finishing(self) -> bool:
        """Whether the current step is the last for now."""
        run = self._run
        return run is not None and run.halted.is_set()

    @property
    def pulse(self) -> RunnerState:
        """The state that may change during a step."""
        start = self._begun
        return RunnerState(
            self.drawn, self.version, self.decided, None if start is None else int(clock.perf_counter() - start)
        )

    # -- control

    def start(self, steps: int | None = None, *, quietly: bool = False) -> None:
        """Start stepping, unless the runner is stepping already.

        Args:
            steps: Number of steps; None: until `pause` or `stop`.
            quietly: Whether to draw only the last step.
        """
        with self._lock:
            if self._run is not None:
                return
            self._run = run = _Run(steps, self._hide, quietly)
            self.error = self.note = self.alarm = ""
            self.version += 1
        _daemon(self._work, self.model, run)

    def pause(self, reason: str = "") -> None:
        """Begin no further step, but finish the current one.

        Args:
            reason: Note for the visitor; empty: none, as the visitor pressed Pause.
        """
        with self._lock:
            if self._run is not None and not self._run.halted.is_set():
                self._run.why = reason
                self._run.halted.set()
                self.version += 1

    def stop(self) -> None:
        """Stop in the middle of a step: open requests are cancelled, and replies so far are kept."""
        with self._lock:
            run = self._run
            if run is None or run.is_stopping:
                return
            run.is_stopping = True
            run.halted.set()
            self.version += 1
        _daemon(self._insist, self.model, run)

    def reset(self, model: LLMModel, hide: Callable[[str], str] = str) -> None:
        """Replace the model; the old one is stopped, and closed when its step has ended.

        Args:
            model: The new model.
            hide: Removes secrets from error messages.

        Raises:
            ConfigError: If it is a plain Mesa model.
        """
        self._drop()
        with self._lock:
            old_model, run = self.model, self._run
            self._take(model, hide)
        _daemon(self._close, old_model, run, name=CLOSING)

    def close(self) -> None:
        """Stop, and close the model when its step has ended; the runner cannot be used afterwards."""
        self._drop()
        _daemon(self._close, self.model, self._run, name=CLOSING)

    def _drop(self) -> None:
        run = self._run
        if run is not None:
            run.is_dropped = True
        self.stop()

    # -- threads

    def _insist(self, model: LLMModel, run: _Run) -> None:
        while True:
            with self._lock:
                if run.ended.is_set():
                    return
                model.stop()
                if run.is_dropped:  # a step that is finishing may wait for a person, who will not answer any more
                    model.engine.stop()
            run.ended.wait(INSIST_S)

    def _work(self, model: LLMModel, run: _Run) -> None:
        error = note = ""
        try:
            note = self._steps(model, run)
        except Stopped as stopped:
            note = f"Stopped. {str(stopped)[:1].upper()}{str(stopped)[1:]}."
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page shows what it raised
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
            with lock_of(model).writing():
                if run.halted.is_set():  # perhaps while waiting for the page to be drawn
                    break
                if self._run is run:
                    self.decided, self._begun = 0, clock.perf_counter()
                model.step()
                decisions, failed = _last_decisions(model)
                alarm = run.hide(failure_alarm(model, decisions, failed))
            n_steps += 1
            if self._run is run:
                self.decided, self._begun = 0, None
                self.alarm, self.n_failed = alarm, len(failed)
                self.drawn += not run.is_quiet
            if alarm and run.steps is None:
                break
            if run.steps is None:
                run.halted.wait(self.pause_s)
                self._wait_for_page(run)
        if last is not None and (model.now > last or not model.running):
            is_resumable = self.is_resumable and model.running
            hint = " To continue from here, press Resume on the Data tab." if is_resumable else ""
            return f"The recording ends here.{hint}"
        if not model.running:
            return "The model has ended. Press Reset for a new run."
        return run.why

    def _wait_for_page(self, run: _Run) -> None:
        """Wait until the page shows the last step, so that it is never more than one behind; but not for long."""
        give_up = clock.monotonic() + PAGE_S
        while self.shown is not None and self.shown < self.drawn and clock.monotonic() < give_up:
            if self._run is not run or run.halted.wait(0.01):
                break

    def _close(self, model: LLMModel, run: _Run | None) -> None:
        if run is not None:
            run.ended.wait()
        with lock_of(model).writing():
            model.close()
        if self._on_closed is not None:
            self._on_closed(model)


def failure_alarm(model: LLMModel, rows: Any, failed: Any) -> str:
    """Describe why most decisions of the last step failed, with advice; empty if at most half did.

    Args:
        model: A model that has just stepped.
        rows: Its decisions in that step.
        failed: Those that failed.
    """
    n_failed = len(failed)
    n_twins = int(rows["kind"].notna().sum()) if n_failed and model.on_error == "rule" else 0
    n_decisions = len(rows) - n_twins  # a rule twin replaced each failed decision
    if not n_failed or 2 * n_failed <= n_decisions:
        return ""
    reasons = Counter(f"{kind}: {reason}" for kind, reason in zip(failed["kind"], failed["reason"], strict=True))
    reason, count = reasons.most_common(1)[0]
    all_of_them = f"All {n_failed} decisions" if n_failed > 1 else "The only decision"
    share = all_of_them if n_failed == n_decisions else f"{n_failed} of {n_decisions} decisions"
    often = "" if count == n_failed else f" ({count} of them)"
    advice = ADVICE.get(failed["kind"].mode().iloc[0], ADVICE_ON_REPLIES)
    if set(failed["by"]) == {"rule"}:
        advice = ADVICE_ON_RULES
    return f"{share} of step {model.now - 1} failed. {reason[:MAX_REASON].rstrip('.')}{often}. {advice}"


def _last_decisions(model: LLMModel) -> tuple[Any, Any]:
    """Return the decisions of the last step, and those that failed; both empty if none failed."""
    if not model.step_failures:
        return (), ()
    rows: Any = model.runlog.decisions()
    rows = rows[rows["time"] == model.now - 1]
    return rows, rows[rows["kind"].notna() & (rows["kind"] != HumanTimeout.__name__)]


def wait_until_closed(timeout_s: float) -> None:
    """Wait until the models of all closed runners are closed.

    Args:
        timeout_s: Maximum time to wait for each, in seconds.
    """
    for thread in threading.enumerate():
        if thread.name == CLOSING:
            thread.join(timeout_s)


def _daemon(work: Callable[..., None], *arguments: Any, name: str = "mesa-llm-page") -> None:
    threading.Thread(target=work, args=arguments, name=name, daemon=True).start()
