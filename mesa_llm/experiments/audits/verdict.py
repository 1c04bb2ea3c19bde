"""Statistics of an audit: whether a claim is shown, and whether it is stable under each perturbation.

Seeds are blocks: every perturbation runs with the seeds of the baseline, and is compared with it seed by seed, so that
what runs share by their seed, and decisions by their wording, is never counted as evidence twice. Stable means shown to
be small; what is not shown either way is undecided, however large its p.

Source:
    Student (1908), Biometrika 6(1); Schuirmann (1987), J. Pharmacokinetics and Biopharmaceutics 15(6), for two
    one-sided tests; Holm (1979), Scandinavian Journal of Statistics 6(2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import minimize

from mesa_llm.experiments.audits.claim import Expectation
from mesa_llm.statistics import ALPHA, Comparison, Estimate, adjusted_p, compare, mean_estimate

FloatArray = npt.NDArray[np.float64]

NO_RUNS = Estimate(math.nan, None, None, 0)
"""Estimate where no run has the value."""

MIN_LEVELS = 3
"""Minimum number of levels of a factor that has a share of the variance: two are one contrast."""

MAX_FEW = 10
"""Number of pairs that differ from the others from which on t is relied upon."""

LOG_RATIO = 20.0
"""Maximum logarithm of a ratio of two variances, either way."""

Shown = Literal["shown", "reversed", "absent", "not shown", "no claim"]
"""What the runs say of a claim: it is shown; its opposite is; it is shown that there is none; nothing is shown; or
nothing was claimed, but the level of a measure."""

Change = Literal["stable", "sensitive", "undecided"]
"""What a perturbation does to a claim."""


def shown(effects: Sequence[float], expectation: Expectation, smallest_effect: float, *, level: float = ALPHA) -> Shown:
    """Return what the effects of several seeds say of what is expected of them.

    An expected direction is shown by a two-sided t-test at the level, with a mean of at least the smallest effect, and
    reversed by one on the other side; it is absent if two one-sided tests show that it is smaller than the smallest
    effect. An expected range is shown by two one-sided tests within it, and absent by a two-sided test outside. Below
    `MIN_RUNS` seeds nothing is shown.

    Args:
        effects: One effect per seed.
        expectation: What is expected.
        smallest_effect: Smallest effect of interest.
        level: Level of the tests.
    """
    if not expectation.text:
        return "no claim"
    if expectation.is_equivalence:
        return _shown_within(effects, expectation, level)
    against_0 = compare(effects, [0.0] * len(effects), smallest_effect)
    if against_0 is None or against_0.p is None or against_0.equivalence_p is None:
        return "not shown"
    mean = against_0.difference.value * (1 if expectation.high > 0 else -1)
    if against_0.p <= level and mean >= smallest_effect:
        return "shown"
    if against_0.p <= level and mean < 0:
        return "reversed"
    return "absent" if against_0.equivalence_p <= level else "not shown"


def _shown_within(effects: Sequence[float], expectation: Expectation, level: float) -> Shown:
    """Return what effects say of an expected range."""
    middle, reach = (expectation.low + expectation.high) / 2, (expectation.high - expectation.low) / 2
    around = compare(effects, [middle] * len(effects), reach)
    if around is None or around.equivalence_p is None:
        return "not shown"
    if around.equivalence_p <= level:
        return "shown"
    end = expectation.high if around.difference.value > 0 else expectation.low
    beyond = compare(effects, [end] * len(effects))
    is_outside = beyond is not None and beyond.p is not None and beyond.p <= level
    return "absent" if is_outside and abs(around.difference.value) > reach else "not shown"


@dataclass(frozen=True)
class Stability:
    """What one perturbation does to the effect of a claim."""

    effect: Estimate
    """Mean effect under the perturbation, with its 95 % interval over seeds."""

    difference: Estimate
    """Mean of the effect minus that of the baseline, seed by seed, with its 95 % interval."""

    low: float | None
    """Lower end of the interval of the difference on which the judgement rests; None below `MIN_RUNS` pairs, or where
    all pairs differ alike."""

    high: float | None
    """Upper end."""

    coverage: float
    """Coverage of that interval: 0.9 in a fixed design, more where the error is spent on several looks."""

    p: float | None
    """Two-sided p of the paired t-test; None below `MIN_RUNS` pairs."""

    adjusted_p: float | None
    """The same, corrected by Holm for all perturbations that were tested with it."""

    shown: Shown
    """What the runs under the perturbation say of the claim."""

    change: Change
    """Whether the claim is stable under it."""

    is_reversed: bool
    """Whether the claim, shown in the baseline, is reversed under it."""

    look: int | None = None
    """Number of the look at which it was decided, from 1, or of the last one; None in a fixed design."""

    @property
    def n(self) -> int:
        """Number of pairs of runs."""
        return self.difference.n


@dataclass(frozen=True)
class PairedEffects:
    """Effects of a claim under one perturbation, and in the baseline."""

    baseline: Sequence[float]
    """Effects in the baseline, one per seed; NaN where a run is missing."""

    perturbed: Sequence[float]
    """Effects under the perturbation, in the same order of seeds."""

    expectation: Expectation
    """What is expected of the effect."""

    smallest_effect: float
    """Smallest effect of interest."""

    scale: float
    """Largest distance between two effects that the audit has seen, by chance and by rule as well."""


def stability(
    baseline: Sequence[float],
    perturbed: Sequence[Sequence[float]],
    expectation: Expectation,
    smallest_effect: float,
    *,
    level: float = ALPHA,
) -> list[Stability]:
    """Judge one claim under several perturbations.

    Args:
        baseline: Effect of the baseline, one per seed; NaN where a run is missing.
        perturbed: Effects under each perturbation, in the same order of seeds.
        expectation: What is expected of the effect.
        smallest_effect: Smallest effect of interest.
        level: Level of the tests.

    Raises:
        ValueError: If the numbers of seeds differ.
    """
    scale = scale_of([*baseline, *(value for one in perturbed for value in one)])
    return judge([PairedEffects(baseline, one, expectation, smallest_effect, scale) for one in perturbed], level=level)


def scale_of(effects: Iterable[float]) -> float:
    """Return the largest distance between two effects; 0 without any."""
    finite = [value for value in effects if math.isfinite(value)]
    return max(finite) - min(finite) if finite else 0.0


def judge(
    contrasts: Sequence[PairedEffects], *, level: float = ALPHA, n_stable: int = 0, look: int | None = None
) -> list[Stability]:
    """Judge all perturbations of an audit, for all its claims, at one look.

    A change is sensitive if the interval of its difference lies beyond the smallest effect on one side, and the paired
    t-test, corrected by Holm for all claims and perturbations, rejects that there is no difference; or if the claim,
    shown in the baseline, is reversed under it. It is stable if two one-sided tests show that it is smaller than the
    smallest effect. Where fewer than `MAX_FEW` pairs, and less than half of all, differ from the others, t says little:
    it is then stable only if as many such pairs as cannot be excluded would not matter, each differing by as much as
    any two effects of the two arms, or of the audit where these are all alike.

    Args:
        contrasts: The effects, one for each claim and perturbation that is not decided yet.
        level: Level of the tests.
        n_stable: Number of claims and perturbations that earlier looks found stable, which stay in the family.
        look: Number of the look; None in a fixed design.

    Raises:
        ValueError: If the numbers of seeds differ.
    """
    pairs = [_pairs(one) for one in contrasts]
    compared = [
        compare(list(other), list(base), one.smallest_effect, coverage=1 - 2 * level)
        for one, (base, other) in zip(contrasts, pairs, strict=True)
    ]
    p_values = [None if one is None else one.p for one in compared]
    adjusted = adjusted_p([*p_values, *[1.0] * n_stable], "holm")[: len(contrasts)]
    return [
        _judged(contrast, pair, one, p, level, look)
        for contrast, pair, one, p in zip(contrasts, pairs, compared, adjusted, strict=True)
    ]


def _pairs(one: PairedEffects) -> tuple[FloatArray, FloatArray]:
    """Return the effects of the seeds that have both."""
    base, other = np.asarray(one.baseline, dtype=np.float64), np.asarray(one.perturbed, dtype=np.float64)
    if len(other) != len(base):
        raise ValueError(f"a perturbation has {len(other)} seeds, the baseline {len(base)}; run both with the same")
    both = np.isfinite(base) & np.isfinite(other)
    return base[both], other[both]


def _judged(
    contrast: PairedEffects,
    pair: tuple[FloatArray, FloatArray],
    compared: Comparison | None,
    p: float | None,
    level: float,
    look: int | None,
) -> Stability:
    (base, other), coverage, smallest = pair, 1 - 2 * level, contrast.smallest_effect
    own = [value for value in contrast.baseline if math.isfinite(value)]
    now = shown(list(other), contrast.expectation, smallest, level=level)
    effect, whole = mean_estimate(list(other)) or NO_RUNS, compare(list(other), list(base))
    if compared is None or whole is None:
        nothing = (None, None, coverage, None, None)
        return Stability(effect, NO_RUNS, *nothing, now, "undecided", is_reversed=False, look=look)
    was_shown = shown(own, contrast.expectation, smallest, level=level)
    apart, is_reversed = compared.difference, was_shown == "shown" and now == "reversed"
    low = apart.value if apart.low is None else apart.low
    high = apart.value if apart.high is None else apart.high
    change: Change = "undecided"
    if is_reversed or (p is not None and p <= level and (low > smallest or high < -smallest)):
        change = "sensitive"
    elif compared.equivalence_p is not None and compared.equivalence_p <= level:
        own_scale = scale_of([*base, *other]) or contrast.scale
        change = "stable" if _few_would_not_matter(other - base, smallest, own_scale, level) else "undecided"
    interval = (apart.low, apart.high, coverage)
    return Stability(effect, whole.difference, *interval, compared.p, p, now, change, is_reversed, look)


def _few_would_not_matter(apart: FloatArray, smallest: float, scale: float, level: float) -> bool:
    """Check whether pairs that differ from most others would not matter if there were as many as cannot be excluded.

    Source:
        Clopper and Pearson (1934), Biometrika 26(4), for their share.
    """
    values, counts = np.unique(np.round(apart, 12), return_counts=True)
    usual, n = float(values[counts.argmax()]), len(apart)
    n_few = n - int(counts.max())
    if n_few >= min(MAX_FEW, n / 2):
        return True
    share = float(stats.beta.ppf(1 - level, n_few + 1, n - n_few))
    return abs(usual) + share * scale < smallest


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
    levels = {name: of for name, of in levels.items() if len(of) and of.max() + 1 >= MIN_LEVELS}
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
