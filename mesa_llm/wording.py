"""Words that people and models read."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Say a number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
