"""Summaries of the scores of each bias, and published ones."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class BiasScore:
    """Summary of the tests of one bias."""

    bias: str
    """Name of the bias."""

    mean: float
    """Mean score of the valid tests, from -1 to 1: positive in the expected direction; NaN if there are none."""

    mean_absolute: float
    """Mean absolute score; NaN if there are none."""

    se: float
    """Standard error of the mean; NaN with fewer than two tests."""

    n: int
    """Number of valid tests."""

    n_invalid: int
    """Number of tests that lack one of their choices; they are left out."""

    random: float
    """Exact expectation of the mean for random choices in the same tests."""


def score_of(bias: str, scores: Sequence[float], n_invalid: int, random: float) -> BiasScore:
    """Summarise the scores of the valid tests of one bias."""
    n = len(scores)
    mean = math.fsum(scores) / n if n else math.nan
    absolute = math.fsum(map(abs, scores)) / n if n else math.nan
    se = math.sqrt(math.fsum((one - mean) ** 2 for one in scores) / (n - 1) / n) if n > 1 else math.nan
    return BiasScore(bias, mean, absolute, se, n, n_invalid, random)


def published(model: str) -> dict[str, float]:
    """Load the published mean score of each bias for one language model, or `Random`; empty for unknown ones."""
    file = resources.files("mesa_llm_models.cognitive_biases").joinpath("data", "published.csv")
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return {row["bias"]: float(row["mean"]) for row in rows if row["model"] == model}
