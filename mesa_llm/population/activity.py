"""Compute hourly activity probabilities from counts of past activity."""

from __future__ import annotations

import random
from typing import Literal

import numpy as np
import numpy.typing as npt

HOURS = 24
LIFTED_BELOW = 0.6
"""Values below this one are raised in OASIS's code."""

LIFT = 0.1
"""Amount by which they are raised."""

CORE_SHARE, ORDINARY_SHARE = 0.1, 0.01
"""Probability of being active in a step, for core and ordinary users (OASIS's runs with a million users)."""

ActivityForm = Literal["paper", "code", "reddit", "core"]
"""Source of users' hours of activity; see `activity_table`."""

FloatArray = npt.NDArray[np.float64]


def hourly_activity(counts: npt.ArrayLike, rule: Literal["paper", "code"] = "paper") -> FloatArray:
    """Convert counts of activity to probabilities of being active.

    Args:
        counts: How often each user was active in each hour from midnight on, shape `(users, 24)`.
        rule: `paper`: p_ij = f_ij / max_k f_kj, so that each hour's busiest user has probability 1; hours without any
            activity have probability 0. `code`: f_ij / max f over all users and hours, plus 0.1 where that is below
            0.6, rounded to two places, as OASIS computed it in November 2024.

    Returns:
        Probabilities, shape `(users, 24)`.

    Raises:
        ValueError: If the shape is wrong, or a count is negative or not finite.

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, section 2.5; camel-ai/oasis, commit ef761c0.
    """
    frequency = np.asarray(counts, dtype=np.float64)
    if frequency.ndim != 2 or frequency.shape[1] != HOURS:
        raise ValueError(f"counts need the shape (users, {HOURS}), got {frequency.shape}")
    if not np.isfinite(frequency).all() or (frequency < 0).any():
        raise ValueError("counts must be finite and not negative")
    if rule == "paper":
        maximum = frequency.max(axis=0, initial=0)
        return np.divide(frequency, maximum, out=np.zeros_like(frequency), where=maximum > 0)
    share = frequency / max(frequency.max(initial=0), 1e-300)
    return np.round(np.where(share < LIFTED_BELOW, share + LIFT, share), 2)


def activity_table(
    form: ActivityForm,
    n: int,
    counts: npt.ArrayLike | None = None,
    *,
    n_core: int = 0,
    share: float = CORE_SHARE,
    ordinary_share: float = ORDINARY_SHARE,
    rng: random.Random | int,
) -> FloatArray:
    """Return each user's probabilities of being active, hour by hour.

    Args:
        form: `paper`, `code`: from counts, see `hourly_activity`. `reddit`: the same probability for everyone at
            every hour, as in OASIS's runs on Reddit. `core`: core users have one probability, the others a smaller
            one, as in OASIS's runs with a million users.
        n: Number of users.
        counts: How often users were active, shape `(rows, 24)`. With one row per user, rows are used in order;
            otherwise each user gets a random row.
        n_core: Number of core users, which come first.
        share: Probability of core users (`core`), or of everyone (`reddit`).
        ordinary_share: Probability of the others (`core`).
        rng: Source of random draws, or a seed; only used to assign random rows.

    Returns:
        Probabilities, shape `(n, 24)`.

    Raises:
        ValueError: If the form needs counts that are missing, a probability is outside 0 to 1, or there are more core
            users than users.

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, section 2.5 and appendix F.
    """
    if not (0 <= share <= 1 and 0 <= ordinary_share <= 1):
        raise ValueError(f"a probability must be 0 to 1, got {share!r} and {ordinary_share!r}")
    if form == "reddit":
        return np.full((n, HOURS), share)
    if form == "core":
        if not 0 <= n_core <= n:
            raise ValueError(f"n_core must be 0 to {n}, the number of users, got {n_core}")
        return np.repeat(np.where(np.arange(n) < n_core, share, ordinary_share)[:, None], HOURS, axis=1)
    if counts is None:
        raise ValueError(f"activity {form!r} is computed from counts of activity, and there are none")
    hours = hourly_activity(counts, form)
    if len(hours) == n:
        return hours
    if not len(hours):
        raise ValueError("the counts of activity have no row")
    generator = np.random.default_rng(rng.getrandbits(64) if isinstance(rng, random.Random) else rng)
    return hours[generator.integers(0, len(hours), n)]
