"""Text about an agent: its labels and its profile."""

from __future__ import annotations

from typing import Any

from mesa_llm.errors import MesaLLMError
from mesa_llm.viz.render.trace import decider, shortened


def option_label(agent: Any) -> str:
    """Return the label of an agent in a list: its id, and its name or class."""
    return f"{agent.unique_id} · {agent.config.name or type(agent).__name__}"


def portrait(agent: Any) -> dict[str, str | int]:
    """Return an agent's config, current observation and memories as text, without changing anything.

    Args:
        agent: An LLM agent.
    """
    try:
        seen = agent.observe()
        text, cue = seen.text, seen.cue or seen.text
    except MesaLLMError as error:
        text, cue = f"Observation failed: {error}", ""
    messages = "\n\n".join(f"{message.role}: {message.content}" for message in agent.memory.messages())
    recalled = agent.memory.recall(cue, agent.now, aside=True)
    return {
        "number": agent.unique_id,
        "kind": type(agent).__name__,
        "name": agent.config.name or f"{type(agent).__name__} {agent.unique_id}",
        "llm": llm_label(agent),
        "persona": agent.config.text,
        "seen": shortened(text),
        "memory": shortened("\n\n".join(filter(None, (recalled, messages)))),
    }


def llm_label(agent: Any) -> str:
    """Return a label for the language model of an agent, or whatever else decides for it.

    Args:
        agent: An LLM agent.
    """
    try:
        llm = agent.llm
    except MesaLLMError as error:
        return str(error)
    return decider(llm if isinstance(llm, str) else str(getattr(llm, "name", type(llm).__name__)))


def agent_label(agent: Any) -> str:
    """Return an agent's name, if it has one, and its id.

    Args:
        agent: An LLM agent.
    """
    number = f"agent {agent.unique_id}"
    return f"{agent.config.name} ({number})" if agent.config.name else number
