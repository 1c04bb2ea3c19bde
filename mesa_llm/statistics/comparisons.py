"""Comparisons of treatments over runs: paired tests, equivalence, corrections for many tests, and power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import optimize, stats

from mesa_llm.statistics.estimates import COVERAGE, MIN_RUNS, Column, Estimate, FloatArray, known, paired

ALPHA = 1 - COVERAGE
"""Level of tests."""

N_PERMUTATIONS = 9_999
"""Maximum number of permutations; if there are no more, all are used, and the test is exact."""

SEED = 1
"""Seed of permutations."""

MAX_RUNS_NEEDED = 1_000_000
"""Number of runs above which `runs_needed` gives up."""

Correction = Literal["fdr", "holm"]
"""Correction of p-values for multiple testing: Benjamini and Hochberg's, or Holm's."""

Verdict = Literal["shown", "absent", "cannot tell"]
"""What a comparison says of an effect: there is one, there is none as large as the margin, or neither."""


@dataclass(frozen=True)
class Comparison:
    """Difference between two treatments over pairs of runs."""

    difference: Estimate
    """Mean of first minus second, with Student's interval."""

    effect: float | None
    """Difference in units of the pooled standard deviation of the two; None where neither varies."""

    p: float | None
    """Two-sided p of the paired t-test; None below `MIN_RUNS` pairs."""

    adjusted_p: float | None = None
    """p after the correction for all tests of a study; None before `correct`."""

    margin: float | None = None
    """Smallest difference that would matter; None if none was stated."""

    equivalence_p: float | None = None
    """p of the hypothesis that the true difference is at least as large as the margin, either way (two one-sided
    t-tests); corrected by `correct` like p. None without a margin, or below `MIN_RUNS` pairs."""

    @property
    def verdict(self) -> Verdict:
        """What the comparison shows at the 5 % level.

        `absent` if the difference is smaller than the stated margin, even where it is not 0; `shown` if it is not 0;
        else `cannot tell`, which is no sign of absence.
        """
        if self.equivalence_p is not None and self.equivalence_p <= ALPHA:
            return "absent"
        p = self.p if self.adjusted_p is None else self.adjusted_p
        return "shown" if p is not None and p <= ALPHA else "cannot tell"


def compare(
    first: Column, second: Column, margin: float | None = None, *, coverage: float = COVERAGE
) -> Comparison | None:
    """Compare two treatments over runs with equal seeds, by the paired t-test.

    Interval and p come from the same t: the 95 % interval excludes 0 just where p is below 0.05. Where all pairs
    differ by the same amount, there is no spread to judge by: p is that of the sign test, and there is no interval.

    Args:
        first: Values of one treatment, one per run.
        second: Values of the other, in the same order of seeds.
        margin: Smallest difference that would matter, in the unit of the values; for a verdict of absence.
        coverage: Confidence level of the interval.

    Returns:
        The comparison; None if there is no pair.

    Raises:
        ValueError: If the two differ in length, or the margin is not positive.

    Source:
        Student (1908), Biometrika 6(1); Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15(6), for
        equivalence; Cohen (1988) for the effect size.
    """
    if margin is not None and not margin > 0:
        raise ValueError(f"a margin of equivalence must be positive, got {margin}")
    one, other = paired(first, second)
    n = len(one)
    if not n:
        return None
    apart = one - other
    mean = float(apart.mean())
    effect, bare = _effect(one, other), Estimate(mean, None, None, n, "pairs of runs")
    if n < MIN_RUNS:
        return Comparison(bare, effect, None, None, margin)
    error = float(apart.std(ddof=1)) / math.sqrt(n)
    if error <= 1e-12 * max(np.abs(one).max(), np.abs(other).max()):
        p = 1.0 if mean == 0 else 2.0 ** (1 - n)
        is_within = None if margin is None else (2.0**-n if abs(mean) < margin else 1.0)
        return Comparison(
            Estimate(mean, None, None, n, "pairs of runs"), _effect(one, other), p, None, margin, is_within
        )
    reach = float(stats.t.ppf((1 + coverage) / 2, n - 1)) * error
    p = 2 * float(stats.t.sf(abs(mean) / error, n - 1))
    is_within = None if margin is None else float(stats.t.sf((margin - abs(mean)) / error, n - 1))
    difference = replace(bare, low=mean - reach, high=mean + reach)
    return Comparison(difference, effect, p, None, margin, is_within)


def is_absent(difference: Estimate, margin: float) -> bool:
    """Check whether a mean difference is shown to be smaller than a margin, by two one-sided t-tests at 5 %.

    Args:
        difference: A mean difference with Student's interval, as `compare` returns it.
        margin: Smallest difference that would matter.

    Returns:
        Whether the 90 % interval lies within the margin. Pairs that are all alike have no interval: five of them show
        that the next one would be.
    """
    if difference.low is None or difference.high is None:
        return difference.n >= MIN_RUNS and 2.0**-difference.n <= ALPHA and abs(difference.value) < margin
    narrower = float(stats.t.ppf(1 - ALPHA, difference.n - 1) / stats.t.ppf(1 - ALPHA / 2, difference.n - 1))
    return abs(difference.value) + narrower * (difference.high - difference.low) / 2 < margin


def correct(comparisons: Sequence[Comparison | None], method: Correction = "fdr") -> list[Comparison | None]:
    """Correct the p-values of all comparisons of a study for multiple testing, ignoring those without one.

    Args:
        comparisons: The comparisons.
        method: As for `adjusted_p`.
    """
    adjusted = adjusted_p([None if one is None else one.p for one in comparisons], method)
    within = adjusted_p([None if one is None else one.equivalence_p for one in comparisons], method)
    return [
        one and replace(one, adjusted_p=p, equivalence_p=inside)
        for one, p, inside in zip(comparisons, adjusted, within, strict=True)
    ]


def adjusted_p(p_values: Sequence[float | None], method: Correction = "fdr") -> list[float | None]:
    """Adjust p-values for multiple testing; None stays None and is not counted.

    Args:
        p_values: The p-values of a family of tests.
        method: `fdr` bounds the share of false ones among what is found; `holm` the probability of a single false one.

    Source:
        Benjamini and Hochberg (1995), Controlling the False Discovery Rate, JRSS B 57(1); Holm (1979), Scandinavian
        Journal of Statistics 6(2).
    """
    indices = [index for index, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    if not indices:
        return adjusted
    known_p = np.array([p_values[index] for index in indices], dtype=np.float64)
    if method == "fdr":
        adjustments = stats.false_discovery_control(known_p)
    else:
        order = np.argsort(known_p)
        stepped = np.maximum.accumulate(known_p[order] * np.arange(len(order), 0, -1))
        adjustments = np.empty_like(known_p)
        adjustments[order] = np.minimum(stepped, 1.0)
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

    Source:
        Fisher (1935), The Design of Experiments.
    """
    samples = [known(column) for column in groups]
    if len(samples) < 2 or min(map(len, samples)) < 2:
        return None
    if np.ptp(np.concatenate(samples)) == 0:
        return 1.0
    test = stats.permutation_test(
        samples, _variance_between, n_resamples=N_PERMUTATIONS, alternative="greater", rng=SEED
    )
    return float(test.pvalue)


def power(effect: float, deviation: float, n: int, level: float = ALPHA) -> float:
    """Compute how probably the paired t-test finds an effect of a given size.

    Args:
        effect: True mean difference between the treatments.
        deviation: Standard deviation of the differences over pairs of runs.
        n: Number of pairs of runs.
        level: Level of the test.

    Returns:
        A probability; 0 below `MIN_RUNS` pairs.

    Raises:
        ValueError: If the deviation is negative.
    """
    if deviation < 0:
        raise ValueError(f"a standard deviation cannot be negative, got {deviation}")
    if n < MIN_RUNS:
        return 0.0
    if deviation == 0:
        return float(effect != 0 and 2.0 ** (1 - n) <= level)
    away, critical = abs(effect) / deviation * math.sqrt(n), float(stats.t.ppf(1 - level / 2, n - 1))
    found = stats.nct.sf(critical, n - 1, away) + stats.nct.cdf(-critical, n - 1, away)
    return 1.0 if math.isnan(found) else float(found)  # scipy has no value far beyond the critical t


def runs_needed(effect: float, deviation: float, wanted: float = 0.8, level: float = ALPHA) -> int:
    """Compute how many pairs of runs find an effect of a given size with a wanted probability.

    Args:
        effect: Smallest mean difference that should be found.
        deviation: Standard deviation of the differences over pairs of runs, as a pilot gives it.
        wanted: Wanted probability to find it.
        level: Level of the test.

    Returns:
        The smallest number of pairs, at least `MIN_RUNS`.

    Raises:
        ValueError: If the effect is 0, the wanted probability is not between 0 and 1, or it takes more than a million
            pairs.
    """
    if not effect or not math.isfinite(effect):
        raise ValueError(f"the smallest effect must be a number other than 0, got {effect}")
    if not 0 < wanted < 1:
        raise ValueError(f"the wanted power must lie between 0 and 1, got {wanted}")
    low, high = MIN_RUNS - 1, MIN_RUNS
    while power(effect, deviation, high, level) < wanted:
        low, high = high, 2 * high
        if high > MAX_RUNS_NEEDED:
            raise ValueError(
                f"it takes more than a million runs to find an effect of {effect:g} beside a standard deviation of "
                f"{deviation:g}; look for a larger effect, or a measure that varies less"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, deviation, middle, level) >= wanted else (middle, high)
    return high


def effect_needed(n: int, wanted: float = 0.8, level: float = ALPHA) -> float:
    """Compute how large an effect has to be for the paired t-test to find it with a wanted probability.

    Args:
        n: Number of pairs of runs.
        wanted: Wanted probability to find it.
        level: Level of the test.

    Returns:
        The mean difference, in standard deviations of the differences over pairs of runs.

    Raises:
        ValueError: If the wanted probability is not between the level and 1, or there are fewer than `MIN_RUNS` pairs.
    """
    if not level < wanted < 1 or n < MIN_RUNS:
        raise ValueError(f"wanted a power between {level} and 1 and {MIN_RUNS} pairs or more, got {wanted} and {n}")
    high = 1.0
    while power(high, 1.0, n, level) < wanted:
        high *= 2
    found: Any = optimize.brentq(lambda effect: power(effect, 1.0, n, level) - wanted, 0.0, high, xtol=1e-6)
    return float(found)


def deviation_bound(deviation: float, n: int, probability: float = 0.8) -> float:
    """Return what the true standard deviation exceeds with the given probability's complement, after a small pilot.

    A pilot of few runs gives too small a deviation half of the time, and a study planned by it is then too small.

    Args:
        deviation: Standard deviation in the pilot.
        n: Number of pairs in the pilot.
        probability: How sure to be.

    Raises:
        ValueError: If the pilot has fewer than two pairs.

    Source:
        Browne (1995), On the use of a pilot sample for sample size determination, Statistics in Medicine 14(17).
    """
    if n < 2:
        raise ValueError(f"a pilot needs at least two pairs of runs, got {n}")
    return deviation * math.sqrt((n - 1) / float(stats.chi2.ppf(1 - probability, n - 1)))


def _effect(one: FloatArray, other: FloatArray) -> float | None:
    if len(one) < 2:
        return None
    pooled = math.sqrt((float(one.var(ddof=1)) + float(other.var(ddof=1))) / 2)
    return float((one - other).mean()) / pooled if pooled > 0 else None


def _variance_between(*samples: FloatArray, axis: int = -1) -> FloatArray:
    """Compute the sum of squares between groups, which orders permutations as F does."""
    return sum(
        (np.square(sample.sum(axis=axis)) / sample.shape[axis] for sample in samples),
        start=np.zeros(()),
    )
