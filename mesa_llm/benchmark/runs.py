"""Runs of tasks: at once, on the one event loop, through one access, with a log each."""

from __future__ import annotations

import concurrent.futures
import hashlib
import logging
import re
import threading
import time as clock
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mesa_llm.agents.design import AgentDesign
from mesa_llm.benchmark.scores import known_scores
from mesa_llm.benchmark.task import Task
from mesa_llm.engine.access import Access
from mesa_llm.errors import MesaLLMError, NothingDecided, Stopped
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.model import LLMModel
from mesa_llm.model.options import RESUME_OPTIONS
from mesa_llm.records import Usage, canonical_json
from mesa_llm.text import counted

logger = logging.getLogger(__name__)

AT_ONCE = 16
"""Maximum number of runs at once; how many requests are in flight is the access's affair."""

LOOK_S = 0.2
"""Seconds between two looks at what is still to be stopped."""


@dataclass(frozen=True)
class Candidate:
    """Who is measured: what agents think with, and the design that they have in every task."""

    name: str
    """What it is called in reports."""

    llm: str | LLM
    """What agents think with."""

    design: AgentDesign | None = None
    """Task-independent choice of the agents' components; None: each model's own."""


class Plan(NamedTuple):
    """A run that is to be made."""

    task: Task
    """The task, with its parameters."""

    candidate: Candidate
    """Who is measured."""

    seed: int
    """Seed of the run."""

    def log_in(self, folder: Path, options: Mapping[str, Any]) -> Path:
        """Return where its run log is kept: another file for each setting, so that none is refused.

        Args:
            folder: The folder.
            options: Options of all models.
        """
        candidate = self.candidate
        design = {} if candidate.design is None else candidate.design.to_json()
        chosen = {name: value for name, value in options.items() if name not in RESUME_OPTIONS}
        what = canonical_json([candidate.name, design, dict(self.task.setting), chosen])
        digest = hashlib.sha256(what.encode()).hexdigest()[:8]
        name = re.sub(r"[^A-Za-z0-9.]+", "-", candidate.name).strip("-.")[:60]
        return folder / f"{self.task.name}-{name}-{digest}-{self.seed}.sqlite"

    def make(self, **options: Any) -> LLMModel:
        """Make its model.

        Args:
            **options: Options of all models.

        Raises:
            ConfigError: If the task's parameters cannot be.
        """
        design = {} if self.candidate.design is None else {"design": self.candidate.design}
        return self.task.make(**{**self.task.setting, **design, **options, "llm": self.candidate.llm, "rng": self.seed})


@dataclass(frozen=True)
class Run:
    """One run of a task, and what came of it."""

    plan: Plan
    """What was to be run."""

    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scores by name; none of a run that did not come to its end."""

    is_comparable: bool = False
    """Whether it may be compared with the task's target."""

    steps: int = 0
    """Number of steps made."""

    decisions: int = 0
    """Number of decisions asked for."""

    usage: Usage = field(default_factory=Usage)
    """What it used; failures are those of decisions."""

    seconds: float = 0.0
    """Seconds it took, scoring included."""

    digest: str = ""
    """Digest of the run, by which a replay is compared."""

    log: Path | None = None
    """Its run log."""

    error: Exception | None = None
    """Why it produced nothing; None if it has scores."""


class Runs:
    """Makes runs at once, each in a thread of its own, and all of them on the one event loop.

    Attributes:
        done: The runs that are over, in the order planned.
    """

    def __init__(self, plans: Sequence[Plan], *, access: Access, folder: Path | None, **options: Any) -> None:
        """Set what is to be run; makes nothing yet.

        Args:
            plans: The runs.
            access: What they ask through: one budget, one pace.
            folder: Where each has its run log: what that holds is used, the rest is recorded; None: in memory.
            **options: Options of all models.
        """
        self.plans = list(plans)
        self.access = access
        self.folder = folder
        self.options = options
        self.done: list[Run] = []
        self._models: set[LLMModel] = set()
        self._lock = threading.Lock()
        self._is_ending = False

    def run(self, on_run: Callable[[Run], None] = lambda run: None) -> list[Run]:
        """Make the runs. One that fails disturbs no other: its error is its result.

        A first Ctrl-C sends nothing more and waits for the replies to what was sent; a second one gives them up.

        Args:
            on_run: Called with each run as soon as it is over, one after the other.

        Raises:
            KeyboardInterrupt: If it was interrupted; `done` holds what was over by then.
        """
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        asks_person = any(plan.candidate.llm == "human" for plan in self.plans)
        with ThreadPoolExecutor(1 if asks_person else AT_ONCE, thread_name_prefix="mesa-llm-run") as pool:
            futures = [pool.submit(self._run, plan) for plan in self.plans]
            try:
                for future in concurrent.futures.as_completed(futures):
                    on_run(future.result())
            except BaseException:
                self._end(futures)
                raise
            finally:
                self.done = [future.result() for future in futures if future.done() and not future.cancelled()]
        return self.done

    def _end(self, futures: Sequence[Future[Run]]) -> None:
        """Let nothing more begin, and wait for what is under way."""
        self._is_ending = True
        for future in futures:
            future.cancel()
        gives_up = False
        while [future for future in futures if not future.done()]:
            try:
                with self._lock:
                    models = list(self._models)
                for model in models:  # again and again, as one may just have been between two steps
                    model.stop(gives_up=gives_up)
                concurrent.futures.wait(futures, timeout=LOOK_S)
            except KeyboardInterrupt:
                gives_up = True

    def _run(self, plan: Plan) -> Run:
        """Make one run, whatever happens in it."""
        begun = clock.perf_counter()
        log = None if self.folder is None else plan.log_in(self.folder, self.options)
        if self._is_ending:
            return Run(plan, log=log, error=Stopped("stopped before it began"))
        try:
            model = plan.make(access=self.access, log=log, **self.options)
        except Exception as error:  # noqa: BLE001 - a model is anybody's code; it ends one run, not the others
            return Run(plan, log=log, error=_told(error, plan))
        with closing(model):
            with self._lock:
                self._models.add(model)
            try:
                error = self._over(plan, model)
            finally:
                with self._lock:
                    self._models.discard(model)
            return self._ended(plan, model, begun, error)

    def _over(self, plan: Plan, model: LLMModel) -> Exception | None:
        """Step a model until its run is over; return what broke it off, if anything did."""
        try:
            if not self._is_ending:
                model.run(plan.task.max_steps)
        except Exception as error:  # noqa: BLE001 - as above
            return _told(error, plan)
        if self._is_ending and model.running and model.time < plan.task.max_steps:
            return Stopped("stopped before its end")
        return None

    @staticmethod
    def _ended(plan: Plan, model: LLMModel, begun: float, error: Exception | None) -> Run:
        """Score a run that came to its end; one that produced nothing is an error."""
        scores: dict[str, float] = {}
        is_comparable = False
        if error is None:
            try:
                scores = known_scores(plan.task.score(model))
                is_comparable = plan.task.is_comparable(model)
                error = _nothing(model, scores)
            except Exception as broken:  # noqa: BLE001 - as above
                error = _told(broken, plan)
        return Run(
            plan,
            {} if error is not None else scores,
            is_comparable,
            int(model.time),
            model.engine.decisions,
            model.usage,
            clock.perf_counter() - begun,
            model.runlog.digest,
            model.runlog.path,
            error,
        )


def _nothing(model: LLMModel, scores: Mapping[str, float]) -> NothingDecided | None:
    """Return why a run that came to its end produced nothing; None if it did produce something."""
    decisions, failures = model.engine.decisions, model.usage.failures
    if not decisions:
        return NothingDecided("nobody was asked for a decision")
    if failures >= decisions:
        first = next(iter(model.runlog.failures()), "unknown")[:300]
        return NothingDecided(
            f"none of the {counted(decisions, 'decision')} succeeded. The first failed because: {first}"
        )
    return None if scores else NothingDecided(f"{counted(decisions, 'decision')}, and no score came of them")


def _told(error: Exception, plan: Plan) -> Exception:
    """Return an error that a person can read: one of ours as it is, any other with its kind."""
    if isinstance(error, MesaLLMError):
        return error
    logger.error("%s, seed %d, broke", plan.task.name, plan.seed, exc_info=error)
    return MesaLLMError(f"the task broke: {type(error).__name__}: {error}")
