"""What a social world holds, and the look-ups that its actions share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.world import Draws, draws
from mesa_llm.worlds.social.columns import Columns, IntArray
from mesa_llm.worlds.social.feeds import KINDS, REPLY, REPOST, Board, Picker, Viewer
from mesa_llm.worlds.social.inbox import Inbox, Notice, NoticeKind
from mesa_llm.worlds.social.seen import PostSeen
from mesa_llm.worlds.social.settings import SocialSettings
from mesa_llm.worlds.social.store import Store

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters, and halves of surrogate pairs, which no UTF-8 text can hold."""


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
        rng: Draws | int | None = None,
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
        self._draws = draws(rng) if rng is None or isinstance(rng, int) else rng
        self._feed_seed = self._draws.randint(0, 2**62)
        self._feed = settings.chosen_feed
        self._picker: Picker | None = None
        self.shown: dict[int, PostSeen] = {}
        self.texts: dict[tuple[int, bool, bool, int], str] = {}
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
        """Forget how posts look."""
        self.shown.clear()
        self.texts.clear()

    def ties_changed(self, user_id: int) -> None:
        """Forget whom a user follows and mutes."""
        self._ties.pop(user_id, None)

    def next_step(self) -> None:
        """Move time on, and draw anew what feeds will draw from."""
        self.step += 1
        self.inbox.end_step(self.step)
        self._feed_seed = self._draws.randint(0, 2**62)
        self.posts_changed()
        self.store.end_step()

    # look-ups

    def acting(self, actor: int) -> int:
        """Check that an agent has an account.

        Raises:
            ConfigError: If it has none.
        """
        if actor not in self.names:
            raise ConfigError(f"agent {actor} has no account in world {self.name!r}; sign it up first")
        return actor

    def other_user(self, actor: int, user_id: int, what: str) -> int:
        """Check a user id that an agent gave for someone else.

        Raises:
            ToolError: If there is no such user, or it is the agent itself.
        """
        if user_id not in self.names:
            raise ToolError(f"There is no user {user_id}; use the number shown after a name.")
        if user_id == actor:
            raise ToolError(f"User {user_id} is you; you cannot {what} yourself.")
        return user_id

    def post_row(self, post_id: int) -> int:
        """Give the row of a post.

        Raises:
            ToolError: If there is no such post.
        """
        if not 0 < post_id <= len(self.posts):
            raise ToolError(f"There is no post {post_id}; use the number of a post you were shown.")
        return post_id - 1

    def source_id(self, post_id: int) -> int:
        """Give the post whose content a post carries: of a repost its source, of any other the post itself.

        Raises:
            ToolError: If there is no such post.
        """
        return self.posts.get("source", self.post_row(post_id)) + 1

    def root_for(self, parent_id: int, kind: int) -> int:
        """Give the root of what is to be made of a post.

        A thread of replies begins at the post that was replied to first. A cascade of reposts and quotes
        begins at the post that was shared first, also when that is a reply.
        """
        parent = self.kind_of(parent_id)
        if kind == REPLY:
            return self.posts.get("root", parent_id - 1) if parent == REPLY else parent_id
        return parent_id if parent == REPLY else self.posts.get("root", parent_id - 1)

    def kind_of(self, post_id: int) -> int:
        """Give the number of a post's kind, see `KINDS`."""
        return self.posts.get("kind", post_id - 1)

    def author_of(self, post_id: int) -> int:
        """Give who published a post."""
        return self.posts.get("author", post_id - 1)

    # writes that several rules share

    def add_post(self, author: int, kind: int, content: str, parent_id: int = 0) -> int:
        """Add a post; give its id."""
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

    def cleaned(self, content: str, what: str) -> str:
        """Give text without what cannot be stored or shown.

        Raises:
            ToolError: If nothing is left of it.
        """
        if self.is_original:
            return content
        text = UNPRINTABLE.sub("", content).strip()
        if not text:
            raise ToolError(f"The {what} is empty; write some words.")
        return text

    # who sees what

    def ties(self, user_id: int) -> Ties:
        """Give whom a user follows and mutes."""
        known = self._ties.get(user_id)
        if known is None:
            followed = self.store.rows("SELECT followee_id FROM follow WHERE follower_id = ?", user_id)
            muted = self.store.rows("SELECT mutee_id FROM mute WHERE muter_id = ?", user_id)
            known = Ties(*(np.array(rows, dtype=np.int64).ravel() for rows in (followed, muted)))
            self._ties[user_id] = known
        return known

    def board(self) -> Board:
        """Give the posts as feeds read them."""
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
        )

    def viewer(self, user_id: int) -> Viewer:
        """Give a user as feeds see it.

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
        """Give the posts that a user is shown, best first; the same as often as it is asked in a step.

        Args:
            viewer: Who looks.
            size: Most posts; None: as many as the settings say.

        Raises:
            ConfigError: If the user has no account.
        """
        if isinstance(viewer, int):
            viewer = self.viewer(viewer)
        if self._picker is None:
            self._picker = self._feed.rank(self.board())
        return (self._picker(viewer, self.settings.feed_size if size is None else size) + 1).tolist()

    def tell_author(self, post_id: int, kind: NoticeKind, by: int, new_id: int = 0, content: str = "") -> None:
        """Tell the author of a post what was done to it."""
        self.inbox.tell(self.author_of(post_id), Notice(kind, by, self.step, post_id, new_id, content))
