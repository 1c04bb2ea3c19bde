"""What the players are like, in the words that they read."""

from __future__ import annotations

CHARACTERS = (
    "You say plainly what you think, and like to speak first.",
    "You watch how people talk before you judge them.",
    "You trust people until they give you a reason not to.",
    "You suspect whoever is quick to accuse somebody.",
    "You joke a lot, and hate to be ignored.",
    "You are calm, and want everybody to give reasons.",
    "You are nervous, and you change your mind easily.",
    "You remember well who said what, and who voted for whom.",
    "You stand by your friends, and forgive nobody who lies.",
)
"""Sentences of which each player has one, which says how it is."""
