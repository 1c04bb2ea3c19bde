"""Agreement of coders: Krippendorff's alpha among several, and between a judge and people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mesa_llm.statistics.estimates import Estimate, FloatArray, jackknife_interval

Level = Literal["nominal", "ordinal", "interval"]
"""Level of measurement of labels: names, ranks, or numbers."""

MIN_UNITS = 20
"""Minimum number of units of which alpha gets an interval: with fewer, a single unit decides where it ends."""

MAX_GROUPS = 500
"""Maximum number of groups of units that the jackknife leaves out in turn; with fewer units, each is a group."""


def krippendorff_alpha(
    labels: Sequence[Sequence[Any]], level: Level = "nominal", *, interval: bool = True
) -> Estimate | None:
    """Compute Krippendorff's alpha: how far coders agree, from 1 (always) over 0 (as by chance) to negative values.

    Args:
        labels: One row per unit, with the label of each coder in it; None or NaN where missing.
        level: `nominal` compares labels as names, `ordinal` by their ranks, `interval` as numbers.
        interval: Whether to compute the interval, which takes as many times as long as there are units.

    Returns:
        Alpha with its interval over units, and the number of units with two labels or more; None if there is no such
        unit, or all labels are the same. The interval is a jackknife's on the scale −log(1 − alpha), with Student's
        quantile; there is none below `MIN_UNITS` units, or where fewer than two of them have labels that differ.

    Raises:
        ValueError: If labels are no numbers, on another level than `nominal`.

    Source:
        Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.
    """
    rows = [[label for label in row if not _is_missing(label)] for row in labels]
    return _Coincidences.among([row for row in rows if len(row) > 1], level).estimate(level, interval=interval)


def alpha_between(
    first: Sequence[Sequence[Any]], second: Sequence[Sequence[Any]], level: Level = "nominal"
) -> Estimate | None:
    """Compute Krippendorff's alpha between one label of a first group and one of a second, drawn at random per unit.

    With one coder in each group, this is `krippendorff_alpha` of the two. Coders of the same group are not compared
    with each other, so that it shows how far a judge agrees with people, and not people among themselves.

    Args:
        first: One row per unit, with the labels of the first group in it; None or NaN where missing.
        second: The same for the second group, in the same order of units.
        level: As for `krippendorff_alpha`.

    Returns:
        As `krippendorff_alpha`; units count that have labels of both groups.

    Raises:
        ValueError: If the two differ in length, or labels are no numbers, on another level than `nominal`.
    """
    if len(first) != len(second):
        raise ValueError(f"both groups need one row per unit, got {len(first)} and {len(second)}")
    both = zip(first, second, strict=True)
    pairs = [tuple([one for one in row if not _is_missing(one)] for row in rows) for rows in both]
    return _Coincidences.between([pair for pair in pairs if all(pair)], level).estimate(level)


@dataclass(frozen=True)
class _Coincidences:
    """Pairs of labels of the same unit, as in a coincidence matrix, where both orders of a pair count."""

    n_units: int
    unit: NDArray[np.intp]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    weight: FloatArray
    values: FloatArray

    @classmethod
    def among(cls, rows: Sequence[Sequence[Any]], level: Level) -> _Coincidences:
        """Pair the labels of each unit with each other."""
        pairs = [
            (unit, one, other, 1 / (len(row) - 1))
            for unit, row in enumerate(rows)
            for place, one in enumerate(row)
            for index, other in enumerate(row)
            if place != index
        ]
        return cls._of(len(rows), pairs, level)

    @classmethod
    def between(cls, rows: Sequence[tuple[Sequence[Any], ...]], level: Level) -> _Coincidences:
        """Pair the labels of two groups of coders."""
        pairs = [
            (unit, *pair, 1 / (len(first) * len(second)))
            for unit, (first, second) in enumerate(rows)
            for one in first
            for other in second
            for pair in ((one, other), (other, one))
        ]
        return cls._of(len(rows), pairs, level)

    @classmethod
    def _of(cls, n_units: int, pairs: Sequence[tuple[int, Any, Any, float]], level: Level) -> _Coincidences:
        if level == "nominal":
            numbers: dict[Any, float] = {}
            labels = [[numbers.setdefault(one, float(len(numbers))) for one in pair[1:3]] for pair in pairs]
        else:
            labels = [[float(one) for one in pair[1:3]] for pair in pairs]
        values, indices = np.unique(np.array(labels, dtype=np.float64).reshape(-1, 2), return_inverse=True)
        first, second = indices.reshape(-1, 2).T
        unit = np.array([pair[0] for pair in pairs], dtype=np.intp)
        return cls(n_units, unit, first, second, np.array([pair[3] for pair in pairs], dtype=np.float64), values)

    def alpha(self, level: Level, times: FloatArray) -> float:
        """Return alpha, with each unit counted a number of times; NaN if all labels are the same.

        Args:
            level: Level of measurement.
            times: Number of times, shape `(units,)`.
        """
        weight = self.weight * times[self.unit]
        counts = np.bincount(self.first, weight, len(self.values))
        total = weight.sum()
        if np.count_nonzero(counts) < 2:
            return math.nan
        if level == "nominal":
            observed = weight[self.first != self.second].sum()
            expected = total**2 - np.square(counts).sum()
        else:
            scale = self.values if level == "interval" else counts.cumsum() - counts / 2
            observed = (weight * np.square(scale[self.first] - scale[self.second])).sum()
            expected = 2 * (total * (counts * scale**2).sum() - (counts * scale).sum() ** 2)
        return float(1 - (total - 1) * observed / expected)

    def estimate(self, level: Level, *, interval: bool = True) -> Estimate | None:
        """Return alpha with its interval; None if nothing can be compared."""
        n = self.n_units
        alpha = self.alpha(level, np.ones(n)) if n else math.nan
        if math.isnan(alpha):
            return None
        if n < MIN_UNITS or not interval or alpha >= 1:
            return Estimate(alpha, None, None, n, "units")
        group = np.arange(n) % MAX_GROUPS
        without = np.array([self.alpha(level, (group != one).astype(np.float64)) for one in range(min(n, MAX_GROUPS))])
        if not (without < 1).all():  # also where all other labels are the same
            return Estimate(alpha, None, None, n, "units")
        low, high = jackknife_interval(-math.log1p(-alpha), -np.log1p(-without))
        return Estimate(alpha, -math.expm1(-low), -math.expm1(-high), n, "units")


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and math.isnan(label))
