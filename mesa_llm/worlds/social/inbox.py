"""News for each user: what others did to them and their posts in the last steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NoticeKind = Literal["like", "comment_like", "repost", "quote", "reply", "comment", "follow"]


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that somebody did to a user."""

    kind: NoticeKind
    """What was done."""

    user_id: int
    """Who did it."""

    step: int
    """Step in which it was done."""

    post_id: int = 0
    """The post it was done to, or under; 0 for a follow."""

    new_id: int = 0
    """The reply, quote or repost (a post id), or the comment (a comment id), that came of it; else 0."""

    content: str = ""
    """What was written."""


class Inbox:
    """Keeps recent news by user; it is told once, so only the last steps are kept."""

    def __init__(self, keep_steps: int) -> None:
        """Start empty.

        Args:
            keep_steps: For how many steps, beyond the one it happened in, news is kept.
        """
        self._keep_steps = keep_steps
        self._notices: dict[int, list[Notice]] = {}

    def tell(self, user_id: int, notice: Notice) -> None:
        """Tell a user something; what it did to itself is no news."""
        if user_id != notice.user_id:
            self._notices.setdefault(user_id, []).append(notice)

    def take_back(self, user_id: int, kind: NoticeKind, by: int, post_id: int = 0, new_id: int = 0) -> None:
        """Forget news of something that was undone."""
        kept = [
            notice
            for notice in self._notices.get(user_id, [])
            if (notice.kind, notice.user_id, notice.post_id, notice.new_id) != (kind, by, post_id, new_id)
        ]
        if user_id in self._notices:
            self._notices[user_id] = kept

    def of(self, user_id: int) -> tuple[Notice, ...]:
        """Give a user's news, oldest first."""
        return tuple(self._notices.get(user_id, ()))

    def end_step(self, step: int) -> None:
        """Forget what is too old in the step that begins."""
        oldest = step - self._keep_steps
        fresh: dict[int, list[Notice]] = {}
        for user_id, notices in self._notices.items():
            if kept := [notice for notice in notices if notice.step >= oldest]:
                fresh[user_id] = kept
        self._notices = fresh
