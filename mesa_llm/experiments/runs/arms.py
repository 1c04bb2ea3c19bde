"""Study arms that share their seeds, their measures over time, and figures with confidence intervals."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mesa_llm.engine.access import Access
from mesa_llm.errors import AllDecisionsFailed, ConfigError
from mesa_llm.experiments.findings import Table, estimate_cells, require_measure
from mesa_llm.experiments.runs.runner import Job, Stop, run_jobs
from mesa_llm.experiments.runs.study import StudyFindings, StudySetup
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import Quality, total_quality
from mesa_llm.records import Usage
from mesa_llm.statistics import Estimate, mean_intervals
from mesa_llm.text import none_succeeded

if TYPE_CHECKING:
    from mesa_llm.charts import Drawn

type FloatArray = npt.NDArray[np.float64]

type Results = Mapping[str, Any]
"""Results of a run after its last step, by name."""


@dataclass(frozen=True)
class Band:
    """A measure over the steps: mean over runs, with a 95 % interval."""

    mean: FloatArray
    """Mean by step, from step 0; NaN where no run has a value."""

    low: FloatArray
    """Lower end; NaN where a run has no value."""

    high: FloatArray
    """Upper end."""


type Bands = Mapping[str, Mapping[str, Band]]
"""Arm → measure → its values over the steps."""

type Draw = Callable[[str, Bands, int], Drawn]
"""Draws the figure from the name of a study, the bands of its arms, and the number of seeds."""


@dataclass(frozen=True)
class ArmFindings(StudyFindings):
    """Results of a study whose arms run with the same seeds."""

    bands: Bands = field(default_factory=dict[str, Mapping[str, Band]])
    """Arm → measure → its values over the steps."""

    outcomes: Mapping[str, Estimate] = field(default_factory=dict[str, Estimate])
    """Name of a figure → mean over seeds, with a 95 % interval."""

    results: Mapping[str, Mapping[int, Results]] = field(default_factory=dict[str, Mapping[int, Results]])
    """Arm → seed → results of the run; empty where a study keeps none."""

    def arms(self, measure: str) -> Mapping[str, Mapping[int, float | None]]:
        """Return a result of the runs by arm and seed.

        Args:
            measure: Name of the result, a number.

        Raises:
            ConfigError: If there is no such result.
        """
        every = [results for by_seed in self.results.values() for results in by_seed.values()]
        known = [name for results in every for name, value in results.items() if isinstance(value, int | float)]
        require_measure(self.name, measure, list(dict.fromkeys(known)))
        return {
            arm: {seed: results.get(measure) for seed, results in by_seed.items()}
            for arm, by_seed in self.results.items()
        }


@dataclass(frozen=True)
class Arms:
    """A model that runs in several arms, each with the same seeds."""

    name: str
    """Name of the study, in one word."""

    question: str
    """The research question."""

    model: type[LLMModel]
    """Class of the model."""

    arms: Mapping[str, Mapping[str, Any]]
    """Name of an arm → its parameters and options, which override those of the setup."""

    steps: int
    """Number of steps of a run."""

    measures: tuple[str, ...]
    """Measures of the model to follow over the steps."""

    outcomes: Callable[[Mapping[str, Results]], Mapping[str, float]]
    """Computes the figures of one seed from the results of each arm."""

    draw: Draw | None = None
    """Draws the figure; None for no figure."""

    setting: Mapping[str, Any] | None = None
    """Parameters of all arms."""

    defaults: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Computes parameters of all arms from those of the setup, which override them; None for the model's own."""

    def run(self, setup: StudySetup) -> ArmFindings:
        """Run each arm with each seed.

        Args:
            setup: Settings of the runs.

        Raises:
            ConfigError: If the study fixes one of the parameters.
            AllDecisionsFailed: If every decision of a run failed.
        """
        start_s = time.perf_counter()
        own = set(self.setting or ()) | set.intersection(*map(set, self.arms.values())) - {"llm"}
        if fixed := own & set(setup.parameters):
            raise ConfigError(f"{', '.join(sorted(fixed))} cannot be set: the study {self.name} sets it")
        n_steps = self.steps if setup.steps is None else setup.steps
        usual = {} if self.defaults is None else self.defaults(setup.parameters)
        common = {**(self.setting or {}), **usual, "llm": setup.llm, **setup.options, **setup.parameters}
        jobs = [
            ArmJob(self.model, self.name, arm, seed, {**common, **changes}, n_steps, self.measures, setup.folder)
            for seed in setup.seeds
            for arm, changes in self.arms.items()
        ]
        runs = run_arms(jobs, setup)
        by_seed = [{arm: runs[arm, seed].results for arm in self.arms} for seed in setup.seeds]
        courses = {arm: np.array([runs[arm, seed].course for seed in setup.seeds]) for arm in self.arms}
        bands = {arm: bands_of(course, self.measures) for arm, course in courses.items()}
        outcomes = estimates([self.outcomes(results) for results in by_seed])
        cost = cost_of(list(runs.values()), time.perf_counter() - start_s)
        found = arm_findings(self.name, self.question, setup, n_steps, cost, bands, outcomes, self.draw)
        results = {arm: {seed: runs[arm, seed].results for seed in setup.seeds} for arm in self.arms}
        return replace(found, results=results)


def arm_findings(
    name: str,
    question: str,
    setup: StudySetup,
    steps: int,
    cost: Mapping[str, Any],
    bands: Bands,
    outcomes: Mapping[str, Estimate],
    draw: Draw | None = None,
) -> ArmFindings:
    """Assemble the results of the arms.

    Args:
        name: Name of the study.
        question: The research question.
        setup: Settings of the runs.
        steps: Number of steps of a run.
        cost: Cost of the runs, from `cost_of`.
        bands: Arm → measure → its values over the steps.
        outcomes: Name of a figure → mean over seeds.
        draw: Draws the figure; None for no figure.
    """
    rows = [{"figure": figure, **estimate_cells(one), "runs": float(one.n)} for figure, one in outcomes.items()]
    setting = {"seeds": list(setup.seeds), "language model": setup.llm_text, "steps": steps, **setup.parameters}
    tables = [Table("Figures", rows, "Means over seeds, with 95 % intervals.")]
    drawn = None if draw is None else partial(draw, name, bands, len(setup.seeds))
    return ArmFindings(name, question, setting, cost, tables, drawn, bands=bands, outcomes=outcomes)


# -- runs


@dataclass(frozen=True)
class ArmRun:
    """A run of an arm, after its last step."""

    results: Results
    """Results of the model."""

    course: FloatArray
    """Measures over the steps, shape `(measures, steps + 1)`."""

    decisions: int
    """Number of decisions."""

    usage: Usage
    """Usage of the run in this session."""

    quality: Quality = MappingProxyType({})
    """What did not come as asked."""


@dataclass(frozen=True)
class ArmJob(Job[ArmRun]):
    """A run of an arm with one seed, which any worker can execute."""

    model: type[LLMModel]
    """Class of the model."""

    study: str
    """Name of the study."""

    arm: str
    """Name of the arm."""

    seed: int
    """The seed."""

    arguments: Mapping[str, Any]
    """Parameters and options of the model."""

    steps: int
    """Number of steps."""

    measures: tuple[str, ...]
    """Measures to follow over the steps."""

    folder: Path | None
    """Folder of the run logs; None to record nothing."""

    @property
    def log(self) -> Path | None:
        """Path of the run log; None to record nothing."""
        name = "-".join([self.study, *self.arm.replace(",", "").split(), str(self.seed)])
        return None if self.folder is None else self.folder / f"{name}.sqlite"

    def run(self, access: Access, stop: Stop) -> ArmRun:
        """Make the run.

        Args:
            access: Access to language models.
            stop: Runs the model, and may stop it.

        Raises:
            AllDecisionsFailed: If every decision failed.
        """
        log = {} if self.log is None else {"log": self.log}
        with closing(self.model(**self.arguments, **log, rng=self.seed, access=access)) as model:
            stop.run(model, self.steps)
            decisions, usage = model.engine.decisions, model.usage
            if model.engine.all_failed:
                first = next(iter(model.runlog.failures()), "unknown")
                raise AllDecisionsFailed(f"{none_succeeded(model.engine.n_asked)}. The first failed: {first:.300}")
            return ArmRun(self.results_of(model), self.course_of(model), decisions, usage, model.data_quality())

    def results_of(self, model: LLMModel) -> Results:
        """Return the results of a run. Override to return intermediate results.

        Args:
            model: A model that has run.
        """
        return model.results()

    def course_of(self, model: LLMModel) -> FloatArray:
        """Return the measures of a run over the steps, shape `(measures, steps + 1)`.

        Args:
            model: A model that has run.
        """
        return course(model, self.measures, self.steps)

    @property
    def label(self) -> str:
        """Study, arm and seed."""
        return f"{self.study}, {self.arm}, seed {self.seed}"


def run_arms(jobs: Sequence[ArmJob], setup: StudySetup) -> dict[tuple[str, int], ArmRun]:
    """Make the runs of a study.

    Args:
        jobs: The runs.
        setup: Settings of the runs.

    Returns:
        (Arm, seed) → run.
    """
    runs = {(job.arm, job.seed): run for job, run in run_jobs(jobs, setup.limits, workers=setup.workers)}
    return {(job.arm, job.seed): runs[job.arm, job.seed] for job in jobs}


def cost_of(runs: Sequence[ArmRun], seconds: float) -> dict[str, Any]:
    """Return the totals of the runs: number of runs, decisions, calls, tokens and US dollars.

    Args:
        runs: The runs.
        seconds: Their duration in seconds.
    """
    usage = sum((run.usage for run in runs), Usage())
    counts = {"decisions": sum(run.decisions for run in runs), "failures": usage.failures, "calls": usage.calls}
    tokens = {"tokens": usage.tokens, "dollars": usage.dollars, "quality": total_quality(run.quality for run in runs)}
    return {"runs": len(runs), "done": len(runs)} | counts | tokens | {"seconds": round(seconds, 1)}


# -- figures


def course(model: LLMModel, measures: Sequence[str], steps: int) -> FloatArray:
    """Return measures of a run over the steps, shape `(measures, steps + 1)`; NaN for missing values.

    Args:
        model: A model that has run.
        measures: Names of measures from its data collector.
        steps: Number of steps.
    """
    table = np.full((len(measures), steps + 1), np.nan)
    for row, name in enumerate(measures):
        values = model.datacollector.model_vars[name][: steps + 1]
        table[row, : len(values)] = [np.nan if value is None else value for value in values]
    return table


def bands_of(runs: FloatArray, measures: Sequence[str]) -> dict[str, Band]:
    """Average measures over runs, step by step.

    Args:
        runs: Courses, shape `(runs, measures, steps + 1)`.
        measures: Names of the measures.
    """
    return {name: Band(*mean_intervals(runs[:, row])) for row, name in enumerate(measures)}


def line_of(values: FloatArray) -> Band:
    """Return a single curve as a band of zero width.

    Args:
        values: Values by step or minute.
    """
    return Band(values, values, values)


def estimates(figures: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    """Average the figures of several seeds, with intervals.

    Args:
        figures: Figures of each seed, by name.
    """
    names = list(dict.fromkeys(name for one in figures for name in one))
    table = np.array([[one.get(name, np.nan) for name in names] for one in figures], dtype=np.float64)
    columns = zip(names, *mean_intervals(table.reshape(len(figures), len(names))), strict=True)
    ends = {name: (float(mean), _number(low), _number(high)) for name, mean, low, high in columns}
    return {name: Estimate(*values, len(figures)) for name, values in ends.items()}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
