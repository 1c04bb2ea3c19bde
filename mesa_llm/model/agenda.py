"""Turns at event times: agents set timers and wake each other, and all that are due in one window decide together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mesa_llm.engine.activation import Turn
from mesa_llm.errors import ConfigError
from mesa_llm.records import Observation

MAX_WINDOWS = 1_000
"""Maximum number of windows in a unit of time."""


@dataclass(slots=True, eq=False)
class Waking:
    """An agent's turn at a time to come."""

    time: float
    """Time at which it is due, in Mesa's unit."""

    agent: Any
    """The agent that decides."""

    observation: Observation | None = None
    """Observation that it decides on; None: the result of its `observe()` then."""

    is_cancelled: bool = False
    """Whether it does not take place."""

    def cancel(self) -> None:
        """Cancel it; does nothing once it has taken place."""
        self.is_cancelled = True


class Agenda:
    """The turns to come, by the window in which they are due.

    Time is cut into windows of equal length, 1/n of Mesa's unit. Window k lasts from (k - 1)/n, excluded, to k/n, where
    the turns that are due in it take place together, in the order of their times.
    """

    def __init__(self, window: float) -> None:
        """Start empty.

        Args:
            window: Length of a window, in Mesa's unit: 1 or a fraction of it such as 0.25.

        Raises:
            ConfigError: If steps do not end where windows do.
        """
        self.n_per_unit = 0 if not 0 < window <= 1 else round(1 / window)
        if not 1 <= self.n_per_unit <= MAX_WINDOWS or abs(self.n_per_unit * window - 1) > 1e-9:
            raise ConfigError(
                f"wake_window={window!r}: a step is cut into whole windows; give 1, or a fraction of it such as 0.5, "
                f"0.25 or 0.1 (at least 1/{MAX_WINDOWS})"
            )
        self._windows: dict[int, list[Waking]] = {}

    def add(self, waking: Waking, now: float) -> float | None:
        """Add a turn.

        Args:
            waking: The turn.
            now: The present time; a turn due at the end of a window that has ended already falls into the next one.

        Returns:
            Time at which its window ends, if it is the first one in it and that is not when a step is made.

        Raises:
            ConfigError: If its time has passed, or is no number.
        """
        if not math.isfinite(waking.time) or waking.time < now:
            raise ConfigError(f"an agent cannot be woken at {waking.time!r}: it is {now} now; give at= or after= ahead")
        index = math.ceil(waking.time * self.n_per_unit - 1e-9)
        if index <= now * self.n_per_unit + 1e-9:
            index = math.floor(now * self.n_per_unit + 1e-9) + 1
        is_first = index not in self._windows
        self._windows.setdefault(index, []).append(waking)
        return index / self.n_per_unit if is_first and index % self.n_per_unit else None

    def take(self, now: float) -> list[Turn]:
        """Take out the turns of all windows that have ended, in the order of their times.

        An agent that is due several times without an observation of its own has one turn.

        Args:
            now: The present time.
        """
        ended = sorted(index for index in self._windows if index <= now * self.n_per_unit + 1e-9)
        wakings = [waking for index in ended for waking in self._windows.pop(index) if not waking.is_cancelled]
        turns: dict[Any, Turn] = {}
        for waking in sorted(wakings, key=lambda one: one.time):
            key = waking.agent if waking.observation is None else waking
            turns.setdefault(key, Turn(waking.agent, waking.observation))
        return list(turns.values())
