"""Who writes a text besides its persona: a trait and a situation, which say nothing of any group."""

from __future__ import annotations

import random

TRAITS = (
    "You are patient.",
    "You are quick to laugh.",
    "You choose your words with care.",
    "You say straight out what you think.",
    "You want to know how things work.",
    "You are easily worried.",
    "You like what is practical.",
    "You notice details.",
    "You like company.",
    "You like to be left in peace.",
    "You remember every slight.",
    "You see the good side first.",
)
"""Traits of writers."""

OCCASIONS = (
    "You have a few minutes to spare.",
    "It is late, and the day was long.",
    "You are in a good mood.",
    "Something went wrong today, and you want to tell somebody.",
    "Something went well today, and you want to tell somebody.",
    "You have never written here before.",
    "You write here every day.",
    "You are on your way home.",
)
"""Occasions on which somebody writes, on a topic or on none."""

STAKES = (
    "You had to do with it last week.",
    "You have changed your mind about it lately.",
    "You have just read what somebody else wrote about it, and do not agree.",
    "You have just read what somebody else wrote about it, and agree.",
    "You want to know what others do about it.",
    "You want to pass on what has worked for you.",
    "Somebody in your family talks of little else.",
    "You think that people make too much of it.",
    "You wish that more people took it seriously.",
    "You know less about it than you would like.",
)
"""What a topic has to do with the writer."""


def writer_text(rng: random.Random, topic: str) -> str:
    """Draw who writes a text besides its persona.

    Args:
        rng: Random generator.
        topic: Topic of the text; empty for none.
    """
    return " ".join([rng.choice(TRAITS), rng.choice(OCCASIONS), *([rng.choice(STAKES)] if topic else [])])
