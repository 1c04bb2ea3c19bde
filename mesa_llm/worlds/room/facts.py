"""What somebody in a room sees, as values."""

from __future__ import annotations

from mesa_llm.records.frozen import frozen
from mesa_llm.worlds.room.state import Line


@frozen
class RoomFacts:
    """What somebody in a room sees."""

    name: str
    """Its own name."""

    others: tuple[str, ...]
    """Who else is there."""

    lines: tuple[Line, ...]
    """What it has heard, oldest first."""

    n_earlier: int
    """Number of lines before those, which are not shown."""

    now: str
    """Time of day."""

    opening: str
    """Time of day at which the room was opened."""

    seconds_left: float | None
    """Seconds until the time is up; None: there is no limit, or it is not shown."""

    phase: str
    """What is asked: `write`, `choose`, `decide`, `draft`, `token`, `interact`; empty: nothing."""

    draft: str = ""
    """What it has written, and may send now."""

    question: str = ""
    """What everybody is asked aside, under the original rules."""

    turn: int = 1
    """Number of the turn, from 1."""

    brief: str = ""
    """What it alone reads, where it reads that now; empty: it has read it, or reads it elsewhere."""

    is_news: bool = False
    """Whether the lines are only those since it was asked last."""
