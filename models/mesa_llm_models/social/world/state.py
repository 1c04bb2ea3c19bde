"""State of a social world, and look-ups shared by its actions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records.frozen import frozen
from mesa_llm.world import RNG, make_rng
from mesa_llm_models.social.world.csr import Columns, FollowMatrix, IntArray, Ragged, Votes, halves
from mesa_llm_models.social.world.post_index import KINDS, QUOTE, REPLY, REPOST, PostIndex, Viewer, Viewers
from mesa_llm_models.social.world.recommenders import Picker, PickOne, pick
from mesa_llm_models.social.world.settings import SocialSettings
from mesa_llm_models.social.world.store import Names, Store

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters, and halves of surrogate pairs, which are invalid in UTF-8."""


MAX_TEXT = 5000
"""Maximum number of characters of a post, reply, comment or quote."""

MAX_UNWRITTEN = 100_000
"""Maximum number of posts with unwritten counts; they are written on reading at the latest."""

NEVER = 2**62
"""Number of reports that no post reaches."""

NoticeKind = Literal["like", "comment_like", "repost", "quote", "reply", "comment", "follow"]


@frozen
class Notice:
    """Another user's action that concerns a user."""

    kind: NoticeKind
    """Kind of action."""

    user_id: int
    """Mesa `unique_id` of the actor."""

    step: int
    """Step of the action."""

    post_id: int = 0
    """Id of the post acted on; 0 for a follow."""

    new_id: int = 0
    """Id of the resulting reply, quote or repost (a post id) or comment (a comment id); 0 for other actions."""

    content: str = ""
    """Text of the result."""


@dataclass(frozen=True, slots=True)
class Ties:
    """The users that one user follows and mutes."""

    followed: IntArray
    """User ids, in order."""

    muted: IntArray
    """User ids, in order."""


class Reader(NamedTuple):
    """A user about to observe, with its feed; valid until the world changes."""

    user_id: int
    """Id of the user."""

    followees: tuple[int, ...]
    """Ids of the users it follows, in increasing order."""

    followed_ids: frozenset[int]
    """The same as a set."""

    muted_ids: frozenset[int]
    """Ids of the users it muted."""

    feed: list[int]
    """Ids of the posts in its feed, best first."""

    followers: int
    """Number of followers."""

    followings: int
    """Number of users it follows."""


NOBODY = Ragged.of([()])
"""One empty list of ids."""


def pair(first: int, second: int) -> int:
    """Return two ids as one number."""
    return first << 32 | second


class SocialState:
    """State of a social world: numbers in columns, texts in tables. Its subclasses add the rules.

    Attributes:
        users: Columns by user id: followers, followings, the latest post, and whether the user exists.
        posts: Columns by row: the post with id n is in row n - 1.
        comments: Columns by row, like those of posts.
        follows: The follows.
        mutes: The mutes.
        votes: Likes and dislikes of posts.
        comment_votes: The same for comments.
        board: Posts and users, as feeds read them.
        counts: Current numbers of users, of posts by kind, and of likes, dislikes, shares and reports.
        max_cascade: Number of users in the largest cascade.
        store: The readable copy, and all texts.
    """

    wording: ClassVar[Any]

    def __init__(
        self,
        settings: SocialSettings,
        *,
        name: str = "social",
        rng: RNG | int | None = None,
        path: str | Path | None = None,
    ) -> None:
        """Create a world without users and posts, in step 0.

        Args:
            settings: Parameters.
            name: Name of the world.
            rng: Random generator, or a seed.
            path: SQLite file to write; None for memory. The file of an earlier run is emptied.

        Raises:
            ConfigError: If the file is not a social world's.
        """
        self.name = name
        self.settings = settings
        self.step = 0
        self.store = Store(path)
        self.store.before_read = self.write_out
        number, flag = np.int32, np.int8
        self.users = Columns(followers=number, followings=number, latest=number, is_user=flag)
        self.posts = Columns(
            kind=flag,
            author=number,
            created=number,
            likes=number,
            dislikes=number,
            shares=number,
            reports=number,
            source=number,
            root=number,
            parent=number,
            viral=flag,
            previous=number,
        )
        self.comments = Columns(post=number, author=number, created=number, likes=number, dislikes=number)
        self.names = Names(self.store, self.users)
        self.follows = FollowMatrix()
        self.mutes: dict[int, set[int]] = {}
        self.votes = Votes()
        self.comment_votes = Votes()
        self.inbox = Inbox(settings.notice_steps)
        self.board = PostIndex(self.posts, self.users, self.follows, self, settings.step_minutes, settings.hide_reports)
        self.searches: list[tuple[int, str, str]] = []
        self._reads: list[tuple[int, str, dict[str, Any]]] = []  # what users have looked at since the last action
        self._rng = make_rng(rng)
        self._feed_seed = self._rng.randint(0, 2**62)
        self._feed = settings.chosen_feed
        self._picker: Picker | PickOne | None = None
        self._readers: dict[int, Reader] = {}  # users about to observe
        self._reposted: set[int] = set()
        self._reported: set[int] = set()
        self._replies: dict[int, list[int]] = {}  # post → replies that may be shown under it
        self._comments: dict[int, list[int]] = {}
        self._sharers: set[int] = set()
        self._cascade_sizes: dict[int, int] = {}
        self.counts: dict[str, int] = dict.fromkeys(("users", *KINDS, "likes", "dislikes", "shares", "reports"), 0)
        self.max_cascade = 0
        self._rated: set[int] = set()  # rows that may have gone viral in this step
        self._unwritten_posts: set[int] = set()
        self._unwritten_comments: set[int] = set()
        self._unwritten_users: set[int] = set()
        self._unwritten_follows: list[tuple[IntArray, int]] = []
        self._undone_follows: list[int] = []  # of these

    @property
    def n_comments(self) -> int:
        """Number of comments so far."""
        return len(self.comments)

    def feeds_changed(self) -> None:
        """Drop the precomputed feeds and their readers."""
        self._readers.clear()

    def posts_changed(self) -> None:
        """Drop the rankings behind the feeds."""
        self._picker = None
        self.feeds_changed()

    def look_changed(self, post_id: int) -> None:
        """Drop the cached view of a post and of the posts that show it; for subclasses with such a cache."""

    def next_step(self) -> None:
        """Advance to the next step, and draw the seeds of its feeds."""
        self.step += 1
        self.board.step = self.step
        self.inbox.end_step(self.step)
        self._feed_seed = self._rng.randint(0, 2**62)
        self.posts_changed()
        if len(self._unwritten_posts) > MAX_UNWRITTEN:
            self.write_counts()
        self.store.end_step()  # writes all pending changes, if there is a file for others to read

    # the readable copy

    def write_counts(self) -> None:
        """Write changed counts to the tables of posts and comments."""
        names = ("likes", "dislikes", "shares", "reports")
        for table, columns, counts, rows in (
            ("post", self.posts, names, self._unwritten_posts),
            ("comment", self.comments, names[:2], self._unwritten_comments),
        ):
            if rows:
                self.store.flush()
                changed = np.array(sorted(rows))
                numbers = [columns[name][changed].tolist() for name in counts]
                sets = ", ".join(f"num_{name} = ?" for name in counts)
                statement = f"UPDATE {table} SET {sets} WHERE {table}_id = ?"
                self.store.write_many(statement, zip(*numbers, (changed + 1).tolist(), strict=True))
                rows.clear()

    def write_out(self) -> None:
        """Write everything that is not in the tables yet."""
        self.store.flush()
        self.store.write_traces()
        self.write_counts()
        for codes, step in self._unwritten_follows:
            if self._undone_follows:
                codes = codes[~np.isin(codes, self._undone_follows)]
            for start in range(0, len(codes), 100_000):
                followers, followees = halves(codes, slice(start, start + 100_000))
                pairs = zip(followers.tolist(), followees.tolist(), strict=True)
                self.store.insert("follow", ((follower, followee, step) for follower, followee in pairs))
        is_any = bool(self._unwritten_follows)
        users = np.flatnonzero(self.users["is_user"]) if is_any else np.array(sorted(self._unwritten_users), np.int64)
        if len(users):
            numbers = [self.users[name][users].tolist() for name in ("followings", "followers")]
            statement = "UPDATE user SET num_followings = ?, num_followers = ? WHERE user_id = ?"
            self.store.write_many(statement, zip(*numbers, users.tolist(), strict=True))
        self._unwritten_follows.clear()
        self._undone_follows.clear()
        self._unwritten_users.clear()

    def posts_texts(self, post_ids: Sequence[int]) -> dict[int, str]:
        """Read the texts of some posts by id."""
        return dict(self.store.of_ids("SELECT post_id, content FROM post WHERE post_id IN ({})", post_ids))

    def texts(self, rows: IntArray) -> list[str]:
        """Read the texts of posts, in row order; empty for reposts."""
        contents = self.posts_texts((np.unique(rows) + 1).tolist())
        return [contents[row + 1] for row in rows.tolist()]

    def profiles(self, user_ids: IntArray) -> list[str]:
        """Read the profiles of users, in the order of their ids."""
        query = "SELECT user_id, bio FROM user WHERE user_id IN ({})"
        bios = dict(self.store.of_ids(query, np.unique(user_ids).tolist()))
        return [bios[user_id] for user_id in user_ids.tolist()]

    def content_of(self, post_id: int) -> str:
        """Return the text of a post; a subclass with the texts at hand need not read it."""
        return self.posts_texts([post_id])[post_id]

    def told(self, agent_id: int, post_id: int) -> str:
        """Name a post where a user's action on it is told: whose it is, and how it begins."""
        source_id = self.source_id(post_id)
        author = self.author_of(source_id)
        name = "" if author == agent_id else self.names.get(author, f"user {author}")
        return self.wording.told_text("post", source_id, name, self.content_of(source_id))

    def comment_told(self, agent_id: int, comment_id: int) -> str:
        """Name a comment where a user's action on it is told: whose it is, and how it begins."""
        query = "SELECT comment_id, content FROM comment WHERE comment_id IN ({})"
        content = dict(self.store.of_ids(query, [comment_id]))[comment_id]
        author = self.comments.get("author", comment_id - 1)
        name = "" if author == agent_id else self.names.get(author, f"user {author}")
        return self.wording.told_text("comment", comment_id, name, content)

    # look-ups

    def is_user(self, user_id: int) -> bool:
        """Check whether a user with this id exists."""
        return user_id in self.names

    def known_users(self, user_ids: Iterable[int]) -> list[int]:
        """Return the ids that belong to users."""
        is_user = self.users["is_user"]
        n_ids = len(is_user)
        return [user_id for user_id in user_ids if 0 < user_id < n_ids and is_user[user_id]]

    def acting(self, agent_id: int) -> int:
        """Check that an agent has an account.

        Raises:
            ConfigError: If it has none.
        """
        if agent_id not in self.names:
            raise ConfigError(f"agent {agent_id} has no account in world {self.name!r}; sign it up first")
        return agent_id

    def other_user(self, agent_id: int, user_id: int, action: str) -> int:
        """Check the id of another user named by an agent.

        Raises:
            ToolError: If there is no such user, or it is the agent itself.
        """
        if user_id not in self.names:
            raise ToolError(self.wording.reason_text("no_user", user_id=user_id))
        if user_id == agent_id:
            raise ToolError(self.wording.reason_text("yourself", user_id=user_id, action=action))
        return user_id

    def post_row(self, post_id: int) -> int:
        """Return the row of a post.

        Raises:
            ToolError: If there is no such post.
        """
        if not 0 < post_id <= len(self.posts):
            raise ToolError(self.wording.reason_text("no_post", post_id=post_id))
        return post_id - 1

    def source_id(self, post_id: int) -> int:
        """Return the post whose content a post has: a repost's source, or the post itself.

        Raises:
            ToolError: If there is no such post.
        """
        return self.posts.get("source", self.post_row(post_id)) + 1

    def root_for(self, parent_id: int, kind: int) -> int:
        """Return the root for a new post that answers or shares another.

        A thread of replies begins at the first post replied to. A cascade of reposts and quotes begins at the first
        post shared, even if that is a reply.
        """
        parent = self.kind_of(parent_id)
        if kind == REPLY:
            return self.posts.get("root", parent_id - 1) if parent == REPLY else parent_id
        return parent_id if parent == REPLY else self.posts.get("root", parent_id - 1)

    def kind_of(self, post_id: int) -> int:
        """Return the index of a post's kind in `KINDS`."""
        return self.posts.get("kind", post_id - 1)

    def author_of(self, post_id: int) -> int:
        """Return the user id of a post's publisher."""
        return self.posts.get("author", post_id - 1)

    def cleaned(self, content: str, name: str, max_characters: int = MAX_TEXT) -> str:
        """Remove characters from a text that cannot be stored or shown.

        Args:
            content: The text.
            name: Kind of text, in one word, for the error.
            max_characters: Maximum number of its characters.

        Raises:
            ToolError: If the result is empty or too long.
        """
        text = UNPRINTABLE.sub("", content).strip()
        if not text:
            raise ToolError(self.wording.reason_text("empty", name=name))
        if len(text) > max_characters:
            raise ToolError(
                self.wording.reason_text("too_long", name=name, characters=len(text), maximum=max_characters)
            )
        return text

    # writes shared by several rules

    def add_post(self, author: int, kind: int, content: str, parent_id: int = 0) -> int:
        """Add a post. Return its id."""
        row, posts = len(self.posts), self.posts
        post_id = row + 1
        root_id = self.root_for(parent_id, kind) if parent_id else post_id
        parent_source = posts.get("source", parent_id - 1) if parent_id else row
        original = parent_source + 1 if kind in (REPOST, QUOTE) else None
        self.store.add(
            *("post", post_id, author, original, content, self.step, 0, 0, 0, 0, KINDS[kind], parent_id or None),
            root_id,
        )
        source = parent_source if kind == REPOST else row
        previous = self.users.get("latest", author)
        posts.append(kind, author, self.step, 0, 0, 0, 0, source, root_id, parent_id, 0, previous)
        self.users.put("latest", author, post_id)
        self.counts[KINDS[kind]] += 1
        self._rated.add(row)
        if kind == REPLY:
            under = self._shown_under(post_id)
            self._replies.setdefault(under, []).append(post_id)
            self.look_changed(under)
        self._join_cascade(root_id, author, kind in (REPOST, QUOTE))
        self.posts_changed()
        return post_id

    def _shown_under(self, reply_id: int) -> int:
        """Return the post that shows a reply: the top of its thread."""
        return self.posts.get("root", reply_id - 1)

    def _join_cascade(self, root_id: int, user_id: int, is_share: bool) -> None:
        """Count a user who joins a cascade by a repost or quote. The root's author already belongs to it."""
        if is_share and user_id != self.author_of(root_id) and pair(root_id, user_id) not in self._sharers:
            self._sharers.add(pair(root_id, user_id))
            self._cascade_sizes[root_id] = self._cascade_sizes.get(root_id, 1) + 1
        self.max_cascade = max(self.max_cascade, self._cascade_sizes.get(root_id, 1))

    def count_on_post(self, post_id: int, column: str, change: int) -> None:
        """Add to a counter of a post: likes, dislikes, shares or reports."""
        row = post_id - 1
        self.posts.add(column, row, change)
        self.counts[column] += change
        self._rated.add(row)
        self._unwritten_posts.add(row)
        self.board.touch(row)
        self.look_changed(post_id)
        if self.kind_of(post_id) == REPLY:
            self.look_changed(self._shown_under(post_id))
        self.posts_changed()

    def count_on_comment(self, comment_id: int, column: str, change: int) -> None:
        """Add to a counter of a comment: likes or dislikes."""
        self.comments.add(column, comment_id - 1, change)
        self._unwritten_comments.add(comment_id - 1)
        self.look_changed(self.comments.get("post", comment_id - 1))

    def trace(self, user_id: int, action: str, **info: object) -> None:
        """Record an action of a user, for the table of traces."""
        if self._reads:
            self.write_reads()
        self.store.trace(user_id, self.step, action, info)

    def trace_read(self, user_id: int, action: str, **info: Any) -> None:
        """Record what a user looks at, for the table of traces, until the next action."""
        self._reads.append((user_id, action, info))

    def write_reads(self) -> None:
        """Move what users have looked at to the traces, sorted by user, since the order of arrival may vary."""
        for user_id, action, info in sorted(self._reads, key=lambda read: read[0]):
            self.store.trace(user_id, self.step, action, info)
        self._reads.clear()

    # feeds

    def ties(self, user_id: int) -> Ties:
        """Return the users whom a user follows and mutes."""
        return Ties(self.follows.of(user_id), self._muted_by(user_id))

    def _muted_by(self, user_id: int) -> IntArray:
        return np.array(sorted(self.mutes.get(user_id, ())), dtype=np.int64)

    @property
    def max_reports(self) -> int:
        """Number of reports at which a post is hidden."""
        return self.settings.hide_reports or NEVER

    def viewer(self, user_id: int) -> Viewer:
        """Return a user as a viewer of feeds.

        Raises:
            ConfigError: If the user has no account.
        """
        ties = self.ties(self.acting(user_id))
        return Viewer(user_id, ties.followed, ties.muted, self._feed_seed + user_id, len(self.users))

    def viewers(self, user_ids: Sequence[int]) -> Viewers:
        """Return users as viewers of feeds, in a batch.

        Raises:
            ConfigError: If one has no account.
        """
        if len(self.known_users(user_ids)) < len(user_ids):
            for user_id in user_ids:
                self.acting(user_id)
        ids = np.array(user_ids, dtype=np.int64)
        muted = NOBODY.at(np.zeros(len(ids), dtype=np.int64))
        if not self.mutes.keys().isdisjoint(user_ids):
            muted = Ragged.of([sorted(self.mutes.get(user_id, ())) for user_id in user_ids])
        seeds = [self._feed_seed + user_id for user_id in user_ids]
        return Viewers(ids, self.follows.of_many(ids), muted, seeds, len(self.users))

    def feeds(self, viewers: Viewers, size: int | None = None) -> list[list[int]]:
        """Return the feeds of viewers, best post first, picked for all at once.

        Args:
            viewers: The viewers.
            size: Maximum number of posts for each; None for the settings' value.
        """
        if not len(viewers):
            return []
        if self._picker is None:
            self._picker = self._feed.rank(self.board)
        rows = pick(self._picker, viewers, self.settings.feed_size if size is None else size)
        post_ids, bounds = (rows.values + 1).tolist(), rows.bounds.tolist()
        return [post_ids[bounds[index] : bounds[index + 1]] for index in range(len(viewers))]

    def readers(self, user_ids: Sequence[int]) -> list[Reader]:
        """Return users with their feeds, picked for all at once.

        Raises:
            ConfigError: If one has no account.
        """
        viewers = self.viewers(user_ids)
        ids, bounds = viewers.followed.values.tolist(), viewers.followed.bounds.tolist()
        followees = [tuple(ids[start:end]) for start, end in pairwise(bounds)]
        users = viewers.ids.tolist()
        muted = [frozenset(self.mutes.get(user_id, ())) for user_id in users]
        counts = (self.users[name][viewers.ids].tolist() for name in ("followers", "followings"))
        return list(map(Reader, users, followees, map(frozenset, followees), muted, self.feeds(viewers), *counts))

    def reader(self, user_id: int) -> Reader:
        """Return a user with its feed.

        Raises:
            ConfigError: If it has no account.
        """
        return self._readers.get(user_id) or self.readers([user_id])[0]

    def feed(self, user_id: int, size: int | None = None) -> list[int]:
        """Return a user's feed, best post first. It is the same at every call in a step.

        Args:
            user_id: Id of the user.
            size: Maximum number of posts; None for the settings' value.

        Raises:
            ConfigError: If the user has no account.
        """
        if size is None and user_id in self._readers:
            return self._readers[user_id].feed
        return self.feeds(self.viewers([user_id]), size)[0]

    def notify_author(self, post_id: int, kind: NoticeKind, by: int, new_id: int = 0, content: str = "") -> None:
        """Send a post's author a notice of an action on it."""
        self.inbox.add(self.author_of(post_id), Notice(kind, by, self.step, post_id, new_id, content))


class Inbox:
    """Recent notices by user, kept for a few steps."""

    def __init__(self, keep_steps: int) -> None:
        """Create an empty inbox.

        Args:
            keep_steps: Number of steps to keep notices after the step of the action.
        """
        self._keep_steps = keep_steps
        self._notices: dict[int, list[Notice]] = {}

    def add(self, user_id: int, notice: Notice) -> None:
        """Store a notice for a user, unless it is about the user's own action."""
        if user_id != notice.user_id:
            self._notices.setdefault(user_id, []).append(notice)

    def take_back(self, user_id: int, kind: NoticeKind, by: int, post_id: int = 0, new_id: int = 0) -> None:
        """Remove the notice of an undone action."""
        remaining = [
            notice
            for notice in self._notices.get(user_id, [])
            if (notice.kind, notice.user_id, notice.post_id, notice.new_id) != (kind, by, post_id, new_id)
        ]
        if user_id in self._notices:
            self._notices[user_id] = remaining

    def of(self, user_id: int) -> tuple[Notice, ...]:
        """Return a user's notices, oldest first."""
        return tuple(self._notices.get(user_id, ()))

    def end_step(self, step: int) -> None:
        """Remove notices that are too old for the next step."""
        oldest = step - self._keep_steps
        recent: dict[int, list[Notice]] = {}
        for user_id, notices in self._notices.items():
            if remaining := [notice for notice in notices if notice.step >= oldest]:
                recent[user_id] = remaining
        self._notices = recent
