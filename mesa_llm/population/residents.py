"""Invented residents of a small town, for demonstrations."""

from __future__ import annotations

from functools import cache
from importlib import resources

from mesa_llm.population.persona import Persona
from mesa_llm.population.tables import from_table

RESIDENTS = "residents.csv"


@cache
def residents() -> tuple[Persona, ...]:
    """Load all invented residents, in the order of their table."""
    with resources.as_file(resources.files("mesa_llm.population") / RESIDENTS) as path:
        people = from_table(path)
    return tuple(person.model_copy(update={"username": handle(person.name), "bio": _bio(person)}) for person in people)


def _bio(person: Persona) -> str:
    return f"{str(person.traits['occupation']).capitalize()}. Here for {' and '.join(person.topics[:2])}."


def handle(name: str) -> str:
    """Derive a username from a name."""
    return "_".join(name.lower().split())
