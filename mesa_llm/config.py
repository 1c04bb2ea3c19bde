"""The config of an agent: its persona, traits and style, and the sampling settings of its language model."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mesa_llm.errors import ConfigError
from mesa_llm.prompts import LIBRARY_PROMPTS, PromptFile, Prompts

Reasoning = Literal["none", "inline", "first"]
"""How a model reasons before it decides: not at all, in the first field of its reply, or in a request before it."""


def require_reasoning(value: Any) -> None:
    """Check a way to reason.

    Raises:
        ConfigError: If it is none of `Reasoning`.
    """
    if value not in get_args(Reasoning):
        raise ConfigError(f"reasoning is one of {', '.join(get_args(Reasoning))}, got {value!r}")


class Settings(BaseModel):
    """Sampling settings of a language model; None leaves a setting to the endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float | None = Field(default=0.7, ge=0, le=2)
    """Randomness of the sampling; 0 takes the likeliest token."""

    max_tokens: int | None = Field(default=2_000, gt=0)
    """Maximum number of tokens of one reply, reasoning included. It is a bound, not a target: short replies cost no
    more under a high one, and a model that reasons is not cut off before it answers."""

    top_p: float | None = Field(default=None, gt=0, le=1)
    """Share of probability that tokens are drawn from."""

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    """Reasoning effort of a reasoning model; left out for endpoints that do not know it."""

    stop: tuple[str, ...] = ()
    """Strings that end a reply."""

    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Any other setting of the endpoint, sent as it is."""

    @cached_property
    def sent(self) -> dict[str, Any]:
        """The settings as sent, without those left to the endpoint."""
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
    """Whether it may use the tools of its worlds, which read; it may always use their actions."""

    settings: Settings = Settings()
    """Sampling settings of its language model."""

    reasoning: Reasoning = "none"
    """Whether its model reasons before it decides: `inline` costs reply tokens, `first` a second request."""

    adapter: str | None = None
    """Name of a LoRA adapter at the endpoint; replaces the model name in requests."""

    def __copy__(self) -> Self:
        """Return a copy without the cached text: `model_copy` changes the fields that it is made from."""
        copied = super().__copy__()
        vars(copied).pop("_texts", None)
        return copied

    @cached_property
    def _texts(self) -> dict[PromptFile, str]:
        """Template → the text that it gives."""
        return {}

    @property
    def text(self) -> str:
        """The part of its prompt that says who it is, in the library's words; see `text_in` for a model's own."""
        return self.text_in(LIBRARY_PROMPTS)

    def text_in(self, prompts: Prompts) -> str:
        """Return the part of its prompt that says who it is.

        Args:
            prompts: Templates of the model.
        """
        template, texts = prompts["agent_persona.md"], self._texts
        text = texts.get(template)
        if text is None:
            text = texts[template] = template.fill(vars(self)) if self is not NOBODY else ""
        return text


NOBODY = AgentConfig()
"""The default config of an agent; shared, as it is frozen."""


def as_config(config: Any) -> AgentConfig:
    """Return a config, made from a persona if it is a text, or `NOBODY` for None.

    Raises:
        ConfigError: If it is anything else.
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
            config: A config, or just a persona; None: that of its class, by default `NOBODY`.
            **kwargs: Passed on.

        Raises:
            ConfigError: If the config is something else.
        """
        if config is not None:
            self.config = config
        super().__init__(*args, **kwargs)

    @property
    def config(self) -> AgentConfig:
        """Who the agent is; it may be set to a text, the persona."""
        return self._config

    @config.setter
    def config(self, config: AgentConfig | str | None) -> None:
        self._config = as_config(config)
