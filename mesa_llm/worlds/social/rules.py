"""Rules of a social world: the actions of its users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.text import MAX_NAME, one_line
from mesa_llm.tools.tool import action
from mesa_llm.worlds.social.recommenders import ORIGINAL, QUOTE, REPLY, REPOST, IntArray
from mesa_llm.worlds.social.state import UNPRINTABLE, Notice, SocialState

MAX_USER_ID = 100_000_000
"""Users are numbered densely, as arrays are indexed by their ids."""

UserId = Annotated[int, Field(gt=0, le=MAX_USER_ID)]


class Account(NamedTuple):
    """A user, as it signs up."""

    user_id: int
    """Mesa `unique_id` of the agent."""

    name: str = ""
    """Name that others see; empty: `user` and the id."""

    username: str = ""
    """Its handle."""

    bio: str = ""
    """Public profile."""


PostId = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1, max_length=5000)]

CommentId = Annotated[int, Field(gt=0)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]

VERBS = {1: "like", -1: "dislike"}
UNDO_POST = {1: "unlike_post", -1: "undo_dislike_post"}
UNDO_COMMENT = {1: "unlike_comment", -1: "undo_dislike_comment"}


class SocialRules(SocialState):
    """Accounts, follows and mutes; posts, replies, comments, reposts and quotes; votes and reports.

    A user has one vote on each thing; it takes it back to change it.
    """

    # accounts, follows, mutes

    def sign_up(self, user_id: int, name: str = "", username: str = "", bio: str = "") -> None:
        """Create an account for an agent.

        Raises:
            ConfigError: If the id is taken or out of range.
        """
        self.sign_up_many([Account(user_id, name, username, bio)])

    def sign_up_many(self, accounts: Iterable[Account]) -> None:
        """Create accounts for many agents at once.

        Raises:
            ConfigError: If an id is taken, appears twice or is out of range; nobody is signed up then.
        """
        rows: dict[int, tuple[object, ...]] = {}
        for account in accounts:
            user_id = account.user_id
            if not 0 < user_id <= MAX_USER_ID:
                raise ConfigError(f"user ids run from 1 to {MAX_USER_ID}, got {user_id}")
            if user_id in self.names or user_id in rows:
                raise ConfigError(f"user {user_id} has an account already")
            name, username = (one_line(text, MAX_NAME) for text in (account.name, account.username))
            bio = UNPRINTABLE.sub("", account.bio)
            rows[user_id] = (user_id, name or f"user {user_id}", username, bio, self.step)
        self.store.write_many("INSERT INTO user VALUES (?, ?, ?, ?, ?)", rows.values())
        self.names.update((user_id, str(row[1])) for user_id, row in rows.items())
        self.users.grow(max(rows, default=0) + 1)

    def follow_many(self, edges: IntArray | Sequence[tuple[int, int]]) -> int:
        """Let many users follow others at once, silently; return how many follows were new.

        Args:
            edges: User ids as (follower, followee), shape `(edges, 2)`. Repeated ones count once.

        Raises:
            ConfigError: If an id is unknown or someone would follow itself; nothing is written then.
        """
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        has_account = np.zeros(max(len(self.users), 1), dtype=np.bool_)
        has_account[np.fromiter(self.names, dtype=np.int64, count=len(self.names))] = True
        inside = (pairs >= 0) & (pairs < len(has_account))
        wrong = ~(inside & has_account[np.where(inside, pairs, 0)]).all(axis=1) | (pairs[:, 0] == pairs[:, 1])
        if wrong.any():
            follower, followee = pairs[np.argmax(wrong)]
            reason = "nobody follows itself" if follower == followee else "both need an account first"
            raise ConfigError(f"user {follower} cannot follow user {followee}: {reason}")
        count = "SELECT count(*) FROM follow"
        before = (self.store.first(count) or (0,))[0]
        rows = ((follower, followee, self.step) for follower, followee in pairs.tolist())
        self.store.write_many("INSERT OR IGNORE INTO follow VALUES (?, ?, ?)", rows)
        self._count_follows(np.unique(pairs[:, 0]))
        return (self.store.first(count) or (0,))[0] - before

    def _count_follows(self, followers: IntArray) -> None:
        """Count everyone's follows again; forget what was known of these followers."""
        for column, end in (("followings", "follower_id"), ("followers", "followee_id")):
            counts = self.store.rows(f"SELECT {end}, count(*) FROM follow GROUP BY {end}")
            users, numbers = np.array(counts, dtype=np.int64).reshape(-1, 2).T
            self.users[column][users] = numbers
        for follower in followers.tolist():
            self.ties_changed(follower)

    @action
    def follow(self, agent_id: int, user_id: UserId) -> str:
        """Follow a user, to see more of what they post.

        Args:
            user_id: Number of the user, as shown after a name.
        """
        self.acting(agent_id)
        if not self.is_original:
            self.other_user(agent_id, user_id, "follow")
        if not self.store.write("INSERT OR IGNORE INTO follow VALUES (?, ?, ?)", agent_id, user_id, self.step):
            if self.is_original:
                return f"You follow user {user_id}."
            raise ToolError(f"You follow {self.names[user_id]} (user {user_id}) already.")
        self._change_counts(agent_id, user_id, 1)
        if user_id in self.names:
            self.inbox.add(user_id, Notice("follow", agent_id, self.step))
        return f"You follow {self.names.get(user_id, 'user')} (user {user_id}) now."

    @action
    def unfollow(self, agent_id: int, user_id: UserId) -> str:
        """Stop following a user.

        Args:
            user_id: Number of a user you follow.
        """
        self.acting(agent_id)
        if not self.store.write("DELETE FROM follow WHERE follower_id = ? AND followee_id = ?", agent_id, user_id):
            raise ToolError(f"You do not follow user {user_id}.")
        self._change_counts(agent_id, user_id, -1)
        self.inbox.take_back(user_id, "follow", agent_id)
        return f"You no longer follow {self.names.get(user_id, 'user')} (user {user_id})."

    def _change_counts(self, follower: int, followee: int, change: int) -> None:
        self.users.add("followings", follower, change)
        if followee < len(self.users):
            self.users.add("followers", followee, change)
        self.ties_changed(follower)

    @action
    def mute(self, agent_id: int, user_id: UserId) -> str:
        """Mute a user: you no longer see what they post and write.

        Args:
            user_id: Number of the user, as shown after a name.
        """
        self.other_user(self.acting(agent_id), user_id, "mute")
        if not self.store.write("INSERT OR IGNORE INTO mute VALUES (?, ?, ?)", agent_id, user_id, self.step):
            raise ToolError(f"You have muted {self.names[user_id]} (user {user_id}) already.")
        self.ties_changed(agent_id)
        return f"You muted {self.names[user_id]} (user {user_id})."

    @action
    def unmute(self, agent_id: int, user_id: UserId) -> str:
        """Stop muting a user: you see again what they post.

        Args:
            user_id: Number of a user you muted.
        """
        self.acting(agent_id)
        if not self.store.write("DELETE FROM mute WHERE muter_id = ? AND mutee_id = ?", agent_id, user_id):
            raise ToolError(f"You have not muted user {user_id}.")
        self.ties_changed(agent_id)
        return f"You no longer mute {self.names.get(user_id, 'user')} (user {user_id})."

    # posts and what is made of them

    @action
    def create_post(self, agent_id: int, content: Text) -> str:
        """Publish a post of your own.

        Args:
            content: The words of the post.
        """
        self.acting(agent_id)
        post_id = self.add_post(agent_id, ORIGINAL, self.cleaned(content, "post"))
        return f"You published post {post_id}."

    @action
    def reply(self, agent_id: int, post_id: PostId, content: Text) -> str:
        """Reply to a post or to another reply; everyone can read it.

        Args:
            post_id: Number of the post or reply that you answer.
            content: The words of your reply.
        """
        self.acting(agent_id)
        parent_id = self.source_id(post_id)
        text = self.cleaned(content, "reply")
        reply_id = self.add_post(agent_id, REPLY, text, parent_id)
        self.notify_author(parent_id, "reply", agent_id, reply_id, text)
        return f"You replied to post {parent_id}; your reply is post {reply_id}."

    @action
    def create_comment(self, agent_id: int, post_id: PostId, content: Text) -> str:
        """Write a comment under a post.

        Args:
            post_id: Number of the post.
            content: The words of your comment.
        """
        self.acting(agent_id)
        target = self.source_id(post_id)
        text = self.cleaned(content, "comment")
        self.n_comments += 1
        self.store.write(
            "INSERT INTO comment (comment_id, post_id, user_id, content, step) VALUES (?, ?, ?, ?, ?)",
            *(self.n_comments, target, agent_id, text, self.step),
        )
        self.words_changed()
        self.notify_author(target, "comment", agent_id, self.n_comments, text)
        return f"You commented on post {target}; it is comment {self.n_comments}."

    @action
    def repost(self, agent_id: int, post_id: PostId) -> str:
        """Pass a post on, as it is, to those who follow you.

        Args:
            post_id: Number of the post.
        """
        self.acting(agent_id)
        source_id = self.source_id(post_id)
        if self.is_original:
            self.store.write(
                "INSERT INTO bare_repost (user_id, post_id, step) VALUES (?, ?, ?)",
                agent_id,
                source_id,
                self.step,
            )
        else:
            self._check_repost(agent_id, source_id)
            repost_id = self.add_post(agent_id, REPOST, "", post_id)
            self.notify_author(source_id, "repost", agent_id, repost_id)
            if post_id != source_id:
                self.inbox.add(self.author_of(post_id), Notice("repost", agent_id, self.step, post_id, repost_id))
        self.count_on_post(source_id, "shares", 1)
        return f"You reposted post {post_id}."

    def _check_repost(self, agent_id: int, source_id: int) -> None:
        if self.author_of(source_id) == agent_id and not self.settings.self_rating:
            raise ToolError(f"Post {source_id} is your own; repost what others wrote.")
        earlier = "SELECT 1 FROM post WHERE user_id = ? AND source_id = ? AND kind = 'repost'"
        if self.store.first(earlier, agent_id, source_id):
            raise ToolError(f"You have reposted post {source_id} already.")

    @action
    def quote_post(self, agent_id: int, post_id: PostId, content: Text) -> str:
        """Pass a post on to those who follow you, with words of your own above it.

        Args:
            post_id: Number of the post.
            content: What you say about it.
        """
        self.acting(agent_id)
        source_id = self.source_id(post_id)
        text = self.cleaned(content, "quote")
        quote_id = self.add_post(agent_id, QUOTE, text, post_id)
        self.count_on_post(source_id, "shares", 1)
        self.notify_author(source_id, "quote", agent_id, quote_id, text)
        return f"You quoted post {source_id} in post {quote_id}."

    # votes and reports

    @action
    def vote(self, agent_id: int, post_id: PostId, value: Literal[1, -1] = 1) -> str:
        """Vote a post or reply up or down, once.

        Args:
            post_id: Number of the post or reply.
            value: 1 for up, -1 for down.
        """
        if self.is_original:
            return self._vote_as_original(agent_id, post_id, value)
        post_id = self._rate_post(agent_id, post_id, 1 if value > 0 else -1)
        return f"You voted post {post_id} {'up' if value > 0 else 'down'}."

    def _vote_as_original(self, agent_id: int, post_id: int, value: float) -> str:
        """Vote as SimSwarm does: the voter is noted first, and stays noted if the value turns out wrong."""
        self.acting(agent_id)
        self.post_row(post_id)
        if self._vote_on("post", agent_id, post_id) is not None:
            raise ToolError(f"You have voted on post {post_id} already.")
        self.store.write("INSERT INTO post_vote VALUES (?, ?, 0, ?)", agent_id, post_id, self.step)
        is_like = value > 0
        change = "UPDATE post_vote SET value = ? WHERE user_id = ? AND post_id = ?"
        self.store.write(change, 1 if is_like else -1, agent_id, post_id)
        self.count_on_post(post_id, "likes" if is_like else "dislikes", 1)
        return f"You voted on post {post_id}."

    @action
    def like_post(self, agent_id: int, post_id: PostId) -> str:
        """Like a post.

        Args:
            post_id: Number of the post.
        """
        return f"You like post {self._rate_post(agent_id, post_id, 1)} now."

    @action
    def unlike_post(self, agent_id: int, post_id: PostId) -> str:
        """Take back your like of a post.

        Args:
            post_id: Number of a post you like.
        """
        return f"You no longer like post {self._undo_post(agent_id, post_id, 1)}."

    @action
    def dislike_post(self, agent_id: int, post_id: PostId) -> str:
        """Dislike a post.

        Args:
            post_id: Number of the post.
        """
        return f"You dislike post {self._rate_post(agent_id, post_id, -1)} now."

    @action
    def undo_dislike_post(self, agent_id: int, post_id: PostId) -> str:
        """Take back your dislike of a post.

        Args:
            post_id: Number of a post you dislike.
        """
        return f"You no longer dislike post {self._undo_post(agent_id, post_id, -1)}."

    @action
    def like_comment(self, agent_id: int, comment_id: CommentId) -> str:
        """Like a comment.

        Args:
            comment_id: Number of the comment.
        """
        self._rate_comment(agent_id, comment_id, 1)
        return f"You like comment {comment_id} now."

    @action
    def unlike_comment(self, agent_id: int, comment_id: CommentId) -> str:
        """Take back your like of a comment.

        Args:
            comment_id: Number of a comment you like.
        """
        self._undo_comment(agent_id, comment_id, 1)
        return f"You no longer like comment {comment_id}."

    @action
    def dislike_comment(self, agent_id: int, comment_id: CommentId) -> str:
        """Dislike a comment.

        Args:
            comment_id: Number of the comment.
        """
        self._rate_comment(agent_id, comment_id, -1)
        return f"You dislike comment {comment_id} now."

    @action
    def undo_dislike_comment(self, agent_id: int, comment_id: CommentId) -> str:
        """Take back your dislike of a comment.

        Args:
            comment_id: Number of a comment you dislike.
        """
        self._undo_comment(agent_id, comment_id, -1)
        return f"You no longer dislike comment {comment_id}."

    @action
    def report_post(self, agent_id: int, post_id: PostId, reason: Reason) -> str:
        """Report a post that breaks the rules; readers are warned of posts that were reported several times.

        Args:
            post_id: Number of the post.
            reason: What is wrong with it.
        """
        self.acting(agent_id)
        target = self.source_id(post_id)
        text = self.cleaned(reason, "reason")
        row = (agent_id, target, text, self.step)
        if not self.store.write("INSERT OR IGNORE INTO report VALUES (?, ?, ?, ?)", *row):
            raise ToolError(f"You have reported post {target} already.")
        self.count_on_post(target, "reports", 1)
        return f"You reported post {target}."

    def _vote_on(self, kind: Literal["post", "comment"], agent_id: int, target: int) -> int | None:
        query = f"SELECT value FROM {kind}_vote WHERE user_id = ? AND {kind}_id = ?"
        row = self.store.first(query, agent_id, target)
        return None if row is None else int(row[0])

    def _check_free(self, kind: Literal["post", "comment"], agent_id: int, target: int, value: int) -> None:
        """Refuse a second vote of one user on one thing."""
        earlier = self._vote_on(kind, agent_id, target)
        if earlier is None:
            return
        if earlier == value:
            raise ToolError(f"You {VERBS[value]} {kind} {target} already.")
        undo = (UNDO_POST if kind == "post" else UNDO_COMMENT)[earlier]
        advice = f"{undo} takes that back" if undo in self.settings.actions else "that vote stands"
        raise ToolError(f"You {VERBS[earlier]} {kind} {target}; {advice}.")

    def _rate_post(self, agent_id: int, post_id: int, value: int) -> int:
        self.acting(agent_id)
        target = self.source_id(post_id)
        if self.author_of(target) == agent_id and not self.settings.self_rating:
            raise ToolError(f"Post {target} is your own; rate what others wrote.")
        self._check_free("post", agent_id, target, value)
        self.store.write("INSERT INTO post_vote VALUES (?, ?, ?, ?)", agent_id, target, value, self.step)
        self.count_on_post(target, f"{VERBS[value]}s", 1)
        if value > 0:
            self.notify_author(target, "like", agent_id)
        return target

    def _undo_post(self, agent_id: int, post_id: int, value: int) -> int:
        self.acting(agent_id)
        target = self.source_id(post_id)
        delete = "DELETE FROM post_vote WHERE user_id = ? AND post_id = ? AND value = ?"
        if not self.store.write(delete, agent_id, target, value):
            raise ToolError(f"You do not {VERBS[value]} post {target}.")
        self.count_on_post(target, f"{VERBS[value]}s", -1)
        if value > 0:
            self.inbox.take_back(self.author_of(target), "like", agent_id, target)
        return target

    def _comment(self, comment_id: int) -> tuple[int, int]:
        """Return the author of a comment, and the post it stands under."""
        query = "SELECT user_id, post_id FROM comment WHERE comment_id = ?"
        row = self.store.first(query, comment_id) if 0 < comment_id <= self.n_comments else None
        if row is None:
            raise ToolError(f"There is no comment {comment_id}; use the number of a comment you were shown.")
        return int(row[0]), int(row[1])

    def _rate_comment(self, agent_id: int, comment_id: int, value: int) -> None:
        author, post_id = self._comment(comment_id)
        if author == self.acting(agent_id) and not self.settings.self_rating:
            raise ToolError(f"Comment {comment_id} is your own; rate what others wrote.")
        self._check_free("comment", agent_id, comment_id, value)
        self.store.write("INSERT INTO comment_vote VALUES (?, ?, ?, ?)", agent_id, comment_id, value, self.step)
        self._count_on_comment(comment_id, post_id, VERBS[value], 1)
        if value > 0:
            self.inbox.add(author, Notice("comment_like", agent_id, self.step, post_id, comment_id))

    def _undo_comment(self, agent_id: int, comment_id: int, value: int) -> None:
        self.acting(agent_id)
        author, post_id = self._comment(comment_id)
        delete = "DELETE FROM comment_vote WHERE user_id = ? AND comment_id = ? AND value = ?"
        if not self.store.write(delete, agent_id, comment_id, value):
            raise ToolError(f"You do not {VERBS[value]} comment {comment_id}.")
        self._count_on_comment(comment_id, post_id, VERBS[value], -1)
        if value > 0:
            self.inbox.take_back(author, "comment_like", agent_id, post_id, comment_id)

    def _count_on_comment(self, comment_id: int, post_id: int, verb: str, change: int) -> None:
        column = f"{verb}s"
        self.store.write(f"UPDATE comment SET {column} = {column} + ? WHERE comment_id = ?", change, comment_id)
        self.words_changed()
