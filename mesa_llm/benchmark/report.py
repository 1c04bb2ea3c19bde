"""The report of a benchmark: as values, as a table, and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from mesa_llm.benchmark.runs import Candidate, Run
from mesa_llm.benchmark.scores import TaskScores, constant_error, people_error, summarise
from mesa_llm.benchmark.task import Task, Values
from mesa_llm.records import Usage
from mesa_llm.runlog.versions import versions
from mesa_llm.statistics import Estimate
from mesa_llm.text import NOT_KNOWN, figure_text, table

MAX_SCORES = 12
"""Maximum number of scores of a task that the table shows; the page and JSON hold all."""


@dataclass(frozen=True)
class Report:
    """Results of a benchmark."""

    tasks: Sequence[Task]
    """The tasks, in order."""

    candidates: Sequence[Candidate]
    """Language model under test, then the baselines."""

    runs: Sequence[Run]
    """All runs, including those that failed."""

    options: Mapping[str, Any]
    """Options of the command, without secrets."""

    seconds: float = 0.0
    """Duration in seconds."""

    def runs_of(self, task: Task, candidate: Candidate) -> list[Run]:
        """Return the runs of a task by one candidate, in the order of their seeds."""
        return [run for run in self.runs if run.plan.task.name == task.name and run.plan.candidate == candidate]

    @cached_property
    def results(self) -> Mapping[tuple[str, str], TaskScores]:
        """Name of a task and of a candidate → scores over its runs."""
        found: dict[tuple[str, str], TaskScores] = {}
        for task in self.tasks:
            for candidate in self.candidates:
                over = [run for run in self.runs_of(task, candidate) if run.error is None]
                is_comparable = bool(over) and all(run.is_comparable for run in over)
                scores = [run.scores for run in over]
                found[task.name, candidate.name] = summarise(task, scores, is_comparable=is_comparable)
        return found

    def result(self, task: Task, candidate: Candidate) -> TaskScores:
        """Return the scores of one candidate in a task, over its runs."""
        return self.results[task.name, candidate.name]

    @property
    def usage(self) -> Usage:
        """Usage of all runs together."""
        return usage_of(self.runs)

    def is_compared(self, task: Task) -> bool:
        """Check whether a run of a task may be compared with published values."""
        return any(run.is_comparable for run in self.runs if run.plan.task.name == task.name)

    def published(self, task: Task) -> tuple[Values, Values]:
        """Return the target and people's scores that runs are compared with; empty if they cannot be compared."""
        if not self.is_compared(task):
            return {}, {}
        target, people = ({} if one is None else one.values for one in (task.target, task.people))
        return target, people

    def note_on(self, task: Task) -> str:
        """Describe what a task is compared with, and why it is not if it is not."""
        parts = [task.target_note]
        if task.target is not None:
            parts.insert(0, f"target: {task.target.respondent} ({task.target.source})")
            if not self.is_compared(task):
                parts.append("these runs cannot be compared with it, as their items are not the published ones")
        if task.published is not None:
            parts.append(f"{task.published.source}: {task.published.setting}")
        return "; ".join(filter(None, parts))

    # -- as values

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "options": dict(self.options),
            "candidate": self.candidates[0].name,
            "baselines": [one.name for one in self.candidates[1:]],
            "tasks": [self._task(task) for task in self.tasks],
            **totals_json(self.runs, self.seconds),
        }

    def _task(self, task: Task) -> dict[str, Any]:
        return {
            **task_json(task),
            "level": task.level,
            "target": None if task.target is None else asdict(task.target),
            "people": None if task.people is None else asdict(task.people),
            "published_error": None if task.published is None else asdict(task.published),
            "unit": task.unit,
            "note": self.note_on(task),
            "constant_error": constant_error(task),
            "people_error": people_error(task),
            "results": {candidate.name: self._result(task, candidate) for candidate in self.candidates},
        }

    def _result(self, task: Task, candidate: Candidate) -> dict[str, Any]:
        result = self.result(task, candidate)
        return {
            "error": None if result.error is None else asdict(result.error),
            "split_error": result.split_error,
            "scores": {name: asdict(estimate) for name, estimate in result.scores.items()},
            "runs": [run_json(run) for run in self.runs_of(task, candidate)],
        }

    # -- as a table

    @property
    def error_head(self) -> list[str]:
        """Heads of the table of errors."""
        head = ["task", "level", "runs", *(one.name for one in self.candidates), "halves", "constant", "people"]
        return [*head, "study: agent", "baseline", "unit"]

    def error_rows(self) -> Iterator[list[str]]:
        """Return a row for each task: its errors, and the errors to judge them by."""
        for task in self.tasks:
            first = self.result(task, self.candidates[0])
            n = sum(run.error is None for run in self.runs_of(task, self.candidates[0]))
            errors = [with_interval(self.result(task, one).error) for one in self.candidates]
            is_compared = any(self.result(task, one).error is not None for one in self.candidates)
            beside = [first.split_error, constant_error(task), people_error(task)] if is_compared else [None] * 3
            published = task.published
            study = [None, None] if published is None else [published.agent, published.baseline]
            row = [task.name, str(task.level), str(n), *errors, *map(figure_text, beside), *map(figure_text, study)]
            yield [*row, task.unit]

    def score_rows(self, task: Task) -> list[list[str]]:
        """Return a row for each score of a task: the candidates' means with intervals, the target, and people's."""
        results = [self.result(task, one) for one in self.candidates]
        names = list(dict.fromkeys(name for result in results for name in result.scores))
        published = self.published(task)
        return [
            [
                name,
                *(with_interval(result.scores.get(name)) for result in results),
                *(figure_text(values.get(name)) for values in published),
            ]
            for name in names
        ]

    @property
    def score_head(self) -> list[str]:
        """Heads of a table of scores."""
        return ["score", *(one.name for one in self.candidates), "target", "people"]

    def text(self) -> str:
        """Write the report as tables for a terminal."""
        blocks = ["\n".join(table(self.error_head, list(self.error_rows())))]
        for task in self.tasks:
            rows = self.score_rows(task)
            lines = [f"{task.name}, level {task.level}. {task.source}", *filter(None, [self.note_on(task)])]
            lines += table(self.score_head, rows[:MAX_SCORES]) if rows else ["no scores"]
            if len(rows) > MAX_SCORES:
                lines.append(f"and {len(rows) - MAX_SCORES} more scores: see the page, or --json")
            blocks.append("\n".join(lines))
        return "\n\n".join([*blocks, *self.failures()])

    def failures(self) -> list[str]:
        """Describe each run that produced nothing in a line."""
        return [
            f"FAILED {run.plan.task.name}, {run.plan.candidate.name}, seed {run.plan.seed}: {run.error}"
            for run in self.runs
            if run.error is not None
        ]


def with_interval(estimate: Estimate | None) -> str:
    """Write an estimate with its interval, if it has one."""
    if estimate is None:
        return NOT_KNOWN
    if estimate.low is None or estimate.high is None:
        return figure_text(estimate.value)
    return f"{figure_text(estimate.value)} [{figure_text(estimate.low)}, {figure_text(estimate.high)}]"


def usage_of(runs: Iterable[Run]) -> Usage:
    """Return the usage of runs together."""
    return sum((run.usage for run in runs), Usage())


def totals_json(runs: Sequence[Run], seconds: float) -> dict[str, Any]:
    """Return what runs used and took together as JSON values."""
    return {
        "usage": usage_of(runs)._asdict(),
        "failed_runs": sum(run.error is not None for run in runs),
        "seconds": round(seconds, 3),
        "versions": versions(),
    }


def task_json(task: Task) -> dict[str, Any]:
    """Return a task with its setting as JSON values."""
    return {
        "task": task.name,
        "source": task.source,
        "setting": {name: json_value(value) for name, value in task.setting.items()},
        "max_steps": task.max_steps,
    }


def run_json(run: Run) -> dict[str, Any]:
    """Return a run as JSON values."""
    return {
        "seed": run.plan.seed,
        "scores": dict(run.scores),
        "steps": run.steps,
        "decisions": run.decisions,
        **run.usage._asdict(),
        "seconds": round(run.seconds, 3),
        "digest": run.digest,
        "log": None if run.log is None else str(run.log),
        "error": None if run.error is None else str(run.error),
    }


def json_value(value: Any) -> Any:
    """Return a value as a JSON value; what is none, as text."""
    return value if isinstance(value, bool | int | float | str | list | dict | None) else str(value)
