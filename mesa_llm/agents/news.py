"""What an agent hears besides what it sees: messages, news of other worlds, and news from outside the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mesa_llm.agents.mailbox import Mailbox
from mesa_llm.prompts import prompts_of
from mesa_llm.records import Observation
from mesa_llm.text import quoted

MESSAGE_CHARACTERS = 1_000
"""Maximum number of characters of a message in a prompt."""


def with_news(agent: Any, seen: Observation) -> Observation:
    """Append to an observation what arrived for an agent: its messages, and news of worlds that it does not observe.

    Args:
        agent: The agent.
        seen: What it sees.
    """
    model = agent.model
    mailbox, bridge = Mailbox.of(model), getattr(model, "bridge", None)
    messages = [
        {
            "sender": message.sender,
            "name": mailbox.sender_name(model, message.sender),
            "text": quoted(message.text, MESSAGE_CHARACTERS),
        }
        for message in mailbox.inbox(agent.unique_id)
    ]
    parts = [prompts_of(model).fill("agent_messages.md", messages=messages)] if messages else []
    lines: list[str] = []
    if bridge is not None and bridge.has_news:
        names = [world.name for world in agent.worlds]
        lines = [bridge.line(event) for event in bridge.heard(names, agent.unique_id)]
    return _extended(model, seen, parts, lines)


def with_announcements(agent: Any, worlds: Iterable[str], seen: Observation) -> Observation:
    """Append to an observation the news from outside the run that is not yet in it, and record that it was delivered.

    Args:
        agent: The agent.
        worlds: Names of the worlds that it observes.
        seen: What it sees, perhaps with news.
    """
    bridge = agent.model.bridge
    events = bridge.announcements_for(worlds, agent.unique_id)
    lines = [line for line in map(bridge.line, events) if line not in seen.news]
    return _extended(agent.model, seen, [], lines)


def _extended(model: Any, seen: Observation, parts: list[str], lines: list[str]) -> Observation:
    """Append paragraphs and lines of news; memories are still recalled by what the agent sees alone."""
    if lines:
        parts = [*parts, prompts_of(model).fill("agent_news.md", lines="\n".join(lines))]
    if not parts:
        return seen
    text = "\n\n".join(filter(None, (seen.text, *parts)))
    return replace(seen, text=text, cue=seen.cue or seen.text, news=(*seen.news, *lines))
