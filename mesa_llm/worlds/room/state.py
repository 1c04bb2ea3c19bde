"""State of a room: members, lines, silences, and answers given aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mesa_llm.records.frozen import frozen

Manner = Literal["speak", "choose", "decide_write", "write_decide", "pass_token"]
"""How a member responds when called on: always speaks; speaks or waits, in one decision; decides whether to speak, then
writes; writes, then decides whether to send it; writes, where a token in the text means a pass."""

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
"""Kind of a line: words; a sign without words; a deed; the speaker leaves."""

MoveKind = Literal["turn", "none", "say", "gesture", "do", "leave"]
"""Kind of a move: a turn begins; nothing is done; or a line of a kind."""


@dataclass(frozen=True)
class Member:
    """A person in the room."""

    agent_id: int
    """Mesa `unique_id`."""

    name: str
    """Name that the others use."""

    manner: Manner | Literal["interact"] = "speak"
    """How it responds when called on; `interact`: it speaks, shows or does something, leaves, or waits, in one
    decision."""

    pass_token: str = "<pass>"
    """Token that means a pass, if whole texts are searched for it."""

    use_token: str = "<speak>"
    """Token that means speaking, as its prompts name it."""

    shows_opening: bool = True
    """Whether its prompt says when the room was opened."""

    has_examples: bool = False
    """Whether its prompt has examples of speaking and waiting."""

    is_timed: bool = True
    """Whether its lines have a time; in the original, only those of persons who decide whether to speak."""

    is_prefixed: bool = False
    """Whether, in the original, its replies continue its own time and name."""

    brief: str = ""
    """Private text that it reads first."""

    reads_once: bool = False
    """Whether it reads each line, and its brief, only once, as an agent with a memory of its own does."""


@frozen
class Line:
    """A line of the conversation."""

    speaker_id: int
    """Id of the speaker."""

    speaker: str
    """Name of the speaker."""

    text: str
    """The text, as it was written."""

    time: str = ""
    """Time of day, `HH:MM:SS`; empty: none."""

    viewers: tuple[int, ...] | None = None
    """Ids of those who hear it, the speaker included; None: everyone."""

    survey: str = ""
    """Id of the question that it answers, under the original rules; empty: it is part of the conversation."""

    kind: Kind = "say"
    """Its kind."""

    turn: int = 0
    """Turn in which it was said, from 1."""

    def is_heard_by(self, agent_id: int) -> bool:
        """Check whether a member hears it."""
        return self.viewers is None or agent_id in self.viewers


@frozen
class Move:
    """What a member did in a turn, or the beginning of a turn."""

    agent_id: int | None
    """Id of the member; None: a turn began."""

    kind: MoveKind
    """Its kind."""


@frozen
class Silence:
    """A member who was called on and said nothing."""

    agent_id: int
    """Id of the member."""

    name: str
    """Name of the member."""

    after: int
    """Number of lines before it."""

    time: str
    """Time of day."""

    reason: str
    """The reason, in the member's words or in ours."""

    draft: str = ""
    """Text that was written and not sent."""


@dataclass(frozen=True)
class Ruling:
    """The ruling of a judge, who takes no part in the conversation."""

    after: int
    """Number of lines before it."""

    agreed: bool | None
    """Whether all have agreed; None: no usable reply came."""

    reason: str
    """The judge's reason, or the reason why there is no ruling."""


@dataclass(frozen=True)
class SurveyAnswer:
    """An answer that was given aside."""

    question: str
    """Id of the question."""

    agent_id: int
    """Id of the respondent."""

    name: str
    """Name of the respondent."""

    after: int
    """Number of lines before it."""

    answer: Any
    """The answer; None: there is none."""

    failure: str = ""
    """Reason why there is no answer."""
