"""Settings of a run: language model, seed and parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from mesa_llm.engine.access import Access
from mesa_llm.engine.options import ACCESS_OPTIONS
from mesa_llm.errors import ConfigError
from mesa_llm.llm.credentials import environment_secrets, without_secrets
from mesa_llm.llm.human.queue import HumanLLM
from mesa_llm.llm.local.profile import CAPABLE
from mesa_llm.llm.local.weights import is_present
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.model import LLMModel

ModelFactory = Callable[..., LLMModel]
"""A model class, or any callable that takes parameters by name and returns a model."""

LLM_LABELS = MappingProxyType(
    {
        "rule": "rules (no language model)",
        "random": "chance (random baseline)",
        "local": "the small local model",
        "local:1.5b": "the capable local model",
        "human": "you (rules for the other agents)",
        "other": "another model …",
    }
)
"""Language model → its label on the page."""


def offered_llms() -> dict[str, str]:
    """Return the language models to choose from, with their labels: a large local one only where its file lies."""
    return {name: label for name, label in LLM_LABELS.items() if name != CAPABLE.name or is_present(CAPABLE)}


WITHOUT_TEXT = ("rule", "random", "human")
"""Kinds that write no text, so that reasoning and reply length do not apply."""

REASONING = MappingProxyType(
    {
        "": "default",
        "none": "none",
        "inline": "with the decision",
        "first": "first, in a separate request",
    }
)
"""When agents reason → its label on the page."""

SCORING = MappingProxyType(
    {"": "default", "replies": "the choice in the reply", "probabilities": "the probabilities of all choices"}
)
"""What decisions of few choices are scored by → its label on the page."""

EMPTY: Mapping[str, str] = MappingProxyType({})
"""No labels."""

NAMES_ADDRESS = re.compile(r"://|@.*[.:/]")
"""Matches model names that contain an endpoint, which would be sent keys from the environment."""

ADDRESS = re.compile(r"(?P<scheme>[a-z]+:/+)?(?P<user>.*@)?(?P<where>[^?#]*)(?P<query>.*)", re.IGNORECASE)
"""The parts of an address, even of a malformed one."""

HIDDEN = "•••"
"""Replacement for secrets."""


@dataclass(frozen=True)
class RunSettings:
    """Everything that a model is built from."""

    llm_kind: str = "rule"
    """One of `LLM_LABELS`, or a model string."""

    model_id: str = ""
    """With `other`: a litellm id, `ollama/NAME`, or the endpoint's name for the model."""

    api_base: str = field(default="", repr=False)
    """With `other`: base URL of an OpenAI-compatible endpoint; empty: the provider's own. It may hold a password."""

    api_key: str = field(default="", repr=False)
    """Key for that endpoint; empty: none is sent. It is not stored anywhere else."""

    reasoning: str = ""
    """When agents reason: one of `REASONING`; empty: the model's default."""

    reply_tokens: int | None = None
    """Maximum length of a reply, in tokens; None: the model's default."""

    scoring: str = ""
    """What decisions of few choices are scored by: one of `SCORING`; empty: the model's default."""

    max_dollars: float | None = None
    """With `other`: maximum cost of the run, in US dollars; None: no limit."""

    plays: int = 1
    """With `human`: id of the agent that the visitor plays; 0: all agents."""

    seed: str = ""
    """Seed; empty: a new one each time."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The model's own parameters."""

    def arguments(self, factory: ModelFactory, access: Access | None = None) -> dict[str, Any]:
        """Return the arguments for building a model that its factory accepts.

        Args:
            factory: The factory.
            access: Common budget of the server's pages; None: each model has its own.

        Raises:
            ConfigError: If `other` is chosen without naming a model, or the server's budget cannot be applied.
        """
        candidates: dict[str, Any] = {"llm": self.llm(), "rng": self.seed.strip() or None}
        if self.llm_kind not in WITHOUT_TEXT:
            candidates |= {"reasoning": self.reasoning or None, "reply_tokens": self.reply_tokens}
        candidates |= {"scoring": self.scoring or None}
        if self.llm_kind == "other" and access is None:
            candidates |= {"max_dollars": self.max_dollars}
        arguments = {name: value for name, value in candidates.items() if value is not None and accepts(factory, name)}
        if access is None:
            return {**arguments, **self.parameters}
        if not accepts(factory, "access"):
            raise ConfigError("this model accepts no access=, so the budget of this server cannot be applied to it")
        if access_options := sorted(
            name for name in ACCESS_OPTIONS & set(self.parameters) if self.parameters[name] is not None
        ):
            raise ConfigError(
                f"this page fixes {', '.join(access_options)} in model_params, but all pages of this server share one "
                "budget: name the endpoint by llm='NAME@URL' or in mesa-llm.toml, with its limits, or start the "
                "server without a budget or limits of its own (--max-dollars, --concurrency and so on)"
            )
        return {**arguments, **self.parameters, "access": access}

    @property
    def endpoint(self) -> str:
        """Base URL of the endpoint; empty: the provider's own."""
        return self.api_base.strip() if self.llm_kind == "other" else ""

    @property
    def is_complete(self) -> bool:
        """Whether a model can be built: one of another provider has to be named."""
        return self.llm_kind != "other" or bool(self.model_id.strip())

    def decider(self, llm_labels: Mapping[str, str] = LLM_LABELS) -> str:
        """Describe who decides for the agents.

        Args:
            llm_labels: Language model → its label.
        """
        if self.llm_kind == "human" and self.plays:
            return f"you for agent {self.plays}, rules for the others"
        if self.llm_kind == "human":
            return "you for all agents"
        return self.model_id.strip() if self.llm_kind == "other" else llm_labels.get(self.llm_kind, self.llm_kind)

    def changes_from(
        self, other: RunSettings, llm_labels: Mapping[str, str] = LLM_LABELS, labels: Mapping[str, str] = EMPTY
    ) -> list[str]:
        """Describe what differs from other settings, without secrets.

        Args:
            other: The other settings.
            llm_labels: Language model → its label.
            labels: Parameter → its label.
        """
        changes: list[str] = []
        if (self.llm_kind, self.model_id, self.plays) != (other.llm_kind, other.model_id, other.plays):
            changes.append(f"decisions by {self.decider(llm_labels)}")
        if (self.api_base, self.api_key) != (other.api_base, other.api_key):
            changes.append("another endpoint or key")
        if self.seed != other.seed:
            changes.append(f"seed {self.seed}" if self.seed.strip() else "a new seed")
        if self.reasoning != other.reasoning:
            changes.append(f"reasoning: {REASONING[self.reasoning]}")
        if self.reply_tokens != other.reply_tokens:
            changes.append(f"reply length: {self.reply_tokens or 'default'}")
        if self.scoring != other.scoring:
            changes.append(f"decisions scored by: {SCORING[self.scoring]}")
        if self.max_dollars != other.max_dollars:
            changes.append("no maximum cost" if self.max_dollars is None else f"maximum cost ${self.max_dollars:,g}")
        for name, value in self.parameters.items():
            if name not in other.parameters or other.parameters[name] != value:
                changes.append(f"{labels.get(name, name)}: {value}")
        return changes

    def hide(self, text: str) -> str:
        """Remove the visitor's key, secrets in the endpoint's address, and keys of the environment from a text."""
        return without_secrets(text, [self.api_key, *secrets_of(self.api_base), *environment_secrets()])

    def llm(self) -> str | LLM | Mapping[Any, str | LLM]:
        """Return the language model of the agents.

        Raises:
            ConfigError: If `other` is chosen without naming a model.
        """
        if self.llm_kind == "human":
            person = HumanLLM()
            return {self.plays: person, "*": "rule"} if self.plays else person
        if self.llm_kind != "other":
            return self.llm_kind
        if not self.model_id.strip():
            raise ConfigError(
                "enter the name of the model, such as ollama/qwen3 or openai/gpt-4o-mini, then press Reset"
            )
        if NAMES_ADDRESS.search(self.model_id):
            raise ConfigError("the model name contains an address; enter the address under Endpoint")
        return self._at_endpoint() if self.endpoint else self.model_id.strip()

    def _at_endpoint(self) -> LLM:
        """Open the visitor's endpoint, with the visitor's key or none, but never with a key of the environment."""
        if HIDDEN in self.endpoint:
            raise ConfigError("enter the complete address of the endpoint again, including the hidden parts")
        name = self.model_id.strip().removeprefix("ollama/").removeprefix("openai/")
        return OpenAIHTTP(name, self.endpoint, self.api_key)


def transports_in(llm: str | LLM | Mapping[Any, str | LLM] | None) -> list[LLM]:
    """Return the transports among the agents' language models: people, and custom endpoints."""
    transports = llm.values() if isinstance(llm, Mapping) else [llm]
    return [each for each in transports if each is not None and not isinstance(each, str)]


def secrets_of(api_base: str) -> set[str]:
    """Return the parts of an address that may be secret: user, password, and the values of its query."""
    match = ADDRESS.fullmatch(api_base.strip())
    if match is None:
        return {api_base}
    user, query = (match["user"] or "").removesuffix("@"), match["query"]
    pairs = (pair.partition("=") for pair in re.split("[?&#]", query))
    secrets = {user, *user.split(":", 1), *(value or name for name, _, value in pairs)}
    return {*secrets, *map(unquote, secrets)} - {""}


def public_address(api_base: str) -> str:
    """Return an address with user, password and query hidden."""
    match = ADDRESS.fullmatch(api_base.strip())
    if match is None:
        return HIDDEN
    user, query = f"{HIDDEN}@" if match["user"] else "", f"?{HIDDEN}" if match["query"] else ""
    return f"{match['scheme'] or ''}{user}{match['where']}{query}"


def accepts(factory: ModelFactory, name: str) -> bool:
    """Check whether a factory accepts an argument of this name."""
    parameters = inspect.signature(factory).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
