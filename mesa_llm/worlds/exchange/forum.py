"""The traders' forum: what was posted yesterday is read today."""

from __future__ import annotations

from typing import NamedTuple

OFFICIAL = -1
"""Author of announcements."""


class Post(NamedTuple):
    """Words on the forum."""

    day: int
    """Day on which it was written."""

    author: int
    """Trader's id, or `OFFICIAL`."""

    text: str
    """What was written."""


class Forum:
    """Yesterday's posts, today's announcements, and the posts being written for tomorrow."""

    def __init__(self) -> None:
        """Start with nothing to read."""
        self.posts: tuple[Post, ...] = ()
        """What can be read now."""

        self._written: dict[int, Post] = {}

    def announce(self, day: int, text: str) -> None:
        """Add an announcement that is read at once."""
        self.posts += (Post(day, OFFICIAL, text),)

    def write(self, day: int, author: int, text: str) -> None:
        """Keep a trader's post for tomorrow; a second one replaces the first."""
        self._written[author] = Post(day, author, text)

    def turn(self) -> None:
        """Put today's posts, by author's id, in the place of yesterday's."""
        self.posts = tuple(post for _, post in sorted(self._written.items()))
        self._written = {}
