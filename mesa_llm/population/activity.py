"""From how often people were seen active to the probability that they are, hour by hour."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

HOURS = 24
LIFTED_BELOW = 0.6
"""Values below are lifted in OASIS's code."""

LIFT = 0.1
"""By how much."""


def hourly_activity(counts: npt.ArrayLike, rule: Literal["paper", "code"] = "paper") -> npt.NDArray[np.float64]:
    """Turn counts of activity into probabilities of being active.

    Args:
        counts: How often each user was active in each hour from midnight on, shape `(users, 24)`.
        rule: `paper`: p_ij = f_ij / max_k f_kj, each hour's busiest user being certain; an hour in which nobody was
            active has probability 0. `code`: f_ij / max f over all users and hours, plus 0.1 where that is below
            0.6, rounded to two places, as OASIS computed it in November 2024.

    Returns:
        Probabilities, shape `(users, 24)`.

    Raises:
        ValueError: If the shape is another, or a count is negative or not a finite number.

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, section 2.5; camel-ai/oasis, commit ef761c0.
    """
    frequency = np.asarray(counts, dtype=np.float64)
    if frequency.ndim != 2 or frequency.shape[1] != HOURS:
        raise ValueError(f"counts need the shape (users, {HOURS}), got {frequency.shape}")
    if not np.isfinite(frequency).all() or (frequency < 0).any():
        raise ValueError("counts must be finite numbers from 0")
    if rule == "paper":
        maximum = frequency.max(axis=0, initial=0)
        return np.divide(frequency, maximum, out=np.zeros_like(frequency), where=maximum > 0)
    share = frequency / max(frequency.max(initial=0), 1e-300)
    return np.round(np.where(share < LIFTED_BELOW, share + LIFT, share), 2)
