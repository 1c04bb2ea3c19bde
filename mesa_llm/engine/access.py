"""Access to language models: endpoints, rate limits and a budget, which many models can share."""

from __future__ import annotations

import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from mesa_llm.engine.event_loop import close_all
from mesa_llm.engine.options import AccessKeywords, AccessOptions, checked_options, keyword_parameters
from mesa_llm.errors import ConfigError
from mesa_llm.llm import open_simple
from mesa_llm.llm.address import Address, split_name
from mesa_llm.llm.batches.protocol import Batchable
from mesa_llm.llm.batches.stage import Batched
from mesa_llm.llm.budget import Budget, SharedBudget
from mesa_llm.llm.credentials import environment_keys
from mesa_llm.llm.endpoints import Endpoint, EndpointFile, checked_endpoints, ollama_base, read_endpoints
from mesa_llm.llm.keys import AddressSource, Keyring, Origin
from mesa_llm.llm.limits import Limits
from mesa_llm.llm.plugins import is_provided, open_provided
from mesa_llm.llm.protocol import LLM, Capabilities, Closable, require_llm
from mesa_llm.llm.redaction import Redacted
from mesa_llm.llm.retry import Refusals, Retry
from mesa_llm.llm.surrogate.model import SurrogateLLM
from mesa_llm.llm.surrogate.names import file_in

if TYPE_CHECKING:
    from mesa_llm.llm.openai.processes import ClientProcesses

logger = logging.getLogger(__name__)

_NO_LIMITS = Endpoint(model="any")
"""Endpoint without limits of its own."""

MAX_TOGETHER = 1_000_000
"""Maximum number of requests that wait together for people, or for a batch."""

BATCH_ATTEMPTS = 2
"""Maximum number of batches in which one request is sent."""


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A language model that is ready for requests."""

    capabilities: Capabilities
    """Capabilities of its transport."""

    llm: LLM | None
    """The transport; None for the rule twin."""

    is_immediate: bool
    """Whether replies come at once, as in every replay."""

    concurrency: int
    """Maximum number of requests in flight."""

    @property
    def name(self) -> str:
        """The model's name, part of every request's key."""
        return self.capabilities.name

    def named(self, adapter: str | None) -> str:
        """Return the model's name in requests, prefixed by the adapter if there is one.

        Raises:
            ConfigError: If the model takes no adapters.
        """
        if adapter is not None and not self.capabilities.takes_adapters:
            raise ConfigError(
                f"{self.name} takes no adapter, but an agent's config names {adapter!r}: serve the model with its "
                "adapters (vLLM, llama.cpp) and name it NAME@URL, or leave the adapter out"
            )
        return self.name if adapter is None else f"{adapter} on {self.name}"

    @property
    def transport(self) -> LLM:
        """What requests are sent to.

        Raises:
            ConfigError: If it is the rule twin, which takes no requests.
        """
        if self.llm is None:
            raise ConfigError("a rule is not asked")
        return self.llm

    @property
    def is_language_model(self) -> bool:
        """Whether a language model replies, and not a rule, the random baseline or a person."""
        return self.llm is not None and not self.capabilities.is_immediate and not self.capabilities.is_person


class Access:
    """Endpoints, limits and one budget for all language models that are reached through it.

    A model creates its own from its options. Models that are given the same one (`access=`), in one thread or in
    several, share one budget, and one rate limit per language model:

        access = Access(api_base="http://localhost:8000/v1", max_dollars=20, requests_per_min=500)
        runs = [SocialModel(rng=seed, llm="my-model", access=access, log=f"{seed}.sqlite") for seed in range(10)]
    """

    __signature__: ClassVar[inspect.Signature] = inspect.Signature(
        [inspect.Parameter("purse", inspect.Parameter.KEYWORD_ONLY, default=None), *keyword_parameters(AccessOptions)]
    )

    def __init__(self, *, purse: SharedBudget | None = None, **options: Unpack[AccessKeywords]) -> None:
        """Set the limits and the budget; nothing is opened or read yet.

        Args:
            purse: Budget that several accesses share, within one process or across several (see
                `mesa_llm.experiments`), in place of `max_calls`, `max_tokens` and `max_dollars`.
            **options: Endpoints, limits and a budget; see `AccessOptions`.

        Raises:
            ConfigError: If an option is unknown or invalid.
        """
        self._options = checked_options(AccessOptions, options)
        self._endpoints = checked_endpoints(self._options.endpoints, "endpoints=")
        self._file: EndpointFile | None = None
        base = self._options.api_base
        self._api_base = base.strip() if base and base.strip() else None
        self._address = None if self._api_base is None else Address.of(self._api_base)
        self._keys = Keyring(self._options.api_key, self._api_base)
        budget = self._options.max_calls, self._options.max_tokens, self._options.max_dollars
        self._budget = Budget(_NoTransport(), *budget, purse=purse)
        self._lock = threading.Lock()
        self._connections: dict[Hashable, OpenedModel] = {}
        self._transports: list[object] = []
        self._processes: ClientProcesses | None = None
        if self._options.clients:
            from mesa_llm.llm.openai.processes import ClientProcesses

            self._processes = ClientProcesses(self._options.clients)
            self._transports.append(self._processes)
        self.close = weakref.finalize(self, _close_all, self._transports)

    def open(self, llm: str | LLM, *, is_auxiliary: bool = False, origin: Origin = Origin.USER) -> OpenedModel:
        """Return the connection to a language model; models of the same endpoint and key share one.

        Args:
            llm: Model string, or a transport of the user's own.
            is_auxiliary: Whether it is asked in addition to the models that agents think with, as a parser or a judge
                is; a plain name is then looked up at its provider, whatever `api_base` is.
            origin: Where the string comes from, on which it depends whether a key may be sent to an address in it.

        Raises:
            ConfigError: If a string names nothing, a package that it needs is not installed, or the provider of a
                second model is unknown.
        """
        simple = open_simple(llm) if isinstance(llm, str) else None
        if isinstance(simple, SurrogateLLM) and simple.otherwise:
            return self._surrogate(simple, str(llm), origin)
        with self._lock:
            if not isinstance(llm, str):
                return self._connection(id(llm), lambda: llm, is_auxiliary=is_auxiliary)
            text = llm.strip()
            if simple is not None:
                return self._connection(text, lambda: self._owned(simple), is_auxiliary=is_auxiliary)
            if (provided := open_provided(text)) is not None:
                opened = self._connection(text, lambda: self._owned(provided), is_auxiliary=is_auxiliary)
                return replace(opened, capabilities=replace(opened.capabilities, name=text))
            endpoint = self._find(text, is_auxiliary)
            key = self._keys.key_for(self._source_of(text, endpoint, is_auxiliary, origin))
            timeout_s = endpoint.timeout_s or self._options.timeout_s
            connect = partial(_remote, endpoint, key, timeout_s, self._processes, is_auxiliary=is_auxiliary)

            def connect_and_say() -> LLM:
                if text not in self._endpoints and text in self._from_file().endpoints:
                    self._from_file().say_where(text)
                return self._owned(connect())

            return self._connection((endpoint, key), connect_and_say, endpoint, is_auxiliary=is_auxiliary)

    def _surrogate(self, surrogate: SurrogateLLM, text: str, origin: Origin) -> OpenedModel:
        """Return a surrogate mind with the language model that it asks otherwise, within that model's limits."""
        inner = self.open(surrogate.otherwise, origin=origin)
        name = self.name_of(surrogate.otherwise)
        opened = SurrogateLLM(file_in(text.strip()), surrogate.otherwise, inner.transport, name)
        return OpenedModel(Capabilities.of(opened), opened, False, inner.concurrency)

    def require(self, llm: str | LLM) -> None:
        """Check that a language model can be opened and its provider is known; may load litellm, but sends nothing.

        Args:
            llm: Model string or transport that agents think with.

        Raises:
            ConfigError: As for `open`, or if the provider is unknown.
        """
        if isinstance(llm, str) and llm.strip() == "rule":
            return
        self.open(llm)
        self.require_known(llm)

    def require_known(self, llm: str | LLM) -> None:
        """Check that a language model's provider is known; may load litellm, but sends and opens nothing.

        Args:
            llm: Model string or transport that agents think with.

        Raises:
            ConfigError: If it is neither, or the provider is unknown.
        """
        if not isinstance(llm, str):
            require_llm(llm)
        elif llm.strip() != "rule" and open_simple(llm) is None and not is_provided(llm):
            self.require_provider(llm)

    def require_provider(self, text: str, *, is_auxiliary: bool = False) -> None:
        """Check that a language model's provider is known; may load litellm, but sends and opens nothing.

        Args:
            text: Model string of a language model.
            is_auxiliary: As for `open`.

        Raises:
            ConfigError: If the string names nothing, or the provider is unknown.
        """
        endpoint = self._find(text.strip(), is_auxiliary)
        if endpoint.api_base is None:
            from mesa_llm.llm.litellm import LiteLLM

            LiteLLM(endpoint.model).require_provider()

    def forget(self, llm: LLM) -> None:
        """Forget a transport of the user's own, with any key it holds, when no model uses it any more.

        Args:
            llm: The transport, whether or not it was opened. Closing it is up to the user.
        """
        with self._lock:
            self._connections.pop(id(llm), None)

    def name_of(self, text: str, *, is_auxiliary: bool = False) -> str:
        """Return the name under which a run log records a model string: model and endpoint. Nothing is opened.

        Args:
            text: Model string.
            is_auxiliary: As for `open`.
        """
        simple = open_simple(text)
        if is_provided(text):
            return text.strip()
        if isinstance(simple, SurrogateLLM) and simple.otherwise:
            name = self.name_of(simple.otherwise)
            simple = SurrogateLLM(file_in(text.strip()), simple.otherwise, inner_name=name)
        return Capabilities.of(simple).name if simple is not None else self._find(text.strip(), is_auxiliary).name

    @property
    def written(self) -> dict[str, Any]:
        """Endpoints, limits and budget as plain values, without keys and without secrets from addresses."""
        written = self._options.limits
        if self._address is not None:
            written["api_base"] = self._address.base
        named = {**self._from_file().endpoints, **self._endpoints}
        return {**written, "endpoints": {name: named[name].written for name in sorted(named)}} if named else written

    @property
    def timeout_s(self) -> float:
        """Longest timeout of any of its endpoints, in seconds."""
        timeouts = [
            endpoint.timeout_s or 0 for endpoint in (*self._from_file().endpoints.values(), *self._endpoints.values())
        ]
        return max([self._options.timeout_s, *timeouts])

    @property
    def asks_in_batches(self) -> bool:
        """Whether requests are sent in batches."""
        return self._options.batch

    def sends_in_batches(self, llm: str | LLM, *, is_auxiliary: bool = False) -> bool:
        """Check whether a language model would be asked in batches; nothing is opened or sent.

        Args:
            llm: As for `open`.
            is_auxiliary: As for `open`.

        Raises:
            ConfigError: As for `open`.
        """
        if not self._options.batch:
            return False
        transport = open_simple(llm) if isinstance(llm, str) else llm
        if isinstance(transport, SurrogateLLM) and transport.otherwise:
            return self.sends_in_batches(transport.otherwise, is_auxiliary=is_auxiliary)
        if transport is None:
            endpoint = self._find(str(llm).strip(), is_auxiliary)
            key = None if endpoint.api_base is None else ""
            transport = _remote(endpoint, key, self.timeout_s, None, is_auxiliary=False)
        return self._batched(transport, is_auxiliary) is not None

    # -- finding endpoints

    def _find(self, text: str, is_auxiliary: bool) -> Endpoint:
        """Find the endpoint that a model string refers to."""
        if text == "rule":
            raise ConfigError("'rule' is the agent's own rule twin and has no transport")
        if not text:
            raise ConfigError("llm= is empty; use rule, random, human, local, or a model such as ollama/qwen3")
        if (endpoint := self._endpoint_named(text)) is not None:
            if endpoint.api_base is None and endpoint.model.startswith("ollama/"):
                return endpoint.model_copy(update=_at_ollama(endpoint.model))
            return endpoint
        model, base = split_name(text)
        if base is not None:
            if not model:
                raise ConfigError(f"llm= names an address and no model; write NAME@{Address.of(base).base}")
            return Endpoint(model=model, api_base=base)
        if self._api_base is not None and not is_auxiliary:
            return Endpoint(model=text.removeprefix("ollama/").removeprefix("openai/"), api_base=self._api_base)
        if text.startswith("ollama/"):
            return Endpoint(**_at_ollama(text))
        return Endpoint(model=text)

    def _endpoint_named(self, text: str) -> Endpoint | None:
        return self._endpoints.get(text) or self._from_file().endpoints.get(text)

    def _from_file(self) -> EndpointFile:
        if self._file is None:
            self._file = read_endpoints()
        return self._file

    def _source_of(self, text: str, endpoint: Endpoint, is_auxiliary: bool, origin: Origin) -> AddressSource:
        """Describe where the address of an endpoint comes from.

        Args:
            text: Model string.
            endpoint: The endpoint that it refers to.
            is_auxiliary: As for `open`.
            origin: Where the model string comes from.
        """
        base, key_env = endpoint.api_base, endpoint.key_env
        if text in self._endpoints:
            return AddressSource(base, Origin.USER, key_env, is_named=True)
        if text in self._from_file().endpoints:
            return AddressSource(base, self._from_file().origin, key_env, is_named=True)
        if base is None:
            is_recorded = origin is Origin.LOG
            return AddressSource(None, Origin.LOG if is_recorded else Origin.PROVIDER, is_first=not is_auxiliary)
        if split_name(text)[1] is not None:
            return AddressSource(base, self._keys.origin_of(base, origin), is_first=not is_auxiliary)
        is_ollama = text.startswith("ollama/") and base == ollama_base()
        return AddressSource(
            base, Origin.ENVIRONMENT if is_ollama else Origin.USER, None, False, not is_auxiliary, is_ollama
        )

    # -- opening

    def _connection(
        self,
        key: Hashable,
        connect: Callable[[], LLM],
        endpoint: Endpoint | None = None,
        *,
        is_auxiliary: bool = False,
    ) -> OpenedModel:
        """Return the connection to a language model, made at the first call."""
        if key not in self._connections:
            transport = connect()
            batched = self._batched(transport, is_auxiliary) if self._options.batch else None
            if batched is None:
                self._connections[key] = self._within_limits(transport, endpoint)
            else:
                self._connections[key] = self._within_budget(batched)
        return self._connections[key]

    @staticmethod
    def _batched(transport: LLM, is_auxiliary: bool) -> LLM | None:
        """Return a transport that asks in batches; None for those that nobody is paid for, and for a second model.

        Raises:
            ConfigError: If agents think with the model, and it cannot be asked in batches.
        """
        capabilities = Capabilities.of(transport)
        if capabilities.is_immediate or capabilities.is_person:
            return None
        try:
            if isinstance(transport, Batchable):
                return transport.batched()
        except ConfigError:
            if not is_auxiliary:
                raise
        if is_auxiliary:  # it is asked late in a run, when much has already been paid for
            logger.warning(
                "%s cannot be asked in batches, so it is asked at once, for the full price", capabilities.name
            )
            return None
        raise ConfigError(f"{capabilities.name} cannot be asked in batches; leave out batch (--batch)")

    def _within_budget(self, transport: LLM) -> OpenedModel:
        """Wrap a transport that asks in batches in its budget, and send again once what a batch has lost."""
        redacted = Redacted.around(transport, environment_keys())
        paid = Refusals(self._budget.also(redacted, transport, sends_together=True))
        retried = Retry(paid, attempts=min(self._options.attempts, BATCH_ATTEMPTS))
        return OpenedModel(Capabilities.of(transport), Batched(retried), False, MAX_TOGETHER)

    def paid(self, transport: LLM) -> LLM:
        """Return a transport around another one that pays for its replies from the budget, without limits or retries.

        Args:
            transport: What is called in place of a language model.
        """
        return self._budget.also(Redacted.around(transport, environment_keys()), transport, sends_together=True)

    def _owned(self, transport: LLM) -> LLM:
        """Keep a transport that was made here, so that it is closed in the end."""
        self._transports.append(transport)
        return transport

    def _within_limits(self, transport: LLM, endpoint: Endpoint | None = None) -> OpenedModel:
        """Wrap a transport in its budget, its retries, and the limits of its endpoint or those of all models."""
        capabilities = Capabilities.of(transport)
        if capabilities.is_immediate:
            return OpenedModel(capabilities, transport, True, 1)
        if capabilities.is_person:
            return OpenedModel(capabilities, transport, False, MAX_TOGETHER)
        own, shared = endpoint or _NO_LIMITS, self._options
        concurrency = own.concurrency or shared.concurrency
        limited = Limits(
            Redacted.around(transport, environment_keys()),
            min(concurrency, capabilities.max_in_flight or concurrency),
            own.requests_per_min or shared.requests_per_min,
            own.tokens_per_min or shared.tokens_per_min,
        )
        paid = Refusals(self._budget.also(limited, transport))
        retried = Retry(paid, attempts=shared.attempts, loading_timeout_s=shared.loading_timeout_s)
        return OpenedModel(capabilities, retried, False, concurrency)


def _at_ollama(model: str) -> dict[str, Any]:
    return {"model": model.removeprefix("ollama/"), "api_base": ollama_base()}


def _remote(
    endpoint: Endpoint, key: str | None, timeout_s: float, processes: ClientProcesses | None, *, is_auxiliary: bool
) -> LLM:
    if endpoint.api_base is not None:
        from mesa_llm.llm.openai.client import OpenAIHTTP

        def open_server(base: str, key: str | None) -> OpenAIHTTP:
            return OpenAIHTTP(endpoint.model, base, key, timeout_s=timeout_s, processes=processes)

        first = open_server(endpoint.api_base, key)
        if not endpoint.replicas:
            return first
        from mesa_llm.llm.openai.replicas import Replicas

        own_key = key if endpoint.key_env is not None else ""  # no other key was meant for these hosts
        return Replicas([first, *(open_server(base, own_key) for base in endpoint.replicas)])
    if key == "":
        raise ConfigError(
            f"{endpoint.model!r} is asked at its provider, whose key would be looked for in the environment, and "
            'api_key="" forbids that; name an endpoint: NAME@URL'
        )
    from mesa_llm.llm.litellm import LiteLLM

    transport = LiteLLM(endpoint.model, api_key=key, timeout_s=timeout_s)
    if is_auxiliary:  # it is asked late in a run, when much has already been paid for
        transport.require_provider()
    return transport


class _NoTransport:
    """Transport that receives no requests."""

    async def reply(self, request: Any) -> Any:
        raise ConfigError(f"no language model was opened for {request.model}")


def _close_all(transports: list[object]) -> None:
    """Close transports that were forgotten, or are still open when the process ends."""
    closables = [transport for transport in transports if isinstance(transport, Closable)]
    transports.clear()
    close_all(closables)


class EngineOptions(AccessKeywords, total=False):
    """Options by which a run reaches its language models; see `RunOptions`."""

    access: Access | None
    """Access shared with other runs; the options that it sets itself may then not be given."""

    parser: str | LLM | None
    allow_new_endpoint: bool

    named: Collection[str] | None
    """Model strings that the user names, of a model rebuilt from a run log; None: the user has named all of them. The
    addresses in others come from the log, and get no key."""
