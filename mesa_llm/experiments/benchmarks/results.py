"""Results of a benchmark's runs and tasks, as stored in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesa_llm.experiments.benchmarks.runs import TaskRun
from mesa_llm.experiments.benchmarks.task import Level, PublishedError, Reference, Values
from mesa_llm.experiments.findings import Value
from mesa_llm.records import Usage
from mesa_llm.statistics import Estimate, with_interval
from mesa_llm.text import figure_text


@dataclass(frozen=True, kw_only=True)
class RunRow(Usage):
    """A run in a report, with its usage and results."""

    seed: int
    """Seed of the run."""

    scores: Values
    """Scores by name; empty if the run did not finish."""

    measure: float | None = None
    """Measure by which designs are compared; None where designs are not compared, or the run lacks it."""

    steps: int
    """Number of steps."""

    decisions: int
    """Number of decisions."""

    quality: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Kind of what did not come as asked → how often, and of how many (see `mesa_llm.model.quality`)."""

    seconds: float
    """Duration in seconds, scoring included."""

    digest: str
    """Digest of the run, which a replay must reproduce."""

    log: str | None
    """Path of the run log; None for memory."""

    error: str | None
    """Reason why it produced nothing; None if it has scores."""

    @property
    def cells(self) -> dict[str, Value]:
        """The run as cells of a table."""
        counts = {"steps": self.steps, "decisions": self.decisions, "failed": self.failures, "tokens": self.tokens}
        costs = {"$": f"{self.dollars:.4f}", "s": f"{self.seconds:.1f}", "run log": self.log or ""}
        return {**{name: str(count) for name, count in ({"seed": self.seed} | counts).items()}, **costs}

    @classmethod
    def of(cls, run: TaskRun, measure: float | None = None) -> RunRow:
        """Return the row of a run."""
        return cls(
            **{name: getattr(run.usage, name) for name in Usage.__dataclass_fields__},
            seed=run.plan.seed,
            scores=dict(run.scores),
            measure=measure,
            steps=run.steps,
            decisions=run.decisions,
            quality={name: (rate.n, rate.of) for name, rate in run.quality.items()},
            seconds=round(run.seconds, 3),
            digest=run.digest,
            log=None if run.log is None else str(run.log),
            error=None if run.error is None else str(run.error),
        )


@dataclass(frozen=True)
class TaskResult:
    """Results of one candidate in a task, over its runs."""

    error: Estimate | None
    """Error against the target; None without comparable values."""

    split_error: float | None
    """Error between two halves of the runs, a measure of sampling noise; None with fewer than two runs."""

    scores: Mapping[str, Estimate]
    """Name of a score → its mean over the runs that have it."""

    runs: Sequence[RunRow]
    """The runs, in the order of their seeds."""


@dataclass(frozen=True, kw_only=True)
class TaskReport:
    """A task: its published values, and the results of all candidates."""

    task: str
    """Name of the task."""

    level: Level
    """Complexity of the task."""

    source: str
    """Study that the task comes from."""

    setting: Mapping[str, Any]
    """Parameters of the runs."""

    max_steps: int | None
    """Maximum number of steps of a run; None if it ends by itself."""

    target: Reference | None
    """Published values to compare runs with; None if there are none."""

    people: Reference | None
    """Published scores of people; None if there are none."""

    is_compared: bool
    """Whether any of the runs may be compared with published values."""

    published_error: PublishedError | None
    """Error a study reports for its own runs."""

    unit: str
    """Unit of the error."""

    note: str
    """Description of the comparison, or the reason there is none."""

    baseline: str = ""
    """The study's baseline, in words; empty if it has none."""

    baseline_result: TaskResult | None = None
    """Our results of it: of random choice, of shuffled replies, or of the candidate without components; None if it was
    not run. Runs of random choice, and those whose replies were shuffled, are in `results`.
    """

    constant_error: float | None
    """Error of a respondent that always answers the target's mean, over the scores that the runs have."""

    people_error: float | None
    """Error of people's published scores, over the same scores."""

    results: Mapping[str, TaskResult]
    """Name of a candidate → results."""

    @property
    def published_by(self) -> str:
        """Publication of the reference error or values."""
        return self.published_error.source if self.published_error else self.target.source if self.target else ""

    @property
    def has_error(self) -> bool:
        """Whether any candidate has an error."""
        return any(result.error is not None for result in self.results.values())

    @property
    def published(self) -> tuple[Values, Values]:
        """The target and people's scores for comparison; empty if there is nothing to compare."""
        if not self.is_compared:
            return {}, {}
        target, people = ({} if one is None else one.values for one in (self.target, self.people))
        return target, people

    @property
    def score_names(self) -> list[str]:
        """Names of all scores of any candidate."""
        return list(dict.fromkeys(name for result in self.results.values() for name in result.scores))

    def score_rows(self) -> list[list[str]]:
        """Return a row for each score: the candidates' means with intervals, the target, and people's scores."""
        published = self.published
        return [
            [
                name,
                *(with_interval(result.scores.get(name)) for result in self.results.values()),
                *(figure_text(values.get(name)) for values in published),
            ]
            for name in self.score_names
        ]

    @property
    def score_head(self) -> list[str]:
        """Headings of a table of scores."""
        return ["score", *self.results, "target", "people"]
