"""People of the classics: who the agents are besides their place in the model, drawn with the seed of a run.

Each has a name, an age, an occupation and a few traits that matter for what it decides, from the library's invented
residents. All of it is drawn apart from the model's own chance, so rule twins and random baselines do the same whether
people are drawn or alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from random import Random
from typing import Any, Literal

from mesa_llm import AgentConfig
from mesa_llm.population import draw, invented
from mesa_llm.text import MAX_NAME, one_line

People = Literal["drawn", "alike"]
"""Whether agents are people drawn with the seed, or all alike: nameless, and nothing is said about them."""

OptionOrder = Literal["drawn", "own"]
"""Whether the order of options whose positions mean nothing is drawn for each agent and step, or the model's own."""

Traits = Mapping[str, Mapping[str, str]]
"""Name of a trait → each of its values → the sentence that says so to the agent."""


def configs_of(model: Any, traits: Traits, n: int) -> list[AgentConfig | None]:
    """Return who the agents of a model are; None for each if its scenario has them alike.

    Args:
        model: The model, of whose scenario `people` is read.
        traits: Traits that matter for what they decide.
        n: Number of agents.
    """
    if model.scenario.people == "alike":
        return [None] * n
    rng = Random(f"people {model.run_seed}")
    residents = invented(n, rng)
    drawn = draw(n, rng, {name: dict.fromkeys(values, 1.0) for name, values in traits.items()})
    configs: list[AgentConfig | None] = []
    for resident, own in zip(residents, drawn, strict=True):
        who = f"You are {resident.name} ({resident.traits['age']}, {resident.traits['occupation']})."
        persona = " ".join([who, *(traits[name][value] for name, value in own.items())])
        configs.append(AgentConfig(name=resident.name, persona=persona, role={**resident.traits, **own}))
    return configs


def animal_config(model: Any, traits: Traits, index: int) -> AgentConfig | None:
    """Return the temper of an animal, which has no name, from its number alone; None if the scenario has them alike.

    Args:
        model: The model, of whose scenario `people` is read.
        traits: Traits that matter for what it decides.
        index: Number of the animal, from 1 in the order of birth.
    """
    if model.scenario.people == "alike":
        return None
    digest = blake2b(f"{model.run_seed} {index}".encode(), digest_size=len(traits)).digest()
    own = {name: tuple(values)[byte % len(values)] for byte, (name, values) in zip(digest, traits.items(), strict=True)}
    return _config_of(" ".join(traits[name][value] for name, value in own.items()), tuple(own.items()))


@cache
def _config_of(persona: str, role: tuple[tuple[str, str], ...]) -> AgentConfig:
    """Return the config of a temper, one object for all animals that share it."""
    return AgentConfig(persona=persona, role=dict(role))


def known_as(agent: Any) -> str:
    """Return how others speak of an agent: its name, or its number if it has none.

    Args:
        agent: The agent.
    """
    name = agent.config.name
    return one_line(name, MAX_NAME) if name else f"person {agent.unique_id}"


def percent(share: float) -> str:
    """Format a share as a whole number of percent, unless that would make a small one nothing or a large one all.

    Args:
        share: From 0 to 1.
    """
    if 0 < share < 0.005:
        return "less than 1 %"
    if 0.995 <= share < 1:
        return "more than 99 %"
    return f"{100 * share:.0f} %"
