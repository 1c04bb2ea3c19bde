"""Generate initial follow graphs.

Users are indices into the population, from 0. Every graph is a sorted list of distinct pairs (follower, followee), in
which no user follows itself; `follow_matrix` turns it into a sparse matrix.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array

IntArray = npt.NDArray[np.int64]
Edges = list[tuple[int, int]]


def core_ordinary_follows(
    topics: Sequence[Sequence[str]],
    n_core: int,
    probability: float = 0.2,
    *,
    rng: random.Random | int,
) -> Edges:
    """Let ordinary users follow core users who share a topic with them, with a given probability.

    Pairs that share several topics get one draw for each. Ordinary users do not follow one another, and core users
    follow no one here, since their follows are taken from real data.

    Args:
        topics: Topics of each user; the core users come first.
        n_core: Number of core users.
        probability: Probability of each follow: 0.2 in OASIS's section 2.6 and code, 0.1 in its appendix E.2.
        rng: Source of random draws, or a seed.

    Raises:
        ValueError: If the probability is outside 0 to 1, or there are fewer users than core users.

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, section 2.6 and appendix E.2.
    """
    if not 0 <= n_core <= len(topics):
        raise ValueError(f"n_core must be 0 to {len(topics)}, the number of users, got {n_core}")
    names = {topic: code for code, topic in enumerate(sorted({topic for own in topics for topic in own}))}
    codes = np.full((len(topics), max((len(own) for own in topics), default=0)), -1, dtype=np.int64)
    for user, own in enumerate(topics):
        distinct = dict.fromkeys(own)
        codes[user, : len(distinct)] = [names[topic] for topic in distinct]
    return cast("Edges", [tuple(edge) for edge in topical_follows(codes, n_core, probability, rng).tolist()])


def topical_follows(
    topics: npt.NDArray[np.integer[Any]], n_core: int, probability: float, rng: random.Random | int
) -> IntArray:
    """Compute the follows of `core_ordinary_follows` for populations of a million.

    Args:
        topics: Codes of each user's distinct topics, from 0, padded with -1, shape `(users, topics)`; the core users
            come first.
        n_core: Number of core users.
        probability: Probability of each follow.
        rng: Source of random draws, or a seed.

    Returns:
        Distinct pairs (follower, followee), sorted, shape `(follows, 2)`.

    Raises:
        ValueError: If the probability is outside 0 to 1.
    """
    _check_probability(probability)
    generator = _generator(rng)
    codes: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    for topic in range(int(topics.max(initial=-1)) + 1):
        members = np.flatnonzero((topics == topic).any(axis=1))
        core, ordinary = members[members < n_core], members[members >= n_core]
        follows = generator.random((len(ordinary), len(core))) < probability
        rows, columns = np.nonzero(follows)
        codes.append(ordinary[rows] * len(topics) + core[columns])
    edges = np.sort(np.concatenate(codes))  # much faster than np.unique, which hashes
    distinct = edges[np.diff(edges, prepend=-1) > 0]
    return np.stack([distinct // max(len(topics), 1), distinct % max(len(topics), 1)], axis=1)


def random_follows(n: int, each: int, rng: random.Random | int) -> Edges:
    """Let every user follow a fixed number of others, drawn uniformly.

    Args:
        n: Number of users.
        each: Number of others that each follows.
        rng: Source of random draws, or a seed.

    Raises:
        ValueError: If `each` exceeds the number of others.
    """
    _check_others(n, each)
    generator = _generator(rng)
    followers = np.repeat(np.arange(n), each)
    others = generator.integers(0, max(n - 1, 1), (n, each))
    while True:
        others.sort(axis=1)
        repeated = np.zeros(others.shape, dtype=np.bool_)
        repeated[:, 1:] = others[:, 1:] == others[:, :-1]
        if not repeated.any():
            break
        others[repeated] = generator.integers(0, n - 1, int(repeated.sum()))
    followees = others + (others >= np.arange(n)[:, None])  # skips the follower itself
    return _edges(followers, followees.ravel(), n)


def preferential_follows(n: int, each: int, rng: random.Random | int) -> Edges:
    """Let users join one by one and follow earlier ones, preferring those with many followers.

    The first `each` + 1 users all follow one another. Each later user follows `each` others, drawn with probability
    proportional to their followers plus one.

    Args:
        n: Number of users.
        each: Number of others that each follows.
        rng: Source of random draws, or a seed.

    Raises:
        ValueError: If `each` exceeds the number of others.

    Source:
        Price (1976), A general theory of bibliometric and other cumulative advantage processes, JASIS 27(5).
    """
    _check_others(n, each)
    source = rng if isinstance(rng, random.Random) else random.Random(rng)
    return cast("Edges", [tuple(edge) for edge in preferential_edges(n, each, source).tolist()])


def preferential_edges(n: int, each: int, rng: random.Random) -> npt.NDArray[np.int32]:
    """Compute the follows of `preferential_follows` as an array.

    Drawing ten million follows takes 120 MB.

    Args:
        n: Number of users.
        each: Number of others that each follows.
        rng: Source of random draws.

    Returns:
        (follower, followee), sorted, shape `(follows, 2)`.
    """
    first = min(each + 1, n)
    tickets = array("i", (b for a in range(first) for b in range(first) if a != b))
    tickets.extend(range(first))
    followees = array("i", (b for a in range(first) for b in range(first) if a != b))
    draw = rng.getrandbits
    for newcomer in range(first, n):
        count = len(tickets)
        n_bits = count.bit_length()
        targets: dict[int, None] = {}
        while len(targets) < each:
            if (index := draw(n_bits)) < count:  # as `rng.choice` draws, in a third of the time
                targets[tickets[index]] = None
        followees.extend(targets)
        tickets.extend(targets)
        tickets.append(newcomer)
    del tickets
    codes = np.repeat(np.arange(n), [first - 1] * first + [each] * (n - first))
    codes <<= 32
    codes |= np.frombuffer(followees, dtype=np.int32) if followees else 0
    del followees
    codes.sort()
    edges = np.empty((len(codes), 2), dtype=np.int32)
    edges[:, 0], edges[:, 1] = codes >> 32, codes & 0xFFFFFFFF
    return edges


MAX_REJECTED = 50
"""Number of draws in vain after which the users who can still be followed are listed."""


def ranked_edges(
    n: int,
    each: int,
    rng: random.Random,
    *,
    ranks: Sequence[int] | None = None,
    camps: Sequence[int] | None = None,
    homophily: float | None = None,
) -> npt.NDArray[np.int32]:
    """Let every user follow a fixed number of others, of whom those of the first ranks are the hubs.

    Each follow goes to a user of one's own camp with a given probability, and otherwise to one of another camp; where
    there is none left, to anybody. Among these, the user of rank 1 is twice as likely to be followed as that of rank 2,
    three times as likely as that of rank 3, and so on.

    Args:
        n: Number of users.
        each: Number of others that each follows.
        rng: Source of random draws.
        ranks: Rank of each user, from 1; None: all are equal, so that there are no hubs.
        camps: Camp of each user; None: all are in one.
        homophily: Probability that a follow goes to somebody of one's own camp; None: camps do not matter.

    Returns:
        (follower, followee), sorted, shape `(n * each, 2)`.

    Raises:
        ValueError: If `each` exceeds the number of others, or the probability is outside 0 to 1.

    Source:
        Goh, Kahng and Kim (2001), Universal behavior of load distribution in scale-free networks, PRL 87, 278701, with
        an exponent of 1; here directed and with camps.
    """
    _check_others(n, each)
    _check_probability(homophily or 0.0)
    weights = np.ones(n) if ranks is None else 1 / np.asarray(ranks)
    own_camps = np.zeros(n, dtype=np.int64) if camps is None or homophily is None else np.asarray(camps)
    members = {camp: np.flatnonzero(own_camps == camp) for camp in np.unique(own_camps).tolist()}
    sums = {camp: weights[users].cumsum() for camp, users in members.items()}
    everybody, all_sums = np.arange(n), weights.cumsum()
    edges = np.empty((n, each, 2), dtype=np.int32)
    for user in range(n):
        camp = int(own_camps[user])
        followed: dict[int, None] = {}
        while len(followed) < each:
            is_same = homophily is None or rng.random() < homophily
            pool, pool_sums = (members[camp], sums[camp]) if is_same else (everybody, all_sums)
            excluded = {user, *followed}
            for _ in range(MAX_REJECTED):
                found = int(pool[np.searchsorted(pool_sums, rng.random() * pool_sums[-1], side="right")])
                if found not in excluded and (own_camps[found] == camp) == is_same:
                    break
            else:
                left = [one for one in pool.tolist() if one not in excluded and (own_camps[one] == camp) == is_same]
                left = left or [one for one in range(n) if one not in excluded]
                found = rng.choices(left, weights[left].tolist())[0]
            followed[found] = None
        edges[user, :, 0], edges[user, :, 1] = user, sorted(followed)
    return edges.reshape(-1, 2)


def watts_strogatz_follows(n: int, each: int, rewired: float, rng: random.Random | int) -> Edges:
    """Let users on a ring follow their nearest neighbours, and rewire some of these follows.

    Args:
        n: Number of users.
        each: Number of neighbours that each follows, half on either side; if it is odd, one more ahead.
        rewired: Probability that a follow goes to a uniformly drawn user instead.
        rng: Source of random draws, or a seed.

    Raises:
        ValueError: If `each` exceeds the number of others, or the probability is outside 0 to 1.

    Source:
        Watts and Strogatz (1998), Collective dynamics of "small-world" networks, Nature 393; here directed.
    """
    _check_others(n, each)
    _check_probability(rewired)
    generator = _generator(rng)
    steps = np.array([1 + slot // 2 if slot % 2 == 0 else -(1 + slot // 2) for slot in range(each)], dtype=np.int64)
    ring = (np.arange(n)[:, None] + steps) % max(n, 1)
    moves = generator.random(ring.shape) < rewired
    for user, slot in zip(*np.nonzero(moves), strict=True):
        excluded = {user, *ring[user].tolist()}
        if len(excluded) < n:
            target = int(generator.integers(0, n))
            while target in excluded:
                target = int(generator.integers(0, n))
            ring[user, slot] = target
    return _edges(np.repeat(np.arange(n), each), ring.ravel(), n)


def follow_matrix(edges: Iterable[tuple[int, int]], n: int) -> csr_array:
    """Convert follows to a sparse matrix with followers in rows, followees in columns, and 1 for each follow.

    Args:
        edges: Pairs (follower, followee) of indices.
        n: Number of users.

    Raises:
        ValueError: If an index is outside the population.
    """
    from scipy.sparse import csr_array

    pairs = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    if pairs.size and not (pairs.min() >= 0 and pairs.max() < n):
        raise ValueError(f"indices run from 0 to {n - 1}, got {pairs.min()} to {pairs.max()}")
    ones = np.ones(len(pairs), dtype=np.int8)
    return csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n, n))


def _edges(followers: IntArray, followees: IntArray, n: int) -> Edges:
    """Sort edges and drop duplicates."""
    codes = np.unique(followers * n + followees)
    return cast("Edges", list(zip((codes // max(n, 1)).tolist(), (codes % max(n, 1)).tolist(), strict=True)))


def _generator(rng: random.Random | int) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64) if isinstance(rng, random.Random) else rng)


def _check_probability(probability: float) -> None:
    if not 0 <= probability <= 1:
        raise ValueError(f"a probability must be 0 to 1, got {probability!r}")


def _check_others(n: int, each: int) -> None:
    if not (n >= 0 and 0 <= each <= max(n - 1, 0)):
        raise ValueError(f"each of {n} users can follow 0 to {max(n - 1, 0)} others, got {each}")
