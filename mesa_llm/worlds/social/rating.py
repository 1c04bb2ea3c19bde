"""Judging: votes, likes, dislikes and reports. A user has one vote on each thing; undo it to change it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mesa_llm.errors import ToolError
from mesa_llm.tools import action
from mesa_llm.worlds.social.inbox import Notice
from mesa_llm.worlds.social.posting import PostId
from mesa_llm.worlds.social.state import SocialState

CommentId = Annotated[int, Field(gt=0)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]

VERBS = {1: "like", -1: "dislike"}
UNDO_POST = {1: "unlike_post", -1: "undo_dislike_post"}
UNDO_COMMENT = {1: "unlike_comment", -1: "undo_dislike_comment"}


class Rating(SocialState):
    """What users think of what others wrote."""

    @action
    def vote(self, actor: int, post_id: PostId, value: Literal[1, -1] = 1) -> str:
        """Vote a post or reply up or down, once.

        Args:
            post_id: Number of the post or reply.
            value: 1 for up, -1 for down.
        """
        if self.is_original:
            return self._vote_as_original(actor, post_id, value)
        post_id = self._rate_post(actor, post_id, 1 if value > 0 else -1)
        return f"You voted post {post_id} {'up' if value > 0 else 'down'}."

    def _vote_as_original(self, actor: int, post_id: int, value: float) -> str:
        """Vote as SimSwarm does: the voter is noted first, and stays noted if the value turns out wrong."""
        self.acting(actor)
        self.post_row(post_id)
        if self._vote_on("post", actor, post_id) is not None:
            raise ToolError(f"You have voted on post {post_id} already.")
        self.store.write("INSERT INTO post_vote VALUES (?, ?, 0, ?)", actor, post_id, self.step)
        up = value > 0
        change = "UPDATE post_vote SET value = ? WHERE user_id = ? AND post_id = ?"
        self.store.write(change, 1 if up else -1, actor, post_id)
        self.count_on_post(post_id, "likes" if up else "dislikes", 1)
        return f"You voted on post {post_id}."

    @action
    def like_post(self, actor: int, post_id: PostId) -> str:
        """Like a post.

        Args:
            post_id: Number of the post.
        """
        return f"You like post {self._rate_post(actor, post_id, 1)} now."

    @action
    def unlike_post(self, actor: int, post_id: PostId) -> str:
        """Take back your like of a post.

        Args:
            post_id: Number of a post you like.
        """
        return f"You no longer like post {self._undo_post(actor, post_id, 1)}."

    @action
    def dislike_post(self, actor: int, post_id: PostId) -> str:
        """Dislike a post.

        Args:
            post_id: Number of the post.
        """
        return f"You dislike post {self._rate_post(actor, post_id, -1)} now."

    @action
    def undo_dislike_post(self, actor: int, post_id: PostId) -> str:
        """Take back your dislike of a post.

        Args:
            post_id: Number of a post you dislike.
        """
        return f"You no longer dislike post {self._undo_post(actor, post_id, -1)}."

    @action
    def like_comment(self, actor: int, comment_id: CommentId) -> str:
        """Like a comment.

        Args:
            comment_id: Number of the comment.
        """
        self._rate_comment(actor, comment_id, 1)
        return f"You like comment {comment_id} now."

    @action
    def unlike_comment(self, actor: int, comment_id: CommentId) -> str:
        """Take back your like of a comment.

        Args:
            comment_id: Number of a comment you like.
        """
        self._undo_comment(actor, comment_id, 1)
        return f"You no longer like comment {comment_id}."

    @action
    def dislike_comment(self, actor: int, comment_id: CommentId) -> str:
        """Dislike a comment.

        Args:
            comment_id: Number of the comment.
        """
        self._rate_comment(actor, comment_id, -1)
        return f"You dislike comment {comment_id} now."

    @action
    def undo_dislike_comment(self, actor: int, comment_id: CommentId) -> str:
        """Take back your dislike of a comment.

        Args:
            comment_id: Number of a comment you dislike.
        """
        self._undo_comment(actor, comment_id, -1)
        return f"You no longer dislike comment {comment_id}."

    @action
    def report_post(self, actor: int, post_id: PostId, reason: Reason) -> str:
        """Report a post that breaks the rules; readers are warned of posts that were reported several times.

        Args:
            post_id: Number of the post.
            reason: What is wrong with it.
        """
        self.acting(actor)
        target = self.source_id(post_id)
        words = self.cleaned(reason, "reason")
        row = (actor, target, words, self.step)
        if not self.store.write("INSERT OR IGNORE INTO report VALUES (?, ?, ?, ?)", *row):
            raise ToolError(f"You have reported post {target} already.")
        self.count_on_post(target, "reports", 1)
        return f"You reported post {target}."

    def _vote_on(self, what: Literal["post", "comment"], actor: int, target: int) -> int | None:
        query = f"SELECT value FROM {what}_vote WHERE user_id = ? AND {what}_id = ?"
        found = self.store.first(query, actor, target)
        return None if found is None else int(found[0])

    def _check_free(self, what: Literal["post", "comment"], actor: int, target: int, value: int) -> None:
        """Refuse a second vote of one user on one thing."""
        earlier = self._vote_on(what, actor, target)
        if earlier is None:
            return
        if earlier == value:
            raise ToolError(f"You {VERBS[value]} {what} {target} already.")
        undo = (UNDO_POST if what == "post" else UNDO_COMMENT)[earlier]
        advice = f"{undo} takes that back" if undo in self.settings.actions else "that vote stands"
        raise ToolError(f"You {VERBS[earlier]} {what} {target}; {advice}.")

    def _rate_post(self, actor: int, post_id: int, value: int) -> int:
        self.acting(actor)
        target = self.source_id(post_id)
        if self.author_of(target) == actor and not self.settings.self_rating:
            raise ToolError(f"Post {target} is your own; rate what others wrote.")
        self._check_free("post", actor, target, value)
        self.store.write("INSERT INTO post_vote VALUES (?, ?, ?, ?)", actor, target, value, self.step)
        self.count_on_post(target, f"{VERBS[value]}s", 1)
        if value > 0:
            self.tell_author(target, "like", actor)
        return target

    def _undo_post(self, actor: int, post_id: int, value: int) -> int:
        self.acting(actor)
        target = self.source_id(post_id)
        delete = "DELETE FROM post_vote WHERE user_id = ? AND post_id = ? AND value = ?"
        if not self.store.write(delete, actor, target, value):
            raise ToolError(f"You do not {VERBS[value]} post {target}.")
        self.count_on_post(target, f"{VERBS[value]}s", -1)
        if value > 0:
            self.inbox.take_back(self.author_of(target), "like", actor, target)
        return target

    def _comment(self, comment_id: int) -> tuple[int, int]:
        """Give the author of a comment, and the post it stands under."""
        query = "SELECT user_id, post_id FROM comment WHERE comment_id = ?"
        found = self.store.first(query, comment_id) if 0 < comment_id <= self.n_comments else None
        if found is None:
            raise ToolError(f"There is no comment {comment_id}; use the number of a comment you were shown.")
        return int(found[0]), int(found[1])

    def _rate_comment(self, actor: int, comment_id: int, value: int) -> None:
        author, post_id = self._comment(comment_id)
        if author == self.acting(actor) and not self.settings.self_rating:
            raise ToolError(f"Comment {comment_id} is your own; rate what others wrote.")
        self._check_free("comment", actor, comment_id, value)
        self.store.write("INSERT INTO comment_vote VALUES (?, ?, ?, ?)", actor, comment_id, value, self.step)
        self._count_on_comment(comment_id, post_id, VERBS[value], 1)
        if value > 0:
            self.inbox.tell(author, Notice("comment_like", actor, self.step, post_id, comment_id))

    def _undo_comment(self, actor: int, comment_id: int, value: int) -> None:
        self.acting(actor)
        author, post_id = self._comment(comment_id)
        delete = "DELETE FROM comment_vote WHERE user_id = ? AND comment_id = ? AND value = ?"
        if not self.store.write(delete, actor, comment_id, value):
            raise ToolError(f"You do not {VERBS[value]} comment {comment_id}.")
        self._count_on_comment(comment_id, post_id, VERBS[value], -1)
        if value > 0:
            self.inbox.take_back(author, "comment_like", actor, post_id, comment_id)

    def _count_on_comment(self, comment_id: int, post_id: int, verb: str, change: int) -> None:
        column = f"{verb}s"
        self.store.write(f"UPDATE comment SET {column} = {column} + ? WHERE comment_id = ?", change, comment_id)
        self.words_changed()
