"""Personas drawn from distributions of traits."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Mapping
from itertools import combinations
from typing import Literal, TypeVar

from pydantic import JsonValue

from mesa_llm.population.names import FAMILY_NAMES, GIVEN_NAMES
from mesa_llm.population.persona import Persona

V = TypeVar("V", bound=Hashable)

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
"""Ours: OASIS lets a language model name one."""

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
        n: People.
        rng: Source of draws, or a seed.
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


def from_distributions(n: int, rng: random.Random | int, kind: Literal["x", "reddit"] = "x") -> list[Persona]:
    """Draw personas from the distributions of OASIS's generated users.

    Traits are drawn independently, ages evenly within their bin. X users get every pair of topics equally often;
    Reddit users two or three topics at random. Names and sentences are ours: OASIS has a language model write them.

    Args:
        n: Personas.
        rng: Source of draws, or a seed.
        kind: `x` or `reddit`.

    Raises:
        ValueError: If the kind is another.

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, appendix E.
    """
    if kind not in ("x", "reddit"):
        raise ValueError(f"kind must be 'x' or 'reddit', got {kind!r}")
    source = _source(rng)
    genders = X_GENDERS if kind == "x" else REDDIT_GENDERS
    people = draw(n, source, {"gender": genders, "mbti": MBTI, "profession": dict.fromkeys(PROFESSIONS, 1.0)})
    bins = draw(n, source, {"years": X_AGES if kind == "x" else REDDIT_AGES})
    topics = _pairs_of_topics(n, source) if kind == "x" else _reddit_topics(n, source)
    personas: list[Persona] = []
    for index, traits in enumerate(people):
        age = source.randint(*bins[index]["years"])
        country = {"country": _country(source)} if kind == "reddit" else {}
        name = f"{source.choice(GIVEN_NAMES[traits['gender']])} {source.choice(FAMILY_NAMES)}"
        description = _persona(traits["mbti"], topics[index])
        handle = f"{name.replace(' ', '_').lower()}_{index + 1}"
        everything: dict[str, JsonValue] = {"age": age, **traits, **country}
        bio = f"{traits['profession']}. Here for {_listed(topics[index])}."
        personas.append(
            Persona(name=name, persona=description, traits=everything, username=handle, bio=bio, topics=topics[index])
        )
    return personas


def _source(rng: random.Random | int) -> random.Random:
    return rng if isinstance(rng, random.Random) else random.Random(rng)


def _pairs_of_topics(n: int, source: random.Random) -> list[tuple[str, ...]]:
    """Deal all pairs of topics evenly, then shuffle."""
    pairs = list(combinations(X_TOPICS, 2))
    dealt = [pairs[index % len(pairs)] for index in range(n)]
    source.shuffle(dealt)
    return dealt


def _reddit_topics(n: int, source: random.Random) -> list[tuple[str, ...]]:
    return [tuple(source.sample(REDDIT_TOPICS, source.randint(2, 3))) for _ in range(n)]


def _country(source: random.Random) -> str:
    country = source.choices(list(REDDIT_COUNTRIES), list(REDDIT_COUNTRIES.values()))[0]
    return country or source.choice(OTHER_COUNTRIES)


def _persona(mbti: str, topics: tuple[str, ...]) -> str:
    company, evidence, judgement, order = (LEANINGS[letter] for letter in mbti)
    return f"{company}; {evidence}; {judgement}, and {order}. You follow what is said about {_listed(topics)}."


def _listed(items: tuple[str, ...]) -> str:
    return " and ".join(part for part in (", ".join(items[:-1]), items[-1]) if part)
