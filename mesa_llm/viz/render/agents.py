"""An agent in words: its labels, and its portrait."""

from __future__ import annotations

from typing import Any

from mesa_llm.errors import MesaLLMError
from mesa_llm.viz.render.style import literal, without_emoji
from mesa_llm.viz.render.trace import decider, shortened


def short_name(agent: Any) -> str:
    """Return the label of an agent: its name, or its id.

    Args:
        agent: The agent.
    """
    name = without_emoji(getattr(getattr(agent, "config", None), "name", "")) or str(agent.unique_id)
    return literal(name if len(name) <= 18 else f"{name[:17]}…")


def called(agent: Any) -> str:
    """Return the label of an agent in a list: its id, and its name or class."""
    return f"{agent.unique_id} · {agent.config.name or type(agent).__name__}"


def portrait(agent: Any) -> dict[str, str | int]:
    """Return an agent's config, present observation and memories, as text; reads only.

    Args:
        agent: An agent that thinks.
    """
    try:
        seen = agent.observe()
        text, cue = seen.text, seen.cue or seen.text
    except MesaLLMError as error:
        text, cue = f"It cannot look: {error}", ""
    messages = "\n\n".join(f"{message.role}: {message.content}" for message in agent.memory.messages())
    recalled = agent.memory.recall(cue, agent.now, aside=True)
    return {
        "number": agent.unique_id,
        "kind": type(agent).__name__,
        "name": agent.config.name or f"{type(agent).__name__} {agent.unique_id}",
        "llm": thinks_with(agent),
        "persona": agent.config.text,
        "seen": shortened(text),
        "memory": shortened("\n\n".join(filter(None, (recalled, messages)))),
    }


def thinks_with(agent: Any) -> str:
    """Describe what an agent thinks with.

    Args:
        agent: An agent that thinks.
    """
    try:
        llm = agent.llm
    except MesaLLMError as error:
        return str(error)
    return decider(llm if isinstance(llm, str) else str(getattr(llm, "name", type(llm).__name__)))


def name_of(agent: Any) -> str:
    """Return an agent's name, if it has one, and its id.

    Args:
        agent: An agent that thinks.
    """
    number = f"agent {agent.unique_id}"
    return f"{agent.config.name} ({number})" if agent.config.name else number
