"""Indices of sensitivity without the noise of seeds, which stands beside them, with a dummy parameter.

A result of a run is f(x) + noise, where f(x) is its mean over seeds at the parameters x. All indices are of f. A
product of two results of one seed contains the noise of that seed; one of different seeds does not, so squares are
replaced by products of different seeds. This needs two runs at each point.

Points come in blocks: a base point of Sobol with what lies one parameter away from it, or a trajectory of Morris. The
runs of a block have common random numbers, so that what a seed adds to all of them cancels in its differences; each
block has seeds of its own, so that blocks are independent, and intervals over blocks hold what seeds do. The dummy is
one more column of the design: its value chooses the seeds, and nothing else. Its index is 0; how far its interval
reaches is how far chance alone does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mesa_llm.statistics import MIN_RUNS, Estimate, FloatArray, mean_estimate, ratio_estimate

type Method = Literal["sobol", "morris"]
"""Method of a sensitivity analysis."""

UNIT: Mapping[str, str] = {"sobol": "base points", "morris": "trajectories"}
"""Method → what its intervals count."""


@dataclass(frozen=True)
class Indices:
    """Indices of one result."""

    parameters: Sequence[Mapping[str, Estimate | None]]
    """Index → its value with its interval, for each column of the design; the last is the dummy. None: unknown."""

    noise: Estimate | None
    """Share of the variance of single runs that is between the seeds of one point, from 0 to 1."""

    deviation: float
    """Standard deviation of the runs of one point, in the unit of the result."""

    n_seeds: int
    """Number of runs of each point."""

    seeds_needed: float
    """Number of seeds from which on their mean has at most half as much noise as signal: with two, the noise of single
    runs is no larger than the signal. Infinite without signal.
    """

    @property
    def has_too_few_seeds(self) -> bool:
        """Whether noise exceeds the signal."""
        return self.n_seeds < self.seeds_needed


def sobol_indices(values: FloatArray) -> Indices:
    """Compute first-order and total indices: shares of the variance of the mean over seeds.

    Args:
        values: Results, shape `(base points, 3 + parameters, seeds)`: at a point A, at A with each parameter of B and
            then with the dummy of B, and at B.

    Source:
        Saltelli et al. (2010), Computer Physics Communications 181, for S1; Jansen (1999), Computer Physics
        Communications 117, for ST. Dummy: Khorashadi Zadeh et al. (2017), Environmental Modelling & Software 91.
    """
    first, changed, last = values[:, 0], values[:, 1:-1], values[:, -1]
    weights = np.full(values.shape[1], 0.5 / (values.shape[1] - 1))
    weights[-1] = 0.5
    noise = _noise(values, (first - changed[:, -1]) ** 2 / 2)
    signal = _signal(values, weights)
    around = last - last.mean()
    found: list[Mapping[str, Estimate | None]] = []
    for place in range(changed.shape[1]):
        moved = changed[:, place] - first
        has_seeds_of_last = place == changed.shape[1] - 1
        alone = _product(around, moved) if has_seeds_of_last else around.mean(axis=-1) * moved.mean(axis=-1)
        total = _product(moved, moved) / 2
        found.append({"S1": _share(alone, signal), "ST": _share(total, signal)})
    return _indices(found, noise, signal, values.shape[2])


def morris_indices(values: FloatArray, units: FloatArray) -> Indices:
    """Compute effects of parameters over their range, in the unit of the result.

    Args:
        values: Results, shape `(trajectories, 2 + parameters, seeds)`.
        units: The points between 0 and 1, shape `(trajectories, 2 + parameters, 1 + parameters)`; the dummy is last.

    Source:
        Morris (1991), Technometrics 33(2); Campolongo, Cariboni and Saltelli (2007), Environmental Modelling &
        Software 22(10), for mu_star.
    """
    n_blocks, n_positions, n_seeds = values.shape
    steps = np.diff(units, axis=1)
    moved = np.abs(steps).argmax(axis=2)
    lengths = np.take_along_axis(steps, moved[:, :, None], axis=2)[:, :, 0]
    differences = np.diff(values, axis=1)
    order = moved.argsort(axis=1)
    effects = np.take_along_axis(differences / lengths[:, :, None], order[:, :, None], axis=1)
    of_dummy = np.take_along_axis(differences, order[:, -1:, None], axis=1)[:, 0]
    noise = _noise(values, of_dummy**2 / 2)
    signal = _signal(values, np.full(n_positions, 1 / n_positions))
    found: list[Mapping[str, Estimate | None]] = []
    for place in range(effects.shape[1]):
        one = effects[:, place]
        apart = one - one.mean()
        variance = float(_product(apart, apart).sum()) / max(n_blocks - 1, 1)
        sigma = Estimate(max(variance, 0.0) ** 0.5, None, None, n_blocks, UNIT["morris"])
        sizes = _mean(_sizes(one))
        found.append({"mu_star": sizes, "mu": _mean(one.mean(axis=-1)), "sigma": sigma})
    return _indices(found, noise, signal, n_seeds)


def _mean(values: FloatArray) -> Estimate | None:
    """Average over trajectories; where effects are alike everywhere, as of a line, the interval is the mean."""
    mean = mean_estimate(values.tolist(), UNIT["morris"])
    if mean is None or mean.low is not None or mean.n < MIN_RUNS:
        return mean
    return replace(mean, low=mean.value, high=mean.value)


def _sizes(effects: FloatArray) -> FloatArray:
    """Return the size of each effect: that of each seed in the direction of the others, averaged.

    Of chance alone it is 0 on average, and of an effect that is larger than the noise its size. The mean size itself
    would grow with the noise.
    """
    if effects.shape[1] == 1:
        return np.abs(effects[:, 0])
    others = effects.sum(axis=1, keepdims=True) - effects
    return (effects * np.sign(others)).mean(axis=1)


def _product(first: FloatArray, second: FloatArray) -> FloatArray:
    """Average products of results of different seeds, over the last axis; of one seed, take its own."""
    n = first.shape[-1]
    same = (first * second).sum(axis=-1)
    return same if n == 1 else (first.sum(axis=-1) * second.sum(axis=-1) - same) / (n * (n - 1))


def _noise(values: FloatArray, of_dummy: FloatArray) -> FloatArray:
    """Return the variance between the runs of one point in each block; of one seed, between the values of the dummy."""
    if values.shape[2] == 1:
        return of_dummy[:, 0]
    return values.var(axis=2, ddof=1).mean(axis=1)


def _signal(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what each block adds to the variance of f over points; of one seed, of the results."""
    n = len(values)
    around = values - values.mean(axis=(0, 2), keepdims=True)
    return (_product(around, around) * weights).sum(axis=-1) * n / max(n - 1, 1)


def _share(part: FloatArray, whole: FloatArray) -> Estimate | None:
    """Divide two means over blocks; None where the whole is not shown to be larger than 0."""
    if not whole.mean() > 0:
        return None
    found = replace(ratio_estimate(part.tolist(), whole.tolist()), unit=UNIT["sobol"])
    return found if found.low is not None or found.n < MIN_RUNS else None


def _indices(
    found: Sequence[Mapping[str, Estimate | None]], noise: FloatArray, signal: FloatArray, n_seeds: int
) -> Indices:
    if n_seeds == 1:
        signal = signal - noise
    share = _share(noise, signal + noise)
    if share is not None and share.low is not None and share.high is not None:
        share = replace(share, low=max(share.low, 0.0), high=min(share.high, 1.0))
    variance, of_points = float(noise.mean()), float(signal.mean())
    needed = np.ceil(2 * variance / of_points) if of_points > 0 else np.inf
    return Indices(found, share, variance**0.5, n_seeds, float(needed) if variance else 1.0)
