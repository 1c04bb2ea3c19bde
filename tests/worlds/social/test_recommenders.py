"""Which posts the feeds choose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mesa_llm.errors import ConfigError
from mesa_llm_models.social.world import Account, HotFeed, SimSwarmFeed, SocialWorld, XFeed
from mesa_llm_models.social.world.recommenders import HOT_EPOCH_S, Ragged, hot_scores, sampled


def world_of(authors: list[int], feed: Any, users: int = 9, **changes: Any) -> SocialWorld:
    """Make a world in which these users have posted, one after another, in step 0."""
    world = SocialWorld("reddit", rng=5, feed=feed, **changes)
    world.sign_up_many(Account(number) for number in range(1, users + 1))
    for author in authors:
        world.create_post(author, f"by {author}")
    return world


def test_newest_shows_the_latest_posts_first() -> None:
    assert world_of([1, 2, 3], "newest").feed(9, size=2) == [3, 2]


@pytest.mark.parametrize("feed", ["newest", "simswarm", "reddit_hot", "x"])
def test_muted_authors_and_what_others_pass_on_of_theirs_are_hidden(feed: str) -> None:
    world = world_of([1, 2, 3], feed)
    world.repost(4, 1)
    world.follow(9, 4)
    world.mute(9, 1)
    source_ids = {world.measures.posts_table()[post_id - 1]["source_id"] for post_id in world.feed(9, size=10)}
    assert source_ids == {2, 3}


def test_simswarm_scores_as_its_formula_says() -> None:
    world = world_of([1, 2], SimSwarmFeed())
    world.end_step()
    world.create_post(3, "later")
    world.like_post(4, 1)
    world.repost(5, 1)
    world.follow(9, 2)
    ours = {1: 0.4 * math.log(3) + 0.15, 2: 0.3, 3: 0.3 + 0.15}
    assert world.feed(9) == sorted(ours, key=lambda post_id: -ours[post_id])


def test_simswarm_lets_dislikes_sink_a_post_only_under_corrected_rules() -> None:
    orders: list[list[int]] = []
    for rules in ("corrected", "original"):
        world = world_of([1, 2], "simswarm", rules=rules, self_rating=True)
        world.vote(3, 1, 1)
        world.vote(4, 1, -1)
        world.vote(5, 1, -1)
        world.vote(6, 2, 1)
        world.vote(7, 2, -1)
        world.vote(8, 2, 1)
        world.vote(9, 1, 1)
        orders.append(world.feed(9))
    assert orders == [[2, 1], [1, 2]]


def test_simswarm_merges_followed_and_other_authors_exactly() -> None:
    rng = np.random.default_rng(3)
    world = world_of(rng.integers(1, 40, 300).tolist(), SimSwarmFeed(echo=0.3), users=60)
    for post_id in rng.integers(1, 301, 500).tolist():
        world.count_on_post(post_id, "likes", 1)
    for followee in range(1, 20):
        world.follow(60, followee)
    table = world.measures.posts_table()
    score = {
        row["post_id"]: (0.3 + 0.4 * math.log(1 + row["likes"])) + (0.3 if row["user_id"] < 20 else 0.3 * 0.7)
        for row in table
    }
    assert world.feed(60, size=40) == sorted(score, key=lambda post_id: -score[post_id])[:40]


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_weights_that_are_no_numbers_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="popularity must be a finite number"):
        SimSwarmFeed(popularity=weight)


def test_hot_scores_of_code_and_paper_differ_as_oasis_documents() -> None:
    created_s = np.array([HOT_EPOCH_S + 45_000.0] * 3)
    votes = np.array([10, 0, -100])
    assert hot_scores(votes, created_s, "code") == pytest.approx([2, 1, -1])
    assert hot_scores(votes, created_s, "paper") == pytest.approx([2, 0, 1])


def test_hot_counts_a_step_as_its_minutes() -> None:
    world = world_of([1], HotFeed(), step_minutes=45_000 / 60)
    world.end_step()
    world.create_post(2, "newer by as much as ten votes weigh")
    world.count_on_post(1, "likes", 9)
    assert world.feed(9) == [2, 1]
    world.count_on_post(1, "likes", 2)
    assert world.feed(9) == [1, 2]


def test_hot_draws_each_viewers_posts_from_the_top_of_the_list() -> None:
    world = world_of([1] * 30, HotFeed(pool=10), feed_size=4)
    feeds = [world.feed(user) for user in range(2, 10)]
    assert all(len(feed) == 4 and set(feed) <= set(range(1, 11)) for feed in feeds)
    assert len({tuple(feed) for feed in feeds}) > 1


def test_x_shows_the_most_liked_of_followed_users_then_others() -> None:
    world = world_of([1, 1, 1, 1, 2, 3, 9], XFeed(following_posts=3, other_posts=2))
    world.follow(9, 1)
    for user, post_id in ((4, 2), (5, 2), (6, 4)):
        world.like_post(user, post_id)
    feed = world.feed(9)
    assert feed[:3] == [2, 4, 3]
    assert sorted(feed[3:]) == [5, 6]


def test_x_shows_what_followed_users_repost_once() -> None:
    world = world_of([1], XFeed(other_posts=0))
    world.repost(2, 1)
    world.repost(3, 1)
    world.follow_many([(9, 2), (9, 3)])
    assert world.feed(9) == [3]


def test_a_feed_stays_the_same_within_a_step_and_is_drawn_anew_in_the_next() -> None:
    world = world_of([1] * 40, XFeed(pool=40))
    first = [world.feed(user) for user in range(2, 10)]
    assert first == [world.feed(user) for user in reversed(range(2, 10))][::-1]
    world.end_step()
    assert first != [world.feed(user) for user in range(2, 10)]


def test_feeds_of_equal_seeds_are_equal() -> None:
    one, other = (world_of([1] * 40, "x") for _ in range(2))
    assert [one.feed(user) for user in range(2, 10)] == [other.feed(user) for user in range(2, 10)]


def test_unknown_feeds_are_refused() -> None:
    with pytest.raises(ConfigError, match="there is no feed 'best'"):
        SocialWorld("x", feed="best")


def test_random_posts_are_drawn_evenly_for_each_viewer_anew_in_each_step() -> None:
    world = world_of([1, 2, 3, 4] * 50, "random")
    world.mute(9, 1)
    seen = [post_id for _ in range(200) for post_id in world.feed(9, size=3) if not world.end_step()]
    assert len(seen) == 600
    assert {world.author_of(post_id) for post_id in seen} == {2, 3, 4}
    assert len(set(seen)) > 140
    assert world.feed(9, size=3) == world.feed(9, size=3) != world.feed(8, size=3)
    assert world.feed(9, size=500) == [post_id for post_id in range(200, 0, -1) if post_id % 4 != 1]


def test_x_without_a_recommender_shows_only_posts_of_those_followed() -> None:
    world = world_of([1, 2, 3], "x_followed")
    world.follow(9, 2)
    assert (world.feed(9), world.feed(8)) == ([2], [])


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("first_seed", [0, 2**64 - 500])
def test_each_viewer_draws_the_same_alone_and_among_many(first_seed: int, size: int) -> None:
    lengths = [(0, 1, 7, 8, 50, 300)[index % 6] for index in range(500)]
    lists = Ragged.of([range(1000, 1000 + length) for length in lengths])
    together = sampled(lists, size, [first_seed + index for index in range(500)])
    for index, length in enumerate(lengths):
        drawn = together[index].tolist()
        assert len(drawn) == min(size, length)
        assert drawn == sorted(set(drawn) & set(lists[index].tolist()))
        assert drawn == sampled(Ragged.of([lists[index]]), size, [first_seed + index])[0].tolist()


def test_all_posts_and_all_pairs_of_posts_are_drawn_equally_often() -> None:
    n, posts, size = 40_000, 9, 3
    drawn = sampled(Ragged.of([range(posts)] * n), size, range(2**40, 2**40 + n)).values.reshape(n, size)
    is_drawn = (drawn[:, :, None] == np.arange(posts)).any(axis=1).astype(float)
    together = is_drawn.T @ is_drawn / n
    np.testing.assert_allclose(np.diag(together), size / posts, atol=0.012)
    expected = size * (size - 1) / posts / (posts - 1)
    np.testing.assert_allclose(together[~np.eye(posts, dtype=bool)], expected, atol=0.008)
