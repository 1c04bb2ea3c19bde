"""What users of the social world can do, what is refused, and signing up and following in bulk."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import Observation, ToolCall
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm_models.social.world import PRESETS, Account, SocialWorld

ANN, BO, CY, DI = 1, 2, 3, 4

TOUCHES = {
    "reply": {"content": "so?"},
    "create_comment": {"content": "so?"},
    "quote_post": {"content": "so?"},
    "report_post": {"reason": "spam"},
    **{name: {} for name in ("repost", "vote", "like_post", "dislike_post")},
}
"""Actions on a post → what they take besides."""


@pytest.fixture
def world() -> SocialWorld:
    """Make four users and a post 1 by Ann."""
    world = SocialWorld("reddit", rng=1)
    world.sign_up_many(Account(number, name) for number, name in enumerate(("Ann", "Bo", "Cy", "Di"), start=1))
    world.create_post(ANN, "The bakery opens at six.")
    return world


@pytest.mark.parametrize("action", ["like_post", "unlike_post", "dislike_post", "undo_dislike_post", "vote", "repost"])
@pytest.mark.parametrize("post_id", [0, -1, 2, 10**30])
def test_posts_that_do_not_exist_are_refused(world: SocialWorld, action: str, post_id: int) -> None:
    with pytest.raises(ToolError, match=f"There is no post {post_id};"):
        getattr(world, action)(BO, post_id)


@pytest.mark.parametrize("action", ["like_comment", "unlike_comment", "dislike_comment", "undo_dislike_comment"])
@pytest.mark.parametrize("comment_id", [0, 1, 10**30])
def test_comments_that_do_not_exist_are_refused(world: SocialWorld, action: str, comment_id: int) -> None:
    with pytest.raises(ToolError, match=f"There is no comment {comment_id};"):
        getattr(world, action)(BO, comment_id)


@pytest.mark.parametrize("action", ["follow", "mute"])
def test_unknown_users_and_oneself_are_refused(world: SocialWorld, action: str) -> None:
    with pytest.raises(ToolError, match="There is no user 99;"):
        getattr(world, action)(BO, 99)
    with pytest.raises(ToolError, match="User 2 is you"):
        getattr(world, action)(BO, BO)


def test_a_second_like_is_refused(world: SocialWorld) -> None:
    world.like_post(BO, 1)
    with pytest.raises(ToolError, match="You like post 1 already"):
        world.like_post(BO, 1)
    assert world.measures.engagement() == {1: (1, 0)}


def test_likes_and_dislikes_exclude_one_another(world: SocialWorld) -> None:
    world.like_post(BO, 1)
    with pytest.raises(ToolError, match=r"You like post 1; unlike_post takes that back\."):
        world.dislike_post(BO, 1)
    strict = SocialWorld("herd_effect")
    strict.sign_up_many([Account(ANN), Account(BO)])
    strict.create_post(ANN, "x")
    strict.like_post(BO, 1)
    with pytest.raises(ToolError, match=r"You like post 1; that vote stands\."):
        strict.dislike_post(BO, 1)


def test_a_vote_is_changed_by_undoing_it() -> None:
    world = SocialWorld("reddit", actions=("like_post", "unlike_post", "dislike_post"))
    world.sign_up_many([Account(ANN), Account(BO)])
    world.create_post(ANN, "x")
    world.like_post(BO, 1)
    with pytest.raises(ToolError, match="unlike_post takes that back"):
        world.dislike_post(BO, 1)
    world.unlike_post(BO, 1)
    world.dislike_post(BO, 1)
    assert world.measures.engagement() == {1: (0, 1)}


def test_what_was_not_done_cannot_be_undone(world: SocialWorld) -> None:
    world.dislike_post(BO, 1)
    with pytest.raises(ToolError, match="You do not like post 1"):
        world.unlike_post(BO, 1)
    with pytest.raises(ToolError, match="You do not follow user 1"):
        world.unfollow(BO, ANN)
    with pytest.raises(ToolError, match="You have not muted user 1"):
        world.unmute(BO, ANN)


def test_own_posts_are_rated_only_where_that_is_allowed(world: SocialWorld) -> None:
    with pytest.raises(ToolError, match="Post 1 is your own"):
        world.like_post(ANN, 1)
    lax = SocialWorld("reddit", self_rating=True)
    lax.sign_up(ANN)
    lax.create_post(ANN, "x")
    assert lax.like_post(ANN, 1).text == "You liked your own post 1 (“x”)."


def test_own_comments_are_not_rated(world: SocialWorld) -> None:
    world.create_comment(BO, 1, "Good to know.")
    with pytest.raises(ToolError, match="Comment 1 is your own"):
        world.dislike_comment(BO, 1)


def test_comment_votes_count_and_can_be_undone(world: SocialWorld) -> None:
    world.create_comment(BO, 1, "Good to know.")
    world.like_comment(ANN, 1)
    world.dislike_comment(CY, 1)
    world.unlike_comment(ANN, 1)
    row = world.measures.comments_table()[0]
    assert (row["likes"], row["dislikes"]) == (0, 1)


def test_follows_count_on_both_sides(world: SocialWorld) -> None:
    world.follow(BO, ANN)
    world.follow(CY, ANN)
    world.unfollow(BO, ANN)
    ann, cy = world.facts(ANN), world.facts(CY)
    assert (ann.followers, ann.followings, cy.followers, cy.followings) == (1, 0, 0, 1)


def test_a_post_is_reposted_once_also_through_a_repost(world: SocialWorld) -> None:
    world.repost(BO, 1)
    world.repost(CY, 2)
    with pytest.raises(ToolError, match="You have reposted post 1 already"):
        world.repost(CY, 1)
    with pytest.raises(ToolError, match="Post 1 is your own"):
        world.repost(ANN, 2)


def test_reposts_never_run_in_a_circle(world: SocialWorld) -> None:
    world.repost(BO, 1)
    world.quote_post(ANN, 2, "My own again.")
    world.quote_post(BO, 3, "And again.")
    world.repost(CY, 4)
    assert [(share.user_id, share.from_id, share.distance) for share in world.measures.shares(1)] == [
        (BO, ANN, 1),
        (CY, BO, 2),
    ]
    assert world.measures.cascade(1).size == (3,)
    assert world.post_view(5).source_id == 4


def test_a_repost_of_a_repost_keeps_parent_source_and_root(world: SocialWorld) -> None:
    world.repost(BO, 1)
    world.repost(CY, 2)
    row = world.measures.posts_table()[2]
    assert (row["kind"], row["parent_id"], row["source_id"], row["root_id"]) == ("repost", 2, 1, 1)


def test_a_repost_of_a_quote_carries_the_quote(world: SocialWorld) -> None:
    world.quote_post(BO, 1, "Too early for me.")
    world.repost(CY, 2)
    row = world.measures.posts_table()[2]
    assert (row["parent_id"], row["source_id"], row["root_id"]) == (2, 2, 1)


def test_likes_of_a_repost_go_to_its_source(world: SocialWorld) -> None:
    world.repost(BO, 1)
    world.like_post(CY, 2)
    assert world.measures.engagement() == {1: (1, 0), 2: (0, 0)}


def test_a_thread_of_replies_has_the_first_post_as_its_root(world: SocialWorld) -> None:
    world.reply(BO, 1, "Thanks.")
    world.reply(CY, 2, "Indeed.")
    row = world.measures.posts_table()[2]
    assert (row["kind"], row["parent_id"], row["root_id"]) == ("reply", 2, 1)


def test_a_cascade_of_a_shared_reply_begins_at_the_reply(world: SocialWorld) -> None:
    world.reply(BO, 1, "Thanks.")
    world.repost(CY, 2)
    assert world.measures.posts_table()[2]["root_id"] == 2


def test_blank_and_unprintable_posts_are_refused(world: SocialWorld) -> None:
    with pytest.raises(ToolError, match="The post is empty"):
        world.create_post(BO, " \n\x00\ud800 ")


def test_half_characters_are_dropped_rather_than_stored(world: SocialWorld) -> None:
    world.create_post(BO, "a\ud800b\x00c")
    assert world.measures.posts_table()[-1]["content"] == "abc"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("vote", {"post_id": 1, "value": float("nan")}),
        ("vote", {"post_id": 1, "value": 2}),
        ("create_post", {"content": None}),
        ("create_post", {"content": "x" * 5001}),
        ("follow", {"user_id": 10**40}),
        ("like_post", {"post_id": "one"}),
        ("like_post", {}),
    ],
)
def test_wrong_arguments_never_reach_the_world(world: SocialWorld, name: str, arguments: dict[str, object]) -> None:
    before = world.measures.digest()
    with pytest.raises(ToolError):
        ToolBox.of(object(), BO, [world]).call(ToolCall(name, arguments))
    assert world.measures.digest() == before


@pytest.mark.parametrize("text", ["", " \n", "x" * 100_000], ids=["empty", "blank", "100 kB"])
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        *((name, "content") for name in ("create_post", "reply", "create_comment", "quote_post")),
        ("report_post", "reason"),
        ("search_posts", "query"),
        ("search_user", "query"),
    ],
)
def test_texts_that_say_nothing_or_too_much_are_refused(
    world: SocialWorld, name: str, argument: str, text: str
) -> None:
    post = {} if name in ("create_post", "search_posts", "search_user") else {"post_id": 1}
    before = world.measures.digest()
    with pytest.raises(ToolError, match=r"is empty|at least 1 character|longer than 20000 characters"):
        ToolBox.of(object(), BO, [world]).call(ToolCall(name, {**post, argument: text}))
    assert (world.measures.digest(), world.searches) == (before, [])


def test_reports_count_once_a_user_and_warn_from_the_second(world: SocialWorld) -> None:
    world.report_post(BO, 1, "advertising")
    with pytest.raises(ToolError, match="You have reported post 1 already"):
        world.report_post(BO, 1, "advertising")
    assert "Warning" not in world.observe(DI).text
    world.report_post(CY, 1, "advertising")
    assert "Warning: reported 2 times." in world.observe(DI).text


def test_nobody_reports_itself(world: SocialWorld) -> None:
    world.repost(BO, 1)
    for post_id in (1, 2):
        with pytest.raises(ToolError, match="Post 1 is your own; report what others wrote"):
            world.report_post(ANN, post_id, "regret")


@pytest.mark.parametrize("name", TOUCHES)
def test_what_a_user_muted_is_not_there_for_it(world: SocialWorld, name: str) -> None:
    world.repost(CY, 1)
    world.mute(BO, ANN)
    world.mute(DI, CY)
    for user, post_id, muted in ((BO, 1, ANN), (BO, 2, ANN), (DI, 2, CY)):
        with pytest.raises(ToolError, match=f"Post {post_id} is not there for you: you muted user {muted}"):
            getattr(world, name)(user, post_id=post_id, **TOUCHES[name])
    getattr(world, name)(DI, post_id=1, **TOUCHES[name])


@pytest.mark.parametrize("name", TOUCHES)
def test_what_was_reported_too_often_is_there_for_nobody(name: str) -> None:
    world = SocialWorld("reddit", rng=1, hide_reports=1)
    world.sign_up_many(Account(user) for user in (ANN, BO, CY))
    world.create_post(ANN, "one")
    world.report_post(BO, 1, "spam")
    with pytest.raises(ToolError, match="Post 1 is not there any more"):
        getattr(world, name)(CY, post_id=1, **TOUCHES[name])


def test_comments_of_muted_users_and_under_their_posts_cannot_be_rated(world: SocialWorld) -> None:
    world.create_comment(BO, 1, "so?")
    world.mute(CY, BO)
    world.mute(DI, ANN)
    for user in (CY, DI):
        with pytest.raises(ToolError, match="not there for you"):
            world.like_comment(user, 1)


def test_a_vote_is_taken_back_even_from_what_is_muted(world: SocialWorld) -> None:
    world.like_post(BO, 1)
    world.mute(BO, ANN)
    assert world.unlike_post(BO, 1).text == "You took back your like of Ann’s post 1 (“The bakery opens at six.”)."


def test_an_agent_without_account_is_a_mistake_of_the_modeller(world: SocialWorld) -> None:
    with pytest.raises(ConfigError, match="agent 77 has no account in world 'social'"):
        world.create_post(77, "x")


def test_every_argument_of_every_action_is_explained_to_the_model(world: SocialWorld) -> None:
    for bound in ToolBox.of(object(), ANN, [world]).values():
        for argument in bound.tool.spec.parameters["properties"].values():
            assert argument["description"]


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_names_actions_that_exist(preset: str) -> None:
    assert set(PRESETS[preset].actions) <= set(ToolBox.of(object(), ANN, [SocialWorld(preset)]))


def crowd(size: int) -> SocialWorld:
    world = SocialWorld("x", rng=1)
    world.sign_up_many(Account(number) for number in range(1, size + 1))
    return world


@pytest.mark.parametrize(
    ("accounts", "why"),
    [
        ([Account(0)], "run from 1"),
        ([Account(10**9)], "run from 1"),
        ([Account(3), Account(3)], "user 3 already has an account"),
        ([Account(9), Account(1)], "user 1 already has an account"),
    ],
)
def test_bad_accounts_are_refused_all_together(accounts: list[Account], why: str) -> None:
    world = crowd(2)
    before = world.measures.digest()
    with pytest.raises(ConfigError, match=why):
        world.sign_up_many(accounts)
    assert world.measures.digest() == before


def test_usernames_and_names_may_repeat() -> None:
    world = SocialWorld("x")
    world.sign_up_many([Account(1, "Ann", "ann"), Account(2, "Ben", "ben"), Account(3, "Ann", "ann")])
    assert list(world.names.values()) == ["Ann", "Ben", "Ann"]
    assert world.store.rows("SELECT user_name FROM user") == [("ann",), ("ben",), ("ann",)]


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
    assert bulk.measures.digest() == single.measures.digest()
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
    assert world.measures.follow_edges().tolist() == []


def test_no_edges_are_no_follows_even_in_an_empty_world() -> None:
    assert SocialWorld("x").follow_many(np.empty((0, 2), dtype=np.int64)) == 0


def test_oversized_texts_are_refused_with_their_length() -> None:
    world = SocialWorld("x", actions=("create_post", "purchase_product", "create_group"), products=("mug",))
    world.sign_up_many(Account(number) for number in (1, 2))
    world.create_post(1, "short")
    world.create_group(1, "tea")
    before, huge = world.measures.digest(), "x" * 100_000
    posts = [world.create_post, *(partial(write, post_id=1) for write in (world.reply, world.quote_post))]
    for write in (*posts, partial(world.create_comment, post_id=1)):
        with pytest.raises(ToolError, match="has 100,000 characters; write 5,000 at most"):
            write(2, content=huge)
    with pytest.raises(ToolError, match="The reason has 100,000 characters; write 500 at most"):
        world.report_post(2, 1, huge)
    with pytest.raises(ToolError, match="The message has 100,000 characters; write 2,000 at most"):
        world.send_to_group(1, 1, huge)
    with pytest.raises(ToolError, match="has 100,000 characters"):
        world.publish("The Courier", huge)
    with pytest.raises(ToolError, match="There is no product"):
        world.purchase_product(1, "\ud800")
    assert world.measures.digest() == before


def test_actions_in_unread_steps_stand_in_the_traces_in_order() -> None:
    world = SocialWorld("x", rng=1)
    world.sign_up_many(Account(user) for user in (1, 2))
    for step in range(3):
        world.create_post(1, f"This is post {step}.")
        world.end_step()
        world.observe(2)
    traces = world.store.rows("SELECT user_id, created_at, action FROM trace WHERE action = 'create_post'")
    assert traces == [(1, step, "create_post") for step in range(3)]


class Village(SocialWorld):
    """A world of somebody's own."""

    def observe(self, agent_id: int) -> Observation:
        return Observation("You are in the village.")


def test_a_world_of_ones_own_may_follow_the_original_rules() -> None:
    village = Village("simswarm", rules="original")
    village.sign_up(ANN)
    assert village.observe(ANN).text == "You are in the village."
    assert village.follow(ANN, ANN).facts == {"user_id": ANN, "is_new": True}
    assert isinstance(village, Village)
    assert type(village).__name__ == "Village"
