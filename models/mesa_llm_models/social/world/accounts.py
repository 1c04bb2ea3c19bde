"""Accounts of a social world and their initial follows, in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import batched
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from mesa_llm.errors import ConfigError
from mesa_llm.text import MAX_NAME, one_line
from mesa_llm_models.social.world.csr import IntArray, halves
from mesa_llm_models.social.world.state import UNPRINTABLE, SocialState

MAX_USER_ID = 100_000_000
"""Maximum user id. Arrays are indexed by id, so ids should be dense."""

BATCH = 10_000
"""Number of accounts written at once."""

MANY = 1_000_000
"""Number of follows checked and counted at once."""

UserId = Annotated[int, Field(gt=0, le=MAX_USER_ID)]


class Account(NamedTuple):
    """Sign-up data of a user."""

    user_id: int
    """Mesa `unique_id` of the agent."""

    name: str = ""
    """Name visible to others; empty for `user` and the id."""

    username: str = ""
    """Its handle."""

    bio: str = ""
    """Public profile."""


class SocialAccounts(SocialState):
    """Sign-up of users, and follows in bulk."""

    def sign_up(self, user_id: int, name: str = "", username: str = "", bio: str = "") -> None:
        """Create an account for an agent.

        Raises:
            ConfigError: If the id is taken or out of range.
        """
        self.sign_up_many([Account(user_id, name, username, bio)])

    def sign_up_many(self, accounts: Iterable[Account]) -> None:
        """Create accounts for many agents at once.

        Raises:
            ConfigError: If an id is taken, repeated or out of range; then nobody is signed up.
        """
        signed_up: list[IntArray] = []
        self.store.write("SAVEPOINT sign_up")
        try:
            for batch in batched(accounts, BATCH):
                rows = [self._user_row(account) for account in batch]
                ids = np.array([row[0] for row in rows], dtype=np.int64)
                self.users.grow(max(int(ids.max()) + 1, len(self.users)))
                if len(np.unique(ids)) < len(ids) or self.users["is_user"][ids].any():
                    known = set(ids[self.users["is_user"][ids] > 0].tolist())
                    twice = next(
                        user_id for index, user_id in enumerate(ids) if user_id in known or user_id in ids[:index]
                    )
                    raise ConfigError(f"user {twice} already has an account")
                self.store.insert("user", rows)
                self.users["is_user"][ids] = 1
                signed_up.append(ids)
        except BaseException:
            self.store.write("ROLLBACK TO sign_up")
            for ids in signed_up:
                self.users["is_user"][ids] = 0
            raise
        finally:
            self.store.write("RELEASE sign_up")
        self.counts["users"] += sum(map(len, signed_up))

    def _user_row(self, account: Account) -> tuple[int, str, str, str, int, int, int]:
        """Return an account as a row of the table of users.

        Raises:
            ConfigError: If its id is out of range.
        """
        user_id = account.user_id
        if not 0 < user_id <= MAX_USER_ID:
            raise ConfigError(f"user ids run from 1 to {MAX_USER_ID}, got {user_id}")
        name, username = (one_line(text, MAX_NAME) for text in (account.name, account.username))
        return user_id, username, name or f"user {user_id}", UNPRINTABLE.sub("", account.bio), self.step, 0, 0

    def follow_many(self, edges: IntArray | Sequence[tuple[int, int]]) -> int:
        """Let many users follow others at once, without notices. Return the number of new follows.

        Args:
            edges: User ids as (follower, followee), shape `(edges, 2)`. Duplicates count once.

        Raises:
            ConfigError: If an id is unknown or a user would follow itself; then nothing is written.
        """
        pairs = np.asarray(edges if isinstance(edges, np.ndarray) else list(edges))
        pairs = pairs.astype(np.int64, copy=False).reshape(-1, 2) if pairs.dtype.kind != "i" else pairs.reshape(-1, 2)
        for start in range(0, len(pairs), MANY):
            self._check_follows(pairs[start : start + MANY])
        new = self.follows.add_many(pairs)
        for start in range(0, len(new), MANY):
            for name, ids in zip(("followings", "followers"), halves(new, slice(start, start + MANY)), strict=True):
                np.add.at(self.users[name], ids, 1)
        if len(new):
            self._unwritten_follows.append((new, self.step))
        self.feeds_changed()
        return len(new)

    def _check_follows(self, pairs: IntArray) -> None:
        """Check that users can follow others.

        Raises:
            ConfigError: If an id is unknown or a user would follow itself.
        """
        has_account = self.users["is_user"] > 0 if len(self.users) else np.zeros(1, dtype=np.bool_)
        is_inside = (pairs >= 0) & (pairs < len(has_account))
        wrong = ~(is_inside & has_account[np.where(is_inside, pairs, 0)]).all(axis=1) | (pairs[:, 0] == pairs[:, 1])
        if wrong.any():
            follower, followee = pairs[np.argmax(wrong)]
            reason = "nobody follows itself" if follower == followee else "both need an account first"
            raise ConfigError(f"user {follower} cannot follow user {followee}: {reason}")
