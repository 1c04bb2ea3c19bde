"""The social world at scale: batches of feeds, compact follows, what is looked at again, tables that others read."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.engine.activation import Hourly, RandomShare, uniform_draws
from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.population import invented
from mesa_llm.population.columns import InventedPeople
from mesa_llm.population.follows import preferential_edges
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.social.world import Account, SocialWorld
from mesa_llm_models.social.world.csr import FollowMatrix
from mesa_llm_models.social.world.post_index import POOL

PAPER_TABLES = (
    *("user", "post", "comment", "like", "dislike", "comment_like", "comment_dislike", "follow", "mute", "report"),
    *("trace", "rec", "product", "chat_group", "group_members", "group_messages"),
)
"""The tables of OASIS (Yang et al. 2024, section 2.2), as its code names them."""

FEEDS = ("newest", "simswarm", "reddit_hot", "x")


def lively(feed: Any, users: int = 40, actions: int = 300, seed: int = 1, **changes: Any) -> SocialWorld:
    """Make a world in which users have followed, muted, posted, voted, reposted and reported at random."""
    world = SocialWorld("x", rng=3, feed=feed, **changes)
    world.sign_up_many(Account(number) for number in range(1, users + 1))
    rng = random.Random(seed)
    names = ("create_post", "like_post", "repost", "quote_post", "reply", "follow", "unfollow", "mute", "report_post")
    for index in range(actions):
        name, user = rng.choice(names), rng.randint(1, users)
        of_user = name in ("follow", "unfollow", "mute")
        ids = () if name == "create_post" else (rng.randint(1, users if of_user else len(world.posts) + 1),)
        words = ("words",) if name in ("create_post", "quote_post", "reply", "report_post") else ()
        try:
            getattr(world, name)(user, *ids, *words)
        except ToolError:
            continue
        if index % 60 == 0:
            world.end_step()
    return world


@settings(max_examples=12)
@given(st.sampled_from(FEEDS), st.integers(0, 10**6), st.integers(1, 60))
def test_a_batch_of_feeds_equals_single_feeds_also_with_mutes(feed: str, seed: int, size: int) -> None:
    world = lively(feed, seed=seed, hide_reports=2)
    users = list(range(1, 41))
    together = world.feeds(world.viewers(users), size)
    assert together == [world.feed(user, size) for user in users]
    world.expect(users)
    ahead = [world.observe(user) for user in users]
    world.feeds_changed()
    assert [world.observe(user) for user in users] == ahead


@settings(max_examples=8)
@given(st.sampled_from(FEEDS), st.integers(0, 10**6))
def test_rankings_kept_up_to_date_equal_rankings_of_everything(feed: str, seed: int) -> None:
    world, rng = lively(feed, seed=seed), random.Random(seed)
    for post in range(2 * POOL + 50):
        world.create_post(1 + post % 40, "more")
    for round_number in range(12):
        world.feed(1)
        for post_id in rng.sample(range(1, len(world.posts) + 1), 40):
            world.count_on_post(post_id, rng.choice(("likes", "dislikes", "likes", "shares")), rng.choice((1, 1, 5)))
        if round_number % 3 == 0:
            world.end_step()
            world.create_post(3, "later")
        kept = [world.feed(user, 30) for user in (1, 2, 3)]
        world.board.forget_rankings()
        world.posts_changed()
        assert [world.feed(user, 30) for user in (1, 2, 3)] == kept


class OneByOne:
    """A feed of one's own, for one viewer at a time: what it follows, by masks."""

    def rank(self, board: Any) -> Any:
        """Find the posts of whom a viewer follows, and of nobody it muted."""

        def pick(viewer: Any, size: int) -> Any:
            rows = np.flatnonzero(viewer.follows[board.author])
            hidden = viewer.hidden
            return (rows if hidden is None else rows[~hidden[board.author[rows]]])[:size]

        return pick


def test_a_feed_of_ones_own_may_be_a_function_of_one_viewer() -> None:
    world = SocialWorld("x", feed=OneByOne())
    world.sign_up_many(Account(number) for number in range(1, 5))
    for author in (1, 2, 3):
        world.create_post(author, "hello")
    world.follow_many([(4, 1), (4, 3)])
    assert world.feeds(world.viewers([3, 4])) == [[], [1, 3]]
    world.mute(4, 1)
    assert world.feed(4) == [3]


@settings(max_examples=20)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9), st.integers(1, 9)), max_size=80), st.integers(0, 20))
def test_follows_equal_a_set_of_pairs(changes: list[tuple[bool, int, int]], n_bulk: int) -> None:
    rng, follows = random.Random(n_bulk), FollowMatrix()
    pairs = {(rng.randint(1, 9), rng.randint(1, 9)) for _ in range(n_bulk)}
    follows.add_many(np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2))
    for is_new, a, b in changes:
        assert (follows.add if is_new else follows.remove)(a, b) == (((a, b) in pairs) != is_new)
        (pairs.add if is_new else pairs.discard)((a, b))
    assert follows.edges().tolist() == [list(edge) for edge in sorted(pairs)]
    for users in ([3], list(range(10))):
        lists = follows.of_many(np.array(users))
        expected = [[b for a, b in sorted(pairs) if a == user] for user in users]
        assert [lists[index].tolist() for index in range(len(users))] == expected
    assert len(follows) == len(pairs)


def test_a_follow_takes_a_few_bytes_and_recent_ones_are_merged() -> None:
    world = SocialWorld("x")
    world.sign_up_many(Account(number) for number in range(1, 20_001))
    edges = preferential_edges(20_000, 10, random.Random(1)) + 1
    assert world.follow_many(edges) == 200_000
    assert world.follows.n_bytes / 200_000 < 16
    n_bytes, n_tail = world.follows.n_bytes, int(0.05 * 200_000) + 100
    for user in range(101, 101 + n_tail):
        world.follows.add(user, 20_001)
    assert world.follows.n_bytes - n_bytes > 4 * (n_tail - 100)  # four bytes each, in the compressed rows
    assert len(world.follows) == 200_000 + n_tail
    for user in range(101, 101 + n_tail):
        world.follows.remove(user, 20_001)
    assert world.users["followers"].sum() == world.users["followings"].sum() == len(world.follows)


def test_a_vote_makes_only_what_shows_the_post_look_new() -> None:
    world = SocialWorld("x")
    world.sign_up_many(Account(number) for number in range(1, 5))
    for text in ("first", "second"):
        world.create_post(1, text)
    world.repost(2, 1)
    world.quote_post(2, 1, "look")
    world.reply(3, 2, "no")
    before = {post_id: world.post_view(post_id) for post_id in range(1, 6)}
    world.like_post(3, 1)
    after = {post_id: world.post_view(post_id) for post_id in range(1, 6)}
    assert {post_id for post_id in before if before[post_id] is not after[post_id]} == {1, 3, 4}
    assert (after[3].likes, after[4].quoted and after[4].quoted.likes) == (1, 1)
    world.like_post(4, 5)
    assert world.post_view(2).replies[0].likes == 1


def test_the_database_has_the_papers_tables_which_pandas_reads(tmp_path: Any) -> None:
    path = tmp_path / "network.db"
    model = SocialModel(n_agents=12, preset="reddit", llm="random", rng=1, database=str(path))
    model.run_for(5)
    world = model.world
    world.close()
    with sqlite3.connect(path) as connection:
        tables: dict[str, Any] = {name: pd.read_sql(f'SELECT * FROM "{name}"', connection) for name in PAPER_TABLES}
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    posts, users = tables["post"], tables["user"]
    assert len(users) == 12
    assert len(posts) == len(world.posts)
    assert posts["num_likes"].tolist() == world.posts["likes"].tolist()
    assert users["num_followers"].tolist() == world.users["followers"][1:].tolist()
    assert len(tables["follow"]) == len(world.follows) == sum(users["num_followings"].tolist())
    assert len(tables["like"]) + len(tables["dislike"]) == len(world.votes)
    assert set(tables["trace"]["action"]) >= {"create_post", "create_comment"}
    assert len(set(tables["rec"]["user_id"])) <= 12


def test_another_database_is_the_same_run(tmp_path: Any) -> None:
    log = tmp_path / "run.sqlite"
    model = SocialModel(n_agents=5, rng=1, log=log, database=str(tmp_path / "one.db"))
    model.run_for(2)
    model.close()
    again = SocialModel(n_agents=5, rng=1, log=log, replay=True)
    again.run_for(2)
    assert (again.runlog.digest, again.world.measures.digest()) == (model.runlog.digest, model.world.measures.digest())


def test_follows_that_are_written_late_may_be_undone_before() -> None:
    world = SocialWorld("x")
    world.sign_up_many(Account(number) for number in range(1, 5))
    world.follow_many([(1, 2), (1, 3), (2, 3)])
    world.unfollow(1, 2)
    world.unfollow(2, 3)
    world.end_step()
    world.follow(2, 3)
    world.end_step()
    rows = world.store.rows("SELECT follower_id, followee_id, created_at FROM follow")
    assert rows == [(1, 3, 0), (2, 3, 1)]
    world.unfollow(2, 3)
    assert world.store.rows("SELECT follower_id, followee_id FROM follow") == [(1, 3)]


def test_a_searched_database_is_emptied_for_the_next_run(tmp_path: Any) -> None:
    for _ in range(2):
        world = SocialWorld("reddit", path=tmp_path / "network.db")
        world.sign_up(1, "Ann", bio="bakes bread")
        world.create_post(1, "Bread at six.")
        assert "Post 1" in world.search_posts(1, "bread")
        assert "Ann" in world.search_user(1, "bread")
        world.close()


def test_a_search_finds_what_a_text_holds_by_index_or_without() -> None:
    world = SocialWorld("reddit")
    world.sign_up_many(Account(number, f"Ann {number}", bio='50% "baker"_') for number in range(1, 4))
    for text in ("Bread AT six", "a%b", 'say "bread"', "under_score", "ÄÖÜ bread"):
        world.create_post(1, text)
    found = {query: [int(line.split()[1]) for line in world.search_posts(2, query).splitlines() if line[:4] == "Post"]
             for query in ("bread", "%", "a%b", '"bread"', "_score", "at", "ead at")}  # fmt: skip
    assert found == {"bread": [5, 3, 1], "%": [2], "a%b": [2], '"bread"': [3], "_score": [4], "at": [1], "ead at": [1]}
    world.create_post(1, "more bread")
    assert "Post 6" in world.search_posts(2, "BREAD")
    assert "Ann 2" in world.search_user(1, '% "bak')
    assert "No user" in world.search_user(1, "xyz")


def test_accounts_that_cannot_be_leave_nobody_signed_up() -> None:
    world = SocialWorld("x")
    with pytest.raises(ConfigError, match="user 1 already has an account"):
        world.sign_up_many(Account(1 + number % 20_000) for number in range(20_001))
    assert (len(world.names), world.measures.totals()["users"]) == (0, 0)
    world.sign_up(1, "Ann")
    assert dict(world.names) == {1: "Ann"}


def test_profiles_in_columns_are_those_of_the_people() -> None:
    one, other = random.Random(2), random.Random(2)
    people, personas = InventedPeople(120, one), invented(120, other)
    assert len({persona.username for persona in personas}) == 120
    assert list(people.profiles()) == [(persona.name, persona.username, persona.bio) for persona in personas]
    assert one.getstate() == other.getstate()


def test_draws_in_bulk_are_the_draws_one_by_one() -> None:
    one, other = random.Random(5), random.Random(5)
    assert uniform_draws(one, 3000).tolist() == [other.random() for _ in range(3000)]
    assert one.random() == other.random()


@pytest.mark.parametrize("activation", [RandomShare(0.02), None])
def test_who_never_acts_costs_no_memory_and_no_persona(activation: Any) -> None:
    options = {"activation": activation} if activation else {"hourly": True, "start_hour": 3.0}
    model = SocialModel(n_agents=1500, preset="x", rng=1, **options)
    if activation is None:
        assert isinstance(model.activation, Hourly)
        for user in model.agents:
            user.hours = [0.02] * 24
    model.run_for(2)
    acted = set(model.runlog.decisions()["agent"])
    assert 20 <= len(acted) <= 100
    idle = [user for user in model.agents if user.unique_id not in acted]
    assert all(set(vars(user)) <= {"model", "unique_id", "pos"} for user in idle)
    assert "occupation" in idle[0].config.text
    assert set(model.last_outcomes) <= acted
