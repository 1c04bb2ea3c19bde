"""Messages between agents: sent in one step, read in the next."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from mesa_llm.agents.text import reason_text, said_text, sent_text
from mesa_llm.errors import ToolError
from mesa_llm.records import ActionResult, Message, Observation
from mesa_llm.space.surroundings import Surroundings
from mesa_llm.space.text import MAX_SHOWN
from mesa_llm.text import MAX_NAME, one_line
from mesa_llm.tools.tool import action

if TYPE_CHECKING:
    from mesa import Model

MAX_INBOX = 20
"""Maximum number of messages in an agent's inbox; the newest are kept."""


class Mailbox:
    """Holds messages until the next step, so no agent reads them while others still decide."""

    _mailboxes: ClassVar[weakref.WeakKeyDictionary[Any, Mailbox]] = weakref.WeakKeyDictionary()

    def __init__(self) -> None:
        """Create an empty mailbox."""
        self._sent: list[Message] = []
        self._inboxes: dict[int, list[Message]] = {}
        self._taken_by: set[int] = set()
        self._names: dict[int, str] = {}

    @classmethod
    def of(cls, model: Model[Any, Any]) -> Mailbox:
        """Return the mailbox of a Mesa model, creating it if needed."""
        own: Any = getattr(model, "mailbox", None)
        if type(own) is Mailbox:
            return own
        if model not in cls._mailboxes:
            cls._mailboxes[model] = cls()
        return cls._mailboxes[model]

    def send(self, sender: int, recipients: Iterable[int], text: str, time: int = 0) -> Message:
        """Store a message; it is read in the next step."""
        message = Message(sender, tuple(dict.fromkeys(recipients)), text, time)
        self._sent.append(message)
        return message

    def deliver(self, *, keeps_unread: bool = False) -> list[Message]:
        """Deliver the messages sent, replacing those delivered before.

        Args:
            keeps_unread: Whether agents that have not taken theirs since keep them, as between the stages of a step, in
                which not everybody has a turn.
        """
        messages, self._sent = self._sent, []
        if keeps_unread:
            self._inboxes = {agent: inbox for agent, inbox in self._inboxes.items() if agent not in self._taken_by}
        else:
            self._inboxes = {}
        self._taken_by.clear()
        self._names.clear()
        for message in messages:
            for recipient in message.recipients:
                self._inboxes.setdefault(recipient, []).append(message)
        return messages

    @property
    def is_empty(self) -> bool:
        """Whether no message was delivered to anybody in this step."""
        return not self._inboxes

    def inbox(self, agent_id: int) -> list[Message]:
        """Return the messages an agent received in the last step, oldest first."""
        return self._inboxes.get(agent_id, [])[-MAX_INBOX:]

    def sender_name(self, model: Any, agent_id: int) -> str:
        """Return the name of a sender; empty if it has none, or has left.

        Args:
            model: The Mesa model, whose agents are looked up once per delivery.
            agent_id: Mesa `unique_id` of the sender.
        """
        if not self._names:
            self._names = {agent.unique_id: name_of(agent) for agent in model.agents}
        return self._names.get(agent_id, "")

    def take(self, agent_id: int) -> list[Message]:
        """Return an agent's inbox for its memory, once per step. Empty on further calls."""
        if agent_id in self._taken_by:
            return []
        self._taken_by.add(agent_id)
        return self.inbox(agent_id)


def reads_messages(agent: object) -> bool:
    """Check whether an agent reads its messages. LLM agents do; others if their class says so.

    A class of plain Mesa agents that reads `Mailbox.of(model)` itself sets `reads_messages = True`.
    """
    return bool(getattr(agent, "reads_messages", False))


def name_of(agent: Any) -> str:
    """Return the name of an agent on one line; empty if it has none."""
    return one_line(str(getattr(getattr(agent, "config", None), "name", "") or ""), MAX_NAME)


class TalkMixin:
    """Lets an agent send messages to others in its model."""

    __slots__ = ()

    model: Any
    unique_id: int

    def observe(self) -> Observation:
        """Observe, and list the recipients the agent may write to: those who read messages.

        If the text names every other agent, or the readers are few, all are options of `send_message`. Otherwise,
        language models that need options choose from some of them, and others may write to any agent.
        """
        body: Any = super()
        seen: Observation = body.observe()
        others = [other for other in self.model.agents if other is not self]
        readers = [other.unique_id for other in others if reads_messages(other)]
        names_all = isinstance(seen.facts, Surroundings) and seen.facts.place is None and len(others) <= MAX_SHOWN
        takes_some = body.opened.capabilities.needs_options
        if not readers or not (names_all or takes_some or len(readers) <= MAX_SHOWN):
            return seen
        near = seen.facts.neighbours if isinstance(seen.facts, Surroundings) and (names_all or takes_some) else ()
        among = set(readers)
        recipients = [other.agent for other in near if other.agent in among] or readers
        return replace(seen, options={"send_message.to": tuple(recipients[:MAX_SHOWN]), **seen.options})

    def _has_readers(self) -> bool:
        return any(other is not self and reads_messages(other) for other in self.model.agents)

    @action(when="_has_readers", did=said_text)
    def send_message(self, to: int, text: Annotated[str, Field(min_length=1, max_length=1000)]) -> ActionResult:
        """Send a private message to another agent, who reads it in the next step.

        Args:
            to: Number of the agent who should read it.
            text: What you want to say.
        """
        if to == self.unique_id:
            raise ToolError(reason_text("message_to_self"))
        recipient = next((agent for agent in self.model.agents if agent.unique_id == to), None)
        if recipient is None:
            raise ToolError(reason_text("no_agent", to=to))
        if not reads_messages(recipient):
            raise ToolError(reason_text("reads_nothing", to=to))
        agent: Any = self
        Mailbox.of(self.model).send(self.unique_id, (to,), text, agent.now)
        return ActionResult(sent_text(name_of(recipient), to), name=name_of(recipient))
