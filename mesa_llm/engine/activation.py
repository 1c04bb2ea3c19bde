"""Who acts in a step, and in which order. Every draw comes from `model.random`.

An activation returns stages. The agents of a stage decide together, from the same state, and act in the order of the
stage; the next stage sees the results.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mesa_llm.errors import ConfigError
from mesa_llm.records import Observation
from mesa_llm.text import one_line

FloatArray = npt.NDArray[np.float64]


class Turn(NamedTuple):
    """One agent's turn in a stage; an agent has several if it is asked several questions."""

    agent: Any
    """The agent that decides."""

    observation: Observation | None = None
    """Observation that it decides on; None: the result of its `observe()` when the stage begins."""


Stage = list[Any]
"""Agents or turns that decide together, in the order in which they then act."""


class Activation(Protocol):
    """Chooses who acts in a step."""

    def __call__(self, model: Any) -> Iterable[Stage]:
        """Return the stages of one step."""
        ...


def turns_of(stage: Any) -> list[Turn]:
    """Convert the items of a stage to turns; a bare agent decides on its own observation.

    Raises:
        ConfigError: If the stage is an agent, a turn or None instead of a list.
    """
    if isinstance(stage, Turn) or not isinstance(stage, Iterable):
        raise ConfigError(
            f"a stage is a list of agents or turns that decide together, got {one_line(repr(stage), 80)}; an "
            "activation returns a list of stages: [agents] if all decide at once, [[agent] for agent in agents] if one "
            "by one"
        )
    return [item if type(item) is Turn else Turn(item) for item in stage]


def llm_agents(model: Any) -> Stage:
    """Return the agents that decide, in order of creation."""
    agents = list(model.agents)
    if all(getattr(kind, "is_minded", False) for kind in set(map(type, agents))):
        return agents
    return [agent for agent in agents if getattr(agent, "is_minded", False)]


def uniform_draws(rng: random.Random, n: int) -> FloatArray:
    """Draw the numbers that `n` calls of `rng.random()` would return, faster.

    Args:
        rng: Random generator; it ends in the state in which those calls would leave it.
        n: Number of draws.
    """
    if type(rng) is not random.Random or n < FEW:
        return np.array([rng.random() for _ in range(n)])
    version, words, spare = rng.getstate()
    twin = np.random.RandomState()
    twin.set_state(("MT19937", np.array(words[:-1], dtype=np.uint32), words[-1], 0, 0.0))
    draws = twin.random_sample(n)
    state: Any = twin.get_state()
    rng.setstate((version, (*map(int, state[1]), int(state[2])), spare))
    return draws


FEW = 1000
"""Number of draws up to which a plain loop is as fast."""


def everyone(model: Any) -> list[Stage]:
    """Let everyone decide together, and act in random order."""
    agents = llm_agents(model)
    model.random.shuffle(agents)
    return [agents]


def in_order(model: Any) -> list[Stage]:
    """Let everyone decide together, and act in the order in which they were created."""
    return [llm_agents(model)]


def one_at_a_time(model: Any) -> list[Stage]:
    """Let each agent decide after the previous one has acted, in random order (Mesa's `shuffle_do`)."""
    agents = llm_agents(model)
    model.random.shuffle(agents)
    return [[agent] for agent in agents]


def in_turn(model: Any) -> list[Stage]:
    """Let one agent act per step, in order of creation, starting over after the last."""
    agents = llm_agents(model)
    return [[agents[(model.now - 1) % len(agents)]]] if agents else []


class ByType:
    """Activates one class of agents after another.

    An agent acts once, with the first of the classes it belongs to; an agent of none of them does not act.
    """

    def __init__(self, *kinds: type) -> None:
        """Store the order.

        Args:
            *kinds: Agent classes, first to last.
        """
        self.kinds = kinds

    def __call__(self, model: Any) -> list[Stage]:
        """Return one stage per class, each in random order."""
        by_kind: dict[type, list[Any]] = {kind: [] for kind in self.kinds}
        for agent in llm_agents(model):
            kind = next((kind for kind in self.kinds if isinstance(agent, kind)), None)
            if kind is not None:
                by_kind[kind].append(agent)
        for agents in by_kind.values():
            model.random.shuffle(agents)
        return list(by_kind.values())


class RandomShare:
    """Lets each agent act with the same probability in each step."""

    def __init__(self, share: float) -> None:
        """Store the probability.

        Args:
            share: Probability of acting in a step, from 0 to 1.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share is a probability from 0 to 1, got {share!r}")
        self.share = share

    def __call__(self, model: Any) -> list[Stage]:
        """Draw who acts, and in which order."""
        agents = llm_agents(model)
        agents = chosen(agents, uniform_draws(model.random, len(agents)) < self.share)
        model.random.shuffle(agents)
        return [agents]


class Hours(Protocol):
    """Hourly activity profiles of all agents that decide, in order of creation."""

    def __len__(self) -> int:
        """Count the agents."""
        ...

    def __getitem__(self, index: int, /) -> Sequence[float]:
        """Return the 24 hourly probabilities of the agent at this index, from midnight on."""
        ...

    def at(self, hour: int) -> FloatArray:
        """Return the probabilities of all agents in one hour, shape `(agents,)`."""
        ...


def chosen(agents: Stage, is_chosen: npt.NDArray[np.bool_]) -> Stage:
    """Return the agents that a mask marks, in order."""
    return [agents[index] for index in np.flatnonzero(is_chosen).tolist()]


class Hourly:
    """Lets each agent act with a probability that depends on the hour of the day.

    Source:
        OASIS (Yang et al. 2024, arXiv 2411.11581), time engine: 24 hourly probabilities per agent.
    """

    def __init__(
        self,
        probabilities: Callable[[Any], Sequence[float]] | Hours,
        minutes_per_step: float = 60.0,
        start_hour: float = 0.0,
    ) -> None:
        """Store the hourly profiles and the length of a step.

        Args:
            probabilities: A function that returns the 24 probabilities of an agent, from midnight on; or, faster with
                many agents, a table of all of them, in which the agent with `unique_id` 1 comes first.
            minutes_per_step: Simulated minutes in a step.
            start_hour: Hour of the day before the first step.
        """
        self.probabilities = probabilities
        self.minutes_per_step = minutes_per_step
        self.start_hour = start_hour

    def hour(self, step: int) -> int:
        """Return the hour of the day, 0 to 23, in which a step begins."""
        return int(self.start_hour + (step - 1) * self.minutes_per_step / 60) % 24

    def __call__(self, model: Any) -> list[Stage]:
        """Draw who acts in this hour, and in which order."""
        hour = self.hour(model.now)
        agents = llm_agents(model)
        agents = chosen(agents, uniform_draws(model.random, len(agents)) < self._at(hour, agents))
        model.random.shuffle(agents)
        return [agents]

    def _at(self, hour: int, agents: Stage) -> FloatArray:
        """Return the probability of each agent in an hour."""
        if callable(self.probabilities):
            return np.array([self.probabilities(agent)[hour] for agent in agents], dtype=np.float64)
        column = self.probabilities.at(hour)
        n = len(column)
        if len(agents) == n and (not n or agents[-1].unique_id == n):
            return column
        indices = [agent.unique_id - 1 for agent in agents]  # some may have left, and others come
        come = [agent.hours[hour] for agent in agents[sum(index < n for index in indices) :]]
        return np.concatenate([column[[index for index in indices if index < n]], np.array(come, dtype=np.float64)])


ACTIVATIONS: dict[str, Activation] = {
    "everyone": everyone,
    "in_order": in_order,
    "one_at_a_time": one_at_a_time,
    "in_turn": in_turn,
}
"""The activations without parameters, by the names that model parameters give them."""
