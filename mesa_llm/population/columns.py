"""Large populations stored in columns: personas, hours of activity and follows at a few bytes each.

Personas are created on access.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import overload

import numpy as np
import numpy.typing as npt

from mesa_llm.config import AgentConfig, Settings
from mesa_llm.population.activity import HOURS
from mesa_llm.population.persona import FAMILY_NAMES, GIVEN_NAMES, Persona
from mesa_llm.population.tables import from_table

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ALWAYS = (1.0,) * HOURS
"""Hours of activity of a person who may be active at any time."""

MAX_CONFIGS = 20_000
"""Maximum number of cached configs."""

RESIDENTS = "residents.csv"
"""File with invented residents of a small town, for demonstrations."""


class HourTable:
    """The hours of activity of a population: a few distinct profiles, and an index into them for each person."""

    def __init__(self, n: int) -> None:
        """Create a table in which everyone may be active at any time.

        Args:
            n: Number of people.
        """
        self._profiles: list[tuple[float, ...]] = [ALWAYS]
        self._numbers: dict[tuple[float, ...], int] = {ALWAYS: 0}
        self._codes = np.zeros(n, dtype=np.int32)

    def __len__(self) -> int:
        """Count the people."""
        return len(self._codes)

    def __getitem__(self, index: int) -> tuple[float, ...]:
        """Return a person's 24 probabilities of being active, from midnight on."""
        return self._profiles[self._codes[index]]

    def __setitem__(self, index: int, hours: Sequence[float]) -> None:
        """Set a person's 24 probabilities; an empty sequence means active at any time."""
        profile = tuple(hours) or ALWAYS
        number = self._numbers.setdefault(profile, len(self._profiles))
        if number == len(self._profiles):
            self._profiles.append(profile)
        self._codes[index] = number

    def at(self, hour: int) -> FloatArray:
        """Return each person's probability of being active in an hour, shape `(people,)`."""
        return np.array([profile[hour] for profile in self._profiles])[self._codes]


class People(Sequence[Persona]):
    """A population whose personas are created on access.

    Attributes:
        hours: Hours of activity.
    """

    def __init__(self, n: int) -> None:
        """Create a population of a given size.

        Args:
            n: Number of people.
        """
        self._n = n
        self._configs: dict[int, AgentConfig] = {}
        self._edges: IntArray | None = None
        self.hours = HourTable(n)

    def __len__(self) -> int:
        """Count the people."""
        return self._n

    @overload
    def __getitem__(self, index: int) -> Persona: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Persona]: ...

    def __getitem__(self, index: int | slice) -> Persona | Sequence[Persona]:
        """Return a person, or several as a list."""
        if isinstance(index, slice):
            return [self.persona(each) for each in range(*index.indices(self._n))]
        if not -self._n <= index < self._n:
            raise IndexError(f"index {index} is out of range for {self._n} people")
        return self.persona(index % self._n)

    @abstractmethod
    def persona(self, index: int) -> Persona:
        """Return a person."""

    def topics(self, index: int) -> tuple[str, ...]:
        """Return a person's topics of interest."""
        return self.persona(index).topics

    def description(self, index: int) -> str:
        """Return a person's description, for a prompt."""
        return self.persona(index).persona

    def profiles(self) -> Iterator[tuple[str, str, str]]:
        """Yield each person's name, handle and public profile."""
        for persona in self:
            yield persona.name, persona.username, persona.bio

    @property
    def edges(self) -> IntArray | None:
        """Initial follows: sorted pairs (follower, followee); None if the population does not specify any."""
        return self._edges

    @edges.setter
    def edges(self, edges: IntArray) -> None:
        self._edges = edges

    def posts(self) -> Iterator[tuple[int, str]]:
        """Yield the population's earlier posts, each with the index of its author."""
        return iter(())

    def config(self, index: int, settings: Settings) -> AgentConfig:
        """Return the config of an agent that plays a person; recent configs are cached.

        Args:
            index: Index of the person.
            settings: Sampling settings of its language model.
        """
        config = self._configs.get(index)
        if config is None or config.settings is not settings:
            if len(self._configs) >= MAX_CONFIGS:
                self._configs.clear()
            config = self._configs[index] = self._config(index, settings)
        return config

    def _config(self, index: int, settings: Settings) -> AgentConfig:
        return self.persona(index).config(settings=settings)


class ListedPeople(People):
    """A population that is a list of personas."""

    def __init__(self, personas: Sequence[Persona]) -> None:
        """Store the personas.

        Args:
            personas: Persona of each person.
        """
        super().__init__(len(personas))
        self._personas = personas
        for index, persona in enumerate(personas):
            self.hours[index] = persona.activity
        if any(persona.follows for persona in personas):
            n = len(personas)
            pairs = {(a, b) for a, persona in enumerate(personas) for b in persona.follows if b < n and a != b}
            self.edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)

    def persona(self, index: int) -> Persona:
        """Return a person."""
        return self._personas[index]

    def posts(self) -> Iterator[tuple[int, str]]:
        """Yield the earlier posts, each with the index of its author."""
        for index, persona in enumerate(self._personas):
            for post in persona.posts:
                yield index, post


MIN_AGE, MAX_AGE = 18, 80
"""Ages of invented people who combine residents."""


class InventedPeople(People):
    """The residents that `invented` draws, stored in ten bytes each."""

    def __init__(self, n: int, rng: random.Random | int) -> None:
        """Draw the residents.

        Args:
            n: Number of people.
            rng: Source of random draws, or a seed.

        Raises:
            ValueError: If `n` is negative.
        """
        if n < 0:
            raise ValueError(f"n must be 0 or more, got {n}")
        super().__init__(n)
        source = rng if isinstance(rng, random.Random) else random.Random(rng)
        self._residents = residents()
        self._given_names = [name for names in GIVEN_NAMES.values() for name in names]
        count = len(self._residents)
        self._first = source.sample(range(count), min(n, count))
        draws = array("B")
        sizes = (count, count, count, len(self._given_names), len(FAMILY_NAMES), MAX_AGE + 1 - MIN_AGE)
        columns = [(size, size.bit_length()) for size in sizes]
        add, draw = draws.append, source.getrandbits
        for _ in range(len(self._first), n):
            for size, n_bits in columns:
                while (index := draw(n_bits)) >= size:  # as `choice` and `randint` draw, in a third of the time
                    pass
                add(index)
        self._draws = np.frombuffer(draws, dtype=np.uint8).reshape(-1, 6) if draws else np.zeros((0, 6), np.uint8)
        self._draws[:, 5] += MIN_AGE

    def _drawn(self, index: int) -> tuple[Persona, Persona, Persona, str, int]:
        """Return the residents whose occupation, interests and style a person combines, and its name and age."""
        worker, dreamer, speaker, given, family, age = self._draws[index - len(self._first)].tolist()
        everyone = self._residents
        name = f"{self._given_names[given]} {FAMILY_NAMES[family]}"
        return everyone[worker], everyone[dreamer], everyone[speaker], name, age

    def persona(self, index: int) -> Persona:
        """Return a person."""
        if index < len(self._first):
            return self._residents[self._first[index]]
        worker, dreamer, speaker, name, age = self._drawn(index)
        return worker.model_copy(
            update={
                "name": name,
                "persona": dreamer.persona,
                "topics": dreamer.topics,
                "style": speaker.style,
                "username": f"{handle(name)}_{index + 1}",
                "traits": {**worker.traits, "age": age},
            }
        )

    def _dreamer(self, index: int) -> Persona:
        first = len(self._first)
        return self._residents[self._first[index] if index < first else self._draws[index - first, 1]]

    def topics(self, index: int) -> tuple[str, ...]:
        """Return a person's topics of interest."""
        return self._dreamer(index).topics

    def description(self, index: int) -> str:
        """Return a person's description, for a prompt."""
        return self._dreamer(index).persona

    def profiles(self) -> Iterator[tuple[str, str, str]]:
        """Yield each person's name, handle and public profile."""
        for number in self._first:
            persona = self._residents[number]
            yield persona.name, persona.username, persona.bio
        bios = [persona.bio for persona in self._residents]
        given_handles, family_handles = (
            [handle(name) for name in names] for names in (self._given_names, FAMILY_NAMES)
        )
        for start in range(0, len(self._draws), 10_000):
            draws = self._draws[start : start + 10_000].tolist()
            for index, (worker, _, _, given, family, _) in enumerate(draws, start + len(self._first)):
                name = f"{self._given_names[given]} {FAMILY_NAMES[family]}"
                yield name, f"{given_handles[given]}_{family_handles[family]}_{index + 1}", bios[worker]

    def _config(self, index: int, settings: Settings) -> AgentConfig:
        if index < len(self._first):
            return self.persona(index).config(settings=settings)
        worker, dreamer, speaker, name, age = self._drawn(index)
        return AgentConfig.model_construct(  # all parts have been validated
            set(_CONFIG_FIELDS),
            name=name,
            persona=dreamer.persona,
            traits={**worker.traits, "age": age},
            style=speaker.style,
            settings=settings,
            role={},  # pydantic looks at the signature of a default's factory each time
        )


_CONFIG_FIELDS = {"name", "persona", "traits", "style", "settings"}
"""Fields of a config that are not defaults."""


def invented(n: int, rng: random.Random | int) -> list[Persona]:
    """Return fictional people with names, ages, occupations, interests and ways of speaking.

    The first are distinct residents. Once these run out, new people combine the occupation of one resident with the
    interests and the way of speaking of others, under a new name.

    Args:
        n: Number of people.
        rng: Source of random draws, or a seed.

    Raises:
        ValueError: If `n` is negative.
    """
    return list(InventedPeople(n, rng))


def people_of(personas: Sequence[Persona]) -> People:
    """Wrap personas as a population."""
    return personas if isinstance(personas, People) else ListedPeople(personas)


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
