"""Measures of a social world: tables, counts, cascades. Reads only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mesa_llm.records import canonical_json
from mesa_llm.worlds.social.recommenders import KINDS, QUOTE, REPOST, IntArray
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
        distances = {self.author_of(root_id): 0}
        newcomers: dict[int, list[int]] = {}
        for user_id, parent_id, kind, step, _ in self.store.rows(SHARED, root_id, root_id, root_id):
            shared_from = distances.get(self.author_of(parent_id))
            if kind in kinds and shared_from is not None and user_id not in distances:
                distances[user_id] = shared_from + 1
                newcomers.setdefault(step, []).append(shared_from + 1)
        at_distance = [1]
        curve: list[tuple[int, int, int]] = []
        for step in steps:
            for distance in newcomers.get(step, ()):
                at_distance += [0] * (distance + 1 - len(at_distance))
                at_distance[distance] += 1
            curve.append((sum(at_distance), len(at_distance) - 1, max(at_distance)))
        size, depth, breadth = zip(*curve, strict=True)
        return Cascade(root_id, tuple(steps), size, depth, breadth)

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

    def follow_edges(self) -> IntArray:
        """Return all follows as (follower, followee), sorted, shape `(follows, 2)`."""
        rows = self.store.rows("SELECT follower_id, followee_id FROM follow ORDER BY follower_id, followee_id")
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

    def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every table's rows in one canonical order, without the log of searches."""
        return {
            table: sorted(self.store.rows(f"SELECT * FROM {table}"), key=repr) for table in TABLES if table != "search"
        }

    def digest(self) -> str:
        """Return a digest of the state: equal for worlds in which the same happened."""
        return hashlib.sha256(canonical_json([self.step, self.snapshot()]).encode()).hexdigest()
