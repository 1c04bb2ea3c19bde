"""Spread of a post over time, minute by minute: of a real post from an OASIS file, or of a simulated one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from mesa_llm.errors import ConfigError
from mesa_llm.tables import read_json
from mesa_llm.tools.validation import is_number, is_whole

FloatArray = npt.NDArray[np.float64]

MAX_MINUTES = 1_000_000
"""Maximum number of minutes in a file, about two years."""


@dataclass(frozen=True, slots=True, eq=False)
class SpreadCurves:
    """Three measures of a spreading post, of equal length, with one value per minute from its publication.

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, section 3.1.
    """

    scale: FloatArray
    """Users in the cascade, including the author."""

    depth: FloatArray
    """Largest distance of a user from the author."""

    max_breadth: FloatArray
    """Largest number of users at one distance from the author, 0 before the first share."""

    def __len__(self) -> int:
        """Count the minutes."""
        return len(self.scale)

    def until(self, minutes: int) -> Self:
        """Return the first minutes. Beyond its end, each curve keeps its last value.

        Args:
            minutes: Number of minutes, from minute 0 on.

        Raises:
            ValueError: If it is below 1.
        """
        if minutes < 1:
            raise ValueError(f"curves need 1 minute or more, got {minutes}")
        columns = (getattr(self, column.name) for column in fields(self))
        return type(self)(*(_lasting(column, minutes) for column in columns))

    @classmethod
    def of_steps(
        cls, size: Sequence[float], depth: Sequence[float], breadth: Sequence[float], step_minutes: float
    ) -> Self:
        """Make curves from measures at the end of each step, such as those of `SocialWorld.cascade`.

        A value holds until the next one. Step 0 is minute 0.

        Args:
            size: Users in the cascade, by step.
            depth: Largest distance, by step.
            breadth: Largest number of users at one distance, by step.
            step_minutes: Simulated minutes per step.

        Raises:
            ValueError: If there are no steps, the measures have different lengths, or a step takes no time.
        """
        if not len(size) == len(depth) == len(breadth) or not len(size):
            raise ValueError(
                f"curves need 1 step or more, with equal lengths, got {len(size)}, {len(depth)} and {len(breadth)}"
            )
        if not (math.isfinite(step_minutes) and step_minutes > 0):
            raise ValueError(f"step_minutes must be a number above 0, got {step_minutes!r}")
        minutes = np.arange(int((len(size) - 1) * step_minutes) + 1)
        steps = np.minimum((minutes / step_minutes + 1e-9).astype(np.int64), len(size) - 1)
        shared_breadth = np.where(np.asarray(size) > 1, breadth, 0)  # in OASIS's files, the author alone has breadth 0
        return cls(*(np.asarray(column, dtype=np.float64)[steps] for column in (size, depth, shared_breadth)))


def read_curves(path: str | Path) -> SpreadCurves:
    """Read the spread of a real post from an OASIS file (`…_real_propagation.json`).

    The file is an object with the lists `scale`, `depth` and `max_breadth`, each with the minutes of its values
    (`scale_time`, …). Omitted minutes keep the previous value; shorter lists keep their last value.

    Raises:
        ConfigError: If the file cannot be read or has another format. The message names the list and the entry.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise ConfigError(f"{path} contains a {type(document).__name__}; expected an object of lists")
    lists = cast("dict[str, Any]", document)
    columns = [_curve(lists, column.name, path) for column in fields(SpreadCurves)]
    minutes = max(len(column) for column in columns)
    return SpreadCurves(*(_lasting(column, minutes) for column in columns))


def _curve(lists: dict[str, Any], name: str, path: str | Path) -> FloatArray:
    """Read one curve, one value per minute."""
    values, minutes = (_list(lists, key, path) for key in (name, f"{name}_time"))
    if len(values) != len(minutes):
        raise ConfigError(f"{path}: {name!r} has {len(values)} values for {len(minutes)} minutes in '{name}_time'")
    last_minute, last_value = -1, 0.0
    for index, (minute, value) in enumerate(zip(minutes, values, strict=True)):
        if not is_whole(minute) or not last_minute < minute < MAX_MINUTES or (index == 0 and minute):
            wanted = "a minute after the one before" if index else "minute 0"
            raise ConfigError(f"{path}: '{name}_time', entry {index}: found {minute!r:.80}; expected {wanted}")
        if not is_number(value) or value < last_value:
            raise ConfigError(
                f"{path}: {name!r}, entry {index}: found {value!r:.80}; expected a number of {last_value:g} or more, "
                "because spread never decreases"
            )
        last_minute, last_value = minute, value
    entries = np.searchsorted(np.asarray(minutes), np.arange(last_minute + 1), side="right") - 1
    return np.asarray(values, dtype=np.float64)[entries]


def _list(lists: dict[str, Any], key: str, path: str | Path) -> list[Any]:
    values = lists.get(key)
    if not isinstance(values, list) or not values:
        found = "nothing" if values is None else f"{values!r:.80}"
        raise ConfigError(f"{path}: found {found} under {key!r}; expected a list of numbers, one per minute")
    return cast("list[Any]", values)


def _lasting(column: FloatArray, minutes: int) -> FloatArray:
    """Cut a curve, or extend its last value, to a number of minutes."""
    return column[np.minimum(np.arange(minutes), len(column) - 1)]
