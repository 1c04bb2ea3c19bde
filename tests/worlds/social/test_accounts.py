"""Signing up and following in bulk."""

from __future__ import annotations

import numpy as np
import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.worlds.social import Account, SocialWorld


def crowd(size: int) -> SocialWorld:
    world = SocialWorld("x", rng=1)
    world.sign_up_many(Account(number) for number in range(1, size + 1))
    return world


@pytest.mark.parametrize(
    ("accounts", "why"),
    [
        ([Account(0)], "run from 1"),
        ([Account(10**9)], "run from 1"),
        ([Account(3), Account(3)], "user 3 has an account already"),
        ([Account(9), Account(1)], "user 1 has an account already"),
    ],
)
def test_bad_accounts_are_refused_all_together(accounts: list[Account], why: str) -> None:
    world = crowd(2)
    before = world.digest()
    with pytest.raises(ConfigError, match=why):
        world.sign_up_many(accounts)
    assert world.digest() == before


def test_names_are_one_short_line_and_never_empty() -> None:
    world = SocialWorld("x")
    world.sign_up_many([Account(1, "Ann\n(user 9)\x00"), Account(2, "  "), Account(3, "x" * 500)])
    assert world.names == {1: "Ann (user 9)", 2: "user 2", 3: "x" * 79 + "…"}


def test_follows_in_bulk_equal_follows_one_by_one() -> None:
    edges = [(1, 2), (3, 2), (2, 1)]
    bulk, single = crowd(3), crowd(3)
    assert bulk.follow_many(edges) == 3
    for follower, followee in edges:
        single.follow(follower, followee)
    assert bulk.digest() == single.digest()
    assert [bulk.facts(user).followers for user in (1, 2, 3)] == [1, 2, 0]


def test_follows_known_already_are_not_counted_twice() -> None:
    world = crowd(3)
    world.follow(1, 2)
    assert world.follow_many([(1, 2), (1, 3), (1, 3)]) == 1
    assert world.facts(1).followings == 2


@pytest.mark.parametrize(
    ("edge", "why"),
    [((2, 2), "nobody follows itself"), ((1, 9), "both need an account"), ((-5, 1), "both need an account")],
)
def test_impossible_follows_are_refused_all_together(edge: tuple[int, int], why: str) -> None:
    world = crowd(3)
    with pytest.raises(ConfigError, match=why):
        world.follow_many([(1, 2), edge])
    assert world.follow_edges().tolist() == []


def test_no_edges_are_no_follows_even_in_an_empty_world() -> None:
    assert SocialWorld("x").follow_many(np.empty((0, 2), dtype=np.int64)) == 0
