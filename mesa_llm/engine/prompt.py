"""The prompt of an agent: the one place where its parts are put together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mesa_llm.prompts import prompts_of
from mesa_llm.records import ChatMessage, Observation, Prompt


def compose_prompt(agent: Any, seen: Observation, question: str | None = None) -> Prompt:
    """Put together what an agent reads: instructions, the conversation so far, its memories, what it sees, who it is.

    The system message is the same for all agents, and is read once. Who the agent is comes last, as choices and
    opinions of small language models follow it most there; what is asked about itself follows it
    (`benchmarks/persona_contrast.py` measures both).

    Args:
        agent: The agent.
        seen: What it observes.
        question: A question that is put to it outside the run, and leaves no trace in its memory; None: it decides.
    """
    model, memory = agent.model, agent.memory
    prompts = prompts_of(model)
    shared = getattr(model, "instructions_text", "")
    system = "\n\n".join(filter(None, (shared, seen.instructions)))
    if question is None:
        recalled = memory.recall(seen.cue or seen.text, agent.now)
    else:
        recalled = memory.recall(question, agent.now, aside=True)
    memories = prompts.fill("agent_memory.md", lines=recalled) if recalled else ""
    asked = "" if question is None else prompts.fill("survey_question.md", question=question)
    persona = agent.config.text_in(prompts)
    parts = (memories, persona, seen.text, asked) if seen.is_about_self else (memories, seen.text, asked, persona)
    user = "\n\n".join(filter(None, parts)) or prompts.fill("agent_nothing_seen.md")
    first = (_system_message(system),) if system else ()
    return Prompt((*first, *memory.messages(), ChatMessage("user", user)))


@lru_cache(maxsize=1024)
def _system_message(text: str) -> ChatMessage:
    """Return the first message of a prompt; equal texts share one message, and with it what is cached on it."""
    return ChatMessage("system", text)
