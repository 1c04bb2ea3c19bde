"""The prompt of an agent: the one place where its parts are put together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mesa_llm.engine.plain import engine_of
from mesa_llm.prompts import prompts_of
from mesa_llm.records import ChatMessage, Observation, Prompt


def compose_prompt(agent: Any, seen: Observation, question: str | None = None) -> Prompt:
    """Put together what an agent reads: instructions, the conversation so far, its memories, what it sees, who it is.

    The system message is the same for all agents, and is read once. Who the agent is comes last, as choices and
    opinions of small language models follow it most there, or where `seen.persona_place` says;
    `benchmarks/persona_contrast.py` measures it. Runs recorded before 0.12 keep it in the system message.

    Args:
        agent: The agent.
        seen: What it observes.
        question: A question that is put to it outside the run, and leaves no trace in its memory; None: it decides.
    """
    model, memory = agent.model, agent.memory
    prompts = prompts_of(model)
    shared = getattr(model, "instructions_text", "")
    persona = agent.config.text_in(prompts)
    place = seen.persona_place if engine_of(model).runlog.request_version > 1 else "system"
    system = "\n\n".join(filter(None, (shared, seen.instructions, persona if place == "system" else "")))
    if question is None:
        recalled = memory.recall(seen.cue or seen.text, agent.now)
    else:
        recalled = memory.recall(question, agent.now, aside=True)
    memories = prompts.fill("agent_memory.md", lines=recalled) if recalled else ""
    survey = "" if question is None else prompts.fill("survey_question.md", question=question)
    first, last = (persona if place == end else "" for end in ("first", "last"))
    user = "\n\n".join(filter(None, (memories, first, seen.text, survey, last))) or prompts.fill(
        "agent_nothing_seen.md"
    )
    opening = (_system_message(system),) if system else ()
    return Prompt((*opening, *memory.messages(), ChatMessage("user", user)))


@lru_cache(maxsize=1024)
def _system_message(text: str) -> ChatMessage:
    """Return the first message of a prompt; equal texts share one message, and with it what is cached on it."""
    return ChatMessage("system", text)
