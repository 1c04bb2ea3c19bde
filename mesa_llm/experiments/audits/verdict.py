"""Statistics of an audit: whether a claim is shown, and whether it is stable under each perturbation.

Seeds are blocks: every perturbation runs with the seeds of the baseline, and is compared with it seed by seed, so that
what runs share by their seed, and decisions by their wording, is never counted as evidence twice. Stable means shown to
be small; what is not shown either way is undecided, however large its p.

Source:
    Schuirmann (1987), J. Pharmacokinetics and Biopharmaceutics 15(6), for two one-sided tests; Holm (1979),
    Scandinavian Journal of Statistics 6(2); Fisher (1935), The Design of Experiments, for permutations within blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import minimize

from mesa_llm.experiments.audits.claim import Expectation
from mesa_llm.statistics import MIN_RUNS, Estimate, adjusted_p

FloatArray = npt.NDArray[np.float64]

N_PERMUTATIONS = 9_999
"""Number of random permutations where there are more."""

MAX_EXACT = 13
"""Number of seeds up to which all permutations are used."""

MAX_SEEDS = 2_000
"""Number of seeds beyond which no further seeds are suggested."""

ALPHA = 0.05
"""Level of all tests."""

LOG_RATIO = 20.0
"""Maximum logarithm of a ratio of two variances, either way."""

Shown = Literal["shown", "reversed", "absent", "not shown"]
"""What the runs say of a claim: it is shown; its opposite is; it is shown that there is none; or nothing is shown."""

Change = Literal["stable", "sensitive", "undecided"]
"""What a perturbation does to a claim."""


def t_interval(values: Sequence[float], level: float) -> Estimate:
    """Average values over seeds, with Student's interval; without ends below `MIN_RUNS`.

    Args:
        values: One value per seed.
        level: Level of the interval.
    """
    column = np.asarray(values, dtype=np.float64)
    n, mean = len(column), float(column.mean()) if len(column) else math.nan
    if n < MIN_RUNS:
        return Estimate(mean, None, None, n)
    reach = float(stats.t.ppf((1 + level) / 2, n - 1)) * float(column.std(ddof=1)) / math.sqrt(n)
    return Estimate(mean, mean - reach, mean + reach, n)


def shown(effects: Sequence[float], expectation: Expectation, smallest_effect: float) -> Shown:
    """Say whether the effects of several seeds show what is expected of them.

    An expected direction is shown by a 95 % interval beyond 0 with a mean of at least the smallest effect, and reversed
    by one on the other side; it is absent if the 90 % interval lies within the smallest effect around 0. An expected
    range is shown by a 90 % interval within it, and absent by a 95 % interval outside.

    Args:
        effects: One effect per seed.
        expectation: What is expected.
        smallest_effect: Smallest effect of interest.
    """
    wide, narrow = t_interval(effects, 0.95), t_interval(effects, 0.90)
    if wide.low is None or wide.high is None or narrow.low is None or narrow.high is None:
        return "not shown"
    if expectation.is_equivalence:
        if expectation.low <= narrow.low and narrow.high <= expectation.high:
            return "shown"
        return "absent" if wide.high < expectation.low or wide.low > expectation.high else "not shown"
    sign = 1 if expectation.high > 0 else -1
    low, high = sorted((sign * wide.low, sign * wide.high))
    if low > 0 and sign * wide.value >= smallest_effect:
        return "shown"
    if high < 0:
        return "reversed"
    is_small = -smallest_effect <= narrow.low and narrow.high <= smallest_effect
    return "absent" if is_small else "not shown"


@dataclass(frozen=True)
class Stability:
    """What one perturbation does to the effect of a claim."""

    effect: Estimate
    """Mean effect under the perturbation, with its 95 % interval over seeds."""

    difference: Estimate
    """Mean of the effect minus that of the baseline, seed by seed, with its 95 % interval."""

    low_90: float | None
    """Lower end of the 90 % interval of the difference, on which the judgement rests."""

    high_90: float | None
    """Upper end."""

    p: float | None
    """p of a permutation of the two labels within each seed; None with fewer than two seeds."""

    adjusted_p: float | None
    """The same, corrected by Holm for all perturbations of the audit."""

    shown: Shown
    """What the runs under the perturbation say of the claim."""

    change: Change
    """Whether the claim is stable under it."""

    is_reversed: bool
    """Whether the claim, shown in the baseline, is reversed under it."""

    further_seeds: int | None
    """Number of further seeds that would decide it at the spread seen; None if it is decided, or no number would."""


def stability(
    baseline: Sequence[float], perturbed: Sequence[Sequence[float]], expectation: Expectation, smallest_effect: float
) -> list[Stability]:
    """Judge all perturbations of an audit.

    Args:
        baseline: Effect of the baseline, one per seed; NaN where a run is missing.
        perturbed: Effects under each perturbation, in the same order of seeds.
        expectation: What is expected of the effect.
        smallest_effect: Smallest effect of interest.

    Raises:
        ValueError: If the numbers of seeds differ.
    """
    own = np.asarray(baseline, dtype=np.float64)
    pairs: list[tuple[FloatArray, FloatArray]] = []
    for one in perturbed:
        other = np.asarray(one, dtype=np.float64)
        if len(other) != len(own):
            raise ValueError(f"a perturbation has {len(other)} seeds, the baseline {len(own)}; run both with the same")
        both = np.isfinite(own) & np.isfinite(other)
        pairs.append((own[both], other[both]))
    p_values = [sign_flip_p(other - base) for base, other in pairs]
    was_shown = shown(list(own[np.isfinite(own)]), expectation, smallest_effect)
    return [
        _judged(base, other, p, adjusted, len(perturbed), was_shown, expectation, smallest_effect)
        for (base, other), p, adjusted in zip(pairs, p_values, adjusted_p(p_values, "holm"), strict=True)
    ]


def _judged(
    base: FloatArray,
    other: FloatArray,
    p: float | None,
    adjusted: float | None,
    n_tests: int,
    was_shown: Shown,
    expectation: Expectation,
    smallest: float,
) -> Stability:
    apart = other - base
    wide, narrow = t_interval(list(apart), 0.95), t_interval(list(apart), 0.90)
    now = shown(list(other), expectation, smallest)
    is_reversed = was_shown == "shown" and now == "reversed"
    change: Change = "undecided"
    if narrow.low is not None and narrow.high is not None:
        is_beyond = (narrow.low > smallest or narrow.high < -smallest) and adjusted is not None and adjusted <= ALPHA
        if is_beyond or is_reversed:
            change = "sensitive"
        elif -smallest < narrow.low and narrow.high < smallest:
            change = "stable"
    further = None if change != "undecided" else further_seeds(apart, smallest, n_tests)
    effect = t_interval(list(other), 0.95)
    return Stability(effect, wide, narrow.low, narrow.high, p, adjusted, now, change, is_reversed, further)


def sign_flip_p(apart: FloatArray) -> float | None:
    """Test whether paired differences have mean 0, by exchanging the labels within each pair.

    Args:
        apart: Differences, one per seed.

    Returns:
        Two-sided p; None with fewer than two pairs.
    """
    n = len(apart)
    if n < 2:
        return None
    if not np.any(apart):
        return 1.0
    signs = _signs(n)
    sums = np.abs((signs * apart).sum(axis=1))  # not by BLAS, which differs between processors
    is_as_large = sums >= abs(float(apart.sum())) - 1e-12 * float(np.abs(apart).sum())
    n_exact = 0 if n <= MAX_EXACT else 1  # the labels as they are count as one of the random permutations
    return float((is_as_large.sum() + n_exact) / (len(signs) + n_exact))


@lru_cache(maxsize=8)
def _signs(n: int) -> FloatArray:
    """Return signs of pairs, shape `(permutations, n)`: all of them for few pairs, else random ones."""
    if n <= MAX_EXACT:
        return 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return np.random.default_rng(1).choice(np.array([-1.0, 1.0]), size=(N_PERMUTATIONS, n))


def further_seeds(apart: FloatArray, smallest: float, n_tests: int) -> int | None:
    """Return how many more seeds would decide a perturbation if its mean and spread stayed as they are.

    Args:
        apart: Differences from the baseline, one per seed.
        smallest: Smallest effect of interest.
        n_tests: Number of perturbations, for which p is corrected.

    Returns:
        The number; None with fewer than two seeds, or if more than `MAX_SEEDS` would be needed.
    """
    n = len(apart)
    if n < 2:
        return None
    mean, spread = abs(float(apart.mean())), float(apart.std(ddof=1))
    for total in range(n + 1, MAX_SEEDS + 1):
        is_inside = mean + float(_t(0.90, total)) * spread / math.sqrt(total) < smallest
        has_p = n_tests * 2.0 ** (1 - total) <= ALPHA
        is_outside = has_p and mean - float(_t(0.90, total)) * spread / math.sqrt(total) > smallest
        if is_inside or is_outside:
            return total - n
    return None


def seeds_needed(n_tests: int) -> int:
    """Return the smallest number of seeds with which a perturbation can be called sensitive.

    Args:
        n_tests: Number of perturbations, for which p is corrected.
    """
    return next(n for n in range(2, MAX_SEEDS) if n_tests * 2.0 ** (1 - n) <= ALPHA)


@lru_cache(maxsize=8_192)
def _t(level: float, n: int) -> float:
    return float(stats.t.ppf((1 + level) / 2, n - 1))


# -- shares of the variance


@dataclass(frozen=True)
class VarianceShare:
    """How much of the variation of a measure over all runs of an audit is due to what."""

    source: str
    """What: seed, perturbation, language model, sampling, or the rest."""

    share: float
    """Share of the variance, from 0 to 1."""


def variance_shares(
    values: Sequence[float],
    seeds: Sequence[int],
    perturbations: Sequence[str],
    llms: Sequence[str],
    *,
    sampling: float | None = None,
) -> list[VarianceShare]:
    """Divide the variance of a measure among seeds, perturbations, language models, sampling and the rest.

    Fits a mixed model with a variance for each of the first three by restricted maximum likelihood. Its rest holds the
    sampling of replies, which is known from other samples, and what perturbations do at one seed and not at another.

    Args:
        values: The measure, one value per run.
        seeds: Seed of each run.
        perturbations: Perturbation of each run.
        llms: Language model of each run.
        sampling: Variance by the sampling of replies alone; None: not known, so that it stays in the rest.

    Returns:
        The shares, which add up to 1; empty if nothing varies, or there are too few runs.
    """
    column = np.asarray(values, dtype=np.float64)
    known = np.isfinite(column)
    factors = {"seed": seeds, "perturbation": perturbations, "language model": llms}
    levels = {name: np.unique(np.asarray(of, dtype=str)[known], return_inverse=True)[1] for name, of in factors.items()}
    levels = {name: of for name, of in levels.items() if len(of) and of.max() > 0}
    column = column[known]
    if not levels or len(column) < 3 * len(levels) or float(np.ptp(column)) == 0:
        return []
    components = _components(column, list(levels.values()))
    total = float(sum(components))
    if not total > 0:
        return []
    names = [*levels, "rest"]
    if sampling is not None:
        of_sampling = min(sampling, components[-1])
        components = [*components[:-1], of_sampling, components[-1] - of_sampling]
        names = [*levels, "sampling", "rest"]
    return [VarianceShare(name, part / total) for name, part in zip(names, components, strict=True)]


def _components(column: FloatArray, levels: Sequence[npt.NDArray[np.intp]]) -> list[float]:
    """Estimate the variance of each crossed factor, and of the rest, by restricted maximum likelihood.

    The likelihood is profiled over mean and scale, so that one logarithm of a ratio of variances is left per factor.
    """
    scale = float(column.std())
    designs = [np.eye(int(of.max()) + 1)[of] for of in levels]
    bounds = [(-LOG_RATIO, LOG_RATIO)] * len(levels)
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000, "maxfun": 10_000}
    best = minimize(
        lambda logs: _deviance(np.exp(logs), column / scale, designs)[:2],
        np.zeros(len(levels)),
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
        options=options,
    )
    ratios = np.where(best.x < 1 - LOG_RATIO, 0.0, np.exp(best.x))  # at the border there is no such variance
    rest = _deviance(ratios, column / scale, designs)[2]
    return [float(part) * scale**2 for part in [*(ratios * rest), rest]]


def _deviance(ratios: FloatArray, column: FloatArray, designs: Sequence[FloatArray]) -> tuple[float, FloatArray, float]:
    """Return minus twice the restricted log-likelihood of ratios of variances to the rest's, up to a constant.

    Args:
        ratios: Ratio of each factor.
        column: The measure, one value per run.
        designs: Levels of each factor, shape `(runs, levels)`, with a one where a run has a level.

    Returns:
        The deviance, its slope by the logarithm of each ratio, and the variance of the rest.

    Source:
        Harville (1977), Maximum likelihood approaches to variance component estimation, JASA 72(358).
    """
    n = len(column)
    covariance = np.eye(n) + sum(ratio * each @ each.T for ratio, each in zip(ratios, designs, strict=True))
    inverse = np.linalg.inv(covariance)
    row = inverse.sum(axis=0)
    projection = inverse - np.outer(row, row) / row.sum()
    residual = projection @ column
    square = float(column @ residual)
    deviance = float(np.linalg.slogdet(covariance)[1] + np.log(row.sum()) + (n - 1) * np.log(square))
    slopes = [
        np.sum((projection @ each) * each) - (n - 1) * np.sum((each.T @ residual) ** 2) / square for each in designs
    ]
    return deviance, ratios * np.array(slopes), square / (n - 1)
