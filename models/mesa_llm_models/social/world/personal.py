"""The feed of X as described in OASIS's paper, which selects posts by recency, reach and interest.

Each text is converted once to a vector of length 1 (a row of float32). The embedding function is passed to the feed,
because a world has no access to language models. Interests of many viewers are compared at once by matrix products.
Since rounding differs between one viewer and many, these only preselect posts, which are then scored again, one pair at
a time: a viewer's feed is the same in a batch and alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mesa_llm.errors import ConfigError
from mesa_llm_models.social.world.csr import BoolArray, FloatArray, IntArray, Ragged
from mesa_llm_models.social.world.post_index import PostIndex, Viewers
from mesa_llm_models.social.world.recommenders import (
    Picker,
    joined,
    most_liked_of_followed,
    newest_posts,
    sampled,
)

VectorArray = npt.NDArray[np.float32]

Embed = Callable[[Sequence[str]], VectorArray]
"""Returns one row of length 1 for each text, shape `(texts, dimensions)`."""

PersonalForm = Literal["ours", "paper", "code"]
"""Formula combining recency, reach and interest, see `PersonalFeed`."""

LIFE_MIN = 271.8
"""Age in minutes at which recency becomes undefined: 100 e, so a new post has recency 1 (OASIS)."""

NO_EMBED = (
    "this feed compares texts and needs an embedding function: embed=embedder().embed (from mesa_llm.llm.embeddings); "
    "feed='x' ranks by popularity and needs none"
)
"""Message of a feed without an embedding function."""

MIN_RECENCY = 0.1
"""Minimum recency of a post, in form `ours`."""

FANS_BASE = 1000
"""Number of followers, plus one, up to which an author has reach 1 (OASIS)."""

MAX_USERS = 200_000
"""Maximum number of users with stored vectors; beyond it, all are dropped and recomputed when needed."""

BLOCK = 2_000_000
"""Maximum number of scores computed at once."""

N_SAMPLED = 1024
"""Number of scores per viewer from which the level of the best is estimated."""

SPARE = 8
"""Number of scores beyond each row's best to examine first, in case of ties with the last."""

UNIT = 2.0**-24
"""Rounding error of float32. The product of two vectors of length 1 is off by at most this times their dimension."""

NO_PROFILE = "This user says nothing about themselves."
"""Profile text for users without one."""


@dataclass(frozen=True, eq=False)
class PersonalFeed:
    """Shows the most liked posts of followed users, then the others' posts that match the viewer best.

    A post by another user scores

        R · F · S,   R = ln((271.8 - age) / 100),   F = max(1, log1000(followers + 1)),   S = cosine of post and user

    with its age in minutes, and the user as its profile with its latest post. `form="paper"` is this formula: R falls
    below 0 at 171.8 minutes, and a post is no longer shown from 271.8 on. `form="ours"`, the default, keeps R at 0.1 or
    more, so old posts that match still rank above those that do not. `form="code"` is what OASIS's code computes: S
    alone, because its R is always that of the moment of publication, and its F is not applied.

    In all forms, posts of others exclude the viewer's own posts, those of users it follows or muted, replies and plain
    reposts (OASIS includes one's own). A user whose latest post is a repost is represented by the reposted text. Only
    the newest posts are compared (OASIS draws 4,000 at random if there are more).

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, section 2.3; camel-ai/oasis, `recsys.py` (2026-05).
    """

    embed: Embed | None = None
    """Converts texts to vectors; None for the world's own function."""

    form: PersonalForm = "ours"
    """Formula of the score."""

    following_posts: int = 3
    """Maximum number of posts of followed users (OASIS's Twitter preset)."""

    other_posts: int = 2
    """Maximum number of posts of others (OASIS's Twitter preset)."""

    pool: int = 2
    """Number of top posts of others from which the displayed ones are drawn (OASIS's Twitter preset)."""

    candidates: int = 4000
    """Number of newest posts compared (OASIS)."""

    _memories: WeakKeyDictionary[PostIndex, Vectors] = field(
        default_factory=lambda: WeakKeyDictionary[PostIndex, "Vectors"](), init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Check form and sizes.

        Raises:
            ConfigError: If the form is unknown, or a size is negative.
        """
        if self.form not in ("ours", "paper", "code"):
            raise ConfigError(f"the form of a personal feed must be 'ours', 'paper' or 'code', got {self.form!r}")
        for name in ("following_posts", "other_posts", "pool", "candidates"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be 0 or more, got {getattr(self, name)}")

    def rank(self, board: PostIndex) -> Picker:
        """Weight the newest posts by recency and reach. Interests are compared on viewing.

        Raises:
            ConfigError: If there is no embedding function.
        """
        if self.embed is None:
            raise ConfigError(NO_EMBED)
        memory = self._memories.setdefault(board, Vectors(self.embed))
        rows = np.sort(newest_posts(board).first(self.candidates)[: self.candidates])
        weights = self.weights(board, rows)
        rows, weights = rows[np.isfinite(weights)], weights[np.isfinite(weights)]

        def pick(viewers: Viewers, size: int) -> Ragged:
            followed = most_liked_of_followed(board, viewers, self.following_posts)
            others = self._others(board, memory, viewers, rows, weights, followed)
            return joined(followed, sampled(others, self.other_posts, viewers.seeds)).head(size)

        return Picker(pick)

    def weights(self, board: PostIndex, rows: IntArray) -> FloatArray:
        """Return the factors applied to interest in some posts; NaN for posts no longer shown."""
        if self.form == "code":
            return np.ones(len(rows))
        left = LIFE_MIN - (board.step - board.created[rows].astype(np.float64)) * board.step_minutes
        recency = np.log(np.where(left > 0, left, np.nan) / 100)
        if self.form == "ours":
            recency = np.fmax(recency, MIN_RECENCY)
        fans = board.followers[board.author[rows]].astype(np.float64) + 1
        weights = recency * np.maximum(1.0, np.log(fans) / math.log(FANS_BASE))
        return np.round(weights, 12)  # the last digits of a logarithm vary between processors

    def _others(
        self, board: PostIndex, memory: Vectors, viewers: Viewers, rows: IntArray, weights: FloatArray, followed: Ragged
    ) -> Ragged:
        """Return the best posts of others for each viewer, best first. Ties go to the newer post."""
        if not len(rows) or not self.pool or not self.other_posts:
            return Ragged.of([()] * len(viewers))
        authors = board.author[rows]
        sources = followed.values if not len(followed.values) else board.source[followed.values]
        known = Ragged(sources, followed.bounds)

        def is_barred(part: IntArray) -> BoolArray:
            some = viewers.at(part)
            barred = some.followed.holds(authors) | (authors == some.ids[:, None]) | known.at(part).holds(rows)
            return barred | some.muted.holds(authors) if len(some.muted.values) else barred

        posts, users = memory.of_posts(board, rows), memory.of_users(board, viewers.ids)
        best = best_matches(users, posts, weights, self.pool, is_barred)
        return Ragged(rows[best.values], best.bounds)


class Vectors:
    """Vectors of the compared posts and of the viewers. Each text is embedded once.

    Posts no longer compared are dropped, since they do not return.
    """

    def __init__(self, embed: Embed) -> None:
        """Create empty vectors."""
        self._embed = embed
        self._rows: IntArray = np.zeros(0, dtype=np.int64)
        self._posts: VectorArray = np.zeros((0, 0), dtype=np.float32)
        self._slots: IntArray = np.zeros(0, dtype=np.int32)
        self._users: VectorArray = np.zeros((0, 0), dtype=np.float32)
        self._latest: IntArray = np.zeros(0, dtype=np.int64)
        self._n_users = 0

    def of_posts(self, board: PostIndex, rows: IntArray) -> VectorArray:
        """Return the vectors of posts, in the order of their increasing rows."""
        if np.array_equal(rows, self._rows):
            return self._posts
        positions = np.searchsorted(self._rows, rows)
        positions[positions == len(self._rows)] = 0
        is_known = self._rows[positions] == rows if len(self._rows) else np.zeros(len(rows), dtype=np.bool_)
        new = self._embed(board.texts(rows[~is_known]))
        vectors = np.zeros((len(rows), new.shape[1] or self._posts.shape[1]), dtype=np.float32)
        vectors[is_known] = self._posts[positions[is_known]] if is_known.any() else 0
        vectors[~is_known] = new if (~is_known).any() else 0
        self._rows, self._posts = rows, vectors
        return vectors

    def of_users(self, board: PostIndex, user_ids: IntArray) -> VectorArray:
        """Return the vectors of users, recomputed for those with new posts."""
        latest = board.latest_of(user_ids)
        self._grow(int(user_ids.max(initial=0)) + 1, len(user_ids))
        slots = self._slots[user_ids]
        is_stale = (slots < 0) | (self._latest[np.maximum(slots, 0)] != latest)
        stale, indices = np.unique(user_ids[is_stale], return_index=True)
        if len(stale):
            rows = latest[is_stale][indices]
            vectors = self._embed(user_texts(board, stale, rows))
            if not self._users.shape[1]:
                self._users = np.zeros((len(self._users), vectors.shape[1]), dtype=np.float32)
            is_new = self._slots[stale] < 0
            self._slots[stale[is_new]] = np.arange(self._n_users, self._n_users + int(is_new.sum()))
            self._n_users += int(is_new.sum())
            self._users[self._slots[stale]] = vectors
            self._latest[self._slots[stale]] = rows
        return self._users[self._slots[user_ids]]

    def _grow(self, n_ids: int, n_more: int) -> None:
        """Make room for more users. If there are too many, drop all."""
        if self._n_users + n_more > max(MAX_USERS, n_more):
            self._slots[:] = -1
            self._n_users = 0
        if n_ids > len(self._slots):
            slots = np.full(2 * n_ids, -1, dtype=np.int32)
            slots[: len(self._slots)] = self._slots
            self._slots = slots
        if self._n_users + n_more > len(self._users):
            n = 2 * (self._n_users + n_more)
            users = np.zeros((n, self._users.shape[1]), dtype=np.float32)
            users[: len(self._users)] = self._users
            latest = np.full(n, -1, dtype=np.int64)
            latest[: len(self._latest)] = self._latest
            self._users, self._latest = users, latest


def user_texts(board: PostIndex, user_ids: IntArray, rows: IntArray) -> list[str]:
    """Write the texts representing users: their profile, and their latest post or the source of their latest repost.

    Args:
        board: The index of posts.
        user_ids: The users.
        rows: Row of each user's latest post; -1 for none.
    """
    is_author = rows >= 0
    texts = iter(board.texts(board.source[rows[is_author]]) if is_author.any() else ())
    recent = [next(texts) if has_posted else "" for has_posted in is_author.tolist()]
    profiles = board.profiles(user_ids)
    return [
        f"{profile or NO_PROFILE} # Recent post: {text}" if text else profile or NO_PROFILE
        for profile, text in zip(profiles, recent, strict=True)
    ]


def best_matches(
    users: VectorArray,
    posts: VectorArray,
    weights: FloatArray,
    size: int,
    is_barred: Callable[[IntArray], BoolArray] | None = None,
) -> Ragged:
    """Find the posts with the highest weight times cosine for each user. Ties go to the later post.

    Args:
        users: One vector of length 1 per user, shape `(users, dimensions)`.
        posts: One vector of length 1 per post, shape `(posts, dimensions)`.
        weights: Factor of each post's cosines, shape `(posts,)`.
        size: Maximum number of posts for each user.
        is_barred: Returns which posts some users must not see, shape `(users, posts)`; None if all are visible.

    Returns:
        Indices of posts for each user, best first.
    """
    n_posts = len(posts)
    size = min(size, n_posts)
    if not size:
        return Ragged.of([()] * len(users))
    weighted: VectorArray = np.ascontiguousarray((posts * weights[:, None].astype(np.float32)).T)
    margin = 4 * posts.shape[1] * UNIT * max(1.0, float(np.abs(weights).max()))
    n_at_once = max(1, BLOCK // n_posts)
    room = np.empty((min(n_at_once, len(users)), n_posts), dtype=np.float32)
    found: list[Ragged] = []
    for start in range(0, len(users), n_at_once):
        part = np.arange(start, min(start + n_at_once, len(users)))
        scores: VectorArray = np.matmul(users[part], weighted, out=room[: len(part)])
        if is_barred is not None:
            scores[is_barred(part)] = -np.inf
        table = _Table.of(scores, _likely(scores, size, margin))

        def exact(rows: IntArray, columns: IntArray, first: int = start) -> FloatArray:
            cosines = np.einsum("ij,ij->i", users[first + rows], posts[columns])
            return cosines.astype(np.float64) * weights[columns]

        found.append(table.best(size, margin, exact))
    lengths = np.concatenate([lists.lengths for lists in found])
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    return Ragged(np.concatenate([lists.values for lists in found]), bounds)


def _likely(scores: VectorArray, size: int, margin: float) -> IntArray:
    """Return the flat positions of all scores that may be among the best in their row, and a few others.

    Args:
        scores: Shape `(rows, columns)`; minus infinity to exclude.
        size: Number of best scores in each row, up to the number of columns.
        margin: Maximum difference at which two scores may be in the wrong order.
    """
    n_columns = scores.shape[1]
    stride = max(1, n_columns // N_SAMPLED)
    sample = np.ascontiguousarray(scores[:, ::stride])
    expected = size / stride
    rank = math.ceil(expected + 3 * math.sqrt(expected) + 3)
    if stride == 1 or rank > sample.shape[1]:
        limits = _value_of_rank(scores, size) - np.float32(margin)
    else:
        limits = _value_of_rank(sample, rank)
        flat = np.flatnonzero(scores >= limits[:, None])
        rows = flat // n_columns
        is_sure = scores.ravel()[flat] >= (limits + np.float32(margin))[rows]
        is_short = np.bincount(rows, weights=is_sure, minlength=len(scores)) < size
        if not is_short.any() and limits.min() > -np.inf:
            return flat
        limits[is_short] = _value_of_rank(scores[is_short], size) - np.float32(margin)
    lowest = np.finfo(np.float32).min  # leaves out minus infinity
    return np.flatnonzero(scores >= np.maximum(limits, lowest)[:, None])


def _value_of_rank(scores: VectorArray, rank: int) -> VectorArray:
    """Return the value at a rank in each row, 1 for the highest."""
    index = scores.shape[1] - rank
    values: VectorArray = np.partition(scores, index, axis=1)[:, index]
    return values


@dataclass(frozen=True, slots=True)
class _Table:
    """Scores of a few columns for each row, padded with minus infinity."""

    scores: VectorArray
    columns: IntArray

    @classmethod
    def of(cls, scores: VectorArray, flat: IntArray) -> _Table:
        """Take the scores at increasing flat positions."""
        n_rows, n_columns = scores.shape
        rows = flat // n_columns
        counts = np.bincount(rows, minlength=n_rows)
        positions = np.arange(len(flat)) - (np.cumsum(counts) - counts)[rows]
        shape = n_rows, max(int(counts.max(initial=0)), 1)
        table = np.full(shape, -np.inf, dtype=np.float32)
        columns = np.zeros(shape, dtype=np.int64)
        table[rows, positions] = scores.ravel()[flat]
        columns[rows, positions] = flat - rows * n_columns
        return cls(table, columns)

    def best(self, size: int, margin: float, exact: Callable[[IntArray, IntArray], FloatArray]) -> Ragged:
        """Return the columns of the best scores in each row, best first. Ties go to the last column.

        Args:
            size: Maximum number of columns per row.
            margin: Maximum difference at which two scores may be in the wrong order and are computed exactly.
            exact: Computes the scores of pairs of rows and columns, each separately.
        """
        whole_order = np.argsort(-self.scores, axis=1)
        last = min(size, whole_order.shape[1]) - 1
        order = whole_order[:, : size + SPARE]
        scores = np.take_along_axis(self.scores, order, axis=1)
        if (scores[:, -1] >= scores[:, last] - np.float32(margin)).any():  # many tie with the last one
            order = whole_order
            scores = np.take_along_axis(self.scores, order, axis=1)
        columns = np.take_along_axis(self.columns, order, axis=1)
        is_wanted = (scores >= (scores[:, last] - np.float32(margin))[:, None]) & (scores > -np.inf)
        with np.errstate(invalid="ignore"):  # of minus infinity from itself
            is_next = scores[:, :-1] - scores[:, 1:] <= margin
        is_near = np.zeros(scores.shape, dtype=np.bool_)
        is_near[:, :-1] |= is_next
        is_near[:, 1:] |= is_next
        values = scores.astype(np.float64)
        rows, positions = np.nonzero(is_near & is_wanted)
        values[rows, positions] = exact(rows, columns[rows, positions])
        values[~is_wanted] = -np.inf
        width = int(is_wanted.sum(axis=1).max(initial=0))
        values, columns = values[:, :width], columns[:, :width]
        columns = np.take_along_axis(columns, np.lexsort((-columns, -values), axis=1), axis=1)
        lengths = is_wanted.sum(axis=1)
        is_first = np.arange(width) < np.minimum(lengths, size)[:, None]
        return Ragged.by_owner(np.nonzero(is_first)[0], columns[is_first], len(scores))
