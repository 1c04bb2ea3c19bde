"""Measures of a social world: tables, counts, cascades. Reads only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from mesa_llm.canonical import canonical_json
from mesa_llm_models.social.world.csr import IntArray
from mesa_llm_models.social.world.post_index import KINDS, REPLY, REPOST
from mesa_llm_models.social.world.state import UNPRINTABLE, SocialState
from mesa_llm_models.social.world.store import TABLES

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
"""Queries that count by step, excluding undone actions."""

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
"""Tables outside the state: searches, the last feeds, and traces."""


NEW_FOLLOWS = "SELECT follower_id, followee_id FROM follow WHERE created_at >= ? ORDER BY follower_id, followee_id"

MAX_FOUND = 2_000
"""Maximum number of matching posts a search compares; the latest ones count."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """The spread of one post, step by step.

    A user joins once, with its first share, one step further from the root than the user it shared from.
    """

    root_id: int
    """The post that spread."""

    steps: tuple[int, ...]
    """Steps from its publication to now."""

    size: tuple[int, ...]
    """By step: users in the cascade, including the root's author (OASIS: scale)."""

    depth: tuple[int, ...]
    """By step: largest distance of a user from the root."""

    breadth: tuple[int, ...]
    """By step: largest number of users at one distance (OASIS: max breadth)."""


@dataclass(frozen=True, slots=True)
class Share:
    """A user joining a cascade."""

    user_id: int
    """Mesa `unique_id` of the user who shared the post."""

    from_id: int
    """Id of the user whose post was shared."""

    distance: int
    """Number of shares between the root's author and the user."""

    step: int
    """Step of the share."""

    post_id: int
    """Id of the repost or quote; for a repost that is only counted (original rules), its number among those."""


@dataclass(frozen=True, slots=True)
class ThreadEntry:
    """A reply or comment in a thread."""

    kind: str
    """`reply` or `comment`."""

    post_id: int
    """Its id; comments have their own ids."""

    parent_id: int
    """The post or reply it answers."""

    level: int
    """Number of replies between it and the post at the top of the thread; 0 for a direct reply."""

    author_id: int
    """User id of the author."""

    author: str
    """Name of the author."""

    content: str
    """Its text."""

    step: int
    """Step of publication."""

    likes: int
    """Current number of likes."""

    dislikes: int
    """Current number of dislikes."""


REACH = 2**31
"""Weight of a share: more than any number of likes."""

TEXT_TABLES = {"reply": "post", "comment": "comment"}
"""Kind of an entry in a thread → the table with its text."""


class SocialMeasures:
    """Read-only queries on a social world, for plots, tables and tests: its `measures`."""

    def __init__(self, world: SocialState) -> None:
        """Set the world to read.

        Args:
            world: The world.
        """
        self.world = world

    def totals(self) -> dict[str, int]:
        """Return current counts of users, posts, votes and so on, without scanning every row."""
        return {
            "users": self.world.counts["users"],
            "follows": len(self.world.follows),
            **{name: self.world.counts[name] for name in KINDS},
            "comments": len(self.world.comments),
            **{name: self.world.counts[name] for name in ("likes", "dislikes", "shares", "reports")},
        }

    def counts_per_step(self) -> list[dict[str, int]]:
        """Return the counts of actions in each step so far: one mapping per step, with the names in `COUNTS`."""
        counts = [{"step": step, **dict.fromkeys(COUNTS, 0)} for step in range(self.world.step + 1)]
        for name, query in COUNTS.items():
            for step, count in self.world.store.rows(query):
                counts[step][name] = count
        return counts

    def cascade(self, root_id: int, kinds: Sequence[str] = ("repost", "quote")) -> Cascade:
        """Trace the spread of a post.

        Args:
            root_id: The post at the root of the cascade.
            kinds: Kinds of posts that spread it.

        Raises:
            ToolError: If there is no such post.
        """
        steps = range(self.world.posts.get("created", self.world.post_row(root_id)), self.world.step + 1)
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
        """List the shares in a cascade, in order. Each user counts once, and the root's author does not.

        Args:
            root_id: The post at the root of the cascade.
            kinds: Kinds of posts that spread it.

        Raises:
            ToolError: If there is no such post.
        """
        self.world.post_row(root_id)
        distances = {self.world.author_of(root_id): 0}
        shares: list[Share] = []
        for user_id, from_id, step, post_id in self._passed_on(root_id, kinds):
            distance = distances.get(from_id)
            if distance is not None and user_id not in distances:
                distances[user_id] = distance + 1
                shares.append(Share(user_id, from_id, distance + 1, step, post_id))
        return shares

    def _passed_on(self, root_id: int, kinds: Sequence[str]) -> list[tuple[int, int, int, int]]:
        """Return user, source, step and post of each share of a cascade, in order."""
        posts = self.world.posts
        rows = np.flatnonzero(posts["root"] == root_id)
        rows = rows[np.isin(posts["kind"][rows], [KINDS.index(kind) for kind in kinds]) & (rows != root_id - 1)]
        parents = posts["parent"][rows] - 1
        columns = posts["author"][rows], posts["author"][parents], posts["created"][rows], rows + 1
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def largest_cascade(self) -> int:
        """Return the number of users in the largest cascade, including its author; 0 without posts."""
        return self.world.max_cascade

    def follow_edges(self) -> IntArray:
        """Return all follows as (follower, followee), sorted, shape `(follows, 2)`."""
        return self.world.follows.edges()

    def new_follows(self) -> IntArray:
        """Return the follows since step 1 as (follower, followee), sorted, shape `(follows, 2)`."""
        return np.array(self.world.store.rows(NEW_FOLLOWS, 1), dtype=np.int64).reshape(-1, 2)

    def posts_table(self) -> list[dict[str, Any]]:
        """Return all posts, reposts, quotes and replies, one mapping each, in order of creation."""
        return self.world.store.records(POSTS)

    def comments_table(self) -> list[dict[str, Any]]:
        """Return all comments, one mapping each, in order of creation."""
        return self.world.store.records(COMMENTS)

    def products_table(self) -> list[dict[str, Any]]:
        """Return all products with their sales, one mapping each."""
        return self.world.store.records(PRODUCTS)

    def groups_table(self) -> list[dict[str, Any]]:
        """Return all chat groups, one mapping each, in order of creation."""
        return self.world.store.records(GROUPS)

    def messages_table(self) -> list[dict[str, Any]]:
        """Return all group messages, one mapping each, in order of writing."""
        return self.world.store.records(MESSAGES)

    def engagement(self) -> dict[int, tuple[int, int]]:
        """Return likes and dislikes of every post by id. Reposts have none; their sources do."""
        likes, dislikes = self.world.posts["likes"].tolist(), self.world.posts["dislikes"].tolist()
        return dict(enumerate(zip(likes, dislikes, strict=True), start=1))

    def thread(self, post_id: int, size: int) -> tuple[int, list[ThreadEntry], int]:
        """Return the thread of a post.

        Args:
            post_id: A post, repost, quote or reply.
            size: Maximum number of replies and comments; the first ones count.

        Returns:
            The post at the top of the thread; its replies and comments, each under its parent; their total number.

        Raises:
            ToolError: If there is no such post.
        """
        source_id = self.world.source_id(post_id)
        root_id = self.world.posts.get("root", source_id - 1) if self.world.kind_of(source_id) == REPLY else source_id
        posts, comments = self.world.posts, self.world.comments
        replies = np.flatnonzero((posts["root"] == root_id) & (posts["kind"] == REPLY))
        remarks = np.flatnonzero(np.isin(comments["post"], [root_id, *(replies + 1).tolist()]))
        count = len(replies) + len(remarks)
        lines = [("reply", row + 1, posts.get("parent", row), posts, row) for row in replies[:size].tolist()]
        lines += [("comment", row + 1, comments.get("post", row), comments, row) for row in remarks[:size].tolist()]
        lines = sorted(lines, key=lambda line: line[3].get("created", line[4]))[:size]
        texts = {kind: self._texts_of(kind, [line[1] for line in lines if line[0] == kind]) for kind in TEXT_TABLES}
        self.world.names.load(columns.get("author", row) for *_, columns, row in lines)
        under: dict[int, list[ThreadEntry]] = {}
        for kind, number, parent_id, columns, row in lines:
            author, *numbers = (columns.get(name, row) for name in ("author", "created", "likes", "dislikes"))
            entry = ThreadEntry(
                kind, number, parent_id, 0, author, self.world.names[author], texts[kind].get(number, ""), *numbers
            )
            under.setdefault(parent_id, []).append(entry)
        return root_id, _in_reading_order(root_id, under), count

    def _texts_of(self, kind: str, ids: Sequence[int]) -> dict[int, str]:
        table = TEXT_TABLES[kind]
        return dict(self.world.store.of_ids(f"SELECT {table}_id, content FROM {table} WHERE {table}_id IN ({{}})", ids))

    def find_posts(self, query: str, size: int) -> list[int]:
        """Search posts by text or id.

        Args:
            query: Text in a post, or its id; empty for the most shared posts.
            size: Maximum number of posts.

        Returns:
            Post ids: the post with that id first, then the most shared, then the most liked; no plain reposts.
        """
        query = UNPRINTABLE.sub("", query).strip()
        if query:
            found = [key for key, *_ in self.world.store.find("post", query)][-MAX_FOUND:]
            rows = np.array(found, dtype=np.int64) - 1
        else:
            rows = np.arange(len(self.world.posts))
        rows = rows[self.world.posts["kind"][rows] != REPOST]
        reach = self.world.posts["shares"][rows].astype(np.int64) * REACH + self.world.posts["likes"][rows]
        if len(rows) > size:
            nearest = np.sort(np.argpartition(-reach, size)[:size])
            rows, reach = rows[nearest], reach[nearest]
        ids = (rows[np.argsort(-reach, kind="stable")] + 1).tolist()
        number = _number(query)
        named = [number] if 0 < number <= len(self.world.posts) else []
        return [*named, *(post_id for post_id in ids if post_id != number)][:size]

    def find_users(self, query: str, size: int) -> list[int]:
        """Search users by name, handle, profile or id.

        Args:
            query: Text, or a user id; empty for all users.
            size: Maximum number of users.

        Returns:
            User ids: the user with that id first, then the others in increasing order.
        """
        query = UNPRINTABLE.sub("", query).strip()
        if not query:
            return np.flatnonzero(self.world.users["is_user"])[:size].tolist()
        number = _number(query)
        named = [number] if number in self.world.names else []
        found = (int(key) for key, *_ in self.world.store.find("user", query) if key != number)
        return [*named, *islice(found, size)][:size]

    def posts_by(self, user_id: int, size: int) -> list[str]:
        """Return a user's latest posts, quotes and replies, newest first.

        Args:
            user_id: The user.
            size: Maximum number of posts.
        """
        ids: list[int] = []
        post_id = self.world.users.get("latest", user_id)
        while post_id and len(ids) < size:
            if self.world.kind_of(post_id) != REPOST:
                ids.append(post_id)
            post_id = self.world.posts.get("previous", post_id - 1)
        texts = self.world.posts_texts(ids)
        return [texts[post_id] for post_id in ids]

    def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return the rows of every table except those in `PASSING`, in canonical order."""
        return {
            table: sorted(self.world.store.rows(f'SELECT * FROM "{table}"'), key=repr)
            for table in TABLES
            if table not in PASSING
        }

    def digest(self) -> str:
        """Return a digest of the state, equal for worlds with equal histories."""
        return hashlib.sha256(canonical_json([self.world.step, self.snapshot()]).encode()).hexdigest()


def _in_reading_order(root_id: int, under: dict[int, list[ThreadEntry]]) -> list[ThreadEntry]:
    """Sort the entries of a thread so each follows its parent.

    Args:
        root_id: The post at the top of the thread.
        under: Id of a post or reply → its replies, in order.
    """
    entries: list[ThreadEntry] = []
    waiting = [(0, entry) for entry in reversed(under.pop(root_id, []))]
    while waiting:
        level, entry = waiting.pop()
        entries.append(replace(entry, level=level))
        if entry.kind == "reply":
            waiting += [(level + 1, other) for other in reversed(under.pop(entry.post_id, []))]
    return entries


def _number(query: str) -> int:
    """Return the number in a query, or 0."""
    return int(query) if query.isascii() and query.isdecimal() and len(query) < 16 else 0
