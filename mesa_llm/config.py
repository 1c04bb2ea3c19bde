"""Agent configs: persona, traits, style, and the sampling settings of the language model."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mesa_llm.errors import ConfigError
from mesa_llm.prompts import LIBRARY_PROMPTS, PromptFile, Prompts

Reasoning = Literal["none", "inline", "first"]
"""Reasoning before a decision: none, in the first field of the reply, or in a separate request first."""


def require_reasoning(value: Any) -> None:
    """Check that a value is a valid `Reasoning`.

    Raises:
        ConfigError: If it is not.
    """
    if value not in get_args(Reasoning):
        raise ConfigError(f"reasoning must be one of {', '.join(get_args(Reasoning))}, got {value!r}")


class Settings(BaseModel):
    """Sampling settings of a language model; None uses the endpoint's default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float | None = Field(default=0.7, ge=0, le=2)
    """Randomness of the sampling; 0 always picks the most likely token."""

    max_tokens: int | None = Field(default=2_000, gt=0)
    """Maximum number of tokens of a reply, including reasoning. It is a limit, not a target: a high one does not make
    short replies more expensive, and keeps reasoning models from being cut off before they answer."""

    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling: total probability of the tokens sampled from."""

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    """Reasoning effort of a reasoning model; omitted for endpoints that do not support it."""

    stop: tuple[str, ...] = ()
    """Strings that end a reply."""

    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Other settings of the endpoint, sent unchanged."""

    @cached_property
    def sent(self) -> dict[str, Any]:
        """Settings to send, without those left to the endpoint."""
        values: dict[str, Any] = {}
        for name in ("temperature", "max_tokens", "top_p", "reasoning_effort"):
            value = getattr(self, name)
            if value is not None:
                values[name] = value
        if self.stop:
            values["stop"] = list(self.stop)
        return {**values, **self.extra}


class AgentConfig(BaseModel):
    """An agent's identity, tools and language model settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    """Name shown to others; empty: its class and id."""

    persona: str = ""
    """Persona, as text that follows "You are …"."""

    traits: dict[str, JsonValue] = Field(default_factory=dict)
    """Facts by name: age, occupation, …"""

    style: str = ""
    """Writing style."""

    role: dict[str, JsonValue] = Field(default_factory=dict)
    """Facts by name that the model's own texts put into words where they belong, such as an objective. Unlike traits,
    they stand nowhere else in a prompt."""

    tools: tuple[str, ...] | None = None
    """Names of the tools and actions it may use; None: all."""

    world_tools: bool = True
    """Whether it may use the read-only tools of its worlds; their actions are always available."""

    settings: Settings = Settings()
    """Sampling settings of its language model."""

    reasoning: Reasoning = "none"
    """Whether its model reasons before it decides: `inline` costs reply tokens, `first` an extra request."""

    adapter: str | None = None
    """Name of a LoRA adapter at the endpoint; replaces the model name in requests."""

    def __copy__(self) -> Self:
        """Return a copy without the cached text, since `model_copy` may change the fields it depends on."""
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
"""Default config of an agent, shared since it is frozen."""


def as_config(config: Any) -> AgentConfig:
    """Return a config, built from a persona if given text; `NOBODY` for None.

    Raises:
        ConfigError: If it is anything else.
    """
    if isinstance(config, str):
        return AgentConfig(persona=config)
    if not isinstance(config, AgentConfig | None):
        raise ConfigError(
            f"config= must be an AgentConfig or a persona as text, got {config!r:.60} (of a Persona, pass its config())"
        )
    return config or NOBODY


class ConfigMixin:
    """Gives an agent a `config`."""

    __slots__ = ()

    _config: AgentConfig = NOBODY

    def __init__(self, *args: Any, config: AgentConfig | str | None = None, **kwargs: Any) -> None:
        """Store the agent's config.

        Args:
            *args: Passed on.
            config: A config, or a persona as text; None: that of its class, by default `NOBODY`.
            **kwargs: Passed on.

        Raises:
            ConfigError: If the config is something else.
        """
        if config is not None:
            self.config = config
        super().__init__(*args, **kwargs)

    @property
    def config(self) -> AgentConfig:
        """The agent's config; may be set to a persona as text."""
        return self._config

    @config.setter
    def config(self, config: AgentConfig | str | None) -> None:
        self._config = as_config(config)
