"""Models as environments of reinforcement learning: the checks of Gymnasium and PettingZoo themselves."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from mesa_llm import ConfigError, ToolCall
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel

gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium: pip install gymnasium pettingzoo")
pettingzoo = pytest.importorskip("pettingzoo", reason="needs pettingzoo: pip install gymnasium pettingzoo")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: E402

from mesa_llm.experiments.environments import ModelEnv, ParallelModelEnv  # noqa: E402


def coins(agent: Any, seen: Any) -> list[float]:
    """Return its own coins, and those of the person it has met."""
    return [agent.wealth, -1 if agent.met is None else agent.met.wealth]


WEALTH: dict[str, Any] = {
    "choices": [ToolCall("keep"), ToolCall("give")],
    "features": coins,
    "reward": "wealth",
    "max_steps": 20,
    "n_agents": 6,
}


def test_gymnasium_accepts_a_model_with_one_learner() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the box has no bounds
        check_env(ModelEnv(WealthModel, **WEALTH), skip_render_check=True)


def test_pettingzoo_accepts_a_model_with_several_learners() -> None:
    def make() -> ParallelModelEnv:
        return ParallelModelEnv(WealthModel, learners=lambda agent: agent.unique_id <= 3, **WEALTH)

    parallel_api_test(make(), num_cycles=50)
    parallel_seed_test(make)


def test_an_episode_ends_and_its_rewards_are_what_the_learner_gained() -> None:
    env = ModelEnv(WealthModel, **WEALTH)
    first, _ = env.reset(seed=3)
    seen, total, is_over, n_steps = first, 0.0, False, 0
    while not is_over:
        seen, reward, terminated, truncated, _ = env.step(0)
        total, is_over, n_steps = total + reward, terminated or truncated, n_steps + 1
    assert (n_steps, total) == (20, seen[0] - first[0])
    assert total > 0  # it keeps, and the others give
    assert [tuple(env.reset(seed=3)[0]), env.model.time] == [tuple(first), 0]


def test_an_environment_without_choices_or_learners_is_refused() -> None:
    idle: dict[str, Any] = {**WEALTH, "choices": []}
    nobody: dict[str, Any] = {**WEALTH, "learner": 99}
    with pytest.raises(ConfigError, match="choices= is empty"):
        ModelEnv(WealthModel, **idle)
    with pytest.raises(ConfigError, match="no agent that learners="):
        ModelEnv(WealthModel, **nobody)
