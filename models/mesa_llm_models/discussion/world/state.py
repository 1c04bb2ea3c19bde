"""State of a room: members, lines, silences, and private survey answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mesa_llm.records.frozen import frozen

Manner = Literal["speak", "choose", "decide_write", "write_decide", "pass_token"]
"""How a member responds when called on: always speaks; speaks or waits, in one decision; decides whether to speak, then
writes; writes, then decides whether to send; or writes, with a token in the text for a pass.
"""

FIRST_PHASE: dict[str, str] = {
    "interact": "interact",
    "speak": "write",
    "choose": "choose",
    "decide_write": "decide",
    "write_decide": "draft",
    "pass_token": "token",
}
"""Manner → kind of the first question."""

Kind = Literal["say", "gesture", "do", "leave"]
"""Kind of a line: words; a gesture; an action; the speaker leaves."""

MoveKind = Literal["turn", "none", "say", "gesture", "do", "leave"]
"""Kind of a move: a turn begins; nothing is done; or a line of a kind."""


@dataclass(frozen=True)
class Member:
    """A person in the room."""

    agent_id: int
    """Mesa `unique_id`."""

    name: str
    """Name used by the others."""

    manner: Manner | Literal["interact"] = "speak"
    """How it responds when called on. `interact`: it speaks, gestures, acts, leaves or waits, in one decision."""

    pass_token: str = "<pass>"
    """Token for a pass, if replies are searched for it."""

    use_token: str = "<speak>"
    """Token for speaking, as named in its prompts."""

    shows_opening: bool = True
    """Whether its prompt gives the time of the opening."""

    has_examples: bool = False
    """Whether its prompt has examples of speaking and waiting."""

    is_timed: bool = True
    """Whether its lines have a time. In the original, only those of persons who decide whether to speak do."""

    is_prefixed: bool = False
    """Whether its replies continue its own time and name, in the original."""

    brief: str = ""
    """Private text it reads first."""

    reads_once: bool = False
    """Whether it reads each line, and its brief, only once, like an agent with its own memory."""


@frozen
class Line:
    """A line of the conversation."""

    speaker_id: int
    """Id of the speaker."""

    speaker: str
    """Name of the speaker."""

    text: str
    """The text as written."""

    time: str = ""
    """Time of day, `HH:MM:SS`; empty for none."""

    viewers: tuple[int, ...] | None = None
    """Ids of those who hear it, including the speaker; None for everyone."""

    survey: str = ""
    """Id of the survey question it answers, under the original rules; empty if it belongs to the conversation."""

    kind: Kind = "say"
    """Its kind."""

    turn: int = 0
    """Turn of the line, from 1."""

    def is_heard_by(self, agent_id: int) -> bool:
        """Check whether a member hears it."""
        return self.viewers is None or agent_id in self.viewers


@frozen
class Move:
    """A member's move in a turn, or the beginning of a turn."""

    agent_id: int | None
    """Id of the member; None at the beginning of a turn."""

    kind: MoveKind
    """Its kind."""


@frozen
class Silence:
    """A member who was called on but stayed silent."""

    agent_id: int
    """Id of the member."""

    name: str
    """Name of the member."""

    after: int
    """Number of lines before it."""

    time: str
    """Time of day."""

    reason: str
    """The reason, in the member's words or ours."""

    draft: str = ""
    """Text written but not sent."""


@dataclass(frozen=True)
class Ruling:
    """The ruling of a judge, who does not take part in the conversation."""

    after: int
    """Number of lines before it."""

    agreed: bool | None
    """Whether all have agreed; None without a usable reply."""

    reason: str
    """The judge's reason, or why there is no ruling."""


@dataclass(frozen=True)
class SurveyAnswer:
    """A private survey answer."""

    question: str
    """Id of the question."""

    agent_id: int
    """Id of the respondent."""

    name: str
    """Name of the respondent."""

    after: int
    """Number of lines before it."""

    answer: Any
    """The answer, or None."""

    failure: str = ""
    """Reason for a missing answer."""
