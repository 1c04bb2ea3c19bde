"""Texts in which agents read the outcome of their messages, answers and actions."""

from __future__ import annotations

from mesa_llm.records import Outcome
from mesa_llm.text import one_line, quoted, sentences

MAX_REMEMBERED = 560
"""Maximum number of characters of a message or a plan in a memory."""


def called(name: str, agent_id: int) -> str:
    """Write who somebody is for a memory: by name, or as `agent 3` without one."""
    return name or f"agent {agent_id}"


def sent_text(name: str, recipient: int) -> str:
    """Report a message to its sender.

    Args:
        name: Name of the recipient; empty: none.
        recipient: Its Mesa `unique_id`.
    """
    return f"Sent to {called(name, recipient)}."


def said_text(outcome: Outcome) -> str:
    """Write the sentence in which an agent remembers a message that it sent."""
    recipient = called(outcome.facts.get("name", ""), outcome.arguments["to"])
    return f"You told {recipient}: {quoted(str(outcome.arguments['text']), MAX_REMEMBERED)}"


def message_text(name: str, sender: int, text: str) -> str:
    """Write the sentence in which an agent remembers a message that it read.

    Args:
        name: Name of the sender; empty: none.
        sender: Its Mesa `unique_id`.
        text: What it wrote.
    """
    return f"{name or f'Agent {sender}'} told you: {quoted(text, MAX_REMEMBERED)}"


def plan_text(text: str) -> str:
    """Write the sentence in which an agent remembers its plan."""
    return f"You planned: {one_line(text, MAX_REMEMBERED)}"


REASONS = {
    "message_to_self": "you cannot send a message to yourself.",
    "no_agent": "there is no agent {to}.",
    "reads_nothing": "agent {to} reads no messages.",
    "not_now": "{tool} cannot be done now.",
    "heard": "{name} has said this already: {line}. Say something else, which nobody has said yet.",
    "own": "you have said this already: {line}. Say something else, which nobody has said yet.",
    "prompt": "it repeats what you were told to do or to be. Say it in other words, as you would say it to the others.",
    "other": "it is in the name of {name}. You are {own}: write only what you say yourself.",
    "self": "you are {own}, so you cannot speak to {own}, or of {own} as of somebody else. Say “I”.",
    "program": "no program is in this conversation. You are {own}: say what {own} would say.",
    "empty": "nothing is said in it.",
    "long": "it is too long. Say it in {length}.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)
