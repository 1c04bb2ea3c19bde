"""Prediction-powered estimates: with many simulated answers, a small sample of people goes further.

estimate = prediction_powered_mean(people, simulated_for_them, simulated_for_others)
print(estimate.powered, estimate.classical)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mesa_llm.statistics import COVERAGE, MIN_RUNS, Estimate, FloatArray


@dataclass(frozen=True)
class PoweredEstimate:
    """A mean or a share in a population, from a few people's answers and many simulated ones."""

    powered: Estimate
    """Prediction-powered estimate, with its interval; `n` counts people."""

    classical: Estimate
    """Estimate from the people's answers alone, with Student's interval."""

    weight: float
    """Weight of the simulated answers, from 0 (of no use) to 1."""

    n_simulated: int
    """Number of units with a simulated answer alone."""


def prediction_powered_mean(
    people: Sequence[float] | FloatArray, simulated: Sequence[float] | FloatArray, others: Sequence[float] | FloatArray
) -> PoweredEstimate:
    """Estimate a mean from a few people's answers, and from simulated answers of the same and of many other units.

    The simulated answers of the others are corrected by how far the simulation is off where people answered, so that
    the estimate is right on average however wrong the simulation is, if the people are a random sample of all units. A
    simulation that predicts people well narrows the interval; the weight of one that does not goes to 0.

    Args:
        people: People's answers; 1 and 0 for a share. NaN where one is missing: that unit then counts as an other.
        simulated: Simulated answers of the same units, in the same order; a unit without one (NaN) is left out.
        others: Simulated answers of units without a person's answer.

    Raises:
        ValueError: If `people` and `simulated` differ in length, there are fewer than two of them, or there are no
            others.

    Source:
        Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), Prediction-Powered Inference, Science 382; the weight:
        Angelopoulos, Duchi and Zrnic (2023), PPI++, arXiv 2311.01453. Intervals use Student's t, as people are few.
    """
    answers, own, rest = (np.asarray(values, dtype=np.float64) for values in (people, simulated, others))
    if len(own) == len(answers):
        rest = np.concatenate([rest, own[~np.isfinite(answers)]])
        both = np.isfinite(answers) & np.isfinite(own)
        answers, own, rest = answers[both], own[both], rest[np.isfinite(rest)]
    n, n_others = len(answers), len(rest)
    if len(own) != n or n < 2 or not n_others:
        raise ValueError(
            "wanted two people or more, a simulated answer for each, and simulated answers of others; got "
            f"{n}, {len(own)} and {n_others}"
        )
    weight = _weight(answers, own, rest)
    value = answers.mean() + weight * (rest.mean() - own.mean())
    variance = (answers - weight * own).var(ddof=1) / n
    if n_others > 1:
        variance += weight**2 * rest.var(ddof=1) / n_others
    return PoweredEstimate(
        _with_ends(float(value), float(variance), n, 2 if weight else 1),  # the weight is estimated, too
        _with_ends(float(answers.mean()), float(answers.var(ddof=1) / n), n, 1),
        weight,
        n_others,
    )


def _weight(answers: FloatArray, own: FloatArray, rest: FloatArray) -> float:
    """Return the weight of simulated answers with which the variance is least, within 0 and 1."""
    spread = np.concatenate([own, rest]).var(ddof=1)
    if spread <= 0:
        return 0.0
    together = float(((answers - answers.mean()) * (own - own.mean())).sum() / (len(own) - 1))
    return float(np.clip(together / (spread * (1 + len(own) / len(rest))), 0, 1))


def _with_ends(value: float, variance: float, n: int, n_fitted: int) -> Estimate:
    if n < MIN_RUNS or not variance:
        return Estimate(value, None, None, n, "people")
    reach = float(stats.t.ppf((1 + COVERAGE) / 2, n - n_fitted)) * math.sqrt(variance)
    return Estimate(value, value - reach, value + reach, n, "people")
