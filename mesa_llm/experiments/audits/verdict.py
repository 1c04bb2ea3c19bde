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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from mesa_llm.experiments.audits.claim import Expectation
from mesa_llm.statistics import ALPHA, Comparison, Estimate, adjusted_p, compare, mean_estimate

FloatArray = npt.NDArray[np.float64]

NO_RUNS = Estimate(math.nan, None, None, 0)
"""Estimate where no run has the value."""

MIN_LEVELS = 3
"""Minimum number of levels of a factor that has a share of the variance: two are one contrast."""

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


def stability(
    baseline: Sequence[float],
    perturbed: Sequence[Sequence[float]],
    expectation: Expectation,
    smallest_effect: float,
    *,
    level: float = ALPHA,
) -> list[Stability]:
    """Judge all perturbations of an audit.

    Args:
        baseline: Effect of the baseline, one per seed; NaN where a run is missing.
        perturbed: Effects under each perturbation, in the same order of seeds.
        expectation: What is expected of the effect.
        smallest_effect: Smallest effect of interest.
        level: Level of the tests.

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
    compared = [compare(list(other), list(base), smallest_effect, coverage=1 - 2 * level) for base, other in pairs]
    adjusted = adjusted_p([None if one is None else one.p for one in compared], "holm")
    was_shown = shown(list(own[np.isfinite(own)]), expectation, smallest_effect, level=level)
    return [
        _judged(base, other, one, p, was_shown, expectation, smallest_effect, level)
        for (base, other), one, p in zip(pairs, compared, adjusted, strict=True)
    ]


def _judged(
    base: FloatArray,
    other: FloatArray,
    compared: Comparison | None,
    p: float | None,
    was_shown: Shown,
    expectation: Expectation,
    smallest: float,
    level: float,
) -> Stability:
    effect, whole = mean_estimate(list(other)) or NO_RUNS, compare(list(other), list(base))
    now = shown(list(other), expectation, smallest, level=level)
    if compared is None or whole is None:
        return Stability(effect, NO_RUNS, None, None, 1 - 2 * level, None, None, now, "undecided", is_reversed=False)
    apart, is_reversed = compared.difference, was_shown == "shown" and now == "reversed"
    low = apart.value if apart.low is None else apart.low
    high = apart.value if apart.high is None else apart.high
    change: Change = "undecided"
    if is_reversed or (p is not None and p <= level and (low > smallest or high < -smallest)):
        change = "sensitive"
    elif compared.equivalence_p is not None and compared.equivalence_p <= level:
        change = "stable"
    interval = (apart.low, apart.high, 1 - 2 * level)
    return Stability(effect, whole.difference, *interval, compared.p, p, now, change, is_reversed)


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
