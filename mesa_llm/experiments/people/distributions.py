"""Distances between two samples of answers, ratios of their spread, and how far halves of one sample are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mesa_llm.statistics import COVERAGE, MIN_RUNS, Estimate, FloatArray

Kind = Literal["number", "choice"]
"""Whether answers are compared by their sizes, or as names."""

N_SPLITS = 400
"""Number of times that people are split at random."""

SEED = 1
"""Seed of the splits."""

MIN_SPLIT = 4
"""Minimum number of people to split."""


@dataclass(frozen=True)
class SplitHalf:
    """How far two random parts of the same people are apart: what a perfect simulation could reach."""

    mean: float
    """Mean distance over the splits."""

    upper: float
    """Distance that 95 % of the splits stay below."""


def choice_codes(samples: Sequence[Sequence[str]]) -> tuple[list[str], list[NDArray[np.intp]]]:
    """Number the choices of several samples alike.

    Returns:
        All choices, in order of their first appearance, and the number of each answer of each sample.
    """
    numbers: dict[str, int] = {}
    codes = [np.array([numbers.setdefault(one, len(numbers)) for one in sample], dtype=np.intp) for sample in samples]
    return list(numbers), codes


def distance_between(first: NDArray[Any], second: NDArray[Any], kind: Kind) -> float:
    """Compute the distance of two samples.

    Args:
        first: Numbers, or numbered choices.
        second: The same for the other sample.
        kind: Of numbers, the Wasserstein-1 distance, in their unit: how far one sample has to be moved on average to
            become the other. Of choices, the total variation, from 0 to 1: the share that would have to choose
            otherwise.
    """
    if kind == "number":
        return float(stats.wasserstein_distance(first, second))
    size = int(max(first.max(), second.max())) + 1
    shares = [np.bincount(sample, minlength=size) / len(sample) for sample in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def kolmogorov_smirnov(first: FloatArray, second: FloatArray) -> float:
    """Compute the largest difference of the cumulative distributions of two samples of numbers, from 0 to 1."""
    test: Any = stats.ks_2samp(first, second, method="asymp")
    return float(test.statistic)


def spread_of(sample: NDArray[Any], kind: Kind) -> float | None:
    """Compute how far answers differ from each other; None with fewer than two.

    Args:
        sample: Numbers, or numbered choices.
        kind: Of numbers, the variance. Of choices, the probability that two respondents chose differently (the
            Gini–Simpson index), without the bias of small samples.

    Source:
        Simpson (1949), Measurement of Diversity, Nature 163.
    """
    n = len(sample)
    if n < 2:
        return None
    if kind == "number":
        return float(sample.var(ddof=1))
    counts = np.bincount(sample)
    return float(1 - (counts * (counts - 1)).sum() / (n * (n - 1)))


def spread_ratio(
    simulated: NDArray[Any], people: NDArray[Any], kind: Kind, agents: Sequence[str] | None = None
) -> Estimate | None:
    """Divide the spread of simulated answers by that of people's, with the interval of a jackknife on log scale.

    Args:
        simulated: Simulated numbers, or numbered choices.
        people: People's.
        kind: As for `spread_of`.
        agents: Who gave each simulated answer: what one agent says with several seeds is left out together. None:
            each answer is somebody else's.

    Returns:
        The ratio, below 1 where simulated answers are too alike; its n counts agents. None with fewer than two answers
        on either side, or where people all answer alike. It has no interval below `MIN_RUNS` agents or people, or where
        all but one answer alike.

    Source:
        Miller (1968), Jackknifing variances, Annals of Mathematical Statistics 39(2).
    """
    ours, theirs = spread_of(simulated, kind), spread_of(people, kind)
    if ours is None or not theirs:
        return None
    groups = None if agents is None or len(set(agents)) == len(simulated) else np.unique(agents, return_inverse=True)[1]
    n_agents = len(simulated) if groups is None else int(groups.max()) + 1
    ratio = Estimate(ours / theirs, None, None, n_agents, "answers" if agents is None else "agents")
    own = (
        _log_spreads_without(simulated, kind)
        if groups is None
        else _log_spreads_without_groups(simulated, kind, groups)
    )
    logs = [own, _log_spreads_without(people, kind)]
    n = min(n_agents, len(people))
    if n < MIN_RUNS or not ours or not all(np.isfinite(one).all() for one in logs):
        return ratio
    squares = [(len(one) - 1) ** 2 / len(one) * float(one.var(ddof=1)) for one in logs]
    variance = sum(squares)
    if not variance:
        return ratio
    freedom = variance**2 / sum(square**2 / (len(one) - 1) for square, one in zip(squares, logs, strict=True))
    reach = float(stats.t.ppf((1 + COVERAGE) / 2, freedom)) * math.sqrt(variance)
    return replace(ratio, low=ratio.value * math.exp(-reach), high=ratio.value * math.exp(reach))


def _log_spreads_without(sample: NDArray[Any], kind: Kind) -> FloatArray:
    """Return the logarithm of the spread without each answer in turn, shape `(answers,)`; −∞ for no spread."""
    n = len(sample)
    if kind == "number":
        apart = sample - sample.mean()
        total = float(np.square(apart).sum())
        spreads = (total - np.square(apart) * n / (n - 1)) / max(n - 2, 1)
        spreads = np.where(spreads > 1e-12 * total / n, spreads, 0.0)
    else:
        counts = np.bincount(sample)
        alike = float((counts * (counts - 1)).sum())
        spreads = 1 - (alike - 2 * (counts[sample] - 1)) / max((n - 1) * (n - 2), 1)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(spreads, 0.0))


def _log_spreads_without_groups(sample: NDArray[Any], kind: Kind, groups: NDArray[np.intp]) -> FloatArray:
    """Return the logarithm of the spread without each group of answers in turn, shape `(groups,)`; −∞ for no spread."""
    spreads = [spread_of(sample[groups != one], kind) or 0.0 for one in range(int(groups.max()) + 1)]
    with np.errstate(divide="ignore"):
        return np.log(np.array(spreads))


def split_half(people: NDArray[Any], n_simulated: int, kind: Kind, rng: int = SEED) -> SplitHalf | None:
    """Split people at random, many times, and measure how far the two parts are apart.

    Chance alone puts small samples farther apart. So one part is as large as the simulated sample, but at most half of
    the people, and distances are scaled to the sizes that are compared: they grow with √(1/m + 1/n).

    Args:
        people: Numbers, or numbered choices.
        n_simulated: Number of simulated answers, or of the agents that gave them, if fewer.
        kind: As for `distance_between`.
        rng: Seed of the splits.

    Returns:
        None with fewer than `MIN_SPLIT` people, or without a simulated answer.
    """
    n = len(people)
    size = min(n_simulated, n // 2)
    if n < MIN_SPLIT or not size:
        return None
    scale = math.sqrt((1 / n_simulated + 1 / n) / (1 / size + 1 / (n - size)))
    generator = np.random.default_rng(rng)
    distances = np.empty(N_SPLITS)
    for index in range(N_SPLITS):
        mixed = generator.permutation(people)
        distances[index] = distance_between(mixed[:size], mixed[size:], kind) * scale
    return SplitHalf(float(distances.mean()), float(np.quantile(distances, COVERAGE)))
