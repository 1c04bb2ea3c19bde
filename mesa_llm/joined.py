"""What an agent sees that lives in several worlds: one observation of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mesa_llm.records import Observation
from mesa_llm.tools import marked_methods


def join(seen: Mapping[str, Observation], worlds: Iterable[Any] = ()) -> Observation:
    """Make one observation of those of several worlds, each under its name.

    Args:
        seen: What each world shows, by its name, in order.
        worlds: Those worlds: where one names the tools usable now and another none, all of the other's are usable.
            Without them, the agent then keeps all tools that it has.
    """
    kinds = {world.name: type(world) for world in worlds}
    is_limited = any(shown.tools is not None for shown in seen.values())
    named: list[str] = []
    for name, shown in seen.items():
        if shown.tools is not None:
            named += shown.tools
        elif name in kinds:
            named += marked_methods(kinds[name])
        else:
            is_limited = False
    options: dict[str, tuple[Any, ...]] = {}
    for observation in seen.values():
        for name, values in observation.options.items():
            options[name] = (*options.get(name, ()), *values)
    return Observation(
        text="\n\n".join(f"[{name}]\n{observation.text}" for name, observation in seen.items()),
        rules="\n\n".join(filter(None, (observation.rules for observation in seen.values()))),
        tools=tuple(dict.fromkeys(named)) if is_limited else None,
        options=options,
        max_actions=max(observation.max_actions for observation in seen.values()),
        facts={name: observation.facts for name, observation in seen.items()},
    )
