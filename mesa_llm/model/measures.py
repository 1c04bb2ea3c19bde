"""Measures shared by several models."""

from __future__ import annotations

import math
from collections.abc import Iterable


def gini(values: Iterable[float]) -> float:
    """Compute the Gini coefficient, from 0 (all equal) to nearly 1 (one has everything).

    Args:
        values: Nonnegative amounts, shape `(n,)`.

    Returns:
        The coefficient; 0 if there are no values or all are zero.

    Source:
        Sen (1973), On Economic Inequality: the mean absolute difference over twice the mean.
    """
    ordered = sorted(map(float, values))
    total = math.fsum(ordered)  # the same on every processor, unlike a product of NumPy arrays
    if total <= 0:
        return 0.0
    n = len(ordered)
    return math.fsum((2 * rank - n - 1) * value for rank, value in enumerate(ordered, start=1)) / (n * total)
