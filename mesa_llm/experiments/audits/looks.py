"""Looks of an audit: after how many seeds its changes are judged, and at which level.

Who looks again and again, and stops at what pleases, finds what is not there. So the looks are fixed beforehand, and
the 5 % of error are spent on them: the level of a look rises in proportion to its number of seeds, and all looks
together are wrong in 5 %. A change that is decided gets no further runs.

Source:
    Armitage, McPherson and Rowe (1969), Repeated significance tests on accumulating data, JRSS A 132(2), for the
    integration; Jennison and Turnbull (1999), Group Sequential Methods, for spending and stopping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from mesa_llm.errors import ConfigError
from mesa_llm.statistics import ALPHA, MIN_RUNS, effect_needed
from mesa_llm.text import counted

FIRST, EVERY, MAX_SEEDS = 10, 5, 80
"""Number of seeds at the first look, between two looks, and at the last one."""

WANTED = 0.8
"""Probability to find what an audit is said to find."""

MAX_LISTED = 5
"""Number of looks up to which a text lists them all."""

OF_NORMAL_SCORES = 0.94
"""Share of the error that is spent for normal scores: t of few pairs crosses its bounds a little more often."""

SCORES = np.linspace(-8.0, 8.0, 161)
"""Grid of normal scores."""


@dataclass(frozen=True)
class AuditLook:
    """One look at the runs of an audit."""

    n_seeds: int
    """Number of seeds at which it is taken."""

    level: float
    """Level of each test, before the correction for several changes."""

    number: int | None
    """Its number, from 1; None in a fixed design, which has only one."""


def look_numbers(max_seeds: int = MAX_SEEDS) -> tuple[int, ...]:
    """Return the numbers of seeds at which an audit looks by default: 10, 15, … up to a maximum.

    Args:
        max_seeds: Number of seeds at the last look.

    Raises:
        ConfigError: If that is below `MIN_RUNS`.
    """
    numbers = tuple(n for n in range(FIRST, max_seeds, EVERY) if n < max_seeds)
    return require_looks((*numbers, max_seeds))


def require_looks(numbers: Sequence[int]) -> tuple[int, ...]:
    """Return numbers of seeds at which an audit may look.

    Raises:
        ConfigError: If they do not rise, or the first is below `MIN_RUNS`.
    """
    if not numbers or numbers[0] < MIN_RUNS or any(after <= n for n, after in pairwise(numbers)):
        raise ConfigError(f"looks are rising numbers of seeds, {MIN_RUNS} or more, got {list(numbers)}")
    return tuple(numbers)


def looks_at(numbers: Sequence[int]) -> list[AuditLook]:
    """Return looks at given numbers of seeds, with the levels that spend the error.

    Args:
        numbers: Numbers of seeds, as `require_looks` returns them.
    """
    levels = _levels(tuple(numbers))
    return [AuditLook(n, level, index) for index, (n, level) in enumerate(zip(numbers, levels, strict=True), 1)]


@lru_cache(maxsize=64)
def _levels(numbers: tuple[int, ...]) -> tuple[float, ...]:
    if len(numbers) == 1:
        return (ALPHA,)
    shares = np.array(numbers) / numbers[-1]
    last = brentq(lambda level: _error(numbers, level * shares) - OF_NORMAL_SCORES * ALPHA, 1e-4, ALPHA, xtol=1e-6)
    return tuple(float(level) for level in float(last) * shares)  # pyright: ignore[reportArgumentType]


def _error(numbers: Sequence[int], levels: np.ndarray) -> float:
    """Compute how probably two-sided tests reject at any look where there is no effect, for normal scores."""
    step, error = float(SCORES[1] - SCORES[0]), 0.0
    density, before = stats.norm.pdf(SCORES), 0
    for n, bound in zip(numbers, stats.norm.isf(np.asarray(levels) / 2), strict=True):
        if before:
            apart = np.sqrt(n) * SCORES[:, None] - np.sqrt(before) * SCORES[None, :]
            moves = stats.norm.pdf(apart / np.sqrt(n - before)) * np.sqrt(n / (n - before))
            density = (moves * density).sum(axis=1) * step
        goes_on = np.clip((bound - np.abs(SCORES)) / step + 0.5, 0, 1)
        error += float((density * (1 - goes_on)).sum()) * step
        density, before = density * goes_on, n
    return error


def power_text(looks: Sequence[AuditLook], n_tests: int) -> str:
    """Describe which change an audit finds, at its first look and at its last.

    Args:
        looks: Its looks.
        n_tests: Number of claims and perturbations, for which p is corrected.
    """
    ends = [look for look in dict.fromkeys((looks[0], looks[-1])) if look.n_seeds >= MIN_RUNS]
    if not ends or not n_tests:
        return f"Nothing can be judged: that takes a change, and {MIN_RUNS} seeds or more."
    parts = [f"{effect_needed(one.n_seeds, WANTED, one.level / n_tests):.2g} with {one.n_seeds} seeds" for one in ends]
    return (
        f"Found with a probability of {WANTED:.0%}, corrected for {counted(n_tests, 'test')}: a change of at least "
        f"{' and '.join(parts)}, in standard deviations of the difference between two runs with one seed."
    )


def looks_text(looks: Sequence[AuditLook]) -> str:
    """Describe looks for a methods section; empty for a fixed design."""
    if len(looks) < 2:
        return ""
    numbers = [str(look.n_seeds) for look in looks]
    listed = ", ".join(numbers if len(numbers) <= MAX_LISTED else [*numbers[:2], "…", numbers[-1]])
    return (
        f"The audit looked at its runs after {listed} seeds, as fixed beforehand; the level of each test rose from "
        f"{looks[0].level:.2g} to {looks[-1].level:.2g} in proportion to the number of seeds, so that all looks "
        f"together err in {ALPHA:.0%}, and a change that was decided got no further runs."
    )
