"""Checks of how a model was set up: each is made once, so that turns cost nothing.

What agents see, decide and return is data, and is checked where it enters. Here are the slips of whoever wrote the
model, which show in the first step or when a class of agents is first asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.records import ToolSpec
from mesa_llm.text import suggestion


def require_minds(agents: Iterable[Any]) -> None:
    """Check that agents can decide.

    Raises:
        ConfigError: If one of them has no mind.
    """
    for kind in dict.fromkeys(map(type, agents)):
        if not getattr(kind, "is_minded", False):
            raise ConfigError(
                f"{kind.__name__} has no mind, and can be asked nothing; choose agents that think, as "
                "model.agents_by_type[…] does"
            )


def require_rules(agents: Iterable[Any], default: object) -> None:
    """Check that agents have rule twins to stand in for them.

    Args:
        agents: The agents.
        default: The `rule` of a class that defines none.

    Raises:
        ConfigError: If one of them has none.
    """
    for kind in dict.fromkeys(map(type, agents)):
        if getattr(kind, "rule", default) is default:
            raise ConfigError(f"{kind.__name__} has no rule twin; define rule(), or choose another on_error=")


def require_methods(agents: Iterable[Any]) -> None:
    """Explain a step that failed with a `TypeError`: check that no value stands where the engine calls a method.

    Raises:
        ConfigError: If one does, as after `self.observe = 3`.
    """
    for agent in agents:
        for name in ("observe", "rule", "act", "decide", "prompt", "remember", "remember_messages", "toolbox"):
            value = getattr(agent, name)
            if not callable(value):
                kind = type(agent).__name__
                raise ConfigError(
                    f"{kind}.{name} is {value!r:.60}, and hides the method {name}() of agents that think: give the "
                    f"attribute another name, or override the method in class {kind}"
                )


def require_parts(model: Any, parts: Mapping[str, type]) -> None:
    """Check that no value of the user's stands where a model keeps a part of itself.

    Args:
        model: The model.
        parts: Name of each attribute → class of the part.

    Raises:
        ConfigError: If one does, as after `self.interventions = []`.
    """
    for name, part in parts.items():
        value = getattr(model, name)
        if value is not None and not isinstance(value, part):
            raise ConfigError(
                f"{type(model).__name__}.{name} is {value!r:.60}, where the model keeps its {part.__name__}; give "
                "the attribute another name"
            )


def require_names(option: str, names: Iterable[Any], agents: Iterable[Any], thinking: type) -> None:
    """Check that a choice by agent or class names some that exist, so that no misspelt one falls back to the rest.

    Args:
        option: Name of the option, for the message.
        names: Ids of agents, names of their classes, shares of them (`2/3`), or `*`.
        agents: The agents of the model.
        thinking: Class of all agents that think; a class of which there are no agents yet may be named too.

    Raises:
        ConfigError: If one of the names is of no agent and no class.
    """
    kinds = {type(agent) for agent in agents if isinstance(agent, thinking)}
    present = {kind.__name__ for kind in kinds}
    bases = {base.__name__ for kind in kinds for base in kind.__mro__} - present
    for name in map(str, names):
        if name == "*" or name in present or all(part.isdecimal() for part in name.split("/", 1)):
            continue
        if name in bases or name not in _names_below(thinking):
            hint = suggestion(name, present) or f"; classes are {', '.join(sorted(present))}"
            raise ConfigError(f"{option} names {name!r}, which is no agent's id and no agent's own class{hint}")


def _names_below(kind: type) -> set[str]:
    """Return the names of all classes that inherit from a class."""
    return {name for below in kind.__subclasses__() for name in (below.__name__, *_names_below(below))}


def no_action_warning(kind: type) -> str:
    """Return the warning about a class of agents that are asked for an action but have none."""
    return (
        f"{kind.__name__} has no action, so that its language model is never asked: mark what it can do with @action, "
        "or ask for an answer by Observation(answer=…)"
    )


def unrecorded_warning(whose: str) -> str:
    """Return the warning about a decision of own code of which nothing can be replayed."""
    return (
        f"{whose} has decided without a request that is recorded: a replay runs its code again, and pays again for "
        "what it calls; write await self.recorded(name, call, …) around whatever it awaits"
    )


def options_warning(kind: type, names: Iterable[str], tools: Iterable[ToolSpec]) -> str:
    """Return a warning of options for arguments that no tool of an agent has, such as misspelt ones; empty: none.

    Args:
        kind: Class of the agent.
        names: Names of the options, as in `Observation.options`.
        tools: All tools that it has, usable now or not.
    """
    arguments = [(tool.name, name) for tool in tools for name in tool.parameters.get("properties", ())]
    known = {name for _, name in arguments} | {f"{tool}.{name}" for tool, name in arguments}
    unknown = [name for name in names if name not in known]
    if not unknown:
        return ""
    return (
        f"{kind.__name__} observes options for {', '.join(unknown)}, which none of its actions takes; arguments are "
        f"{', '.join(sorted({name for _, name in arguments})) or 'none'}"
    )
