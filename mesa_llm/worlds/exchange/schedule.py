"""The order of a trading day: loans, sessions, forecasts, posts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from mesa_llm.errors import ConfigError
from mesa_llm.worlds.amounts import is_whole

Stage = Literal["loan", "trade", "estimate", "post", "closed"]
"""What is decided now: loans; orders, in turn; forecasts for the next day; posts; nothing more."""


class Moment(NamedTuple):
    """Where in its calendar the exchange is."""

    day: int
    """Day, from 1."""

    stage: Stage
    """What is decided now."""

    session: int
    """Trading session: 0 before the first of the day, and the last one's number after it."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """How long the exchange is open."""

    days: int = 10
    """Trading days: 264 in the original program, 10 in Shachi's study."""

    sessions: int = 3
    """Trading sessions a day."""

    def __post_init__(self) -> None:
        """Check the lengths.

        Raises:
            ConfigError: If there is no day or no session, or not a whole number of them.
        """
        if not all(is_whole(count) and count >= 1 for count in (self.days, self.sessions)):
            raise ConfigError(f"{self.days!r} days of {self.sessions!r} sessions; at least 1 of each is wanted, whole")

    def after(self, now: Moment) -> Moment:
        """Give the moment that follows."""
        match now.stage:
            case "loan":
                return Moment(now.day, "trade", 1)
            case "trade" if now.session < self.sessions:
                return Moment(now.day, "trade", now.session + 1)
            case "trade":
                return Moment(now.day, "estimate", now.session)
            case "estimate":
                return Moment(now.day, "post", now.session)
            case "post" if now.day < self.days:
                return Moment(now.day + 1, "loan", 0)
            case _:
                return Moment(now.day, "closed", now.session)
