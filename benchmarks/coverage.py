"""How often intervals hold the true value, and how often tests reject where there is no effect.

    python benchmarks/coverage.py                 # prints the tables of docs/statistics.md (minutes)
    python benchmarks/coverage.py --samples 500

Every public estimate of `mesa_llm.statistics`, and those of people's answers and of benchmarks that rest on it, is
computed of samples whose truth is known: 3 to 30 runs that are normal, skewed (exponential), shares (of 20 agents who
decide independently), or clustered (shares of 20 agents who sway each other). An interval of 95 % should hold the truth
in 93 to 97 % of samples, and a test at 5 % should reject in 3 to 6 %; what does not is marked.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mesa_llm.experiments.calibration.indices import sobol_indices
from mesa_llm.experiments.calibration.ranges import ParameterRange
from mesa_llm.experiments.calibration.sensitivity import sample_points
from mesa_llm.experiments.people.distributions import spread_ratio
from mesa_llm.experiments.people.prediction_powered import prediction_powered_mean
from mesa_llm.statistics import (
    COVERAGE,
    Estimate,
    cluster_means,
    compare,
    jackknife_estimate,
    krippendorff_alpha,
    line_through,
    mean_estimate,
    permutation_p,
    ratio_estimate,
    share_interval,
)

FloatArray = npt.NDArray[np.float64]

SIZES = (3, 5, 10, 20, 30)
AGENTS = 20
SEED = 20261129
COVERED, REJECTED = (0.93, 0.97), (0.03, 0.06)

Generator = np.random.Generator
Draw = Callable[[Generator, int], FloatArray]


def normal(rng: Generator, n: int) -> FloatArray:
    return rng.normal(1.0, 1.0, n)


def skewed(rng: Generator, n: int) -> FloatArray:
    return rng.exponential(1.0, n)


def shares(rng: Generator, n: int) -> FloatArray:
    return rng.binomial(AGENTS, 0.3, n) / AGENTS


def clustered(rng: Generator, n: int) -> FloatArray:
    """Draw 20 agents per run, who agree within their run (intraclass correlation 1/3), and average each run."""
    inclined = np.repeat(rng.beta(0.6, 1.4, n), AGENTS)
    agents = (rng.random(n * AGENTS) < inclined).astype(np.float64)
    return np.array(cluster_means(agents.tolist(), np.repeat(np.arange(n), AGENTS).tolist()))


DRAWS: Mapping[str, tuple[Draw, float]] = {
    "normal": (normal, 1.0),
    "skewed": (skewed, 1.0),
    "shares": (shares, 0.3),
    "clustered": (clustered, 0.3),
}
"""Name → how runs are drawn, and their true mean."""


HELD_OUT: Mapping[str, tuple[Draw, float]] = {
    "uniform": (lambda rng, n: rng.uniform(0, 1, n), 0.5),
    "t, 5 degrees of freedom": (lambda rng, n: rng.standard_t(5, n), 0.0),
    "two humps": (lambda rng, n: rng.normal(0, 1, n) + 6.0 * (rng.random(n) < 0.3), 1.8),
    "counts (Poisson, 3)": (lambda rng, n: rng.poisson(3.0, n).astype(np.float64), 3.0),
    "skewed (gamma, 2)": (lambda rng, n: rng.gamma(2.0, 1.0, n), 2.0),
    "skewed to the left": (lambda rng, n: 1.0 - rng.weibull(1.5, n), 1.0 - math.gamma(1 + 1 / 1.5)),
    "probabilities (beta, 0.8, 3)": (lambda rng, n: rng.beta(0.8, 3.0, n), 0.8 / 3.8),
}
"""Kinds of runs that no method was chosen on: name → how they are drawn, and their true mean."""


def heavily_skewed(rng: Generator, n: int) -> FloatArray:
    return rng.lognormal(0.0, 1.0, n)


def holds(estimate: Estimate | None, truth: float) -> bool | None:
    """Check whether an interval holds the truth; None without an interval."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return estimate.low <= truth <= estimate.high


def intervals(rng: Generator, n: int) -> Iterator[tuple[str, str, bool | None]]:
    """Yield, for one sample of each kind: estimate, kind, and whether its interval holds the truth."""
    for kind, (draw, mean) in {**DRAWS, "heavily skewed": (heavily_skewed, math.exp(0.5))}.items():
        yield "mean_estimate", kind, holds(mean_estimate(draw(rng, n).tolist()), mean)
    for kind, (draw, _) in DRAWS.items():
        found = compare(draw(rng, n).tolist(), draw(rng, n).tolist())
        yield "compare", kind, holds(found and found.difference, 0.0)
    for kind, (draw, mean) in DRAWS.items():
        common = draw(rng, n)
        ratio = ratio_estimate((common + draw(rng, n) + 2 * mean).tolist(), (common + 4 * mean).tolist())
        yield "ratio_estimate", kind, holds(ratio, 4 / 5)
    share = rng.uniform(0.05, 0.95)
    low, high = share_interval(int(rng.binomial(n, share)), n)
    yield "share_interval", "yes or no, once a run", low <= share <= high
    x = rng.uniform(0, 1, n)
    for kind, noise in (("normal", rng.normal(0, 1, n)), ("skewed", rng.exponential(1, n))):
        line = line_through(x.tolist(), (2 * x + noise).tolist())
        yield "line_through, slope", kind, holds(line and line.slope, 2.0)
    truth, n_scores = rng.normal(0, 2, 8), 8
    error = jackknife_estimate(truth + rng.normal(0, 1, (n, n_scores)), lambda runs: float(np.abs(runs.mean(0)).mean()))
    yield "error of a benchmark", "8 scores", holds(error, float(np.abs(truth).mean()))
    people = rng.normal(0, 1, n)
    guesses = people + rng.normal(0, 1, n)
    others = rng.normal(0, math.sqrt(2), 200)
    yield "prediction_powered_mean", "normal", holds(prediction_powered_mean(people, guesses, others).powered, 0.0)


def held_out(rng: Generator, n: int) -> Iterator[tuple[str, str, bool | None]]:
    """Yield the same for means and differences of kinds that no method was chosen on."""
    for kind, (draw, mean) in HELD_OUT.items():
        yield "mean_estimate", kind, holds(mean_estimate(draw(rng, n).tolist()), mean)
    for kind, (draw, _) in HELD_OUT.items():
        found = compare(draw(rng, n).tolist(), draw(rng, n).tolist())
        yield "compare", kind, holds(found and found.difference, 0.0)


def large_samples(rng: Generator, n: int) -> Iterator[tuple[str, str, bool | None]]:
    """Yield the same for estimates over units rather than runs, of `n` units."""
    for kind, draw in {"normal": normal, "1 to 5": lambda rng, n: 1.0 + rng.binomial(4, 0.5, n)}.items():
        yield "spread of answers", kind, holds(spread_ratio(draw(rng, n), draw(rng, n), "number"), 1.0)
    for right in (0.5, 0.8):
        truth = rng.integers(0, 3, n)
        coders = np.where(rng.random((n, 2)) < right, truth[:, None], rng.integers(0, 3, (n, 2)))
        yield "krippendorff_alpha", f"alpha {right**2:.2f}", holds(krippendorff_alpha(coders.tolist()), right**2)


def rejections(rng: Generator, n: int) -> Iterator[tuple[str, str, bool | None]]:
    """Yield, for one sample of each kind without an effect: test, kind, and whether it rejects."""
    for kind, (draw, _) in DRAWS.items():
        first, second = draw(rng, n).tolist(), draw(rng, n).tolist()
        found = compare(first, second)
        yield "compare", kind, None if found is None or found.p is None else found.p <= 1 - COVERAGE
    deviation = math.sqrt(2)
    found = compare((normal(rng, n) + deviation).tolist(), normal(rng, n).tolist(), margin=deviation)
    is_absent = None if found is None or found.equivalence_p is None else found.equivalence_p <= 1 - COVERAGE
    yield "compare, absent at the margin", "normal", is_absent


def rejections_of_groups(rng: Generator, n: int) -> Iterator[tuple[str, str, bool | None]]:
    """Yield the same for the test of three groups, which takes a while."""
    for kind in ("normal", "skewed"):
        p = permutation_p([DRAWS[kind][0](rng, n).tolist() for _ in range(3)])
        yield "permutation_p", kind, None if p is None else p <= 1 - COVERAGE


Function = Callable[[FloatArray], FloatArray]

POINTS, SEEDS = 64, 2
NOISES = (0, 1, 3)


def ishigami(x: FloatArray) -> FloatArray:
    a, b, c = np.moveaxis((2 * x - 1) * math.pi, -1, 0)
    return np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)


def sobol_g(x: FloatArray) -> FloatArray:
    return np.prod((np.abs(4 * x - 2) + np.array([0, 1, 9])) / np.array([1, 2, 10]), axis=-1)


G = 1 / 3 / np.array([1, 2, 10]) ** 2
"""Variances of the three factors of Sobol's g."""

FUNCTIONS: Mapping[str, tuple[Function, Sequence[float], Sequence[float], float]] = {
    "Ishigami": (ishigami, (0.3139, 0.4424, 0), (0.5576, 0.4424, 0.2437), 13.845),
    "Sobol's g": (
        sobol_g,
        (G / (np.prod(1 + G) - 1)).tolist(),
        (G / (1 + G) * np.prod(1 + G) / (np.prod(1 + G) - 1)).tolist(),
        float(np.prod(1 + G) - 1),
    ),
    "3 a + 4 b, and nothing": (lambda x: x[..., :2] @ np.array([3.0, 4.0]), (0.36, 0.64, 0), (0.36, 0.64, 0), 25 / 12),
    "a times b": (lambda x: x.prod(axis=-1), (3 / 7, 3 / 7), (4 / 7, 4 / 7), 7 / 144),
    "a threshold, plus b": (
        lambda x: (x[..., 0] > 0.7) + x[..., 1],
        (0.21 / (0.21 + 1 / 12), 1 / (1 + 12 * 0.21)),
        (0.21 / (0.21 + 1 / 12), 1 / (1 + 12 * 0.21)),
        0.21 + 1 / 12,
    ),
}
"""Name → function of parameters from 0 to 1, its S1, its ST, and its variance. The last two were written down after the
method, and not used to choose it.
"""


def sensitivities(rng: Generator, noise: int) -> Iterator[tuple[str, str, bool | None]]:
    """Yield, for one analysis of each function, whether its intervals hold the truth, with bounded or skewed noise."""
    for kind, (function, alone, total, variance) in FUNCTIONS.items():
        ranges = [ParameterRange(name, 0, 1, is_whole=False, default=None) for name in "abc"[: len(alone)]]
        units = sample_points(ranges, "sobol", POINTS, int(rng.integers(1 << 31)))
        shape = (*units.shape[:2], SEEDS)
        drawn = rng.choice([-1.0, 1.0], shape) if len(alone) == 3 else rng.exponential(1, shape) - 1
        found = sobol_indices(function(units[..., :-1])[..., None] + noise * math.sqrt(variance) * drawn)
        for name, known in (("S1", alone), ("ST", total)):
            for one, truth in zip(found.parameters, (*known, None), strict=True):
                estimate = one[name]
                if truth is not None:
                    yield name, kind, _holds_about(estimate, truth)
                else:
                    yield f"{name} of the dummy", "all", _holds_about(estimate, 0.0)
        yield "noise between seeds", "all", _holds_about(found.noise, noise**2 / (1 + noise**2))


def _holds_about(estimate: Estimate | None, truth: float) -> bool | None:
    """Check whether an interval holds the truth but for rounding, as one of a function without noise may be a point."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return estimate.low - 1e-4 <= truth <= estimate.high + 1e-4


def measured(
    draws: Callable[[Generator, int], Iterator[tuple[str, str, bool | None]]], sizes: Sequence[int], samples: int
) -> dict[tuple[str, str], list[float | None]]:
    """Return estimate and kind → share of samples in which it happened, by size; None without an interval or test."""
    shares_of: dict[tuple[str, str], list[float | None]] = {}
    for n in sizes:
        rng = np.random.default_rng((SEED, n))
        hits: dict[tuple[str, str], list[bool]] = {}
        tried: Counter[tuple[str, str]] = Counter()
        for _ in range(samples):
            for name, kind, hit in draws(rng, n):
                tried[name, kind] += 1
                hits.setdefault((name, kind), []).extend([] if hit is None else [hit])
        for key, found in hits.items():
            shares_of.setdefault(key, []).append(sum(found) / len(found) if 2 * len(found) > tried[key] else None)
    return shares_of


def print_table(
    found: Mapping[tuple[str, str], Sequence[float | None]],
    sizes: Sequence[int],
    within: tuple[float, float],
    unit: str,
    size: str = "n",
) -> None:
    """Print shares as a Markdown table, with a star for each outside its bounds."""
    print(f"| | {unit} | " + " | ".join(f"{size} = {n}" for n in sizes) + " |")
    print("|---" * (len(sizes) + 2) + "|")
    for (name, kind), values in found.items():
        cells = [
            "none" if one is None else f"{100 * one:.1f}{'' if within[0] <= round(one, 3) <= within[1] else ' *'}"
            for one in values
        ]
        print(f"| {name} | {kind} | " + " | ".join(cells) + " |")
    print()


def print_sensitivities(samples: int) -> None:
    """Print how often the intervals of a sensitivity analysis hold the truth."""
    print(
        f"Percent of {samples:,} analyses of {POINTS} base points and {SEEDS} seeds in which the interval of an index"
    )
    print("holds the true one; noise: standard deviation between seeds, divided by that between points.\n")
    print_table(measured(sensitivities, NOISES, samples), NOISES, COVERED, "function", "noise")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4_000)
    samples = parser.parse_args().samples
    print(f"Percent of {samples:,} samples in which a 95 % interval holds the true value (seed {SEED}).\n")
    print_table(measured(intervals, SIZES, samples), SIZES, COVERED, "runs")
    print("Kinds of runs that no method was chosen on.\n")
    print_table(measured(held_out, SIZES, samples), SIZES, COVERED, "runs")
    units = (20, 50, 100)
    print_table(measured(large_samples, units, max(samples // 4, 1)), units, COVERED, "units")
    print_sensitivities(max(samples // 40, 1))
    print(f"Percent of {samples:,} samples without an effect in which a test at 5 % rejects.\n")
    print_table(measured(rejections, SIZES, samples), SIZES, REJECTED, "runs")
    print_table(measured(rejections_of_groups, SIZES[:3], max(samples // 4, 1)), SIZES[:3], REJECTED, "runs a group")


if __name__ == "__main__":
    main()
