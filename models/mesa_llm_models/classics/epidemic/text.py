"""What people read of their health, and of the virus around them."""

from __future__ import annotations

WENT_OUT, STAYED_HOME = "You went out.", "You stayed at home."
"""What came of the two actions."""

HEALTH = {
    "susceptible": "You are well, but you can catch the virus.",
    "infected": "You are ill, and can pass the virus on.",
    "resistant": "You have had the virus, and cannot catch it again.",
}
"""Health → text for the person."""


def observation_text(health: str, n_contacts: int, n_ill: int) -> str:
    """Write what a person sees: its own health, and how many of its contacts are ill."""
    are = "is" if n_ill == 1 else "are"
    return f"{HEALTH[health]} Of the {n_contacts} people you meet when you go out, {n_ill} {are} ill."
