"""Recommenders: feeds rank posts once for everyone, then pick for each viewer, as pure functions.

A feed's `rank` runs once per state of the world, in O(posts · log posts); the function it returns runs
once per viewer. Rows are positions in order of creation: row 0 is post 1.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mesa_llm.worlds import Rules

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

ORIGINAL, REPOST, QUOTE, REPLY = 0, 1, 2, 3
KINDS = ("original", "repost", "quote", "reply")
"""Names of the kinds of a post, by their number."""

HOT_EPOCH_S = 1_134_028_003
"""Where Reddit's hot score starts counting, in epoch seconds (OASIS, `recsys.py`; paper, section 2.3)."""

HOT_SCALE_S = 45_000
"""Seconds of newness that weigh as much as ten times the votes (same sources)."""


@dataclass(frozen=True, slots=True)
class Board:
    """All posts as arrays, one entry a post, in order of creation."""

    kind: IntArray
    """Number of the kind, see `KINDS`."""

    author: IntArray
    """User id of who published it."""

    created: IntArray
    """Step in which it was published."""

    likes: IntArray
    """Likes now."""

    dislikes: IntArray
    """Dislikes now."""

    shares: IntArray
    """Times it was reposted or quoted."""

    source: IntArray
    """Row of the post whose content it carries: of the post reposted, or of itself."""

    step: int = 0
    """The step now."""

    step_minutes: float = 3.0
    """Simulated minutes in a step."""

    is_hidden: BoolArray | None = None
    """Whether nobody is shown it any more, as it was reported too often; None: all are shown."""


class Viewer(NamedTuple):
    """The user that a feed is made for."""

    user_id: int
    """The user."""

    follows: BoolArray
    """By user id: whether the viewer follows them."""

    hidden: BoolArray | None
    """By user id: whether the viewer muted them; None: nobody."""

    seed: int
    """Seed of the viewer's random draws in this step."""


Picker = Callable[[Viewer, int], IntArray]
"""Returns at most so many rows for a viewer, best first."""


class Feed(Protocol):
    """Ranks posts, and picks from them for each viewer."""

    def rank(self, board: Board) -> Picker:
        """Do what is the same for every viewer."""
        ...


def top_level(board: Board) -> IntArray:
    """Return the rows of posts that stand for themselves: no replies, no bare reposts."""
    return without_hidden(np.flatnonzero((board.kind == ORIGINAL) | (board.kind == QUOTE)), board)


def without_hidden(rows: IntArray, board: Board) -> IntArray:
    """Leave out what was reported too often, and what passes it on."""
    return rows if board.is_hidden is None else rows[~board.is_hidden[board.source[rows]]]


def best_first(rows: IntArray, score: FloatArray | IntArray) -> IntArray:
    """Sort rows by falling score; among equals the earlier row stays first."""
    return rows[np.argsort(-score, kind="stable")]


def without_muted(rows: IntArray, board: Board, viewer: Viewer) -> IntArray:
    """Leave out what muted users published, and what others share of theirs."""
    if viewer.hidden is None:
        return rows
    hidden = viewer.hidden[board.author[rows]] | viewer.hidden[board.author[board.source[rows]]]
    return rows[~hidden]


def each(counts: IntArray, function: Callable[[int], float]) -> FloatArray:
    """Apply a scalar function once per distinct count, so that equal counts give the same bits everywhere."""
    distinct, indices = np.unique(counts, return_inverse=True)
    return np.array([function(int(count)) for count in distinct], dtype=np.float64)[indices]


@dataclass(frozen=True)
class NewestFeed:
    """Shows the newest posts of everyone."""

    def rank(self, board: Board) -> Picker:
        """Turn the order of creation round."""
        order = top_level(board)[::-1]
        return lambda viewer, size: without_muted(order, board, viewer)[:size]


@dataclass(frozen=True)
class SimSwarmFeed:
    """Weighs recency, popularity, and whether the viewer follows the author, as SimSwarm does.

    score = recency · (1 - (R - created) / max(R, 1)) + popularity · ln(1 + likes + shares)
            + relevance · (1 if the author is followed, else 1 - echo),   R: step of the newest post

    The corrected rules take dislikes off the popularity, down to 0. The original ones ignore dislikes, and
    take R = 1 while all posts are from step 0, which then have no recency.
    """

    recency: float = 0.3
    """Weight of how new a post is."""

    popularity: float = 0.4
    """Weight of how often it was liked and shared."""

    relevance: float = 0.3
    """Weight of whether its author is followed."""

    echo: float = 0.5
    """Strength of the echo chamber: how much is taken from authors who are not followed, 0 to 1."""

    rules: Rules = "corrected"
    """`original` repeats SimSwarm's formula with its defects."""

    def __post_init__(self) -> None:
        """Refuse weights that are no numbers."""
        for name in ("recency", "popularity", "relevance", "echo"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be a finite number, got {getattr(self, name)!r}")

    def rank(self, board: Board) -> Picker:
        """Sort as if every author were followed, and as if none were; a viewer's feed merges the two."""
        rows = top_level(board)
        shared_scores = self.shared_score(board, rows)
        scores = np.zeros((2, len(board.kind)))
        scores[:, rows] = shared_scores + self.relevance * (1 - self.echo), shared_scores + self.relevance
        orders = [best_first(rows, score[rows]) for score in scores]
        authors = [board.author[order] for order in orders]

        def pick(viewer: Viewer, size: int) -> IntArray:
            merged: list[IntArray] = []
            for followed in (0, 1):
                is_followed = viewer.follows[authors[followed]] == followed
                if viewer.hidden is not None:
                    is_followed &= ~viewer.hidden[authors[followed]]
                merged.append(orders[followed][np.flatnonzero(is_followed)[:size]])
            candidates = np.concatenate(merged)
            score = np.concatenate([scores[followed][part] for followed, part in enumerate(merged)])
            return candidates[np.lexsort((candidates, -score))][:size]

        return pick

    def shared_score(self, board: Board, rows: IntArray) -> FloatArray:
        """Score recency and popularity, shape of `rows`."""
        created = board.created[rows]
        newest = int(created.max(initial=0))
        if self.rules == "original" and newest == 0:
            newest = 1
        engagement = board.likes[rows] + board.shares[rows]
        if self.rules == "corrected":
            engagement = np.maximum(engagement - board.dislikes[rows], 0)
        recency = 1 - (newest - created) / max(newest, 1)
        return self.recency * recency + self.popularity * each(engagement, lambda count: math.log(1 + count))


def hot_scores(votes: IntArray, created_s: FloatArray, formula: Literal["code", "paper"]) -> FloatArray:
    """Score posts as Reddit's hot list does.

    Args:
        votes: Likes minus dislikes, shape `(posts,)`.
        created_s: When they were published, in epoch seconds, shape `(posts,)`.
        formula: `code`: sign(s)·log10(max(|s|, 1)) + (t - t0)/45000, rounded to 7 places, as OASIS computes
            it. `paper`: log10(max(|s|, 1)) + sign(s)·(t - t0)/45000, as its paper prints it: there unvoted
            posts score 0 whatever their age.

    Source:
        camel-ai/oasis, `recsys.py` (2026-05); Yang et al. (2024), OASIS, arXiv 2411.11581, section 2.3.
    """
    size = each(np.abs(votes), lambda count: math.log10(max(count, 1)))
    age = (created_s - HOT_EPOCH_S) / HOT_SCALE_S
    if formula == "paper":
        return size + np.sign(votes) * age
    return np.round(np.sign(votes) * size + age, 7)


@dataclass(frozen=True)
class HotFeed:
    """Shows everyone posts from the top of one hot list, as OASIS's Reddit does; follows play no part."""

    formula: Literal["code", "paper"] = "code"
    """Which hot score, see `hot_scores`."""

    pool: int = 100
    """Length of the hot list that each viewer's posts are drawn from (OASIS's Reddit preset)."""

    start_s: float = 1_722_931_200.0
    """Epoch seconds of step 0 (OASIS's Reddit runs: 2024-08-06 08:00)."""

    def rank(self, board: Board) -> Picker:
        """Sort by hot score."""
        rows = top_level(board)
        created_s = self.start_s + board.created[rows].astype(np.float64) * (board.step_minutes * 60)
        order = best_first(rows, hot_scores(board.likes[rows] - board.dislikes[rows], created_s, self.formula))

        def pick(viewer: Viewer, size: int) -> IntArray:
            return sample_rows(without_muted(order, board, viewer)[: self.pool], size, viewer.seed)

        return pick


def sample_rows(rows: IntArray, size: int, seed: int) -> IntArray:
    """Draw so many of the rows, each equally likely; they stay in order."""
    if len(rows) <= size:
        return rows
    return rows[sorted(random.Random(seed).sample(range(len(rows)), size))]


@dataclass(frozen=True)
class XFeed:
    """Shows the most liked posts of followed users, then a few popular ones of others, as OASIS's X does.

    A repost carries the likes of its source; of several that carry one source, one is shown. Unlike in OASIS,
    the posts of others are never the viewer's own, and come from what is popular, not from an embedding.
    """

    following_posts: int = 3
    """Maximum number of posts of followed users (OASIS's Twitter preset)."""

    other_posts: int = 2
    """Posts of others (OASIS's Twitter preset)."""

    pool: int = 50
    """Length of the list of popular posts that those of others are drawn from."""

    def rank(self, board: Board) -> Picker:
        """Sort by likes for followers, by likes and shares for the rest; the newer of equals comes first."""
        inside = without_hidden(np.flatnonzero(board.kind != REPLY), board)[::-1]
        inside = best_first(inside, board.likes[board.source[inside]])
        inside_authors = board.author[inside]
        outside = top_level(board)[::-1]
        outside = best_first(outside, (board.likes + board.shares)[outside])
        outside_authors = board.author[outside]

        def pick(viewer: Viewer, size: int) -> IntArray:
            followed = without_muted(inside[viewer.follows[inside_authors]], board, viewer)
            followed = first_of_each_source(followed, board, self.following_posts)
            elsewhere = outside[~viewer.follows[outside_authors] & (outside_authors != viewer.user_id)]
            elsewhere = without_muted(elsewhere, board, viewer)[: self.pool + len(followed)]
            elsewhere = elsewhere[~np.isin(elsewhere, board.source[followed])][: self.pool]
            return np.concatenate([followed, sample_rows(elsewhere, self.other_posts, viewer.seed)])[:size]

        return pick


def first_of_each_source(rows: IntArray, board: Board, size: int) -> IntArray:
    """Return the first rows that carry different sources."""
    positions: dict[int, int] = {}
    for row in rows:
        if len(positions) >= size:
            break
        positions.setdefault(int(board.source[row]), int(row))
    return np.array(list(positions.values()), dtype=np.int64)


FeedName = Literal["newest", "simswarm", "reddit_hot", "x"]
"""Name of a ready feed."""

FEEDS: dict[str, Feed] = {
    "newest": NewestFeed(),
    "simswarm": SimSwarmFeed(),
    "reddit_hot": HotFeed(),
    "x": XFeed(),
}
"""Feeds by name."""
