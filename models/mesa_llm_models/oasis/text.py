"""Texts for users in the experiments: the news, the account that spreads it, a dilemma and cautious people."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mesa_llm.text import one_line, quoted

POST = "Amazon is about to open a shop with walls and a door, its first one, in New York City, a newspaper reports."
"""News of October 2014, which turned out to be wrong: one of OASIS's 198 topics (False_Business_0)."""

INFLUENCER_PERSONA = (
    "An online magazine about technology, shops and life on the net. Its posts are headlines: short, quick, and a "
    "little louder than the news they bring."
)
"""Persona of the account that everybody follows."""

INFLUENCER_BIO = "News for people who cannot put the phone down."
"""Its public profile."""

DILEMMA = (
    "My brother Tomas builds houses that people like and that sell before they are finished. Now a town offers him "
    "a concert hall, the one building he has dreamt of since school. To get it he has to close his office, put in all "
    "his savings, and work on it for five years. If it comes off, his name stays. If it does not, he starts again "
    "at forty-eight with nothing. Or he goes on with the houses. What should he do?"
)
"""Our own dilemma, modelled on OASIS's: a successful person chooses between a safe and a daring option."""


def news_text(publisher: str) -> str:
    """Say what the network talks about: the news of an account that everybody follows."""
    return f"{publisher} has just brought news, and those who follow it read it now. "


def stories_text(publisher: str, topics: Sequence[str]) -> str:
    """Say what the network talks about: stories of an account, true ones and others.

    Args:
        publisher: Name of the account.
        topics: Topics of the stories.
    """
    about = f"{', '.join(topics[:-1])} and {topics[-1]}"
    return f"{publisher}, whom many follow, posts news about {about}. Nobody has checked it for you. "


def advice_text(asker: str, post_id: int, dilemma: str) -> str:
    """Say what the network talks about: the advice that somebody has asked for.

    Args:
        asker: Name of the user who asks.
        post_id: Id of the post.
        dilemma: The post.
    """
    question = re.split(r"(?<=[.!?])\s+", one_line(dilemma))[-1]
    return (
        f"{asker} has asked there for advice, in post {post_id}, which ends: {quoted(question, 200)} Those who comment "
        "on it say what they would advise, and why. "
    )


VOTING = "People there read new posts and comments, and vote on them. "
"""What the network does in the herd studies."""

QUESTION = "Answer in one or two sentences, as you would advise today."
"""Question below the dilemma in an interview."""

CAUTIOUS = (
    "You look before you leap. What you have counts more for you than what you might win, and you have seen friends "
    "lose a house over a dream."
)
"""Sentences added to the personas of invented cautious users."""
