"""Interviews with agents from the page: questions to one agent that leave the run unchanged."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import solara
from mesa.visualization.utils import update_counter
from reacton import ipyvuetify as vuetify
from reacton import use_ref, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.canonical import legible_json
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.gate import OnePerModel, gate_of, steady
from mesa_llm.viz.inspector import PickAgent, inspected, thinks_with
from mesa_llm.viz.markup import Markup, fault_text
from mesa_llm.viz.plain import llm_models_only
from mesa_llm.viz.ticker import words
from mesa_llm.viz.trace import shortened

PURPOSE = "interview"
"""Purpose under which interviews are counted and recorded."""

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


class InterviewDesk:
    """Asks the agents of one model the questions of visitors, one after the other.

    It does not depend on Solara: a page reads its plain attributes.

    Attributes:
        waiting: Questions without an answer yet, in order.
        error: Why the last question could not be asked; empty if it could.
        hide: Removes secrets from error messages.
        version: Counter that rises whenever anything here changes.
    """

    def __init__(self, model: LLMModel) -> None:
        """Start with no question.

        Args:
            model: The model.
        """
        self.waiting: list[Waiting] = []
        self.error = ""
        self.hide: Callable[[str], str] = str
        self.version = 0
        self._engine = model.engine
        self._lock = threading.Lock()
        self._in_flight: Waiting | None = None

    @staticmethod
    def of(model: LLMModel) -> InterviewDesk:
        """Return the desk of a model."""
        return _desks.of(model)

    def ask(self, agent: Any, question: str) -> None:
        """Ask an agent as soon as the model is between two steps; return at once.

        Args:
            agent: An agent that thinks.
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
        """Withdraw a question; a request that is in flight is cancelled.

        Args:
            job: A waiting question.
        """
        with self._lock:
            job.is_withdrawn = True
            self.version += 1
            if self._in_flight is job:
                self._engine.stop()

    def _work(self, agent: Any, job: Waiting) -> None:
        error = ""
        try:
            with gate_of(agent.model).writing():
                self._ask(agent, job)
        except Exception as fault:  # noqa: BLE001 - a model is anybody's code; the page tells what it raised
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
            self._in_flight = job
        try:
            agent.model.survey([job.question], [agent], purpose=PURPOSE)
        finally:
            with self._lock:
                self._in_flight = None


_desks = OnePerModel(InterviewDesk)


def _fault_in(question: str, n_waiting: int) -> str:
    if not question:
        return "Write a question first."
    if len(question) > MAX_QUESTION:
        return f"The question has {len(question):,} characters; write {MAX_QUESTION:,} at most."
    return "Wait until the questions below have their answers." if n_waiting >= MAX_WAITING else ""


def interviews_with(model: LLMModel, agent_id: int) -> list[Interview]:
    """Return the interviews with an agent, the latest first.

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


@component
@llm_models_only
def InterviewForm(model: LLMModel) -> None:
    """Let a visitor ask one agent a question that nobody else hears and that enters neither its memory nor the run.

    Args:
        model: The model.
    """
    update_counter.get()
    words.get()
    agents = {agent.unique_id: agent for agent in llm_agents(model)}
    if not agents:
        solara.Info("The model has no agents that think.", dense=True)
        return
    agent_id = inspected.value if inspected.value in agents else next(iter(agents))
    agent, desk = agents[agent_id], InterviewDesk.of(model)
    PickAgent(agents, agent_id, inspected.set, label="Interview with")
    with steady(model):
        llm = thinks_with(agent)
    solara.Text(
        f"Asked aside: nobody else hears it, and the run goes on as if nothing had been asked. It thinks with {llm}; "
        "a language model is asked once, when you press Ask.",
        classes=["mesa-llm-hint"],
    )
    _Question(lambda text: desk.ask(agent, text))
    if desk.error:
        solara.Error(desk.error, dense=True)
    for job in [job for job in desk.waiting if job.agent_id == agent_id]:
        _Waiting(desk, job)
    interviews: list[Interview] = []
    with suppress(ConfigError), steady(model):  # Reset may just have closed it: the next drawing shows the new model
        interviews = interviews_with(model, agent_id)
    name = agent.config.name or f"agent {agent_id}"
    Markup("interview.html", name=name, interviews=interviews).key(f"interviews with {agent_id}")


@component
def _Question(ask: Callable[[str], None]) -> None:
    """Show a field and a button; after each question the field is replaced by an empty one."""
    asks, count = use_state(0)

    def send(text: str) -> None:
        ask(text)
        if text.strip():
            count(asks + 1)

    _Field(send).key(f"question {asks}")


@component
def _Field(send: Callable[[str], None]) -> None:
    """Show a text field that does not send back what is being typed in it."""
    typed = use_ref("")

    def type_in(*event: Any) -> None:
        typed.current = str(event[-1] or "")

    with solara.Row(gap="12px", style={"align-items": "flex-start"}):
        field = vuetify.Textarea(
            label="Question", value="", rows=2, auto_grow=True, outlined=True, dense=True, hide_details=True
        )
        use_event(field, "input", type_in)
        solara.Button("Ask", icon_name="mdi-send", color="primary", on_click=lambda: send(typed.current))


@component
def _Waiting(desk: InterviewDesk, job: Waiting) -> None:
    with solara.Row(gap="12px", style={"align-items": "center"}):
        Markup("interview.html", name="", interviews=[Interview(0, job.question, "", "")])
        solara.SpinnerSolara(size="24px")
        solara.Button("Withdraw", on_click=lambda: desk.withdraw(job), text=True, small=True)
