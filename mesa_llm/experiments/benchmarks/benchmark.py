"""Benchmarks: candidates in tasks, with the baselines that every benchmark has, and one report.

found = benchmark("emotionbench", "gpt-4o", seeds=5, out="runs/bench")
found.compare("emotionbench: Anger")
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mesa_llm.agents.design import OWN_DESIGN, AgentDesign
from mesa_llm.engine.access import Access
from mesa_llm.errors import AllDecisionsFailed, BudgetExceeded, ConfigError, MesaLLMError
from mesa_llm.experiments.benchmarks.cross import Cross, candidates_of, cross_of
from mesa_llm.experiments.benchmarks.report import BenchmarkReport, report_of
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun, TaskRun, TaskRuns
from mesa_llm.experiments.benchmarks.task import Task, find_task
from mesa_llm.text import counted

BASELINES = (Candidate("rule", "rule"), Candidate("random", "random"))
"""Candidates that are run in every benchmark, at no cost: rule twins and random choice."""

SEVERE: tuple[type[MesaLLMError], ...] = (BudgetExceeded, ConfigError, AllDecisionsFailed, MesaLLMError)
"""Errors of runs; the first one that occurred decides the exit code."""


@dataclass(frozen=True)
class Benchmark:
    """Tasks, candidates and options of a benchmark."""

    tasks: Sequence[Task]
    """Tasks, with their parameters."""

    tested: Sequence[Candidate]
    """Candidates under test."""

    seeds: Sequence[int]
    """Seeds of the runs."""

    access: Access
    """Access of all runs."""

    options: Mapping[str, Any]
    """Options of all models."""

    written: Mapping[str, Any]
    """Options of the command, for the report."""

    has_baseline: bool = field(default=False, kw_only=True)
    """Whether the first candidate is also run as the baseline of a task's study, if that lacks components."""

    file: ClassVar[str] = "report"
    """Name of the report's files."""

    @property
    def candidates(self) -> list[Candidate]:
        """Candidates under test, then the baselines."""
        names = {one.name for one in self.tested}
        return [*self.tested, *(one for one in BASELINES if one.name not in names)]

    def plans(self, candidates: Sequence[Candidate]) -> list[PlannedRun]:
        """Return the planned runs of some candidates, one candidate after the other."""
        plans = [PlannedRun(task, one, seed) for one in candidates for task in self.tasks for seed in self.seeds]
        if self.has_baseline:
            short = [PlannedRun.of_baseline(task, candidates[0], seed) for task in self.tasks for seed in self.seeds]
            plans += [plan for plan in short if plan is not None]
        return plans

    def report(self, runs: Sequence[TaskRun], seconds: float) -> BenchmarkReport | Cross:
        """Return the report on runs, which took this many seconds."""
        return report_of(self.tasks, self.candidates, runs, self.written, seconds)


@dataclass(frozen=True)
class CrossBenchmark(Benchmark):
    """Designs × tasks; the candidates are one language model with each design."""

    designs: Sequence[str]
    """Names of the designs, in the order of `tested`."""

    file: ClassVar[str] = "cross"

    @property
    def candidates(self) -> list[Candidate]:
        """The language model with each design."""
        return list(self.tested)

    def report(self, runs: Sequence[TaskRun], seconds: float) -> Cross:
        """Return the comparison of the designs."""
        by_design = dict(zip(self.designs, self.tested, strict=True))
        return cross_of(self.tasks, by_design, self.seeds, runs, self.written, seconds)


def benchmark(
    tasks: str | Task | Sequence[str | Task],
    llm: str | Mapping[str, str],
    *,
    design: AgentDesign | None = None,
    seeds: int | Sequence[int] = 1,
    out: str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    is_quick: bool = False,
    has_baseline: bool = False,
    options: Mapping[str, Any] | None = None,
    **access: Any,
) -> BenchmarkReport:
    """Run a language model in published tasks, and rule twins and random choice for comparison.

    Args:
        tasks: One task or several, by name or as they are.
        llm: Language model of the agents, or several by agent.
        design: Design of the agents; None for each model's own.
        seeds: The seeds, or their number, counting from 1.
        out: Folder of the run logs, whose replies are reused; None for logs in memory.
        parameters: Parameters of all tasks.
        is_quick: Whether to run the small version of each task.
        has_baseline: Whether to run the language model as the baseline of a task's study too, if that lacks components.
        options: Options of all models: `reasoning`, `reply_tokens`, `on_error`, …
        **access: Endpoints, limits and budget shared by all runs, see `Access`.

    Raises:
        ConfigError: If there is no such task, or a parameter is invalid; no request has been sent then.
        MesaLLMError: If a run produced nothing; the run logs hold the others.
    """
    named = [tasks] if isinstance(tasks, str | Task) else list(tasks)
    found = [find_task(one) if isinstance(one, str) else one for one in named]
    found = [(one.as_quick() if is_quick else one).with_parameters(parameters or {}) for one in found]
    chosen = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    (tested,) = candidates_of(llm, {OWN_DESIGN: design}).values()
    start_s = clock.perf_counter()
    with closing(Access(**access)) as shared:
        written = {"tasks": [one.name for one in found], "llm": tested.name, "repeats": len(chosen)}
        plan = Benchmark(found, [tested], chosen, shared, options or {}, written, has_baseline=has_baseline)
        folder = None if out is None else Path(out)
        runs = TaskRuns(plan.plans(plan.candidates), access=shared, folder=folder, **plan.options)
        runs.check()
        runs.run()
        require_results(runs.done)
        return report_of(found, plan.candidates, runs.done, written, clock.perf_counter() - start_s)


def require_results(runs: Sequence[TaskRun]) -> None:
    """Check that every run produced something.

    Raises:
        MesaLLMError: If one did not: the most severe error of all.
    """
    failed = [(run, run.error) for run in runs if run.error is not None]
    if not failed:
        return
    kind = next(kind for kind in SEVERE if any(isinstance(error, kind) for _, error in failed))
    run, error = next((run, error) for run, error in failed if isinstance(error, kind))
    raise kind(
        f"{len(failed)} of {counted(len(runs), 'run')} produced nothing. {run.plan.task.name}, "
        f"{run.plan.candidate.name}, seed {run.plan.seed}: {error}"
    )
