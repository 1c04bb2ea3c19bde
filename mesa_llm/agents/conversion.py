"""Conversion of existing agents to LLM agents: each changes its class, and its model activates it as before.

Mesa stores a model's agents by class in its own mapping. Only this module replaces that mapping.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from random import Random
from textwrap import dedent
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mesa.agentset import AgentSet

from mesa_llm.config import NOBODY
from mesa_llm.errors import ConfigError
from mesa_llm.memory import open_memory
from mesa_llm.tools.toolbox import checked_tools

if TYPE_CHECKING:
    from mesa import Agent, Model
    from mesa.agentset import AbstractAgentSet


M = TypeVar("M")

COMPONENTS = ("llm", "config", "memory", "tools")
"""Components of an LLM agent."""


class LLMAgentSet(AgentSet[Any]):
    """The agents converted to one class. Each also counts as an agent of its former class."""

    def __init__(
        self, agents: Iterable[Agent[Any]], random: Random | None = None, body: AbstractAgentSet[Any] | None = None
    ) -> None:
        """Create a set of agents.

        Args:
            agents: The agents. Mesa calls this constructor for its selections.
            random: The model's random generator.
            body: Mesa's set of agents of the former class; None for a selection.
        """
        super().__init__(agents, random)
        self.body = body
        self.components: Mapping[str, Any] = {}

    def add(self, agent: Agent[Any]) -> None:
        """Add an agent. Agents created in this class get the components of the converted ones."""
        if self.body is not None:
            if agent not in self.body and _is_bare(mind := cast("Any", agent)):
                config = self.components.get("config")
                equip(mind, {**self.components, "config": None if callable(config) else config})
            self.body.add(agent)
        super().add(agent)

    def discard(self, agent: Agent[Any]) -> None:
        """Remove an agent if it is a member."""
        super().discard(agent)
        if self.body is not None:
            self.body.discard(agent)

    def remove(self, agent: Agent[Any]) -> None:
        """Remove an agent.

        Raises:
            KeyError: If it is not a member.
        """
        super().remove(agent)
        if self.body is not None:
            self.body.discard(agent)


class AgentsByType(dict[type, Any]):
    """A model's agents by class. Conversion classes can be looked up but are not enumerated.

    A model that activates one class after another therefore activates every agent once.
    """

    def __init__(self, sets: Mapping[type, AbstractAgentSet[Any]]) -> None:
        """Copy a model's agent sets.

        Args:
            sets: Agent class → its agents.
        """
        super().__init__(sets)
        self.entered: dict[type, LLMAgentSet] = {}

    @classmethod
    def of(cls, model: Model[Any, Any]) -> AgentsByType:
        """Return a model's agents by class, and install this mapping in the model."""
        own = model._agents_by_type  # pyright: ignore[reportPrivateUsage]
        if not isinstance(own, cls):
            own = model._agents_by_type = cls(own)  # pyright: ignore[reportPrivateUsage]
        return own

    def __missing__(self, kind: type) -> LLMAgentSet:
        """Return the agents converted to a class."""
        return self.entered[kind]

    def __contains__(self, kind: object) -> bool:
        """Check whether a class has, or had, agents."""
        return super().__contains__(kind) or any(kind is entered for entered in self.entered)

    def get(self, kind: type, default: Any = None) -> Any:
        """Return the agents of a class."""
        return super().get(kind, self.entered.get(kind, default))

    def converted(self, kind: type, body: type, random: Random) -> LLMAgentSet:
        """Return the set of agents converted to a class. Agents created in it earlier move into the set.

        Args:
            kind: The LLM agent class.
            body: The former class.
            random: The model's random generator.
        """
        if kind not in self.entered:
            existing = self.pop(kind, ())
            self.entered[kind] = LLMAgentSet((), random, self[body])
            for agent in existing:
                self.entered[kind].add(agent)
        return self.entered[kind]


def check_components(components: Mapping[str, Any]) -> None:
    """Check that all names are components of an LLM agent.

    Raises:
        ConfigError: If a name is unknown.
    """
    unknown = sorted(set(components) - set(COMPONENTS))
    if unknown:
        raise ConfigError(
            f"unknown components: {', '.join(unknown)}; choose from {', '.join(COMPONENTS)} "
            "(log=, api_base= and budgets are for mesa_llm.connect(model, ...))"
        )


def enter(kind: type[M], agent: Agent[Any], components: Mapping[str, Any]) -> M:
    """Change an agent's class and set its four components. Its id, position and activation stay.

    Args:
        kind: The LLM agent class.
        agent: An agent of the former class.
        components: `llm`, `config`, `memory`, `tools`.

    Raises:
        ConfigError: If its former class has an attribute named like a component, whose value would be lost.
    """
    model, body = agent.model, type(agent)
    if not getattr(body, "is_minded", False) and (own := [name for name in COMPONENTS if hasattr(agent, name)]):
        raise ConfigError(f"{body.__name__} already has an attribute {own[0]}; rename it to keep its value")
    converted = AgentsByType.of(model).converted(kind, body, model.random)
    converted.components = components
    agent.__class__ = cast("Any", kind)
    mind = cast("M", agent)
    equip(mind, components)
    converted.add(agent)
    return mind


def equip(agent: Any, components: Mapping[str, Any]) -> None:
    """Set the four components of an agent. A callable config is called with the agent."""
    config = components.get("config")
    agent.llm = components.get("llm")
    agent.config = cast("Any", config(agent) if callable(config) else config)
    agent.memory = open_memory(components.get("memory"))
    agent.tools = checked_tools(components.get("tools", ()))


def replaced_step_warning(kind: type, body: type) -> str:
    """Return what no longer happens when agents decide in place of their Mesa class's own step; empty: nothing.

    Args:
        kind: The LLM agent class.
        body: The class whose `step` is replaced.
    """
    try:
        definition: ast.AST = ast.parse(dedent(inspect.getsource(vars(body)["step"])))
    except (OSError, TypeError, SyntaxError):  # defined where there is no source
        lost, does = [], ""
    else:
        own = {name for function in vars(kind).values() for name in _names_in(function)} | set(vars(kind))
        lost = [name for name in _done_to_self(definition) if name.removesuffix("()") not in own]
        does = f" It changed or called {', '.join(lost)}, which {kind.__name__} does not."
        if not lost:
            return ""
    return (
        f"{body.__name__}.step() no longer runs: {kind.__name__} decides in its place.{does} To keep it, write in "
        f"{kind.__name__}: def step(self): {body.__name__}.step(self); Mind.step(self)"
    )


def _names_in(function: object) -> tuple[str, ...]:
    return function.__code__.co_names if isinstance(function, FunctionType) else ()


def _done_to_self(definition: ast.AST) -> list[str]:
    """Return the attributes of `self` that a method sets, and the methods of `self` that it calls."""
    done: dict[str, None] = {}
    for node in ast.walk(definition):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                done[f"{name}()"] = None
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                done[name] = None
            case _:
                pass
    return list(done)


def _is_bare(agent: Any) -> bool:
    """Check whether an agent was created without any components."""
    own = agent._llm, agent._memory  # pyright: ignore[reportPrivateUsage]
    return own == (None, None) and agent.config is NOBODY and not agent.tools
