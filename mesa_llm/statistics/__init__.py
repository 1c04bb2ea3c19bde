"""Statistics of runs: estimates with intervals, paired comparisons, equivalence, power, and agreement of coders.

    compare(with_memory, without)        # paired by seed: difference with interval, effect size, p of the t-test
    compare(one, other, margin=0.05)     # and whether it is absent: smaller than what would matter
    mean_estimate(runs)                  # mean with its interval
    ratio_estimate(design, reference)    # ratio of two means, paired by seed, with its interval
    correct([one, other])                # for multiple testing, over all comparisons of a study
    permutation_p([first, second, …])    # test whether the means of several groups are equal
    line_through(x, y)                   # slope and intercept, with standard errors and intervals
    runs_needed(0.05, deviation)         # number of pairs of runs that find an effect of this size
    krippendorff_alpha(labels)           # agreement of several coders, with its interval

Each sequence holds one value per run, in the order of the seeds. NaN or None marks a missing value, and its pair is
left out. Below four runs there is neither an interval nor a test. How often these intervals hold the true value, and
how often the tests reject where there is no effect, stands in docs/statistics.md; `python3 dev.py bench coverage`
measures it.
"""

from mesa_llm.statistics.agreement import Level, alpha_between, krippendorff_alpha
from mesa_llm.statistics.comparisons import (
    ALPHA,
    Comparison,
    Correction,
    Verdict,
    adjusted_p,
    compare,
    correct,
    deviation_bound,
    effect_needed,
    is_absent,
    permutation_p,
    power,
    runs_needed,
)
from mesa_llm.statistics.estimates import (
    COVERAGE,
    MIN_RUNS,
    Column,
    Estimate,
    FittedLine,
    FloatArray,
    cluster_means,
    jackknife_estimate,
    line_through,
    mean_estimate,
    mean_intervals,
    ratio_estimate,
    share_interval,
    with_interval,
)

__all__ = [
    "ALPHA",
    "COVERAGE",
    "MIN_RUNS",
    "Column",
    "Comparison",
    "Correction",
    "Estimate",
    "FittedLine",
    "FloatArray",
    "Level",
    "Verdict",
    "adjusted_p",
    "alpha_between",
    "cluster_means",
    "compare",
    "correct",
    "deviation_bound",
    "effect_needed",
    "is_absent",
    "jackknife_estimate",
    "krippendorff_alpha",
    "line_through",
    "mean_estimate",
    "mean_intervals",
    "permutation_p",
    "power",
    "ratio_estimate",
    "runs_needed",
    "share_interval",
    "with_interval",
]
