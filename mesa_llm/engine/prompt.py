"""The prompt of an agent: the one place where its parts are put together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mesa_llm.prompts import prompts_of
from mesa_llm.records import ChatMessage, Observation, Prompt


def compose_prompt(agent: Any, seen: Observation, question: str | None = None) -> Prompt:
    """Put together what an agent reads: instructions, who it is, the conversation so far, its memories, what it sees.

    What is the same for all agents comes first, so that endpoints can cache it.

    Args:
        agent: The agent.
        seen: What it observes.
        question: A question that is put to it outside the run, and leaves no trace in its memory; None: it decides.
    """
    model, memory = agent.model, agent.memory
    prompts = prompts_of(model)
    shared = getattr(model, "instructions_text", "")
    system = "\n\n".join(filter(None, (shared, seen.instructions, agent.config.text_in(prompts))))
    if question is None:
        recalled = memory.recall(seen.cue or seen.text, agent.now)
    else:
        recalled = memory.recall(question, agent.now, aside=True)
    parts = [prompts.fill("agent_memory.md", lines=recalled) if recalled else "", seen.text]
    if question is not None:
        parts.append(prompts.fill("survey_question.md", question=question))
    user = "\n\n".join(filter(None, parts)) or prompts.fill("agent_nothing_seen.md")
    first = (_system_message(system),) if system else ()
    return Prompt((*first, *memory.messages(), ChatMessage("user", user)))


@lru_cache(maxsize=1024)
def _system_message(text: str) -> ChatMessage:
    """Return the first message of a prompt; equal texts share one message, and with it what is cached on it."""
    return ChatMessage("system", text)
