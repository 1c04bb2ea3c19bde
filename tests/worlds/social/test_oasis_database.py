"""OASIS's database of a social world: what the actions of users add up to; tests/golden/test_oasis.py has all rows."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.social.world import Account, SocialWorld, write_oasis_database


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("preset", ["simswarm", "x", "reddit"])
def test_the_counts_are_those_of_the_world(preset: str, tmp_path: Path) -> None:
    model = SocialModel(n_agents=12, preset=preset, llm="random", rng=1)
    model.run_for(5)
    path, world = tmp_path / "oasis.db", model.world
    write_oasis_database(world, path)
    names = ("likes", "dislikes", "reports")
    posts = rows(path, "SELECT num_likes, num_dislikes, num_reports FROM post")
    assert posts == list(zip(*(world.posts[name].tolist() for name in names), strict=True))
    users = rows(path, "SELECT user_id, num_followings, num_followers FROM user")
    assert [user[0] for user in users] == list(range(12))
    assert [user[1:] for user in users] == list(
        zip(*(world.users[name][1:].tolist() for name in ("followings", "followers")), strict=True)
    )
    assert len(rows(path, "SELECT * FROM follow")) == len(world.follows)


def test_original_rules_only_count_reposts_and_follow_unknown_users(tmp_path: Path) -> None:
    world = SocialWorld("simswarm", rules="original")
    world.sign_up_many(Account(number) for number in (1, 2))
    world.create_post(1, "Bread.")
    world.repost(2, 1)
    world.vote(2, 1, -1)
    world.follow(2, 99)
    write_oasis_database(world, tmp_path / "oasis.db")
    assert rows(tmp_path / "oasis.db", "SELECT num_shares, num_dislikes FROM post") == [(1, 1)]
    assert rows(tmp_path / "oasis.db", "SELECT follower_id, followee_id FROM follow") == [(1, 98)]


def test_follows_in_bulk_come_first_and_those_undone_leave_a_gap(tmp_path: Path) -> None:
    world = SocialWorld("x")
    world.sign_up_many(Account(number) for number in range(1, 5))
    world.follow_many([(1, 2), (3, 4)])
    for user in (2, 3, 4):
        world.follow(user, 1)
    world.unfollow(3, 1)
    world.unfollow(3, 4)
    write_oasis_database(world, tmp_path / "oasis.db")
    assert rows(tmp_path / "oasis.db", "SELECT * FROM follow") == [(1, 0, 1, 0), (3, 1, 0, 0), (5, 3, 0, 0)]
    assert rows(tmp_path / "oasis.db", "SELECT num_followings FROM user") == [(1,), (1,), (0,), (1,)]


def test_what_users_read_stands_before_what_they_do_sorted_by_user(tmp_path: Path) -> None:
    world = SocialWorld("reddit")
    world.sign_up_many(Account(number) for number in (1, 2))
    world.create_post(1, "Bread.")
    world.end_step()
    world.expect([2, 1])
    world.search_posts(2, "bread")
    world.trend(1)
    world.do_nothing(2)
    write_oasis_database(world, tmp_path / "oasis.db", start=datetime(2026, 1, 1))
    traces = rows(tmp_path / "oasis.db", "SELECT user_id, action FROM trace ORDER BY rowid")[3:]
    assert traces == [(0, "refresh"), (0, "trend"), (1, "refresh"), (1, "search_posts"), (1, "do_nothing")]
    ((info, created),) = rows(tmp_path / "oasis.db", "SELECT info, created_at FROM trace WHERE action = 'trend'")
    assert (json.loads(info)["posts"][0]["content"], created) == ("Bread.", "2026-01-01 00:03:00")


def test_only_a_database_of_the_same_kind_is_replaced(tmp_path: Path) -> None:
    world, path = SocialWorld("x"), tmp_path / "oasis.db"
    for _ in range(2):
        write_oasis_database(world, path)
    assert [file.name for file in tmp_path.iterdir()] == ["oasis.db"]
    path.write_text("notes")
    with pytest.raises(ConfigError, match="is not a database"):
        write_oasis_database(world, path)
    with pytest.raises(ConfigError, match="cannot be written"):
        write_oasis_database(world, tmp_path / "no folder" / "oasis.db")
