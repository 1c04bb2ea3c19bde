"""What personal feeds cost: texts as vectors, and the best of many posts for many users.

Times are processor seconds on one thread of the matrix library, the minimum of several runs. `top` finds the 50 best of
10,000 posts for each of 10,000 users, vectors of 256 numbers (wordllama's) drawn at random; `product` is the part of it
that the products of the vectors take alone, below which nothing exact can go. `feeds` picks the feeds of as many
viewers among the newest 4,000 posts. Embedders that are not installed are left out.

    python benchmarks/embeddings.py                   10,000 users and posts
    python benchmarks/embeddings.py --size 2000 --json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from thresholds import Threshold, table

from mesa_llm.errors import ConfigError
from mesa_llm.llm.embeddings import embedder
from mesa_llm.population import from_distributions
from mesa_llm_models.social.world import Account, PersonalFeed, SocialWorld
from mesa_llm_models.social.world.personal import VectorArray, best_matches

DIMENSIONS = 256
TOP = 50
SIZE = 10_000


def seconds(function: Callable[[], Any], runs: int = 5) -> float:
    """Return the minimum processor time of several runs."""
    found: list[float] = []
    for _ in range(runs):
        begun = time.process_time()
        function()
        found.append(time.process_time() - begun)
    return min(found)


def vectors(n: int, seed: int) -> VectorArray:
    """Draw vectors of length 1."""
    rows = np.random.default_rng(seed).normal(size=(n, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def product(users: VectorArray, posts: VectorArray, at_once: int = 200) -> None:
    """Multiply users with posts in batches, and discard the products."""
    columns = np.ascontiguousarray(posts.T)
    for start in range(0, len(users), at_once):
        np.matmul(users[start : start + at_once], columns)


def text_ms(name: str, n: int = 200) -> float | None:
    """Return the milliseconds for a new text of some twenty words; None if it is not installed."""
    people = from_distributions(n + 1, 1)
    texts = [person.persona for person in people]
    try:
        opened = embedder(name)
    except ConfigError:
        return None
    opened.embed(texts[:1])
    begun = time.process_time()
    opened.embed(texts[1:])
    return 1e3 * (time.process_time() - begun) / n


def feeds(users: int) -> dict[str, float]:
    """Measure the feeds of all users twice: with the embedding of texts, and without."""
    people = from_distributions(users, 1)
    world = SocialWorld("x", rng=1, feed=PersonalFeed(embedder().embed))
    world.sign_up_many(Account(index, *profile) for index, profile in enumerate(people.profiles(), start=1))
    for user in range(1, min(users, 4000) + 1):
        world.create_post(user, f"{user}: {people.persona(user - 1).persona}")
    everyone = world.viewers(range(1, users + 1))
    return {name: seconds(lambda: world.feeds(everyone), runs=1) for name in ("feeds_first_s", "feeds_s")}


def measure(size: int) -> dict[str, Any]:
    """Measure everything."""
    users, posts, weights = vectors(size, 1), vectors(size, 2), np.ones(size)
    with threadpool_limits(1):
        return {
            "size": size,
            "top_s": seconds(lambda: best_matches(users, posts, weights, TOP)),
            "product_s": seconds(lambda: product(users, posts)),
            **feeds(size),
            **{f"{name}_ms": text_ms(name) for name in ("wordllama", "minilm")},
        }


def main() -> None:
    """Measure, and print a table or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=SIZE, help="number of users, and of posts")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    chosen = parser.parse_args()
    found = measure(chosen.size)
    if chosen.json:
        print(json.dumps(found))
        return
    top_s = found["top_s"] if chosen.size == SIZE else None
    thresholds = [
        Threshold(f"top {TOP} of {SIZE:,} × {SIZE:,}", top_s, 0.8, "s"),
        Threshold("a text by wordllama", found["wordllama_ms"], 0.5, "ms"),
        Threshold("a text by MiniLM", found["minilm_ms"], 25, "ms"),
    ]
    print(table(("What", "Threshold", "Measured", "Verdict"), [threshold.row for threshold in thresholds]))
    print(f"Of the top {TOP}, {found['product_s'] / found['top_s']:.0%} are the products of vectors.")
    print(f"Feeds of {chosen.size:,} viewers: {found['feeds_first_s']:.2f} s at first, {found['feeds_s']:.2f} s again.")


if __name__ == "__main__":
    main()
