"""Parts of pages for social worlds, without a browser."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from mesa_llm import ScriptedLLM
from mesa_llm.errors import ConfigError
from mesa_llm.records import Request
from mesa_llm.testing import honest
from mesa_llm.viz.components.autocomplete import Suggestion, options_in
from mesa_llm.viz.render.markup import markup
from mesa_llm.viz.session.interviews import MAX_QUESTION, InterviewQueue, Waiting, interviews_with
from mesa_llm.viz.session.rw_lock import lock_of
from mesa_llm_models.social.components.cascade import (
    MAX_SHARERS,
    MEASURES,
    cascade_chart,
    read_text,
    root_of,
    spread_charts,
    tree_of,
)
from mesa_llm_models.social.components.follows import ACTIVITY, MAX_USERS, TONE, colourings_of, follow_scene
from mesa_llm_models.social.components.reader import feed_values
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.social.world import Account, SocialWorld, SpreadCurves, read_curves
from mesa_llm_models.social.world.state import MAX_TEXT
from tests.viz.test_page import until


def world_of(users: int, **changes: Any) -> SocialWorld:
    """Make a world of users whose first has published post 1."""
    world = SocialWorld("x", rng=1, self_rating=False, **changes)
    world.sign_up_many(Account(number) for number in range(1, users + 1))
    world.create_post(1, "Bread at six.")
    return world


# -- feeds


def test_a_feed_shows_what_the_user_sees_with_its_votes_and_warnings() -> None:
    world = world_of(5)
    world.quote_post(2, 1, "Look <b>here</b>")
    world.like_post(3, 1)
    for user in (4, 5):
        world.report_post(user, 1, "It is a lie.")
    feed = markup("feed.html", **feed_values(world, 3))
    assert "<b>here" not in feed
    for part in ("user 2 · post 2", "Look &lt;b&gt;here", '<span class="liked">♥ 1</span>', "reported 2 times"):
        assert part in feed


def test_a_very_long_post_is_cut_and_says_how_long_it_is() -> None:
    world = world_of(2)
    world.create_post(1, "x" * MAX_TEXT)
    feed = markup("feed.html", **feed_values(world, 2))
    assert len(feed) < 10_000
    assert f"({MAX_TEXT:,} characters)" in feed


# -- cascades


def test_a_cascade_is_drawn_from_whom_to_whom_and_step_by_step() -> None:
    world = world_of(5)
    world.repost(2, 1)
    world.repost(3, 2)
    world.end_step()
    world.repost(4, 1)
    nodes = tree_of(1, 0, world.measures.shares(1))
    assert [(node.user_id, int(node.x), node.parent) for node in nodes] == [(1, 0, -1), (2, 0, 0), (3, 0, 1), (4, 1, 0)]
    assert nodes[0].x < nodes[1].x < nodes[2].x < 1
    assert len({node.y for node in nodes if node.user_id in (3, 4)}) == 2
    assert root_of(world, 3) == 1


def test_a_large_cascade_is_drawn_in_part_and_says_so() -> None:
    world = world_of(MAX_SHARERS + 20)
    for user in range(2, MAX_SHARERS + 21):
        world.repost(user, 1)
    chart = cascade_chart(world, 1)
    assert len(chart.series[1].values) == MAX_SHARERS + 1
    assert f"the first {MAX_SHARERS} of {MAX_SHARERS + 19}" in chart.note


def test_a_spread_stands_beside_a_real_one_minute_by_minute() -> None:
    world = world_of(5, step_minutes=3)
    world.end_step()
    world.repost(2, 1)
    world.end_step()
    real = SpreadCurves(np.array([1.0, 4.0]), np.array([0.0, 1.0]), np.array([0.0, 3.0]))
    alone, beside = (spread_charts(world, 1, curves)[MEASURES[0]] for curves in (None, {"real": real}))
    assert [each.values for each in alone.series] == [[1, 2]]
    assert [(each.name, each.values) for each in beside.series] == [("post 1", [1, 1, 1, 2]), ("real", [1, 4])]


def test_a_file_that_holds_no_cascade_is_named_as_its_visitor_calls_it() -> None:
    with pytest.raises(ConfigError, match=r"^mine\.json is not a readable JSON file"):
        read_text(read_curves, "mine.json", "{")


# -- who follows whom


def test_follows_that_began_during_the_run_are_drawn() -> None:
    model = SocialModel(n_agents=6, follows=1, rng=1)
    before = len(model.world.measures.follow_edges())
    stranger = next(user for user in range(2, 7) if [1, user] not in model.world.measures.follow_edges().tolist())
    model.world.follow(1, stranger)
    colourings = colourings_of(model, {})
    assert list(colourings) == [TONE, ACTIVITY, "followers"]
    for name, colouring in colourings.items():
        scene = follow_scene(model, name, colouring)
        assert (len(scene.ties), len(scene.new_ties), len(scene.agents)) == (before, 1, 6)


def test_of_many_users_the_most_connected_are_drawn_and_the_picture_says_so() -> None:
    model = SocialModel(n_agents=MAX_USERS + 30, rng=1)
    scene = follow_scene(model, ACTIVITY, colourings_of(model, {})[ACTIVITY])
    drawn = {each.agent.n_followers for each in scene.agents}
    assert len(scene.agents) == MAX_USERS
    assert max(user.n_followers for user in model.agents) in drawn
    assert f"the {MAX_USERS} most connected" in scene.note


# -- pickers


def test_a_picker_finds_numbers_and_words_and_sends_few_of_many() -> None:
    texts = [(number, f"{number} · Anna {number}") for number in range(1, 10_001)]
    assert options_in(texts, "", 50) == [Suggestion(*text) for text in texts[:50]]
    assert options_in(texts, "777", 2) == [Suggestion(777, "777 · Anna 777"), Suggestion(7770, "7770 · Anna 7770")]
    assert options_in(texts, "anna 9999", 50) == [Suggestion(9999, "9999 · Anna 9999")]


# -- interviews


def ask(model: SocialModel, question: str) -> InterviewQueue:
    """Ask the first user, and wait."""
    desk = InterviewQueue.of(model)
    desk.ask(model.agents.to_list()[0], question)
    until(lambda: not desk.waiting)
    return desk


def test_an_interview_is_answered_beside_those_before() -> None:
    model = SocialModel(n_agents=3, llm=honest(), rng=1)
    ask(model, "Who are you?")
    assert model.usage.calls == 1
    model.step()
    ask(model, "And now?")
    now, before = interviews_with(model, 1)
    assert (now.step, now.question, before.step, before.question) == (1, "And now?", 0, "Who are you?")
    assert (bool(now.answer), bool(before.answer), now.failure) == (True, True, "")


def test_a_failed_interview_says_why() -> None:
    def fail(request: Any) -> Any:
        raise ConfigError("the key is refused")

    model = SocialModel(n_agents=2, llm=ScriptedLLM(fail), rng=1)
    desk = ask(model, "Well?")
    reasons = [desk.error, *(interview.failure for interview in interviews_with(model, 1))]
    assert any("the key is refused" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("question", "why"), [(" ", "Enter a question"), ("x" * (MAX_QUESTION + 1), "the maximum is 4,000")]
)
def test_a_question_that_cannot_be_asked_costs_nothing(question: str, why: str) -> None:
    model = SocialModel(n_agents=2, llm=honest(), rng=1)
    assert why in ask(model, question).error
    assert model.usage.calls == 0


def test_a_question_waits_until_the_step_is_over_and_may_be_withdrawn() -> None:
    model = SocialModel(n_agents=2, llm=honest(), rng=1)
    desk = InterviewQueue.of(model)
    with lock_of(model).writing(), lock_of(model).waiting():
        desk.ask(model.agents.to_list()[0], "Well?")
        (job,) = desk.waiting
        assert isinstance(job, Waiting)
        desk.withdraw(job)
    until(lambda: not desk.waiting)
    assert (model.usage.calls, interviews_with(model, 1), desk.error) == (0, [], "")


def test_a_question_in_flight_is_withdrawn() -> None:
    is_asked = threading.Event()

    def delay_s(_request: Request) -> float:
        is_asked.set()
        return 30.0

    model = SocialModel(n_agents=2, llm=ScriptedLLM(lambda request: "late", delay_s), rng=1)
    desk = InterviewQueue.of(model)
    desk.ask(model.agents.to_list()[0], "Well?")
    assert is_asked.wait(10)
    desk.withdraw(desk.waiting[0])
    until(lambda: not desk.waiting)
    assert (interviews_with(model, 1), desk.error) == ([], "")
