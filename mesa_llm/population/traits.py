"""Personas drawn from distributions of traits."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from mesa_llm.population.columns import People
from mesa_llm.population.follows import topical_follows
from mesa_llm.population.persona import FAMILY_NAMES, GIVEN_NAMES, Persona

V = TypeVar("V", bound=Hashable)

CodeArray = npt.NDArray[np.int16]
"""Codes of traits: indices into their names; ages themselves."""

Bins = Mapping[tuple[int, int], float]

MBTI = {
    "ISTJ": 0.12625,
    "ISFJ": 0.11625,
    "INFJ": 0.02125,
    "INTJ": 0.03125,
    "ISTP": 0.05125,
    "ISFP": 0.07125,
    "INFP": 0.04625,
    "INTP": 0.04125,
    "ESTP": 0.04625,
    "ESFP": 0.06625,
    "ENFP": 0.07125,
    "ENTP": 0.03625,
    "ESTJ": 0.10125,
    "ESFJ": 0.11125,
    "ENFJ": 0.03125,
    "ENTJ": 0.03125,
}
"""Personality types and their shares (OASIS, appendix E.2)."""

X_AGES: Bins = {(13, 17): 0.066, (18, 24): 0.171, (25, 34): 0.385, (35, 49): 0.207, (50, 70): 0.171}
"""Ages of X users, first and last year, and their shares (OASIS, appendix E.2)."""

REDDIT_AGES: Bins = {(10, 17): 0.11, (18, 29): 0.44, (30, 49): 0.31, (50, 64): 0.11, (65, 100): 0.03}
"""Ages of Reddit users and their shares (OASIS, appendix E.3)."""

X_GENDERS = {"male": 0.4, "female": 0.4, "other": 0.2}
REDDIT_GENDERS = {"female": 0.351, "male": 0.636}

REDDIT_COUNTRIES = {"US": 0.4833, "UK": 0.0733, "Canada": 0.0697, "Australia": 0.0416, "Germany": 0.0306, "": 0.3016}
"""Countries of Reddit users and their shares; empty: one of `OTHER_COUNTRIES` (OASIS, appendix E.3)."""

OTHER_COUNTRIES = (
    *("Argentina", "Brazil", "Chile", "Egypt", "France", "Ghana", "Greece", "India", "Indonesia", "Italy", "Japan"),
    *("Kenya", "Malaysia", "Mexico", "Netherlands", "Nigeria", "Norway", "Peru", "Philippines", "Poland", "Portugal"),
    *("South Africa", "South Korea", "Spain", "Sweden", "Turkey", "Vietnam"),
)
"""Our own list; OASIS lets a language model name a country."""

PROFESSIONS = (
    "Agriculture, Food & Natural Resources",
    "Architecture & Construction",
    "Arts, Audio/Video Technology & Communications",
    "Business Management & Administration",
    "Education & Training",
    "Finance",
    "Government & Public Administration",
    "Health Science",
    "Hospitality & Tourism",
    "Human Services",
    "Information Technology",
    "Law, Public Safety, Corrections & Security",
    "Manufacturing",
    "Marketing",
    "Science, Technology, Engineering & Mathematics",
    "Transportation, Distribution & Logistics",
)
"""The 16 career clusters, equally likely (OASIS's code; its paper names 13 of them)."""

X_TOPICS = (
    *("Politics", "Urban Legends", "Business", "Terrorism & War", "Science & Technology"),
    *("Entertainment", "Natural Disasters", "Health", "Education"),
)
"""Topics of X users; each has two (OASIS, appendix E.2; its code never draws Education)."""

REDDIT_TOPICS = (
    *("Economics", "Information Technology", "Culture & Society", "General News"),
    *("Politics", "Business", "Fun"),
)
"""Topics of Reddit users; each has two or three (OASIS, appendix E.3)."""

COUNTRIES = (*(country for country in REDDIT_COUNTRIES if country), *OTHER_COUNTRIES)
"""All countries of Reddit users, in the order of their codes."""

COUNTRY_WEIGHTS = (
    *(share for country, share in REDDIT_COUNTRIES.items() if country),
    *(REDDIT_COUNTRIES[""] / len(OTHER_COUNTRIES) for _ in OTHER_COUNTRIES),
)
"""Shares of `COUNTRIES`."""

MAX_GIVEN = math.lcm(*(len(names) for names in GIVEN_NAMES.values()))
"""Number of codes of given names, a multiple of each gender's number of names."""

LEANINGS = {
    "E": "You like company and talk things through",
    "I": "You like quiet and think before you speak",
    "S": "you trust what you can see and count",
    "N": "you look for the idea behind things",
    "T": "you decide by argument",
    "F": "you decide by what it means for people",
    "J": "you like things settled",
    "P": "you like to keep things open",
}
"""Description of each letter of a personality type."""


def draw(n: int, rng: random.Random | int, traits: Mapping[str, Mapping[V, float]]) -> list[dict[str, V]]:
    """Draw traits for a number of people, each trait independently.

    Args:
        n: Number of people.
        rng: Source of random draws, or a seed.
        traits: Trait → value → weight; weights need not sum to 1.

    Raises:
        ValueError: If a trait has no values, or weights are negative, not finite, or all zero.
    """
    source = _source(rng)
    columns: dict[str, list[V]] = {}
    for trait, weights in traits.items():
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights.values()) or not sum(weights.values()):
            raise ValueError(f"trait {trait!r} needs weights from 0, at least one above it, got {dict(weights)!r:.200}")
        columns[trait] = source.choices(list(weights), list(weights.values()), k=n)
    return [{trait: column[person] for trait, column in columns.items()} for person in range(n)]


class DrawnPeople(People):
    """People drawn from distributions, at about twenty bytes each.

    Attributes:
        kind: `x` or `reddit`.
        n_core: Number of core users, which come first.
        columns: Trait → its codes; `topics` has the shape `(people, 3)`, padded with -1.
        core: Core users supplied by the caller, with their hours, posts and follows among themselves.
    """

    def __init__(
        self,
        kind: Literal["x", "reddit"],
        n_core: int,
        columns: Mapping[str, CodeArray],
        core: Sequence[Persona] = (),
    ) -> None:
        """Store the columns."""
        super().__init__(len(columns["age"]))
        self.kind: Literal["x", "reddit"] = kind
        self.n_core = n_core
        self.columns = columns
        self.core = tuple(core)
        for index, persona in enumerate(self.core):
            self.hours[index] = persona.activity

    def __eq__(self, other: object) -> bool:
        """Check whether all people are the same."""
        if not isinstance(other, DrawnPeople):
            return NotImplemented
        same = (self.kind, self.n_core, self.core) == (other.kind, other.n_core, other.core)
        return same and all(np.array_equal(column, other.columns[name]) for name, column in self.columns.items())

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def topics(self, index: int) -> tuple[str, ...]:
        """Return a person's topics of interest."""
        if index < len(self.core) and self.core[index].topics:
            return self.core[index].topics
        names = X_TOPICS if self.kind == "x" else REDDIT_TOPICS
        return tuple(names[code] for code in self.columns["topics"][index].tolist() if code >= 0)

    def description(self, index: int) -> str:
        """Return a person's description, for a prompt."""
        if index < len(self.core):
            return self.core[index].persona
        text = _persona(list(MBTI)[self.columns["mbti"][index]], self.topics(index))
        return f"{text} Many follow you." if index < self.n_core else text

    def persona(self, index: int) -> Persona:
        """Return a person."""
        if index < len(self.core):
            return self.core[index].model_copy(update={"topics": self.topics(index)})
        code = {name: int(column[index]) for name, column in self.columns.items() if column.ndim == 1}
        gender = list(self._genders)[code["gender"]]
        traits: dict[str, JsonValue] = {"age": code["age"], "gender": gender, "mbti": list(MBTI)[code["mbti"]]}
        traits["profession"] = PROFESSIONS[code["profession"]]
        if self.kind == "reddit":
            traits["country"] = COUNTRIES[code["country"]]
        name, username, bio = self._profile(index, gender, code["given"], code["family"], code["profession"])
        topics = self.topics(index)
        description = self.description(index)
        return Persona(name=name, persona=description, traits=traits, username=username, bio=bio, topics=topics)

    def profiles(self) -> Iterator[tuple[str, str, str]]:
        """Yield each person's name, handle and public profile."""
        for persona in self.core:
            yield persona.name, persona.username, persona.bio
        genders = list(self._genders)
        names = ("gender", "given", "family", "profession")
        for start in range(len(self.core), len(self), 10_000):
            columns = [self.columns[name][start : start + 10_000].tolist() for name in names]
            for index, (gender, *codes) in enumerate(zip(*columns, strict=True), start):
                yield self._profile(index, genders[gender], *codes)

    def posts(self) -> Iterator[tuple[int, str]]:
        """Yield the earlier posts of the supplied core users, each with the index of its author."""
        yield from ((index, post) for index, persona in enumerate(self.core) for post in persona.posts)

    @property
    def _genders(self) -> Mapping[str, float]:
        return X_GENDERS if self.kind == "x" else REDDIT_GENDERS

    def _profile(self, index: int, gender: str, given: int, family: int, profession: int) -> tuple[str, str, str]:
        given_names = GIVEN_NAMES[gender]
        name = f"{given_names[given % len(given_names)]} {FAMILY_NAMES[family]}"
        bio = f"{PROFESSIONS[profession]}. Here for {_enumeration(self.topics(index))}."
        return name, f"{name.replace(' ', '_').lower()}_{index + 1}", bio

    def follow_edges(self, probability: float = 0.2, *, rng: random.Random | int) -> npt.NDArray[np.int64]:
        """Let ordinary users follow core users who share a topic, as `core_ordinary_follows` does.

        Supplied core users keep their follows among themselves.

        Args:
            probability: Probability of each follow: 0.2 in OASIS's section 2.6 and code, 0.1 in its appendix E.2.
            rng: Source of random draws, or a seed.

        Returns:
            Distinct pairs (follower, followee), sorted, shape `(follows, 2)`.

        Raises:
            ValueError: If the probability is outside 0 to 1.
        """
        n = len(self.core)
        among = {(a, b) for a, persona in enumerate(self.core) for b in persona.follows if b < n and a != b}
        topical = topical_follows(self.columns["topics"], self.n_core, probability, rng)
        return np.concatenate([np.array(sorted(among), dtype=np.int64).reshape(-1, 2), topical])


def from_distributions(
    n: int,
    rng: random.Random | int,
    kind: Literal["x", "reddit"] = "x",
    n_core: int = 0,
    core: Sequence[Persona] = (),
) -> DrawnPeople:
    """Draw people from the distributions of OASIS's generated users.

    Traits are drawn independently, ages uniformly within their bin. Among X users, all pairs of topics are equally
    frequent; among core users, all single topics are. Reddit users get two or three random topics. Names and sentences
    are our own: OASIS has a language model write them, and uses real people as core users.

    Args:
        n: Number of people.
        rng: Source of random draws, or a seed.
        kind: `x` or `reddit`.
        n_core: Number of core users, whom others follow; they come first. Only on X.
        core: Core users to use instead of drawn ones, such as OASIS's 196 real ones; replaces `n_core`. Their topics
            among `X_TOPICS` decide who follows them; users without any are assigned one.

    Raises:
        ValueError: If the kind is unknown, or there are more core users than people.

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, appendix E.
    """
    if kind not in ("x", "reddit"):
        raise ValueError(f"kind must be 'x' or 'reddit', got {kind!r}")
    n_core = len(core) or n_core
    if not 0 <= n_core <= n or (n_core and kind == "reddit"):
        raise ValueError(f"n_core must be 0 to {n if kind == 'x' else 0} among {n} people of {kind!r}, got {n_core}")
    generator = np.random.default_rng(_source(rng).getrandbits(64))
    bins = X_AGES if kind == "x" else REDDIT_AGES
    bounds = np.array(list(bins), dtype=np.int64)[_codes(list(bins.values()), n, generator)]
    columns: dict[str, CodeArray] = {
        "age": generator.integers(bounds[:, 0], bounds[:, 1], endpoint=True).astype(np.int16),
        "gender": _codes(list((X_GENDERS if kind == "x" else REDDIT_GENDERS).values()), n, generator),
        "mbti": _codes(list(MBTI.values()), n, generator),
        "profession": _codes([1.0] * len(PROFESSIONS), n, generator),
        "given": generator.integers(0, MAX_GIVEN, n).astype(np.int16),
        "family": generator.integers(0, len(FAMILY_NAMES), n).astype(np.int16),
        "topics": _x_topics(n, n_core, generator) if kind == "x" else _reddit_topics(n, generator),
    }
    if kind == "reddit":
        columns["country"] = _codes(COUNTRY_WEIGHTS, n, generator)
    for index, persona in enumerate(core):
        if own := [X_TOPICS.index(topic) for topic in dict.fromkeys(persona.topics) if topic in X_TOPICS][:3]:
            columns["topics"][index] = own + [-1] * (3 - len(own))
    return DrawnPeople(kind, n_core, columns, core)


def _source(rng: random.Random | int) -> random.Random:
    return rng if isinstance(rng, random.Random) else random.Random(rng)


def _codes(weights: Sequence[float], n: int, generator: np.random.Generator) -> CodeArray:
    """Draw indices of weights, which need not sum to 1."""
    bounds = np.cumsum(weights) / math.fsum(weights)
    indices = np.searchsorted(bounds, generator.random(n), side="right")
    return np.minimum(indices, len(bounds) - 1).astype(np.int16)


def _x_topics(n: int, n_core: int, generator: np.random.Generator) -> CodeArray:
    """Assign single topics to core users and pairs to the others, equally often and in random order."""
    topics = np.full((n, 3), -1, dtype=np.int16)
    topics[:n_core, 0] = generator.permutation(np.arange(n_core) % len(X_TOPICS))
    pairs = np.array(list(combinations(range(len(X_TOPICS)), 2)), dtype=np.int16)
    topics[n_core:, :2] = pairs[generator.permutation(np.arange(n - n_core) % len(pairs))]
    return topics


def _reddit_topics(n: int, generator: np.random.Generator) -> CodeArray:
    """Draw two or three topics for each user."""
    order = np.argsort(generator.random((n, len(REDDIT_TOPICS))), axis=1)[:, :3].astype(np.int16)
    order[generator.random(n) < 0.5, 2] = -1
    return order


def _persona(mbti: str, topics: tuple[str, ...]) -> str:
    company, evidence, judgement, order = (LEANINGS[letter] for letter in mbti)
    return f"{company}; {evidence}; {judgement}, and {order}. You follow what is said about {_enumeration(topics)}."


def _enumeration(items: tuple[str, ...]) -> str:
    return " and ".join(part for part in (", ".join(items[:-1]), items[-1]) if part)
