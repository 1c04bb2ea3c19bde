"""Statistics of runs: paired comparisons, intervals, corrections for many tests, slopes, and agreement of coders.

    compare(with_memory, without)        # paired by seed: difference with interval, effect size, permutation p
    mean_estimate(runs)                  # mean with its bootstrap interval
    ratio_estimate(design, reference)    # ratio of two means, paired by seed, with its interval
    correct([one, other])                # Benjamini–Hochberg over all comparisons of a study
    permutation_p([first, second, …])    # test whether the means of several groups are equal
    line_through(x, y)                   # slope and intercept, with standard errors and intervals
    krippendorff_alpha(labels)           # agreement of several coders, with its bootstrap interval

Each sequence holds one value per run, in the order of the seeds. NaN or None marks a missing value, and its pair is
left out. Samples and permutations are drawn with a fixed seed, so the same runs always give the same results.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mesa_llm.text import NOT_KNOWN, figure_text

MIN_PAIRS = 6
"""Minimum number of pairs for a paired permutation test to reach p < 0.05."""

FloatArray = NDArray[np.float64]

Column = Sequence[float | None]
"""Values of one measure, one per run; NaN or None where a run lacks it."""

Level = Literal["nominal", "ordinal", "interval"]
"""Level of measurement of labels: names, ranks, or numbers."""

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


def share_interval(n: int, of: int) -> tuple[float, float]:
    """Compute Wilson's 95 % interval of a share; from 0 to 1 if it could not happen.

    Args:
        n: Number of times.
        of: Number of times it could have happened.

    Source:
        Wilson (1927), Journal of the American Statistical Association 22(158).
    """
    if not of:
        return 0.0, 1.0
    z = float(stats.norm.ppf((1 + COVERAGE) / 2))
    share, spread = n / of, z**2 / of
    middle, half = share + spread / 2, z * math.sqrt((share * (1 - share) + spread / 4) / of)
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


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


def krippendorff_alpha(
    labels: Sequence[Sequence[Any]], level: Level = "nominal", *, n_resamples: int = N_RESAMPLES
) -> Estimate | None:
    """Compute Krippendorff's alpha: how far coders agree, from 1 (always) over 0 (as by chance) to negative values.

    Args:
        labels: One row per unit, with the label of each coder in it; None or NaN where missing.
        level: `nominal` compares labels as names, `ordinal` by their ranks, `interval` as numbers.
        n_resamples: Number of bootstrap samples; 0 for no interval.

    Returns:
        Alpha with a percentile bootstrap interval over units, and the number of units with two labels or more; None if
        there is no such unit, or all labels are the same.

    Raises:
        ValueError: If labels are no numbers, on another level than `nominal`.

    Source:
        Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.
    """
    rows = [[label for label in row if not _is_missing(label)] for row in labels]
    return _Coincidences.among([row for row in rows if len(row) > 1], level).estimate(level, n_resamples)


def alpha_between(
    first: Sequence[Sequence[Any]], second: Sequence[Sequence[Any]], level: Level = "nominal"
) -> Estimate | None:
    """Compute Krippendorff's alpha between one label of a first group and one of a second, drawn at random per unit.

    With one coder in each group, this is `krippendorff_alpha` of the two. Coders of the same group are not compared
    with each other, so that it shows how far a judge agrees with people, and not people among themselves.

    Args:
        first: One row per unit, with the labels of the first group in it; None or NaN where missing.
        second: The same for the second group, in the same order of units.
        level: As for `krippendorff_alpha`.

    Returns:
        As `krippendorff_alpha`; units count that have labels of both groups.

    Raises:
        ValueError: If the two differ in length, or labels are no numbers, on another level than `nominal`.
    """
    if len(first) != len(second):
        raise ValueError(f"both groups need one row per unit, got {len(first)} and {len(second)}")
    both = zip(first, second, strict=True)
    pairs = [tuple([one for one in row if not _is_missing(one)] for row in rows) for rows in both]
    return _Coincidences.between([pair for pair in pairs if all(pair)], level).estimate(level)


@dataclass(frozen=True)
class _Coincidences:
    """Pairs of labels of the same unit, as in a coincidence matrix, where both orders of a pair count."""

    n_units: int
    unit: NDArray[np.intp]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    weight: FloatArray
    values: FloatArray

    @classmethod
    def among(cls, rows: Sequence[Sequence[Any]], level: Level) -> _Coincidences:
        """Pair the labels of each unit with each other."""
        pairs = [
            (unit, one, other, 1 / (len(row) - 1))
            for unit, row in enumerate(rows)
            for place, one in enumerate(row)
            for index, other in enumerate(row)
            if place != index
        ]
        return cls._of(len(rows), pairs, level)

    @classmethod
    def between(cls, rows: Sequence[tuple[Sequence[Any], ...]], level: Level) -> _Coincidences:
        """Pair the labels of two groups of coders."""
        pairs = [
            (unit, *pair, 1 / (len(first) * len(second)))
            for unit, (first, second) in enumerate(rows)
            for one in first
            for other in second
            for pair in ((one, other), (other, one))
        ]
        return cls._of(len(rows), pairs, level)

    @classmethod
    def _of(cls, n_units: int, pairs: Sequence[tuple[int, Any, Any, float]], level: Level) -> _Coincidences:
        if level == "nominal":
            numbers: dict[Any, float] = {}
            labels = [[numbers.setdefault(one, float(len(numbers))) for one in pair[1:3]] for pair in pairs]
        else:
            labels = [[float(one) for one in pair[1:3]] for pair in pairs]
        values, indices = np.unique(np.array(labels, dtype=np.float64).reshape(-1, 2), return_inverse=True)
        first, second = indices.reshape(-1, 2).T
        unit = np.array([pair[0] for pair in pairs], dtype=np.intp)
        return cls(n_units, unit, first, second, np.array([pair[3] for pair in pairs], dtype=np.float64), values)

    def alpha(self, level: Level, times: FloatArray) -> float:
        """Return alpha, with each unit counted a number of times; NaN if all labels are the same.

        Args:
            level: Level of measurement.
            times: Number of times, shape `(units,)`.
        """
        weight = self.weight * times[self.unit]
        counts = np.bincount(self.first, weight, len(self.values))
        total = weight.sum()
        if np.count_nonzero(counts) < 2:
            return math.nan
        if level == "nominal":
            observed = weight[self.first != self.second].sum()
            expected = total**2 - np.square(counts).sum()
        else:
            scale = self.values if level == "interval" else counts.cumsum() - counts / 2
            observed = (weight * np.square(scale[self.first] - scale[self.second])).sum()
            expected = 2 * (total * (counts * scale**2).sum() - (counts * scale).sum() ** 2)
        return float(1 - (total - 1) * observed / expected)

    def estimate(self, level: Level, n_resamples: int = N_RESAMPLES) -> Estimate | None:
        """Return alpha with its interval; None if nothing can be compared."""
        alpha = self.alpha(level, np.ones(self.n_units)) if self.n_units else math.nan
        if math.isnan(alpha):
            return None
        if self.n_units < 2 or not n_resamples:
            return Estimate(alpha, None, None, self.n_units)
        rng = np.random.default_rng(SEED)
        samples = rng.multinomial(self.n_units, np.full(self.n_units, 1 / self.n_units), n_resamples)
        alphas = np.array([self.alpha(level, times.astype(np.float64)) for times in samples])
        defined = alphas[np.isfinite(alphas)]
        if len(defined) < COVERAGE * n_resamples:
            return Estimate(alpha, None, None, self.n_units)
        low, high = np.quantile(defined, ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2))
        return Estimate(alpha, float(low), float(high), self.n_units)


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and math.isnan(label))


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
