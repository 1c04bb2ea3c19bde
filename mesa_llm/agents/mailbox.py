"""Messages between agents, sent in one step and read in the next, and news that agents hear besides what they see."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from mesa_llm.agents.text import sent_text
from mesa_llm.errors import ToolError
from mesa_llm.prompts import prompts_of
from mesa_llm.records import Message, Observation
from mesa_llm.space.surroundings import Surroundings
from mesa_llm.space.text import MAX_SHOWN
from mesa_llm.text import quoted
from mesa_llm.tools.tool import action

if TYPE_CHECKING:
    from mesa import Model


MAX_INBOX = 20
"""Maximum number of messages an agent finds in its inbox; the newest are kept."""

MESSAGE_CHARACTERS = 1_000
"""Maximum number of characters of a message in a prompt."""


class Mailbox:
    """Holds messages until the next step, so that nobody reads them while others still decide."""

    _mailboxes: ClassVar[weakref.WeakKeyDictionary[Any, Mailbox]] = weakref.WeakKeyDictionary()

    def __init__(self) -> None:
        """Open an empty mailbox."""
        self._sent: list[Message] = []
        self._inboxes: dict[int, list[Message]] = {}
        self._taken_by: set[int] = set()

    @classmethod
    def of(cls, model: Model[Any, Any]) -> Mailbox:
        """Return the mailbox of a Mesa model; a model without one gets one."""
        own = getattr(model, "mailbox", None)
        if isinstance(own, Mailbox):
            return own
        if model not in cls._mailboxes:
            cls._mailboxes[model] = cls()
        return cls._mailboxes[model]

    def send(self, sender: int, recipients: Iterable[int], text: str, time: int = 0) -> Message:
        """Store a message; it is read in the next step."""
        message = Message(sender, tuple(dict.fromkeys(recipients)), text, time)
        self._sent.append(message)
        return message

    def deliver(self) -> list[Message]:
        """Deliver what was sent to its readers, and clear what they had before."""
        messages, self._sent = self._sent, []
        self._inboxes = {}
        self._taken_by.clear()
        for message in messages:
            for recipient in message.recipients:
                self._inboxes.setdefault(recipient, []).append(message)
        return messages

    def inbox(self, agent_id: int) -> list[Message]:
        """Return the messages to an agent of the last step, oldest first."""
        return self._inboxes.get(agent_id, [])[-MAX_INBOX:]

    def take(self, agent_id: int) -> list[Message]:
        """Return an agent's inbox for its memory, once a step however often the agent acts; empty after that."""
        if agent_id in self._taken_by:
            return []
        self._taken_by.add(agent_id)
        return self.inbox(agent_id)


def reads_messages(agent: object) -> bool:
    """Check whether an agent reads its messages: agents that think do, others if their class says so.

    A class of plain Mesa agents that looks into `Mailbox.of(model)` itself sets `reads_messages = True`.
    """
    return bool(getattr(agent, "reads_messages", False))


class TalkMixin:
    """Lets an agent send messages to others of its model."""

    __slots__ = ()

    model: Any
    unique_id: int

    def observe(self) -> Observation:
        """Observe, with the recipients that the agent may write to: those who read messages.

        If the text names all others, they are the options of `send_message`. If it cannot, language models that need
        options choose among some of them, and all others may write to any agent.
        """
        body: Any = super()
        seen: Observation = body.observe()
        others = [other for other in self.model.agents if other is not self]
        readers = [other.unique_id for other in others if reads_messages(other)]
        names_all = isinstance(seen.facts, Surroundings) and seen.facts.place is None and len(others) <= MAX_SHOWN
        if not readers or not (names_all or body.opened.capabilities.needs_options):
            return seen
        near = seen.facts.neighbours if isinstance(seen.facts, Surroundings) else ()
        among = set(readers)
        recipients = [other.agent for other in near if other.agent in among] or readers
        return replace(seen, options={"send_message.to": tuple(recipients[:MAX_SHOWN]), **seen.options})

    def _has_readers(self) -> bool:
        return any(other is not self and reads_messages(other) for other in self.model.agents)

    @action(when="_has_readers")
    def send_message(self, to: int, text: Annotated[str, Field(min_length=1, max_length=1000)]) -> str:
        """Send a private message to another agent, who reads it in the next step.

        Args:
            to: Number of the agent who should read it.
            text: What you want to say.
        """
        if to == self.unique_id:
            raise ToolError("you cannot send a message to yourself.")
        recipient = next((agent for agent in self.model.agents if agent.unique_id == to), None)
        if recipient is None:
            raise ToolError(f"there is no agent {to}.")
        if not reads_messages(recipient):
            raise ToolError(f"agent {to} reads no messages.")
        agent: Any = self
        Mailbox.of(self.model).send(self.unique_id, (to,), text, agent.now)
        return sent_text(to)


def with_news(agent: Any, seen: Observation) -> Observation:
    """Append to an observation what arrived for an agent: its messages, and news of worlds that it does not observe.

    Args:
        agent: The agent.
        seen: What it sees.
    """
    model = agent.model
    inbox, bridge = Mailbox.of(model).inbox(agent.unique_id), getattr(model, "bridge", None)
    messages = [{"sender": message.sender, "text": quoted(message.text, MESSAGE_CHARACTERS)} for message in inbox]
    parts = [prompts_of(model).fill("agent_messages.md", messages=messages)] if messages else []
    lines: list[str] = []
    if bridge is not None and bridge.has_news:
        names = [world.name for world in agent.worlds]
        lines = [bridge.line(event) for event in bridge.heard(names, agent.unique_id)]
    return _extended(model, seen, parts, lines)


def with_announcements(agent: Any, worlds: Iterable[str], seen: Observation) -> Observation:
    """Append to an observation the news from outside the run that is not yet in it, and record that it was delivered.

    Args:
        agent: The agent.
        worlds: Names of the worlds that it observes.
        seen: What it sees, perhaps with news.
    """
    bridge = agent.model.bridge
    events = bridge.announcements_for(worlds, agent.unique_id)
    lines = [line for line in map(bridge.line, events) if line not in seen.news]
    return _extended(agent.model, seen, [], lines)


def _extended(model: Any, seen: Observation, parts: list[str], lines: list[str]) -> Observation:
    """Append paragraphs and lines of news; memories are still recalled by what the agent sees alone."""
    if lines:
        parts = [*parts, prompts_of(model).fill("agent_news.md", lines="\n".join(lines))]
    if not parts:
        return seen
    text = "\n\n".join(filter(None, (seen.text, *parts)))
    return replace(seen, text=text, cue=seen.cue or seen.text, news=(*seen.news, *lines))
