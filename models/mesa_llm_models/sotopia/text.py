"""Texts for players and judges: characters, and dimensions to rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mesa_llm.text import counted, quoted
from mesa_llm_models.discussion.world.facts import RoomFacts
from mesa_llm_models.discussion.world.state import Line
from mesa_llm_models.discussion.world.text import deed, display_name

LABELS = {"public_info": "Known to many", "personality": "Personality and values", "secret": "Secret"}
"""Field of a character → its heading."""

OWN_LABELS = {"public_info": "What many know", "personality": "How you are", "secret": "Your secret"}
"""The same in a person's own portrait."""

UNKNOWN = "unknown; you have never met."
KNOWN_BY_NAME = "only the name."
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


CHOICES = (
    "Say something new that brings you nearer to your goal, or do something, or show something without words. You may "
    "also wait, to let {others} speak, or leave: {leaving}."
)
"""What a person can do on its turn."""

OWN_DEEDS = {"say": ": {text}", "gesture": ", without words: {text}", "do": " did something: {text}", "leave": " left."}
"""Kind of a person's own line → what follows `You`."""


def move_text(facts: RoomFacts, own_id: int, *, max_turns: int, turns_left: int | None, max_silent: int) -> str:
    """Describe a meeting to the person whose turn it is: who is there, what has happened, and what it can do now.

    Args:
        facts: What it observes.
        own_id: Mesa `unique_id` of the person.
        max_turns: Maximum number of turns of the meeting.
        turns_left: Number of its own turns that are left, this one included; None if that is not known.
        max_silent: Number of turns in a row without action after which the meeting is over.
    """
    others = " and ".join(map(display_name, facts.others)) or "nobody"
    heading = "What has happened since your last turn" if facts.is_news else "What has happened so far"
    lines = [f"({counted(facts.n_earlier, 'earlier line')} not shown)"] if facts.n_earlier else []
    lines += [_move(line, own_id) for line in facts.lines]
    if not lines:
        lines = ["Nothing since." if facts.is_news else "Nobody has said or done anything yet. You begin."]
    now = f"This is turn {facts.turn} of {max_turns} at most, and it is your turn"
    own = {None: ".", 1: ", your last one."}.get(turns_left, f"; you have {turns_left} left, this one included.")
    leaving = "then the meeting is over" if len(facts.others) < 2 else "then it goes on without you"
    silence = f"If nobody says or does anything in {counted(max_silent, 'turn')} in a row, the meeting is over, too."
    choices = CHOICES.format(others=others, leaving=leaving)
    parts = [facts.brief] if facts.brief else []
    return "\n".join([*parts, f"You are with {others}.", f"{heading}:", *lines, "", now + own, choices, silence])


def _move(line: Line, own_id: int) -> str:
    if line.speaker_id == own_id:
        return f"Turn {line.turn}: You{OWN_DEEDS[line.kind].format(text=quoted(line.text))}"
    aside = "" if line.viewers is None else " (not to everyone)"
    return f"Turn {line.turn}: {display_name(line.speaker)}{aside}{deed(line)}"


def left_text(person: int) -> str:
    """Say why a person makes no move."""
    return f"person {person} has left"


def dimension_text(name: str, low: int, high: int, meaning: str, bands: Sequence[tuple[int, int, str]]) -> str:
    """Describe a dimension to the judge: name, range, question and bands."""
    listed = "; ".join(f"{first} to {last}: {words}" for first, last, words in bands)
    return f"{name} ({low} to {high}): {meaning}" + (f" {listed}." if listed else "")


def portrait_text(name: str, texts: Mapping[str, str], labels: Mapping[str, str] = LABELS) -> str:
    """Describe a character; empty if nothing is shown.

    Args:
        name: Its displayed name.
        texts: Displayed field → its text.
        labels: Field → its heading.
    """
    about = [f"{texts['age']} years old"] if "age" in texts else []
    about += [texts[field].lower() for field in ("gender", "occupation") if texts.get(field)]
    lines = [", ".join(filter(None, (name, *about)))] if name or about else []
    if texts.get("pronouns"):
        lines[-1] += f" ({texts['pronouns'].lower()})"
    lines += [f"{label}: {texts[field]}" for field, label in labels.items() if texts.get(field)]
    return "\n".join(lines)
