"""Recommenders: a feed ranks posts once for everyone, then picks for many viewers at once.

How a feed works. `rank(board)` is called after the world has changed, and returns a `Picker`. Its `pick(viewers, size)`
returns at most `size` rows for each viewer, best first; a single viewer is a batch of one. Rows are positions in order
of creation: row 0 is post 1.

- `Board` has the posts as columns (`kind`, `author`, `created`, `likes`, `dislikes`, `shares`, `source`), the
  `followers` of each user, `posts_of(authors)`, `latest_of(users)`, and, read only when asked for, `texts(rows)` and
  `profiles(users)`. `board.ranking(key, score)` keeps the best posts by a score up to date from vote to vote.
- `Viewers` has the ids, the users whom each follows and mutes (`Ragged`: lists laid end to end), and a seed each.
- `followed_posts` finds the best posts of those whom each viewer follows, `first_allowed` the first rows of a ranking
  that each may see. Neither looks at every post for each viewer.

A feed of one's own may be simpler: an object with `rank(board)` that returns a function from one `Viewer` and a size to
rows. It is called for one viewer after the other.
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

from mesa_llm.worlds import Rules
from mesa_llm.worlds.social.board import (
    KINDS,
    ORIGINAL,
    QUOTE,
    REPLY,
    REPOST,
    Board,
    Ranking,
    Viewer,
    Viewers,
    first_allowed,
    is_top_level,
)
from mesa_llm.worlds.social.columns import BoolArray, FloatArray, IntArray, Ragged
from mesa_llm.worlds.social.shortlists import Shortlists, followed_posts, shortlists

__all__ = ["KINDS", "ORIGINAL", "QUOTE", "REPLY", "REPOST", "Board", "Ragged", "Ranking", "Viewer", "Viewers"]

HOT_EPOCH_S = 1_134_028_003
"""Where Reddit's hot score starts counting, in epoch seconds (OASIS, `recsys.py`; paper, section 2.3)."""

HOT_SCALE_S = 45_000
"""Seconds of newness that weigh as much as ten times the votes (same sources)."""

MAX_DRAWS = 8
"""Number of draws for each post of a random feed before all posts are looked at."""

MIN_SLOPE = 1e-6
"""Smallest difference in score between posts of two steps that shortlists rely on, as a share of the weights: far above
rounding errors."""

PickOne = Callable[[Viewer, int], IntArray]
"""Returns at most so many rows for a viewer, best first."""


class Picker:
    """Picks rows for viewers from posts that were ranked."""

    def __init__(self, pick: Callable[[Viewers, int], Ragged]) -> None:
        """Store how rows are picked for a batch of viewers."""
        self.pick = pick

    def __call__(self, viewer: Viewer, size: int) -> IntArray:
        """Pick for one viewer."""
        return self.pick(batch_of(viewer), size)[0]


class Feed(Protocol):
    """Ranks posts, and picks from them for each viewer."""

    def rank(self, board: Board) -> Picker | PickOne:
        """Do what is the same for every viewer."""
        ...


def batch_of(viewer: Viewer) -> Viewers:
    """Return one viewer as a batch."""
    followed, muted = Ragged.of([viewer.followed]), Ragged.of([viewer.muted])
    return Viewers(np.array([viewer.user_id]), followed, muted, [viewer.seed], viewer.n_users)


def pick(picker: Picker | PickOne, viewers: Viewers, size: int) -> Ragged:
    """Pick rows for a batch of viewers, from a picker of either kind."""
    if isinstance(picker, Picker):
        return picker.pick(viewers, size)
    return Ragged.of([picker(viewers[index], size) for index in range(len(viewers))])


# what feeds are made of


def top_level(board: Board) -> IntArray:
    """Return the rows of posts that stand for themselves: no replies, no bare reposts."""
    rows = np.arange(len(board))
    return rows[is_top_level(board, rows)]


def without_muted(rows: IntArray, board: Board, viewer: Viewer) -> IntArray:
    """Leave out what muted users published, and what others share of theirs."""
    if not len(viewer.muted):
        return rows
    hidden = np.isin(board.author[rows], viewer.muted) | np.isin(board.author[board.source[rows]], viewer.muted)
    return rows[~hidden]


def each(counts: IntArray, function: Callable[[int], float]) -> FloatArray:
    """Apply a scalar function once per distinct count, so that equal counts give the same bits everywhere."""
    maximum = int(counts.max(initial=0))
    if maximum <= MAX_TABLE and int(counts.min(initial=0)) >= 0:
        return _values_up_to(function, 1 << maximum.bit_length())[counts]
    distinct, indices = np.unique(counts, return_inverse=True)
    return np.array([function(int(count)) for count in distinct], dtype=np.float64)[indices]


MAX_TABLE = 65_535
"""Largest count up to which the values of a function are kept in a table."""


@lru_cache(maxsize=64)
def _values_up_to(function: Callable[[int], float], n: int) -> FloatArray:
    return np.array([function(count) for count in range(n + 1)], dtype=np.float64)


def log_of_next(count: int) -> float:
    """Return the natural logarithm of one more than a count."""
    return math.log(1 + count)


def log10_of(count: int) -> float:
    """Return the decimal logarithm of a count, 0 for none."""
    return math.log10(max(count, 1))


def bars_muted(board: Board) -> Callable[[Viewers, IntArray], BoolArray | None]:
    """Return what bars posts of muted users, for posts that stand for themselves."""

    def is_barred(viewers: Viewers, rows: IntArray) -> BoolArray | None:
        return viewers.muted.holds(board.author[rows]) if len(viewers.muted.values) else None

    return is_barred


def in_order(owners: IntArray, rows: IntArray, scores: IntArray | FloatArray, *, newest_first: bool) -> IntArray:
    """Return the positions that sort rows by their owners, then best first, then by their age."""
    return np.lexsort((-rows if newest_first else rows, -scores, owners))


def sample_rows(rows: IntArray, size: int, seed: int) -> IntArray:
    """Draw so many of the rows, each equally likely; they stay in order."""
    if len(rows) <= size:
        return rows
    return rows[sorted(random.Random(seed).sample(range(len(rows)), size))]


def sampled(lists: Ragged, size: int, seeds: Sequence[int]) -> Ragged:
    """Draw so many of the rows of each list, as `random.Random(seed).sample` does; they stay in order."""
    known = drawn_at_once(lists.lengths, size, seeds) if size and len(lists) >= MANY_DRAWS else {}
    generator = random.Random(0)
    positions: list[int] = []
    bounds = [0]
    starts = lists.bounds.tolist()
    for index, seed in enumerate(seeds):
        start, n = starts[index], starts[index + 1] - starts[index]
        if n <= size:
            positions += range(start, start + n)
        else:
            own = known.get(index)
            if own is None:
                generator.seed(seed)
                own = sorted(generator.sample(range(n), size))
            positions += [start + position for position in own]
        bounds.append(len(positions))
    return Ragged(lists.values[positions], np.array(bounds))


def drawn_at_once(counts: IntArray, size: int, seeds: Sequence[int]) -> dict[int, list[int]]:
    """Draw for many seeds at once what `random.Random(seed).sample(range(count), size)` draws, sorted.

    Seeding a generator by itself takes far longer than drawing a few numbers from it, so that all are seeded together.

    Args:
        counts: For each seed, the number to draw from.
        size: Number of draws of each.
        seeds: The seeds.

    Returns:
        The draws by the position of the seed; without those for which `sample` goes another way, as it does for small
        counts, or whose first words hold too few numbers that can be used.
    """
    largest_pool = 21 + (4 ** math.ceil(math.log(size * 3, 4)) if size > 5 else 0)  # as in `Random.sample`
    drawn = np.full((len(seeds), size), -1)
    n_drawn = np.zeros(len(seeds), dtype=np.int64)
    is_known = np.array([1 << 32 <= seed < 1 << 64 for seed in seeds], dtype=np.bool_)
    indices = np.flatnonzero(is_known & (counts > largest_pool))
    for start in range(0, len(indices), SEEDED_AT_ONCE):
        some = indices[start : start + SEEDED_AT_ONCE]
        words = first_words([seeds[index] for index in some.tolist()], 4 * size + 8)
        words >>= (32 - np.frexp(counts[some])[1]).astype(np.uint32)  # a draw takes as many bits as its count has
        remaining = np.arange(len(some))
        for numbers in words.astype(np.int64):
            own, candidates = some[remaining], numbers[remaining]
            is_new = (candidates < counts[own]) & (drawn[own] != candidates[:, None]).all(axis=1)
            own = own[is_new]
            drawn[own, n_drawn[own]] = candidates[is_new]
            n_drawn[own] += 1
            remaining = remaining[n_drawn[some[remaining]] < size]
    indices = np.flatnonzero(n_drawn == size)
    return dict(zip(indices.tolist(), np.sort(drawn[indices], axis=1).tolist(), strict=True))


def first_words(seeds: Sequence[int], n: int) -> npt.NDArray[np.uint32]:
    """Return the first 32-bit words of Python's generators, shape `(n, seeds)`.

    Args:
        seeds: Their seeds, from 2³² to 2⁶⁴ - 1.
        n: Number of words of each, up to 226.

    Source:
        Matsumoto and Nishimura (1998), Mersenne Twister, ACM TOMACS 8(1); its reference code of 2002, `init_by_array`.
    """
    keys = np.array(seeds, dtype=np.uint64)
    key = (keys & 0xFFFFFFFF).astype(np.uint32), (keys >> 32).astype(np.uint32) + np.uint32(1)
    terms = [*key * 312, *(np.uint32(2**32 - index) for index in (*range(2, 624), 1))]
    state = list(np.repeat(np.random.RandomState(19_650_218).get_state()[1][:, None], len(seeds), axis=1))
    previous, mixed = state[0], np.empty(len(seeds), dtype=np.uint32)
    for count, term in enumerate(terms):
        row = state[count % 623 + 1]
        np.right_shift(previous, 30, out=mixed)
        np.bitwise_xor(mixed, previous, out=mixed)
        np.multiply(mixed, np.uint32(1_664_525 if count < 624 else 1_566_083_941), out=mixed)
        np.bitwise_xor(row, mixed, out=row)
        np.add(row, term, out=row)
        previous = row
    state[0][:] = 1 << 31
    pairs = np.array(state[: n + 1])
    pairs = (pairs[:-1] & np.uint32(1 << 31)) | (pairs[1:] & np.uint32((1 << 31) - 1))
    words = np.array(state[397 : 397 + n])
    words ^= pairs >> 1
    words ^= (pairs & 1) * np.uint32(0x9908B0DF)
    words ^= words >> 11
    words ^= (words << 7) & np.uint32(0x9D2C5680)
    words ^= (words << 15) & np.uint32(0xEFC60000)
    words ^= words >> 18
    return words


MANY_DRAWS = 1_500
"""Number of viewers from which on their generators are seeded together."""

SEEDED_AT_ONCE = 16_384
"""Maximum number of generators that are seeded together, as a state takes 2.5 kB."""


# the feeds


def by_row(board: Board, rows: IntArray, moment: float) -> IntArray:
    """Score posts by when they were published."""
    return rows


def newest_posts(board: Board) -> Ranking:
    """Return the newest posts of everyone."""
    return board.ranking("newest", by_row, newest_first=True)


@dataclass(frozen=True)
class NewestFeed:
    """Shows the newest posts of everyone."""

    def rank(self, board: Board) -> Picker:
        """Turn the order of creation round."""
        ranking, is_barred = newest_posts(board), bars_muted(board)
        return Picker(lambda viewers, size: first_allowed(ranking, viewers, np.full(len(viewers), size), is_barred))


@dataclass(frozen=True)
class RandomFeed:
    """Shows every viewer posts drawn evenly from all, as OASIS's recommender `random` does."""

    def rank(self, board: Board) -> Picker:
        """Do nothing: rows are drawn for each viewer."""

        def pick(viewers: Viewers, size: int) -> Ragged:
            return Ragged.of([drawn_rows(board, viewers[index], size) for index in range(len(viewers))])

        return Picker(pick)


def drawn_rows(board: Board, viewer: Viewer, size: int) -> IntArray:
    """Draw so many of the posts that a viewer may see, each equally likely; the newest first."""
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
        """Rank posts as if no author were followed; a viewer's feed merges them with those of whom it follows."""
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

    def _shortlists(self, board: Board, newest: int) -> Shortlists | None:
        """Return the posts of each author among which its best are; None: any may be, as these weights have it."""
        slope = MIN_SLOPE * (1 + abs(self.popularity) + abs(self.relevance)) * max(newest, 1)
        if self.popularity < 0 or self.recency < slope:
            return None
        return shortlists(board, f"engagement, {self.rules}", self.engagement, reposts=False, newest_first=False)

    def engagement(self, board: Board, rows: IntArray) -> IntArray:
        """Count what makes posts popular, shape of `rows`.

        Args:
            board: The posts.
            rows: Which of them.
        """
        engagement = board.likes[rows] + board.shares[rows]
        return np.maximum(engagement - board.dislikes[rows], 0) if self.rules == "corrected" else engagement

    def _stranger_score(self, board: Board, rows: IntArray, moment: float) -> FloatArray:
        return self.shared_score(board, rows, abs(int(moment))) + self.relevance * (1 - self.echo)

    def shared_score(self, board: Board, rows: IntArray, newest: int) -> FloatArray:
        """Score recency and popularity, shape of `rows`.

        Args:
            board: The posts.
            rows: Which of them.
            newest: Step of the newest post that stands for itself.
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
        created_s: When they were published, in epoch seconds, shape `(posts,)`.
        formula: `code`: sign(s)·log10(max(|s|, 1)) + (t - t0)/45000, rounded to 7 places, as OASIS computes
            it. `paper`: log10(max(|s|, 1)) + sign(s)·(t - t0)/45000, as its paper prints it: there unvoted
            posts score 0 whatever their age.

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
    """Shows everyone posts from the top of one hot list, as OASIS's Reddit does; follows play no part."""

    formula: Literal["code", "paper"] = "code"
    """Which hot score, see `hot_scores`."""

    pool: int = 100
    """Length of the hot list that each viewer's posts are drawn from (OASIS's Reddit preset)."""

    start_s: float = 1_722_931_200.0
    """Epoch seconds of step 0 (OASIS's Reddit runs: 2024-08-06 08:00)."""

    def rank(self, board: Board) -> Picker:
        """Rank by hot score."""
        ranking, is_barred = board.ranking(self, self._score), bars_muted(board)

        def pick(viewers: Viewers, size: int) -> Ragged:
            hottest = first_allowed(ranking, viewers, np.full(len(viewers), self.pool), is_barred)
            return sampled(hottest, size, viewers.seeds)

        return Picker(pick)

    def _score(self, board: Board, rows: IntArray, moment: float) -> FloatArray:
        created_s = self.start_s + board.created[rows].astype(np.float64) * (board.step_minutes * 60)
        return hot_scores(board.likes[rows] - board.dislikes[rows], created_s, self.formula)


def likes_of_source(board: Board, rows: IntArray) -> IntArray:
    """Return the likes of posts; those of a repost are its source's."""
    return board.likes[board.source[rows]]


def most_liked_of_followed(board: Board, viewers: Viewers, size: int) -> Ragged:
    """Return the most liked posts and reposts of those whom each viewer follows; the newer of equals comes first.

    Args:
        board: The posts.
        viewers: Who looks.
        size: Maximum number of posts of each viewer.
    """
    among = shortlists(board, "likes", likes_of_source, reposts=True, newest_first=True)
    score = partial(likes_of_source, board)
    return followed_posts(board, viewers, size, score, reposts=True, newest_first=True, among=among)[0]


def reach(board: Board, rows: IntArray, moment: float) -> IntArray:
    """Score posts by their likes and shares."""
    return board.likes[rows] + board.shares[rows]


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
        """Rank by likes and shares, for the posts of others; the newer of equals comes first."""
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
    """Append to each list that of the same number in another."""
    owners = np.concatenate([first.owners, second.owners])
    order = np.argsort(owners, kind="stable")
    return Ragged.by_owner(owners[order], np.concatenate([first.values, second.values])[order], len(first))
