"""One observation of several worlds, for agents that live in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.records import Observation
from mesa_llm.tools.toolbox import display_names, takers


def join(seen: Mapping[str, Observation], worlds: Iterable[Any] = ()) -> Observation:
    """Join the observations of several worlds, each under the name of its world.

    If one of them asks a typed question, the agent answers it with the other observations in view.

    Args:
        seen: Name of a world → its observation, in order.
        worlds: Those worlds. If one lists the tools usable now and another lists none, all of the other's are usable,
            and each world's options apply only to its own tools. Without `worlds`, the agent keeps all its tools, and
            options of the same name are merged.

    Raises:
        ConfigError: If two of them ask a question; each needs its own turn.
    """
    questioners = [name for name, part in seen.items() if part.answer is not None]
    if len(questioners) > 1:
        raise ConfigError(
            f"{' and '.join(questioners)} both ask a question in one observation; give the agent a Turn for each"
        )
    question = seen[questioners[0]] if questioners else Observation()
    kinds = {world.name: type(world) for world in worlds}
    world_kinds = tuple((kind, name) for name, kind in kinds.items())
    tool_names = dict(zip(kinds, display_names(world_kinds), strict=True))
    argument_takers = dict(zip(kinds, takers(world_kinds), strict=True))
    is_limited = any(part.tools is not None for part in seen.values())
    tools: list[str] = []
    for name, part in seen.items():
        if part.tools is not None:
            tools += [tool_names.get(name, {}).get(tool, tool) for tool in part.tools]
        elif name in kinds:
            tools += tool_names[name].values()
        else:
            is_limited = False
    options: dict[str, tuple[Any, ...]] = {}
    for world, observation in seen.items():
        own = _qualified(observation.options, tool_names.get(world, {}), argument_takers.get(world, {}))
        for name, values in own.items():
            options[name] = (*options.get(name, ()), *values)
    return Observation(
        text="\n\n".join(f"[{name}]\n{observation.text}" for name, observation in seen.items()),
        instructions="\n\n".join(filter(None, (observation.instructions for observation in seen.values()))),
        tools=tuple(dict.fromkeys(tools)) if is_limited else None,
        options=options,
        max_actions=max(observation.max_actions for observation in seen.values()),
        facts={name: observation.facts for name, observation in seen.items()},
        answer=question.answer,
        label=question.label,
        world=questioners[0] if questioners else "",
        is_about_self=question.is_about_self,
    )


def _qualified(
    options: Mapping[str, tuple[Any, ...]],
    tool_names: Mapping[str, str],
    argument_takers: Mapping[str, tuple[str, ...]],
) -> dict[str, tuple[Any, ...]]:
    """Qualify option names with the tools of one world, so they do not restrict other worlds' arguments.

    Args:
        options: Options of the world's observation.
        tool_names: Name of a tool → the agent's name for it.
        argument_takers: Name of an argument → the agent's names for the tools that take it.
    """
    qualified: dict[str, tuple[Any, ...]] = {}
    for name, values in options.items():
        action, dot, argument = name.partition(".")
        tools = (tool_names.get(action, action),) if dot else argument_takers.get(name, ())
        for key in [f"{tool}.{argument or name}" for tool in tools] or [name]:
            if dot or key not in qualified:
                qualified[key] = values
    return qualified
