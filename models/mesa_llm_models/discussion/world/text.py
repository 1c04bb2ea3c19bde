"""Texts for the members of a room."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mesa_llm.records import Role
from mesa_llm.text import MAX_NAME, counted, one_line, quoted, sentences
from mesa_llm_models.discussion.world.clock import duration
from mesa_llm_models.discussion.world.facts import RoomFacts
from mesa_llm_models.discussion.world.state import Line, Member

TASKS = {
    "write": "It is your turn: tell the others what you think, in fewer than 40 words.",
    "choose": "Do you want to speak now? Then say what you think, in fewer than 40 words. Else wait, and say why.",
    "decide": "Do you want to speak now, or would you rather wait and hear what the others say? Decide, and say why.",
    "draft": "Write what you would say now, in fewer than 40 words. You decide afterwards whether to say it.",
    "token": "Write what you say now, in fewer than 40 words.",
    "interact": "It is your turn: say something, show something without words, do something, leave, or wait.",
}
"""Phase → its question."""

ASKS = (
    "Say what you yourself want, and why.",
    "Answer {last}, with a reason or an example that nobody has named yet.",
    "Ask {last} a question about it, or say what would change your mind.",
    "Say what you would accept, and on what condition.",
)
"""What is asked of somebody in its first, second, third turn …, so that there is something to say; later, but for the
first, they come round again."""

OPENING = "Nobody has spoken yet, so you begin. Say what you yourself want, and why."
"""What is asked of the first speaker."""

LENGTH = "Use your own words: one or two sentences, fewer than 40 words."
"""How long a line may be."""

SPEAKING = {
    "write": "It is your turn. {ask} {length}",
    "choose": "Do you want to speak now? {ask} {length} Else wait, and say why.",
    "draft": "{ask} {length} You decide afterwards whether to say it.",
    "token": "{ask} {length}",
}
"""Phase in which people write a line → its question."""

EXAMPLES = (
    ("Kim asks what everybody thinks, and you have not spoken yet", True),
    ("Noor says: let me explain my view first", False),
    ("Lee ends with a question to you", True),
    ("Max asks Eli, who is not you, to answer", False),
)
"""Example situations, each with whether to speak."""

RESULTS = {
    "say": "Everyone heard you.",
    "gesture": "Everyone saw it.",
    "do": "Everyone saw it.",
    "leave": "You left.",
    "silence": "You kept silent.",
    "give_floor": "{person} has the floor.",
}
"""Kind of a line, or action → what came of it."""

result_text = sentences(RESULTS)

REASONS = {
    "whisper_unheard": "everybody here hears what you say; use say.",
    "nobody_else": "there is nobody else called {to!r} here.",
    "not_moderator": "you do not moderate here.",
    "nobody": "there is nobody called {person!r} here.",
    "not_called": "nobody has called on you.",
    "not_here": "you are not in this room.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)


def conversation(facts: RoomFacts, *, has_times: bool = True, own_id: int | None = None) -> str:
    """Write the conversation, a line each; no line can forge another.

    Args:
        facts: What a member sees.
        has_times: Whether lines have their times.
        own_id: Id of the member whose own lines are marked as “You”; None: no one's.
    """
    lines = [f"({counted(facts.n_earlier, 'earlier message')} not shown)"] if facts.n_earlier else []
    lines += [_line(line, has_time=has_times, own_id=own_id) for line in facts.lines]
    return "\n".join(lines) or "Nobody has spoken yet."


def _line(line: Line, *, has_time: bool = True, own_id: int | None = None) -> str:
    time = f"[{line.time}] " if line.time and has_time else ""
    aside = "" if line.viewers is None else " (not to everyone)"
    speaker = "You" if line.speaker_id == own_id else display_name(line.speaker)
    return f"{time}{speaker}{aside}{deed(line)}"


@lru_cache(maxsize=4096)  # the same people are named in every turn
def display_name(name: str) -> str:
    """Return a name as others read it: on one line, and cut to `MAX_NAME` characters."""
    return one_line(name, MAX_NAME)


def deed(line: Line) -> str:
    """Return the description of a line that follows its speaker's name, with its text quoted."""
    match line.kind:
        case "say":
            return f": {quoted(line.text)}"
        case "gesture":
            return f", without words: {quoted(line.text)}"
        case "do":
            return f" does something: {quoted(line.text)}"
        case "leave":
            return " left."


def turns(lines: Sequence[Line]) -> str:
    """Describe the conversation turn by turn, a line each; no line can forge another."""
    return "\n".join([f"Turn {line.turn}: {_line(line)}" for line in lines])


def description(facts: RoomFacts, member: Member, *, is_original: bool = False) -> str:
    """Describe the room to a member; in the original, and in an interaction, with its question.

    Elsewhere the question comes last, after who the member is; see `question_text`.
    """
    parts = [facts.brief] if facts.brief else []
    if is_original or member.manner == "interact":
        parts.append(f"In the room with you: {', '.join(map(display_name, facts.others)) or 'nobody else'}.")
    else:  # the same words for all of them, which a local model then reads only once
        present = sorted(filter(None, (facts.name, *facts.others)))
        parts.append(f"In the room: {', '.join(map(display_name, present))}.")
    if member.manner == "interact":
        return "\n".join([*parts, *_interaction(facts)])
    has_times = member.is_timed and (is_original or facts.seconds_left is not None)
    parts += _heard(facts, member, has_times=has_times, own_id=None if is_original else member.agent_id)
    if is_original:
        parts += _asked(facts, member, is_original=True)
    return "\n".join(parts)


def question_text(facts: RoomFacts, member: Member) -> str:
    """Write what a member is asked, which ends its prompt; empty if it is asked nothing."""
    return "\n".join(_asked(facts, member, is_original=False))


def _asked(facts: RoomFacts, member: Member, *, is_original: bool) -> list[str]:
    parts: list[str] = []
    if facts.draft:
        parts.append(f"You have written this, and nobody has heard it yet: {quoted(facts.draft)}")
    if facts.question:
        parts.append(f"Everybody in the room is asked: {facts.question}")
    if facts.phase:
        parts.append(_task(facts, member, is_original=is_original))
    return parts


def _heard(facts: RoomFacts, member: Member, *, has_times: bool, own_id: int | None) -> list[str]:
    """Describe the conversation and, where time matters, when it began and what time it is."""
    parts = [f"The conversation was opened at [{facts.opening}]."] if member.shows_opening and has_times else []
    parts.append(f"What you have heard so far:\n{conversation(facts, has_times=has_times, own_id=own_id)}")
    if has_times:
        time_left = "" if facts.seconds_left is None else f" {duration(facts.seconds_left)} are left."
        parts.append(f"It is now [{facts.now}].{time_left}")
    return parts


def moderation_text(facts: RoomFacts, names: Sequence[str]) -> str:
    """Describe the conversation to the moderator, and ask who speaks next.

    Args:
        facts: What it sees.
        names: Names of those who can be given the floor.
    """
    return (
        f"You moderate a conversation between {', '.join(names)}.\n{conversation(facts)}\n"
        f"It is now [{facts.now}]. Give the floor to one of them."
    )


def heard_text(name: str) -> str:
    """Report a whisper to its speaker."""
    return f"{display_name(name)} heard you."


def _interaction(facts: RoomFacts) -> list[str]:
    earlier = f"({counted(facts.n_earlier, 'earlier line')} not shown)\n" if facts.n_earlier else ""
    heading = "What has happened since your last turn" if facts.is_news else "What has happened so far"
    history = turns(facts.lines) or "nothing yet."
    lines = f"{heading}:\n{earlier}{history}" if facts.lines else f"{heading}: {history}"
    return [lines, f"This is turn {facts.turn}.", *([TASKS["interact"]] if facts.phase else [])]


def _task(facts: RoomFacts, member: Member, *, is_original: bool) -> str:
    has_tokens = facts.phase == "token" or (is_original and facts.phase in ("decide", "choose"))
    if facts.phase == "decide" and facts.draft:
        task = "Do you want to say this now, or would you rather keep silent and hear what the others say?"
    elif facts.phase in SPEAKING and not is_original:
        task = SPEAKING[facts.phase].format(ask=_ask(facts, member), length=LENGTH)
    else:
        task = TASKS[facts.phase]
    if has_tokens:
        task += f" Write {member.pass_token} to keep silent"
        task += f", {member.use_token} to speak." if facts.phase == "decide" else "."
    if member.has_examples and facts.phase in ("decide", "choose"):
        task += "\nFor example:\n" + "\n".join(
            f"- {situation}: {_example(member, does_speak, has_tokens=has_tokens)}"
            for situation, does_speak in EXAMPLES
        )
    return task


def _ask(facts: RoomFacts, member: Member) -> str:
    """Return what is asked of a member in its turn: something to say, with the name of the one who spoke last."""
    others = [line.speaker for line in facts.lines if line.speaker_id != member.agent_id]
    if not others:
        return OPENING if not facts.lines else ASKS[-1]
    n_own = sum(line.speaker_id == member.agent_id for line in facts.lines)
    index = n_own if n_own < len(ASKS) else 1 + (n_own - 1) % (len(ASKS) - 1)
    ask = ASKS[index].format(last=display_name(others[-1]))
    return ask if index else f"{display_name(others[-1])} has just spoken. {ask}"


def _example(member: Member, does_speak: bool, *, has_tokens: bool) -> str:
    if has_tokens:
        return member.use_token if does_speak else member.pass_token
    return "speak" if does_speak else "wait"


def role_messages(lines: Sequence[Line], own_id: int | None, question: str = "") -> list[tuple[Role, str]]:
    """Return a conversation as chat messages: own lines as the assistant's, runs of others' lines as one user message.

    Args:
        lines: The conversation.
        own_id: Id of the member whose lines are its own; None: no one's, as for the copies that answer the original's
            surveys.
        question: Question to ask at the end as a system message; empty: none.

    Returns:
        Role and text of each message.
    """
    messages: list[tuple[Role, str]] = []
    for line in lines:
        if line.speaker_id == own_id:
            messages.append(("assistant", one_line(line.text)))
            continue
        text = f"{display_name(line.speaker)}: {one_line(line.text)}"
        if messages and messages[-1][0] == "user":
            text = f"{messages.pop()[1]}\n{text}"
        messages.append(("user", text))
    return [*messages, ("system", question)] if question else messages
