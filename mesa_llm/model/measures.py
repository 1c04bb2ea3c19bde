"""Measures that several models take."""

from __future__ import annotations

import math
from collections.abc import Iterable


def gini(values: Iterable[float]) -> float:
    """Compute the Gini coefficient: 0 where all have the same, close to 1 where one has everything.

    Args:
        values: What each has, shape `(n,)`, none below zero.

    Returns:
        The coefficient; 0 for nobody, and where nobody has anything.

    Source:
        Sen (1973), On Economic Inequality: the mean absolute difference over twice the mean.
    """
    ordered = sorted(map(float, values))
    total = math.fsum(ordered)  # the same on every processor, unlike a product of numpy arrays
    if total <= 0:
        return 0.0
    n = len(ordered)
    return math.fsum((2 * rank - n - 1) * value for rank, value in enumerate(ordered, start=1)) / (n * total)
