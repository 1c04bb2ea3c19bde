"""Rows of a sweep's table: chosen, in the order of their seeds, and added up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from mesa_llm import ConfigError


def runs_with(rows: pd.DataFrame, **chosen: Any) -> pd.DataFrame:
    """Return the runs with some values, in the order of their seeds.

    Args:
        rows: One row a run.
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
    """Return a figure of the runs with some values, in the order of their seeds; None for a run without it.

    Args:
        rows: One row a run.
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
