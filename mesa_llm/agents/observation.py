"""What agents observe of worlds: several at once, and without offers that would be refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from mesa_llm.errors import ConfigError
from mesa_llm.records import Observation, options_for
from mesa_llm.tools.tool import compile_tool, marked_methods
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
        limits={
            name: bounds
            for world, observation in seen.items()
            for name, bounds in _qualified(observation.limits, tool_names.get(world, {}), {}).items()
        },
        option_order="own" if any(one.option_order == "own" for one in seen.values()) else "drawn",
        max_actions=max(observation.max_actions for observation in seen.values()),
        facts={name: observation.facts for name, observation in seen.items()},
        answer=question.answer,
        label=question.label,
        world=questioners[0] if questioners else "",
        persona_place=question.persona_place,
        images=tuple(image for observation in seen.values() for image in observation.images),
        remembered=question.remembered,
    )


def _qualified(
    options: Mapping[str, Any],
    tool_names: Mapping[str, str],
    argument_takers: Mapping[str, tuple[str, ...]],
) -> dict[str, Any]:
    """Qualify option names with the tools of one world, so they do not restrict other worlds' arguments.

    Args:
        options: Options of the world's observation.
        tool_names: Name of a tool → the agent's name for it.
        argument_takers: Name of an argument → the agent's names for the tools that take it.
    """
    qualified: dict[str, Any] = {}
    for name, values in options.items():
        action, dot, argument = name.partition(".")
        tools = (tool_names.get(action, action),) if dot else argument_takers.get(name, ())
        for key in [f"{tool}.{argument or name}" for tool in tools] or [name]:
            if dot or key not in qualified:
                qualified[key] = values
    return qualified


class _Offers(NamedTuple):
    """What the actions of a class of worlds declare about refusals."""

    allowed: Mapping[str, Mapping[str, str]]
    """Action → argument → name of the method that says whether a value would be accepted."""

    readers: frozenset[str]
    """Tools that show more values than observations do."""


@lru_cache(maxsize=256)
def _offers_of(kind: type) -> _Offers:
    """Read the declarations of a class of worlds.

    Raises:
        ConfigError: If one names no method.
    """
    tools = [compile_tool(getattr(kind, name), 2) for name in marked_methods(kind)]
    for tool in tools:
        for method in tool.allowed.values():
            if not callable(getattr(kind, method, None)):
                raise ConfigError(
                    f"{kind.__name__}.{tool.spec.name} has allowed={dict(tool.allowed)}, but {method!r} is no method "
                    "of it; write one that returns whether the action would be accepted with a value"
                )
    allowed = {tool.spec.name: tool.allowed for tool in tools if tool.allowed}
    return _Offers(allowed, frozenset(tool.spec.name for tool in tools if tool.shows_more))


def without_refused(world: Any, agent_id: int, seen: Observation) -> Observation:
    """Leave out of an observation's offer what its world would refuse, as its actions declare (`allowed=`).

    An action without any value that would be accepted is left out, unless a tool may show further values.

    Args:
        world: The world.
        agent_id: Mesa `unique_id` of the agent.
        seen: The agent's observation of it.
    """
    offers = _offers_of(type(world))
    if not offers.allowed or not seen.options:
        return seen
    narrowed: dict[str, tuple[Any, ...]] = {}
    known: dict[tuple[str, tuple[Any, ...]], tuple[Any, ...]] = {}
    for name in offers.allowed if seen.tools is None else filter(offers.allowed.__contains__, seen.tools):
        options = options_for(name, seen.options)
        for argument, method in offers.allowed[name].items():
            if not (values := options.get(argument)):
                continue
            key = method, tuple(values)
            if key not in known:
                accepts = getattr(world, method)
                known[key] = tuple([value for value in values if accepts(agent_id, value)])
            if len(known[key]) < len(values):
                narrowed[f"{name}.{argument}"] = known[key]
    if not narrowed:
        return seen
    tools = seen.tools
    if tools is not None and offers.readers.isdisjoint(tools):
        refused = {key.partition(".")[0] for key, values in narrowed.items() if not values}
        tools = tuple(name for name in tools if name not in refused)
        narrowed = {key: values for key, values in narrowed.items() if values}
    return replace(seen, tools=tools, options={**seen.options, **narrowed})
