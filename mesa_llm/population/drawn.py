"""People for a model in which otherwise everybody is the same: a name, and a sentence or two about each."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from mesa_llm.population.persona import FAMILY_NAMES, GIVEN_NAMES, Persona


def drawn_personas(n: int, rng: random.Random | int, *sentences: Sequence[str]) -> list[Persona]:
    """Draw people with different names, and with one sentence of each list as their persona.

    Sentences are dealt like cards: none of a list comes a second time before all others of it have come, so that a few
    people are as different as the lists allow.

    Args:
        n: Number of people.
        rng: Source of random draws, or a seed. Give it a stream of its own where nothing else may change, such as
            `random.Random(f"people {model.run_seed}")`.
        *sentences: Lists of sentences in the second person, such as temperaments and situations.

    Raises:
        ValueError: If `n` is negative, or a list is empty.
    """
    if n < 0 or not all(sentences):
        raise ValueError(
            f"people need a number from 0 on and lists with a sentence each, got {n} and {sentences!r:.200}"
        )
    source = random.Random(rng) if isinstance(rng, int) else rng
    names = _names(source)
    decks = [_dealt(deck, source) for deck in sentences]
    return [Persona(name=next(names), persona=" ".join(map(next, decks))) for _ in range(n)]


def _names(rng: random.Random) -> Iterator[str]:
    """Yield full names, none twice before all have come."""
    given = [name for names in GIVEN_NAMES.values() for name in names]
    return _dealt([f"{first} {last}" for first in given for last in FAMILY_NAMES], rng)


def _dealt(cards: Sequence[str], rng: random.Random) -> Iterator[str]:
    """Yield the entries of a list in an order drawn anew whenever all have come."""
    while True:
        yield from rng.sample(cards, len(cards))
