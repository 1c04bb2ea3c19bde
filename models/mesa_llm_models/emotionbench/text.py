"""How a situation is described to a respondent."""

from __future__ import annotations


def imagined_text(situation: str) -> str:
    """Ask a respondent to put itself in a situation, which is described in the second person."""
    return f"Imagine that this is happening to you: {situation}"
