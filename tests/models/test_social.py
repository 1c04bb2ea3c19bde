"""The social model: the same run whatever the latency, real populations, the embedded model."""

import os
import random
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm.llm.scripted import call
from mesa_llm.testing import honest, honest_reply
from mesa_llm.tools.tool import marked_methods
from mesa_llm_models.social.agents import SocialUser
from mesa_llm_models.social.model import OWN_PRESETS, SocialModel, SocialScenario
from mesa_llm_models.social.world import PRESETS, PresetName, SocialWorld

DATA = os.environ.get("MESA_LLM_DATA")

EVERYTHING = {"preset": "reddit", "actions": ",".join(marked_methods(SocialWorld)), "products": "kettle, lamp"}
"""Parameters with all actions, as the command line takes them."""


CORE = ("Ann,ann,x,x,[1],\"['Tea!']\",", "Bo,bo,x,x,[],[],")
"""Rows of a file of two users of X."""


def digest(steps=3, **parameters) -> str:
    model = SocialModel(**parameters)
    model.run_for(steps)
    return model.runlog.digest


@settings(max_examples=4)
@given(st.integers(0, 2**31 - 1))
def test_replies_after_random_delays_never_change_a_run(seed) -> None:
    def late(request):
        return random.SystemRandom().uniform(0, 0.005)

    runs = {
        digest(n_agents=10, rng=seed, llm=ScriptedLLM(honest_reply, delay_s=late), concurrency=concurrency)
        for concurrency in (1, 8, 64)
    }
    assert len(runs) == 1


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("llm", ["rule", "random"])
def test_each_preset_lives(preset, llm) -> None:
    model = SocialModel(n_agents=15, preset=preset, first_posts=0.25, llm=llm, rng=3)
    model.run_for(8)
    actions = model.runlog.actions()
    assert (actions["ok"] == 1).mean() > 0.6
    assert model.n_likes + model.n_replies + model.n_reposts > 5


def test_more_follows_and_a_lower_threshold_make_more_go_viral() -> None:
    viral = []
    for threshold in (3, 30):
        model = SocialModel(n_agents=20, viral_threshold=threshold, rng=1)
        model.run_for(8)
        viral.append((model.runlog.events()["kind"] == "viral_post").sum())
    assert viral[0] > viral[1] == 0


def test_what_was_reposted_is_reposted_from_there_so_that_cascades_get_deep() -> None:
    model = SocialModel(n_agents=30, preset="x", follows=4, feed_size=20, rng=1)
    model.run_for(20)
    roots = {post["root_id"] for post in model.world.measures.posts_table() if post["kind"] == "repost"}
    assert max(model.world.measures.cascade(root).depth[-1] for root in roots) >= 2


def test_users_who_may_not_pass_always_do_something() -> None:
    model = SocialModel(n_agents=10, llm="random", may_pass=False, rng=1)
    model.run_for(3)
    assert "do_nothing" not in set(model.runlog.actions()["action"])


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_users_with_all_actions_turn_to_groups_and_products(llm) -> None:
    model = SocialModel(n_agents=12, llm=llm, rng=1, **EVERYTHING)
    model.run_for(20)
    done = set(model.runlog.actions().query("ok == 1")["action"])
    assert {"purchase_product", "create_group", "join_group", "send_to_group", "create_post", "like_post"} <= done
    if llm == "random":
        assert {"leave_group", "report_post", "unfollow", "unmute", "unlike_post"} <= done
    assert ("chat group" in model.story(), "Sold: kettle" in model.story()) == (True, True)


def test_a_run_with_all_actions_and_an_interview_is_replayed(tmp_path) -> None:
    def lively(request):
        tools = [tool.name for tool in request.tools]
        if "listen_from_group" in tools and request.messages[-1].role != "tool":
            return call("listen_from_group")
        return honest_reply(request)

    runs = []
    for llm in ("random", ScriptedLLM(lively)):
        for replay in (False, True):
            log = tmp_path / f"{getattr(llm, 'name', llm)}.sqlite"
            model = SocialModel(n_agents=10, llm=llm, rng=2, log=log, replay=replay, **EVERYTHING)
            model.run_for(5)
            answer = model.interview(model.agents[0], "What is on your mind?")
            runs.append((model.runlog.digest, model.world.measures.digest(), answer))
            model.close()
    assert runs[0] == runs[1] != runs[2] == runs[3]


def test_an_interview_is_heard_by_nobody_and_kept_in_the_log() -> None:
    model, quiet = (SocialModel(n_agents=4, llm=honest(), rng=1) for _ in range(2))
    for either in (model, quiet):
        either.step()
    before = model.world.measures.digest()
    answer = model.interview(model.agents[0], "Do you like it here?")
    (row,) = model.runlog.table("answers").to_dict("records")
    assert (row["purpose"], row["agent"], row["question"]) == ("interview", 1, "Do you like it here?")
    assert answer in row["answer"]
    assert (model.usage_by_purpose["interview"].calls, model.world.measures.digest()) == (1, before)
    for either in (model, quiet):
        either.step()
    assert model.runlog.digest == quiet.runlog.digest


def test_rule_twin_answers_interviews_and_unknown_users_are_refused() -> None:
    model, other = SocialModel(n_agents=2, rng=1), SocialModel(n_agents=2, rng=1)
    assert model.interview(model.agents[0], "Well?").startswith("What I think about most is")
    with pytest.raises(ConfigError, match="is not a user of this model"):
        model.interview(other.agents[0], "Well?")
    with pytest.raises(ConfigError, match="the question is empty"):
        model.interview(model.agents[0], " ")


def test_actions_can_be_chosen_by_name() -> None:
    model = SocialModel(n_agents=4, actions="like_post, repost", rng=1)
    assert model.world.settings.actions == ("like_post", "repost")
    assert "like a post, to tell its author that you agree; or pass it on to all who" in model.instructions_text
    with pytest.raises(ConfigError, match=r"no action 'like_pots'; it has .*send_to_group"):
        SocialModel(actions="like_pots")


def test_a_scenario_sets_the_parameters() -> None:
    model = SocialModel(scenario=SocialScenario(n_agents=7, preset="x", rng=1))
    assert len(model.agents) == 7
    assert "quote_post" in model.world.settings.actions


def test_hours_of_activity_let_fewer_act_at_night() -> None:
    model = SocialModel(n_agents=10, hourly=True, rng=1)
    for user in model.agents:
        user.hours = tuple(float(8 <= hour < 12) for hour in range(24))
    model.run_for(6)
    assert model.runlog.decisions().groupby("time").size().to_dict() == dict.fromkeys(range(1, 5), 10)


def test_people_drawn_as_oasis_draws_them_follow_core_users_of_their_topics() -> None:
    model = SocialModel(population="oasis_x", preset="x", n_agents=60, core_users=9, follow_probability=1, rng=1)
    core, ordinary = model.agents.to_list()[:9], model.agents.to_list()[9:]
    assert {len(user.topics) for user in core} == {1}
    edges = {(a, b) for a, b in model.world.measures.follow_edges().tolist()}
    assert edges == {(a.unique_id, b.unique_id) for a in ordinary for b in core if b.topics[0] in a.topics}
    assert digest(population="oasis_x", n_agents=30, rng=1) == digest(population="oasis_x", n_agents=30, rng=1)
    assert "country" in SocialModel(population="oasis_reddit", n_agents=3, rng=1).agents[0].config.traits


def test_ordinary_users_are_drawn_around_those_in_a_file(tmp_path) -> None:
    path = tmp_path / "users.csv"
    rows = ("name,username,user_char,description,following_agentid_list,previous_tweets,interested_topics", *CORE)
    path.write_text("\n".join(rows))
    model = SocialModel(users=str(path), population="oasis_x", n_agents=40, activity_form="core", rng=1)
    names = [user.config.name for user in model.agents]
    assert (names[:2], len(names), len(set(names)) > 20) == (["Ann", "Bo"], 40, True)
    assert [user.hours[0] for user in model.agents][:3] == [0.1, 0.1, 0.01]
    assert [post["content"] for post in model.world.measures.posts_table()] == ["Tea!"]
    edges = model.world.measures.follow_edges()
    assert ([1, 2] in edges.tolist(), set(edges[:, 1].tolist())) == (True, {1, 2})


def test_minutes_and_hours_of_activity_are_oasis_own_under_its_presets() -> None:
    model = SocialModel(n_agents=300, preset="x", activity_form="core", core_users=100, active_share=0.9, rng=1)
    model.run_for(2)
    acting = model.runlog.decisions()["agent"]
    assert (model.step_minutes, model.world.settings.step_minutes) == (3, 3)
    assert 140 < (acting <= 100).sum() <= 200
    assert (acting > 100).sum() < 20


def test_a_table_of_activity_is_a_parameter(tmp_path) -> None:
    night = (0.0,) * 20 + (5.0,) * 4
    hours = {"activity_table": (night, (3.0,) * 24), "n_agents": 2, "rng": 1}
    assert [user.hours[:2] for user in SocialModel(activity_form="paper", **hours).agents] == [(0, 0), (1, 1)]
    assert [user.hours[0] for user in SocialModel(activity_form="code", **hours).agents] == [0.1, 0.6]
    (tmp_path / "hours.csv").write_text(f'activity_level_frequency\n"{[1] * 24}"\n')
    assert SocialModel(activity_table=str(tmp_path / "hours.csv"), n_agents=3, rng=1).agents[2].hours[0] == 1


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"users": "a.csv", "population": "oasis_reddit"}, "both specify the users"),
        ({"users": "a.csv", "core_users": 2}, "already core users"),
        ({"activity_form": "code"}, "needs counts of activity; give activity_table="),
        ({"activity_table": ((1.0, 2.0),)}, r"counts need the shape \(users, 24\)"),
        ({"core_users": 30, "population": "oasis_x"}, "core_users=30 is more than the 20 users"),
    ],
)
def test_parameters_of_people_that_do_not_fit_are_refused(parameters, why) -> None:
    with pytest.raises(ConfigError, match=why):
        SocialModel(**parameters)


def test_what_is_broken_in_a_file_of_users_is_left_out_counted_and_said(tmp_path, caplog) -> None:
    path = tmp_path / "users.csv"
    rows = "Ann,ann,x,x,[1]\nBo,ann,x,x,[9]\nCy,cy,x\nDi,di,x,x,[]\n"
    path.write_text(f"name,username,user_char,description,following_agentid_list\n{rows}")
    with pytest.raises(ConfigError, match=r"line 3, row 2, column 'following_agentid_list'"):
        SocialModel(users=str(path))
    model = SocialModel(users=str(path), skip_broken=True, rng=1)
    assert (len(model.agents), model.n_follows) == (3, 1)
    assert [[one.line for one in found] for found in (model.users_file.refusals, model.users_file.dropped)] == [
        [4],
        [3],
    ]
    assert "left out 1 row and 1 item that are invalid; first: " in caplog.text


def test_given_follows_replace_drawn_ones_and_draws_are_reported(tmp_path, caplog) -> None:
    (tmp_path / "people.csv").write_text("username,persona\nann,Bakes.\nbo,Runs.\nann,Sings.\ndi,Cooks.\n")
    (tmp_path / "edges.csv").write_text("follower_id,followee_id\n0,1\n0,2\n1,0\n3,0\n")
    users, edges = str(tmp_path / "people.csv"), str(tmp_path / "edges.csv")
    model = SocialModel(users=users, edges=edges, rng=1)
    assert [model.world.ties(user).followed.tolist() for user in (1, 2, 3, 4)] == [[2, 3], [1], [], [1]]
    assert "who follows whom" not in caplog.text
    assert SocialModel(users=users, rng=1).n_follows == 12
    assert "people.csv: it has no follows: 12 follows were drawn (follows=3" in caplog.text
    caplog.clear()
    assert SocialModel(users=users, follows=0, rng=1).n_follows == 0
    assert [one.getMessage().partition(".csv: ")[2] for one in caplog.records] == [
        "it has no earlier posts (column previous_tweets): 1 first post was invented; set first_posts=0 for none"
    ]


@pytest.mark.parametrize(
    ("preset", "first_posts", "n"),
    [
        *(("x", None, 5), ("x", 0, 0), ("herd_effect", 0.25, 5)),
        *((preset, None, 0) for preset in get_args(PresetName) if preset not in OWN_PRESETS),
    ],
)
def test_first_posts_are_invented_on_request_alone_in_presets_of_oasis(preset, first_posts, n) -> None:
    assert SocialModel(preset=preset, first_posts=first_posts, n_agents=20, rng=1).n_posts == n


def test_a_network_in_which_nobody_can_write_says_what_is_missing(caplog) -> None:
    SocialModel(preset="information_spreading", rng=1)
    assert "nobody can write one: set first_posts=" in caplog.text
    caplog.clear()
    assert SocialModel(preset="information_spreading", first_posts=0.25, rng=1).n_posts == 5
    assert not caplog.records


@pytest.mark.parametrize("population", ["invented", "oasis_x", "oasis_reddit"])
def test_follows_of_ones_own_among_people_who_are_in_no_file(tmp_path, population) -> None:
    (tmp_path / "edges.txt").write_text("# SNAP\n0\t1\n2\t0\n")
    model = SocialModel(n_agents=3, population=population, edges=str(tmp_path / "edges.txt"), rng=1)
    assert [model.world.ties(user).followed.tolist() for user in (1, 2, 3)] == [[2], [], [1]]
    with pytest.raises(ConfigError, match="wanted a row from 0 to 1"):
        SocialModel(n_agents=2, edges=str(tmp_path / "edges.txt"))


def test_personal_feeds_compare_with_the_embedder_that_is_named() -> None:
    runs = {feed: SocialModel(n_agents=12, preset="x", feed=feed, rng=1) for feed in ("x", "x_personal")}
    for model in runs.values():
        model.run_for(4)
    assert runs["x"].runlog.digest != runs["x_personal"].runlog.digest
    world, users = runs["x_personal"].world, range(1, 13)
    assert world.feeds(world.viewers(users)) == [world.feed(user) for user in users]
    with pytest.raises(ConfigError, match="there is no embedder 'word2vec'"):
        SocialModel(feed="x_personal_code", embedder="word2vec")


def test_a_table_of_ones_own_becomes_a_population(tmp_path) -> None:
    (tmp_path / "people.csv").write_text("name,persona,age\nAnna,You keep bees.,40\nBo,You keep bees away.,51\n")
    model = SocialModel(users=str(tmp_path / "people.csv"), rng=1)
    assert [user.config.name for user in model.agents] == ["Anna", "Bo"]
    assert "age: 40" in model.agents.to_list()[0].config.text


def test_a_file_that_is_no_population_is_refused_with_what_was_found(tmp_path) -> None:
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ConfigError, match=r"empty\.csv"):
        SocialModel(users=str(tmp_path / "empty.csv"))


def test_a_whole_run_is_replayed(tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    first = SocialModel(n_agents=30, rng=2, llm=honest(), log=log)
    first.run_for(10)
    first.close()
    again = SocialModel(n_agents=30, rng=2, llm="ScriptedLLM", log=log, replay=True)
    again.run_for(10)
    assert again.runlog.digest == first.runlog.digest


@pytest.mark.skipif(DATA is None, reason="MESA_LLM_DATA names no folder with the original data")
def test_rumour_cascade_of_111_users_is_deterministic_for_fifty_steps() -> None:
    users = str(Path(DATA or "", "oasis", "False_Business_0.csv"))
    model = SocialModel(users=users, preset="x", step_minutes=3, rng=1)
    model.run_for(50)
    assert len(model.agents) == 111
    assert model.world.measures.posts_table()[0]["step"] == 0
    assert model.largest_cascade > 1
    assert model.runlog.digest == digest(50, users=users, preset="x", step_minutes=3, rng=1)


def test_a_user_of_its_own_is_who_its_config_says() -> None:
    model, dictionary = SocialModel(n_agents=2, rng=1), {"name": "Ann"}
    user = SocialUser(model, config="You like round numbers.")
    assert user.config.persona == "You like round numbers."
    with pytest.raises(ConfigError, match="config= must be an AgentConfig or a persona as text, got"):
        user.config = dictionary  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.skipif(DATA is None, reason="MESA_LLM_DATA names no folder with the original data")
def test_the_196_users_of_oasis_stay_themselves_whoever_shares_a_username(tmp_path) -> None:
    original = Path(DATA or "", "oasis", "197_baoshou.csv")
    text = original.read_text(encoding="utf-8").replace(",user3,", ",user0,").replace(",user7,", ",user5,")
    (tmp_path / "197.csv").write_text(text, encoding="utf-8")
    models = [SocialModel(users=str(path), rng=1) for path in (original, tmp_path / "197.csv")]
    assert [(len(model.agents), model.n_follows) for model in models] == [(196, models[0].n_follows)] * 2
    assert len({one.username for one in models[1].users_file.personas}) == 194
