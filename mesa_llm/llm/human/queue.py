"""Human players: a queue of requests waiting for a person's answer."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass

from mesa_llm.errors import HumanTimeout
from mesa_llm.llm.replies import Answer, as_reply
from mesa_llm.records import ChatMessage, Reply, Request


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """One question that waits for a person."""

    question_id: int
    """Number of the question in its queue, from 1."""

    agent: int
    """Mesa `unique_id` of the agent that the person plays."""

    request: Request
    """The whole request: prompt, tools, schema, and the values that arguments may take."""

    text: str
    """What the agent observes now, for the person to read."""


class HumanQueue:
    """Holds questions until people answer them; for use by all threads."""

    def __init__(self) -> None:
        """Start with an empty queue."""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[PendingQuestion, Future[Reply]]] = {}

    @property
    def pending(self) -> list[PendingQuestion]:
        """The waiting questions, in the order asked."""
        with self._lock:
            return [question for question, _ in self._waiting.values()]

    def ask(self, request: Request) -> Future[Reply]:
        """Put a question into the queue.

        Returns:
            The reply to come; cancelling it removes the question from the queue.
        """
        future: Future[Reply] = Future()
        with self._lock:
            question_id = next(self._numbers)
            question = PendingQuestion(question_id, request.salt.agent, request, latest(request))
            self._waiting[question_id] = (question, future)
        future.add_done_callback(lambda _: self._take(question_id))
        return future

    def answer(self, question_id: int, answer: Answer) -> bool:
        """Answer a question.

        Args:
            question_id: Number of the question.
            answer: A reply, a call, an object (`{"action": …, "arguments": {…}}`, or what the schema asks
                for), or a text. It is checked later, as every reply is.

        Returns:
            True if the question was still waiting; False if it was answered or withdrawn meanwhile.

        Raises:
            TypeError: If it is no such answer.
        """
        reply = as_reply(answer, "human")
        future = self._take(question_id)
        if future is None or not future.set_running_or_notify_cancel():
            return False
        future.set_result(reply)
        return True

    def withdraw(self, question_id: int, reason: str) -> bool:
        """Remove a question unanswered: the decision fails, and the rule twin may stand in.

        Args:
            question_id: Number of the question.
            reason: Why nobody answers it.

        Returns:
            True if the question was still waiting.
        """
        future = self._take(question_id)
        if future is None or not future.set_running_or_notify_cancel():
            return False
        future.set_exception(HumanTimeout(reason))
        return True

    def _take(self, question_id: int) -> Future[Reply] | None:
        """Remove a question, and return the future of its reply; None if it no longer waits."""
        with self._lock:
            _, future = self._waiting.pop(question_id, (None, None))
        return future


class HumanLLM:
    """Asks a person, and waits as long as it takes."""

    name = "human"
    is_person = True
    """A person may take any time, and is never asked the same again automatically."""

    def __init__(self, desk: HumanQueue | None = None) -> None:
        """Store the queue.

        Args:
            desk: Queue in which questions wait; None: one of its own.
        """
        self.desk = desk or HumanQueue()

    async def reply(self, request: Request) -> Reply:
        """Wait for a person's answer; if the wait is cancelled, the question leaves the queue.

        Raises:
            HumanTimeout: If the question is withdrawn.
        """
        start = time.perf_counter()
        reply = await asyncio.wrap_future(self.desk.ask(request))
        return reply.timed(time.perf_counter() - start)


def latest(request: Request) -> str:
    """Return what is new to a person: all messages since the assistant's last, or since the instructions."""
    messages_since: list[ChatMessage] = []
    for message in reversed(request.messages):
        if message.role == "assistant" or (message.role == "system" and messages_since):
            break
        messages_since.insert(0, message)
    return "\n".join(message.content for message in messages_since)
