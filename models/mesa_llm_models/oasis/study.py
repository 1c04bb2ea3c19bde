"""Studies: arms of a model that run with the same seeds, and figures with intervals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mesa_llm import ConfigError
from mesa_llm.benchmark.scores import bootstrap
from mesa_llm.errors import AllDecisionsFailed
from mesa_llm.records import Usage
from mesa_llm.statistics import Estimate, with_interval
from mesa_llm.text import counted, none_succeeded
from mesa_llm_models.social.model import SocialModel

FloatArray = npt.NDArray[np.float64]

Results = Mapping[str, float]
"""Measures of a run after its last step, by name."""


@dataclass(frozen=True)
class Band:
    """A measure over the steps: mean over runs, with a 95 % bootstrap interval."""

    mean: FloatArray
    """Mean by step, from step 0; NaN where no run has a value."""

    low: FloatArray
    """Lower end; NaN where a run has no value."""

    high: FloatArray
    """Upper end."""


@dataclass(frozen=True)
class Findings:
    """Results of a study."""

    study: str
    """Name of the study."""

    seeds: tuple[int, ...]
    """Seeds; each ran once in each arm."""

    steps: int
    """Number of steps of a run."""

    bands: Mapping[str, Mapping[str, Band]]
    """Arm → measure → its course over the steps."""

    outcomes: Mapping[str, Estimate]
    """Name of a figure → mean over seeds, with a 95 % bootstrap interval."""

    seconds: float = 0.0
    """Duration in seconds."""

    usage: Usage = field(default_factory=Usage)
    """Usage of all runs together; failures are failed decisions and answers."""

    def summary(self) -> dict[str, Any]:
        """Return the figures in types that JSON can represent."""
        outcomes = {
            name: {
                key: None if figure is None or math.isnan(figure) else figure
                for key, figure in asdict(estimate).items()
            }
            for name, estimate in self.outcomes.items()
        }
        own = {"study": self.study, "seeds": len(self.seeds), "steps": self.steps, "seconds": round(self.seconds, 1)}
        used = {name: getattr(self.usage, name) for name in ("calls", "tokens", "dollars", "failures")}
        return own | used | {"outcomes": outcomes}

    def text(self) -> str:
        """Return the figures as lines."""
        width = max(map(len, self.outcomes), default=0)
        lines = [f"{name:<{width}}  {with_interval(one)}" for name, one in self.outcomes.items()]
        return "\n".join([f"{self.study}: {counted(len(self.seeds), 'seed')}, {counted(self.steps, 'step')}", *lines])


@dataclass(frozen=True)
class Study:
    """A model that runs in several arms, each with the same seeds."""

    name: str
    """Name, in one word."""

    model: type[SocialModel]
    """Class of the model."""

    arms: Mapping[str, Mapping[str, Any]]
    """Name of an arm → its parameters and options, which override those of the command."""

    steps: int
    """Number of steps of a run."""

    measures: tuple[str, ...]
    """Measures of the model to follow over the steps."""

    outcomes: Callable[[Mapping[str, Results]], Mapping[str, float]]
    """Function from the results of one seed, by arm, to its figures."""

    setting: Mapping[str, Any] | None = None
    """Parameters of all arms."""

    def run(
        self, seeds: Sequence[int], steps: int | None = None, log: Path | None = None, **parameters: Any
    ) -> Findings:
        """Run each arm with each seed.

        Args:
            seeds: The seeds.
            steps: Number of steps of a run; None: the study's own.
            log: Folder of one run log a run, which are gone on with; None: nothing is recorded.
            **parameters: Parameters and options of the model, for all arms.
        """
        start, usage = time.perf_counter(), Usage()
        own = set(self.setting or ()) | set.intersection(*map(set, self.arms.values())) - {"llm"}
        if fixed := own & set(parameters):
            raise ConfigError(f"{', '.join(sorted(fixed))} cannot be set: the study of {self.name} sets it itself")
        n_steps = self.steps if steps is None else steps
        courses: dict[str, list[FloatArray]] = {arm: [] for arm in self.arms}
        figures: list[Mapping[str, float]] = []
        for seed in seeds:
            results: dict[str, Results] = {}
            for arm, changes in self.arms.items():
                options = {**(self.setting or {}), **parameters, **changes, "rng": seed}
                options |= log_option(log, self.name, arm, seed)
                with closing(self.model(**options)) as model:
                    usage += run_model(model, n_steps)
                    results[arm] = model.results()
                    courses[arm].append(course(model, self.measures, n_steps))
            figures.append(self.outcomes(results))
        bands = {arm: bands_of(np.array(runs), self.measures) for arm, runs in courses.items()}
        return Findings(self.name, tuple(seeds), n_steps, bands, estimates(figures), time.perf_counter() - start, usage)


def run_model(model: SocialModel, steps: int) -> Usage:
    """Run a model, and return its usage.

    Args:
        model: The model.
        steps: Number of steps.

    Raises:
        AllDecisionsFailed: If every decision failed.
    """
    model.run(steps)
    decisions, usage = model.engine.decisions, model.usage
    if decisions and usage.failures >= decisions:
        first = next(iter(model.runlog.failures()), "unknown")
        raise AllDecisionsFailed(f"{none_succeeded(decisions)}. The first failed: {first:.300}")
    return usage


def course(model: SocialModel, measures: Sequence[str], steps: int) -> FloatArray:
    """Return measures of a run over the steps, shape `(measures, steps + 1)`; NaN for missing values.

    Args:
        model: A model that has run.
        measures: Names of measures that its data collector collects.
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
    return {name: Band(*bootstrap(runs[:, row])) for row, name in enumerate(measures)}


def line_of(values: FloatArray) -> Band:
    """Return a single curve as a band without width.

    Args:
        values: Values by step or minute.
    """
    return Band(values, values, values)


def estimates(figures: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    """Average the figures of several seeds, with bootstrap intervals.

    Args:
        figures: Figures of each seed, by name.
    """
    names = list(dict.fromkeys(name for one in figures for name in one))
    table = np.array([[one.get(name, np.nan) for name in names] for one in figures], dtype=np.float64)
    columns = zip(names, *bootstrap(table.reshape(len(figures), len(names))), strict=True)
    ends = {name: (float(mean), _number(low), _number(high)) for name, mean, low, high in columns}
    return {name: Estimate(*values, len(figures)) for name, values in ends.items()}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def log_option(log: Path | None, study: str, arm: str, seed: int) -> dict[str, Path]:
    """Return the option that names the run log of a run.

    Args:
        log: Folder of the logs; None: no recording.
        study: Name of the study.
        arm: Name of the arm.
        seed: The seed.
    """
    return {} if log is None else {"log": log / f"{study}-{'-'.join(arm.replace(',', '').split())}-{seed}.sqlite"}
