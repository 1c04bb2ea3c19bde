"""A social world written as OASIS writes its SQLite database, for the scripts that read one.

OASIS's tables follow from the actions of the users, in their order. So the world's traces are gone through once more,
by OASIS's rules: what an id counts, which post a share belongs to, and what a feed showed at the time.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm_models.social.world.recommenders import HotFeed
from mesa_llm_models.social.world.store import require_replaceable
from mesa_llm_models.social.world.world import SocialWorld

APPLICATION_ID = 0x0A515
"""Marks a database file as written here, so that it may be replaced."""

_KEY = "INTEGER PRIMARY KEY AUTOINCREMENT"

TABLES: dict[str, str] = {
    "user": f"user_id {_KEY}, agent_id INTEGER, user_name TEXT, name TEXT, bio TEXT, created_at DATETIME, "
    "num_followings INTEGER DEFAULT 0, num_followers INTEGER DEFAULT 0",
    "post": f"post_id {_KEY}, user_id INTEGER, original_post_id INTEGER, content TEXT DEFAULT '', quote_content TEXT, "
    "created_at DATETIME, num_likes INTEGER DEFAULT 0, num_dislikes INTEGER DEFAULT 0, num_shares INTEGER DEFAULT 0, "
    "num_reports INTEGER DEFAULT 0",
    "comment": f"comment_id {_KEY}, post_id INTEGER, user_id INTEGER, content TEXT, created_at DATETIME, "
    "num_likes INTEGER DEFAULT 0, num_dislikes INTEGER DEFAULT 0",
    "like": f"like_id {_KEY}, user_id INTEGER, post_id INTEGER, created_at DATETIME",
    "dislike": f"dislike_id {_KEY}, user_id INTEGER, post_id INTEGER, created_at DATETIME",
    "comment_like": f"comment_like_id {_KEY}, user_id INTEGER, comment_id INTEGER, created_at DATETIME",
    "comment_dislike": f"comment_dislike_id {_KEY}, user_id INTEGER, comment_id INTEGER, created_at DATETIME",
    "follow": f"follow_id {_KEY}, follower_id INTEGER, followee_id INTEGER, created_at DATETIME",
    "mute": f"mute_id {_KEY}, muter_id INTEGER, mutee_id INTEGER, created_at DATETIME",
    "report": f"report_id {_KEY}, user_id INTEGER, post_id INTEGER, report_reason TEXT, created_at DATETIME",
    "trace": "user_id INTEGER, created_at DATETIME, action TEXT, info TEXT, "
    "PRIMARY KEY (user_id, created_at, action, info)",
    "rec": "user_id INTEGER, post_id INTEGER, PRIMARY KEY (user_id, post_id)",
    "product": "product_id INTEGER PRIMARY KEY, product_name TEXT, sales INTEGER DEFAULT 0",
    "chat_group": f"group_id {_KEY}, name TEXT NOT NULL, created_at DATETIME",
    "group_members": "group_id INTEGER NOT NULL, agent_id INTEGER NOT NULL, joined_at DATETIME, "
    "PRIMARY KEY (group_id, agent_id)",
    "group_messages": f"message_id {_KEY}, group_id INTEGER NOT NULL, sender_id INTEGER NOT NULL, "
    "content TEXT NOT NULL, sent_at DATETIME",
}
"""Columns of OASIS's sixteen tables (camel-oasis 0.2.5)."""

VOTES = {
    "like_post": "like",
    "dislike_post": "dislike",
    "like_comment": "comment_like",
    "dislike_comment": "comment_dislike",
}
"""Action → table of the votes it adds."""

UNDONE_VOTES = {
    "unlike_post": "like",
    "undo_dislike_post": "dislike",
    "unlike_comment": "comment_like",
    "undo_dislike_comment": "comment_dislike",
}
"""Action → table of the votes it removes."""

Row = tuple[Any, ...]
Info = dict[str, Any]


def write_oasis_database(world: SocialWorld, path: str | Path, start: datetime | None = None) -> None:
    """Write the state and the actions of a world so far as OASIS's database.

    Users are numbered from 0. Replies, which OASIS does not have, are posts of their own. `rec` has the posts of the
    last feeds instead of the whole list from which they were drawn, and a post's reports are those of the post whose
    text it has.

    Args:
        world: The world.
        path: SQLite file; an earlier one of this kind is replaced.
        start: Time of step 0, for times on a clock, as OASIS's Reddit has them; None: the start of the hot feed, and
            with other feeds step numbers, as OASIS's X has them.

    Raises:
        ConfigError: If the file exists and is something else, or cannot be written.
    """
    target = Path(path)
    if target.exists():
        _require_replaceable(target)
    feed = world.settings.chosen_feed
    if start is None and isinstance(feed, HotFeed):
        start = datetime.fromtimestamp(feed.start_s, UTC).replace(tzinfo=None)
    ledger = _Ledger(world, start)
    try:
        with TemporaryDirectory(dir=target.parent) as folder:
            new = Path(folder, target.name)
            with closing(sqlite3.connect(new)) as connection, connection:
                _write(connection, ledger)
            os.replace(new, target)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{target} cannot be written ({error}); choose another path") from error


def _require_replaceable(path: Path) -> None:
    try:
        with closing(sqlite3.connect(path)) as connection:
            require_replaceable(connection, APPLICATION_ID, path, "OASIS's database")
    except sqlite3.Error as error:
        raise ConfigError(f"{path} cannot be opened as a database ({error}); choose another path") from error


def _write(connection: sqlite3.Connection, ledger: _Ledger) -> None:
    """Create and fill the tables."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for table, columns in TABLES.items():
        connection.execute(f'CREATE TABLE "{table}" ({columns})')
    for table, rows in ledger.tables():
        n_columns = len(connection.execute(f'PRAGMA table_info("{table}")').fetchall())
        # what a user repeats within a step is one row of OASIS's trace
        insert = f'INSERT OR IGNORE INTO "{table}" VALUES ({", ".join("?" * n_columns)})'
        connection.executemany(insert, rows)


@dataclass(slots=True)
class _Post:
    """A post, as OASIS stores it."""

    author: int
    original: int | None
    content: str
    quotation: str | None
    step: int
    likes: int = 0
    dislikes: int = 0
    shares: int = 0
    reports: int = 0
    comments: list[int] = field(default_factory=list[int])

    @property
    def is_repost(self) -> bool:
        """Whether it is a repost: of another post, and without words of its own."""
        return self.original is not None and self.quotation is None


@dataclass(slots=True)
class _Comment:
    """A comment, as OASIS stores it."""

    post: int
    author: int
    content: str
    step: int
    likes: int = 0
    dislikes: int = 0


class _Ties:
    """A table with a row for each pair of ids, numbered in order of insertion."""

    def __init__(self) -> None:
        """Begin without rows."""
        self.rows: dict[int, Row] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._last = 0

    def add(self, first: int, second: int, *rest: Any) -> int:
        """Add a row, and return its number."""
        self._last += 1
        self._numbers[first, second] = self._last
        self.rows[self._last] = (first, second, *rest)
        return self._last

    def remove(self, first: int, second: int) -> int:
        """Remove a row, and return its number; 0 if there is none."""
        number = self._numbers.pop((first, second), 0)
        self.rows.pop(number, None)
        return number


class _Ledger:
    """OASIS's tables, built up action by action."""

    def __init__(self, world: SocialWorld, start: datetime | None) -> None:
        """Go through the traces of a world."""
        self._world, self._start = world, start
        self._users: dict[int, list[Any]] = {}
        self._posts: dict[int, _Post] = {}
        self._comments: dict[int, _Comment] = {}
        self._ties: defaultdict[str, _Ties] = defaultdict(_Ties)
        self._traces: list[Row] = []
        self._n_messages = 0
        self._post_of = dict(world.store.rows("SELECT comment_id, post_id FROM comment"))
        self._read()

    def _time(self, step: int) -> Any:
        """Return a step as OASIS writes it: a number, or a time on a clock."""
        if self._start is None:
            return step
        return str(self._start + timedelta(minutes=step * self._world.settings.step_minutes))

    def _read(self) -> None:
        rows = self._world.store.rows
        query = "SELECT created_at, user_id, user_name, name, bio FROM user ORDER BY created_at, user_id"
        sign_ups = _UpTo(rows(query))
        follows = _UpTo(self._bulk_follows())
        for user, step, action, info in rows("SELECT user_id, created_at, action, info FROM trace ORDER BY rowid"):
            self._enter(sign_ups.take(step), follows.take(step))
            self._apply(user, step, action, json.loads(info))
        self._enter(sign_ups.take(self._world.step), follows.take(self._world.step))

    def _bulk_follows(self) -> list[Row]:
        """Return the follows that no action has made, by step; step 0 for those that an action has ended."""
        query = "SELECT user_id, action, info FROM trace WHERE action IN ('follow', 'unfollow') ORDER BY rowid"
        first: dict[Row, str] = {}
        for user, action, info in self._world.store.rows(query):
            first.setdefault((user, json.loads(info)["followee_id"]), action)
        rows = self._world.store.rows("SELECT created_at, follower_id, followee_id FROM follow")
        ended = [(0, *pair) for pair, action in first.items() if action == "unfollow"]
        return sorted([*ended, *(row for row in rows if row[1:] not in first)])

    def _enter(self, sign_ups: Sequence[Row], follows: Sequence[Row]) -> None:
        """Add users, and follows that no user's action has made."""
        for step, user, user_name, name, bio in sign_ups:
            self._users[user] = [user - 1, user - 1, user_name, name, bio, self._time(step), 0, 0]
            self._trace(user, step, "sign_up", {"name": name, "user_name": user_name, "bio": bio})
        for step, follower, followee in follows:
            self._follow(follower, followee, step)

    def _trace(self, user: int, step: int, action: str, info: Info) -> None:
        self._traces.append((user - 1, self._time(step), action, json.dumps(info)))

    def _apply(self, user: int, step: int, action: str, info: Info) -> None:
        """Carry out one action, and trace it with what OASIS writes of it."""
        if action in ("vote", "reply"):
            action, info = _as_oasis_action(action, info)
        match action:
            case "refresh" | "trend":
                info = {"posts": [self._view(post_id) for post_id in sorted(set(info["posts"]))]}
            case "create_post":
                self._posts[info["post_id"]] = _Post(user, None, info["content"], None, step)
            case "repost":
                shared = self._shared(info["reposted_id"])
                self._posts[shared].shares += 1
                if "new_post_id" in info:
                    self._posts[info["new_post_id"]] = _Post(user, shared, "", None, step)
            case "quote_post":
                quoted = info["quoted_id"]
                root = self._posts[quoted].original or quoted
                content, quotation = self._posts[root].content, info.pop("quote_content")
                self._posts[root].shares += 1
                self._posts[info["new_post_id"]] = _Post(user, root, content, quotation, step)
            case "create_comment":
                comment_id, content = info["comment_id"], info["content"]
                post_id = self._post_of[comment_id]
                self._comments[comment_id] = _Comment(post_id, user, content, step)
                self._posts[post_id].comments.append(comment_id)
            case "follow":
                info = {"follow_id": self._follow(user, info["followee_id"], step)}
            case "unfollow":
                self._ties["follow"].remove(user, info["followee_id"])
                self._count_follow(user, info["followee_id"], -1)
                info = {"followee_id": info["followee_id"] - 1}
            case "mute":
                self._ties["mute"].add(user, info["mutee_id"], self._time(step))
                info = {"mutee_id": info["mutee_id"] - 1}
            case "unmute":
                self._ties["mute"].remove(user, info["mutee_id"])
                info = {"mutee_id": info["mutee_id"] - 1}
            case "report_post":
                post_id = info["post_id"]
                self._posts[post_id].reports += 1
                number = self._ties["report"].add(user, post_id, info["report_reason"], self._time(step))
                info = {"post_id": post_id, "report_id": number}
            case "send_to_group":
                self._n_messages += 1
                info = {"group_id": info["group_id"], "message_id": self._n_messages, "content": info["content"]}
            case "interview":
                info = {**info, "interview_id": f"{self._time(step)}_{user - 1}"}
            case _ if action in VOTES or action in UNDONE_VOTES:
                info = self._vote(user, step, action, info)
            case _:
                pass
        self._trace(user, step, action, info)

    def _shared(self, post_id: int) -> int:
        """Return the post that a share of a post counts for: a repost's original."""
        post = self._posts[post_id]
        return post.original if post.is_repost and post.original is not None else post_id

    def _follow(self, follower: int, followee: int, step: int) -> int:
        self._count_follow(follower, followee, 1)
        return self._ties["follow"].add(follower, followee, self._time(step))

    def _count_follow(self, follower: int, followee: int, change: int) -> None:
        self._users[follower][-2] += change
        if followee in self._users:  # under the original rules it may not exist
            self._users[followee][-1] += change

    def _vote(self, user: int, step: int, action: str, info: Info) -> Info:
        """Add or remove a vote, and return what OASIS's trace says of it."""
        table = VOTES.get(action) or UNDONE_VOTES[action]
        name = "comment_id" if table.startswith("comment") else "post_id"
        rated: Any = (self._comments if name == "comment_id" else self._posts)[info[name]]
        votes, change = self._ties[table], 1 if action in VOTES else -1
        number = votes.add(user, info[name], self._time(step)) if change > 0 else votes.remove(user, info[name])
        counter = "dislikes" if "dislike" in table else "likes"
        setattr(rated, counter, getattr(rated, counter) + change)
        return {name: info[name], f"{table}_id": number}

    def _view(self, post_id: int) -> Info:
        """Return a post as OASIS shows it now. A repost has the numbers of its original."""
        post = self._posts[post_id]
        source_id = self._shared(post_id)
        source = self._posts[source_id]
        text, author = source.content, post.author - 1
        if post.is_repost:
            text = f"User {author} reposted a post from User {source.author - 1}. Repost content: {text}. "
        elif post.original is not None:
            quoted = self._posts[post.original].author - 1
            text = f"User {author} quoted a post from User {quoted}. Quote content: {post.quotation}. "
            text += f"Original Content: {post.content}"
        if source.reports >= self._world.settings.warn_reports:
            text = f"[Warning: This post has been reported {source.reports} times]\n{text}"
        comments = [self._comment_view(comment_id) for comment_id in source.comments]
        shown = {"post_id": post_id, "user_id": author, "content": text, "created_at": self._time(source.step)}
        counts = {"num_shares": source.shares, "num_reports": source.reports}
        return {**shown, **self._votes_of(source), **counts, "comments": comments}

    def _comment_view(self, comment_id: int) -> Info:
        comment = self._comments[comment_id]
        shown = {"comment_id": comment_id, "post_id": comment.post, "user_id": comment.author - 1}
        shown |= {"content": comment.content, "created_at": self._time(comment.step)}
        return {**shown, **self._votes_of(comment)}

    def _votes_of(self, rated: _Post | _Comment) -> Info:
        if self._world.settings.show_score:
            return {"score": rated.likes - rated.dislikes}
        return {"num_likes": rated.likes, "num_dislikes": rated.dislikes}

    def tables(self) -> Iterator[tuple[str, list[Row]]]:
        """Return the rows of each table."""
        rows, time = self._world.store.rows, self._time
        yield "user", [tuple(user) for _, user in sorted(self._users.items())]
        yield (
            "post",
            [
                (
                    *(post_id, post.author - 1, post.original, post.content, post.quotation, time(post.step)),
                    *(post.likes, post.dislikes, post.shares, post.reports),
                )
                for post_id, post in self._posts.items()
            ],
        )
        yield (
            "comment",
            [
                (comment_id, one.post, one.author - 1, one.content, time(one.step), one.likes, one.dislikes)
                for comment_id, one in self._comments.items()
            ],
        )
        for table, ties in self._ties.items():
            shift = 1 if table in ("follow", "mute") else 0  # the second id is a user's, too
            yield table, [(number, one - 1, other - shift, *rest) for number, (one, other, *rest) in ties.rows.items()]
        yield "trace", self._traces
        yield "rec", [(user - 1, post) for user, post in rows("SELECT user_id, post_id FROM rec")]
        yield "product", rows("SELECT product_id, product_name, sales FROM product")
        query = "SELECT group_id, name, created_at FROM chat_group"
        yield "chat_group", [(group_id, name, time(step)) for group_id, name, step in rows(query)]
        query = "SELECT group_id, agent_id, joined_at FROM group_members"
        yield "group_members", [(group_id, user - 1, time(step)) for group_id, user, step in rows(query)]
        query = "SELECT message_id, group_id, sender_id, content, sent_at FROM group_messages"
        yield "group_messages", [(*ids, user - 1, text, time(step)) for *ids, user, text, step in rows(query)]


class _UpTo:
    """Rows that begin with their step, in order, handed out once."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """Keep the rows."""
        self._rows, self._n_taken = rows, 0

    def take(self, step: int) -> Sequence[Row]:
        """Return the rows up to a step that have not been handed out yet."""
        first = self._n_taken
        while self._n_taken < len(self._rows) and self._rows[self._n_taken][0] <= step:
            self._n_taken += 1
        return self._rows[first : self._n_taken]


def _as_oasis_action(action: str, info: Info) -> tuple[str, Info]:
    """Return a vote or a reply of SimSwarm's users as the action of OASIS's nearest to it."""
    if action == "reply":
        return "create_post", {"content": info["content"], "post_id": info["new_post_id"]}
    return ("like_post" if info["value"] > 0 else "dislike_post"), {"post_id": info["post_id"]}
