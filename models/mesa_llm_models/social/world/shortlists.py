"""The best posts of the users each viewer follows, found without scanning everything they published.

Each author has a shortlist: the posts that can be among the author's best for any viewer. Among posts of equal worth
(for example the same number of likes), these are the newest few, however a feed weights worth against recency. A
shortlist is therefore no longer than the number of an author's distinct worths times the length of a feed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np

from mesa_llm_models.social.world.csr import MIN_TAIL, BoolArray, IntArray, Ragged, slices
from mesa_llm_models.social.world.post_index import NOWHERE, REPLY, REPOST, PostIndex, Viewers, is_top_level

TAIL = 0.25
"""Share of recent posts and changes at which shortlists are rebuilt."""

MIN_LENGTH = 16
"""Minimum shortlist capacity for posts of one worth."""


class Worth(Protocol):
    """Computes the worth of posts apart from recency, such as their likes."""

    def __call__(self, board: PostIndex, rows: IntArray) -> IntArray:
        """Return the worth of some posts, 0 or more."""
        ...


class Shortlists:
    """For each author, the posts that can be among the best under any weighting of worth and recency.

    This holds for every score that increases with worth between posts of equal age, and with recency between posts of
    equal worth. An omitted post stays behind those that displaced it until one of them loses worth or is hidden. All
    posts of its author are then examined until the shortlists are rebuilt.
    """

    def __init__(self, board: PostIndex, worth: Worth, *, reposts: bool = False, newest_first: bool = False) -> None:
        """Create empty shortlists; the first use builds them all.

        Args:
            board: The posts.
            worth: Computes the worth of posts; for a repost, its source's.
            reposts: Whether to include reposts.
            newest_first: Whether ties in worth and age go to the newer post rather than the older.
        """
        self._board, self._worth, self._reposts, self._newest_first = board, worth, reposts, newest_first
        self._length = 0  # maximum number of posts of one worth
        self._rows: IntArray = NOWHERE
        self._bounds: IntArray = np.zeros(1, dtype=np.int64)
        self._worths: IntArray = NOWHERE  # of all posts, when the shortlists were last built
        self._by_source: tuple[IntArray, IntArray] = NOWHERE, NOWHERE  # reposts at that time: sorted sources; they
        self._recent: dict[int, list[int]] = {}  # author → posts published since, or with higher worth now
        self._unsure: set[int] = set()  # authors of posts with lower worth now, or hidden
        self._n_posts = self._n_changes = self._n_tail = 0

    def of(self, authors: IntArray, size: int) -> Ragged:
        """Return rows that include the best posts of some authors, in no particular order.

        Args:
            authors: Ids of the authors, without duplicates.
            size: Number of best posts of each; with reposts, posts with different sources.
        """
        length = 2 * size if self._reposts else size  # a user who shares its own post has two with one source
        if length > self._length:
            self._length = max(2 * length, MIN_LENGTH)
            self._draw_up()
        self.update()
        starts = np.minimum(authors, len(self._bounds) - 1)
        ends = np.minimum(authors + 1, len(self._bounds) - 1)
        found = slices(self._rows, self._bounds[starts], self._bounds[ends])
        if not self._recent and not self._unsure:
            return found
        owners, rows = [found.owners], [found.values]
        for index, author in enumerate(authors.tolist()):
            if author in self._unsure:
                own = self._board.posts_of(authors[index : index + 1]).values
            elif author in self._recent:
                own = np.array(self._recent[author], dtype=np.int64)
            else:
                continue
            rows.append(own)
            owners.append(np.full(len(own), index))
        if len(rows) == 1:
            return found
        codes = np.unique(np.concatenate(owners).astype(np.int64) << 32 | np.concatenate(rows))
        found = Ragged.by_owner(codes >> 32, codes & 0xFFFFFFFF, len(authors))
        return found.only(self._is_listed(found.values))

    def _is_listed(self, rows: IntArray) -> BoolArray:
        """Check which posts may be on a shortlist."""
        board = self._board
        return (board.kind[rows] != REPLY) & board.is_shown(rows) if self._reposts else is_top_level(board, rows)

    def update(self) -> None:
        """Process new and changed posts."""
        board = self._board
        n_posts, changed = len(board), board.changes_since(self._n_changes)
        if n_posts == self._n_posts and not changed:
            return
        self._n_tail += n_posts - self._n_posts + len(changed)
        if self._n_tail > max(MIN_TAIL, TAIL * n_posts):
            self._draw_up()
            return
        for row, author in enumerate(board.author[self._n_posts :].tolist(), self._n_posts):
            self._recent.setdefault(author, []).append(row)
        self._n_posts, self._n_changes = n_posts, board.n_changes
        if changed:
            self._take_in(np.unique(changed))

    def _take_in(self, changed: IntArray) -> None:
        """Record which posts have gained worth since listing, and whose posts have lost worth."""
        board = self._board
        if self._reposts:
            sources, reposts = self._by_source
            passed_on = slices(reposts, np.searchsorted(sources, changed), np.searchsorted(sources, changed, "right"))
            changed = np.concatenate([changed, passed_on.values])
        changed = changed[changed < len(self._worths)]
        now, then = self._worth(board, changed), self._worths[changed]
        is_less = (now < then) | ~board.is_shown(changed)
        self._unsure.update(board.author[changed[is_less]].tolist())
        risen = changed[(now > then) & ~is_less]
        for row, author in zip(risen.tolist(), board.author[risen].tolist(), strict=True):
            self._recent.setdefault(author, []).append(row)

    def _draw_up(self) -> None:
        """Rebuild all shortlists."""
        board = self._board
        rows = np.arange(len(board))
        self._worths = self._worth(board, rows).astype(np.int32)
        self._recent, self._unsure = {}, set()
        self._n_posts, self._n_changes, self._n_tail = len(board), board.n_changes, 0
        if self._reposts:
            reposts = rows[board.kind == REPOST]
            reposts = reposts[np.argsort(board.source[reposts], kind="stable")].astype(np.int32)
            self._by_source = board.source[reposts], reposts
        rows = rows[self._is_listed(rows)]
        by_age = np.arange(len(rows))[::-1] if self._newest_first else np.argsort(-board.created[rows], kind="stable")
        rows = rows[by_age]
        codes = board.author[rows].astype(np.int64) << 32 | self._worths[rows]
        order = np.argsort(codes, kind="stable")
        rows, codes = rows[order], codes[order]
        is_first = np.ones(len(rows), dtype=np.bool_)
        is_first[1:] = codes[1:] != codes[:-1]
        firsts = np.flatnonzero(is_first)
        positions = np.arange(len(rows)) - np.repeat(firsts, np.diff(firsts, append=len(rows)))
        is_listed = positions < self._length
        self._rows = rows[is_listed].astype(np.int32)
        n_authors = int(board.author.max(initial=-1)) + 1
        self._bounds = np.searchsorted(codes[is_listed] >> 32, np.arange(n_authors + 1))


def shortlists(board: PostIndex, key: Hashable, worth: Worth, *, reposts: bool, newest_first: bool) -> Shortlists:
    """Return the shortlists of a board by a worth, kept up to date from their first use on.

    Args:
        board: The posts.
        key: Name of the worth.
        worth: Computes the worth of posts; for a repost, its source's.
        reposts: Whether to include reposts.
        newest_first: Whether ties in worth and age go to the newer post rather than the older.
    """

    def make() -> Shortlists:
        return Shortlists(board, worth, reposts=reposts, newest_first=newest_first)

    return board.kept(("shortlists", key, reposts, newest_first), make)


def first_of_each(owners: IntArray, sources: IntArray) -> BoolArray:
    """Mark the first row of each source for each owner."""
    _, firsts = np.unique(owners.astype(np.int64) << 32 | sources, return_index=True)
    is_first = np.zeros(len(owners), dtype=np.bool_)
    is_first[firsts] = True
    return is_first


def followed_posts(
    board: PostIndex,
    viewers: Viewers,
    size: int,
    score: Callable[[IntArray], Any],
    *,
    reposts: bool = False,
    newest_first: bool = False,
    among: Shortlists | None = None,
) -> tuple[Ragged, Any]:
    """Find the best posts of the users each viewer follows, excluding posts published or written by muted users.

    Args:
        board: The posts.
        viewers: The viewers.
        size: Maximum number of posts for each viewer.
        score: Returns the scores of some rows.
        reposts: Whether to include reposts; of several posts with the same source, only the best counts.
        newest_first: Whether ties go to the newer post rather than the older.
        among: Shortlists with the best posts of each author; None to score all posts.

    Returns:
        The rows for each viewer, best first, and all their scores.
    """
    owners, followees = viewers.followed.owners, viewers.followed.values
    mutes = viewers.muted
    has_mutes = len(mutes.values) > 0
    codes = mutes.owners << 32 | mutes.values
    if has_mutes:
        is_heard = ~np.isin(owners << 32 | followees, codes)
        owners, followees = owners[is_heard], followees[is_heard]
    authors, indices = np.unique(followees, return_inverse=True)
    is_whole = has_mutes and reposts  # a muted user's post may be among the best but must not take a place
    if among is None or is_whole:
        posts = board.posts_of(authors)
        rows = posts.values
        is_kind = (board.kind[rows] != REPLY) & board.is_shown(rows) if reposts else is_top_level(board, rows)
        posts = posts.only(is_kind)
    else:
        posts = among.of(authors, size)
    scores = score(posts.values)
    if len(viewers) == 1 and not reposts and len(scores) > 4 * size > 0:  # with one viewer, only the best matter
        is_best = scores >= np.partition(scores, len(scores) - size)[len(scores) - size]
        posts, scores = posts.only(is_best), scores[is_best]
    by_score = np.lexsort((-posts.values if newest_first else posts.values, -scores))
    rows, scores = posts.values[by_score], scores[by_score]  # from here on, posts are identified by rank
    codes_of_ranks = posts.owners[by_score] << 32 | np.arange(len(rows))
    ranks = Ragged(np.sort(codes_of_ranks) & 0xFFFFFFFF, posts.bounds)
    if not is_whole:
        if reposts:
            ranks = ranks.only(first_of_each(ranks.owners, board.source[rows[ranks.values]]))
        ranks = ranks.head(size)
    own = ranks.at(indices.reshape(-1))
    own_codes = owners[own.owners] << 32 | own.values
    if is_whole:
        own_codes = own_codes[~np.isin(own_codes >> 32 << 32 | board.author[board.source[rows[own.values]]], codes)]
    own_codes.sort()
    owners, ranked = own_codes >> 32, own_codes & 0xFFFFFFFF
    if reposts:
        is_first = first_of_each(owners, board.source[rows[ranked]])
        owners, ranked = owners[is_first], ranked[is_first]
    found = Ragged.by_owner(owners, ranked, len(viewers)).head(size)
    return Ragged(rows[found.values], found.bounds), scores[found.values]
