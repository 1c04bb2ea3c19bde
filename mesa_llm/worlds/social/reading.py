"""Looking around while deciding: searches, trends, and the feed once more."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from mesa_llm.errors import ToolError
from mesa_llm.text import quoted
from mesa_llm.tools import tool
from mesa_llm.worlds.social.feeds import best_first, top_level, unmuted
from mesa_llm.worlds.social.state import UNPRINTABLE
from mesa_llm.worlds.social.view import View

Query = Annotated[str, Field(min_length=1, max_length=200)]

FIND_POSTS = """
    SELECT post_id FROM post
    WHERE kind <> 'repost' AND content LIKE ? ESCAPE '\\'
        AND user_id NOT IN (SELECT mutee_id FROM mute WHERE muter_id = ?)
    ORDER BY likes - dislikes + shares DESC, post_id DESC LIMIT ?"""

FIND_USERS = """
    SELECT user_id, name, bio FROM user
    WHERE name || char(1) || username || char(1) || bio LIKE ? ESCAPE '\\'
        AND user_id NOT IN (SELECT mutee_id FROM mute WHERE muter_id = ?)
    ORDER BY user_id LIMIT ?"""

BIO_CHARACTERS = 160
"""Characters of a user's bio that a search shows."""


class Reading(View):
    """Tools that show more of the world. What was searched for is written down when the step ends."""

    @tool(shows_more=True)
    def search_posts(self, actor: int, query: Query) -> str:
        """Search all posts for a word or phrase.

        Args:
            query: Text that the post holds; upper and lower case count as the same.
        """
        pattern = self._pattern(self.acting(actor), "posts", query)
        rows = self.store.rows(FIND_POSTS, pattern, actor, self.settings.search_results)
        if not rows:
            return f"No post holds {quoted(query)}."
        return self.text_of(self.items(self.viewer(actor), [int(row[0]) for row in rows]))

    @tool(shows_more=True)
    def search_user(self, actor: int, query: Query) -> str:
        """Search for users by name, handle or what they say of themselves.

        Args:
            query: Text to look for; upper and lower case count as the same.
        """
        pattern = self._pattern(self.acting(actor), "users", query)
        lines: list[str] = []
        for user_id, name, bio in self.store.rows(FIND_USERS, pattern, actor, self.settings.search_results):
            about = f": {quoted(bio, BIO_CHARACTERS)}" if bio else ""
            lines.append(f"- {name} (user {user_id}), {self.users.get('followers', user_id)} followers{about}")
        return "\n".join(lines) or f"No user matches {quoted(query)}."

    @tool(shows_more=True)
    def trend(self, actor: int) -> str:
        """Show what is liked most these days."""
        board, viewer = self.board(), self.viewer(actor)
        oldest = self.step - self.settings.trend_days * 24 * 60 / max(self.settings.step_minutes, 1e-9)
        rows = top_level(board)[::-1]
        rows = unmuted(rows[board.created[rows] >= oldest], board, viewer)
        rows = best_first(rows, board.likes[rows])[: self.settings.trend_posts]
        if not len(rows):
            return "Nothing is trending."
        return self.text_of(self.items(viewer, np.add(rows, 1).tolist()))

    @tool
    def refresh(self, actor: int) -> str:
        """Show your feed again."""
        viewer = self.viewer(actor)
        return self.text_of(self.items(viewer, self.feed(viewer)))

    def _pattern(self, actor: int, target: str, query: str) -> str:
        """Note a search; give the pattern that finds a text as it stands."""
        text = UNPRINTABLE.sub("", query).strip()
        if not text:
            raise ToolError("The search is empty; give a word to look for.")
        self.searches.append((actor, target, text))
        for special in ("\\", "%", "_"):
            text = text.replace(special, "\\" + special)
        return f"%{text}%"

    def write_searches(self) -> None:
        """Write down the searches of the step, in the order of users, whichever came first."""
        rows = [(*search, self.step) for search in sorted(self.searches, key=lambda search: search[0])]
        self.store.write_many("INSERT INTO search (user_id, target, query, step) VALUES (?, ?, ?, ?)", rows)
        self.searches.clear()
