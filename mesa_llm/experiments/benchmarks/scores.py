"""Scores over runs: means, bootstrap intervals, the error against published values, and reference errors."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mesa_llm.experiments.benchmarks.task import Task, Values
from mesa_llm.statistics import COVERAGE, N_RESAMPLES, SEED, Estimate, FloatArray


@dataclass(frozen=True)
class TaskScores:
    """Scores of a task over several runs."""

    scores: Mapping[str, Estimate]
    """Name of a score → its mean over the runs that have it."""

    error: Estimate | None
    """Error against the target; None without comparable values."""

    split_error: float | None
    """Error between two halves of the runs, a measure of sampling noise; None with fewer than two runs."""


def summarise(task: Task, runs: Sequence[Values], *, is_comparable: bool = True) -> TaskScores:
    """Average scores over runs, with bootstrap intervals over the runs.

    Intervals from few runs are too narrow: three runs have only ten different bootstrap samples.

    Args:
        task: The task.
        runs: Scores of each run.
        is_comparable: Whether the runs may be compared with the task's target.
    """
    names = list(dict.fromkeys(name for run in runs for name in run))
    table = np.array([[run.get(name, math.nan) for name in names] for run in runs], dtype=np.float64)
    table = table.reshape(len(runs), len(names))
    samples = _resampled(table)
    scores = {
        name: _estimate(column, means)
        for name, column, means in zip(names, table.T, samples.T, strict=True)
        if np.isfinite(column).any()
    }
    if task.target is None or not is_comparable or not scores:
        return TaskScores(scores, None, None)
    target = task.target.values

    def apart(means: FloatArray) -> float:
        return task.error(_named(names, means), target)

    error = Estimate(apart(_means(table)), *_interval(np.array([apart(sample) for sample in samples])), len(runs))
    split_error = None
    if len(runs) > 1:
        halves = [_named(names, _means(table[first::2])) for first in (0, 1)]
        target_half = {name: value for name, value in halves[1].items() if name in target}
        split_error = _finite(task.error(halves[0], target_half))
    return TaskScores(scores, error if math.isfinite(error.value) else None, split_error)


def bootstrap(table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Average figures over runs, with percentile bootstrap intervals over the runs.

    Args:
        table: One row per run, shape `(runs, figures)`; NaN where a run lacks a figure.

    Returns:
        Means, lower ends and upper ends, shape `(figures,)`; the ends are NaN with fewer than two runs.
    """
    samples = _resampled(table)
    ends = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    nothing = np.full(table.shape[1], math.nan)
    is_known = np.isfinite(samples).all(axis=0) if len(samples) else np.zeros(table.shape[1], dtype=np.bool_)
    low, high = nothing.copy(), nothing.copy()
    if is_known.any():
        low[is_known], high[is_known] = np.quantile(samples[:, is_known], ends, axis=0)
    return _means(table), low, high


def constant_error(task: Task, names: Collection[str] | None = None) -> float | None:
    """Compute the error of a respondent that always answers the target's mean.

    Args:
        task: The task.
        names: Scores of the runs, which with few items or steps are not all of the target's. None for all.

    Returns:
        The error over the target's scores that the runs have; None if there are none, or only one, whose mean is the
        score itself.
    """
    target = _target_of(task, names)
    if not target or (names is not None and len(target) == 1):
        return None
    mean = math.fsum(target.values()) / len(target)
    return _finite(task.error(dict.fromkeys(target, mean), target))


def people_error(task: Task, names: Collection[str] | None = None) -> float | None:
    """Compute the error of people's published scores, as `constant_error` does; None without such scores."""
    target = _target_of(task, names)
    return None if task.people is None or not target else _finite(task.error(task.people.values, target))


def _target_of(task: Task, names: Collection[str] | None) -> Values:
    target = {} if task.target is None else task.target.values
    return {name: value for name, value in target.items() if names is None or name in names}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _named(names: Sequence[str], means: FloatArray) -> dict[str, float]:
    return {name: float(mean) for name, mean in zip(names, means, strict=True) if math.isfinite(mean)}


def _means(table: FloatArray) -> FloatArray:
    """Average over the runs that have a score; NaN if none has. Shape of the table: `(…, runs, scores)`."""
    is_finite = np.isfinite(table)
    counts = is_finite.sum(axis=-2)
    sums = np.where(is_finite, table, 0.0).sum(axis=-2)
    return np.divide(sums, counts, out=np.full(sums.shape, math.nan), where=counts > 0)


def _resampled(table: FloatArray) -> FloatArray:
    """Return the means of bootstrap samples of the runs, shape `(samples, scores)`; empty with fewer than two runs."""
    n_runs = len(table)
    if n_runs < 2:
        return np.empty((0, table.shape[1]))
    draws = np.random.default_rng(SEED).integers(0, n_runs, (N_RESAMPLES, n_runs))
    return _means(table[draws])


def _interval(values: FloatArray) -> tuple[float | None, float | None]:
    values = values[np.isfinite(values)]
    if not len(values):
        return None, None
    low, high = np.quantile(values, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(low), float(high)


def _estimate(column: FloatArray, means: FloatArray) -> Estimate:
    values = column[np.isfinite(column)]
    return Estimate(float(values.mean()), *_interval(means), len(values))


def known_scores(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Return the scores of a run that are finite numbers."""
    return {name: float(value) for name, value in scores.items() if value is not None and math.isfinite(value)}
