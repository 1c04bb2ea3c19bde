"""Beliefs of users of the social network: what moves them, and who reads it."""

from __future__ import annotations

import pytest

from mesa_llm import ScriptedLLM
from mesa_llm.worlds.text import position_band
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


def test_the_original_moves_all_by_the_tone_of_all_posts_whatever_they_speak_of() -> None:
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
