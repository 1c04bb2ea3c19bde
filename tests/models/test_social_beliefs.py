"""Beliefs of users of the social network: what moves them, and who reads it."""

from __future__ import annotations

import pytest

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm_models.social.belief_text import position_band
from mesa_llm_models.social.model import SocialModel

LAW = "the new climate law"


def quiet(n: int = 3, **parameters) -> SocialModel:
    """Make a network in which nobody writes, follows or believes anything yet."""
    model = SocialModel(n_agents=n, beliefs=True, topic=LAW, belief_spread=0, follows=0, rng=1, **parameters)
    for user in model.agents:
        user.rule = lambda seen: None
    return model


def test_posts_about_the_topic_move_those_who_read_them_and_no_others() -> None:
    model = quiet(2, feed="newest", feed_size=1)
    model.world.create_post(1, "I oppose this wonderful, fair and excellent climate law.")
    model.step()
    one, two = (user.position for user in model.agents)
    assert one == 0
    assert two < 0
    model.world.create_post(1, "What a wonderful day!")
    model.step()
    assert model.agents[1].position == two


def test_original_rules_move_beliefs_by_the_tone_of_all_posts() -> None:
    model = quiet(2, belief_rules="original", feed_size=0)
    model.world.create_post(1, "I oppose this wonderful, fair and excellent climate law.")
    model.step()
    assert model.agents[1].position > 0


def test_likes_of_ones_own_posts_make_one_surer() -> None:
    model = quiet()
    model.world.create_post(1, "Good morning.")
    model.step()
    post_id = len(model.world.measures.posts_table())
    model.world.vote(2, post_id, 1)
    model.step()
    assert model.opinions is not None
    assert model.opinions.of(1).confidence[LAW] == pytest.approx(0.505)


def test_beliefs_stand_in_the_prompt_and_in_the_collected_data() -> None:
    model = SocialModel(n_agents=12, beliefs=True, topic=LAW, rng=1)
    model.run_for(6)
    user = model.agents[0]
    assert f"On “{LAW}” you are {position_band(user.position)}; your view is" in user.observe().text
    rows = model.datacollector.get_model_vars_dataframe()
    assert rows["position_spread"].iloc[-1] < rows["position_spread"].iloc[0] < 0.8
    assert rows["mean_position"].iloc[-1] == model.opinions.mean
    assert "position" in model.datacollector.get_agent_vars_dataframe()


def test_a_language_model_can_read_the_posts_each_text_once_and_is_replayed(tmp_path) -> None:
    reader = ScriptedLLM(lambda request: '{"about": true, "stance": 1}')
    runs = []
    for replay in (False, True):
        parameters = {"llm": {"stance": reader, "*": "rule"}, "log": tmp_path / "run.sqlite", "replay": replay}
        model = SocialModel(n_agents=8, beliefs=True, stance="model", rng=1, **parameters)
        model.run_for(4)
        assert set(model.opinions.stances.values()) == {1.0}
        assert model.usage_by_purpose["stance"].calls == (0 if replay else len(model.opinions.stances))
        runs.append((model.runlog.digest, model.opinions.positions))
        model.close()
    assert runs[0] == runs[1]
    assert model.mean_position > 0


def test_what_could_not_be_read_moves_nobody() -> None:
    broken = ScriptedLLM(lambda request: '{"about": true, "stance": 7}')
    model = SocialModel(n_agents=6, beliefs=True, stance="model", llm={"stance": broken, "*": "rule"}, rng=1)
    before = model.opinions.positions
    model.run_for(2)
    assert set(model.opinions.stances.values()) == {None}
    assert model.opinions.positions == before


# -- camps and hubs


def test_with_full_homophily_users_follow_their_own_side_alone() -> None:
    model = SocialModel(n_agents=40, beliefs=True, homophily=1.0, rng=1)
    sides = {user: position > 0 for user, position in model.stances().items()}
    edges = model.world.measures.follow_edges().tolist()
    assert len(edges) == 120
    assert all(sides[follower] == sides[followed] for follower, followed in edges)


@pytest.mark.parametrize(("hubs", "is_extreme"), [("extreme", True), ("moderate", False)])
def test_the_most_followed_users_are_of_the_position_that_hubs_names(hubs: str, is_extreme: bool) -> None:
    model = SocialModel(n_agents=100, beliefs=True, hubs=hubs, rng=1)
    famous = sorted(model.agents, key=lambda user: user.n_followers)[-5:]
    distances = sorted(map(abs, model.stances().values()))
    assert all((abs(user.position) > distances[80]) == is_extreme for user in famous)
    assert all((abs(user.position) < distances[20]) != is_extreme for user in famous)


def test_network_forms_share_people_positions_and_first_posts() -> None:
    plain, other = (SocialModel(beliefs=True, rng=1, **form) for form in ({}, {"homophily": 0.9, "hubs": "random"}))
    assert plain.stances() == other.stances()
    assert plain.world.measures.posts_table() == other.world.measures.posts_table()
    assert plain.n_follows == other.n_follows


def test_hubs_of_a_position_need_positions_and_only_drawn_follows_are_shaped() -> None:
    with pytest.raises(ConfigError, match="hubs='extreme' goes by users' positions on the topic; set beliefs=true"):
        SocialModel(hubs="extreme")
    with pytest.raises(ConfigError, match="this population has its own"):
        SocialModel(population="oasis_x", homophily=0.9)
