"""Maintenance of memories between steps: summaries of entries about to be forgotten, and reflections."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from mesa_llm.engine.plain import engine_of
from mesa_llm.engine.survey import SideRequest
from mesa_llm.errors import TransportError
from mesa_llm.memory import ChatMemory, NoMemory, StreamMemory, SummaryMemory, WindowMemory
from mesa_llm.memory.reflection import Insight, Insights, Questions, Reflection, ReflectiveMemory
from mesa_llm.prompts import prompts_of
from mesa_llm.records import ChatMessage, Decision, Observation

logger = logging.getLogger(__name__)

UNTENDED = frozenset({NoMemory, WindowMemory, ChatMemory, StreamMemory})
"""Memories that are neither summarised nor reflected on."""


def maintain_memories(agents: Iterable[Any]) -> None:
    """Summarise full memories and run due reflections, with each agent's own language model.

    All requests are sent at once. Agents without a language model write no summaries and reflect by rule. A failed
    summary leaves the memory unchanged.
    """
    jobs: list[SideRequest] = []
    reflecting: list[Any] = []
    for agent in agents:
        if type(getattr(agent, "_memory", None)) in UNTENDED:
            continue
        is_asked = agent.opened.is_language_model
        memory: Any = agent.memory if is_asked else getattr(agent, "_memory", None)  # where none is, none is made
        if is_asked and isinstance(memory, ReflectiveMemory | SummaryMemory):
            memory.prompts = prompts_of(agent.model)
        if isinstance(memory, ReflectiveMemory) and memory.is_due(agent.now):
            if is_asked:
                reflecting.append(agent)
            else:
                memory.reflect_by_rule(agent.now, agent.unit_in(), agent.moment_in())
        elif is_asked and (text := memory.summary_request()) is not None:
            jobs.append(SideRequest(agent, "memory", (ChatMessage("user", text),)))
    _summarise(jobs)
    if reflecting:
        _reflect(reflecting)


def _summarise(jobs: Sequence[SideRequest]) -> None:
    summaries = engine_of(jobs[0].agent.model).gather(jobs, [Observation()] * len(jobs)) if jobs else []
    for job, summary in zip(jobs, summaries, strict=True):
        if isinstance(summary, Decision):
            job.agent.memory.keep_summary(str(summary.answer))


def _reflect(agents: Sequence[Any]) -> None:
    """Request the questions of each reflection, then the insights for each question.

    The memory stores the questions in the meantime, so an interrupted reflection resumes with them.
    """
    engine = engine_of(agents[0].model)
    jobs = [
        _reflection(agent, agent.memory.questions_prompt(), Questions)
        for agent in agents
        if not agent.memory.open_questions
    ]
    for job, questions in zip(jobs, engine.gather(jobs, [Observation()] * len(jobs)), strict=True):
        job.agent.memory.keep_questions(questions.answer if isinstance(questions, Decision) else (), job.now)
    reflections = [(agent, reflection) for agent in agents for reflection in _looked_up(agent)]
    jobs = [_reflection(agent, reflection.prompt, Insights) for agent, reflection in reflections]
    answers: dict[int, list[tuple[Reflection, list[Insight]]]] = {}
    for (agent, reflection), insights in zip(
        reflections, engine.gather(jobs, [Observation()] * len(jobs)), strict=True
    ):
        if isinstance(insights, Decision):
            answers.setdefault(agent.unique_id, []).append((reflection, insights.answer))
    for agent in agents:
        if agent.memory.open_questions:
            agent.memory.conclude(answers.get(agent.unique_id, ()), agent.now, agent.unit_in(), agent.moment_in())


def _reflection(agent: Any, prompt: str, answer: object) -> SideRequest:
    text = agent.config.text_in(prompts_of(agent.model))
    system = (ChatMessage("system", text),) if text else ()
    return SideRequest(agent, "reflection", (*system, ChatMessage("user", prompt)), answer)


def _looked_up(agent: Any) -> list[Reflection]:
    """Return an agent's questions with their relevant memories; empty if its memory cannot be searched."""
    try:
        return agent.memory.reflections(agent.now)
    except TransportError as error:  # uses a remote embedding model
        logger.warning("agent %s does not reflect: its memory could not be searched: %s", agent.unique_id, error)
        return []
