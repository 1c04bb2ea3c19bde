"""State of a social world, and the look-ups that its actions share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.world import RNG, make_rng
from mesa_llm.worlds.social.recommenders import KINDS, REPLY, REPOST, Board, IntArray, Picker, Viewer
from mesa_llm.worlds.social.settings import SocialSettings
from mesa_llm.worlds.social.store import Store

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters, and halves of surrogate pairs, which no UTF-8 text can hold."""


NEVER = 2**62
"""A number of reports that no post reaches."""

NoticeKind = Literal["like", "comment_like", "repost", "quote", "reply", "comment", "follow"]


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that somebody did to a user."""

    kind: NoticeKind
    """Kind of action."""

    user_id: int
    """Mesa `unique_id` of the author."""

    step: int
    """Step in which it was done."""

    post_id: int = 0
    """The post it was done to, or under; 0 for a follow."""

    new_id: int = 0
    """The reply, quote or repost (a post id), or the comment (a comment id), that came of it; else 0."""

    content: str = ""
    """Text of it."""


@dataclass(frozen=True, slots=True)
class Ties:
    """Whom one user follows and mutes."""

    followed: IntArray
    """User ids, in order."""

    muted: IntArray
    """User ids, in order."""


class SocialState:
    """State of a social world; the classes that act on it add the rules."""

    def __init__(
        self,
        settings: SocialSettings,
        *,
        name: str = "social",
        rng: RNG | int | None = None,
        path: str | Path | None = None,
    ) -> None:
        """Start without users and posts, in step 0.

        Args:
            settings: Parameters.
            name: Name of the world.
            rng: Source of random draws, or a seed.
            path: SQLite file to write; None: in memory. The file of an earlier run is emptied.

        Raises:
            ConfigError: If the file holds something else.
        """
        self.name = name
        self.settings = settings
        self.step = 0
        self.store = Store(path)
        self.names: dict[int, str] = {}
        self.users = Columns("followers", "followings")
        self.posts = Columns(
            "kind", "author", "created", "likes", "dislikes", "shares", "reports", "source", "root", "viral"
        )
        self.n_comments = 0
        self.inbox = Inbox(settings.notice_steps)
        self._rng = make_rng(rng)
        self._feed_seed = self._rng.randint(0, 2**62)
        self._feed = settings.chosen_feed
        self._picker: Picker | None = None
        self.searches: list[tuple[int, str, str]] = []
        self._ties: dict[int, Ties] = {}

    @property
    def is_original(self) -> bool:
        """Whether the defects of the original are repeated."""
        return self.settings.rules == "original"

    def posts_changed(self) -> None:
        """Forget what was computed from the posts."""
        self._picker = None
        self.words_changed()

    def words_changed(self) -> None:
        """Forget how posts look; for who keeps that."""

    def ties_changed(self, user_id: int) -> None:
        """Forget whom a user follows and mutes."""
        self._ties.pop(user_id, None)

    def next_step(self) -> None:
        """Move time on, and draw anew what feeds will draw from."""
        self.step += 1
        self.inbox.end_step(self.step)
        self._feed_seed = self._rng.randint(0, 2**62)
        self.posts_changed()
        self.store.end_step()

    # look-ups

    def acting(self, agent_id: int) -> int:
        """Check that an agent has an account.

        Raises:
            ConfigError: If it has none.
        """
        if agent_id not in self.names:
            raise ConfigError(f"agent {agent_id} has no account in world {self.name!r}; sign it up first")
        return agent_id

    def other_user(self, agent_id: int, user_id: int, action: str) -> int:
        """Check the id of another user that an agent named.

        Raises:
            ToolError: If there is no such user, or it is the agent itself.
        """
        if user_id not in self.names:
            raise ToolError(f"There is no user {user_id}; use the number shown after a name.")
        if user_id == agent_id:
            raise ToolError(f"User {user_id} is you; you cannot {action} yourself.")
        return user_id

    def post_row(self, post_id: int) -> int:
        """Return the row of a post.

        Raises:
            ToolError: If there is no such post.
        """
        if not 0 < post_id <= len(self.posts):
            raise ToolError(f"There is no post {post_id}; use the number of a post you were shown.")
        return post_id - 1

    def source_id(self, post_id: int) -> int:
        """Return the post whose content a post carries: of a repost its source, of any other the post itself.

        Raises:
            ToolError: If there is no such post.
        """
        return self.posts.get("source", self.post_row(post_id)) + 1

    def root_for(self, parent_id: int, kind: int) -> int:
        """Return the root of what is to be made of a post.

        A thread of replies begins at the post that was replied to first. A cascade of reposts and quotes
        begins at the post that was shared first, also when that is a reply.
        """
        parent = self.kind_of(parent_id)
        if kind == REPLY:
            return self.posts.get("root", parent_id - 1) if parent == REPLY else parent_id
        return parent_id if parent == REPLY else self.posts.get("root", parent_id - 1)

    def kind_of(self, post_id: int) -> int:
        """Return the number of a post's kind, see `KINDS`."""
        return self.posts.get("kind", post_id - 1)

    def author_of(self, post_id: int) -> int:
        """Return who published a post."""
        return self.posts.get("author", post_id - 1)

    # writes that several rules share

    def add_post(self, author: int, kind: int, content: str, parent_id: int = 0) -> int:
        """Add a post; return its id."""
        post_id = len(self.posts) + 1
        root_id = self.root_for(parent_id, kind) if parent_id else post_id
        source = self.posts.get("source", parent_id - 1) if kind == REPOST else post_id - 1
        self.store.write(
            "INSERT INTO post (post_id, user_id, kind, parent_id, source_id, root_id, content, step)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(post_id, author, KINDS[kind], parent_id or None, source + 1, root_id, content, self.step),
        )
        self.posts.append(kind, author, self.step, 0, 0, 0, 0, source, root_id, 0)
        self.posts_changed()
        return post_id

    def count_on_post(self, post_id: int, column: str, change: int) -> None:
        """Add to a counter of a post: likes, dislikes, shares or reports."""
        self.posts.add(column, post_id - 1, change)
        self.store.write(f"UPDATE post SET {column} = {column} + ? WHERE post_id = ?", change, post_id)
        self.posts_changed()

    def cleaned(self, content: str, name: str) -> str:
        """Return text without what cannot be stored or shown.

        Raises:
            ToolError: If nothing is left of it.
        """
        if self.is_original:
            return content
        text = UNPRINTABLE.sub("", content).strip()
        if not text:
            raise ToolError(f"The {name} is empty; write some words.")
        return text

    # who sees what

    def ties(self, user_id: int) -> Ties:
        """Return whom a user follows and mutes."""
        cached = self._ties.get(user_id)
        if cached is None:
            followed = self.store.rows("SELECT followee_id FROM follow WHERE follower_id = ?", user_id)
            muted = self.store.rows("SELECT mutee_id FROM mute WHERE muter_id = ?", user_id)
            cached = Ties(*(np.array(rows, dtype=np.int64).ravel() for rows in (followed, muted)))
            self._ties[user_id] = cached
        return cached

    def board(self) -> Board:
        """Return the posts as feeds read them."""
        posts = self.posts
        return Board(
            kind=posts["kind"],
            author=posts["author"],
            created=posts["created"],
            likes=posts["likes"],
            dislikes=posts["dislikes"],
            shares=posts["shares"],
            source=posts["source"],
            step=self.step,
            step_minutes=self.settings.step_minutes,
            is_hidden=posts["reports"] >= self.max_reports if self.settings.hide_reports else None,
        )

    @property
    def max_reports(self) -> int:
        """Number of reports from which on a post is shown to nobody."""
        return self.settings.hide_reports or NEVER

    def viewer(self, user_id: int) -> Viewer:
        """Return a user as feeds see it.

        Raises:
            ConfigError: If the user has no account.
        """
        ties = self.ties(self.acting(user_id))
        follows = np.zeros(len(self.users), dtype=np.bool_)
        follows[ties.followed[ties.followed < len(follows)]] = True
        hidden = None
        if len(ties.muted):
            hidden = np.zeros(len(self.users), dtype=np.bool_)
            hidden[ties.muted] = True
        return Viewer(user_id, follows, hidden, self._feed_seed + user_id)

    def feed(self, viewer: Viewer | int, size: int | None = None) -> list[int]:
        """Return the posts that a user is shown, best first; the same at every call in a step.

        Args:
            viewer: Who looks.
            size: Maximum number of posts; None: as the settings say.

        Raises:
            ConfigError: If the user has no account.
        """
        if isinstance(viewer, int):
            viewer = self.viewer(viewer)
        if self._picker is None:
            self._picker = self._feed.rank(self.board())
        return (self._picker(viewer, self.settings.feed_size if size is None else size) + 1).tolist()

    def notify_author(self, post_id: int, kind: NoticeKind, by: int, new_id: int = 0, content: str = "") -> None:
        """Send the author of a post news of what was done to it."""
        self.inbox.add(self.author_of(post_id), Notice(kind, by, self.step, post_id, new_id, content))


class Inbox:
    """Keeps recent news by user; it is read once, so only the last steps are kept."""

    def __init__(self, keep_steps: int) -> None:
        """Start empty.

        Args:
            keep_steps: For how many steps, beyond the one it happened in, news is kept.
        """
        self._keep_steps = keep_steps
        self._notices: dict[int, list[Notice]] = {}

    def add(self, user_id: int, notice: Notice) -> None:
        """Keep news for a user; what it did to itself is no news."""
        if user_id != notice.user_id:
            self._notices.setdefault(user_id, []).append(notice)

    def take_back(self, user_id: int, kind: NoticeKind, by: int, post_id: int = 0, new_id: int = 0) -> None:
        """Forget news of something that was undone."""
        remaining = [
            notice
            for notice in self._notices.get(user_id, [])
            if (notice.kind, notice.user_id, notice.post_id, notice.new_id) != (kind, by, post_id, new_id)
        ]
        if user_id in self._notices:
            self._notices[user_id] = remaining

    def of(self, user_id: int) -> tuple[Notice, ...]:
        """Return a user's news, oldest first."""
        return tuple(self._notices.get(user_id, ()))

    def end_step(self, step: int) -> None:
        """Forget what is too old in the step that begins."""
        oldest = step - self._keep_steps
        recent: dict[int, list[Notice]] = {}
        for user_id, notices in self._notices.items():
            if remaining := [notice for notice in notices if notice.step >= oldest]:
                recent[user_id] = remaining
        self._notices = recent


class Columns:
    """Integer columns of equal length that grow at the end."""

    def __init__(self, *names: str, capacity: int = 1024) -> None:
        """Make empty columns of these names."""
        self._index = {name: index for index, name in enumerate(names)}
        self._block = np.zeros((len(names), capacity), dtype=np.int64)
        self._length = 0

    def __len__(self) -> int:
        """Count the rows."""
        return self._length

    def __getitem__(self, name: str) -> IntArray:
        """Return a column, shape `(rows,)`; writing to it writes to the columns."""
        return self._block[self._index[name], : self._length]

    def append(self, *values: int) -> int:
        """Add a row, its values in the order of the columns; return its number."""
        row = self._length
        self.grow(row + 1)
        self._block[:, row] = values
        return row

    def grow(self, length: int) -> None:
        """Make the columns at least this long; new rows hold zeros."""
        if length > self._block.shape[1]:
            larger = np.zeros((len(self._index), max(length, 2 * self._block.shape[1])), dtype=np.int64)
            larger[:, : self._length] = self._block[:, : self._length]
            self._block = larger
        self._length = max(self._length, length)

    def get(self, name: str, row: int) -> int:
        """Return one number."""
        return int(self._block[self._index[name], row])

    def add(self, name: str, row: int, change: int) -> None:
        """Add to one number."""
        self._block[self._index[name], row] += change
