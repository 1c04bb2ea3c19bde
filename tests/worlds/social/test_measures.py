"""Events, cascades, counts and files of the social world."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm_models.social.world import Account, SocialWorld


def world_of(users: int, preset: str = "x", **changes: Any) -> SocialWorld:
    """Make a world of users whose first has published post 1."""
    world = SocialWorld(preset, rng=1, **changes)
    world.sign_up_many(Account(number) for number in range(1, users + 1))
    world.create_post(1, "Bread at six.")
    return world


def test_a_post_is_reported_as_viral_once() -> None:
    world = world_of(9)
    for user in (2, 3, 4):
        world.like_post(user, 1)
    assert world.end_step() == []
    world.repost(5, 1)
    world.repost(6, 1)
    (event,) = world.end_step()
    assert (event.kind, event.source, event.time) == ("viral_post", "social", 2)
    assert event.facts == {
        "post_id": 1, "author_id": 1, "author": "user 1", "text": "Bread at six.", "score": 5
    }  # fmt: skip
    assert world.end_step() == []


def test_dislikes_make_nothing_viral() -> None:
    world = world_of(9, viral_threshold=2)
    for user in range(2, 9):
        world.dislike_post(user, 1)
    assert world.end_step() == []


def test_a_cascade_grows_by_users_not_posts() -> None:
    world = world_of(9)
    world.repost(2, 1)
    world.end_step()
    world.repost(3, 2)
    world.repost(4, 3)
    world.quote_post(4, 1, "again")
    world.repost(5, 1)
    cascade = world.measures.cascade(1)
    assert (cascade.steps, cascade.size, cascade.depth, cascade.breadth) == ((0, 1), (2, 5), (1, 3), (1, 2))


def test_a_cascade_of_reposts_only_leaves_out_what_came_through_quotes() -> None:
    world = world_of(9)
    world.quote_post(2, 1, "look")
    world.repost(3, 2)
    world.repost(4, 1)
    assert world.measures.cascade(1, kinds=("repost",)).size == (2,)
    assert world.measures.cascade(1).size == (4,)


def test_cascades_of_unknown_posts_are_refused() -> None:
    with pytest.raises(ToolError, match="There is no post 7"):
        world_of(2).measures.cascade(7)


def test_counts_by_step_add_up_to_the_totals() -> None:
    world = world_of(9)
    world.like_post(2, 1)
    world.follow(2, 1)
    world.end_step()
    world.create_comment(3, 1, "late")
    world.repost(3, 1)
    counts = world.measures.counts_per_step()
    assert [(row["posts"], row["likes"], row["comments"], row["reposts"]) for row in counts] == [
        (1, 1, 0, 0),
        (0, 0, 1, 1),
    ]
    totals = world.measures.totals()
    assert (totals["likes"], totals["comments"], totals["repost"], totals["follows"]) == (1, 1, 1, 1)


def test_original_reposts_are_counted_too() -> None:
    world = world_of(2, "simswarm", rules="original")
    world.repost(1, 1)
    world.repost(1, 1)
    assert world.measures.counts_per_step()[0]["reposts"] == 2
    assert len(world.measures.posts_table()) == 1


def test_original_reposts_make_cascades_one_deep() -> None:
    world = world_of(4, "simswarm", rules="original")
    world.repost(2, 1)
    world.repost(2, 1)
    world.repost(3, 1)
    cascade = world.measures.cascade(1)
    assert (cascade.size, cascade.depth, world.measures.largest_cascade()) == ((3,), (1,), 3)


def test_without_posts_there_is_no_largest_cascade() -> None:
    assert SocialWorld("x").measures.largest_cascade() == 0


def test_a_world_in_a_file_can_be_read_by_others(tmp_path: Path) -> None:
    world = world_of(2, path=tmp_path / "world.db")
    world.end_step()
    world.close()
    with sqlite3.connect(tmp_path / "world.db") as connection:
        assert connection.execute("SELECT content FROM post").fetchall() == [("Bread at six.",)]


def test_a_resumed_run_writes_its_file_anew(tmp_path: Path) -> None:
    first = world_of(2, path=tmp_path / "world.db")
    first.close()
    again = world_of(2, path=tmp_path / "world.db")
    assert len(again.measures.posts_table()) == 1
    again.close()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary, " * 100, encoding="utf-8")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE mine (a)")
    for name, why in (("notes.txt", "is not a database"), ("other.db", "of another kind")):
        with pytest.raises(ConfigError, match=why):
            SocialWorld(path=tmp_path / name)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8").startswith("dear diary")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"feedsize": 3}, "no parameter 'feedsize'; it has actions, feed"),
        ({"feed_size": -1}, "feed_size must be a finite number of 0 or more"),
        ({"step_minutes": float("nan")}, "step_minutes must be a finite number"),
        ({"actions": ("sign_up",)}, "no action 'sign_up'"),
        ({"rules": "loose"}, "rules must be"),
        ({"settings": "facebook"}, "no preset 'facebook'; choose one of simswarm"),
    ],
)
def test_parameters_that_cannot_work_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        SocialWorld(**changes)


def test_a_measure_is_still_found_on_the_world_for_a_release() -> None:
    world = world_of(2)
    with pytest.warns(DeprecationWarning, match=r"world\.totals is now world\.measures\.totals"):
        assert world.totals() == world.measures.totals()
    with pytest.raises(AttributeError, match="has no attribute 'total'"):
        _ = world.total
