"""The people and places of the town, what people read, and what rule twins say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mesa_llm import AgentConfig, quoted


class Biography(NamedTuple):
    """Somebody in the town."""

    name: str
    """Its name."""

    persona: str
    """Who it is."""

    home: str
    """Place where it lives."""

    work: str
    """Place where it works."""


PLACES = {
    "Mill Lane": "being at home",
    "Hill Street": "being at home",
    "bakery": "having coffee and cake",
    "market": "looking at the stalls",
    "school": "reading in the library",
    "workshop": "mending a chair",
    "park": "sitting under the trees",
}
"""Place → what rule twins do there."""

OFFERS = {
    "Mill Lane": "homes",
    "Hill Street": "homes",
    "bakery": "bread, coffee and cake",
    "market": "stalls, and people to talk to",
    "school": "classes and a library",
    "workshop": "wood, tools and things to mend",
    "park": "trees and benches",
}
"""Place → what is there."""

PEOPLE = (
    Biography("Rosa", "the baker, who likes to bring people together", "Mill Lane", "bakery"),
    Biography("Tom", "a carpenter of few words", "Mill Lane", "workshop"),
    Biography("Leila", "a teacher who plays the violin", "Hill Street", "school"),
    Biography("Viktor", "a retired postman who knows every door", "Hill Street", "park"),
    Biography("Mina", "a market woman with a loud laugh", "Mill Lane", "market"),
    Biography("Oskar", "an apprentice carpenter, new in town", "Hill Street", "workshop"),
    Biography("Nadia", "a nurse who works at night", "Hill Street", "market"),
    Biography("Paul", "the caretaker of the school", "Mill Lane", "school"),
    Biography("Edda", "a painter who works outdoors", "Hill Street", "park"),
    Biography("Samir", "a student who helps in the bakery", "Mill Lane", "bakery"),
)
"""Everybody; the first one gives the party."""

NEWS_WORD = "party"
"""The word by which the news is recognised in what people say."""


def config_of(person: Biography, news: str) -> AgentConfig:
    """Return the config of somebody, with the news if it is theirs to tell."""
    persona = f"You are {person.persona}. You live in {person.home}. Your working day is spent here: {person.work}."
    return AgentConfig(name=person.name, persona=f"{persona} {news}".strip())


def host_text(day: int, hour: int, place: str) -> str:
    """Write what the host knows from the start."""
    return f"You are giving a party in the {place} on day {day} at {hour}:00, and want everybody in town to come."


def news_text(day: int, hour: int, place: str) -> str:
    """Tell somebody of the party."""
    return f"Have you heard? There is a party in the {place} on day {day} at {hour}:00."


def remark_text(hour: int) -> str:
    """Say something that is no news."""
    return "Good morning! Did you sleep well?" if hour < 12 else "Nice to see you. What a day!"


def plan_question(day: int) -> str:
    """Ask for a plan of the day."""
    return f"It is the morning of day {day}. In two or three sentences, what do you plan to do today, where, and when?"


def plan_text(work: str) -> str:
    """Write the plan of a rule twin."""
    return f"Until 12 and from 13 to 17 I work ({work}). At 12 I have lunch in the bakery, later I go out, at 20 home."


def party_text(day: int, hour: int, party: tuple[int, int, str]) -> str:
    """Write what the host knows of its party now: that it is to come, is now, or is over.

    Args:
        day: The day, from 1.
        hour: The hour of the day.
        party: Its day, its hour and its place.
    """
    party_day, party_hour, place = party
    if (day, hour) < (party_day, party_hour):
        when = "today" if day == party_day else "tomorrow" if day + 1 == party_day else f"on day {party_day}"
        return f"Your party is {when} at {party_hour}:00 in the {place}."
    return f"Your party is now, in the {place}." if (day, hour) == (party_day, party_hour) else "Your party is over."


def heard_text(name: str, said: str) -> str:
    """Write what somebody knows of the party who has heard of it."""
    return f"You have heard of a party. {name} said: {quoted(said, 300)}"


def observation_text(day: int, hour: int, place: str, present: Mapping[str, str], plan: str, news: str) -> str:
    """Write what somebody sees: the time, the place, who else is there and what they do, its plan, and its news."""
    others = ", ".join(f"{name} ({quoted(doing, 80)})" for name, doing in present.items()) or "nobody"
    lines = [f"It is {hour}:00 on day {day}. You are here: {place}. With you: {others}."]
    lines += [f"Your plan for today: {quoted(plan, 600)}"] if plan else []
    return "\n".join([*lines, *([news] if news else []), places_text()])


def places_text() -> str:
    """List where one can spend an hour."""
    places = ", ".join(f"{place} ({there})" for place, there in OFFERS.items())
    return f"Places where you can spend the next hour: {places}."


def meeting_text(day: int, hour: int, place: str) -> str:
    """Say when and where people meet."""
    return f"It is about {hour}:30 on day {day}. You are here: {place}, and you meet people you know."
