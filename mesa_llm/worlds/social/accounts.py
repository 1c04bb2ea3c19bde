"""Who is there, who follows whom, and who mutes whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.text import MAX_NAME, one_line
from mesa_llm.tools import action
from mesa_llm.worlds.social.columns import IntArray
from mesa_llm.worlds.social.inbox import Notice
from mesa_llm.worlds.social.state import UNPRINTABLE, SocialState

LARGEST_USER_ID = 100_000_000
"""Users are numbered densely, as arrays are indexed by their ids."""

UserId = Annotated[int, Field(gt=0, le=LARGEST_USER_ID)]


class Account(NamedTuple):
    """A user, as it signs up."""

    user_id: int
    """Mesa `unique_id` of the agent."""

    name: str = ""
    """What others see; empty: `user` and the number."""

    username: str = ""
    """Its handle."""

    bio: str = ""
    """What it says of itself, for all to read."""


class Accounts(SocialState):
    """Accounts, follows and mutes."""

    def sign_up(self, user_id: int, name: str = "", username: str = "", bio: str = "") -> None:
        """Give an agent an account.

        Raises:
            ConfigError: If the id is taken or out of range.
        """
        self.sign_up_many([Account(user_id, name, username, bio)])

    def sign_up_many(self, accounts: Iterable[Account]) -> None:
        """Give many agents an account at once.

        Raises:
            ConfigError: If an id is taken, given twice or out of range; nobody is signed up then.
        """
        rows: dict[int, tuple[object, ...]] = {}
        for account in accounts:
            user_id = account.user_id
            if not 0 < user_id <= LARGEST_USER_ID:
                raise ConfigError(f"user ids run from 1 to {LARGEST_USER_ID}, got {user_id}")
            if user_id in self.names or user_id in rows:
                raise ConfigError(f"user {user_id} has an account already")
            name, username = (one_line(text, MAX_NAME) for text in (account.name, account.username))
            bio = UNPRINTABLE.sub("", account.bio)
            rows[user_id] = (user_id, name or f"user {user_id}", username, bio, self.step)
        self.store.write_many("INSERT INTO user VALUES (?, ?, ?, ?, ?)", rows.values())
        self.names.update((user_id, str(row[1])) for user_id, row in rows.items())
        self.users.grow(max(rows, default=0) + 1)

    def follow_many(self, edges: IntArray | Sequence[tuple[int, int]]) -> int:
        """Let many users follow others at once, silently; give how many follows were new.

        Args:
            edges: User ids as (follower, followee), shape `(edges, 2)`. Repeated ones count once.

        Raises:
            ConfigError: If an id is unknown or someone would follow itself; nothing is written then.
        """
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        known = np.zeros(max(len(self.users), 1), dtype=np.bool_)
        known[np.fromiter(self.names, dtype=np.int64, count=len(self.names))] = True
        inside = (pairs >= 0) & (pairs < len(known))
        wrong = ~(inside & known[np.where(inside, pairs, 0)]).all(axis=1) | (pairs[:, 0] == pairs[:, 1])
        if wrong.any():
            follower, followee = pairs[np.argmax(wrong)]
            why = "nobody follows itself" if follower == followee else "both need an account first"
            raise ConfigError(f"user {follower} cannot follow user {followee}: {why}")
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
    def follow(self, actor: int, user_id: UserId) -> str:
        """Follow a user, to see more of what they post.

        Args:
            user_id: Number of the user, as shown after a name.
        """
        self.acting(actor)
        if not self.is_original:
            self.other_user(actor, user_id, "follow")
        if not self.store.write("INSERT OR IGNORE INTO follow VALUES (?, ?, ?)", actor, user_id, self.step):
            if self.is_original:
                return f"You follow user {user_id}."
            raise ToolError(f"You follow {self.names[user_id]} (user {user_id}) already.")
        self._change_counts(actor, user_id, 1)
        if user_id in self.names:
            self.inbox.tell(user_id, Notice("follow", actor, self.step))
        return f"You follow {self.names.get(user_id, 'user')} (user {user_id}) now."

    @action
    def unfollow(self, actor: int, user_id: UserId) -> str:
        """Stop following a user.

        Args:
            user_id: Number of a user you follow.
        """
        self.acting(actor)
        if not self.store.write("DELETE FROM follow WHERE follower_id = ? AND followee_id = ?", actor, user_id):
            raise ToolError(f"You do not follow user {user_id}.")
        self._change_counts(actor, user_id, -1)
        self.inbox.take_back(user_id, "follow", actor)
        return f"You no longer follow {self.names.get(user_id, 'user')} (user {user_id})."

    def _change_counts(self, follower: int, followee: int, change: int) -> None:
        self.users.add("followings", follower, change)
        if followee < len(self.users):
            self.users.add("followers", followee, change)
        self.ties_changed(follower)

    @action
    def mute(self, actor: int, user_id: UserId) -> str:
        """Mute a user: you no longer see what they post and write.

        Args:
            user_id: Number of the user, as shown after a name.
        """
        self.other_user(self.acting(actor), user_id, "mute")
        if not self.store.write("INSERT OR IGNORE INTO mute VALUES (?, ?, ?)", actor, user_id, self.step):
            raise ToolError(f"You have muted {self.names[user_id]} (user {user_id}) already.")
        self.ties_changed(actor)
        return f"You muted {self.names[user_id]} (user {user_id})."

    @action
    def unmute(self, actor: int, user_id: UserId) -> str:
        """Stop muting a user: you see again what they post.

        Args:
            user_id: Number of a user you muted.
        """
        self.acting(actor)
        if not self.store.write("DELETE FROM mute WHERE muter_id = ? AND mutee_id = ?", actor, user_id):
            raise ToolError(f"You have not muted user {user_id}.")
        self.ties_changed(actor)
        return f"You no longer mute {self.names.get(user_id, 'user')} (user {user_id})."
