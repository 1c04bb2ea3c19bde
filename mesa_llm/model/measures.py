"""Measures that several models take."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def gini(values: Iterable[float]) -> float:
    """Compute the Gini coefficient: 0 where all have the same, close to 1 where one has everything.

    Args:
        values: What each has, shape `(n,)`, none below zero.

    Returns:
        The coefficient; 0 for nobody, and where nobody has anything.

    Source:
        Sen (1973), On Economic Inequality: the mean absolute difference over twice the mean.
    """
    ordered = np.sort(np.fromiter(values, float))
    total = float(ordered.sum())
    if total <= 0:
        return 0.0
    n = len(ordered)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * total))
