"""The best posts of those whom a viewer follows, from shortlists and from all posts."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.errors import ToolError
from mesa_llm_models.social.world import Account, SimSwarmFeed, SocialWorld
from mesa_llm_models.social.world import shortlists as module
from mesa_llm_models.social.world.recommenders import likes_of_source
from mesa_llm_models.social.world.shortlists import Shortlists, followed_posts

NAMES = ("create_post", "repost", "quote_post", "reply", "mute", "unmute", "report_post", "unfollow")

USERS = 4
"""Few, so that each has published more than a shortlist has room for."""


def act(world: SocialWorld, rng: random.Random) -> None:
    """Let a user publish or vote, or do something else at random; what is refused is not done."""
    name, user = rng.choice(("rate", "rate", "rate", rng.choice(NAMES))), rng.randint(1, USERS)
    post_id = rng.randint(1, max(len(world.posts), 1))
    if name == "rate":
        source_id = world.source_id(post_id)
        has_likes = world.posts.get("likes", source_id - 1) > 0
        world.count_on_post(source_id, "likes", -1 if has_likes and rng.random() < 0.7 else 1)
        return
    ids = (
        () if name == "create_post" else (rng.randint(1, USERS) if name in ("unfollow", "mute", "unmute") else post_id,)
    )
    words = ("words",) if name in ("create_post", "quote_post", "reply", "report_post") else ()
    try:
        getattr(world, name)(user, *ids, *words)
    except ToolError:
        return


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([20, 4096]))
def test_shortlists_give_what_a_ranking_of_all_posts_gives(seed: int, size: int, tail: int) -> None:
    rng, world = random.Random(seed), SocialWorld("x", rng=1, hide_reports=2, self_rating=True)
    world.sign_up_many(Account(number) for number in range(1, USERS + 1))
    world.follow_many([(a, b) for a in range(1, USERS + 1) for b in range(1, USERS + 1) if a != b])
    for index in range(60):
        world.create_post(1 + index % USERS, "words")
        if index % 8 == 0:
            world.repost(1 + (index + rng.randint(0, 2)) % USERS, len(world.posts))
        if index % 20 == 0:
            world.end_step()
    feed = SimSwarmFeed(recency=rng.choice((0.01, 0.3, 3)), popularity=rng.choice((0, 0.4)), relevance=0)
    board = world.board
    score: Any = lambda rows: feed.shared_score(board, rows, max(world.step, 1))  # noqa: E731
    kinds: list[tuple[Shortlists, Callable[..., Any], dict[str, Any]]] = [
        (Shortlists(board, feed.engagement), score, {}),
        (
            Shortlists(board, likes_of_source, reposts=True, newest_first=True),
            partial(likes_of_source, board),
            {"reposts": True, "newest_first": True},
        ),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MIN_TAIL", tail)
        patch.setattr(module, "MIN_LENGTH", 1)
        for index in range(160):
            act(world, rng)
            if index > 60 and index % 4 == 0:
                users = world.viewers(list(range(1, USERS + 1)) if index % 8 else [rng.randint(1, USERS)])
                for among, by, options in kinds:
                    found, scores = followed_posts(board, users, size, by, among=among, **options)
                    expected, all_scores = followed_posts(board, users, size, by, **options)
                    assert [one.tolist() for one in found] == [one.tolist() for one in expected]
                    assert scores.tolist() == all_scores.tolist()
            if index % 30 == 0:
                world.end_step()


def test_a_shortlist_is_short_where_an_author_has_published_much() -> None:
    world = SocialWorld("x")
    world.sign_up_many(Account(number) for number in (1, 2))
    for _ in range(5000):
        world.create_post(1, "words")
    world.like_post(2, 77)
    among = Shortlists(world.board, likes_of_source)
    assert len(among.of(world.viewers([1]).ids, 10)[0]) < 40
    assert 76 in among.of(world.viewers([1]).ids, 10)[0]


@pytest.mark.parametrize("column", ["likes", "reports"])
@pytest.mark.parametrize("reposts", [False, True])
def test_what_stood_behind_comes_forward_when_others_lose_likes_or_are_hidden(column: str, reposts: bool) -> None:
    world = SocialWorld("x", hide_reports=1)
    world.sign_up_many(Account(number) for number in (1, 2))
    for post_id in range(1, 101):
        world.create_post(1, "words")
        world.count_on_post(post_id, "likes", 1)
    among = Shortlists(world.board, likes_of_source, reposts=reposts, newest_first=True)
    first = among.of(np.array([1]), 1)[0]
    for row in first.tolist():
        world.count_on_post(row + 1, column, -1 if column == "likes" else 1)
    assert 100 - len(first) - 1 in among.of(np.array([1]), 1)[0]
