"""Texts for players and judges: characters, and dimensions to rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LABELS = {"public_info": "Known to many", "personality": "Personality and values", "secret": "Secret"}
"""Field of a character → its heading."""

UNKNOWN, KNOWN_BY_NAME = "unknown.", "nothing but the name."
"""Replacement for the portrait of a stranger, or of somebody known by name only."""

MEANINGS = {
    "believability": "Does the person behave as people do, and as this one would?",
    "relationship": "Does the meeting harm or help the ties between them, and their standing?",
    "knowledge": "Did the person learn something that is new to them and matters?",
    "secret": "Was the person's own secret let out? 0 means that it was kept.",
    "social_rules": "Were laws or customs broken? 0 means that none was.",
    "financial_and_material_benefits": "What did the person gain or lose, now or later, in money or goods?",
    "goal": "How far did the person reach their private goal?",
}
"""Dimension → question to the judge."""

GRADES = ("hardly", "in part", "largely", "fully")
MOVES = ("much worse", "worse, or as before", "better", "much better")
FAULTS = ("grave", "serious", "slight", "hardly any")
SECRETS = ("told outright", "given away in part", "hinted at", "kept")
"""Meanings of four score bands, by kind of dimension."""

REASON = "Why, in one or two sentences."
"""Description of a judge's reason for a score."""


def left_text(person: int) -> str:
    """Say why a person makes no move."""
    return f"person {person} has left"


def dimension_text(name: str, low: int, high: int, meaning: str, bands: Sequence[tuple[int, int, str]]) -> str:
    """Describe a dimension to the judge: name, range, question and bands."""
    listed = "; ".join(f"{first} to {last}: {words}" for first, last, words in bands)
    return f"{name} ({low} to {high}): {meaning}" + (f" {listed}." if listed else "")


def portrait_text(name: str, texts: Mapping[str, str]) -> str:
    """Describe a character; empty if nothing is shown.

    Args:
        name: Its displayed name.
        texts: Displayed field → its text.
    """
    about = [f"{texts['age']} years old"] if "age" in texts else []
    about += [texts[field].lower() for field in ("gender", "occupation") if texts.get(field)]
    lines = [", ".join(filter(None, (name, *about)))] if name or about else []
    if texts.get("pronouns"):
        lines[-1] += f" ({texts['pronouns'].lower()})"
    lines += [f"{label}: {texts[field]}" for field, label in LABELS.items() if texts.get(field)]
    return "\n".join(lines)
