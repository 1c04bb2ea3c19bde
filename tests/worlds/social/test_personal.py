"""The personal feed of X: what is compared, how it is weighed, and that a batch and one viewer see the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm_models.social.world import Account, PersonalFeed, SocialWorld
from mesa_llm_models.social.world.personal import VectorArray, best_matches

SUBJECTS = ("tea", "cats", "war")


class Counting:
    """Embeds texts by how often they name each subject, and counts what it is given."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()

    def embed(self, texts: Sequence[str]) -> VectorArray:
        """Return one row of length 1 a text."""
        self.texts.update(texts)
        rows = np.array([[text.count(subject) + 0.01 for subject in SUBJECTS] for text in texts], dtype=np.float32)
        rows = rows.reshape(-1, len(SUBJECTS))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def world_of(bios: Sequence[str], *posts: tuple[int, str], step_minutes: float = 3, **parameters: Any) -> SocialWorld:
    """Make a world of users with these profiles, numbered from 1, who have posted in step 0."""
    parameters.setdefault("embed", Counting().embed)
    world = SocialWorld("x", rng=5, feed=PersonalFeed(**parameters), step_minutes=step_minutes)
    world.sign_up_many(Account(number, f"user {number}", bio=bio) for number, bio in enumerate(bios, start=1))
    for author, text in posts:
        world.create_post(author, text)
    return world


def test_others_are_shown_by_what_fits_the_profile_and_the_followed_by_likes() -> None:
    world = world_of(["tea", "", "", ""], (2, "cats"), (3, "tea"), (2, "war"), (4, "cats cats"), (1, "tea"))
    assert world.feed(1) == [2, 3]
    world.follow(1, 2)
    world.like_post(3, 3)
    assert world.feed(1) == [3, 1, 2, 4]


def test_the_latest_post_of_a_user_counts_and_each_text_is_embedded_once() -> None:
    counting = Counting()
    bios = ("I like tea", "", "")
    world = world_of(bios, (2, "war war"), (3, "tea"), embed=counting.embed, other_posts=1, pool=1)
    assert world.feed(1) == [2]
    world.create_post(1, "war war war")
    assert world.feed(1) == [1]
    world.end_step()
    assert world.feeds(world.viewers([1, 2, 3, 1])) == [world.feed(user) for user in (1, 2, 3, 1)]
    assert max(counting.texts.values()) == 1
    assert "I like tea # Recent post: war war war" in counting.texts


def test_recency_decays_and_reach_lifts_in_the_paper_and_neither_in_the_code() -> None:
    feeds = {}
    for form in ("ours", "paper", "code"):
        world = world_of(["tea"] + [""] * 1100, (2, "tea"), form=form, step_minutes=60)
        for _ in range(3):
            world.end_step()
        world.create_post(3, "tea")
        world.follow_many([(user, 3) for user in range(4, 1101)])
        feeds[form] = PersonalFeed(world.settings.feed.embed, form).weights(world.board, np.array([0, 1]))  # type: ignore[union-attr]
    reach = math.log(2.718) * math.log(1098) / math.log(1000)
    assert feeds["paper"] == pytest.approx([math.log(0.918), reach])
    assert feeds["ours"] == pytest.approx([0.1, reach])
    assert feeds["code"].tolist() == [1, 1]


def test_a_post_past_its_life_is_shown_no_more_in_the_papers_form_alone() -> None:
    shown = {}
    for form in ("ours", "paper", "code"):
        world = world_of(["tea", ""], (2, "tea"), form=form, step_minutes=90)
        for _ in range(4):
            world.end_step()
        shown[form] = world.feed(1)
    assert shown == {"ours": [1], "paper": [], "code": [1]}


def test_muted_and_hidden_authors_and_oneself_are_not_recommended() -> None:
    world = world_of(["tea", "", "", ""], (1, "tea"), (2, "tea"), (3, "tea"), (4, "cats"))
    world.mute(1, 2)
    assert world.feed(1) == [3, 4]


def test_without_an_embedder_it_is_said_what_to_do() -> None:
    with pytest.raises(ConfigError, match="needs an embedding function"):
        SocialWorld("x", feed="x_personal")
    with pytest.raises(ConfigError, match="'ours', 'paper' or 'code', got 'mine'"):
        PersonalFeed(form="mine")  # type: ignore[arg-type]
    world = SocialWorld("oasis_x")  # its rules and actions need no texts to be compared
    world.sign_up(1, "Ann")
    with pytest.raises(ConfigError, match="needs an embedding function"):
        world.feed(1)
    assert SocialWorld("oasis_x", feed="x").settings.embed is None


def test_a_running_world_can_change_to_it_where_it_has_an_embedder() -> None:
    worlds = [SocialWorld("x", rng=1, embed=embed) for embed in (None, Counting().embed)]
    with pytest.raises(ToolError, match="needs an embedding function"):
        worlds[0].change("feed", "x_personal")
    worlds[1].sign_up_many([Account(1, bio="tea"), Account(2)])
    worlds[1].change("feed", "x_personal")
    worlds[1].create_post(2, "tea")
    assert (worlds[1].feed(1), worlds[1].changeable()["feed"]) == ([1], "x_personal")


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6), size=st.integers(1, 9), n_posts=st.integers(1, 3000), n_distinct=st.integers(1, 3000)
)
def test_the_best_matches_are_those_of_all_pairs_in_a_batch_and_alone(
    seed: int, size: int, n_posts: int, n_distinct: int
) -> None:
    rng = np.random.default_rng(seed)
    users, posts = (rng.normal(size=(n, 8)).astype(np.float32) for n in (20, n_posts))
    posts = posts[rng.integers(0, min(n_distinct, n_posts), n_posts)]  # some are the very same
    users, posts = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (users, posts))
    weights = rng.uniform(-1, 2, n_posts)
    barred = rng.random((20, n_posts)) < 0.3
    batch = best_matches(users, posts, weights, size, lambda part: barred[part])
    for index in range(20):
        alone = best_matches(users[[index]], posts, weights, size, lambda part, one=index: barred[[one]])
        scores = np.einsum("ij,ij->i", users[[index] * n_posts], posts).astype(float) * weights
        allowed = np.flatnonzero(~barred[index])
        exact = allowed[np.lexsort((-allowed, -scores[allowed]))][:size]
        assert batch[index].tolist() == alone[0].tolist() == exact.tolist()
