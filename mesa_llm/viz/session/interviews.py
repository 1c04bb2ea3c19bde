"""Interviews: questions to one agent that leave the run unchanged."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mesa_llm.canonical import legible_json
from mesa_llm.engine.engine import Engine
from mesa_llm.errors import MesaLLMError
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.render.markup import fault_text
from mesa_llm.viz.render.trace import shortened
from mesa_llm.viz.session.per_model import PerModel
from mesa_llm.viz.session.rw_lock import lock_of

PURPOSE = "interview"
"""Purpose under which interviews are recorded and counted."""

MAX_WAITING = 10
"""Maximum number of waiting questions."""

MAX_QUESTION = 4_000
"""Maximum number of characters of a question."""


@dataclass(frozen=True)
class Interview:
    """One question to an agent, with its answer."""

    step: int
    """Number of finished steps."""

    question: str
    """The question."""

    answer: str
    """The answer; empty if there is none."""

    failure: str
    """Why there is no answer; empty if there is one."""


@dataclass(eq=False)
class Waiting:
    """A question that has no answer yet."""

    agent_id: int
    """Mesa `unique_id` of the agent."""

    question: str
    """The question."""

    is_withdrawn: bool = False
    """Whether it has been withdrawn."""


class InterviewQueue:
    """Puts visitors' questions to the agents of one model, one after another; a page reads its attributes.

    Attributes:
        waiting: Questions without an answer yet, in order.
        error: Why the last question failed; empty if it did not.
        hide: Removes secrets from error messages.
        version: Counter that rises whenever anything here changes.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.waiting: list[Waiting] = []
        self.error = ""
        self.hide: Callable[[str], str] = str
        self.version = 0
        self._lock = threading.Lock()
        self._in_flight: tuple[Waiting, Engine] | None = None

    @staticmethod
    def of(model: LLMModel) -> InterviewQueue:
        """Return the queue of a model."""
        return _queues.of(model)

    def ask(self, agent: Any, question: str) -> None:
        """Queue a question to an agent, to be asked between two steps; return at once.

        Args:
            agent: The agent.
            question: The question.
        """
        text = question.strip()
        with self._lock:
            self.version += 1
            self.error = _fault_in(text, len(self.waiting))
            if self.error:
                return
            self.waiting.append(job := Waiting(agent.unique_id, text))
        threading.Thread(target=self._work, args=(agent, job), name="mesa-llm-interview", daemon=True).start()

    def withdraw(self, job: Waiting) -> None:
        """Withdraw a question; a request in flight is cancelled.

        Args:
            job: A waiting question.
        """
        with self._lock:
            job.is_withdrawn = True
            self.version += 1
            if self._in_flight is not None and self._in_flight[0] is job:
                self._in_flight[1].stop()

    def _work(self, agent: Any, job: Waiting) -> None:
        error = ""
        try:
            with lock_of(agent.model).writing():
                self._ask(agent, job)
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page shows what it raised
            if not (job.is_withdrawn and isinstance(fault, MesaLLMError)):
                error = fault_text("The question", fault, self.hide)
        with self._lock:
            self.waiting.remove(job)
            self.error = error or self.error
            self.version += 1

    def _ask(self, agent: Any, job: Waiting) -> None:
        with self._lock:
            if job.is_withdrawn:
                return
            self._in_flight = job, agent.model.engine
        try:
            agent.model.survey([job.question], [agent], purpose=PURPOSE)
        finally:
            with self._lock:
                self._in_flight = None


_queues = PerModel("_interview_queue", InterviewQueue)


def _fault_in(question: str, n_waiting: int) -> str:
    if not question:
        return "Enter a question first."
    if len(question) > MAX_QUESTION:
        return f"The question has {len(question):,} characters; the maximum is {MAX_QUESTION:,}."
    return "Too many open questions: wait until those below are answered." if n_waiting >= MAX_WAITING else ""


def interviews_with(model: LLMModel, agent_id: int) -> list[Interview]:
    """Return the interviews with an agent, latest first.

    Args:
        model: The model.
        agent_id: Mesa `unique_id` of the agent.
    """
    interviews: list[Interview] = []
    for time, _, question, answer, failure, purpose in model.runlog.rows("answers", agent_id):
        if purpose == PURPOSE:
            value = json.loads(answer) if answer else None
            text = "" if value is None else value if isinstance(value, str) else legible_json(value)
            interviews.append(Interview(int(time), shortened(question), shortened(text), shortened(failure or "")))
    return interviews[::-1]
