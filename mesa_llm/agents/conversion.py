"""Conversion of existing agents: each gets a mind by changing its class, and its model activates it as before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from mesa.agentset import _HardKeyAgentSet  # pyright: ignore[reportPrivateUsage]

from mesa_llm.config import NOBODY
from mesa_llm.errors import ConfigError
from mesa_llm.memory import open_memory
from mesa_llm.tools.toolbox import checked_tools

COMPONENTS = ("llm", "config", "memory", "tools")
"""Components of a mind."""


class MindedSet(_HardKeyAgentSet[Any]):
    """The agents converted to one class; each also counts among the agents of its former class."""

    def __init__(self, agents: Iterable[Any], random: Random, body: Any = ()) -> None:
        """Store some agents.

        Args:
            agents: The agents. Mesa makes its selections by this constructor.
            random: The model's generator.
            body: Mesa's set of the agents of the former class.
        """
        super().__init__(agents, random)
        self.body = body
        self.components: Mapping[str, Any] = {}

    def add(self, agent: Any) -> None:
        """Add an agent; one created in this class gets the components of those that entered it."""
        if agent not in self.body and _is_bare(agent):
            config = self.components.get("config")
            equip(agent, {**self.components, "config": None if callable(config) else config})
        super().add(agent)
        self.body.add(agent)

    def discard(self, agent: Any) -> None:
        """Remove an agent if it is a member."""
        super().discard(agent)
        self.body.discard(agent)

    def remove(self, agent: Any) -> None:
        """Remove an agent.

        Raises:
            KeyError: If it is no member.
        """
        super().remove(agent)
        self.body.discard(agent)


class AgentsByType(dict[type, Any]):
    """A model's agents by class; classes that agents were converted to can be looked up, but are not enumerated.

    A model that activates its classes one after another therefore activates every agent once.
    """

    def __init__(self, sets: Mapping[type, Any]) -> None:
        """Copy the sets of a model.

        Args:
            sets: Agent class → its agents.
        """
        super().__init__(sets)
        self.entered: dict[type, MindedSet] = {}

    def __missing__(self, kind: type) -> Any:
        """Return the agents of a class that agents were converted to."""
        return self.entered[kind]

    def __contains__(self, kind: object) -> bool:
        """Check whether there were agents of a class."""
        return super().__contains__(kind) or any(kind is minded_kind for minded_kind in self.entered)

    def get(self, kind: type, default: Any = None) -> Any:
        """Return the agents of a class."""
        return super().get(kind, self.entered.get(kind, default))

    def llm_agents(self, kind: type, body: type, random: Random) -> MindedSet:
        """Return the set of a class that agents are converted to; agents created in it earlier move into the set.

        Args:
            kind: The class with a mind.
            body: The former class.
            random: The model's generator.
        """
        if kind not in self.entered:
            existing = self.pop(kind, ())
            self.entered[kind] = MindedSet((), random, self[body])
            for agent in existing:
                self.entered[kind].add(agent)
        return self.entered[kind]


def check_components(components: Mapping[str, Any]) -> None:
    """Check that all names are components of a mind.

    Raises:
        ConfigError: If a name is unknown.
    """
    unknown = sorted(set(components) - set(COMPONENTS))
    if unknown:
        raise ConfigError(
            f"unknown components: {', '.join(unknown)}; choose of {', '.join(COMPONENTS)} "
            "(log=, api_base= and budgets are for mesa_llm.connect(model, ...))"
        )


def enter(kind: Any, agent: Any, components: Mapping[str, Any]) -> Any:
    """Change an agent's class, and set its four components; its id, position and activation stay.

    Args:
        kind: The class with a mind.
        agent: An agent of the former class.
        components: `llm`, `config`, `memory`, `tools`.

    Raises:
        ConfigError: If its former class has an attribute with the name of a component, whose value would be lost.
    """
    model, body = agent.model, type(agent)
    if not getattr(body, "is_minded", False) and (own := [name for name in COMPONENTS if hasattr(agent, name)]):
        raise ConfigError(f"{body.__name__} has {own[0]} of its own, as a mind has; rename it, and no value is lost")
    if not isinstance(model._agents_by_type, AgentsByType):
        model._agents_by_type = AgentsByType(model._agents_by_type)
    llm_agents = model._agents_by_type.llm_agents(kind, body, model.random)
    llm_agents.components = components
    agent.__class__ = kind
    equip(agent, components)
    llm_agents.add(agent)
    return agent


def equip(agent: Any, components: Mapping[str, Any]) -> None:
    """Set the four components of an agent; a callable config is called with the agent."""
    config = components.get("config")
    agent._llm = components.get("llm")
    agent.config = config(agent) if callable(config) else config
    agent.memory = open_memory(components.get("memory"))
    agent.tools = checked_tools(components.get("tools", ()))


def _is_bare(agent: Any) -> bool:
    """Check whether an agent was made without naming any component."""
    return agent._llm is None and agent._memory is None and agent.config is NOBODY and not agent.tools
