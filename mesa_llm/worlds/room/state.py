"""What a room holds: who is in it, what was said, who kept silent, and what was answered aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mesa_llm.records.frozen import frozen

Manner = Literal["speak", "choose", "decide_write", "write_decide", "pass_token"]
"""How somebody comes to speak when called on: always; speak or wait, at once; first decide whether, then write; first
write, then decide whether to send it; write, where a token in the text passes."""

FIRST_PHASE: dict[str, str] = {
    "interact": "interact",
    "speak": "write",
    "choose": "choose",
    "decide_write": "decide",
    "write_decide": "draft",
    "pass_token": "token",
}
"""Manner → what is asked first."""

Kind = Literal["say", "gesture", "do", "leave"]
"""What a line is: words; a sign without words; a deed; the speaker leaves."""

MoveKind = Literal["turn", "none", "say", "gesture", "do", "leave"]
"""What a move is: a turn begins; nothing is done; or a line of a kind."""


@dataclass(frozen=True)
class Member:
    """Somebody in the room."""

    agent_id: int
    """Mesa `unique_id`."""

    name: str
    """What the others call it."""

    manner: Manner | Literal["interact"] = "speak"
    """How it comes to speak; `interact`: it speaks, shows or does something, leaves, or waits, at once."""

    pass_token: str = "<pass>"
    """What passes, where whole texts are read for it."""

    use_token: str = "<speak>"
    """What does not, for its prompts."""

    shows_opening: bool = True
    """Whether it reads when the room was opened."""

    has_examples: bool = False
    """Whether it reads examples of speaking and waiting."""

    is_timed: bool = True
    """Whether its lines have a time; in the original, only those of persons who decide whether to speak."""

    is_prefixed: bool = False
    """Whether, in the original, its replies go on after its own time and name."""

    brief: str = ""
    """What it alone reads first."""

    reads_once: bool = False
    """Whether it reads each line, and its brief, only once, as somebody who remembers them by itself."""


@frozen
class Line:
    """Something that was said."""

    speaker_id: int
    """Who said it."""

    speaker: str
    """Its name."""

    text: str
    """What was said, as it was written."""

    time: str = ""
    """Time of day, `HH:MM:SS`; empty: none."""

    viewers: tuple[int, ...] | None = None
    """Who hears it, the speaker included; None: everyone."""

    survey: str = ""
    """Id of the question that it answers, under the original rules; empty: part of the conversation."""

    kind: Kind = "say"
    """What it is."""

    turn: int = 0
    """Turn in which it was said, from 1."""

    def is_heard_by(self, agent_id: int) -> bool:
        """Check whether somebody hears it."""
        return self.viewers is None or agent_id in self.viewers


@frozen
class Move:
    """What somebody did in a turn; or that a turn began."""

    agent_id: int | None
    """Who; None: a turn began."""

    kind: MoveKind
    """What it is."""


@frozen
class Silence:
    """Somebody who was called on and said nothing."""

    agent_id: int
    """Who."""

    name: str
    """Its name."""

    after: int
    """Number of lines there were."""

    time: str
    """Time of day."""

    reason: str
    """Why, in its own words or in ours."""

    draft: str = ""
    """What it wrote and did not send."""


@dataclass(frozen=True)
class Ruling:
    """What a judge, who takes no part, found in a conversation."""

    after: int
    """Number of lines there were."""

    agreed: bool | None
    """Whether all have agreed; None: no usable reply came."""

    reason: str
    """Why, in its own words, or why there is no ruling."""


@dataclass(frozen=True)
class SurveyAnswer:
    """An answer that was given aside."""

    question: str
    """Id of the question."""

    agent_id: int
    """Who answered."""

    name: str
    """Its name."""

    after: int
    """Number of lines there were."""

    answer: Any
    """The answer; None: there is none."""

    failure: str = ""
    """Why there is none."""
