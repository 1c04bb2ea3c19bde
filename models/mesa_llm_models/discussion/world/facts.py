"""Facts observed by a member of a room, as values."""

from __future__ import annotations

from mesa_llm.records.frozen import frozen
from mesa_llm_models.discussion.world.state import Line


@frozen
class RoomFacts:
    """Facts observed by a member of a room."""

    name: str
    """Name of the member."""

    others: tuple[str, ...]
    """Names of the others present."""

    lines: tuple[Line, ...]
    """Lines it has heard, oldest first."""

    n_earlier: int
    """Number of earlier lines, which are not shown."""

    now: str
    """Time of day."""

    opening: str
    """Time of day at the opening."""

    seconds_left: float | None
    """Seconds left; None if there is no limit, or it is not shown."""

    phase: str
    """Kind of question: `write`, `choose`, `decide`, `draft`, `token`, `interact`; empty for none."""

    draft: str = ""
    """Text it has written and may send now."""

    question: str = ""
    """Private survey question to everyone, under the original rules."""

    turn: int = 1
    """Number of the turn, from 1."""

    brief: str = ""
    """Private text for this member, if it reads it now; empty if it has read it before or elsewhere."""

    is_news: bool = False
    """Whether the lines are only those since the last question to this member."""
