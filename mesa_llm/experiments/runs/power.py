"""Power: how many runs a comparison needs to find the smallest effect that would matter, from a pilot.

    found = power(GiftModel, "gini", 0.05, llm=["gpt-4o", "rule"], seeds=10, out="runs/pilot")
    found.table            # one row per pair of arms: runs, calls and dollars that it takes

The pilot is a sweep: the study that follows goes on in its folder with more seeds, and asks nothing twice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from mesa import Model

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.findings import Arms, Findings, Table, Value
from mesa_llm.experiments.runs.sweep import Sweep, sweep
from mesa_llm.statistics import ALPHA, MIN_RUNS, deviation_bound, effect_needed, runs_needed
from mesa_llm.text import counted, figure_text

WANTED = 0.8
"""Default probability to find the effect."""

N_SEEDS = 10
"""Default number of runs of each arm in a pilot."""

SURE = 0.8
"""How sure the larger number of runs is to be enough: a pilot gives too small a deviation half of the time."""

COSTS = ("calls", "dollars")
"""Costs of a run, as the table of a sweep names them."""

ITSELF = "itself, with other seeds"
"""Second arm where there is one arm alone."""


@dataclass(frozen=True)
class Power(Findings):
    """How many runs a comparison needs."""

    measure: str
    """Name of the measure."""

    smallest_effect: float
    """Smallest difference that should be found, in the unit of the measure."""

    wanted: float
    """Wanted probability to find it."""

    pilot: Sweep = field(repr=False)
    """The pilot."""

    rows: Sequence[dict[str, Value]] = field(repr=False)
    """One row per pair of arms; see `power`."""

    @property
    def name(self) -> str:
        """Name of the findings."""
        return f"Runs needed to find a difference of {figure_text(self.smallest_effect)} in {self.measure}"

    @property
    def lead(self) -> list[str]:
        """What the numbers rest on."""
        return [
            f"Paired t-test at 5 %, a difference of {figure_text(self.smallest_effect)} found with a probability of "
            f"{self.wanted:.0%}. Runs are pairs with equal seeds; `safe` is enough even if the deviation of the pilot "
            f"is too small, which it is half of the time (80 % bound). Calls and dollars are those of `safe` for both "
            "arms, without the pilot's."
        ]

    def parts(self) -> list[Table]:
        """Return the table."""
        return [Table(f"Pilot of {counted(_n_seeds(self.pilot.arms(self.measure)), 'seed')}", list(self.rows))]

    def arms(self, measure: str) -> Arms:
        """Return the runs of the pilot, by arm.

        Args:
            measure: Name of a measure.

        Raises:
            ConfigError: If there is no such measure.
        """
        return self.pilot.arms(measure)


def power(
    model: type[Model[Any, Any]],
    measure: str,
    smallest_effect: float,
    /,
    *,
    wanted: float = WANTED,
    seeds: int | Sequence[int] = N_SEEDS,
    out: str | Path | None = None,
    **options: Any,
) -> Power:
    """Compute how many runs the comparison of arms needs, from a pilot.

    Args:
        model: The model's class.
        measure: Name of the measure, by its value in the last step.
        smallest_effect: Smallest difference that would matter, in the unit of the measure.
        wanted: Wanted probability to find it.
        seeds: Number of runs of each arm in the pilot, or their seeds.
        out: Folder of the pilot, from which a sweep with more seeds goes on; None to keep nothing.
        **options: Arms and settings, as for `mesa_llm.experiments.sweep`: `llm`, `personas`, `designs`, parameters.

    Returns:
        One row per pair of arms: `first`, `second`, standard `deviation` of the differences over pairs of runs, number
        of `pairs` in the pilot, `runs` of each arm that find the effect with the wanted probability, `safe` (the same
        with the 80 % upper bound of the deviation), and the `calls` and `dollars` of so many runs of both. An arm
        alone is compared with runs of its own with other seeds.

    Raises:
        ConfigError: If the measure is unknown, the effect is 0, or the pilot has fewer than four runs of an arm.
        BudgetExceeded: If the budget ended the pilot; the same call resumes it.
        MesaLLMError: If runs failed.

    Source:
        Browne (1995), On the use of a pilot sample for sample size determination, Statistics in Medicine 14(17).
    """
    require_effect(smallest_effect, wanted)
    pilot = sweep(model, seeds=seeds, out=out, **options)
    pilot.require_whole()
    return power_from(pilot, measure, smallest_effect, wanted)


def power_text(n: int, unit: str = "pair of runs", units: str = "pairs of runs", tests: int = 1) -> str:
    """Say how large a difference so many pairs find, in standard deviations of the differences between pairs.

    Args:
        n: Number of pairs.
        unit: What a pair is, in the singular.
        units: The same in the plural.
        tests: Number of tests for which p is corrected: the first that Holm's correction finds has this share of 5 %.
    """
    number = counted(n, unit, units)
    if n < MIN_RUNS:
        return f"{number} can show nothing: an interval and a test take {MIN_RUNS}, and a small effect many more."
    found = effect_needed(n, level=ALPHA / tests)
    level = "5 %" if tests == 1 else f"5 % over {counted(tests, 'test')}"
    return (
        f"{number} find a difference of {found:.2f} standard deviations of the differences in 80 of 100 studies "
        f"(paired t-test, two-sided, {level}). With a pilot in the unit of a measure: `mesa-llm power`."
    )


def require_effect(smallest_effect: float, wanted: float) -> None:
    """Refuse an effect or a probability that no number of runs can answer.

    Raises:
        ConfigError: If the effect is not a number other than 0, or the probability is not between 0 and 1.
    """
    if not smallest_effect or not math.isfinite(smallest_effect):
        raise ConfigError(f"the smallest effect must be a number other than 0, got {smallest_effect}")
    if not 0 < wanted < 1:
        raise ConfigError(f"the wanted power must lie between 0 and 1, such as 0.8; got {wanted}")


def power_from(pilot: Sweep, measure: str, smallest_effect: float, wanted: float = WANTED) -> Power:
    """Compute how many runs the comparison of arms needs, from a sweep that is there.

    Args:
        pilot: The sweep.
        measure: Name of the measure.
        smallest_effect: Smallest difference that would matter.
        wanted: Wanted probability to find it.

    Raises:
        ConfigError: As for `power`.
    """
    require_effect(smallest_effect, wanted)
    arms = pilot.arms(measure)
    costs = {name: _means(pilot, name) for name in COSTS}
    pairs = list(itertools.combinations(arms, 2)) or [(arm, ITSELF) for arm in arms]
    rows = [_row(arms, first, second, measure, smallest_effect, wanted, costs) for first, second in pairs]
    return Power(measure, smallest_effect, wanted, pilot, rows)


def _row(
    arms: Arms,
    first: str,
    second: str,
    measure: str,
    smallest_effect: float,
    wanted: float,
    costs: Mapping[str, Mapping[str, float]],
) -> dict[str, Value]:
    own = {seed: value for seed, value in arms[first].items() if value is not None and math.isfinite(value)}
    if second == ITSELF:
        apart, factor = list(own.values()), math.sqrt(2)
    else:
        other = arms[second]
        pairs = [(value, other.get(seed)) for seed, value in own.items()]
        apart, factor = [one - two for one, two in pairs if two is not None and math.isfinite(two)], 1.0
    n = len(apart)
    if n < MIN_RUNS:
        raise ConfigError(
            f"{first} and {second} have {counted(n, 'pair')} of runs with {measure}; a pilot needs {MIN_RUNS}, and "
            f"better {N_SEEDS}: add seeds"
        )
    deviation = factor * float(np.std(apart, ddof=1))
    runs, safe = (
        runs_needed(smallest_effect, spread, wanted) for spread in (deviation, deviation_bound(deviation, n, SURE))
    )
    both = (first, first if second == ITSELF else second)
    spent = {name: safe * sum(of.get(arm, 0.0) for arm in both) for name, of in costs.items()}
    return {
        "first": first,
        "second": second,
        "deviation": deviation,
        "pairs": float(n),
        "runs": float(runs),
        "safe": float(safe),
        **spent,
    }


def _means(pilot: Sweep, name: str) -> dict[str, float]:
    """Return the mean of a cost by arm; of a plain Mesa model there is none."""
    arms = pilot.arms(name) if name in pilot.measures else {}
    return {arm: fmean(value or 0.0 for value in runs.values()) for arm, runs in arms.items()}


def _n_seeds(arms: Arms) -> int:
    return max((len(runs) for runs in arms.values()), default=0)
