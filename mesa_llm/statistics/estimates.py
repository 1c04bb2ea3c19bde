"""Estimates with their intervals: means, shares, ratios, lines, and any figure computed from runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from mesa_llm.text import NOT_KNOWN, figure_text

FloatArray = NDArray[np.float64]

Column = Sequence[float | None]
"""Values of one measure, one per run; NaN or None where a run lacks it."""

COVERAGE = 0.95
"""Confidence level of intervals."""

MIN_RUNS = 4
"""Minimum number of runs, or of pairs of runs, of which an interval or a test is given."""


MAX_SKEWED = 0.9
"""Maximum product of skewness and t / √n: at 1, Hall's transformation is vertical, and an end runs off."""


@dataclass(frozen=True)
class Estimate:
    """An estimate over runs, with its 95 % interval."""

    value: float
    """Mean over runs, or a value computed from means."""

    low: float | None
    """Lower end of its interval; None below `MIN_RUNS` runs, or where all runs are alike."""

    high: float | None
    """Upper end."""

    n: int
    """Number of units."""

    unit: str = "runs"
    """What is counted, in the plural: `runs`, `pairs of runs`, `agents`, `people`, `questions`."""


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


def mean_estimate(
    values: Column, unit: str = "runs", bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate | None:
    """Average values over runs, with Student's interval, corrected for the skewness of the sample.

    Of a symmetric sample it is Student's interval. Few runs of a skewed measure (a Gini coefficient near its bound, a
    number of casualties) lie close together far more often than Student's t allows for; Hall's transformation moves
    the ends towards the long tail. Where some values are 0 and all others 1, they are counted: the interval is that of
    `share_interval`.

    Args:
        values: One value per run.
        unit: What a value belongs to, in the plural.
        bounds: Lowest and highest possible value, such as (0, 1) for a share: the interval ends there.

    Returns:
        The mean; None if no run has the value. It has no interval below `MIN_RUNS` runs, or if all values are equal.

    Source:
        Hall (1992), On the removal of skewness by transformation, JRSS B 54(1).
    """
    finite = known(values)
    n = len(finite)
    if not n:
        return None
    mean = float(finite.mean())
    if n >= MIN_RUNS and set(finite.tolist()) == {0.0, 1.0}:
        return Estimate(mean, *share_interval(round(float(finite.sum())), n), n, unit)
    means, low, high = mean_intervals(finite[:, None])
    lowest, highest = bounds
    return Estimate(float(means[0]), as_end(np.maximum(low[0], lowest)), as_end(np.minimum(high[0], highest)), n, unit)


def mean_intervals(table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Average several figures over runs, each with the interval of `mean_estimate`.

    Args:
        table: One row per run, shape `(runs, figures)`; NaN where a run lacks a figure.

    Returns:
        Means, lower ends and upper ends, shape `(figures,)`; NaN where there is none.
    """
    is_known = np.isfinite(table)
    n = is_known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(is_known, table, 0.0).sum(axis=0) / n
        apart = np.where(is_known, table - mean, 0.0)
        variance = np.square(apart).sum(axis=0) / n
        has_interval = (n >= MIN_RUNS) & (np.sqrt(variance) > 1e-12 * np.abs(mean))
        skewness = (apart**3).sum(axis=0) / n / variance**1.5
        deviation = np.sqrt(variance * n / (n - 1))
        reach = stats.t.ppf((1 + COVERAGE) / 2, np.maximum(n - 1, 1)) / np.sqrt(n)
        skewness = np.clip(skewness, -MAX_SKEWED / reach, MAX_SKEWED / reach)
        low = mean - deviation * _unskewed(reach, skewness, n)
        high = mean - deviation * _unskewed(-reach, skewness, n)
    return mean, np.where(has_interval, low, math.nan), np.where(has_interval, high, math.nan)


def _unskewed(reach: FloatArray, skewness: FloatArray, n: NDArray[np.int_]) -> FloatArray:
    """Invert Hall's transformation of t, at `reach` = t / √n."""
    skewed = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness)
    return 3 / skewed * (np.cbrt(1 + skewed * (reach - skewed / (6 * n))) - 1)


def cluster_means(values: Column, clusters: Sequence[Hashable]) -> list[float]:
    """Average the values of each cluster, for an estimate that counts clusters: the agents of one run are no sample.

    Args:
        values: One value per agent, question or decision; NaN or None where missing.
        clusters: What each belongs to, such as the seed of its run.

    Returns:
        One mean per cluster that has a value, in the order in which clusters come first.

    Raises:
        ValueError: If the two differ in length.
    """
    if len(values) != len(clusters):
        raise ValueError(f"each value needs its cluster, got {len(values)} values and {len(clusters)} clusters")
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        if value is not None and math.isfinite(value):
            members.setdefault(cluster, []).append(value)
    return [math.fsum(one) / len(one) for one in members.values()]


def share_interval(n: int, of: int) -> tuple[float, float]:
    """Compute Wilson's 95 % interval of a share; from 0 to 1 if it could not happen.

    Args:
        n: Number of times.
        of: Number of times it could have happened, independently of each other.

    Source:
        Wilson (1927), Journal of the American Statistical Association 22(158).
    """
    if not of:
        return 0.0, 1.0
    z = float(stats.norm.ppf((1 + COVERAGE) / 2))
    share, spread = n / of, z**2 / of
    middle, half = share + spread / 2, z * math.sqrt((share * (1 - share) + spread / 4) / of)
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def ratio_estimate(first: Column, second: Column) -> Estimate:
    """Compute the ratio of two means over runs with equal seeds, with Fieller's interval.

    The interval holds each ratio r for which the interval of the mean of `first` − r · `second` holds 0, as
    `mean_estimate` computes it. It has no ends where the denominator does not differ from 0, or below `MIN_RUNS` pairs.

    Args:
        first: Values of the numerator, one per run.
        second: Values of the denominator, in the same order of seeds.

    Raises:
        ValueError: If the two differ in length, there is no pair, or the mean of the denominator is not positive.

    Source:
        Fieller (1954), Some problems in interval estimation, JRSS B 16(2).
    """
    one, other = paired(first, second)
    n = len(one)
    if not n:
        raise ValueError("a ratio needs at least one pair of runs")
    above, below = float(one.mean()), float(other.mean())
    if below <= 0:
        raise ValueError(f"the denominator of a ratio must be positive, got {below:.4g}; use the difference instead")
    ratio = Estimate(above / below, None, None, n, "pairs of runs")
    scale = max(abs(ratio.value), float(np.abs(one).max()) / below)
    if n < MIN_RUNS:
        return ratio
    if np.ptp(one - ratio.value * other) <= 1e-12 * scale * below:
        return replace(ratio, low=ratio.value, high=ratio.value)

    def lower_end(at: float) -> float:
        return float(mean_intervals((one - at * other)[:, None])[1][0])

    def upper_end(at: float) -> float:
        return float(mean_intervals((one - at * other)[:, None])[2][0])

    low = _zero_beyond(lower_end, ratio.value, -scale)
    high = _zero_beyond(upper_end, ratio.value, scale)
    return ratio if low is None or high is None else replace(ratio, low=low, high=high)


def _zero_beyond(end: Callable[[float], float], start: float, step: float) -> float | None:
    """Find where the end of an interval passes 0, from a start on; None if it does not within a millionfold step."""
    inside = start
    for doubling in range(21):
        outside = start + step * 2.0 ** (doubling - 1)
        if end(inside) * end(outside) <= 0:
            root: Any = optimize.brentq(end, inside, outside, xtol=1e-12)
            return float(root)
        inside = outside
    return None


def jackknife_estimate(runs: FloatArray, figure: Callable[[FloatArray], float], unit: str = "runs") -> Estimate:
    """Compute a figure of several runs together, with the interval of a jackknife and Student's quantile.

    Args:
        runs: One row per run.
        figure: Computes the figure from rows; NaN where it is not defined.
        unit: What a row belongs to, in the plural.

    Returns:
        The figure. It has no interval below `MIN_RUNS` rows, or if it is not defined without one of them.

    Source:
        Tukey (1958), Bias and confidence in not-quite large samples, Annals of Mathematical Statistics 29(2).
    """
    value, n = float(figure(runs)), len(runs)
    if n < MIN_RUNS:
        return Estimate(value, None, None, n, unit)
    without = np.array([figure(np.delete(runs, row, axis=0)) for row in range(n)])
    if not np.isfinite(without).all() or np.ptp(without) == 0:
        return Estimate(value, None, None, n, unit)
    return Estimate(value, *jackknife_interval(value, without), n, unit)


def jackknife_interval(value: float, without: FloatArray) -> tuple[float, float]:
    """Return the ends of an interval around a figure, from what it is without each unit in turn."""
    n = len(without)
    error = math.sqrt((n - 1) / n * float(np.square(without - without.mean()).sum()))
    reach = float(stats.t.ppf((1 + COVERAGE) / 2, n - 1)) * error
    return value - reach, value + reach


def line_through(x: Column, y: Column) -> FittedLine | None:
    """Fit a straight line by least squares.

    Returns:
        The line; None with fewer than three points, or if x does not vary.

    Raises:
        ValueError: If x and y differ in length.
    """
    across, up = paired(x, y)
    n = len(across)
    if n < 3 or np.ptp(across) == 0:
        return None
    fit: Any = stats.linregress(across, up)
    reach = float(stats.t.ppf((1 + COVERAGE) / 2, n - 2))

    def estimate_around(value: float, error: float) -> Estimate:
        if n < MIN_RUNS:
            return Estimate(float(value), None, None, n, "points")
        return Estimate(float(value), float(value - reach * error), float(value + reach * error), n, "points")

    return FittedLine(
        estimate_around(fit.slope, fit.stderr),
        estimate_around(fit.intercept, fit.intercept_stderr),
        float(fit.stderr),
        float(fit.intercept_stderr),
        float(fit.pvalue),
        float(fit.rvalue),
    )


def as_column(values: Column) -> FloatArray:
    """Return values as an array, with NaN where one is missing."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def known(values: Column) -> FloatArray:
    """Return the values that are not missing."""
    column = as_column(values)
    return column[np.isfinite(column)]


def paired(first: Column, second: Column) -> tuple[FloatArray, FloatArray]:
    """Return the values of the runs that have both.

    Raises:
        ValueError: If the two differ in length.
    """
    if len(first) != len(second):
        raise ValueError(f"paired samples must have equal lengths, got {len(first)} and {len(second)}")
    one, other = as_column(first), as_column(second)
    both = np.isfinite(one) & np.isfinite(other)
    return one[both], other[both]


def as_end(value: float) -> float | None:
    """Return the end of an interval; None for one that is not finite."""
    return float(value) if math.isfinite(value) else None
