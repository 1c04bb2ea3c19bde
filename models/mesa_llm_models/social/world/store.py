"""The readable copy of a social world in SQLite: tables after those of OASIS, written once per step.

The world stores its numbers in columns, and its texts here. Changes in a step are collected, and written together at
the end of the step, or on reading.
"""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mesa_llm.errors import ConfigError
from mesa_llm_models.social.world.csr import Columns

APPLICATION_ID = 0x50C1A1
"""Marks a database file as a social world's."""

_VOTE = "user_id INTEGER NOT NULL REFERENCES user, {0}_id INTEGER NOT NULL REFERENCES {0}, created_at INTEGER NOT NULL,"

TABLES: dict[str, str] = {
    "user": """
        user_id INTEGER PRIMARY KEY, agent_id INTEGER GENERATED ALWAYS AS (user_id), user_name TEXT NOT NULL,
        name TEXT NOT NULL, bio TEXT NOT NULL, created_at INTEGER NOT NULL,
        num_followings INTEGER NOT NULL DEFAULT 0, num_followers INTEGER NOT NULL DEFAULT 0""",
    "post": """
        post_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES user, original_post_id INTEGER REFERENCES post,
        content TEXT NOT NULL, quote_content TEXT GENERATED ALWAYS AS (CASE kind WHEN 'quote' THEN content END),
        created_at INTEGER NOT NULL, num_likes INTEGER NOT NULL DEFAULT 0, num_dislikes INTEGER NOT NULL DEFAULT 0,
        num_shares INTEGER NOT NULL DEFAULT 0, num_reports INTEGER NOT NULL DEFAULT 0, kind TEXT NOT NULL,
        parent_id INTEGER REFERENCES post, root_id INTEGER NOT NULL REFERENCES post""",
    "comment": """
        comment_id INTEGER PRIMARY KEY, post_id INTEGER NOT NULL REFERENCES post,
        user_id INTEGER NOT NULL REFERENCES user, content TEXT NOT NULL, created_at INTEGER NOT NULL,
        num_likes INTEGER NOT NULL DEFAULT 0, num_dislikes INTEGER NOT NULL DEFAULT 0""",
    "like": _VOTE.format("post") + "PRIMARY KEY (user_id, post_id)",
    "dislike": _VOTE.format("post") + "PRIMARY KEY (user_id, post_id)",
    "void_vote": _VOTE.format("post") + "PRIMARY KEY (user_id, post_id)",
    "comment_like": _VOTE.format("comment") + "PRIMARY KEY (user_id, comment_id)",
    "comment_dislike": _VOTE.format("comment") + "PRIMARY KEY (user_id, comment_id)",
    "follow": """
        follower_id INTEGER NOT NULL REFERENCES user, followee_id INTEGER NOT NULL REFERENCES user,
        created_at INTEGER NOT NULL, PRIMARY KEY (follower_id, followee_id)""",
    "mute": """
        muter_id INTEGER NOT NULL REFERENCES user, mutee_id INTEGER NOT NULL REFERENCES user,
        created_at INTEGER NOT NULL, PRIMARY KEY (muter_id, mutee_id)""",
    "report": """
        user_id INTEGER NOT NULL REFERENCES user, post_id INTEGER NOT NULL REFERENCES post,
        report_reason TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (user_id, post_id)""",
    "trace": """
        user_id INTEGER NOT NULL REFERENCES user, created_at INTEGER NOT NULL, action TEXT NOT NULL,
        info TEXT NOT NULL""",
    "rec": """
        user_id INTEGER NOT NULL REFERENCES user, post_id INTEGER NOT NULL REFERENCES post,
        PRIMARY KEY (user_id, post_id)""",
    "bare_repost": """
        repost_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES user,
        post_id INTEGER NOT NULL REFERENCES post, created_at INTEGER NOT NULL""",
    "product": "product_id INTEGER PRIMARY KEY, product_name TEXT NOT NULL, sales INTEGER NOT NULL DEFAULT 0",
    "purchase": """
        purchase_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES user,
        product_id INTEGER NOT NULL REFERENCES product, amount INTEGER NOT NULL, created_at INTEGER NOT NULL""",
    "chat_group": """
        group_id INTEGER PRIMARY KEY, name TEXT NOT NULL, created_at INTEGER NOT NULL,
        user_id INTEGER NOT NULL REFERENCES user, members INTEGER NOT NULL DEFAULT 0""",
    "group_members": """
        group_id INTEGER NOT NULL REFERENCES chat_group, agent_id INTEGER NOT NULL REFERENCES user,
        joined_at INTEGER NOT NULL, PRIMARY KEY (agent_id, group_id)""",
    "group_messages": """
        message_id INTEGER PRIMARY KEY, group_id INTEGER NOT NULL REFERENCES chat_group,
        sender_id INTEGER NOT NULL REFERENCES user, content TEXT NOT NULL, sent_at INTEGER NOT NULL""",
    "search": """
        search_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES user, target TEXT NOT NULL,
        query TEXT NOT NULL, created_at INTEGER NOT NULL""",
}
"""Columns by table: OASIS's sixteen tables under their names, and four of ours.

`created_at`, `joined_at` and `sent_at` are steps of the world. `post.original_post_id` is the source of a repost or
quote; `parent_id` is the post acted on, which may be a repost of it; `root_id` is the first post of the cascade of
reposts and quotes, or of the thread of replies. `trace` has the actions of users, and what they read before them (ids
of posts, texts of searches), `rec` the posts in the last feeds. `oasis_database` writes all this as OASIS does.
Ours are `bare_repost` (reposts that are only counted) and `void_vote` (recorded votes that do not count), both for the
original rules, `purchase` and `search`; and the column `chat_group.user_id`, the user who opened the group.

Foreign keys are declared and valid, but not enforced per row. Under the original rules users may follow others that do
not exist.
"""

VIEWS = {
    "post_vote": """
        SELECT user_id, post_id, 1 AS value, created_at AS step FROM "like"
        UNION ALL SELECT user_id, post_id, -1, created_at FROM dislike
        UNION ALL SELECT user_id, post_id, 0, created_at FROM void_vote""",
    "comment_vote": """
        SELECT user_id, comment_id, 1 AS value, created_at AS step FROM comment_like
        UNION ALL SELECT user_id, comment_id, -1, created_at FROM comment_dislike""",
}
"""Upvotes and downvotes, in one table each."""

INDICES = (
    "post_root ON post (root_id, kind)",
    "comment_post ON comment (post_id)",
    "bare_repost_post ON bare_repost (post_id)",
    "group_size ON chat_group (members)",
    "group_message ON group_messages (group_id, sent_at)",
)

SEARCHES = {"post": ("post_id", "content"), "user": ("user_id", "name, user_name, bio")}
"""Searchable table → its key and text columns."""

MIN_INDEXED = 3
"""Minimum number of characters for a search to use the trigram index."""

MAX_MARKS = 1000
"""Maximum number of ids in one query; SQLite accepts about 30,000."""

MAX_NAMES = 200_000
"""Maximum number of names kept in memory."""

MAX_WAITING = 100_000
"""Maximum number of unwritten traces."""

KEYED = frozenset(name for name, columns in TABLES.items() if "PRIMARY KEY (" in columns)
"""Tables with rows identified by their first two columns."""


class Store:
    """A connection to the tables of one world.

    Attributes:
        before_read: Called before tables are read, to write pending changes.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        """Open a database with empty tables.

        Args:
            path: File of the database; None for memory. The file of an earlier run is emptied, because a resumed run
                repeats its steps.

        Raises:
            ConfigError: If the file exists and is not a social world's.
        """
        self.is_file = path is not None
        self.before_read: Callable[[], None] = lambda: None
        self._lines: dict[str, list[tuple[Any, ...]]] = {}
        self._keyed: dict[str, dict[tuple[int, int], tuple[Any, ...]]] = {}
        self._removed: dict[str, list[tuple[int, int]]] = {}
        self._traces: list[tuple[int, int, str, dict[str, Any]]] = []
        self._indexed: dict[str, int] = {}
        try:
            self.connection = sqlite3.connect(
                ":memory:" if path is None else str(path), isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise ConfigError(f"{path} cannot be opened as a database ({error}); choose another path") from error
        weakref.finalize(self, self.connection.close)
        try:
            require_replaceable(self.connection, APPLICATION_ID, path, "the social world")
            self.connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.connection.execute("PRAGMA synchronous = OFF")
            self.connection.execute("BEGIN")
            self._create()
        except BaseException:
            self.connection.close()
            raise

    def _create(self) -> None:
        for kind in ("view", "table"):  # also those of an earlier version of the world
            names = self.connection.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,)).fetchall()
            for (name,) in sorted(names, key=lambda row: not row[0].endswith("_search")):
                if kind == "view" or not name.startswith(("sqlite_", *(f"{table}_search_" for table in SEARCHES))):
                    self.connection.execute(f'DROP {kind} IF EXISTS "{name}"')
        for table, columns in TABLES.items():
            keyless = " WITHOUT ROWID" if table in KEYED else ""
            self.connection.execute(f'CREATE TABLE "{table}" ({columns}){keyless}')
        for view, query in VIEWS.items():
            self.connection.execute(f"CREATE VIEW {view} AS {query}")
        for index in INDICES:
            self.connection.execute(f"CREATE INDEX {index}")

    # writing: collected, and written once per step

    def add(self, table: str, *row: object) -> None:
        """Collect a new row, with values in the order of the non-generated columns."""
        if table in KEYED:
            self._keyed.setdefault(table, {})[row[:2]] = row  # pyright: ignore[reportArgumentType]
        else:
            self._lines.setdefault(table, []).append(row)

    def remove(self, table: str, first: int, second: int) -> None:
        """Collect the removal of a row identified by its first two columns."""
        if self._keyed.get(table, {}).pop((first, second), None) is None:
            self._removed.setdefault(table, []).append((first, second))

    def trace(self, user_id: int, step: int, action: str, info: dict[str, Any]) -> None:
        """Collect an action of a user."""
        self._traces.append((user_id, step, action, info))
        if len(self._traces) >= MAX_WAITING:
            self.write_traces()

    def write_traces(self) -> None:
        """Write the actions of users, which no step reads."""
        self.insert("trace", [(user, step, action, info_text(info)) for user, step, action, info in self._traces])
        self._traces.clear()

    def flush(self) -> None:
        """Write all collected changes except traces."""
        for table, keys in self._removed.items():
            first, second = KEY_COLUMNS[table]
            self.connection.executemany(f'DELETE FROM "{table}" WHERE {first} = ? AND {second} = ?', keys)
        self._removed.clear()
        for table, lines in self._lines.items():
            self.insert(table, lines)
        self._lines.clear()
        for table, rows in self._keyed.items():
            self.insert(table, rows.values())
        self._keyed.clear()

    def insert(self, table: str, rows: Iterable[Sequence[object]]) -> None:
        """Write new rows now, with values in the order of the non-generated columns."""
        names = WRITTEN[table]
        slots = ", ".join("?" * len(names))
        self.connection.executemany(f'INSERT INTO "{table}" ({", ".join(names)}) VALUES ({slots})', rows)

    def write(self, statement: str, *values: object) -> int:
        """Execute a writing statement now. Return the number of changed rows."""
        return self.connection.execute(statement, values).rowcount

    def write_many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Execute a writing statement now, once for each row."""
        self.connection.executemany(statement, rows)

    # reading

    def query(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return all rows of a query on texts, groups or collected changes. Counts may be those of the last step."""
        self.flush()
        return self.connection.execute(query, values).fetchall()

    def one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row of a query on groups or products, or None."""
        return self.connection.execute(query, values).fetchone()

    def of_ids(self, query: str, ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """Return all rows of a query about some ids.

        Args:
            query: The query, with `{}` for the ids, as in `WHERE post_id IN ({})`.
            ids: Any number of them.
        """
        self.flush()
        for start in range(0, len(ids), MAX_MARKS):
            batch = ids[start : start + MAX_MARKS]
            yield from self.connection.execute(query.format(", ".join("?" * len(batch))), batch)

    def first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row of a query, or None."""
        self.before_read()
        return self.connection.execute(query, values).fetchone()

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        self.before_read()
        return self.connection.execute(query, values).fetchall()

    def records(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Return all rows of a query as mappings by column."""
        self.before_read()
        cursor = self.connection.execute(query, values)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def find(self, table: str, text: str) -> Iterator[tuple[Any, ...]]:
        """Find rows that contain a text, ignoring case; by an index, unless the text is too short for one.

        Args:
            table: `post` or `user`.
            text: The text.

        Returns:
            Key and texts of each row, in key order.
        """
        key, columns = SEARCHES[table]
        pattern = text
        for special in ("\\", "%", "_"):
            pattern = pattern.replace(special, "\\" + special)
        whole = " || char(1) || ".join(columns.split(", "))
        condition, values = f"{whole} LIKE ? ESCAPE '\\'", [f"%{pattern}%"]
        if len(text) >= MIN_INDEXED:
            self._index(table)
            condition += f" AND {key} IN (SELECT rowid FROM {table}_search WHERE {table}_search MATCH ?)"
            values.append('"' + text.replace('"', '""') + '"')
        else:
            self.flush()
        yield from self.connection.execute(
            f"SELECT {key}, {columns} FROM {table} WHERE {condition} ORDER BY {key}", values
        )

    def _index(self, table: str) -> None:
        """Update the index of a table's texts, creating it on the first search."""
        self.flush()
        key, columns = SEARCHES[table]
        last = self._indexed.get(table)
        if last is None:
            self.connection.execute(
                f"CREATE VIRTUAL TABLE {table}_search USING fts5({columns}, content='{table}', content_rowid='{key}', "
                "tokenize='trigram', detail='full')"
            )
        rows = f"SELECT {key}, {columns} FROM {table} WHERE {key} > ?"
        self.connection.execute(f"INSERT INTO {table}_search (rowid, {columns}) {rows}", (last or 0,))
        newest = self.connection.execute(f"SELECT max({key}) FROM {table}").fetchone()[0]
        self._indexed[table] = newest or 0

    def end_step(self) -> None:
        """Write and commit the changes of the step."""
        if self.is_file:
            self.before_read()
        self.flush()
        self.connection.execute("COMMIT")
        self.connection.execute("BEGIN")

    def close(self) -> None:
        """Write pending changes, commit, and close the database."""
        if self.is_file:
            self.before_read()
            self.flush()
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")
        self.connection.close()


class Names(Mapping[int, str]):
    """Names of users by id, read from their table on demand."""

    def __init__(self, store: Store, users: Columns) -> None:
        """Set the tables to read names from.

        Args:
            store: The tables.
            users: Columns of the users.
        """
        self._store, self._users = store, users
        self._cache: dict[int, str] = {}
        self._mentions: dict[int, str] = {}

    def __contains__(self, user_id: object) -> bool:
        """Check whether a user with this id exists."""
        return isinstance(user_id, int) and 0 < user_id < len(self._users) and bool(self._users.get("is_user", user_id))

    def __getitem__(self, user_id: int) -> str:
        """Return the name of a user."""
        name = self._cache.get(user_id)
        if name is None:
            if user_id not in self:
                raise KeyError(user_id)
            self.load([user_id])
            name = self._cache[user_id]
        return name

    def get(self, user_id: int, default: Any = None) -> Any:
        """Return the name of a user, or a default if there is no such user."""
        name = self._cache.get(user_id)
        return super().get(user_id, default) if name is None else name

    def mentions(self, user_ids: Sequence[int]) -> list[str]:
        """Return the names of users with their ids. Without an account, the name is unknown."""
        known = self._mentions
        try:
            return [known[user_id] for user_id in user_ids]
        except KeyError:
            self.load(user_ids)
            return [self._mention(user_id) for user_id in user_ids]

    def _mention(self, user_id: int) -> str:
        text = self._mentions.get(user_id)
        if text is None:
            name = self.get(user_id)
            text = f"{'unknown' if name is None else name} (user {user_id})"
            if name is not None:
                self._mentions[user_id] = text
        return text

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids, in increasing order."""
        return iter(np.flatnonzero(self._users["is_user"]).tolist())

    def __len__(self) -> int:
        """Count the users."""
        return int(np.count_nonzero(self._users["is_user"]))

    def load(self, user_ids: Iterable[int]) -> None:
        """Read the names of some users together."""
        missing = [user_id for user_id in dict.fromkeys(user_ids) if user_id not in self._cache]
        if len(self._cache) + len(missing) > MAX_NAMES:
            self._cache.clear()
            self._mentions.clear()
        self._cache.update(self._store.of_ids("SELECT user_id, name FROM user WHERE user_id IN ({})", missing))


_dump = json.JSONEncoder(ensure_ascii=False, default=str).encode


_dump_name = lru_cache(_dump)  # there are few names


def require_replaceable(
    connection: sqlite3.Connection, application_id: int, path: str | Path | None, content: str
) -> None:
    """Check that a file is empty, or a database with content of one kind, so that new content may take its place.

    Args:
        connection: Connection to the file.
        application_id: The application id of databases of this kind.
        path: The file, for errors; None for a database in memory.
        content: The content, for errors.

    Raises:
        ConfigError: If it is something else.
    """
    try:
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        is_empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.DatabaseError as error:
        raise ConfigError(f"{path} is not a database ({error}); choose another path for {content}") from error
    if found != application_id and not is_empty:
        raise ConfigError(f"{path} is a database of another kind; choose another path for {content}")


def info_text(info: Mapping[str, Any]) -> str:
    """Write the details of an action as JSON, faster than the encoder since most values are ids."""
    values = [f"{_dump_name(name)}: {value if type(value) is int else _dump(value)}" for name, value in info.items()]
    return f"{{{', '.join(values)}}}"


def _written_columns() -> dict[str, tuple[str, ...]]:
    """Find each table's written columns: all but the generated ones."""
    names: dict[str, tuple[str, ...]] = {}
    connection = sqlite3.connect(":memory:")
    for table, columns in TABLES.items():
        connection.execute(f'CREATE TABLE "{table}" ({columns})')
        names[table] = tuple(row[1] for row in connection.execute(f'PRAGMA table_info("{table}")'))
    connection.close()
    return names


WRITTEN = _written_columns()
"""Each table's non-generated columns, in order."""

KEY_COLUMNS = {table: WRITTEN[table][:2] for table in KEYED}
"""The two columns that identify a row."""
