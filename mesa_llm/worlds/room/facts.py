"""Facts that a member of a room observes, as values."""

from __future__ import annotations

from mesa_llm.records.frozen import frozen
from mesa_llm.worlds.room.state import Line


@frozen
class RoomFacts:
    """Facts that a member of a room observes."""

    name: str
    """Name of the member."""

    others: tuple[str, ...]
    """Names of the others who are present."""

    lines: tuple[Line, ...]
    """Lines that it has heard, oldest first."""

    n_earlier: int
    """Number of lines before those, which are not shown."""

    now: str
    """Time of day."""

    opening: str
    """Time of day at which the room was opened."""

    seconds_left: float | None
    """Seconds until the time is up; None: there is no limit, or it is not shown."""

    phase: str
    """Kind of question: `write`, `choose`, `decide`, `draft`, `token`, `interact`; empty: none."""

    draft: str = ""
    """Text that it has written, and may send now."""

    question: str = ""
    """Question that everybody is asked aside, under the original rules."""

    turn: int = 1
    """Number of the turn, from 1."""

    brief: str = ""
    """Private text for this member, if it reads it now; empty: it has read it before, or reads it elsewhere."""

    is_news: bool = False
    """Whether the lines are only those since the last question to this member."""
