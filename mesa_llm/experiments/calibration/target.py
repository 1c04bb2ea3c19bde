"""Targets of calibrations: observed series, the steps that are held out, and the distance of a model from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mesa_llm.errors import ConfigError
from mesa_llm.statistics import FloatArray
from mesa_llm.tables import columns_of, read_table, whole_rows
from mesa_llm.text import counted

if TYPE_CHECKING:
    import pandas as pd

STEP = "step"
"""Column of a target with the number of the step; 0 is the state before the first one."""

HOLD_OUT = 0.25
"""Default share of the steps that is held out."""

MIN_STEPS = 2
"""Minimum number of steps to fit, and to hold out."""


@dataclass(frozen=True)
class Target:
    """Observed series that a model is to follow."""

    values: pd.DataFrame
    """One row per step, by number, and one column per series; NaN where nothing was observed."""

    n_fitted: int
    """Number of rows to fit, the first ones; the others are held out."""

    @property
    def names(self) -> list[str]:
        """Names of the series, those of reporters of the model."""
        return list(self.values.columns)

    @property
    def steps(self) -> list[int]:
        """Numbers of the steps."""
        return self.values.index.tolist()

    @property
    def array(self) -> FloatArray:
        """The values, shape `(steps, series)`."""
        return self.values.to_numpy(np.float64)

    @property
    def is_fitted(self) -> NDArray[np.bool_]:
        """Whether there is a value to fit, shape `(steps to fit, series)`."""
        return np.isfinite(self.array[: self.n_fitted])

    @property
    def scale(self) -> FloatArray:
        """Standard deviation of each series over the steps to fit, shape `(series,)`; 1 where it does not vary."""
        fitted = self.array[: self.n_fitted]
        spread = np.nanstd(fitted, axis=0)
        return np.where(spread > 0, spread, 1.0)

    def errors(self, mean: FloatArray) -> tuple[float, float]:
        """Compute the errors of a course in the steps to fit and in those held out.

        An error is the root mean square over steps and series, each in units of its standard deviation: 1 is as far off
        as the mean of the observed series would be.

        Args:
            mean: The course, averaged over runs, shape `(steps, series)`.

        Returns:
            Both errors; NaN where the course has no value.
        """
        squares = np.square((mean - self.array) / self.scale)
        is_observed = np.isfinite(self.array)
        parts = (slice(None, self.n_fitted), slice(self.n_fitted, None))
        fitted, held_out = (math.sqrt(squares[part][is_observed[part]].mean()) for part in parts)
        return fitted, held_out

    def fitted_values(self, series: FloatArray) -> FloatArray:
        """Return the values to fit of one or more courses, in a row each.

        Args:
            series: The courses, shape `(runs, steps, series)`.

        Returns:
            Values that the target has too, shape `(runs, values)`.
        """
        return series[:, : self.n_fitted][:, self.is_fitted]


def read_target(source: str | Path | pd.DataFrame, hold_out: float = HOLD_OUT) -> Target:
    """Read observed series from a table with the column `step`.

    Args:
        source: The table, or its file: CSV, or any other that populations are read from. Cells may be empty.
        hold_out: Share of the steps that is held out, the last ones.

    Raises:
        ConfigError: If there is no column `step` or no other one, a cell is no number, a step occurs twice, or too few
            steps can be fitted or held out.
    """
    import pandas as pd

    place = "the target" if isinstance(source, pd.DataFrame) else str(source)
    rows = [row for row in whole_rows(source, read_table(source, (STEP,))) if row]
    columns = columns_of(rows)
    names = [name for name in columns if name != STEP]
    if STEP not in columns or not names:
        raise ConfigError(
            f"{place} has the columns {', '.join(columns)}; wanted {STEP!r}, with the number of the step, and a column "
            "for each series, named like a reporter of the model's data collector"
        )
    values = [[_number(row.get(name), name, place) for name in (STEP, *names)] for row in rows]
    frame = pd.DataFrame(values, columns=[STEP, *names])
    steps: list[float] = frame[STEP].tolist()
    if any(not step >= 0 or step % 1 for step in steps) or len(set(steps)) < len(steps):
        raise ConfigError(f"{place}: the column {STEP!r} numbers each step once, from 0 or 1; got {steps!s:.200}")
    frame = frame.astype({STEP: int}).set_index(STEP).sort_index().dropna(how="all")
    return Target(frame, _n_fitted(frame, hold_out, place))


def _number(cell: Any, name: str, place: str) -> float:
    if cell is None:
        return math.nan
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise ConfigError(f"{place}: the column {name!r} holds {cell!r:.60}; wanted a number") from None


def _n_fitted(frame: pd.DataFrame, hold_out: float, place: str) -> int:
    n = len(frame)
    if not 0 < hold_out < 1:
        raise ConfigError(f"hold-out is the share of the steps that is held out, between 0 and 1; got {hold_out!r}")
    n_held_out = math.ceil(hold_out * n - 1e-9)
    if min(n_held_out, n - n_held_out) < MIN_STEPS:
        raise ConfigError(
            f"{place} has {counted(n, 'step')}, of which {n - n_held_out} would be fitted and {n_held_out} held out; "
            f"both need {MIN_STEPS} or more: give more steps, or another hold-out than {hold_out:g}"
        )
    for part in (frame.iloc[: n - n_held_out], frame.iloc[n - n_held_out :]):
        if empty := [name for name in frame.columns if part[name].isna().all()]:
            raise ConfigError(
                f"{place}: the series {empty[0]!r} has no value in the steps {part.index[0]} to {part.index[-1]}; "
                "leave the series out, or give another hold-out"
            )
    return n - n_held_out
