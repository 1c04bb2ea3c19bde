"""Measures of a social world: tables, counts, cascades. Reads only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mesa_llm.records import canonical_json
from mesa_llm.worlds.social.recommenders import KINDS, QUOTE, REPLY, REPOST, IntArray
from mesa_llm.worlds.social.state import SocialState
from mesa_llm.worlds.social.store import TABLES

COUNTS = {
    "posts": "SELECT step, count(*) FROM post WHERE kind = 'original' GROUP BY step",
    "replies": "SELECT step, count(*) FROM post WHERE kind = 'reply' GROUP BY step",
    "quotes": "SELECT step, count(*) FROM post WHERE kind = 'quote' GROUP BY step",
    "reposts": """
        SELECT step, count(*) FROM (
            SELECT step FROM post WHERE kind = 'repost' UNION ALL SELECT step FROM bare_repost
        ) GROUP BY step""",
    "comments": "SELECT step, count(*) FROM comment GROUP BY step",
    "likes": "SELECT step, count(*) FROM post_vote WHERE value > 0 GROUP BY step",
    "dislikes": "SELECT step, count(*) FROM post_vote WHERE value < 0 GROUP BY step",
    "follows": "SELECT step, count(*) FROM follow GROUP BY step",
    "mutes": "SELECT step, count(*) FROM mute GROUP BY step",
    "reports": "SELECT step, count(*) FROM report GROUP BY step",
    "purchases": "SELECT step, count(*) FROM purchase GROUP BY step",
    "groups": "SELECT step, count(*) FROM chat_group GROUP BY step",
    "messages": "SELECT step, count(*) FROM group_messages GROUP BY step",
    "searches": "SELECT step, count(*) FROM search GROUP BY step",
}
"""Queries that count by step. What was undone is not counted."""

SHARED = """
    SELECT user_id, parent_id, kind, step, post_id FROM post WHERE root_id = ? AND post_id <> ?
    UNION ALL
    SELECT user_id, post_id, 'repost', step, repost_id FROM bare_repost WHERE post_id = ?
    ORDER BY step, post_id"""
"""Who replied to or passed on what began with one post, in order; bare reposts are those of the original rules."""


THREAD = """
    WITH above (post_id) AS (SELECT post_id FROM post WHERE root_id = ?1 AND kind = 'reply' UNION SELECT ?1)
    SELECT 'reply', post_id, parent_id, user_id, content, step, likes, dislikes FROM post
    WHERE root_id = ?1 AND kind = 'reply'
    UNION ALL
    SELECT 'comment', comment_id, post_id, user_id, content, step, likes, dislikes FROM comment
    WHERE post_id IN (SELECT post_id FROM above)
    ORDER BY step, 1 DESC, 2"""
"""Replies and comments under a post, in order."""

FOUND_POSTS = """
    SELECT post_id FROM post WHERE kind <> 'repost' AND content LIKE ? ESCAPE '\\'
    ORDER BY shares DESC, likes DESC, post_id LIMIT ?"""

REACH = 2**31
"""One share counts more than any number of likes."""

POSTS_BY = "SELECT content FROM post WHERE user_id = ? AND kind <> 'repost' ORDER BY post_id DESC LIMIT ?"


@dataclass(frozen=True, slots=True)
class Cascade:
    """The spread of one post, step by step.

    A user joins once, with its first share, one farther from the root than the user it shared from.
    """

    root_id: int
    """The post that spread."""

    steps: tuple[int, ...]
    """Steps from its publication until now."""

    size: tuple[int, ...]
    """By step: users in the cascade, the root's author included (OASIS: scale)."""

    depth: tuple[int, ...]
    """By step: largest distance of a user from the root."""

    breadth: tuple[int, ...]
    """By step: largest number of users at one distance (OASIS: max breadth)."""


@dataclass(frozen=True, slots=True)
class Share:
    """One user's joining of a cascade."""

    user_id: int
    """Mesa `unique_id` of who passed the post on."""

    from_id: int
    """User id of whom it had the post from."""

    distance: int
    """Number of shares between the root's author and the user."""

    step: int
    """Step in which it was shared."""

    post_id: int
    """The repost or quote; of a repost that only counts (original rules), its number among those."""


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A reply or comment in a thread."""

    kind: str
    """`reply` or `comment`."""

    post_id: int
    """Its number, of a comment among comments."""

    parent_id: int
    """The post or reply that it answers."""

    level: int
    """Number of replies between it and the post that the thread is about; 0 of a direct one."""

    author_id: int
    """User id of who wrote it."""

    author: str
    """Name of who wrote it."""

    content: str
    """Its words."""

    step: int
    """Step in which it was written."""

    likes: int
    """Likes now."""

    dislikes: int
    """Dislikes now."""


class SocialMeasures(SocialState):
    """Read-only queries for plots, tables and tests."""

    def totals(self) -> dict[str, int]:
        """Count what there is now, without looking at every row."""
        counts_by_kind = np.bincount(self.posts["kind"], minlength=len(KINDS)).tolist()
        sums = {name: int(self.posts[name].sum()) for name in ("likes", "dislikes", "shares", "reports")}
        counts = {"users": len(self.names), "follows": int(self.users["followings"].sum())}
        return counts | dict(zip(KINDS, counts_by_kind, strict=True)) | {"comments": self.n_comments} | sums

    def counts_per_step(self) -> list[dict[str, int]]:
        """Count what was done in each step until now; one mapping a step, by the names in `COUNTS`."""
        counts = [{"step": step, **dict.fromkeys(COUNTS, 0)} for step in range(self.step + 1)]
        for name, query in COUNTS.items():
            for step, count in self.store.rows(query):
                counts[step][name] = count
        return counts

    def cascade(self, root_id: int, kinds: Sequence[str] = ("repost", "quote")) -> Cascade:
        """Follow how a post spread.

        Args:
            root_id: The post, where its cascade began.
            kinds: Kinds of posts that carry it on.

        Raises:
            ToolError: If there is no such post.
        """
        steps = range(self.posts.get("created", self.post_row(root_id)), self.step + 1)
        newcomers: dict[int, list[int]] = {}
        for share in self.shares(root_id, kinds):
            newcomers.setdefault(share.step, []).append(share.distance)
        at_distance = [1]
        curve: list[tuple[int, int, int]] = []
        for step in steps:
            for distance in newcomers.get(step, ()):
                at_distance += [0] * (distance + 1 - len(at_distance))
                at_distance[distance] += 1
            curve.append((sum(at_distance), len(at_distance) - 1, max(at_distance)))
        size, depth, breadth = zip(*curve, strict=True)
        return Cascade(root_id, tuple(steps), size, depth, breadth)

    def shares(self, root_id: int, kinds: Sequence[str] = ("repost", "quote")) -> list[Share]:
        """List who joined the cascade of a post, in order, and from whom; each user once, without the root's author.

        Args:
            root_id: The post, where its cascade began.
            kinds: Kinds of posts that carry it on.

        Raises:
            ToolError: If there is no such post.
        """
        self.post_row(root_id)
        distances = {self.author_of(root_id): 0}
        shares: list[Share] = []
        for user_id, parent_id, kind, step, post_id in self.store.rows(SHARED, root_id, root_id, root_id):
            from_id = self.author_of(parent_id)
            distance = distances.get(from_id)
            if kind in kinds and distance is not None and user_id not in distances:
                distances[user_id] = distance + 1
                shares.append(Share(user_id, from_id, distance + 1, step, post_id))
        return shares

    def largest_cascade(self) -> int:
        """Count the users in the largest cascade of reposts and quotes, its author included; 0 without posts."""
        kind, author, root = (self.posts[name] for name in ("kind", "author", "root"))
        if not len(kind):
            return 0
        shares = np.flatnonzero((kind == REPOST) | (kind == QUOTE))
        bare_reposts = np.array(self.store.rows("SELECT post_id, user_id FROM bare_repost"), dtype=np.int64).reshape(
            -1, 2
        )
        roots = np.concatenate([root[shares], root[shares], bare_reposts[:, 0], bare_reposts[:, 0]])
        users = np.concatenate(
            [author[shares], author[root[shares] - 1], bare_reposts[:, 1], author[bare_reposts[:, 0] - 1]]
        )
        members = np.unique(np.stack([roots, users]), axis=1)
        return int(np.unique(members[0], return_counts=True)[1].max(initial=1))

    def follow_edges(self, since: int = 0) -> IntArray:
        """Return all follows as (follower, followee), sorted, shape `(follows, 2)`.

        Args:
            since: Only follows that began in this step or later.
        """
        query = "SELECT follower_id, followee_id FROM follow WHERE step >= ? ORDER BY follower_id, followee_id"
        rows = self.store.rows(query, since)
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    def posts_table(self) -> list[dict[str, Any]]:
        """Return all posts, reposts, quotes and replies, one mapping each, in order of creation."""
        return self.store.records("SELECT * FROM post ORDER BY post_id")

    def comments_table(self) -> list[dict[str, Any]]:
        """Return all comments, one mapping each, in order of creation."""
        return self.store.records("SELECT * FROM comment ORDER BY comment_id")

    def products_table(self) -> list[dict[str, Any]]:
        """Return all products with their sales, one mapping each."""
        return self.store.records("SELECT * FROM product ORDER BY product_id")

    def groups_table(self) -> list[dict[str, Any]]:
        """Return all chat groups, one mapping each, in order of creation."""
        return self.store.records("SELECT * FROM chat_group ORDER BY group_id")

    def messages_table(self) -> list[dict[str, Any]]:
        """Return all messages in groups, one mapping each, in the order they were written."""
        return self.store.records("SELECT * FROM group_messages ORDER BY message_id")

    def engagement(self) -> dict[int, tuple[int, int]]:
        """Return likes and dislikes of every post by its id; a repost has none, as its source gets them."""
        likes, dislikes = self.posts["likes"].tolist(), self.posts["dislikes"].tolist()
        return dict(enumerate(zip(likes, dislikes, strict=True), start=1))

    def thread(self, post_id: int, size: int) -> tuple[int, list[ThreadEntry], int]:
        """Return the thread that a post stands in.

        Args:
            post_id: A post, repost, quote or reply.
            size: Maximum number of replies and comments, the first ones.

        Returns:
            The post that the thread is about; replies and comments, each under what it answers; their number in all.

        Raises:
            ToolError: If there is no such post.
        """
        source_id = self.source_id(post_id)
        root_id = self.posts.get("root", source_id - 1) if self.kind_of(source_id) == REPLY else source_id
        rows = self.store.rows(THREAD, root_id)
        under: dict[int, list[tuple[Any, ...]]] = {}
        for row in rows[:size]:
            under.setdefault(row[2], []).append(row)
        entries: list[ThreadEntry] = []
        waiting = [(0, row) for row in reversed(under.pop(root_id, []))]
        while waiting:
            level, row = waiting.pop()
            kind, entry_id, parent_id, author_id, *rest = row
            entries.append(ThreadEntry(kind, entry_id, parent_id, level, author_id, self.names[author_id], *rest))
            if kind == "reply":
                waiting += [(level + 1, other) for other in reversed(under.pop(entry_id, []))]
        return root_id, entries, len(rows)

    def find_posts(self, query: str, size: int) -> list[int]:
        """Search posts for words or a number.

        Args:
            query: Text that a post holds, or its number; empty: the posts that were passed on most.
            size: Maximum number of posts.

        Returns:
            Post ids: the post of that number first, then those passed on most, then those liked most; no bare reposts.
        """
        query = query.strip()
        if not query:
            rows = np.flatnonzero(self.posts["kind"] != REPOST)
            reach = self.posts["shares"][rows] * REACH + self.posts["likes"][rows]
            if len(rows) > size:
                rows = rows[np.sort(np.argpartition(-reach, size)[:size])]
                reach = self.posts["shares"][rows] * REACH + self.posts["likes"][rows]
            return (rows[np.argsort(-reach, kind="stable")] + 1).tolist()
        pattern = query.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found = [int(row[0]) for row in self.store.rows(FOUND_POSTS, f"%{pattern}%", size)]
        number = int(query) if query.isascii() and query.isdecimal() and len(query) < 19 else 0
        named = [number] if 0 < number <= len(self.posts) else []
        return [*named, *(post_id for post_id in found if post_id != number)][:size]

    def posts_by(self, user_id: int, size: int) -> list[str]:
        """Return what a user wrote last, newest first: posts, quotes and replies.

        Args:
            user_id: The user.
            size: Maximum number of texts.
        """
        return [str(row[0]) for row in self.store.rows(POSTS_BY, user_id, size)]

    def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every table's rows in one canonical order, without the log of searches."""
        return {
            table: sorted(self.store.rows(f"SELECT * FROM {table}"), key=repr) for table in TABLES if table != "search"
        }

    def digest(self) -> str:
        """Return a digest of the state: equal for worlds in which the same happened."""
        return hashlib.sha256(canonical_json([self.step, self.snapshot()]).encode()).hexdigest()
