"""What an agent sees that lives in several worlds: one observation of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.records import Observation
from mesa_llm.tools.toolbox import shown_names, takers


def join(seen: Mapping[str, Observation], worlds: Iterable[Any] = ()) -> Observation:
    """Make one observation of those of several worlds, each under its name.

    Where one of them asks a typed question, the agent answers it in the light of what the others show.

    Args:
        seen: What each world shows, by its name, in order.
        worlds: Those worlds: where one names the tools usable now and another none, all of the other's are usable,
            and the options of each hold in its own tools alone. Without them, the agent then keeps all tools that
            it has, and options of one name are put together.

    Raises:
        ConfigError: If two of them ask a question; they are then put in turns of their own.
    """
    asking = [name for name, shown in seen.items() if shown.answer is not None]
    if len(asking) > 1:
        raise ConfigError(
            f"{' and '.join(asking)} both ask a question in one observation; give the agent a Turn for each"
        )
    question = seen[asking[0]] if asking else Observation()
    kinds = {world.name: type(world) for world in worlds}
    living = tuple((kind, name) for name, kind in kinds.items())
    called = dict(zip(kinds, shown_names(living), strict=True))
    taking = dict(zip(kinds, takers(living), strict=True))
    is_limited = any(shown.tools is not None for shown in seen.values())
    named: list[str] = []
    for name, shown in seen.items():
        if shown.tools is not None:
            named += [called.get(name, {}).get(tool, tool) for tool in shown.tools]
        elif name in kinds:
            named += called[name].values()
        else:
            is_limited = False
    options: dict[str, tuple[Any, ...]] = {}
    for world, observation in seen.items():
        own = _qualified(observation.options, called.get(world, {}), taking.get(world, {}))
        for name, values in own.items():
            options[name] = (*options.get(name, ()), *values)
    return Observation(
        text="\n\n".join(f"[{name}]\n{observation.text}" for name, observation in seen.items()),
        instructions="\n\n".join(filter(None, (observation.instructions for observation in seen.values()))),
        tools=tuple(dict.fromkeys(named)) if is_limited else None,
        options=options,
        max_actions=max(observation.max_actions for observation in seen.values()),
        facts={name: observation.facts for name, observation in seen.items()},
        answer=question.answer,
        label=question.label,
        world=asking[0] if asking else "",
    )


def _qualified(
    options: Mapping[str, tuple[Any, ...]], called: Mapping[str, str], taking: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[Any, ...]]:
    """Name options by the tools of one world, so that they say nothing of arguments of other worlds.

    Args:
        options: What the world gives.
        called: Name of a tool → what it is called here.
        taking: Name of an argument → what the tools are called here that take it.
    """
    qualified: dict[str, tuple[Any, ...]] = {}
    for name, values in options.items():
        action, dot, argument = name.partition(".")
        tools = (called.get(action, action),) if dot else taking.get(name, ())
        for key in [f"{tool}.{argument or name}" for tool in tools] or [name]:
            if dot or key not in qualified:
                qualified[key] = values
    return qualified
