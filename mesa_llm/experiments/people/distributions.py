"""Distances between two samples of answers, ratios of their spread, and how far halves of one sample are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mesa_llm.statistics import COVERAGE, SEED, Estimate, FloatArray

Kind = Literal["number", "choice"]
"""Whether answers are compared by their sizes, or as names."""

N_SPLITS = 400
"""Number of times that people are split at random."""

N_RESAMPLES = 1_000
"""Number of bootstrap samples of a ratio."""

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


def spread_ratio(simulated: NDArray[Any], people: NDArray[Any], kind: Kind) -> Estimate | None:
    """Divide the spread of simulated answers by that of people's, with a percentile bootstrap interval.

    Returns:
        The ratio, below 1 where simulated answers are too alike; its n counts simulated answers. None with fewer than
        two answers on either side, or where people all answer alike.
    """
    ours, theirs = spread_of(simulated, kind), spread_of(people, kind)
    if ours is None or not theirs:
        return None
    rng = np.random.default_rng(SEED)
    over, under = (_resampled_spread(sample, kind, rng) for sample in (simulated, people))
    ratios = (over / np.where(under > 0, under, np.nan))[under > 0]
    ends = [None, None]
    if len(ratios) > COVERAGE * N_RESAMPLES:
        ends = np.quantile(ratios, ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)).tolist()
    return Estimate(ours / theirs, ends[0], ends[1], len(simulated))


def _resampled_spread(sample: NDArray[Any], kind: Kind, rng: np.random.Generator) -> FloatArray:
    n = len(sample)
    if kind == "number":
        blocks = [rng.choice(sample, (100, n)).var(axis=1, ddof=1) for _ in range(N_RESAMPLES // 100)]
        return np.concatenate(blocks)
    counts = rng.multinomial(n, np.bincount(sample) / n, N_RESAMPLES)
    return 1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))


def split_half(people: NDArray[Any], n_simulated: int, kind: Kind, rng: int = SEED) -> SplitHalf | None:
    """Split people at random, many times, and measure how far the two parts are apart.

    Chance alone puts small samples farther apart. So one part is as large as the simulated sample, but at most half of
    the people, and distances are scaled to the sizes that are compared: they grow with √(1/m + 1/n).

    Args:
        people: Numbers, or numbered choices.
        n_simulated: Number of simulated answers.
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
