"""The tools an agent has: those of its class and of its worlds, and the researcher's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ToolCall, ToolSpec
from mesa_llm.tools.text import reason_text
from mesa_llm.tools.tool import Tool, compile_tool, marked_methods
from mesa_llm.tools.wording import Wording, wording_of


class Bound(NamedTuple):
    """A tool with the first arguments of its calls: its owner and, in a world, the acting agent."""

    tool: Tool
    leading: tuple[Any, ...]

    @property
    def is_usable(self) -> bool:
        """Whether the tool's own condition, if it has one, lets it be used now.

        Raises:
            ConfigError: If `when=` names no method.
        """
        if self.tool.when is None:
            return True
        owner, *agent_id = self.leading
        condition = getattr(owner, self.tool.when, None)
        if not callable(condition):
            raise ConfigError(
                f"{type(owner).__name__}.{self.tool.spec.name} has when={self.tool.when!r}, which is no method of it; "
                "write a method that returns whether it may be used now, and no property"
            )
        return bool(condition(*agent_id))


class Named(Protocol):
    """Anything with a name."""

    name: str


class Plan:
    """The tools shared by all agents of one kind, compiled once: name → tool and index of its owner."""

    def __init__(self, tools: Mapping[str, tuple[Tool, int]], n_worlds: int) -> None:
        """Store the tools, and describe them once."""
        self.tools = dict(tools)
        self.n_worlds = n_worlds
        self.specs = tuple(_renamed(tool.spec, name) for name, (tool, _) in self.tools.items())
        self.readers = tuple(spec for spec in self.specs if not spec.is_action)
        self.is_conditional = any(tool.when for tool, _ in self.tools.values())
        self.shows_more = any(tool.shows_more for tool, _ in self.tools.values())
        self.is_async = any(tool.is_async for tool, _ in self.tools.values())


def _renamed(spec: ToolSpec, name: str) -> ToolSpec:
    """Return the description of a tool under the name it has here."""
    return spec if spec.name == name else ToolSpec(name, spec.description, spec.parameters, spec.is_action)


def checked_tools(functions: Iterable[Callable[..., Any]]) -> tuple[Callable[..., Any], ...]:
    """Check that each of a researcher's functions can be a tool, and return them.

    Raises:
        ConfigError: If one is no function or method, or could not be described or called.
    """
    if callable(functions):
        raise ConfigError(
            f"tools= is a list of functions, got {functions!r:.60}; create_agents gives each agent one item of a list "
            "that is as long as there are agents: give each its own, tools=[[first, second]] * n"
        )
    checked = tuple(functions)
    for function in checked:
        target = getattr(function, "__func__", function)
        if not callable(function) or not isinstance(getattr(target, "__name__", None), str):
            raise ConfigError(f"tools= takes functions and methods, got {function!r}; wrap it in a function (def)")
        leading = 0 if target is function else 1
        if compile_tool(target, leading).when is not None and not leading:
            raise ConfigError(f"tool {target.__name__!r} has when=, which names a method; a plain function has none")
    return checked


@lru_cache(maxsize=256)
def display_names(worlds: tuple[tuple[type, str], ...]) -> tuple[Mapping[str, str], ...]:
    """Return the names of each world's tools for an agent that lives in all of these worlds; see `ToolBox.of`.

    Args:
        worlds: Class and name of each world.

    Returns:
        For each world, name of a tool → its name for the agent.
    """
    meanings: dict[str, set[Callable[..., Any]]] = {}
    for kind, _ in worlds:
        for name in marked_methods(kind):
            meanings.setdefault(name, set()).add(getattr(kind, name))
    return tuple(
        {name: name if len(meanings[name]) == 1 else f"{label}_{name}" for name in marked_methods(kind)}
        for kind, label in worlds
    )


@lru_cache(maxsize=256)
def takers(worlds: tuple[tuple[type, str], ...]) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    """Return for each world: name of an argument → the tools that take it, by their names for the agent."""
    by_world: list[Mapping[str, tuple[str, ...]]] = []
    for (kind, _), names in zip(worlds, display_names(worlds), strict=True):
        by_argument: dict[str, tuple[str, ...]] = {}
        for name, tool_name in names.items():
            for argument in compile_tool(getattr(kind, name), 2).spec.parameters.get("properties", ()):
                by_argument[argument] = (*by_argument.get(argument, ()), tool_name)
        by_world.append(by_argument)
    return tuple(by_world)


@lru_cache(maxsize=256)
def _plan(agent: type, worlds: tuple[tuple[type, str], ...], functions: tuple[Callable[..., Any], ...]) -> Plan:
    """Find the tools of an agent class (owner 0), of worlds (owners 1, 2, …) and of functions (after them)."""
    tools: dict[str, tuple[Tool, int]] = {}
    for name in marked_methods(agent):
        tools[name] = (compile_tool(getattr(agent, name), 1), 0)
    for n, ((kind, _), names) in enumerate(zip(worlds, display_names(worlds), strict=True), 1):
        for name, tool_name in names.items():
            tools.setdefault(tool_name, (compile_tool(getattr(kind, name), 2), n))
    for n, function in enumerate(functions, len(worlds) + 1):
        target = getattr(function, "__func__", function)
        tools[function.__name__] = (compile_tool(target, 0 if target is function else 1), n)
    return Plan(tools, len(worlds))


@lru_cache(maxsize=4096)
def _narrowed(plan: Plan, names: tuple[str, ...]) -> Plan:
    """Keep the named tools, in the order of the names; a name that several worlds share keeps the tool of each."""
    by_tool: dict[str, list[str]] = {}
    for own_name, (tool, _) in plan.tools.items():
        by_tool.setdefault(tool.spec.name, []).append(own_name)
    chosen_names = [
        own_name for name in names for own_name in ([name] if name in plan.tools else by_tool.get(name, ()))
    ]
    return Plan({own_name: plan.tools[own_name] for own_name in chosen_names}, plan.n_worlds)


@lru_cache(maxsize=4096)
def _joined(plan: Plan, others: tuple[Tool, ...], owner: int) -> Plan:
    """Add tools without an owner, such as those of a tool server.

    Raises:
        ConfigError: If a name is taken.
    """
    if taken := [tool.spec.name for tool in others if tool.spec.name in plan.tools]:
        raise ConfigError(f"a tool of the agent is called {taken[0]} already; give the tool server another name=")
    return Plan({**{tool.spec.name: (tool, owner) for tool in others}, **plan.tools}, plan.n_worlds)


@lru_cache(maxsize=256)
def _without_tools_of_worlds(plan: Plan) -> Plan:
    of_worlds = range(1, plan.n_worlds + 1)
    tools = {
        name: (tool, owner)
        for name, (tool, owner) in plan.tools.items()
        if tool.spec.is_action or owner not in of_worlds
    }
    return Plan(tools, plan.n_worlds)


class ToolBox(Mapping[str, Bound]):
    """The tools and actions one agent has, by name."""

    __slots__ = ("_leading", "_plan")

    def __init__(self, plan: Plan, leading: tuple[tuple[Any, ...], ...]) -> None:
        """Join a plan with the owners of its tools; `ToolBox.of` finds both."""
        self._plan = plan
        self._leading = leading

    @staticmethod
    def actions_of(agent: type, worlds: Sequence[Named]) -> Mapping[str, tuple[Tool, int]]:
        """Return the actions that all agents of a class have in the same worlds: name → action and its owner.

        Args:
            agent: The class.
            worlds: The worlds.

        Returns:
            The owner is 0 for the agent itself, or the number of the world, from 1.
        """
        kinds = tuple([(type(world), world.name if len(worlds) > 1 else "") for world in worlds])
        tools = _plan(agent, kinds, ()).tools
        return {name: (tool, owner) for name, (tool, owner) in tools.items() if tool.spec.is_action}

    @classmethod
    def of(
        cls,
        agent: object,
        agent_id: int,
        worlds: Sequence[Named] = (),
        functions: Sequence[Callable[..., Any]] = (),
    ) -> ToolBox:
        """Collect the tools of an agent's own class, of its worlds, and the researcher's own functions.

        A name that two worlds share is prefixed with the world's name (`market_comment`), unless both mean the
        very same function (`do_nothing`).
        """
        if not worlds and not functions:
            return cls(_plan(type(agent), (), ()), ((agent,),))
        may_clash = len(worlds) > 1
        kinds = tuple([(type(world), world.name if may_clash else "") for world in worlds])
        plan = _plan(type(agent), kinds, tuple(functions))
        leading: list[tuple[Any, ...]] = [(agent,), *[(world, agent_id) for world in worlds]]
        for function in functions:
            owner = getattr(function, "__self__", None)
            leading.append(() if owner is None else (owner,))
        return cls(plan, tuple(leading))

    def __getitem__(self, name: str) -> Bound:
        """Return a tool by name."""
        tool, owner = self._plan.tools[name]
        return Bound(tool, self._leading[owner])

    def __contains__(self, name: object) -> bool:
        """Check whether there is a tool of this name."""
        return name in self._plan.tools

    def __iter__(self) -> Iterator[str]:
        """Go through the names, in order."""
        return iter(self._plan.tools)

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._plan.tools)

    def only(self, names: Iterable[str] | None) -> ToolBox:
        """Return the tools of these names, in their order; None: all."""
        return self if names is None else ToolBox(_narrowed(self._plan, tuple(names)), self._leading)

    def joined(self, others: Iterable[Tool]) -> ToolBox:
        """Add tools that have no owner, such as those of a tool server.

        Raises:
            ConfigError: If two have one name.
        """
        return ToolBox(_joined(self._plan, tuple(others), len(self._leading)), (*self._leading, ()))

    @property
    def without_tools_of_worlds(self) -> ToolBox:
        """All tools except those of worlds; the actions of worlds, and the agent's own tools, stay."""
        return ToolBox(_without_tools_of_worlds(self._plan), self._leading)

    @property
    def usable(self) -> ToolBox:
        """The tools whose own condition says that they may be used now."""
        if not self._plan.is_conditional:
            return self
        return self.only(name for name, bound in self.items() if bound.is_usable)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Descriptions for a language model, in order; a prefixed tool has its prefixed name."""
        return self._plan.specs

    @property
    def readers(self) -> tuple[ToolSpec, ...]:
        """Descriptions of the tools that only read, in order."""
        return self._plan.readers

    @property
    def has_actions(self) -> bool:
        """Whether there is an action among them."""
        return len(self._plan.readers) < len(self._plan.specs)

    @property
    def shows_more(self) -> bool:
        """Whether a tool among them shows more ids than observations do."""
        return self._plan.shows_more

    @property
    def is_async(self) -> bool:
        """Whether one of them is async, so that its result has to be awaited."""
        return self._plan.is_async

    def is_action(self, name: str) -> bool:
        """Check whether there is an action of this name."""
        found = self._plan.tools.get(name)
        return found is not None and found[0].spec.is_action

    def is_usable(self, name: str) -> bool:
        """Check whether a tool's own condition, if it has one, lets it be used now."""
        found = self._plan.tools.get(name)
        if found is None or found[0].when is None:
            return True
        return Bound(found[0], self._leading[found[1]]).is_usable

    def wording(self, name: str) -> Wording:
        """Return how an action is remembered, perhaps one that is no longer among them."""
        found = self._plan.tools.get(name)
        return wording_of(name, "") if found is None else found[0].wording

    def check(self, call: ToolCall) -> ToolCall:
        """Check a call without running it.

        Raises:
            ToolError: If there is no such tool, or its arguments are wrong.
        """
        found = self._plan.tools.get(call.name)
        if found is None:
            names = ", ".join(self._plan.tools)
            raise ToolError(reason_text("unknown_tool" if names else "no_tools", name=call.name[:80], names=names))
        return ToolCall(call.name, found[0].arguments(call.arguments), call.call_id)

    def call(self, call: ToolCall) -> Any:
        """Run a call; its arguments are checked first.

        Raises:
            ToolError: If there is no such tool, its arguments are wrong, or the world refuses.
        """
        return self.run(self.check(call))

    def run(self, call: ToolCall) -> Any:
        """Run a call whose arguments have been checked.

        Raises:
            ToolError: If there is no such tool here, or the world refuses.
        """
        found = self._plan.tools.get(call.name)
        if found is None:
            raise ToolError(reason_text("no_tool", name=call.name[:80]))
        tool, owner = found
        return tool.function(*self._leading[owner], **call.arguments)
