"""Texts in which agents read the outcome of their messages, answers and actions."""

from __future__ import annotations

from mesa_llm.text import sentences


def sent_text(recipient: int) -> str:
    """Report a message to its sender."""
    return f"Sent to agent {recipient}."


def answered_text(answer: str) -> str:
    """Write an answer in the form its agent remembers."""
    return f"You answered: {answer}"


def refused_text(reason: object) -> str:
    """Write the reason for a refusal."""
    return f"refused: {reason}"


REASONS = {
    "message_to_self": "you cannot send a message to yourself.",
    "no_agent": "there is no agent {to}.",
    "reads_nothing": "agent {to} reads no messages.",
    "not_now": "{tool} cannot be done now.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)
