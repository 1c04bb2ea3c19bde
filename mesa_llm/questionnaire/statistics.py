"""Summaries of scores, and comparisons of two groups from their summaries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy import stats

SD_ADDED = 1e-8
"""Constant added to both standard deviations before the comparison, so neither is 0."""


@dataclass(frozen=True)
class Summary:
    """Mean, spread and number of scores."""

    mean: float
    """Mean; NaN if there are no scores."""

    sd: float
    """Sample standard deviation (n - 1); NaN if there are fewer than two."""

    n: int
    """Number of scores."""


def summary(scores: Sequence[float]) -> Summary:
    """Summarise scores."""
    mean = statistics.fmean(scores) if scores else math.nan
    return Summary(mean, statistics.stdev(scores) if len(scores) > 1 else math.nan, len(scores))


@dataclass(frozen=True)
class TwoSampleTest:
    """An F test of two variances, and the resulting t test."""

    f: float
    """Larger variance over the smaller; if they are equal, the second over the first."""

    f_df: tuple[int, int]
    """Degrees of freedom of the larger and the smaller variance."""

    f_p: float
    """Two-sided p: twice the upper tail, not capped at 1."""

    equal_variance: bool
    """Whether the t test is Student's, which assumes equal variances; else Welch's."""

    t: float
    """Difference of the means in standard errors."""

    t_df: float
    """Degrees of freedom of the t test."""

    t_p: float
    """Two-sided p of the t test."""

    relation: Literal["=", ">", "<"]
    """Whether the first mean equals the second, is larger or smaller."""


def compare(first: Summary, second: Summary, alpha: float = 0.01) -> TwoSampleTest:
    """Compare two means, after a test of the variances.

    Args:
        first: Summary of at least two scores.
        second: Summary to compare with, such as a norm.
        alpha: Level of both tests.

    Raises:
        ValueError: If one of them has fewer than two scores.

    Source:
        Huang et al. (2024), PsychoBench, ICLR; `hypothesis_testing` of their code.
    """
    if min(first.n, second.n) < 2:
        raise ValueError(f"a comparison needs at least two scores on each side, got {first.n} and {second.n}")
    sd_1, sd_2 = first.sd + SD_ADDED, second.sd + SD_ADDED
    if sd_1 > sd_2:
        f, f_df = sd_1**2 / sd_2**2, (first.n - 1, second.n - 1)
    else:
        f, f_df = sd_2**2 / sd_1**2, (second.n - 1, first.n - 1)
    f_p = float(2 * stats.f.sf(f, *f_df))
    equal_variance = f_p > alpha
    test = stats.ttest_ind_from_stats(first.mean, sd_1, first.n, second.mean, sd_2, second.n, equal_var=equal_variance)
    t, t_p = float(test.statistic), float(test.pvalue)  # pyright: ignore[reportAttributeAccessIssue]
    relation = "=" if not t_p <= alpha else ">" if t > 0 else "<"
    return TwoSampleTest(
        f, f_df, f_p, equal_variance, t, _df(sd_1, first.n, sd_2, second.n, equal_variance), t_p, relation
    )


def _df(sd_1: float, n_1: int, sd_2: float, n_2: int, equal_variance: bool) -> float:
    if equal_variance:
        return n_1 + n_2 - 2
    v_1, v_2 = sd_1**2 / n_1, sd_2**2 / n_2
    return (v_1 + v_2) ** 2 / (v_1**2 / (n_1 - 1) + v_2**2 / (n_2 - 1))
