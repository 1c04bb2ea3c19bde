"""Benchmark reports: records that can be saved as JSON and restored, and tables for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.benchmarks.charts import errors_chart, scores_chart
from mesa_llm.experiments.benchmarks.results import RunRow, TaskReport, TaskResult
from mesa_llm.experiments.benchmarks.runs import Candidate, TaskRun
from mesa_llm.experiments.benchmarks.scores import constant_error, people_error, summarise
from mesa_llm.experiments.benchmarks.task import Task
from mesa_llm.experiments.findings import Arms, Findings, Section, Table, Value, require_measure
from mesa_llm.model.quality import quality_texts, quality_warning, total_quality
from mesa_llm.records import Usage
from mesa_llm.runlog.versions import versions
from mesa_llm.statistics import with_interval
from mesa_llm.text import counted, figure_text
from mesa_llm.tools.tool import describe

MAX_SCORES = 12
"""Maximum number of scores of a task in the table. The page and JSON include all."""

FLAGS = (
    *("llm", "api_base", "parser", "reasoning", "reply_tokens", "scoring", "design", "ablate", "measure", "items"),
    *("target", "baseline", "quick", "set", "repeats", "rng"),
)
"""Options of the command, in writing order."""


RUNS = "Runs"
"""Title of the tables of runs, which only pages have."""

OTHER_TARGET = " ≠"
"""Mark of a study's error that was measured against another target than ours."""

COMPARISON = (
    "The error is the distance between published scores and ours, averaged over runs. Those of the candidates, "
    "constant (always the target's mean) and people are distances from the same target: compare them along a row. "
    "its baseline is the kind that the study has, run here: random choice, shuffled replies, or the first candidate "
    "without some components (with --baseline). halves is the noise between runs. The study's errors are of its own "
    "runs: compare them with the candidates' only where the items, the target and the unit are the study's, as the "
    "task's note says; ≠ marks those with another target. A dash: nothing to compare. In brackets: 95 % intervals "
    "over the runs, from four runs on; too narrow where the error is no larger than halves, as an error near 0 cannot "
    "be told from that noise."
)
"""Which columns of the table of errors can be compared with which."""


@dataclass(frozen=True, kw_only=True)
class Results(Findings):
    """Results of a benchmark, as stored in JSON."""

    options: Mapping[str, Any]
    """Options of the command, without secrets."""

    usage: Usage
    """Usage of all runs in this session."""

    paid: Usage = field(default_factory=Usage)
    """Usage of all runs in all sessions, according to the run logs."""

    failed_runs: int
    """Number of runs that produced nothing."""

    seconds: float
    """Duration in seconds."""

    versions: Mapping[str, str]
    """Versions of the packages."""

    @property
    def lead(self) -> list[str]:
        """Options and cost."""
        options = "; ".join(f"{name}: {_option_text(value)}" for name, value in self.options.items() if value)
        usage = self.usage
        spent = (
            f"{counted(usage.calls, 'live reply', 'live replies')}, {usage.replayed} from run logs, {usage.tokens} "
            f"tokens, ${usage.dollars:.4f}, {self.seconds:.1f} s."
        )
        return ["; ".join(filter(None, [options, spent]))]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return TypeAdapter(type(self)).dump_python(self, mode="json")

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read the JSON file of a benchmark.

        Raises:
            ConfigError: If the file cannot be read, or is not a report of this version.
        """
        try:
            return TypeAdapter(cls).validate_json(file.read_bytes())
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise ConfigError(f"{file} is not a report of this version of mesa-llm bench: {describe(error)}") from None

    def command(self, folder: Path) -> str:
        """Return the command that makes or resumes the same runs.

        Args:
            folder: Folder of the run logs.
        """
        words = ["mesa-llm", "bench", *(self.options.get("tasks") or ())]
        words += ["--cross"] if self.options.get("cross") else []
        for name in FLAGS:
            value = self.options.get(name)
            flag = f"--{name.replace('_', '-')}"
            if value is True:
                words.append(flag)
            elif value is not None and value is not False:
                values = value if isinstance(value, list) else [value]
                words += [word for one in values for word in (flag, str(one))]
        return shlex.join([*words, "--out", str(folder)])


@dataclass(frozen=True, kw_only=True)
class BenchmarkReport(Results):
    """Results of a benchmark."""

    candidate: str
    """Language model under test."""

    baselines: Sequence[str]
    """The baselines."""

    tasks: Sequence[TaskReport]
    """The tasks, in order."""

    @property
    def name(self) -> str:
        """Name of the report."""
        return f"Benchmark of {self.candidate}"

    def parts(self) -> list[Table]:
        """Return the errors of all tasks, then the scores of each."""
        return [table for one in self.sections() for table in one.tables if table.title != RUNS]

    def sections(self) -> list[Section]:
        """Return the errors of all tasks, then each task: its scores, and its runs."""
        note = COMPARISON if self.has_errors else ""
        errors = Table("Errors", as_rows(self.error_head, map(self.error_row, self.tasks)), note)
        compared = [task for task in self.tasks if task.has_error]
        charts = [errors_chart(self.candidates, compared)] if compared else []
        return [Section(charts=charts, tables=[errors]), *map(_task_section, self.tasks)]

    def arms(self, measure: str) -> Arms:
        """Return the values of a score by candidate and seed.

        Args:
            measure: The score, as `task: score`; its name alone where only one task has it.

        Raises:
            ConfigError: If there is no such score.
        """
        scores = {f"{task.task}: {name}": (task, name) for task in self.tasks for name in task.score_names}
        full = [one for one, (_, name) in scores.items() if name == measure]
        task, name = scores[require_measure(self.name, full[0] if len(full) == 1 else measure, list(scores))]
        return {one: {run.seed: run.scores.get(name) for run in result.runs} for one, result in task.results.items()}

    @property
    def candidates(self) -> list[str]:
        """Language model under test, then the baselines."""
        return [self.candidate, *self.baselines]

    @property
    def runs(self) -> list[RunRow]:
        """All runs, including those that failed."""
        results = [result for task in self.tasks for result in (*task.results.values(), task.baseline_result) if result]
        return [run for result in results for run in result.runs]

    @property
    def has_errors(self) -> bool:
        """Whether any task has an error."""
        return any(task.has_error for task in self.tasks)

    # -- as a table

    @property
    def error_head(self) -> list[str]:
        """Headings of the table of errors."""
        head = ["task", "level", "runs", *self.candidates, "its baseline", "halves", "constant", "people"]
        return [*head, "study: agent", "baseline", "unit"]

    def error_row(self, task: TaskReport) -> list[str]:
        """Return the row of a task: its errors, and the errors for comparison."""
        first = task.results[self.candidate]
        n = sum(run.error is None for run in first.runs)
        errors = [with_interval(task.results[one].error) for one in self.candidates]
        references = [first.split_error, task.constant_error, task.people_error] if task.has_error else [None] * 3
        baseline = with_interval(task.baseline_result and task.baseline_result.error)
        published = task.published_error if task.has_error else None
        study = [None, None] if published is None else [published.agent, published.baseline]
        mark = OTHER_TARGET if published is not None and published.other_target else ""
        texts = [f"{figure_text(error)}{mark}" for error in study]
        row = [task.task, str(task.level), str(n), *errors, baseline, *map(figure_text, references)]
        return [*row, *texts, task.unit]

    @property
    def faults(self) -> list[str]:
        """Runs that produced nothing, and the failed decisions of the others, one per line."""
        pairs = [(task, name) for name in self.candidates for task in self.tasks]
        failed = [
            f"FAILED {task.task}, {name}, seed {run.seed}: {run.error}"
            for task, name in pairs
            for run in task.results[name].runs
            if run.error is not None
        ]
        return failed + [line for task, name in pairs for line in gaps(f"{task.task}, {name}", task.results[name].runs)]


def _task_section(task: TaskReport) -> Section:
    scores = Table(task.task, as_rows(task.score_head, task.score_rows()), is_folded=True, max_lines=MAX_SCORES)
    runs = [{"by": name, **run.cells} for name, result in task.results.items() for run in result.runs]
    sentences = [f"Level {task.level}. {task.source}", *filter(None, [task.note])]
    return Section(task.task, sentences, [scores_chart(task)], [scores, Table(RUNS, runs, is_folded=True, max_lines=0)])


def as_rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[dict[str, Value]]:
    """Return rows of cells as rows of a table of findings."""
    return [dict(zip(head, row, strict=True)) for row in rows]


def gaps(name: str, runs: Iterable[RunRow]) -> list[str]:
    """Describe how many decisions failed in runs with scores, and what else did not come as asked.

    Args:
        name: Name of the runs, at the beginning of each line.
        runs: The runs; those that produced nothing do not count.

    Returns:
        Up to two lines; empty if everything came.
    """
    scored = [run for run in runs if run.error is None]
    quality = total_quality(run.quality for run in scored)
    others = quality_texts({kind: rate for kind, rate in quality.items() if kind != "failed"})
    beside = [" ".join(filter(None, (f"BESIDE {name}: {'; '.join(others)}.", quality_warning(quality))))]
    n_failed, n = sum(run.failures for run in scored), sum(run.decisions for run in scored)
    if not n_failed:
        return beside if others else []
    return [
        f"IN PART {name}: {n_failed} of {counted(n, 'decision')} failed, and the scores are of what came; the same "
        "command with --retry-failures asks again",
        *(beside if others else []),
    ]


def report_of(
    tasks: Sequence[Task],
    candidates: Sequence[Candidate],
    runs: Sequence[TaskRun],
    options: Mapping[str, Any],
    seconds: float = 0.0,
) -> BenchmarkReport:
    """Compute the results of a benchmark.

    Args:
        tasks: The tasks, in order.
        candidates: Language model under test, then the baselines.
        runs: All runs, including those that failed.
        options: Options of the command, without secrets.
        seconds: Duration in seconds.
    """
    by_task = {task.name: [run for run in runs if run.plan.task.name == task.name] for task in tasks}
    return BenchmarkReport(
        candidate=candidates[0].name,
        baselines=[one.name for one in candidates[1:]],
        tasks=[_task_report(task, candidates, by_task[task.name]) for task in tasks],
        **totals(runs, options, seconds),
    )


def _task_report(task: Task, candidates: Sequence[Candidate], runs: Sequence[TaskRun]) -> TaskReport:
    is_compared = any(run.is_comparable for run in runs)
    results = {one.name: result_of(task, [run for run in runs if run.plan.candidate == one]) for one in candidates}
    baseline = None if task.baseline is None else _baseline_result(task, candidates, runs, results)
    first = results[candidates[0].name]
    names = None if first.error is None else first.scores
    return TaskReport(
        **setting_of(task),
        level=task.level,
        target=task.target,
        people=task.people,
        is_compared=is_compared,
        published_error=task.published,
        unit=task.unit,
        note=_note_on(task, is_compared=is_compared),
        baseline="" if task.baseline is None else task.baseline.name,
        baseline_result=baseline,
        constant_error=constant_error(task, names),
        people_error=people_error(task, names),
        results=results,
    )


def result_of(task: Task, runs: Sequence[TaskRun]) -> TaskResult:
    """Compute the results of one candidate or design in a task."""
    scored = [run for run in runs if run.error is None]
    is_comparable = bool(scored) and all(run.is_comparable for run in scored)
    summary = summarise(task, [run.scores for run in scored], is_comparable=is_comparable)
    return TaskResult(summary.error, summary.split_error, summary.scores, [RunRow.of(run) for run in runs])


def _baseline_result(
    task: Task, candidates: Sequence[Candidate], runs: Sequence[TaskRun], results: Mapping[str, TaskResult]
) -> TaskResult | None:
    """Return the results of the study's kind of baseline, for the first candidate."""
    if task.baseline is None:
        return None
    if task.baseline.without:
        others = {one.name for one in candidates}
        own = [run for run in runs if run.plan.candidate.name not in others]
        return result_of(task, own) if own else None
    first = candidates[0]
    if task.baseline.shuffled is not None:
        own = [replace(run, scores=run.shuffled) for run in runs if run.plan.candidate == first and run.shuffled]
        return replace(result_of(task, own), runs=[]) if own else None
    by_chance = results.get("random")
    return None if by_chance is None else replace(by_chance, runs=[])


def _note_on(task: Task, *, is_compared: bool) -> str:
    """Describe what a task is compared with, or why not."""
    parts = [task.target_note]
    if task.target is not None:
        parts.insert(0, f"target: {task.target.respondent} ({task.target.source})")
        if not is_compared:
            parts.append("these runs cannot be compared with it, as their items or settings are not the published ones")
    if task.published is not None:
        parts.append(f"{task.published.source}: {task.published.setting}")
        if task.published.other_target:
            parts.append(f"its target, which --target FILE can replace: {task.published.other_target}")
        if not is_compared:
            errors = f"{figure_text(task.published.agent)}, baseline {figure_text(task.published.baseline)}"
            parts.append(f"the study's own error ({errors}) has nothing here that it could be compared with")
    return "; ".join(filter(None, parts))


def usage_of(runs: Iterable[TaskRun]) -> Usage:
    """Return the total usage of several runs."""
    return sum((run.usage for run in runs), Usage())


def totals(runs: Sequence[TaskRun], options: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the fields of `Results` for some runs."""
    return {
        "options": dict(options),
        "usage": usage_of(runs),
        "paid": sum((run.paid for run in runs), Usage()),
        "failed_runs": sum(run.error is not None for run in runs),
        "seconds": round(seconds, 3),
        "versions": versions(),
    }


def setting_of(task: Task) -> dict[str, Any]:
    """Return the fields shared by a `TaskReport` and a `Column` of a cross."""
    setting = {name: json_value(value) for name, value in task.setting.items()}
    return {"task": task.name, "source": task.source, "setting": setting, "max_steps": task.max_steps}


def _option_text(value: Any) -> str:
    return "yes" if value is True else ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def json_value(value: Any) -> Any:
    """Return a value in JSON types. Values of other types become text."""
    return value if isinstance(value, bool | int | float | str | list | dict | None) else str(value)
