"""Posts as feeds read them: posts as columns, viewers, and rankings that are kept up to date."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mesa_llm_models.social.world.csr import (
    MIN_TAIL,
    TAIL_SHARE,
    BoolArray,
    Columns,
    FloatArray,
    FollowMatrix,
    IntArray,
    Ragged,
    compressed,
    slices,
)

ORIGINAL, REPOST, QUOTE, REPLY = 0, 1, 2, 3
KINDS = ("original", "repost", "quote", "reply")
"""Names of the kinds of a post, by number."""

POOL = 1024
"""Minimum number of rows in a ranking's pool."""

MAX_CHANGES = 1_000_000
"""Number of recorded changes to posts after which all rankings are updated."""

NOWHERE = np.zeros(0, dtype=np.int64)

NOBODY: frozenset[int] = frozenset()


class TextReader(Protocol):
    """Reads texts on request."""

    def texts(self, rows: IntArray) -> list[str]:
        """Return the texts of posts, in row order; empty for reposts."""
        ...

    def profiles(self, user_ids: IntArray) -> list[str]:
        """Return the profiles of users, in the order of their ids."""
        ...


class Viewer:
    """A user for whom a feed is made.

    Attributes:
        user_id: The user.
        followed: Ids of the users it follows, in increasing order.
        muted: Ids of the users it muted, in increasing order.
        seed: Seed of its random draws in this step.
    """

    def __init__(self, user_id: int, followed: IntArray, muted: IntArray, seed: int, n_users: int) -> None:
        """Create a viewer.

        Args:
            user_id: The user.
            followed: Ids of the users it follows, in increasing order.
            muted: Ids of the users it muted, in increasing order.
            seed: Seed of its random draws in this step.
            n_users: Number of ids, for the masks.
        """
        self.user_id, self.followed, self.muted, self.seed = user_id, followed, muted, seed
        self.n_users = n_users

    @cached_property
    def followed_ids(self) -> frozenset[int]:
        """Ids of the users it follows."""
        return frozenset(self.followed.tolist())

    @cached_property
    def muted_ids(self) -> frozenset[int]:
        """Ids of the users it muted."""
        return frozenset(self.muted.tolist()) if len(self.muted) else NOBODY

    @cached_property
    def follows(self) -> BoolArray:
        """By user id: whether the viewer follows them. One entry per user, so use it only in small worlds."""
        mask = np.zeros(self.n_users, dtype=np.bool_)
        mask[self.followed[self.followed < self.n_users]] = True
        return mask

    @cached_property
    def hidden(self) -> BoolArray | None:
        """By user id: whether the viewer muted them; None if nobody. One entry per user, as in `follows`."""
        if not len(self.muted):
            return None
        mask = np.zeros(self.n_users, dtype=np.bool_)
        mask[self.muted] = True
        return mask


@dataclass(frozen=True, slots=True)
class Viewers:
    """Users for whom feeds are made together. A single user is a batch of one."""

    ids: IntArray
    """Their user ids, shape `(viewers,)`."""

    followed: Ragged
    """For each viewer, the ids of the users it follows, in increasing order."""

    muted: Ragged
    """For each viewer, the ids of the users it muted, in increasing order."""

    seeds: Sequence[int]
    """For each viewer, the seed of its random draws in this step."""

    n_users: int
    """Number of user ids, which range from 0 to this number, exclusive."""

    def __len__(self) -> int:
        """Count the viewers."""
        return len(self.ids)

    def __getitem__(self, index: int) -> Viewer:
        """Return one viewer."""
        seed = self.seeds[index]
        return Viewer(int(self.ids[index]), self.followed[index], self.muted[index], seed, self.n_users)

    def at(self, indices: IntArray) -> Viewers:
        """Return some of the viewers."""
        seeds = [self.seeds[index] for index in indices.tolist()]
        return Viewers(self.ids[indices], self.followed.at(indices), self.muted.at(indices), seeds, self.n_users)


class PostIndex:
    """A world's posts, in order of creation, and its users, as feeds read them.

    There is one index per world. Arrays taken from it are valid until the next post is published.
    """

    def __init__(
        self,
        posts: Columns,
        users: Columns,
        follows: FollowMatrix,
        texts: TextReader,
        step_minutes: float,
        hide_reports: int,
    ) -> None:
        """Set the data to read.

        Args:
            posts: Columns of the posts.
            users: Columns of the users.
            follows: The follow relation.
            texts: Reads texts.
            step_minutes: Simulated minutes per step.
            hide_reports: Number of reports at which a post is hidden; 0 for never.
        """
        self._posts, self._users, self.follows, self._texts = posts, users, follows, texts
        self.step, self.step_minutes, self._hide_reports = 0, step_minutes, hide_reports
        self._kept: dict[Hashable, Kept] = {}
        self._by_author, self._author_bounds = NOWHERE, np.zeros(1, dtype=np.int64)
        self._changes: list[int] = []
        self._n_forgotten = 0

    def __len__(self) -> int:
        """Count the posts."""
        return len(self._posts)

    @property
    def kind(self) -> IntArray:
        """Index in `KINDS` of each post's kind."""
        return self._posts["kind"]

    @property
    def author(self) -> IntArray:
        """User id of each post's author."""
        return self._posts["author"]

    @property
    def created(self) -> IntArray:
        """Step in which each post was published."""
        return self._posts["created"]

    @property
    def likes(self) -> IntArray:
        """Current number of likes of each post; for a repost, its source's."""
        return self._posts["likes"]

    @property
    def dislikes(self) -> IntArray:
        """Current number of dislikes of each post."""
        return self._posts["dislikes"]

    @property
    def shares(self) -> IntArray:
        """Number of reposts and quotes of each post."""
        return self._posts["shares"]

    @property
    def source(self) -> IntArray:
        """Row of the post whose content each post has: that of the reposted post, or its own."""
        return self._posts["source"]

    @property
    def followers(self) -> IntArray:
        """Number of followers, by user id."""
        return self._users["followers"]

    def is_shown(self, rows: IntArray) -> BoolArray:
        """Check which posts may be shown: neither they nor the posts they share were reported too often."""
        if not self._hide_reports:
            return np.ones(len(rows), dtype=np.bool_)
        return self._posts["reports"][self.source[rows]] < self._hide_reports

    def texts(self, rows: IntArray) -> list[str]:
        """Return the texts of posts, in row order, read on request."""
        return self._texts.texts(rows)

    def profiles(self, user_ids: IntArray) -> list[str]:
        """Return the profiles of users, in the order of their ids, read on request."""
        return self._texts.profiles(user_ids)

    # posts by author

    def posts_of(self, authors: IntArray) -> Ragged:
        """Return the rows of each author's posts, oldest first; empty for unknown ids."""
        if len(self) - len(self._by_author) > max(MIN_TAIL, TAIL_SHARE * len(self._by_author)):
            self._by_author, self._author_bounds = compressed(self.author, len(self._users))
        is_known = authors < len(self._users)
        known = np.where(is_known, authors, 0)
        is_compressed = is_known & (authors < len(self._author_bounds) - 1)
        indices = np.where(is_compressed, authors, 0)
        starts = self._author_bounds[indices]
        ends = (
            np.where(is_compressed, self._author_bounds[indices + 1], starts)
            if len(self._author_bounds) > 1
            else starts
        )
        compact = slices(self._by_author, starts, ends)
        owners, rows = [], []
        remaining = np.flatnonzero(is_known)
        latest = self._users["latest"][known[remaining]].astype(np.int64) - 1 if len(self._users) else NOWHERE
        while len(remaining := remaining[is_new := latest >= len(self._by_author)]):
            latest = latest[is_new]
            owners.append(remaining)
            rows.append(latest)
            latest = self._posts["previous"][latest].astype(np.int64) - 1
        if not owners:
            return compact
        codes = np.concatenate(
            [compact.owners << 32 | compact.values, np.concatenate(owners) << 32 | np.concatenate(rows)]
        )
        codes.sort()
        return Ragged.by_owner(codes >> 32, codes & 0xFFFFFFFF, len(authors))

    def latest_of(self, user_ids: IntArray) -> IntArray:
        """Return the row of each user's latest post; -1 for users without posts."""
        return self._users["latest"][user_ids].astype(np.int64) - 1

    # rankings

    def touch(self, row: int) -> None:
        """Record a change in a post's votes, shares or reports."""
        self._changes.append(row)
        if len(self._changes) > MAX_CHANGES:
            for one in self._kept.values():
                one.update()
            self._n_forgotten += len(self._changes)
            self._changes.clear()

    @property
    def n_changes(self) -> int:
        """Number of changes to posts so far."""
        return self._n_forgotten + len(self._changes)

    def changes_since(self, n: int) -> list[int]:
        """Return the rows of the posts changed since a given change number."""
        return self._changes[n - self._n_forgotten :]

    def kept[T: Kept](self, key: Hashable, make: Callable[[], T]) -> T:
        """Return an object that is kept up to date with the posts from its first use on.

        Args:
            key: Name of the object. Each name belongs to one kind.
            make: Creates the object.
        """
        found: Any = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make()
        return found

    def forget_rankings(self) -> None:
        """Drop all kept objects. They are rebuilt from all posts on next use."""
        self._kept.clear()

    def ranking(self, key: Hashable, score: Score, moment: float = 0.0, *, newest_first: bool = False) -> Ranking:
        """Return a ranking of all top-level posts, kept up to date from its first use on.

        Args:
            key: Name of the ranking, such as its feed.
            score: Computes the scores.
            moment: Time of the scores.
            newest_first: Whether ties go to the newer post rather than the older.
        """
        ranking = self.kept(key, lambda: Ranking(self, score, newest_first))
        ranking.move_to(moment)
        return ranking


class Kept(Protocol):
    """An object kept up to date with the posts."""

    def update(self) -> None:
        """Process the changes since the last update."""
        ...


class Score(Protocol):
    """Computes the scores of a ranking.

    As time passes, the score of a post without new votes may fall but must not rise.
    """

    def __call__(self, board: PostIndex, rows: IntArray, moment: float) -> FloatArray | IntArray:
        """Return the scores of some posts at a moment."""
        ...


def is_top_level(board: PostIndex, rows: IntArray) -> BoolArray:
    """Check which posts are top-level (no replies, no plain reposts) and may be shown."""
    kind = board.kind[rows]
    return ((kind == ORIGINAL) | (kind == QUOTE)) & board.is_shown(rows)


class Ranking:
    """The exact ranking of the best posts by a score, without rescoring all posts on every change.

    It keeps a pool of the best posts, and the score of the best post outside it. A post outside can only rise above
    that score through a vote, and is then rescored, so the posts in the pool above that score are ranked correctly. If
    too few posts in the pool are, it is rebuilt from all posts.
    """

    def __init__(self, board: PostIndex, score: Score, newest_first: bool) -> None:
        """Create an empty ranking; the first use ranks all posts."""
        self._board, self._score, self._newest_first = board, score, newest_first
        self._rows: IntArray = NOWHERE
        self._scores: FloatArray = np.zeros(0)
        self._limit: tuple[float, int] | None = None  # score and row of the best post outside; None if there is none
        self._size = POOL
        self._n_posts = self._n_changes = 0
        self._moment = -math.inf
        self._is_stale = True

    def move_to(self, moment: float) -> None:
        """Move to a moment. Moving back in time recomputes the ranking."""
        if moment < self._moment:
            self._rows, self._scores, self._limit = NOWHERE, np.zeros(0), None
            self._n_posts = 0
        self._is_stale |= moment != self._moment
        self._moment = moment

    def first(self, n: int) -> IntArray:
        """Return the rows of the best posts, best first, or fewer if there are not enough."""
        self.update()
        if self._limit is not None and self._n_exact < n:
            self._draw_anew(max(POOL, 4 * n))
        return self._rows[:n]

    @property
    def _n_exact(self) -> int:
        """Number of leading rows with scores above everything outside the pool."""
        if self._limit is None:
            return len(self._rows)
        return int(np.count_nonzero(self._is_above(self._rows, self._scores, self._limit)))

    def _is_above(self, rows: IntArray, scores: FloatArray, limit: tuple[float, int]) -> BoolArray:
        equal = rows > limit[1] if self._newest_first else rows < limit[1]
        return (scores > limit[0]) | ((scores == limit[0]) & equal)

    def _scores_of(self, rows: IntArray) -> FloatArray:
        return np.asarray(self._score(self._board, rows, self._moment), dtype=np.float64)

    def update(self) -> None:
        """Process new posts, changed posts and the passage of time."""
        board = self._board
        changed = board.changes_since(self._n_changes)
        n_posts = len(board)
        if not changed and n_posts == self._n_posts and not self._is_stale:
            return
        fresh = np.arange(self._n_posts, n_posts)
        if changed:
            fresh = np.union1d(np.array(changed, dtype=np.int64), fresh)
        self._n_posts, self._n_changes = n_posts, board.n_changes
        old, old_scores = self._rows, self._scores
        if changed:
            is_same = ~np.isin(old, fresh)
            old, old_scores = old[is_same], old_scores[is_same]
        if self._is_stale:
            old_scores, self._is_stale = self._scores_of(old), False
        fresh = fresh[is_top_level(board, fresh)]
        scores = self._scores_of(fresh)
        if self._limit is not None:
            is_better = self._is_above(fresh, scores, self._limit)
            fresh, scores = fresh[is_better], scores[is_better]
        self._keep(np.concatenate([old, fresh]), np.concatenate([old_scores, scores]))

    def _keep(self, rows: IntArray, scores: FloatArray) -> None:
        """Sort the pool, and keep only the best if it is too large."""
        order = np.lexsort((-rows if self._newest_first else rows, -scores))
        self._rows, self._scores = rows[order], scores[order]
        size = self._size
        if len(order) > 2 * size:
            best = self._rows[size : size + 1], self._scores[size : size + 1]
            if self._limit is None or self._is_above(*best, self._limit)[0]:
                self._limit = float(self._scores[size]), int(self._rows[size])
            self._rows, self._scores = self._rows[:size].copy(), self._scores[:size].copy()

    def _draw_anew(self, size: int) -> None:
        """Rebuild the pool from all posts."""
        rows = np.arange(len(self._board))
        rows = rows[is_top_level(self._board, rows)]
        scores = self._scores_of(rows)
        self._limit, self._size = None, size
        if len(rows) > size:
            threshold = np.partition(scores, len(scores) - size - 1)[len(scores) - size - 1]
            above, equal = np.flatnonzero(scores > threshold), np.flatnonzero(scores == threshold)
            equal = equal[::-1] if self._newest_first else equal
            n_equal = size - len(above)
            self._limit = float(threshold), int(rows[equal[n_equal]])
            chosen = np.concatenate([above, equal[:n_equal]])
            rows, scores = rows[chosen], scores[chosen]
        self._keep(rows, scores)


def first_allowed(
    ranking: Ranking,
    viewers: Viewers,
    sizes: IntArray,
    is_barred: Callable[[Viewers, IntArray], BoolArray | None],
    but_not: Ragged | None = None,
) -> Ragged:
    """Return the first rows of a ranking that each viewer may see.

    Reads slightly more of the ranking than needed, and reads on only for viewers with too few rows.

    Args:
        ranking: The ranking.
        viewers: The viewers.
        sizes: Maximum number of rows for each viewer.
        is_barred: Returns which rows which viewers must not see, shape `(viewers, rows)`; None if all are visible.
        but_not: Further rows to exclude for each viewer.
    """
    parts: list[tuple[IntArray, IntArray]] = []
    remaining = np.arange(len(viewers))
    depth = int(sizes.max(initial=0)) * 3 // 2
    while len(remaining):
        rows = ranking.first(depth)
        later: list[IntArray] = []
        n_at_once = max(1, 4_000_000 // max(len(rows), 1))
        for start in range(0, len(remaining), n_at_once):
            some = remaining[start : start + n_at_once]
            barred = is_barred(viewers if len(some) == len(viewers) else viewers.at(some), rows)
            if but_not is not None:
                held = (but_not if len(some) == len(viewers) else but_not.at(some)).holds(rows)
                barred = held if barred is None else barred | held
            allowed = np.ones((len(some), len(rows)), dtype=np.bool_) if barred is None else ~barred
            counts = np.cumsum(allowed, axis=1, dtype=np.int32)
            is_done = (counts[:, -1] >= sizes[some]) if len(rows) == depth and depth else np.ones(len(some), np.bool_)
            allowed &= counts <= sizes[some][:, None]
            owners, positions = np.nonzero(allowed[is_done])
            parts.append((some[is_done][owners], rows[positions]))
            later.append(some[~is_done])
        remaining = np.concatenate(later)
        depth = max(4 * depth, 64)
    owners = np.concatenate([owners for owners, _ in parts]) if parts else NOWHERE
    values = np.concatenate([values for _, values in parts]) if parts else NOWHERE
    order = np.argsort(owners, kind="stable") if len(parts) > 1 else slice(None)
    return Ragged.by_owner(owners[order], values[order], len(viewers))
