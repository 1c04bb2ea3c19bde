"""What holds in the social world whatever its users do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.agents.observation import without_refused
from mesa_llm.errors import ToolError
from mesa_llm.records import ToolCall, options_for
from mesa_llm.tools.tool import compile_tool
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm_models.social.world import Account, SocialWorld

USERS = 6

small = st.integers(-1, 12)
calls = st.one_of(
    st.tuples(st.just("create_post"), st.fixed_dictionaries({"content": st.text(max_size=8)})),
    st.tuples(
        st.sampled_from(["reply", "create_comment", "quote_post"]),
        st.fixed_dictionaries({"post_id": small, "content": st.text(max_size=8)}),
    ),
    st.tuples(
        st.sampled_from(["like_post", "unlike_post", "dislike_post", "undo_dislike_post", "repost"]),
        st.fixed_dictionaries({"post_id": small}),
    ),
    st.tuples(
        st.sampled_from(["like_comment", "unlike_comment", "dislike_comment", "undo_dislike_comment"]),
        st.fixed_dictionaries({"comment_id": small}),
    ),
    st.tuples(st.sampled_from(["follow", "unfollow", "mute", "unmute"]), st.fixed_dictionaries({"user_id": small})),
    st.tuples(st.just("end_step"), st.just({})),
)
scripts = st.lists(st.tuples(st.integers(1, USERS), calls), max_size=60)


def played(script: list[tuple[int, tuple[str, dict[str, Any]]]], preset: str = "x", **changes: Any) -> SocialWorld:
    """Return a world in which a script was played; what is refused is passed over."""
    world = SocialWorld(preset, rng=3, **changes)
    world.sign_up_many(Account(number) for number in range(1, USERS + 1))
    for agent_id, (name, arguments) in script:
        if name == "end_step":
            world.end_step()
            continue
        try:
            ToolBox.of(object(), agent_id, [world]).call(ToolCall(name, arguments))
        except ToolError:
            continue
    return world


@given(scripts)
def test_counters_equal_the_rows_they_count(script: Any) -> None:
    world = played(script)
    votes = Counter(world.store.rows("SELECT post_id, value FROM post_vote"))
    shares = Counter(
        world.source_id(row["parent_id"]) for row in world.measures.posts_table() if row["kind"] in ("repost", "quote")
    )
    for row in world.measures.posts_table():
        post_id = row["post_id"]
        assert (row["likes"], row["dislikes"]) == (votes[post_id, 1], votes[post_id, -1])
        assert row["shares"] == shares[post_id]
        assert world.measures.engagement()[post_id] == (row["likes"], row["dislikes"])


@given(scripts)
def test_follow_counts_equal_the_edges(script: Any) -> None:
    world = played(script)
    edges = world.measures.follow_edges().tolist()
    for user in range(1, USERS + 1):
        facts = world.facts(user)
        assert facts.followings == sum(follower == user for follower, _ in edges)
        assert facts.followers == sum(followee == user for _, followee in edges)


@given(scripts)
def test_nobody_follows_rates_or_reposts_itself(script: Any) -> None:
    world = played(script)
    assert all(follower != followee for follower, followee in world.measures.follow_edges().tolist())
    voted = "SELECT 1 FROM post_vote v JOIN post p USING (post_id) WHERE v.user_id = p.user_id"
    assert world.store.rows(voted) == []


@given(scripts, st.sampled_from(["simswarm", "x", "reddit"]))
def test_whatever_happened_can_be_looked_at(script: Any, preset: str) -> None:
    world = played(script, preset)
    for user in range(1, USERS + 1):
        seen = world.observe(user)
        assert len(seen.facts.feed) <= world.settings.feed_size
        for post_id in seen.options.get("post_id", ()):
            assert 0 < post_id <= len(world.posts)
        assert set(seen.options.get("user_id", ())) <= set(range(1, USERS + 1)) - {user}


@given(scripts, st.sampled_from(["x", "reddit"]), st.sampled_from(["corrected", "original"]), st.data())
def test_nothing_is_offered_that_would_be_refused(script: Any, preset: str, rules: str, data: Any) -> None:
    world = played(script, preset, rules=rules)
    user = data.draw(st.integers(1, USERS))
    seen = without_refused(world, user, world.observe(user))
    fixed = {"content": "So it is.", "reason": "It is spam.", "value": 1}
    calls = [
        ToolCall(name, {argument: value, **{key: text for key, text in fixed.items() if key in parameters}})
        for name in seen.tools or ()
        if (parameters := compile_tool(getattr(SocialWorld, name), 2).spec.parameters.get("properties", {}))
        for argument, values in options_for(name, seen.options).items()
        if argument in parameters
        for value in values
    ]
    if calls:
        ToolBox.of(object(), user, [world]).call(data.draw(st.sampled_from(calls)))


@given(scripts)
def test_cascades_never_shrink_and_hold_together(script: Any) -> None:
    world = played(script)
    for post_id in range(1, len(world.posts) + 1):
        cascade = world.measures.cascade(post_id)
        assert list(cascade.size) == sorted(cascade.size)
        assert list(cascade.depth) == sorted(cascade.depth)
        assert all(depth + breadth <= size for size, depth, breadth in zip(
            cascade.size, cascade.depth, cascade.breadth, strict=True))  # fmt: skip


@given(scripts)
def test_the_largest_cascade_is_the_largest_of_all(script: Any) -> None:
    world = played(script)
    sizes = [world.measures.cascade(post_id).size[-1] for post_id in range(1, len(world.posts) + 1)]
    assert world.measures.largest_cascade() == max(sizes, default=0)


@given(scripts)
@settings(max_examples=30)
def test_the_same_script_gives_the_same_world(script: Any) -> None:
    assert played(script).measures.digest() == played(script).measures.digest()
