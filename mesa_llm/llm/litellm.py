"""Any provider that litellm supports; litellm itself is loaded with the first request.

litellm asks some eighty providers through HTTP clients of its own, all of which are httpx's below, follows redirects in
most of them, key included, and lets some providers ignore `api_base`. So the requests of our calls, and only these, are
checked where httpx sends them: they go to the address that is recorded, and follow no redirect.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import time
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from mesa_llm.errors import AccessRefused, BadReply, ConfigError, MesaLLMError, Refused, ServerError
from mesa_llm.llm.address import Address
from mesa_llm.llm.batches.forms import AnthropicBatches, OpenAIBatches
from mesa_llm.llm.batches.http import BatchHTTP
from mesa_llm.llm.batches.protocol import BatchForm
from mesa_llm.llm.batches.stage import post
from mesa_llm.llm.budget import send_again
from mesa_llm.llm.certificates import share_certificates
from mesa_llm.llm.credentials import environment_keys, environment_secrets, without_secrets
from mesa_llm.llm.endpoints import provider_base
from mesa_llm.llm.keys import OPENAI, environment
from mesa_llm.llm.openai.connection import Response
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.errors import ErrorDetail, detail_quoted, error_for_status, wait_in_headers
from mesa_llm.llm.openai.learning import Learner, prompt_in
from mesa_llm.llm.openai.probabilities import Answered, tokens_of, weighed
from mesa_llm.llm.openai.reply import quoted_reply, read_reply
from mesa_llm.llm.openai.request import Writer, without_tools
from mesa_llm.llm.tokens import PROVIDER_HOSTS, is_priced, litellm_folder, price_of, prices_of, usage_in
from mesa_llm.records import Reply, Request, Usage

MAX_TEXT = 2_000_000
"""Maximum number of characters of a reply."""

_NO_PROVIDER = re.compile(r"provider not provided|GetLLMProvider Exception", re.IGNORECASE)
"""Messages of litellm about a model whose provider it cannot tell from the name."""

_NEEDS_A_PERSON = re.compile(r"missing credentials|api[_ ]?key", re.IGNORECASE)
"""Messages of litellm, under several statuses, after which a person has to change something."""

_OWN_NAMES = re.compile(r"^(litellm\.|\w+Error: )+")
"""Names of exceptions that litellm puts before a provider's message."""

_NAMES_ADDRESS = re.compile(r"_(API_BASE|BASE_URL|API_URL|ENDPOINT)$")
"""Names of environment variables from which litellm may take an address."""

_FOR_TOKENS = frozenset(
    {"iam.cloud.ibm.com", "oauth2.googleapis.com", "login.microsoftonline.com", "ngw.devices.sberbank.ru"}
)
"""Hosts at which providers change a key for a token, before a request is sent elsewhere."""

_SEND = "_send_single_request"
"""Method of httpx's clients that sends one request, and follows nothing."""

_KEY_HEADERS = ("authorization", "x-api-key")
"""Headers that hold a key."""

_BATCH_HEADERS = (*_KEY_HEADERS, "anthropic-version", "anthropic-beta", "openai-organization", "openai-project")
"""Headers of a request that a batch of such requests has as well."""

_WATCH: ContextVar[Watch | None] = ContextVar("mesa_llm_watch", default=None)


class LiteLLM:
    """Sends requests to one model by its litellm id, such as `anthropic/claude-sonnet-4-5` or `gpt-4o-mini`.

    A call costs some 5 ms of processor time; where the endpoint speaks OpenAI's chat completions, `OpenAIHTTP` costs a
    small part of that. Parameters that a provider does not know are left out. Connections are litellm's own, shared by
    all its users, and closed when the process ends.

    Attributes:
        name: The litellm id, and the address where that is not the provider's own.
        model: The litellm id.
        api_base: Base URL; None: the provider's own.
        timeout_s: Seconds until a request is given up.
    """

    takes_images = True

    def __init__(
        self,
        model: str,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """Set the model; nothing is loaded yet.

        Args:
            model: The litellm id.
            api_base: Base URL; None: the provider's own.
            api_key: Key to send; None: litellm looks for one in the environment.
            timeout_s: Seconds until a request is given up.

        Raises:
            ConfigError: If the timeout or the base URL cannot work.
        """
        if not (timeout_s > 0 and math.isfinite(timeout_s)):
            raise ConfigError(f"timeout_s must be a positive number of seconds, got {timeout_s!r}")
        self.model = model
        self.api_base = api_base
        self.timeout_s = timeout_s
        self._key = api_key
        if "://" in model:
            raise ConfigError("the model's name holds an address; write NAME@URL, or give api_base=")
        self._base = base = api_base or provider_base(model)
        address = None if base is None else Address.of(base)
        self.name = model if address is None else f"{model.removeprefix('openai/')}@{address.base}"
        self._secrets = [api_key or "", *(() if address is None else address.secrets)]
        self._litellm: Any = None
        self._failure: type[Exception] = Exception
        self._forms: dict[Hashable, BatchForm] | None = None  # forms of batches, if it asks in batches
        self._learner = Learner(self.name)
        self._writer = Writer(model)

    def __repr__(self) -> str:
        """Name the model, not the key."""
        return f"LiteLLM({self.model!r})"

    async def reply(self, request: Request) -> Reply:
        """Send the request to the provider.

        Raises:
            ConfigError: If a person must act: provider, key, balance, model's name.
            RateLimited: If it answers 429.
            ServerError: If it fails or hangs.
            BadReply: If the response holds no usable reply.
            Refused: If it refuses this request.
        """
        answered = await self._exchange(request)
        return await weighed(request, answered, self.name, self._exchange) if request.choices else answered[0]

    async def _exchange(self, request: Request) -> Answered:
        """Send a request, in whatever form its provider accepts."""
        if self._litellm is None:
            if self._base is None and not _has_provider(self.model):
                raise _unknown(self.model)
            self._litellm, self._failure = await asyncio.to_thread(load)
        start, attempts = time.perf_counter(), 0
        while True:
            attempts += 1
            if (answered := await self._try(request, start)) is not None:
                return (answered[0] if attempts == 1 else replace(answered[0], attempts=attempts)), answered[1]

    async def _try(self, request: Request, start: float) -> Answered | None:
        """Send a request; return its reply, and its tokens if their alternatives were asked for.

        Args:
            request: The request.
            start: Time on the clock, in seconds, at which it was first sent.

        Returns:
            None if the provider refuses a part of it, without which it is to be sent again.
        """
        failure: MesaLLMError | None = None
        response: Any = None
        refusal: Any = None
        dialect = self._learner.dialect
        body = self._body(request, dialect)
        send = None if self._forms is None else partial(self._post, request)
        with watching(self.model, self._base, send) as watch:
            try:
                async with asyncio.timeout(self.timeout_s if send is None else None):
                    response = await self._litellm.acompletion(**self._arguments(request, body))
            except TimeoutError:
                failure = ServerError(f"{self.model} gave no reply within {self.timeout_s:g} s")
            except self._failure as error:
                refusal, failure = error, self._as_our_error(error, body)
        if watch.fault is not None:
            raise watch.fault
        if refusal is not None:
            status, detail = self._detail_of(refusal)
            if detail.wrote is not None:
                return quoted_reply(detail, request, None), []
            if isinstance(failure, Refused) and self._learner.learn(dialect, status, detail, body):
                await send_again(failure.usage)
                return None
            self._learner.give_up(dialect)
        if failure is not None:  # raised outside `except`, to carry no exception of litellm's, which may quote keys
            raise failure
        if dialect is not self._learner.accepted:
            self._learner.accept(dialect)
        return self._read(response, request, time.perf_counter() - start)

    def _read(self, response: Any, request: Request, latency_s: float) -> Answered:
        """Read litellm's response, with the price that it computed."""
        body, dollars = response.model_dump(), _price(response) if self._forms is None else None
        try:
            reply = read_reply(body, request, latency_s)
            if len(reply.text) > MAX_TEXT:
                raise BadReply(f"the reply is longer than {MAX_TEXT} characters; lower max_tokens")
        except (BadReply, ServerError) as error:
            used = usage_in(body)
            error.usage = None if used is None else replace(used, dollars=dollars or used.dollars)
            raise
        reply = reply if dollars is None else replace(reply, dollars=dollars)
        return reply, tokens_of(body) if request.choices else []

    def price_of(self, usage: Usage) -> float | None:
        """Return what tokens cost, in US dollars; None if litellm knows no price."""
        return price_of(self.model, usage, is_batch=self._forms is not None)

    def batched(self) -> LiteLLM:
        """Return a transport to the same model that sends requests in batches.

        litellm writes each request and reads its response as if it were sent alone; what it would send goes into a
        batch in place of the network. Its own functions for batches create none at Anthropic, and do not translate
        what is in a batch.

        Raises:
            ConfigError: If the provider is neither OpenAI nor Anthropic.
        """
        provider, slash, _ = self.model.partition("/")
        if not slash:
            provider = str(prices_of(self.model).get("litellm_provider") or "")
        if provider not in ("openai", "anthropic"):
            raise ConfigError(
                f"{self.model} cannot be asked in batches: by its litellm id, only models of OpenAI and Anthropic can. "
                "Write NAME@URL if its endpoint takes batches in OpenAI's form, or leave out batch (--batch)"
            )
        transport = copy(self)
        transport._forms = {}
        transport._learner = Learner(self.name, self._learner.dialect)
        return transport

    async def _post(self, request: Request, sent: Any) -> Response:
        """Send what litellm would send, an httpx request, with the next batch.

        Raises:
            ConfigError: If there are no batches of such requests.
            MesaLLMError: As for `post`.
        """
        headers = {name: sent.headers[name] for name in _BATCH_HEADERS if name in sent.headers}
        url, _, query = str(sent.url).partition("?")
        path = next((path for path in ("/chat/completions", "/responses", "/messages") if url.endswith(path)), None)
        if path is None or self._forms is None:
            raise ConfigError(
                f"litellm asks {self.model} at {url}, where there are no batches; leave out batch (--batch)"
            )
        key = (url, query, *headers.items())
        if (form := self._forms.get(key)) is None:
            base = url if path == "/messages" else url.removesuffix(path)
            secrets = [value.removeprefix("Bearer ") for name, value in headers.items() if name in _KEY_HEADERS]
            http = BatchHTTP(Address.of(f"{base}?{query}" if query else base), headers, secrets)
            form = self._forms[key] = AnthropicBatches(http) if path == "/messages" else OpenAIBatches(http, path)
        body = json.loads(sent.content)
        body.pop("stream", None)
        return await post(form, request, json.dumps(body).encode())

    @property
    def secrets(self) -> list[str]:
        """Keys and passwords that no reply may quote."""
        return [*self._secrets, *environment_keys()]

    def require_provider(self) -> None:
        """Check that litellm knows a provider for the model; litellm is loaded for an address alone, and sends nothing.

        Raises:
            ConfigError: If it knows none.
        """
        if self._base is None:
            if not _has_provider(self.model):
                raise _unknown(self.model)
            return
        if self._litellm is None:
            self._litellm, self._failure = load()
        failure: MesaLLMError | None = None
        try:
            self._litellm.get_llm_provider(self.model, api_base=self._base)
        except self._failure as error:
            failure = self._as_our_error(error)
        if failure is not None:
            raise failure

    def _body(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        """Return messages, settings, tools and form of a request, as far as the provider takes them."""
        if not request.tools and any(message.tool_calls for message in request.messages):
            dialect = without_tools(dialect)  # Claude takes calls with tools only
        body: dict[str, Any] = json.loads(self._writer.write(request, dialect))
        del body["model"]
        if not dialect.stream:
            body.pop("stream", None)
        return body

    def _arguments(self, request: Request, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of litellm's `acompletion` for a request with this body."""
        arguments: dict[str, Any] = {
            **body,
            "model": self._model_name(request.adapter),
            "timeout": self.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
            "_skip_mcp_handler": True,  # else it imports `mcp` for every request with tools, and ours name no servers
        }
        if self._base is not None:
            arguments["api_base"] = self._base
        key = self._key if self._key is not None or self._base is None else _provider_key(self.model)
        if key is not None:
            arguments["api_key"] = key
        return arguments

    def _model_name(self, adapter: str | None) -> str:
        """Return the litellm id of the model, or of an adapter at the same provider."""
        provider, slash, _ = self.model.partition("/")
        return f"{provider}{slash}{adapter}" if adapter and slash else adapter or self.model

    def _detail_of(self, error: Any) -> tuple[int, ErrorDetail]:
        """Return the status of an exception of litellm's, and the provider's error in its text, without secrets."""
        quoted = getattr(error, "body", None)
        text = json.dumps({"error": quoted}, default=str) if isinstance(quoted, dict) else str(error)
        message = without_secrets(text, [*self._secrets, *environment_secrets()])
        detail = detail_quoted(_OWN_NAMES.sub("", message))
        return int(getattr(error, "status_code", None) or 500), detail

    def _as_our_error(self, error: Any, body: Mapping[str, Any] | None = None) -> MesaLLMError:
        """Convert an exception of litellm's to one of ours, without secrets.

        Args:
            error: The exception.
            body: What was sent; None: nothing was.
        """
        status, detail = self._detail_of(error)
        if isinstance(error, self._litellm.exceptions.APIResponseValidationError):
            return BadReply(f"{self.model}: {detail.text}")
        if _NO_PROVIDER.search(detail.text):
            return _unknown(self.model)
        if isinstance(error, self._litellm.exceptions.ContentPolicyViolationError):
            detail = detail._replace(codes=("content_policy_violation", *detail.codes))
        headers = getattr(error, "litellm_response_headers", None) or {}
        known = {str(name).lower(): str(value) for name, value in dict(headers).items()}
        failure = error_for_status(
            status, detail, self.model, wait_in_headers(known), "" if body is None else prompt_in(body)
        )
        if status in (400, 500) and isinstance(failure, Refused | ServerError) and _NEEDS_A_PERSON.search(detail.text):
            return AccessRefused(f"{self.model}: {detail.text}; check the model's name and its API key")
        if getattr(error, "status_code", None) and not isinstance(error, self._litellm.exceptions.APIConnectionError):
            failure.usage = Usage(requests=1)
        return failure


def _unknown(model: str) -> ConfigError:
    return ConfigError(
        f"no provider is known for llm={model!r}. Write rule, random, human or local; provider/model, such as "
        "openai/gpt-5-mini or ollama/qwen3; or NAME@URL for a model of an endpoint of your own"
    )


def _has_provider(model: str) -> bool:
    """Check whether litellm knows a provider for a model, from its files alone: to load it takes seconds."""
    provider, slash, name = model.partition("/")
    if slash and name and provider in _providers():
        return True
    return is_priced(model) or model.startswith("ft:") or (":" in model and not slash)


@cache
def _providers() -> frozenset[str]:
    """Return the names of litellm's providers."""
    folder = litellm_folder()
    source = (folder / "types" / "utils.py").read_text(encoding="utf-8")
    listed = source.partition("class LlmProviders(")[2].partition("\nclass ")[0]
    own = re.findall(r'^    [A-Z0-9_]+ = "([\w.-]+)"', listed, re.MULTILINE)
    like = json.loads((folder / "llms" / "openai_like" / "providers.json").read_bytes())
    return frozenset((*own, *like))


def _provider_key(model: str) -> str | None:
    """Return the key that the environment holds for a provider, which litellm does not always look for at a base."""
    provider, slash, _ = model.partition("/")
    return (environment(f"{provider.upper().replace('-', '_')}_API_KEY") or None) if slash else None


def load() -> tuple[Any, type[Exception]]:
    """Load litellm, which takes seconds, with the prices and headers of its own files and without its messages.

    Returns:
        The package, and the base class of its exceptions.
    """
    share_certificates()
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    import litellm
    import openai

    litellm.suppress_debug_info = True
    return litellm, openai.OpenAIError


def _price(response: Any) -> float | None:
    """Return the price that litellm computed, in US dollars; None where it knows none."""
    price = response._hidden_params.get("response_cost")
    return float(price) if isinstance(price, int | float) and math.isfinite(price) and price >= 0 else None


Send = Callable[[Any], Awaitable[Response]]
"""Sends an httpx request, and returns the response."""


class Watch:
    """A call of litellm, and the fault found in where it sends its requests.

    Attributes:
        fault: The error to raise in place of litellm's; None: nothing went wrong.
    """

    def __init__(self, model: str, base: str | None, send: Send | None = None) -> None:
        """Set where its requests may go.

        Args:
            model: The litellm id.
            base: Base URL that is recorded; None: the provider's own.
            send: Sends a request in place of httpx; None: httpx does.
        """
        self.model = model
        self.send = send
        self.base = None if base is None else Address.of(base)
        self.fault: MesaLLMError | None = None
        self.is_over = False

    async def sent(self, request: Any) -> Any:
        """Send an httpx request in its own way, and return httpx's response; an error becomes `fault`."""
        import httpx

        if self.send is None:
            raise ValueError("httpx sends the requests of this call")
        try:
            response = await self.send(request)
        except MesaLLMError as error:
            self.fault = error
            raise httpx.RequestError("not sent alone", request=request) from None
        headers = {"content-type": "application/json"}
        return httpx.Response(response.status, headers=headers, content=response.body, request=request)

    def check(self, url: str, headers: Mapping[str, str]) -> None:
        """Set `fault` if a request may not be sent."""
        origin, host = Address.of(_without_query(url)).origin, urlsplit(url).hostname or ""
        openai_key = environment("OPENAI_API_KEY")
        if openai_key and origin != OPENAI and _is_of_another(self.model) and _holds(headers, openai_key):
            self.fault = ConfigError(
                f"litellm found no key for {self.model} and would send OPENAI_API_KEY to {origin}: nothing was sent. "
                f"Set the provider's own key, as {_variable_of(self.model).replace('_BASE', '_KEY')}"
            )
            return
        if host in _FOR_TOKENS:
            return
        if self.base is not None:
            if origin != self.base.origin:
                self.fault = ConfigError(
                    f"litellm would ask {origin} for {self.model}, and not {self.base.base}, as the environment says: "
                    "it ignores that address for this provider, so nothing was sent. Unset the variable, or write "
                    "NAME@URL if the address speaks OpenAI's chat completions"
                )
        elif host not in PROVIDER_HOSTS and (variable := _variable_for(origin)):
            self.fault = ConfigError(
                f"litellm would ask {origin} for {self.model}, as {variable} says, and the run log would not know: "
                f"nothing was sent. Set PROVIDER_API_BASE, as {_variable_of(self.model)}, or write NAME@URL"
            )

    def note(self, url: str, status: int, location: str) -> None:
        """Set `fault` if a response is a redirect."""
        try:
            target = f" to {Address.of(_without_query(location)).origin}"
        except ConfigError:
            target = ""
        origin = Address.of(_without_query(url)).origin
        self.fault = AccessRefused(
            f"{self.model}: {origin} answered {status}, a redirect{target}, which is not followed, as prompt and key "
            "would go there; check the address, and give the new one if it has moved"
        )


@contextmanager
def watching(model: str, base: str | None, send: Send | None = None) -> Generator[Watch]:
    """Watch the requests that litellm sends in this block.

    Args:
        model: The litellm id.
        base: Base URL that is recorded; None: the provider's own.
        send: As for `Watch`.
    """
    _install()
    watch = Watch(model, base, send)
    token = _WATCH.set(watch)
    try:
        yield watch
    finally:
        watch.is_over = True  # tasks that litellm leaves behind have inherited it
        _WATCH.reset(token)


@cache
def _install() -> None:
    """Let httpx check the requests of watched calls; all others pass as before."""
    import httpx

    clients: tuple[Any, Any] = (httpx.AsyncClient, httpx.Client)
    send_async, send = (getattr(client, _SEND) for client in clients)

    async def watched_async(client: Any, request: Any) -> Any:
        watch = _before(request)
        if watch is not None and watch.send is not None and request.method == "POST":
            return await watch.sent(request)
        return _after(watch, request, await send_async(client, request))

    def watched(client: Any, request: Any) -> Any:
        watch = _before(request)
        return _after(watch, request, send(client, request))

    setattr(clients[0], _SEND, watched_async)
    setattr(clients[1], _SEND, watched)


def _before(request: Any) -> Watch | None:
    import httpx

    watch = _WATCH.get()
    if watch is None or watch.is_over:
        return None
    if request.method != "GET" or "authorization" in request.headers:
        watch.check(str(request.url), request.headers)
        if watch.fault is not None:
            raise httpx.RequestError("not sent", request=request)
    return watch


def _after(watch: Watch | None, request: Any, response: Any) -> Any:
    if watch is not None and 300 <= response.status_code < 400 and "location" in response.headers:
        watch.note(str(request.url), response.status_code, response.headers["location"])
        del response.headers["location"]  # without it, no client follows
    return response


def _is_of_another(model: str) -> bool:
    """Check whether a litellm id names a provider other than OpenAI."""
    provider, slash, _ = model.partition("/")
    return bool(slash) and provider not in ("openai", "text-completion-openai", "azure")


def _holds(headers: Mapping[str, str], key: str) -> bool:
    return any(key in value for value in headers.values())


def _without_query(url: str) -> str:
    return url.partition("?")[0].partition("#")[0]


def _variable_for(origin: str) -> str:
    """Return the variable of the environment that names an address; empty if none does."""
    for name, value in os.environ.items():
        if _NAMES_ADDRESS.search(name) and value.strip().startswith("http"):
            try:
                if Address.of(value).origin == origin:
                    return name
            except ConfigError:
                continue
    return ""


def _variable_of(model: str) -> str:
    return f"{model.partition('/')[0].upper().replace('-', '_')}_API_BASE"
