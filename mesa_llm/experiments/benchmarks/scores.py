"""Scores over runs: means with intervals, the error against published values, and reference errors."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mesa_llm.experiments.benchmarks.task import Task, Values
from mesa_llm.statistics import Estimate, FloatArray, jackknife_estimate, mean_estimate


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
    """Average scores over runs, with intervals over the runs.

    The interval of the error is a jackknife's. It is too narrow where the error is no larger than `split_error`: an
    error of nearly 0 cannot be told from the noise of the runs.

    Args:
        task: The task.
        runs: Scores of each run.
        is_comparable: Whether the runs may be compared with the task's target.
    """
    names = list(dict.fromkeys(name for run in runs for name in run))
    table = np.array([[run.get(name, math.nan) for name in names] for run in runs], dtype=np.float64)
    table = table.reshape(len(runs), len(names))
    estimates = {name: mean_estimate(column.tolist()) for name, column in zip(names, table.T, strict=True)}
    scores = {name: one for name, one in estimates.items() if one is not None}
    if task.target is None or not is_comparable or not scores:
        return TaskScores(scores, None, None)
    target = task.target.values
    error = jackknife_estimate(table, lambda some: task.error(_named(names, _means(some)), target))
    if error.low is not None:
        error = replace(error, low=max(error.low, 0.0))
    split_error = None
    if len(runs) > 1:
        halves = [_named(names, _means(table[first::2])) for first in (0, 1)]
        target_half = {name: value for name, value in halves[1].items() if name in target}
        split_error = _finite(task.error(halves[0], target_half))
    return TaskScores(scores, error if math.isfinite(error.value) else None, split_error)


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


def known_scores(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Return the scores of a run that are finite numbers."""
    return {name: float(value) for name, value in scores.items() if value is not None and math.isfinite(value)}
