"""Recommenders: a feed ranks posts once for everyone, then picks for many viewers at once.

A feed's `rank(board)` is called after the world has changed, and returns a `Picker`. Its `pick(viewers, size)` returns
at most `size` rows for each viewer, best first; a single viewer is a batch of one. Rows are indices in order of
creation: row 0 is post 1.

- `PostIndex` has the posts as columns (`kind`, `author`, `created`, `likes`, `dislikes`, `shares`, `source`), the
  `followers` of each user, `posts_of(authors)`, `latest_of(users)`, and on request `texts(rows)` and `profiles(users)`.
  `board.ranking(key, score)` keeps the best posts by a score up to date from vote to vote.
- `Viewers` has the ids, the users each follows and mutes (`Ragged`: concatenated lists), and a seed each.
- `followed_posts` finds the best posts of the users each viewer follows, `first_allowed` the first rows of a ranking
  that each may see. Neither scans every post for each viewer.

A custom feed can be simpler: an object with `rank(board)` that returns a function from one `Viewer` and a size to rows.
It is called for each viewer in turn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from mesa_llm.world import Rules
from mesa_llm_models.social.world.csr import BoolArray, FloatArray, IntArray, Ragged
from mesa_llm_models.social.world.post_index import (
    KINDS,
    ORIGINAL,
    QUOTE,
    REPLY,
    REPOST,
    PostIndex,
    Ranking,
    Viewer,
    Viewers,
    first_allowed,
    is_top_level,
)
from mesa_llm_models.social.world.shortlists import Shortlists, followed_posts, shortlists

__all__ = ["KINDS", "ORIGINAL", "QUOTE", "REPLY", "REPOST", "PostIndex", "Ragged", "Ranking", "Viewer", "Viewers"]

HOT_EPOCH_S = 1_134_028_003
"""Start of Reddit's hot score, in epoch seconds (OASIS, `recsys.py`; paper, section 2.3)."""

HOT_SCALE_S = 45_000
"""Seconds of age difference that equal a factor of ten in votes (same sources)."""

MAX_DRAWS = 8
"""Maximum number of draws per post of a random feed before all posts are examined."""

MIN_SLOPE = 1e-6
"""Minimum score difference between posts of two steps that shortlists rely on, as a share of the weights; far above
rounding errors.
"""

PickOne = Callable[[Viewer, int], IntArray]
"""Returns rows for a viewer, best first, up to a maximum number."""


class Picker:
    """Picks rows for viewers from ranked posts."""

    def __init__(self, pick: Callable[[Viewers, int], Ragged]) -> None:
        """Store the function that picks rows for a batch of viewers."""
        self.pick = pick

    def __call__(self, viewer: Viewer, size: int) -> IntArray:
        """Pick for one viewer."""
        return self.pick(batch_of(viewer), size)[0]


class Feed(Protocol):
    """Ranks posts, and picks from the ranking for each viewer."""

    def rank(self, board: PostIndex) -> Picker | PickOne:
        """Rank posts, as far as the ranking is the same for all viewers, and return the picker."""
        ...


def batch_of(viewer: Viewer) -> Viewers:
    """Return one viewer as a batch."""
    followed, muted = Ragged.of([viewer.followed]), Ragged.of([viewer.muted])
    return Viewers(np.array([viewer.user_id]), followed, muted, [viewer.seed], viewer.n_users)


def pick(picker: Picker | PickOne, viewers: Viewers, size: int) -> Ragged:
    """Pick rows for a batch of viewers, from either kind of picker."""
    if isinstance(picker, Picker):
        return picker.pick(viewers, size)
    return Ragged.of([picker(viewers[index], size) for index in range(len(viewers))])


# building blocks of feeds


def top_level(board: PostIndex) -> IntArray:
    """Return the rows of top-level posts: no replies, no plain reposts."""
    rows = np.arange(len(board))
    return rows[is_top_level(board, rows)]


def without_muted(rows: IntArray, board: PostIndex, viewer: Viewer) -> IntArray:
    """Remove posts by muted users, and shares of their posts."""
    if not len(viewer.muted):
        return rows
    hidden = np.isin(board.author[rows], viewer.muted) | np.isin(board.author[board.source[rows]], viewer.muted)
    return rows[~hidden]


def each(counts: IntArray, function: Callable[[int], float]) -> FloatArray:
    """Apply a scalar function once per distinct count, so equal counts give the same bits everywhere."""
    maximum = int(counts.max(initial=0))
    if maximum <= MAX_TABLE and int(counts.min(initial=0)) >= 0:
        return _values_up_to(function, 1 << maximum.bit_length())[counts]
    distinct, indices = np.unique(counts, return_inverse=True)
    return np.array([function(int(count)) for count in distinct], dtype=np.float64)[indices]


MAX_TABLE = 65_535
"""Maximum count up to which a function's values are tabulated."""


@lru_cache(maxsize=64)
def _values_up_to(function: Callable[[int], float], n: int) -> FloatArray:
    return np.array([function(count) for count in range(n + 1)], dtype=np.float64)


def log_of_next(count: int) -> float:
    """Return the natural logarithm of a count plus one."""
    return math.log1p(count)


def log10_of(count: int) -> float:
    """Return the decimal logarithm of a count, 0 for a count of 0."""
    return math.log10(max(count, 1))


def bars_muted(board: PostIndex) -> Callable[[Viewers, IntArray], BoolArray | None]:
    """Return a function that bars posts by muted users, for top-level posts."""

    def is_barred(viewers: Viewers, rows: IntArray) -> BoolArray | None:
        return viewers.muted.holds(board.author[rows]) if len(viewers.muted.values) else None

    return is_barred


def in_order(owners: IntArray, rows: IntArray, scores: IntArray | FloatArray, *, newest_first: bool) -> IntArray:
    """Return the positions that sort rows by owner, then by score, best first, then by age."""
    return np.lexsort((-rows if newest_first else rows, -scores, owners))


def sample_rows(rows: IntArray, size: int, seed: int) -> IntArray:
    """Draw a number of rows uniformly, keeping their order."""
    if len(rows) <= size:
        return rows
    return rows[sorted(random.Random(seed).sample(range(len(rows)), size))]


def sampled(lists: Ragged, size: int, seeds: Sequence[int]) -> Ragged:
    """Draw a number of rows uniformly from each list, keeping their order.

    Source:
        Bentley and Floyd (1987), A sample of brilliance, CACM 30(9), for all lists at once; the numbers are those of
        Steele et al. (2014), SplitMix64.
    """
    is_long = lists.lengths > size
    long = np.flatnonzero(is_long)
    lasts = lists.lengths[long, None] - np.arange(size, 0, -1)
    numbers = scattered([seeds[index] for index in long.tolist()], size) % (lasts + 1).astype(np.uint64)
    drawn = numbers.astype(np.int64)
    for position in range(1, size):
        is_taken = (drawn[:, :position] == drawn[:, position, None]).any(axis=1)
        drawn[is_taken, position] = lasts[is_taken, position]
    n_drawn = np.minimum(lists.lengths, size)
    bounds = np.concatenate(([0], np.cumsum(n_drawn)))
    owners = np.repeat(np.arange(len(lists)), n_drawn)
    positions = np.arange(len(owners)) - bounds[owners]
    positions[is_long[owners]] = np.sort(drawn, axis=1).ravel()
    return Ragged(lists.values[lists.bounds[owners] + positions], bounds)


def scattered(seeds: Sequence[int], size: int) -> npt.NDArray[np.uint64]:
    """Return the first numbers of SplitMix64 from each seed, shape `(seeds, size)`."""
    steps = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = np.array(seeds, dtype=np.uint64)[:, None] + steps
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


# the feeds


def by_row(board: PostIndex, rows: IntArray, moment: float) -> IntArray:
    """Score posts by order of publication."""
    return rows


def newest_posts(board: PostIndex) -> Ranking:
    """Return everyone's newest posts."""
    return board.ranking("newest", by_row, newest_first=True)


@dataclass(frozen=True)
class NewestFeed:
    """Shows everyone's newest posts."""

    def rank(self, board: PostIndex) -> Picker:
        """Rank by reverse order of creation."""
        ranking, is_barred = newest_posts(board), bars_muted(board)
        return Picker(lambda viewers, size: first_allowed(ranking, viewers, np.full(len(viewers), size), is_barred))


@dataclass(frozen=True)
class RandomFeed:
    """Shows every viewer posts drawn uniformly from all, as OASIS's recommender `random` does."""

    def rank(self, board: PostIndex) -> Picker:
        """Do nothing: rows are drawn for each viewer."""

        def pick(viewers: Viewers, size: int) -> Ragged:
            return Ragged.of([drawn_rows(board, viewers[index], size) for index in range(len(viewers))])

        return Picker(pick)


def drawn_rows(board: PostIndex, viewer: Viewer, size: int) -> IntArray:
    """Draw a number of posts that a viewer may see, uniformly; newest first."""
    generator, n_posts = random.Random(viewer.seed), len(board)
    drawn: dict[int, bool] = {}
    for _ in range(MAX_DRAWS * size if n_posts > MAX_DRAWS * size else 0):
        if sum(drawn.values()) == size:
            break
        row = generator.randrange(n_posts)
        if row not in drawn:
            rows = np.array([row])
            drawn[row] = bool(is_top_level(board, rows)[0]) and bool(len(without_muted(rows, board, viewer)))
    found = [row for row, is_allowed in drawn.items() if is_allowed]
    if len(found) < size:
        return sample_rows(without_muted(top_level(board), board, viewer), size, viewer.seed)[::-1]
    return np.array(sorted(found, reverse=True), dtype=np.int64)


@dataclass(frozen=True)
class SimSwarmFeed:
    """Weights recency, popularity, and whether the viewer follows the author, as SimSwarm does.

    score = recency · (1 - (R - created) / max(R, 1)) + popularity · ln(1 + likes + shares)
            + relevance · (1 if the author is followed, else 1 - echo),   R: step of the newest post

    The corrected rules subtract dislikes from the popularity, down to 0. The original ones ignore dislikes, and take R
    = 1 while all posts are from step 0, which then have no recency.
    """

    recency: float = 0.3
    """Weight of recency."""

    popularity: float = 0.4
    """Weight of likes and shares."""

    relevance: float = 0.3
    """Weight of following the author."""

    echo: float = 0.5
    """Strength of the echo chamber: the deduction for authors the viewer does not follow, 0 to 1."""

    rules: Rules = "corrected"
    """`original` reproduces SimSwarm's formula with its defects."""

    def __post_init__(self) -> None:
        """Check that the weights are finite numbers."""
        for name in ("recency", "popularity", "relevance", "echo"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be a finite number, got {getattr(self, name)!r}")

    def rank(self, board: PostIndex) -> Picker:
        """Rank posts as if no author were followed. A viewer's feed merges them with posts of followed authors."""
        last = newest_posts(board).first(1)
        newest = int(board.created[last[0]]) if len(last) else 0
        moment = newest if self.recency >= 0 else -newest  # scores must not rise as the moment moves on
        ranking = board.ranking(self, self._stranger_score, moment)

        def is_barred(viewers: Viewers, rows: IntArray) -> BoolArray:
            authors = board.author[rows]
            followed = viewers.followed.holds(authors)
            return followed | viewers.muted.holds(authors) if len(viewers.muted.values) else followed

        def pick(viewers: Viewers, size: int) -> Ragged:
            def score(rows: IntArray) -> FloatArray:
                return self.shared_score(board, rows, newest) + self.relevance

            followed, scores = followed_posts(board, viewers, size, score, among=self._shortlists(board, newest))
            others = first_allowed(ranking, viewers, np.full(len(viewers), size), is_barred)
            owners = np.concatenate([followed.owners, others.owners])
            rows = np.concatenate([followed.values, others.values])
            all_scores = np.concatenate([scores, self._stranger_score(board, others.values, moment)])
            order = in_order(owners, rows, all_scores, newest_first=False)
            return Ragged.by_owner(owners[order], rows[order], len(viewers)).head(size)

        return Picker(pick)

    def _shortlists(self, board: PostIndex, newest: int) -> Shortlists | None:
        """Return shortlists with the best posts of each author; None if these weights rule out shortlists."""
        slope = MIN_SLOPE * (1 + abs(self.popularity) + abs(self.relevance)) * max(newest, 1)
        if self.popularity < 0 or self.recency < slope:
            return None
        return shortlists(board, f"engagement, {self.rules}", self.engagement, reposts=False, newest_first=False)

    def engagement(self, board: PostIndex, rows: IntArray) -> IntArray:
        """Count the engagement that makes posts popular, shape of `rows`.

        Args:
            board: The posts.
            rows: Rows of the posts to count.
        """
        engagement = board.likes[rows] + board.shares[rows]
        return np.maximum(engagement - board.dislikes[rows], 0) if self.rules == "corrected" else engagement

    def _stranger_score(self, board: PostIndex, rows: IntArray, moment: float) -> FloatArray:
        return self.shared_score(board, rows, abs(int(moment))) + self.relevance * (1 - self.echo)

    def shared_score(self, board: PostIndex, rows: IntArray, newest: int) -> FloatArray:
        """Score recency and popularity, shape of `rows`.

        Args:
            board: The posts.
            rows: Rows of the posts to score.
            newest: Step of the newest top-level post.
        """
        created = board.created[rows].astype(np.int64)
        if self.rules == "original" and newest == 0:
            newest = 1
        recency = 1 - (newest - created) / max(newest, 1)
        return self.recency * recency + self.popularity * each(self.engagement(board, rows), log_of_next)


def hot_scores(votes: IntArray, created_s: FloatArray, formula: Literal["code", "paper"]) -> FloatArray:
    """Score posts as Reddit's hot list does.

    Args:
        votes: Likes minus dislikes, shape `(posts,)`.
        created_s: Times of publication, in epoch seconds, shape `(posts,)`.
        formula: `code`: sign(s)·log10(max(|s|, 1)) + (t - t0)/45000, rounded to 7 places, as OASIS computes it.
            `paper`: log10(max(|s|, 1)) + sign(s)·(t - t0)/45000, as printed in its paper, where posts without votes
            score 0 at any age.

    Source:
        camel-ai/oasis, `recsys.py` (2026-05); Yang et al. (2024), OASIS, arXiv 2411.11581, section 2.3.
    """
    size = each(np.abs(votes), log10_of)
    age = (created_s - HOT_EPOCH_S) / HOT_SCALE_S
    if formula == "paper":
        return size + np.sign(votes) * age
    return np.round(np.sign(votes) * size + age, 7)


@dataclass(frozen=True)
class HotFeed:
    """Shows everyone posts from the top of one hot list, as OASIS's Reddit does. Follows have no effect."""

    formula: Literal["code", "paper"] = "code"
    """Formula of the hot score, see `hot_scores`."""

    pool: int = 100
    """Length of the hot list from which each viewer's posts are drawn (OASIS's Reddit preset)."""

    start_s: float = 1_722_931_200.0
    """Epoch seconds of step 0 (OASIS's Reddit runs: 2024-08-06 08:00)."""

    def rank(self, board: PostIndex) -> Picker:
        """Rank by hot score."""
        ranking, is_barred = board.ranking(self, self._score), bars_muted(board)

        def pick(viewers: Viewers, size: int) -> Ragged:
            hottest = first_allowed(ranking, viewers, np.full(len(viewers), self.pool), is_barred)
            return sampled(hottest, size, viewers.seeds)

        return Picker(pick)

    def _score(self, board: PostIndex, rows: IntArray, moment: float) -> FloatArray:
        created_s = self.start_s + board.created[rows].astype(np.float64) * (board.step_minutes * 60)
        return hot_scores(board.likes[rows] - board.dislikes[rows], created_s, self.formula)


def likes_of_source(board: PostIndex, rows: IntArray) -> IntArray:
    """Return the likes of posts; for a repost, its source's."""
    return board.likes[board.source[rows]]


def most_liked_of_followed(board: PostIndex, viewers: Viewers, size: int) -> Ragged:
    """Return the most liked posts and reposts of the users each viewer follows. Ties go to the newer post.

    Args:
        board: The posts.
        viewers: The viewers.
        size: Maximum number of posts for each viewer.
    """
    among = shortlists(board, "likes", likes_of_source, reposts=True, newest_first=True)
    score = partial(likes_of_source, board)
    return followed_posts(board, viewers, size, score, reposts=True, newest_first=True, among=among)[0]


def reach(board: PostIndex, rows: IntArray, moment: float) -> IntArray:
    """Score posts by their likes and shares."""
    return board.likes[rows] + board.shares[rows]


@dataclass(frozen=True)
class XFeed:
    """Shows the most liked posts of followed users, then a few popular ones of others, as OASIS's X does.

    A repost has the likes of its source, and only one of several reposts with the same source is shown. Unlike in
    OASIS, the posts of others never include the viewer's own, and are selected by popularity, not by an embedding.
    """

    following_posts: int = 3
    """Maximum number of posts of followed users (OASIS's Twitter preset)."""

    other_posts: int = 2
    """Maximum number of posts of others (OASIS's Twitter preset)."""

    pool: int = 50
    """Length of the list of popular posts from which the others' posts are drawn."""

    def rank(self, board: PostIndex) -> Picker:
        """Rank by likes and shares, for the posts of others. Ties go to the newer post."""
        ranking = board.ranking("reach", reach, newest_first=True)

        def is_barred(viewers: Viewers, rows: IntArray) -> BoolArray:
            authors = board.author[rows]
            barred = viewers.followed.holds(authors) | (authors == viewers.ids[:, None])
            return barred | viewers.muted.holds(authors) if len(viewers.muted.values) else barred

        def pick(viewers: Viewers, size: int) -> Ragged:
            followed = most_liked_of_followed(board, viewers, self.following_posts)
            passed_on = Ragged(board.source[followed.values], followed.bounds)
            others = first_allowed(ranking, viewers, np.full(len(viewers), self.pool), is_barred, but_not=passed_on)
            return joined(followed, sampled(others, self.other_posts, viewers.seeds)).head(size)

        return Picker(pick)


def joined(first: Ragged, second: Ragged) -> Ragged:
    """Append to each list the list with the same index in another."""
    owners = np.concatenate([first.owners, second.owners])
    order = np.argsort(owners, kind="stable")
    return Ragged.by_owner(owners[order], np.concatenate([first.values, second.values])[order], len(first))
