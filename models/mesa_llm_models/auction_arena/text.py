"""Texts for bidders besides the auction itself: lessons, reasons, and the last auction."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mesa_llm.text import quoted

OVER = "The auction is over."
"""Text for bidders after the last lot."""

NO_LESSONS = "'lessons' must be a list of sentences."
"""Why lessons are refused."""

MAX_REASONS = 1_500
"""Maximum number of characters of a plan's reasons repeated in later prompts."""


def lessons_text(lessons: Sequence[str]) -> str:
    """List the lessons of earlier auctions; empty if there are none."""
    listed = [f"- {lesson}" for lesson in lessons]
    return "\n".join(["What you learnt in earlier auctions:", *listed, ""]) if listed else ""


def learnt_text(n_lessons: int) -> str:
    """Report to a bidder that its lessons were kept."""
    return f"You keep {n_lessons} lessons in mind."


BIDDING = (
    "You buy for people who trust you with their money.",
    "You like to win, and it shows.",
    "You have paid too much once, and still think of it.",
    "You wait until the others have shown what they want.",
    "You know what you came for, and let the rest go by.",
    "You cannot pass by a bargain.",
)
"""What a bidder is like, if bidders are drawn."""

_SENTENCES = re.compile(r".*[.!?…][\"”’)]*", re.DOTALL)


def whole_sentences(reasons: str) -> str:
    """Return reasons without a last sentence that was cut off; empty if none is whole."""
    match = _SENTENCES.match(reasons.strip())
    return match[0] if match else ""


def reasons_text(reasons: str) -> str:
    """Quote a bidder's reasons for its plan."""
    return f"When you made your plan, you wrote: {quoted(reasons, MAX_REASONS)}"


def retrospect_text(name: str, story: str, lessons: str, max_lessons: int) -> str:
    """Ask a bidder for lessons from the last auction.

    Args:
        name: Its name.
        story: What happened.
        lessons: Its earlier lessons, from `lessons_text`.
        max_lessons: Maximum number of lessons.
    """
    question = f"What do you learn from this for the next auction? Write at most {max_lessons} short sentences."
    return "\n".join(filter(None, (f"You are {name}. The last auction:", story, lessons, question)))
