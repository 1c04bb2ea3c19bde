"""End rules of conversations, and parsing of replies with tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from mesa_llm.text import counted
from mesa_llm_models.discussion.world.clock import Clock
from mesa_llm_models.discussion.world.state import Line, Member, Move, Ruling, Silence, SurveyAnswer


class Conversation(Protocol):
    """The attributes of a room that end rules use; see `Room` for their meanings."""

    clock: Clock
    members: dict[int, Member]
    lines: list[Line]
    moves: list[Move]
    answers: list[SurveyAnswer]
    silences: list[Silence]
    rulings: list[Ruling]
    n_turns: int
    n_silent_turns: int

    @property
    def present(self) -> list[int]:
        """Ids of the members whose last move was not to leave, by seat."""
        ...


class EndRule(Protocol):
    """Decides when a conversation ends."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        ...


@dataclass(frozen=True)
class MaxLines:
    """Ends a conversation after a number of messages."""

    maximum: int
    """Number of messages. With 0 or less, it ends before it begins."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        return counted(len(room.lines), "message") if len(room.lines) >= self.maximum else ""


@dataclass(frozen=True)
class MaxTurns:
    """Ends a conversation after a number of turns, with or without messages."""

    maximum: int
    """Number of turns."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        return counted(room.n_turns, "turn") if room.n_turns >= self.maximum else ""


@dataclass(frozen=True)
class MaxTime:
    """Ends a conversation after a time limit, by the room's clock."""

    seconds: float
    """Seconds since the opening."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        return "the time is up" if room.clock.elapsed_s >= self.seconds else ""


@dataclass(frozen=True)
class EveryoneSilent:
    """Ends a conversation when everyone falls silent."""

    turns: int
    """Number of consecutive silent turns."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        return f"nobody spoke for {counted(room.n_silent_turns, 'turn')}" if room.n_silent_turns >= self.turns else ""


@dataclass(frozen=True)
class Stale:
    """Ends a conversation after too many consecutive moves without action."""

    maximum: int
    """Maximum number of such moves."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        count = 0
        for move in reversed(room.moves):
            if move.kind == "turn":
                continue
            if move.kind != "none":
                break
            count += 1
            if count > self.maximum:
                return f"nothing was done {count} times in a row" if count > 1 else "nothing was done"
        return ""


@dataclass(frozen=True)
class TooFewLeft:
    """Ends a conversation with too few people left."""

    minimum: int = 2
    """Minimum number of people."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        present = room.present
        if not room.members or len(present) >= self.minimum:
            return ""
        names = [one.name for one in room.members.values() if one.agent_id not in present]
        return f"{', '.join(names) or 'nobody'} left"


@dataclass(frozen=True)
class JustLeft:
    """Ends a conversation of two if one of the last two moves is to leave."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        leavers = [move.agent_id for move in room.moves[-2:] if move.kind == "leave"]
        names = [room.members[one].name for one in leavers if one is not None]
        return f"{', '.join(names)} left" if names else ""


@dataclass(frozen=True)
class Agreement:
    """Ends a conversation when all members' latest answers to a private survey question agree.

    Answers that happen to agree before there has been a conversation do not end it.
    """

    question: str
    """Id of the question."""

    minimum: int | None = None
    """Number of messages before which they do not end it; None: until every member has spoken or kept silent."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        if not self._has_begun(room):
            return ""
        last = {answer.agent_id: answer.answer for answer in room.answers if answer.question == self.question}
        answers = [last.get(agent_id) for agent_id in room.members]
        agreed = bool(answers) and None not in answers and all(one == answers[0] for one in answers)
        return f"all answered {self.question!r} alike: {answers[0]}" if agreed else ""

    def _has_begun(self, room: Conversation) -> bool:
        if self.minimum is not None:
            return len(room.lines) >= self.minimum
        had_turn = {line.speaker_id for line in room.lines} | {silence.agent_id for silence in room.silences}
        return had_turn >= room.members.keys()


@dataclass(frozen=True)
class JudgedAgreement:
    """Ends a conversation when a judge, who does not take part, finds that all have agreed."""

    every: int
    """Number of messages between rulings."""

    def is_due(self, room: Conversation) -> bool:
        """Check whether a ruling is due: after every `every` messages, or as soon as possible after that."""
        n_before = room.rulings[-1].after if room.rulings else 0
        return len(room.lines) // self.every > n_before // self.every

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        return "a judge found agreement" if room.rulings and room.rulings[-1].agreed else ""


@dataclass(frozen=True)
class AllOf:
    """Ends a conversation when all of several rules would end it."""

    parts: tuple[EndRule, ...]
    """The rules."""

    def reason(self, room: Conversation) -> str:
        """Return why the conversation is over; empty if it is not."""
        reasons = [part.reason(room) for part in self.parts]
        return " and ".join(reasons) if reasons and all(reasons) else ""


def first_reason(rules: Iterable[EndRule], room: Conversation) -> str:
    """Return the reason of the first rule that ends a conversation; empty if none does."""
    return next((reason for rule in rules if (reason := rule.reason(room))), "")


# -- texts with tokens, as parsed by the original

MARKER = "### Response:"
"""Last line of the original's prompts. A reply is read up to the next one."""

END_OF_TEXT = "</s>"
"""End of a reply in the original."""


def speaks(text: str, pass_token: str, *, ignores_tokens: bool = False) -> bool:
    """Check whether a text is a message, not a pass.

    Args:
        text: The text.
        pass_token: Token for a pass, wherever it occurs.
        ignores_tokens: Whether to ignore the token, as for models whose tokens are stripped.
    """
    return bool(text.strip()) and (ignores_tokens or pass_token not in text)


def cleaned(text: str, name: str, prefix: str = "") -> str:
    """Clean a reply as the original does.

    Args:
        text: The reply, without its prompt.
        name: Name of the speaker, removed from the start of the text.
        prefix: Time and name that the reply continues. With a prefix, all lines are kept; otherwise, only the first. A
            reply that adds nothing to it is read as the prefix itself.
    """
    text = f"{prefix}{text}".split(MARKER)[0].strip().split(END_OF_TEXT)[0]
    if not prefix:
        text = text.split("\n")[0]
    text = text.removeprefix(f"{name}: ")
    marker = f"] {name}: "
    if marker in text:
        text = text.split(marker)[1]
    return text.strip() if prefix else text
