"""What a visitor chooses for the next run: language model, seed and parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from mesa_llm.engine.access import Access
from mesa_llm.engine.transports import ACCESS_OPTIONS
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import environment_secrets, without_secrets
from mesa_llm.llm.human.queue import HumanLLM
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.model import LLMModel

ModelFactory = Callable[..., LLMModel]
"""A model class, or any callable that takes parameters by name and returns a model."""

LLM_LABELS = MappingProxyType(
    {
        "rule": "rules (no language model)",
        "random": "chance (the baseline)",
        "local": "the small model on this machine",
        "human": "you, and rules for the others",
        "other": "another model …",
    }
)
"""Language model → its label on the page."""

WITHOUT_TEXT = ("rule", "random", "human")
"""Choices that write no text, so that reasoning and reply length do not apply."""

REASONING = MappingProxyType(
    {
        "": "as the model has it",
        "none": "none",
        "inline": "with the decision",
        "first": "first, in a request of its own",
    }
)
"""Way to reason → its label on the page."""

NAMES_ADDRESS = re.compile(r"://|@.*[.:/]")
"""Matches model names that contain an endpoint, which would get the keys of the environment."""

ADDRESS = re.compile(r"(?P<scheme>[a-z]+:/+)?(?P<user>.*@)?(?P<where>[^?#]*)(?P<query>.*)", re.IGNORECASE)
"""The parts of an address, even of a malformed one."""

HIDDEN = "•••"
"""Replacement for secrets."""


@dataclass(frozen=True)
class RunSettings:
    """All choices that a model is built from."""

    thinker: str = "rule"
    """One of `LLM_LABELS`; any other text is taken as a model string."""

    model_id: str = ""
    """With `other`: a litellm id, `ollama/NAME`, or the endpoint's name for the model."""

    api_base: str = field(default="", repr=False)
    """With `other`: base URL of an OpenAI-compatible endpoint; empty: the provider's own. It may hold a password."""

    api_key: str = field(default="", repr=False)
    """Key for that endpoint; empty: none is sent. It is stored nowhere else."""

    reasoning: str = ""
    """When agents reason, one of `REASONING`; empty: the model's default."""

    reply_tokens: int | None = None
    """Maximum length of a reply, in tokens; None: the model's default."""

    max_dollars: float | None = None
    """With `other`: US dollars after which the run stops; None: no limit."""

    plays: int = 1
    """With `human`: id of the agent that the visitor plays; 0: all."""

    seed: str = ""
    """Seed; empty: a new one each time."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The model's own parameters."""

    def arguments(self, factory: ModelFactory, access: Access | None = None) -> dict[str, Any]:
        """Return the arguments for building a model, as far as its factory takes them.

        Args:
            factory: The factory.
            access: The server's budget for the models of all pages; None: each has its own.

        Raises:
            ConfigError: If `other` is chosen and no model is named, or the model would evade the server's budget, or
                has an access of its own.
        """
        candidates: dict[str, Any] = {"llm": self.llm(), "rng": self.seed.strip() or None}
        if self.thinker not in WITHOUT_TEXT:
            candidates |= {"reasoning": self.reasoning or None, "reply_tokens": self.reply_tokens}
        if self.thinker == "other" and access is None:
            candidates |= {"max_dollars": self.max_dollars}
        arguments = {name: value for name, value in candidates.items() if value is not None and takes(factory, name)}
        if access is None:
            return {**arguments, **self.parameters}
        if not takes(factory, "access"):
            raise ConfigError("this model takes no access=, so that the budget of this server cannot hold for it")
        if access_options := sorted(
            name for name in ACCESS_OPTIONS & set(self.parameters) if self.parameters[name] is not None
        ):
            raise ConfigError(
                f"this page fixes {', '.join(access_options)} in model_params, and this server has one budget "
                "and one access for all its pages: name the endpoint by llm='NAME@URL', or by a table of "
                "mesa-llm.toml with its limits; "
                "or start the server without --max-calls, --max-tokens and --max-dollars"
            )
        return {**arguments, **self.parameters, "access": access}

    @property
    def endpoint(self) -> str:
        """Base URL of the endpoint; empty: the provider's own."""
        return self.api_base.strip() if self.thinker == "other" else ""

    def hide(self, text: str) -> str:
        """Remove the visitor's key, secrets in the endpoint's address, and keys of the environment from a text."""
        return without_secrets(text, [self.api_key, *secrets_of(self.api_base), *environment_secrets()])

    def llm(self) -> str | LLM | Mapping[Any, str | LLM]:
        """Return what agents think with.

        Raises:
            ConfigError: If `other` is chosen, and no model is named.
        """
        if self.thinker == "human":
            person = HumanLLM()
            return {self.plays: person, "*": "rule"} if self.plays else person
        if self.thinker != "other":
            return self.thinker
        if not self.model_id.strip():
            raise ConfigError("name the model, such as ollama/qwen3 or openai/gpt-4o-mini, then press Reset")
        if NAMES_ADDRESS.search(self.model_id):
            raise ConfigError("the model's name holds an address; type the address under Endpoint")
        return self._at_endpoint() if self.endpoint else self.model_id.strip()

    def _at_endpoint(self) -> LLM:
        """Open the visitor's endpoint, with the visitor's key or none, but never with a key of the environment."""
        if HIDDEN in self.endpoint:
            raise ConfigError("type the whole address of the endpoint again, with what the page has hidden in it")
        name = self.model_id.strip().removeprefix("ollama/").removeprefix("openai/")
        return OpenAIHTTP(name, self.endpoint, self.api_key)


def transports_in(llm: str | LLM | Mapping[Any, str | LLM] | None) -> list[LLM]:
    """Return the transports among the agents' language models: people, and endpoints that were typed."""
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


def takes(factory: ModelFactory, name: str) -> bool:
    """Check whether a model can be given an argument of this name."""
    parameters = inspect.signature(factory).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
