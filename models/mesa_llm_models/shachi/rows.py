"""Rows of a sweep's table: selection, ordering by seed, sums, and how many more seeds they need."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from mesa_llm import ConfigError
from mesa_llm.statistics import MIN_RUNS


def runs_with(rows: pd.DataFrame, **chosen: Any) -> pd.DataFrame:
    """Return the runs with the given values, ordered by seed.

    Args:
        rows: One row per run.
        **chosen: Column → required value.
    """
    mask = pd.Series(True, index=rows.index)
    for key, value in chosen.items():
        mask &= rows[key] == value
    return rows.loc[mask, :].sort_values("seed")


def total(rows: pd.DataFrame, name: str) -> float:
    """Return the sum of a column."""
    return float(rows[name].to_numpy(dtype=np.float64).sum())


def column(rows: pd.DataFrame, name: str, **chosen: Any) -> list[float | None]:
    """Return a figure of the runs with the given values, ordered by seed; None where missing.

    Args:
        rows: One row per run.
        name: Name of the figure.
        **chosen: Column → required value.

    Raises:
        ConfigError: If there are no such runs.
    """
    runs = runs_with(rows, **chosen)
    if runs.empty:
        raise ConfigError(f"there are no runs with {chosen}")
    values = [None if value is None else float(value) for value in runs[name]]
    return [None if value is None or not math.isfinite(value) else value for value in values]


def lack_of_seeds(n_seeds: int) -> str:
    """Describe how many more seeds intervals and tests need; empty if there are enough.

    Args:
        n_seeds: Number of seeds.
    """
    if n_seeds >= MIN_RUNS:
        return ""
    return f"An interval and a test need {MIN_RUNS} seeds ({n_seeds} here)."
