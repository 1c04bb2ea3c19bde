"""Conversations inside a step: agents speak in turn, hear all that was said, and remember it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesa_llm.agents.talk import MAX_UTTERANCE, Speech, silence_in
from mesa_llm.agents.text import MAX_REMEMBERED
from mesa_llm.errors import ConfigError
from mesa_llm.memory import MemoryEntry, NoMemory
from mesa_llm.prompts import prompts_of
from mesa_llm.records import Decision, Failure, Message, Observation, Outcome
from mesa_llm.text import MAX_NAME, one_line, quoted

LABEL = "conversation"
"""Label of the turns of a conversation, in the run log."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What somebody says in a conversation."""

    speaker: Any
    """The agent that speaks."""

    name: str
    """Its name."""

    text: str
    """What it says, on one line."""

    def __str__(self) -> str:
        """Return the name and what was said, as the others read it."""
        return f"{self.name}: {quoted(self.text, MAX_UTTERANCE)}"

    def as_read_by(self, agent: Any) -> str:
        """Return the line as an agent reads it."""
        return f"You: {quoted(self.text, MAX_UTTERANCE)}" if self.speaker is agent else str(self)


@dataclass(frozen=True, slots=True)
class SilentTurn:
    """A turn in which somebody said nothing."""

    speaker: Any
    """The agent that was silent."""

    name: str
    """Its name."""

    after: int
    """Number of utterances before it."""

    reason: str
    """Why: what was wrong with what it would have said; empty if it wanted to say nothing."""

    def __str__(self) -> str:
        """Return that it is a silence, and why, in parentheses."""
        return f"(silent: it {self.reason})" if self.reason else "(silent)"


@dataclass(slots=True)
class Dialogue:
    """A conversation so far."""

    agents: Sequence[Any]
    """Who talks, in the order in which they speak."""

    topic: str | Callable[[Any], str] = ""
    """What it is about: a text that all of them read, or a function that returns what an agent reads."""

    utterances: list[Utterance] = field(default_factory=list[Utterance])
    """What was said, in order."""

    silences: list[SilentTurn] = field(default_factory=list["SilentTurn"])
    """Turns in which somebody could have spoken and did not, in order."""

    failures: list[Failure] = field(default_factory=list[Failure])
    """Turns in which nothing could be said, in order."""

    names: dict[int, str] = field(default_factory=dict[int, str])
    """Agent id → its name in the conversation."""

    max_sentences: int | None = 2
    """Maximum number of sentences of an utterance; None: no limit."""

    n_turns: int = 0
    """Number of turns taken, including those in which nothing was said."""

    is_over: bool = False
    """Whether it has ended before its last turn."""

    @property
    def text(self) -> str:
        """What was said, a line each."""
        return "\n".join(map(str, self.utterances))

    @property
    def turns(self) -> list[tuple[Any, str, str]]:
        """Speaker, name and words of each turn, in order; for a silence, in parentheses, that it was one, and why."""
        found: list[tuple[Any, str, str]] = []
        for index in range(len(self.utterances) + 1):
            found += [(one.speaker, one.name, str(one)) for one in self.silences if one.after == index]
            found += [(one.speaker, one.name, one.text) for one in self.utterances[index : index + 1]]
        return found

    def briefing(self, agent: Any) -> str:
        """Return what an agent reads of what it is about."""
        return self.topic if isinstance(self.topic, str) else self.topic(agent)

    @property
    def speaker(self) -> Any:
        """The agent whose turn it is."""
        return self.agents[self.n_turns % len(self.agents)]

    def heard_by(self, agent: Any) -> str:
        """Return what was said as an agent reads it, a line each: its own lines are marked as “You”."""
        return "\n".join([one.as_read_by(agent) for one in self.utterances])

    def by(self, agent: Any) -> list[str]:
        """Return what an agent has said, in order."""
        return [utterance.text for utterance in self.utterances if utterance.speaker is agent]


def begin(agents: Sequence[Any], topic: str | Callable[[Any], str], max_sentences: int | None = 2) -> Dialogue:
    """Begin a conversation.

    Args:
        agents: Who talks, in the order in which they speak.
        topic: What it is about.
        max_sentences: Maximum number of sentences of an utterance; None: no limit.

    Raises:
        ConfigError: If fewer than two agents talk, or one twice.
    """
    agents = list(agents)
    if len(agents) < 2 or len(set(agents)) < len(agents):
        raise ConfigError(f"a conversation is between two agents or more, each named once; got {agents!r:.120}")
    names = {agent.unique_id: one_line(agent.config.name, MAX_NAME) for agent in agents}
    shared = {name for name, n in Counter(names.values()).items() if n > 1 or not name}
    for agent_id, name in names.items():
        if name in shared:
            names[agent_id] = f"{name} ({agent_id})" if name else f"Agent {agent_id}"
    return Dialogue(agents, topic, names=names, max_sentences=max_sentences)


def turn_of(conversation: Dialogue) -> Observation:
    """Return what the agent whose turn it is observes: what was said, and last that it may speak, and how."""
    speaker, prompts = conversation.speaker, prompts_of(conversation.speaker.model)
    own = conversation.names[speaker.unique_id]
    others = [name for name in conversation.names.values() if name != own]
    topic, lines = conversation.briefing(speaker), conversation.heard_by(speaker)
    heard = [(one.name, one.text) for one in conversation.utterances if one.speaker is not speaker]
    speech = Speech(own, tuple(others), tuple(conversation.by(speaker)), tuple(heard), conversation.max_sentences)
    text = prompts.fill("conversation.md", topic=topic, name=own, others=", ".join(others), lines=lines)
    closing = prompts.fill(
        "conversation_turn.md",
        name=own,
        others=", ".join(others),
        last=heard[-1][0] if heard else "",
        n_own=len(speech.own),
        n_lines=len(conversation.utterances),
        length=speech.length,
    )
    cue = topic or conversation.text
    return Observation(text, answer=str, label=LABEL, facts=conversation, cue=cue, closing=closing, speech=speech)


def take_turn(conversation: Dialogue, decision: Decision | Failure) -> list[Message | Outcome]:
    """Add what an agent says in its turn.

    A conversation in which the first turn of each agent has failed is over.

    Args:
        conversation: The conversation.
        decision: What the agent whose turn it is has decided; without an answer, it says nothing.

    Returns:
        What is recorded of it: the outcome, and the message to the others.
    """
    speaker = conversation.speaker
    conversation.n_turns += 1
    if isinstance(decision, Failure):
        conversation.failures.append(decision)
        n_failed = len(conversation.failures)
        conversation.is_over = n_failed >= len(conversation.agents) and n_failed == conversation.n_turns
        return []
    name = conversation.names[speaker.unique_id]
    text = spoken(str(decision.answer), name) if decision.has_answer else ""
    if not text:
        conversation.silences.append(SilentTurn(speaker, name, len(conversation.utterances), silence_in(decision)))
        return []
    conversation.utterances.append(Utterance(speaker, name, text))
    listeners = tuple(agent.unique_id for agent in conversation.agents if agent is not speaker)
    return [
        Outcome(speaker.unique_id, "say", {"text": text}, True, "", decision.label),
        Message(speaker.unique_id, listeners, text, speaker.now),
    ]


def spoken(text: str, name: str) -> str:
    """Return what is said in a reply: on one line, without the speaker's own name or quotation marks around it."""
    text = one_line(text).removeprefix(f"{name}:").strip()
    if len(text) > 1 and text[0] + text[-1] in ('""', "“”"):
        text = text[1:-1].strip()
    return one_line(text, MAX_UTTERANCE)


def remember(conversation: Dialogue) -> None:
    """Let all agents of a conversation remember what was said."""
    for agent in conversation.agents:
        if type(agent.memory) is NoMemory or agent not in agent.model.agents:
            continue
        for utterance in conversation.utterances:
            is_own = utterance.speaker is agent
            kind = "utterance" if is_own else "message"
            text = f"{'You' if is_own else utterance.name} said: {quoted(utterance.text, MAX_REMEMBERED)}"
            entry = MemoryEntry(agent.now, kind, text, unit=agent.unit_in(), is_sentence=True, moment=agent.moment_in())
            agent.memory.add(entry)


Until = Callable[[Dialogue], bool]
"""Says whether a conversation is over; called after each turn."""
