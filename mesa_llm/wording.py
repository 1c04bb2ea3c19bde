"""Words that people and models read."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Say a number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str) -> str:
    """Return a text that changes nothing in a terminal but what it shows: control codes are written as escapes."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in "\n\t\u200d" else c.encode("unicode_escape").decode() for c in text])
