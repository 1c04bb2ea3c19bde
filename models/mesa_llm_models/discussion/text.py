"""What people read about themselves, and what rule twins say."""

from __future__ import annotations

REMARKS = {
    "against": ("I am against it.", "The price is too high for me.", "I cannot support this."),
    "between": ("I can see both sides.", "It depends on how it is done.", "I have not made up my mind."),
    "for": ("I am for it.", "The good it does is worth it.", "We should do this."),
}
"""Remarks of the rule twin beside its number, by side."""

SPEAKS, LISTENS = "I want to be heard.", "I would rather listen."
"""Reasons of the rule twin to speak, and to keep silent."""

FIRMNESS = ("easily changed by what others say", "open to good reasons", "firm", "not to be changed by anything")
"""Strengths in words: from 0, from 1/3, from 2/3, and 1."""

CONFIRMATION_BIAS = "You believe what supports your own view more readily than what speaks against it."
"""Sentence for people who have a confirmation bias."""

MODERATOR = "You moderate the conversation, and see to it that everyone is heard."
"""Background story of a moderator, unless the file has one."""


def firmness_text(strength: float) -> str:
    """Describe how firm an opinion is, from 0 to 1."""
    return f"Your opinion is {FIRMNESS[int(strength * 3)]}."
