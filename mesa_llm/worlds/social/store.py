"""The tables of a social world, in SQLite: one connection, one transaction a step, indexed look-ups."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError

APPLICATION_ID = 0x50C1A1
"""Marks a database file as the file of a social world."""

TABLES: dict[str, str] = {
    "user": """
        user_id INTEGER PRIMARY KEY, name TEXT NOT NULL, username TEXT NOT NULL, bio TEXT NOT NULL,
        step INTEGER NOT NULL""",
    "post": """
        post_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, kind TEXT NOT NULL, parent_id INTEGER,
        source_id INTEGER NOT NULL, root_id INTEGER NOT NULL, content TEXT NOT NULL, step INTEGER NOT NULL,
        likes INTEGER NOT NULL DEFAULT 0, dislikes INTEGER NOT NULL DEFAULT 0,
        shares INTEGER NOT NULL DEFAULT 0, reports INTEGER NOT NULL DEFAULT 0""",
    "comment": """
        comment_id INTEGER PRIMARY KEY, post_id INTEGER NOT NULL, user_id INTEGER NOT NULL,
        content TEXT NOT NULL, step INTEGER NOT NULL, likes INTEGER NOT NULL DEFAULT 0,
        dislikes INTEGER NOT NULL DEFAULT 0""",
    "post_vote": """
        user_id INTEGER NOT NULL, post_id INTEGER NOT NULL, value INTEGER NOT NULL, step INTEGER NOT NULL,
        PRIMARY KEY (user_id, post_id)""",
    "comment_vote": """
        user_id INTEGER NOT NULL, comment_id INTEGER NOT NULL, value INTEGER NOT NULL, step INTEGER NOT NULL,
        PRIMARY KEY (user_id, comment_id)""",
    "follow": """
        follower_id INTEGER NOT NULL, followee_id INTEGER NOT NULL, step INTEGER NOT NULL,
        PRIMARY KEY (follower_id, followee_id)""",
    "mute": """
        muter_id INTEGER NOT NULL, mutee_id INTEGER NOT NULL, step INTEGER NOT NULL,
        PRIMARY KEY (muter_id, mutee_id)""",
    "report": """
        user_id INTEGER NOT NULL, post_id INTEGER NOT NULL, reason TEXT NOT NULL, step INTEGER NOT NULL,
        PRIMARY KEY (user_id, post_id)""",
    "bare_repost": """
        repost_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, post_id INTEGER NOT NULL,
        step INTEGER NOT NULL""",
    "product": """
        product_id INTEGER PRIMARY KEY, name TEXT NOT NULL, sales INTEGER NOT NULL DEFAULT 0""",
    "purchase": """
        purchase_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, product_id INTEGER NOT NULL,
        amount INTEGER NOT NULL, step INTEGER NOT NULL""",
    "chat_group": """
        group_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, name TEXT NOT NULL, step INTEGER NOT NULL,
        members INTEGER NOT NULL DEFAULT 0""",
    "group_members": """
        user_id INTEGER NOT NULL, group_id INTEGER NOT NULL, step INTEGER NOT NULL,
        PRIMARY KEY (user_id, group_id)""",
    "group_messages": """
        message_id INTEGER PRIMARY KEY, group_id INTEGER NOT NULL, user_id INTEGER NOT NULL,
        content TEXT NOT NULL, step INTEGER NOT NULL""",
    "search": """
        search_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, target TEXT NOT NULL, query TEXT NOT NULL,
        step INTEGER NOT NULL""",
}
"""Columns by table.

`post.parent_id` is what was acted on; `source_id`: the post whose content a repost carries, else the post
itself; `root_id`: where its cascade of reposts and quotes, or its thread of replies, began. `bare_repost`
holds reposts that only count (original rules). `chat_group.user_id` is who opened the group.
"""

INDICES = (
    "post_author ON post (user_id, source_id)",
    "post_parent ON post (parent_id, kind)",
    "post_root ON post (root_id, kind)",
    "comment_post ON comment (post_id)",
    "follow_back ON follow (followee_id)",
    "group_size ON chat_group (members)",
    "group_message ON group_messages (group_id, step)",
)


class Store:
    """One connection to the tables of one world."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Open a database with empty tables.

        Args:
            path: Where to keep it; None: in memory. The file of an earlier run is emptied, because a resumed
                run goes through its steps again.

        Raises:
            ConfigError: If the file exists and is something else.
        """
        self.connection = sqlite3.connect(
            ":memory:" if path is None else str(path), isolation_level=None, check_same_thread=False
        )
        try:
            self._claim(path)
            self.connection.execute("PRAGMA synchronous = OFF")
            self.connection.execute("BEGIN")
            self._create()
        except BaseException:
            self.connection.close()
            raise

    def _claim(self, path: str | Path | None) -> None:
        try:
            application_id = self.connection.execute("PRAGMA application_id").fetchone()[0]
            is_empty = not self.connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"{path} is no database of a social world ({error}); choose another path") from error
        if application_id != APPLICATION_ID and not is_empty:
            raise ConfigError(f"{path} is a database of something else; choose another path for the social world")
        self.connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _create(self) -> None:
        for table, columns in TABLES.items():
            self.connection.execute(f"DROP TABLE IF EXISTS {table}")
            keyless = " WITHOUT ROWID" if "PRIMARY KEY (" in columns else ""
            self.connection.execute(f"CREATE TABLE {table} ({columns}){keyless}")
        for index in INDICES:
            self.connection.execute(f"CREATE INDEX {index}")

    def write(self, statement: str, *values: object) -> int:
        """Run a statement that writes; return the number of rows it changed."""
        return self.connection.execute(statement, values).rowcount

    def write_many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Run a statement that writes once for each row."""
        self.connection.executemany(statement, rows)

    def first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row of a query, or None."""
        return self.connection.execute(query, values).fetchone()

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self.connection.execute(query, values).fetchall()

    def records(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Return all rows of a query as mappings by column."""
        cursor = self.connection.execute(query, values)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def end_step(self) -> None:
        """Commit what the step wrote."""
        self.connection.execute("COMMIT")
        self.connection.execute("BEGIN")

    def close(self) -> None:
        """Commit, and let go of the database."""
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")
        self.connection.close()
