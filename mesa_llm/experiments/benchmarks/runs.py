"""Runs of tasks, with shared access and one log each."""

from __future__ import annotations

import logging
import re
import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mesa_llm.agents.design import AgentDesign
from mesa_llm.engine.access import Access
from mesa_llm.errors import AllDecisionsFailed, ConfigError, MesaLLMError, Stopped
from mesa_llm.experiments.benchmarks.designs import without
from mesa_llm.experiments.benchmarks.scores import known_scores
from mesa_llm.experiments.benchmarks.task import Task, scoring
from mesa_llm.experiments.runs.runner import Job, Stop, run_jobs
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.cost_estimate import Cost, CostEstimate, estimate_cost
from mesa_llm.model.identity import setting_digest
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import Quality, Rate
from mesa_llm.records import Usage
from mesa_llm.text import counted, none_succeeded

logger = logging.getLogger(__name__)

FREE = ("rule", "random")
"""Values of `llm` that cost nothing. A judge of the agents may still cost something."""


@dataclass(frozen=True)
class Candidate:
    """A language model under test, with the design of its agents in every task."""

    name: str
    """Name in reports."""

    llm: str | LLM | Mapping[str, str]
    """Language model of the agents, or several by agent, as `llm=` of a model takes them."""

    design: AgentDesign | None = None
    """Task-independent choice of the agents' components; None for each model's own."""

    @property
    def thinks_with(self) -> str | LLM | Mapping[str, str]:
        """Language model of the agents, possibly set by the design."""
        return self.llm if self.design is None or self.design.llm is None else self.design.llm

    @property
    def llms(self) -> list[str | LLM]:
        """All of its language models."""
        thinks_with = self.thinks_with
        return [*thinks_with.values()] if isinstance(thinks_with, Mapping) else [thinks_with]


class PlannedRun(NamedTuple):
    """A planned run of a task."""

    task: Task
    """Task, with its parameters."""

    candidate: Candidate
    """Language model under test."""

    seed: int
    """Seed of the run."""

    @classmethod
    def of_baseline(cls, task: Task, candidate: Candidate, seed: int) -> PlannedRun | None:
        """Return a candidate's run as the study's baseline, if that lacks components; a free one reads none anyway."""
        if task.baseline is None or not task.baseline.without or candidate.thinks_with in FREE:
            return None
        name = f"{candidate.name} {task.baseline.name}"
        short = Candidate(name, candidate.llm, without(candidate.design, *task.baseline.without))
        return cls(task, short, seed)

    def log_in(self, folder: Path, options: Mapping[str, Any]) -> Path:
        """Return the path of its run log: a separate file for each setting, so no recording is refused.

        Args:
            folder: The folder.
            options: Options of all models.
        """
        candidate = self.candidate
        design = {} if candidate.design is None else candidate.design.to_json()
        digest = setting_digest([candidate.name, design, dict(self.task.setting)], options, self.task.setting)[:8]
        name = re.sub(r"[^A-Za-z0-9.]+", "-", candidate.name).strip("-.")[:60]
        return folder / f"{self.task.name}-{name}-{digest}-{self.seed}.sqlite"

    def make(self, **options: Any) -> LLMModel:
        """Make its model.

        Args:
            **options: Options of all models.

        Raises:
            ConfigError: If the task's parameters are invalid.
        """
        design = {} if self.candidate.design is None else {"design": self.candidate.design}
        return self.task.make(**{**self.task.setting, **design, **options, "llm": self.candidate.llm, "rng": self.seed})


@dataclass(frozen=True)
class TaskRun:
    """A run of a task, and its results."""

    plan: PlannedRun
    """The planned run."""

    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scores by name; empty if the run did not finish."""

    shuffled: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scores with shuffled replies, for a study whose baseline they are; else empty."""

    is_comparable: bool = False
    """Whether the run may be compared with the task's target."""

    steps: int = 0
    """Number of steps."""

    decisions: int = 0
    """Number of decisions."""

    quality: Quality = field(default_factory=dict[str, Rate])
    """What did not come as asked."""

    usage: Usage = field(default_factory=Usage)
    """Usage of the run in this session."""

    paid: Usage = field(default_factory=Usage)
    """Usage of the run in all sessions, according to its log."""

    seconds: float = 0.0
    """Duration in seconds, scoring included."""

    digest: str = ""
    """Digest of the run, which a replay must reproduce."""

    log: Path | None = None
    """Path of the run log; None for memory."""

    error: Exception | None = None
    """Reason it produced no scores; None if it has some."""


class TaskRuns:
    """Runs a benchmark in threads on a single event loop.

    Attributes:
        done: Results of the runs, in the order planned.
    """

    def __init__(self, plans: Sequence[PlannedRun], *, access: Access, folder: Path | None, **options: Any) -> None:
        """Plan the runs without creating any model.

        Args:
            plans: The runs.
            access: Access shared by all runs: one budget, one rate limit.
            folder: Folder of the run logs, whose replies are reused; None for logs in memory.
            **options: Options of all models.
        """
        self.plans = list(plans)
        self.access = access
        self.folder = folder
        self.options = options
        self._made: dict[int, TaskRun] = {}

    @property
    def done(self) -> list[TaskRun]:
        """Results of the runs started so far, in the order planned."""
        return [self._made[index] for index in sorted(self._made)]

    def check(self) -> None:
        """Create the folder and each candidate's model of each task once, to find errors before any request.

        Raises:
            ConfigError: If a task's parameters are invalid, a candidate's provider is unknown, or the folder cannot be
                created.
        """
        for llm in dict.fromkeys(llm for plan in self.plans for llm in plan.candidate.llms):
            self.access.require(llm)
        first = {(plan.task.name, plan.candidate.name): plan for plan in reversed(self.plans)}
        for plan in reversed(first.values()):
            plan.make(access=self.access, **self.options).close()
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(
                    f"{str(self.folder)!r} cannot be created as a folder for runs: {error.strerror}"
                ) from error

    def run(
        self,
        on_run: Callable[[TaskRun], None] = lambda run: None,
        on_scoring: Callable[[PlannedRun, int, int], None] = lambda plan, n_done, n: None,
    ) -> list[TaskRun]:
        """Execute the runs. A failure is the result of its run and does not affect the others.

        A first Ctrl-C sends no more requests, ends all scoring, and waits for pending replies. A second one abandons
        them.

        Args:
            on_run: Called with each run when it ends, one call at a time.
            on_scoring: Called from the runs' threads with a run that is being scored, and the numbers of parts that are
                scored and of all, as far as its task notes them.

        Raises:
            KeyboardInterrupt: On Ctrl-C; `done` then has the runs started so far.
        """
        asks_person = any(plan.candidate.llm == "human" for plan in self.plans)
        jobs = [
            _TaskJob(index, plan, self.folder, self.options, self._made, on_scoring)
            for index, plan in enumerate(self.plans)
        ]
        with closing(run_jobs(jobs, self.access, on="threads", workers=1 if asks_person else None)) as runs:
            for _, run in runs:
                on_run(run)
        return self.done


@dataclass(frozen=True)
class _TaskJob(Job[TaskRun]):
    """A planned run as a thread's job."""

    index: int
    plan: PlannedRun
    folder: Path | None
    options: Mapping[str, Any]
    made: dict[int, TaskRun]
    """Index of a run that has started → its result."""

    on_scoring: Callable[[PlannedRun, int, int], None]
    """Called with the progress of scoring."""

    def run(self, access: Access, stop: Stop) -> TaskRun:
        """Execute the run, and store its result."""
        self.made[self.index] = run = self._run(access, stop)
        return run

    def broken(self, error: Exception) -> TaskRun:
        """Return the error as the result."""
        return TaskRun(self.plan, error=error)

    def _run(self, access: Access, stop: Stop) -> TaskRun:
        plan, start = self.plan, clock.perf_counter()
        log = None if self.folder is None else plan.log_in(self.folder, self.options)
        if stop.is_requested:
            return TaskRun(plan, log=log, error=Stopped("stopped before it began"))
        try:
            model = plan.make(access=access, log=log, **self.options)
        except Exception as error:  # noqa: BLE001 - a model is anybody's code; it ends one run, not the others
            return TaskRun(plan, log=log, error=_readable(error, plan))
        with closing(model):
            error: Exception | None = None
            try:
                stop.run(model, plan.task.max_steps)
            except Exception as fault:  # noqa: BLE001 - as above
                error = _readable(fault, plan)
            return self._result(model, start, error, stop)

    def _result(self, model: LLMModel, start: float, error: Exception | None, stop: Stop) -> TaskRun:
        """Score a run. A run that produced nothing is an error."""

        def note(n_done: int, n: int) -> None:
            if stop.is_requested:
                raise Stopped(f"stopped while it was scored ({n_done} of {n}); the same command scores it again")
            self.on_scoring(self.plan, n_done, n)

        task = self.plan.task
        scores: dict[str, float] = {}
        shuffled: dict[str, float] = {}
        is_comparable = False
        if error is None:
            try:
                with scoring(note):
                    scores = known_scores(task.score(model))
                    if task.baseline is not None and task.baseline.shuffled is not None:
                        shuffled = known_scores(task.baseline.shuffled(model))
                is_comparable = task.is_comparable(model)
                error = _lack_of_results(model, scores)
            except Exception as fault:  # noqa: BLE001 - as above
                error = _readable(fault, self.plan)
        return TaskRun(
            self.plan,
            {} if error is not None else scores,
            {} if error is not None else shuffled,
            is_comparable,
            int(model.time),
            model.engine.decisions,
            model.data_quality(),
            model.usage,
            _all_paid(model),
            clock.perf_counter() - start,
            model.runlog.digest,
            model.runlog.path,
            error,
        )


def _all_paid(model: LLMModel) -> Usage:
    """Return the usage of a run in all sessions, or in this one if its log can no longer be read."""
    try:
        return model.runlog.paid()
    except ConfigError:
        return model.usage


def _lack_of_results(model: LLMModel, scores: Mapping[str, float]) -> AllDecisionsFailed | None:
    """Return the error of a run that produced nothing, or None."""
    decisions = model.engine.decisions
    if not decisions:
        return AllDecisionsFailed("no agent was asked for a decision")
    if model.engine.all_failed:
        first = next(iter(model.runlog.failures()), "unknown")[:300]
        return AllDecisionsFailed(f"{none_succeeded(model.engine.n_asked)}. The first failed because: {first}")
    return None if scores else AllDecisionsFailed(f"{counted(decisions, 'decision')}, but no score")


def _readable(error: Exception, plan: PlannedRun) -> Exception:
    """Return a readable error: our own unchanged, others with their type."""
    if isinstance(error, MesaLLMError):
        return error
    logger.error("%s, seed %d, crashed", plan.task.name, plan.seed, exc_info=error)
    return MesaLLMError(f"the task broke: {type(error).__name__}: {error}")


def estimate_plans(plans: Sequence[PlannedRun], access: Access, **options: Any) -> tuple[dict[str, Cost], list[str]]:
    """Estimate the cost of runs without sending a request; see `mesa_llm.model.cost_estimate.estimate_cost`.

    The first run of each task and candidate is estimated, and the others are assumed to cost the same. Replies already
    in run logs are not deducted.

    Args:
        plans: The runs, including baselines: a judging model also judges these.
        access: Access for the runs.
        **options: Options of all models.

    Returns:
        Name of the task → total cost of its runs; and names of the language models without a known price.

    Raises:
        ConfigError: If a task's parameters are invalid, a model string is invalid, or a provider is unknown.
    """
    each: dict[tuple[str, str], CostEstimate] = {}
    costs: dict[str, Cost] = {}
    for plan in plans:
        name, key = plan.task.name, (plan.task.name, plan.candidate.name)
        if key not in each:
            run = {"access": access, "design": plan.candidate.design, **options}
            try:
                each[key] = estimate_cost(plan.make, plan.task.max_steps, **run)
            except ConfigError:
                if plan.candidate.llm not in FREE:
                    raise
                each[key] = CostEstimate(0, 0)  # a baseline that a model lacks, such as a rule twin
        costs[name] = costs.get(name, Cost()) + each[key].total
    return costs, list(dict.fromkeys(model for estimate in each.values() for model in estimate.unpriced))
