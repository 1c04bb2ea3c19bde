"""Models as environments of reinforcement learning: Gymnasium for one learner, PettingZoo for several.

Learners decide from outside, through `observations` and `apply`; all others decide by their own language model, rule or
chance, and learn nothing of it. Needs `pip install gymnasium pettingzoo`.

    env = ParallelModelEnv(WealthModel, choices=[ToolCall("keep"), ToolCall("give")], features=coins, reward="wealth")

Source:
    Towers et al. (2024), Gymnasium, arXiv 2407.17032; Terry et al. (2021), PettingZoo, NeurIPS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.records import Failure, Observation

Floats = npt.NDArray[np.float32]

Features = Callable[[Any, Observation | None], Sequence[float]]
"""Numbers that a learner sees: given the agent and its observation (None: it is not due any more)."""


class ParallelModelEnv(ParallelEnv[str, Any, Any]):
    """A model whose learners act at the same time; one step of the environment is one stage in which learners are due.

    Attributes:
        model: The model of the present episode.
        possible_agents: Names of the learners: `agent_1`, …
        agents: Names of those that still take part.
    """

    metadata: dict[str, Any] = {"name": "mesa_llm_v0", "render_modes": []}  # noqa: RUF012 - PettingZoo declares it so

    def __init__(
        self,
        make: Callable[..., LLMModel],
        *,
        choices: Sequence[Any],
        features: Features,
        reward: str | Callable[[Any], float],
        learners: Callable[[Any], bool] = lambda agent: True,
        max_steps: int = 100,
        **parameters: Any,
    ) -> None:
        """Describe the environment; a model is made for each episode.

        Args:
            make: The model's class, or a function that takes `rng` and the parameters and returns a model.
            choices: What a learner chooses from: actions (`ToolCall`), or typed answers. What is not possible now is
                refused, as for everybody.
            features: Numbers that a learner sees, always as many.
            reward: Attribute of the agent, or a function of it; the reward is its change since the last step.
            learners: Says whether an agent is a learner; the others decide by themselves.
            max_steps: Number of the model's steps after which an episode is cut off.
            **parameters: Parameters of the model.

        Raises:
            ConfigError: If there is no choice, or no learner.
        """
        if not choices:
            raise ConfigError("choices= is empty; give the actions that a learner chooses from")
        self._make, self._parameters = make, parameters
        self._choices, self._features, self._learners = list(choices), features, learners
        self._value = (lambda agent: float(getattr(agent, reward))) if isinstance(reward, str) else reward
        self.max_steps = max_steps
        self._seeds = np.random.default_rng()
        self._begin(0)
        n_features = len(self._look(next(iter(self._by_name.values()))))
        self._observed = Box(-np.inf, np.inf, (n_features,), np.float32)
        self._chosen = Discrete(len(self._choices))
        self.possible_agents = list(self._by_name)
        self.observation_spaces = dict.fromkeys(self.possible_agents, self._observed)
        self.action_spaces = dict.fromkeys(self.possible_agents, self._chosen)

    def observation_space(self, agent: str) -> Any:
        """Return the space of a learner's features, shape `(features,)`."""
        return self._observed

    def action_space(self, agent: str) -> Any:
        """Return the space of a learner's choices."""
        return self._chosen

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, dict[str, Any]]]:
        """Begin an episode with a new model.

        Args:
            seed: Seed of the model, and of the seeds of later episodes; None: the next one.
            options: `{"parameters": {…}}`: parameters of the model that differ in this episode.
        """
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
        self._begin(int(self._seeds.integers(2**31)) if seed is None else seed, options)
        return {name: self._look(self._by_name[name]) for name in self.agents}, {name: {} for name in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Floats], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Let the learners act, and everybody else until learners are due again.

        Args:
            actions: Learner → index of its choice; those left out do nothing.
        """
        names = list(self.agents)
        by_agent = {self._by_name[name]: self._choices[int(index)] for name, index in actions.items()}
        outcomes = self._apply(by_agent)
        self._go_on()
        is_cut = self.model.time >= self.max_steps
        observations: dict[str, Floats] = {}
        rewards: dict[str, float] = {}
        terminations: dict[str, bool] = {}
        infos: dict[str, dict[str, Any]] = {}
        for name in names:
            agent = self._by_name[name]
            value = self._value(agent)
            rewards[name], self._values[name] = value - self._values[name], value
            observations[name] = self._look(agent)
            terminations[name] = not self.model.running or agent not in self.model.agents
            done = outcomes.get(agent.unique_id, [])
            infos[name] = {"refused": [str(outcome.result) for outcome in done if not outcome.ok]}
        self.agents = [name for name in names if not (terminations[name] or is_cut)]
        return observations, rewards, terminations, dict.fromkeys(names, is_cut), infos

    def close(self) -> None:
        """Close the model's connections."""
        self.model.close()

    def _begin(self, seed: int, options: dict[str, Any] | None = None) -> None:
        self.model = self._make(rng=seed, **{**self._parameters, **(options or {}).get("parameters", {})})
        learners = [agent for agent in self.model.agents if self._learners(agent)]
        if not learners:
            raise ConfigError(f"{type(self.model).__name__} has no agent that learners= accepts")
        self._by_name = {f"agent_{agent.unique_id}": agent for agent in learners}
        self.agents = list(self._by_name)
        self._values = {name: self._value(agent) for name, agent in self._by_name.items()}
        self._seen: dict[Any, Observation] = {}
        self._go_on()

    def _look(self, agent: Any) -> Floats:
        return np.asarray(self._features(agent, self._seen.get(agent)), dtype=np.float32)

    def _go_on(self) -> None:
        """Let others decide until a learner is due, the run is over, or the episode is cut off."""
        learners = set(self._by_name.values())
        while self.model.running and self.model.time < self.max_steps:
            seen = self.model.observations()
            self._seen = {key: one for key, one in seen.items() if key in learners}
            if self._seen:
                return
            self._apply({})
        self._seen = {}

    def _apply(self, by_agent: dict[Any, Any]) -> dict[int, list[Any]]:
        """Carry out a stage: the learners' choices, and what all others decide."""
        if not self.model.running or self.model.time >= self.max_steps:
            return {}
        seen = self.model.observations()
        if not seen:
            self.model.step()
            return {}
        learners = set(self._by_name.values())
        decisions: dict[Any, Any] = {key: by_agent[key] for key in seen if key in by_agent}
        others = [key for key in seen if (key[0] if isinstance(key, tuple) else key) not in learners]
        agents = [key[0] if isinstance(key, tuple) else key for key in others]
        decided = self.model.decide(agents, [seen[key] for key in others]) if others else []
        decisions |= {
            key: decision for key, decision in zip(others, decided, strict=True) if not isinstance(decision, Failure)
        }
        outcomes = self.model.apply(decisions)
        return {key.unique_id: list(outcomes.get(key, [])) for key in by_agent}


class ModelEnv(gymnasium.Env[Any, Any]):
    """A model with one learner; see `ParallelModelEnv`.

    Attributes:
        parallel: The environment of several learners, of which this one is the only one.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(self, make: Callable[..., LLMModel], *, learner: int = 1, **description: Any) -> None:
        """Describe the environment.

        Args:
            make: As for `ParallelModelEnv`.
            learner: Mesa `unique_id` of the learner.
            **description: As for `ParallelModelEnv`: `choices`, `features`, `reward`, `max_steps`, parameters.
        """
        self.parallel = ParallelModelEnv(make, learners=lambda agent: agent.unique_id == learner, **description)
        (self._name,) = self.parallel.possible_agents
        self.observation_space = self.parallel.observation_space(self._name)
        self.action_space = self.parallel.action_space(self._name)

    @property
    def model(self) -> LLMModel:
        """The model of the present episode."""
        return self.parallel.model

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode; see `ParallelModelEnv.reset`."""
        super().reset(seed=seed)
        observations, infos = self.parallel.reset(seed=seed, options=options)
        return observations[self._name], infos[self._name]

    def step(self, action: int) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Let the learner act, and everybody else until it is due again."""
        name = self._name
        observations, rewards, terminations, truncations, infos = self.parallel.step({name: action})
        return observations[name], rewards[name], terminations[name], truncations[name], infos[name]

    def close(self) -> None:
        """Close the model's connections."""
        self.parallel.close()
