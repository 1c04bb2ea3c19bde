"""A task-independent choice of an agent's four components: any design runs in any model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from operator import attrgetter
from typing import Any, cast

from pydantic import ValidationError

from mesa_llm._deprecated import current_name
from mesa_llm.agents.strategies import STRATEGIES, Decide, strategy_named
from mesa_llm.canonical import canonical_json
from mesa_llm.config import AgentConfig, Reasoning, Settings, require_reasoning
from mesa_llm.engine.presentation import AS_WRITTEN, Presentation
from mesa_llm.engine.tool_server import ToolServer, checked_servers
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import written_name
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.memory import Memory, open_memory
from mesa_llm.tools.tool import describe
from mesa_llm.tools.toolbox import checked_tools

OWN_DESIGN = "own"
"""Name of the design that keeps each model's own components."""


@dataclass(frozen=True)
class AgentDesign:
    """A task-independent choice of the four components: any design runs in any model.

    Fields that are set replace the model's choice or add to it. Other fields have no effect.

        AgentDesign(memory="stream", reasoning="inline", settings={"temperature": 0.2})

    Raises:
        ConfigError: If a field is invalid.

    Source:
        Shachi (2025): the four components and cross-task evaluation.
    """

    llm: str | LLM | None = None
    """Language model of the agents, except those that `llm=` sets by agent or class; None for the model's choice."""

    persona: str = "keep"
    """`keep` for the model's own, `none`, or one text for all. All but `keep` also remove traits and role, but keep the
    name.
    """

    style: str | None = None
    """How they write; None for the model's choice."""

    settings: Settings | Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Sampling settings. Those set here replace the model's; the others stay."""

    reasoning: Reasoning | None = None
    """How they reason before deciding; None for the model's choice."""

    memory: str | Callable[[], Memory] | None = None
    """Memory kind, or a function that creates one; None for the model's choice."""

    tools: tuple[Callable[..., Any], ...] = ()
    """The researcher's own functions, in addition to the model's."""

    servers: tuple[ToolServer, ...] = ()
    """MCP servers whose tools they may call too; see `mesa_llm.ToolServer`."""

    world_tools: bool | None = None
    """Whether they may use the read-only tools of their worlds; actions are always allowed. None for the model's
    choice.
    """

    allowed: tuple[str, ...] | None = None
    """Names of the tools and actions the agents may use; None for the model's choice."""

    adapter: str | None = None
    """Name of a LoRA adapter at the endpoint; None for the model's choice."""

    decide: Decide | str | None = None
    """How they decide instead of their own `decide`: a function or a strategy (`plan`, `react`, `vote`, optionally with
    a setting as in `vote:7`; see `mesa_llm.agents.strategies`).
    """

    presentation: Presentation = AS_WRITTEN
    """How what they read is put to their language model, in another form, order or place; see `Presentation`."""

    def __post_init__(self) -> None:
        """Check the fields, so a run does not fail halfway."""
        for name, kinds in _KINDS.items():
            if not isinstance(value := getattr(self, name), kinds):
                expected = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
                raise ConfigError(f"{name} of a design must be {expected}, got {value!r}")
        if self.reasoning is not None:
            require_reasoning(self.reasoning)
        if self.memory is not None:
            if not (isinstance(self.memory, str) or callable(self.memory)):
                raise ConfigError("memory of a design must be a name or a function, because each agent needs its own")
            open_memory(self.memory)
        if isinstance(self.decide, str):
            strategy_named(self.decide)
        elif not (self.decide is None or _is_async(self.decide)):
            raise ConfigError(
                f"decide of a design must be an `async def decide(agent, seen)`, or one of {', '.join(STRATEGIES)}; "
                f"got {self.decide!r}"
            )
        checked_tools(self.tools)
        if self.presentation == AS_WRITTEN:  # one without changes is this object
            object.__setattr__(self, "presentation", AS_WRITTEN)
        object.__setattr__(self, "servers", checked_servers(self.servers))
        self._settings_over(Settings())

    def apply_to(self, agent: Any) -> None:
        """Apply this design's components to an agent, including its roles in several worlds."""
        agent.config = self.config_over(agent.config)
        if self.memory is not None:
            agent.memory = open_memory(self.memory)
        if self.tools:
            agent.tools = (*agent.tools, *self.tools)
        if self.servers:
            agent.servers = checked_servers((*agent.servers, *self.servers))
        if agent.roles:
            agent.roles = self._designed_roles(agent.roles)

    def _designed_roles(self, roles: Mapping[str, Any]) -> dict[str, Any]:
        """Apply this design to an agent's roles. Roles that share a memory still share one."""
        memories: dict[int, Memory] = {}
        if self.memory is not None:
            memories = {id(role.memory): open_memory(self.memory) for role in roles.values()}
        return {
            world: replace(
                role,
                config=self.config_over(role.config),
                memory=memories.get(id(role.memory), role.memory),
                tools=(*role.tools, *self.tools),
            )
            for world, role in roles.items()
        }

    def config_over(self, config: AgentConfig) -> AgentConfig:
        """Return a config with this design's choices. Applying it twice has no further effect."""
        choices = {
            "style": self.style,
            "reasoning": self.reasoning,
            "world_tools": self.world_tools,
            "adapter": self.adapter,
            "tools": self.allowed,
        }
        updates: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
        updates["settings"] = self._settings_over(config.settings)
        if self.persona != "keep":
            updates |= {"persona": "" if self.persona == "none" else self.persona, "traits": {}, "role": {}}
        return config.model_copy(update=updates)

    def _settings_over(self, settings: Settings) -> Settings:
        own = self.settings
        changes = own.model_dump(exclude_unset=True) if isinstance(own, Settings) else dict(own)
        try:
            return Settings.model_validate(settings.model_dump(exclude_unset=True) | changes)
        except ValidationError as error:
            raise ConfigError(f"invalid settings in this design: {describe(error)}") from None

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are set as JSON values, with functions as `module:name`."""
        document: dict[str, Any] = {}
        for own_field in fields(self):
            value = getattr(self, own_field.name)
            if value in (None, (), {}, AS_WRITTEN) or (own_field.name == "persona" and value == "keep"):
                continue
            if isinstance(value, Presentation):
                value = value.model_dump(mode="json", exclude_defaults=True)
            elif isinstance(value, Settings):
                value = value.model_dump(mode="json", exclude_unset=True)
            elif own_field.name == "tools":
                value = [_name_of(function) for function in value]
            elif own_field.name == "servers":
                value = [server.model_dump(mode="json", exclude_defaults=True) for server in value]
            elif own_field.name == "llm":
                value = written_name(value) if isinstance(value, str) else Capabilities.of(value).name
            elif callable(value):
                value = _name_of(value)
            document[own_field.name] = list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> AgentDesign:
        """Create the design that `to_json` wrote, importing its functions.

        Raises:
            ConfigError: If a field is unknown or invalid, or a function cannot be imported.
        """
        names = {own_field.name for own_field in fields(cls)}
        if unknown := sorted(set(document) - names):
            raise ConfigError(f"a design has no field {unknown[0]!r}; it has {', '.join(sorted(names))}")
        values = {name: value for name, value in document.items() if value is not None}
        if "presentation" in values:
            try:
                values["presentation"] = Presentation.model_validate(values["presentation"])
            except ValidationError as error:
                raise ConfigError(f"invalid presentation in this design: {describe(error)}") from None
        for name in ("tools", "allowed"):
            if isinstance(values.get(name), list):
                values[name] = tuple(map(_function_named, values[name]) if name == "tools" else values[name])
        if _is_function(values.get("decide")):
            values["decide"] = _function_named(values["decide"])
        if _is_function(values.get("memory")):
            values["memory"] = _function_named(values["memory"])
        return cls(**values)

    @staticmethod
    def imports(document: Mapping[str, Any]) -> list[str]:
        """Return the functions `from_json` would import and the servers a run would contact, without doing either.

        Args:
            document: Output of `to_json`.
        """
        tools = document.get("tools")
        functions: list[Any] = [*cast("list[Any]", tools)] if isinstance(tools, list) else []
        functions += [document[name] for name in ("decide", "memory") if _is_function(document.get(name))]
        servers = document.get("servers")
        others: list[Any] = [*cast("list[Any]", servers)] if isinstance(servers, list) else []
        return [*map(str, functions), *(f"the tool server {canonical_json(server)}" for server in others)]


_KINDS: dict[str, tuple[type[Any], ...]] = {
    "persona": (str,),
    "style": (str, type(None)),
    "tools": (tuple, list),
    "world_tools": (bool, type(None)),
    "allowed": (tuple, list, type(None)),
    "adapter": (str, type(None)),
    "presentation": (Presentation,),
}
"""Field → accepted types, for fields not checked elsewhere."""


def _name_of(function: object) -> str:
    """Return the `module:name` of a function or class, or a name that cannot be imported for any other object."""
    kind = type(function).__qualname__
    return f"{function.__module__}:{getattr(function, '__qualname__', f'{kind} object')}"


def _is_async(decide: object) -> bool:
    return inspect.iscoroutinefunction(decide) or inspect.iscoroutinefunction(type(decide).__call__)


def _is_function(written: object) -> bool:
    """Check whether a serialised memory or strategy names a function, not a kind with a setting (`window:30`)."""
    _, colon, last = str(written).rpartition(":")
    return bool(colon) and not last.isdecimal()


def _function_named(name: object) -> Callable[..., Any]:
    name = current_name(str(name))
    module, _, qualname = name.partition(":")
    try:
        function = attrgetter(qualname)(import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the design names {name!r}, which cannot be found: {error}") from error
    if not callable(function) or _name_of(function) != name:  # an imported object keeps the name of its own module
        raise ConfigError(f"the design names {name!r}, which is not a function of that module")
    return function
