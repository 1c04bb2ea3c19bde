"""The clock of a room. Only events in the room advance it, so runs repeat to the second."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

DAY_S = 86_400

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


def seconds_of(time: str) -> int:
    """Convert a time of day to seconds since midnight.

    Args:
        time: `HH:MM` or `HH:MM:SS`.

    Raises:
        ValueError: If it has neither form.
    """
    match = _TIME.fullmatch(time)
    if match is None:
        raise ValueError(f"a time of day must be HH:MM or HH:MM:SS, got {time!r}")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


@lru_cache(maxsize=1024)  # many rooms show the same time
def _time_of(seconds: int) -> str:
    """Format seconds since midnight as `HH:MM:SS`."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


@dataclass
class Clock:
    """A clock that advances with each question and each message."""

    start: str = "10:00:00"
    """Time of day at the room's opening."""

    pause_s: float = 5.0
    """Seconds of thinking time per question."""

    message_s: float = 0.0
    """Seconds per message, regardless of length."""

    word_s: float = 0.5
    """Seconds per word of a message."""

    elapsed_s: float = 0.0
    """Seconds since the opening."""

    def __post_init__(self) -> None:
        """Read the time of day from `start`.

        Raises:
            ValueError: If `start` is not a time of day.
        """
        self._start_s = seconds_of(self.start)

    @property
    def now(self) -> str:
        """Time of day, `HH:MM:SS`."""
        return _time_of(int(self._start_s + self.elapsed_s) % DAY_S)

    @property
    def opening(self) -> str:
        """Time of day at the opening, `HH:MM:SS`."""
        return _time_of(self._start_s)

    def ask(self) -> None:
        """Advance by the thinking time."""
        self.elapsed_s += self.pause_s

    def say(self, text: str) -> None:
        """Advance by the time it takes to say a text."""
        self.elapsed_s += self.message_s + self.word_s * len(text.split())


def duration(seconds: float) -> str:
    """Format a duration in minutes and whole seconds, such as `7 min 50 s`. Negative durations are `0 s`."""
    whole = max(0, int(seconds))
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
