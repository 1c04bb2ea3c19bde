"""Statistics of runs: paired comparisons, intervals, corrections for many tests, and slopes.

    compare(with_memory, without)        # paired by seed: difference with interval, effect size, permutation p
    mean_estimate(runs)                  # mean with its bootstrap interval
    ratio_estimate(design, reference)    # ratio of two means, paired by seed, with its interval
    correct([one, other])                # Benjamini–Hochberg over all comparisons of a study
    permutation_p([first, second, …])    # test whether the means of several groups are equal
    line_through(x, y)                   # slope and intercept, with standard errors and intervals

Each sequence holds one value per run, in the order of the seeds. NaN or None marks a missing value, and its pair is
left out. Samples and permutations are drawn with a fixed seed, so the same runs always give the same results.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mesa_llm.text import NOT_KNOWN, figure_text

MIN_PAIRS = 6
"""Minimum number of pairs for a paired permutation test to reach p < 0.05."""

FloatArray = NDArray[np.float64]

Column = Sequence[float | None]
"""Values of one measure, one per run; NaN or None where a run lacks it."""

N_RESAMPLES = 2_000
"""Number of bootstrap samples."""

N_PERMUTATIONS = 9_999
"""Maximum number of permutations; if there are no more, all are used, and the test is exact."""

COVERAGE = 0.95
"""Confidence level of intervals."""

SEED = 1
"""Seed of samples and permutations."""


@dataclass(frozen=True)
class Estimate:
    """An estimate over runs, with its interval."""

    value: float
    """Mean over runs, or a value computed from means."""

    low: float | None
    """Lower end of its interval; None with fewer than two runs."""

    high: float | None
    """Upper end."""

    n: int
    """Number of runs, or of pairs of runs."""


@dataclass(frozen=True)
class Comparison:
    """Difference between two treatments over pairs of runs."""

    difference: Estimate
    """Mean of first minus second."""

    effect: float | None
    """Difference in units of the pooled standard deviation of the two; None where neither varies."""

    p: float | None
    """Two-sided p of the paired permutation test of the mean difference; None with fewer than two pairs."""

    adjusted_p: float | None = None
    """p after Benjamini and Hochberg's correction; None before `correct`."""


@dataclass(frozen=True)
class FittedLine:
    """A straight line through points, by least squares."""

    slope: Estimate
    """Slope, with Student's interval."""

    intercept: Estimate
    """Intercept, with Student's interval."""

    slope_error: float
    """Standard error of the slope."""

    intercept_error: float
    """Standard error of the intercept."""

    p: float
    """Two-sided p of the hypothesis that the slope is 0."""

    r: float
    """Pearson correlation of x and y."""


def with_interval(estimate: Estimate | None) -> str:
    """Format an estimate with its interval, if it has one."""
    if estimate is None:
        return NOT_KNOWN
    if estimate.low is None or estimate.high is None:
        return figure_text(estimate.value)
    return f"{figure_text(estimate.value)} [{figure_text(estimate.low)}, {figure_text(estimate.high)}]"


def mean_estimate(values: Column) -> Estimate | None:
    """Average values over runs, with a percentile bootstrap interval.

    Returns:
        The mean; None if no run has the value.
    """
    finite = _column(values)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return None
    return Estimate(float(finite.mean()), *_bootstrap_interval((finite,), np.mean), len(finite))


def compare(first: Column, second: Column) -> Comparison | None:
    """Compare two treatments over runs with equal seeds.

    With n pairs, the smallest possible p is 2 / 2ⁿ, so it takes at least six pairs to get below 0.05.

    Args:
        first: Values of one treatment, one per run.
        second: Values of the other, in the same order of seeds.

    Returns:
        The comparison; None if there is no pair.

    Raises:
        ValueError: If the two differ in length.

    Source:
        Fisher (1935), The Design of Experiments, for the test; Cohen (1988) for the effect size.
    """
    one, other = _paired(first, second)
    n = len(one)
    if not n:
        return None
    apart = one - other
    difference = Estimate(float(apart.mean()), *_bootstrap_interval((apart,), np.mean), n)
    return Comparison(difference, _effect(one, other), _paired_p(one, other) if n > 1 else None)


def ratio_estimate(first: Column, second: Column) -> Estimate:
    """Compute the ratio of two means over runs with equal seeds, with a bootstrap interval over the pairs.

    If the denominator reaches 0 in a sample, the interval has no ends.

    Args:
        first: Values of the numerator, one per run.
        second: Values of the denominator, in the same order of seeds.

    Raises:
        ValueError: If the two differ in length, there is no pair, or the mean of the denominator is not positive.
    """
    one, other = _paired(first, second)
    if not len(one):
        raise ValueError("a ratio needs at least one pair of runs")
    divisor = float(other.mean())
    if divisor <= 0:
        raise ValueError(f"the denominator of a ratio must be positive, got {divisor:.4g}; use the difference instead")
    low, high = _bootstrap_interval((one, other), _ratio)
    return Estimate(float(one.mean()) / divisor, low, high, len(one))


def correct(comparisons: Sequence[Comparison | None]) -> list[Comparison | None]:
    """Correct the p-values of all comparisons of a study for multiple testing, ignoring those without one.

    Source:
        Benjamini and Hochberg (1995), Controlling the False Discovery Rate, JRSS B 57(1).
    """
    adjusted = adjusted_p([None if one is None else one.p for one in comparisons])
    return [one and replace(one, adjusted_p=p) for one, p in zip(comparisons, adjusted, strict=True)]


def adjusted_p(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values by the Benjamini–Hochberg procedure; None stays None and is not counted."""
    indices = [index for index, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    if indices:
        adjustments = stats.false_discovery_control([p_values[index] for index in indices])
        for index, p in zip(indices, adjustments, strict=True):
            adjusted[index] = float(p)
    return adjusted


def permutation_p(groups: Sequence[Column]) -> float | None:
    """Test whether the means of several independent groups are equal, by permuting group membership.

    The statistic is that of a one-way analysis of variance. With one slope per run as values, this tests whether slopes
    are equal across groups.

    Args:
        groups: Values of each group, one per run.

    Returns:
        p; None with fewer than two groups of two runs.
    """
    samples = [column[np.isfinite(column)] for column in map(_column, groups)]
    if len(samples) < 2 or min(map(len, samples)) < 2:
        return None
    if np.ptp(np.concatenate(samples)) == 0:
        return 1.0
    test = stats.permutation_test(
        samples, _variance_between, n_resamples=N_PERMUTATIONS, alternative="greater", rng=SEED
    )
    return float(test.pvalue)


def line_through(x: Column, y: Column) -> FittedLine | None:
    """Fit a straight line by least squares.

    Returns:
        The line; None with fewer than three points, or if x does not vary.

    Raises:
        ValueError: If x and y differ in length.
    """
    across, up = _paired(x, y)
    n = len(across)
    if n < 3 or np.ptp(across) == 0:
        return None
    fit: Any = stats.linregress(across, up)
    reach = float(stats.t.ppf((1 + COVERAGE) / 2, n - 2))

    def estimate_around(value: float, error: float) -> Estimate:
        return Estimate(float(value), float(value - reach * error), float(value + reach * error), n)

    return FittedLine(
        estimate_around(fit.slope, fit.stderr),
        estimate_around(fit.intercept, fit.intercept_stderr),
        float(fit.stderr),
        float(fit.intercept_stderr),
        float(fit.pvalue),
        float(fit.rvalue),
    )


def _column(values: Column) -> FloatArray:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _paired(first: Column, second: Column) -> tuple[FloatArray, FloatArray]:
    """Return the values of the runs that have both."""
    if len(first) != len(second):
        raise ValueError(f"paired samples must have equal lengths, got {len(first)} and {len(second)}")
    one, other = _column(first), _column(second)
    both = np.isfinite(one) & np.isfinite(other)
    return one[both], other[both]


def _ratio(one: FloatArray, other: FloatArray, axis: int = -1) -> FloatArray:
    divisor = other.mean(axis=axis)
    return np.divide(one.mean(axis=axis), divisor, out=np.full_like(divisor, math.nan), where=divisor > 0)


def _variance_between(*samples: FloatArray, axis: int = -1) -> FloatArray:
    """Compute the sum of squares between groups, which orders permutations as F does."""
    return sum(
        (np.square(sample.sum(axis=axis)) / sample.shape[axis] for sample in samples),
        start=np.zeros(()),
    )


def _bootstrap_interval(samples: tuple[FloatArray, ...], statistic: object) -> tuple[float | None, float | None]:
    """Return the ends of a percentile interval; None with fewer than two runs, or if the statistic is undefined."""
    if len(samples[0]) < 2:
        return None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # the missing ends show it already
        result = stats.bootstrap(
            samples,
            statistic,
            paired=len(samples) > 1,
            vectorized=True,
            n_resamples=N_RESAMPLES,
            confidence_level=COVERAGE,
            method="percentile",
            rng=SEED,
        )
    low, high = map(float, result.confidence_interval)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)


def _effect(one: FloatArray, other: FloatArray) -> float | None:
    if len(one) < 2:
        return None
    pooled = math.sqrt((float(one.var(ddof=1)) + float(other.var(ddof=1))) / 2)
    return float((one - other).mean()) / pooled if pooled > 0 else None


def _paired_p(one: FloatArray, other: FloatArray) -> float:
    def mean_difference(first: FloatArray, second: FloatArray, axis: int = -1) -> FloatArray:
        return first.mean(axis=axis) - second.mean(axis=axis)

    test = stats.permutation_test(
        (one, other), mean_difference, permutation_type="samples", n_resamples=N_PERMUTATIONS, rng=SEED
    )
    return float(test.pvalue)
