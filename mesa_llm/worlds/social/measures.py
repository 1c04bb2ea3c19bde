"""Measures of a social world: tables, counts, cascades. Reads only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mesa_llm.records import canonical_json
from mesa_llm.worlds.social.board import KINDS
from mesa_llm.worlds.social.columns import IntArray
from mesa_llm.worlds.social.state import SocialState
from mesa_llm.worlds.social.store import TABLES

COUNTS = {
    "posts": "SELECT created_at, count(*) FROM post WHERE kind = 'original' GROUP BY created_at",
    "replies": "SELECT created_at, count(*) FROM post WHERE kind = 'reply' GROUP BY created_at",
    "quotes": "SELECT created_at, count(*) FROM post WHERE kind = 'quote' GROUP BY created_at",
    "reposts": """
        SELECT created_at, count(*) FROM (
            SELECT created_at FROM post WHERE kind = 'repost' UNION ALL SELECT created_at FROM bare_repost
        ) GROUP BY created_at""",
    "comments": "SELECT created_at, count(*) FROM comment GROUP BY created_at",
    "likes": 'SELECT created_at, count(*) FROM "like" GROUP BY created_at',
    "dislikes": "SELECT created_at, count(*) FROM dislike GROUP BY created_at",
    "follows": "SELECT created_at, count(*) FROM follow GROUP BY created_at",
    "mutes": "SELECT created_at, count(*) FROM mute GROUP BY created_at",
    "reports": "SELECT created_at, count(*) FROM report GROUP BY created_at",
    "purchases": "SELECT created_at, count(*) FROM purchase GROUP BY created_at",
    "groups": "SELECT created_at, count(*) FROM chat_group GROUP BY created_at",
    "messages": "SELECT sent_at, count(*) FROM group_messages GROUP BY sent_at",
    "searches": "SELECT created_at, count(*) FROM search GROUP BY created_at",
}
"""Queries that count by step. What was undone is not counted."""

SHARED = """
    SELECT user_id, parent_id, kind, created_at, post_id FROM post WHERE root_id = ? AND post_id <> ?
    UNION ALL
    SELECT user_id, post_id, 'repost', created_at, repost_id FROM bare_repost WHERE post_id = ?
    ORDER BY created_at, post_id"""
"""Who replied to or passed on what began with one post, in order; bare reposts are those of the original rules."""

POSTS = """
    SELECT post_id, user_id, kind, parent_id,
        CASE kind WHEN 'repost' THEN original_post_id ELSE post_id END AS source_id, root_id, content,
        created_at AS step, num_likes AS likes, num_dislikes AS dislikes, num_shares AS shares, num_reports AS reports
    FROM post ORDER BY post_id"""

COMMENTS = """
    SELECT comment_id, post_id, user_id, content, created_at AS step, num_likes AS likes, num_dislikes AS dislikes
    FROM comment ORDER BY comment_id"""

GROUPS = "SELECT group_id, user_id, name, created_at AS step, members FROM chat_group ORDER BY group_id"

MESSAGES = """
    SELECT message_id, group_id, sender_id AS user_id, content, sent_at AS step FROM group_messages
    ORDER BY message_id"""

PRODUCTS = "SELECT product_id, product_name AS name, sales FROM product ORDER BY product_id"

PASSING = frozenset(("search", "rec", "trace"))
"""Tables that are no part of the state: what was looked for, what was seen last, and how things came about."""


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
        return {
            "users": self._totals["users"],
            "follows": len(self.follows),
            **{name: self._totals[name] for name in KINDS},
            "comments": len(self.comments),
            **{name: self._totals[name] for name in ("likes", "dislikes", "shares", "reports")},
        }

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
        return self._largest_cascade

    def follow_edges(self) -> IntArray:
        """Return all follows as (follower, followee), sorted, shape `(follows, 2)`."""
        return self.follows.edges()

    def posts_table(self) -> list[dict[str, Any]]:
        """Return all posts, reposts, quotes and replies, one mapping each, in order of creation."""
        return self.store.records(POSTS)

    def comments_table(self) -> list[dict[str, Any]]:
        """Return all comments, one mapping each, in order of creation."""
        return self.store.records(COMMENTS)

    def products_table(self) -> list[dict[str, Any]]:
        """Return all products with their sales, one mapping each."""
        return self.store.records(PRODUCTS)

    def groups_table(self) -> list[dict[str, Any]]:
        """Return all chat groups, one mapping each, in order of creation."""
        return self.store.records(GROUPS)

    def messages_table(self) -> list[dict[str, Any]]:
        """Return all messages in groups, one mapping each, in the order they were written."""
        return self.store.records(MESSAGES)

    def engagement(self) -> dict[int, tuple[int, int]]:
        """Return likes and dislikes of every post by its id; a repost has none, as its source gets them."""
        likes, dislikes = self.posts["likes"].tolist(), self.posts["dislikes"].tolist()
        return dict(enumerate(zip(likes, dislikes, strict=True), start=1))

    def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every table's rows in one canonical order, without those in `PASSING`."""
        return {
            table: sorted(self.store.rows(f'SELECT * FROM "{table}"'), key=repr)
            for table in TABLES
            if table not in PASSING
        }

    def digest(self) -> str:
        """Return a digest of the state: equal for worlds in which the same happened."""
        return hashlib.sha256(canonical_json([self.step, self.snapshot()]).encode()).hexdigest()
