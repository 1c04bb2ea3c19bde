"""How agents read what came of their messages, answers and actions."""

from __future__ import annotations


def sent_text(recipient: int) -> str:
    """Report a message to its sender."""
    return f"Sent to agent {recipient}."


def answered_text(answer: str) -> str:
    """Write an answer as its agent remembers it."""
    return f"You answered: {answer}"


def refused_text(reason: object) -> str:
    """Write why something was refused."""
    return f"refused: {reason}"
