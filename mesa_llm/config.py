"""The config of an agent: its persona, traits and style, and the sampling settings of its language model."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mesa_llm.errors import ConfigError

Reasoning = Literal["none", "inline", "first"]
"""How a model reasons before it decides: not at all; in a first field of its reply; in a request of its own, first."""


def demand_reasoning(value: Any) -> None:
    """Demand one of the ways to reason.

    Raises:
        ConfigError: If it is none of them.
    """
    if value not in get_args(Reasoning):
        raise ConfigError(f"reasoning is one of {', '.join(get_args(Reasoning))}, got {value!r}")


class Settings(BaseModel):
    """Sampling settings of a language model; None leaves a setting to the endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float | None = Field(default=0.7, ge=0, le=2)
    """Randomness of the sampling; 0 takes the likeliest token."""

    max_tokens: int | None = Field(default=2_000, gt=0)
    """Maximum number of tokens of one reply, with those that a model thinks in. A bound and no target: short replies
    cost no more, and a model that reasons is not cut off before it says anything."""

    top_p: float | None = Field(default=None, gt=0, le=1)
    """Share of probability that tokens are drawn from."""

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    """Reasoning effort of a reasoning model; left out for endpoints that do not know it."""

    stop: tuple[str, ...] = ()
    """Strings that end a reply."""

    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Anything else the endpoint knows, sent as it is."""

    @cached_property
    def sent(self) -> dict[str, Any]:
        """The settings that are sent, without those left to the endpoint."""
        values: dict[str, Any] = {}
        for name in ("temperature", "max_tokens", "top_p", "reasoning_effort"):
            value = getattr(self, name)
            if value is not None:
                values[name] = value
        if self.stop:
            values["stop"] = list(self.stop)
        return {**values, **self.extra}


class AgentConfig(BaseModel):
    """Who an agent is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    """Name that others know; empty: its class and id."""

    persona: str = ""
    """Persona, as text that follows "You are …"."""

    traits: dict[str, JsonValue] = Field(default_factory=dict)
    """Facts about it, by name: age, occupation, …"""

    style: str = ""
    """Style of its writing."""

    tools: tuple[str, ...] | None = None
    """Names of the tools and actions it may use; None: all."""

    world_tools: bool = True
    """Whether it may use the tools of its worlds, which read; their actions it always may."""

    settings: Settings = Settings()
    """Sampling settings of its language model."""

    reasoning: Reasoning = "none"
    """Whether its model reasons before it decides: `inline` costs reply tokens, `first` a second request."""

    adapter: str | None = None
    """Name of a LoRA adapter at the endpoint; replaces the model name in requests."""

    def __copy__(self) -> Self:
        """Return a copy, which `model_copy` changes; its text is written anew."""
        copied = super().__copy__()
        vars(copied).pop("text", None)
        return copied

    @cached_property
    def text(self) -> str:
        """The text of its prompt about who it is."""
        lines = [f"Your name is {self.name}."] if self.name else []
        if self.persona:
            lines.append(self.persona)
        lines += [f"{name.replace('_', ' ')}: {value}" for name, value in self.traits.items()]
        if self.style:
            lines.append(f"How you write: {self.style}")
        return "\n".join(lines)


NOBODY = AgentConfig()
"""The default config of an agent; shared, as it is frozen."""


def as_config(config: Any) -> AgentConfig:
    """Return the config that is meant: itself, one with a text as its persona, or that of nobody for None.

    Raises:
        ConfigError: If it is none of these.
    """
    if isinstance(config, str):
        return AgentConfig(persona=config)
    if not isinstance(config, AgentConfig | None):
        raise ConfigError(
            f"config= is an AgentConfig or the text of a persona, got {config!r:.60} (of a Persona, take its config())"
        )
    return config or NOBODY


class ConfigMixin:
    """Gives an agent its `config`: who it is."""

    __slots__ = ()

    _config: AgentConfig = NOBODY

    def __init__(self, *args: Any, config: AgentConfig | str | None = None, **kwargs: Any) -> None:
        """Store who the agent is.

        Args:
            *args: Passed on.
            config: A config, or just a persona; None: what its class says, by default nobody.
            **kwargs: Passed on.

        Raises:
            ConfigError: If the config is something else.
        """
        if config is not None:
            self.config = config
        super().__init__(*args, **kwargs)

    @property
    def config(self) -> AgentConfig:
        """Who the agent is; set to a text, its persona."""
        return self._config

    @config.setter
    def config(self, config: AgentConfig | str | None) -> None:
        self._config = as_config(config)
