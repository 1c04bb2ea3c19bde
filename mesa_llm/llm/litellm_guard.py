"""Guards litellm's requests: they go to the address that is recorded, and follow no redirect.

litellm asks some eighty providers through HTTP clients of its own, all of which are httpx's below, follows redirects in
most of them, key included, and lets some providers ignore `api_base`. So the requests of our calls, and only these, are
checked where httpx sends them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from mesa_llm.errors import AccessRefused, ConfigError, MesaLLMError
from mesa_llm.llm.address import Address
from mesa_llm.llm.keys import OPENAI, environment
from mesa_llm.llm.tokens import PROVIDER_HOSTS

_NAMES_ADDRESS = re.compile(r"_(API_BASE|BASE_URL|API_URL|ENDPOINT)$")
"""Names of environment variables from which litellm may take an address."""

_FOR_TOKENS = frozenset(
    {"iam.cloud.ibm.com", "oauth2.googleapis.com", "login.microsoftonline.com", "ngw.devices.sberbank.ru"}
)
"""Hosts at which providers change a key for a token, before a request is sent elsewhere."""

_SEND = "_send_single_request"
"""Method of httpx's clients that sends one request, and follows nothing."""

_WATCH: ContextVar[Watch | None] = ContextVar("mesa_llm_watch", default=None)


class Watch:
    """A call of litellm, and the fault found in where it sends its requests.

    Attributes:
        fault: The error to raise in place of litellm's; None: nothing went wrong.
    """

    def __init__(self, model: str, base: str | None) -> None:
        """Set where its requests may go.

        Args:
            model: The litellm id.
            base: Base URL that is recorded; None: the provider's own.
        """
        self.model = model
        self.base = None if base is None else Address.of(base)
        self.fault: MesaLLMError | None = None
        self.is_over = False

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
def watching(model: str, base: str | None) -> Generator[Watch]:
    """Watch the requests that litellm sends in this block.

    Args:
        model: The litellm id.
        base: Base URL that is recorded; None: the provider's own.
    """
    _install()
    watch = Watch(model, base)
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
