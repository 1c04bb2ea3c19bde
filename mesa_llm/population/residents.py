"""Invented residents of a small town, for demonstrations."""

from __future__ import annotations

import random
from functools import cache
from importlib import resources

from mesa_llm.population.names import FAMILY_NAMES, GIVEN_NAMES
from mesa_llm.population.persona import Persona
from mesa_llm.population.tables import from_table

RESIDENTS = "residents.csv"


def invented(n: int, rng: random.Random | int) -> list[Persona]:
    """Return invented people: names, ages, occupations, interests and ways of speaking of our own.

    As long as there are enough, each is somebody else. Beyond that, the occupation of one goes with the interests
    and the way of speaking of others, under a new name.

    Args:
        n: People.
        rng: Source of draws, or a seed.

    Raises:
        ValueError: If `n` is negative.
    """
    if n < 0:
        raise ValueError(f"a population has 0 people or more, got {n}")
    source = rng if isinstance(rng, random.Random) else random.Random(rng)
    everyone = residents()
    people = source.sample(everyone, min(n, len(everyone)))
    return people + [_mixed(everyone, source, index) for index in range(len(people), n)]


@cache
def residents() -> tuple[Persona, ...]:
    """Return all invented residents, in the order of their table."""
    with resources.as_file(resources.files("mesa_llm.population") / RESIDENTS) as path:
        people = from_table(path)
    return tuple(person.model_copy(update={"username": _handle(person.name), "bio": _bio(person)}) for person in people)


def _mixed(everyone: tuple[Persona, ...], source: random.Random, index: int) -> Persona:
    worker, dreamer, speaker = (source.choice(everyone) for _ in range(3))
    given_name = source.choice([name for names in GIVEN_NAMES.values() for name in names])
    name = f"{given_name} {source.choice(FAMILY_NAMES)}"
    return worker.model_copy(
        update={
            "name": name,
            "persona": dreamer.persona,
            "topics": dreamer.topics,
            "style": speaker.style,
            "username": f"{_handle(name)}_{index + 1}",
            "traits": {**worker.traits, "age": source.randint(18, 80)},
        }
    )


def _bio(person: Persona) -> str:
    return f"{str(person.traits['occupation']).capitalize()}. Here for {' and '.join(person.topics[:2])}."


def _handle(name: str) -> str:
    return "_".join(name.lower().split())
