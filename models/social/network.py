"""Who follows whom at the start, and where the network is drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence

import networkx as nx
from mesa.discrete_space import Network

from mesa_llm.population import Persona, preferential_follows

MOST_DRAWN = 500
"""Most users whose network is laid out and drawn."""

MOST_SPRUNG = 150
"""Most users whose network is laid out by springs; more stand in a circle."""


def follow_edges(personas: Sequence[Persona], follows: int, rng: random.Random) -> list[tuple[int, int]]:
    """Give who follows whom: what the population brings, or new users following popular ones.

    Args:
        personas: The population.
        follows: Users that each follows, where the population brings no follows.
        rng: Source of draws.

    Returns:
        (follower, followee), as places in the population, sorted.
    """
    n = len(personas)
    if any(persona.follows for persona in personas):
        return sorted({(a, b) for a, persona in enumerate(personas) for b in persona.follows if b < n and a != b})
    if n < 2 or follows < 1:
        return []
    return [(int(a), int(b)) for a, b in preferential_follows(n, min(follows, n - 1), rng)]


def follow_network(n: int, edges: Sequence[tuple[int, int]], seed: int, rng: random.Random) -> Network:
    """Lay the follow network out for drawing; beyond `MOST_DRAWN` users it is empty.

    Args:
        n: Users.
        edges: Who follows whom.
        seed: Seed of the layout.
        rng: Source of draws of the space.
    """
    graph = nx.Graph()
    if n <= MOST_DRAWN:
        graph.add_nodes_from(range(n))
        graph.add_edges_from(edges)
    sprung = 0 < n <= MOST_SPRUNG
    layout = (
        nx.spring_layout(graph, seed=seed % 2**31, k=1.6 / max(n, 1) ** 0.5) if sprung else nx.circular_layout(graph)
    )
    return Network(graph, capacity=None, random=rng, layout=layout)
