"""Any provider that litellm supports; litellm itself is loaded with the first request."""

from __future__ import annotations

import asyncio
import math
import os
import re
import time
from dataclasses import replace
from typing import Any

from mesa_llm.errors import AccessRefused, BadReply, ConfigError, MesaLLMError, ServerError
from mesa_llm.llm.address import Address, environment_secrets, without_secrets
from mesa_llm.llm.endpoints import provider_base
from mesa_llm.llm.keys import environment
from mesa_llm.llm.litellm_guard import watching
from mesa_llm.llm.openai.errors import ErrorDetail, detail_of, trouble
from mesa_llm.llm.openai.reply import read_reply
from mesa_llm.llm.openai.request import response_format, tool_choice, wire_tools
from mesa_llm.llm.redaction import environment_keys
from mesa_llm.llm.tokens import price, usage_in
from mesa_llm.records import Reply, Request, Usage

MAX_TEXT = 2_000_000
"""Maximum number of characters of a reply."""

_NO_PROVIDER = re.compile(r"provider not provided|GetLLMProvider Exception", re.IGNORECASE)
"""Messages of litellm about a model whose provider it cannot tell from the name."""

_NEEDS_A_PERSON = re.compile(r"missing credentials|api[_ ]?key", re.IGNORECASE)
"""Messages of litellm, under several statuses, after which a person has to change something."""

_OWN_NAMES = re.compile(r"^(litellm\.|\w+Error: )+")
"""Names of exceptions that litellm puts before a provider's message."""


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
        if self._litellm is None:
            self._litellm, self._failure = await asyncio.to_thread(load)
        start = time.perf_counter()
        failure: MesaLLMError | None = None
        response: Any = None
        with watching(self.model, self._base) as watch:
            try:
                async with asyncio.timeout(self.timeout_s):
                    response = await self._litellm.acompletion(**self._arguments(request))
            except TimeoutError:
                failure = ServerError(f"{self.model} gave no reply within {self.timeout_s:g} s")
            except self._failure as error:
                failure = self._as_our_error(error)
        failure = watch.fault or failure
        if failure is not None:  # raised outside `except`, to carry no exception of litellm's, which may quote keys
            raise failure
        return self._read(response, request, time.perf_counter() - start)

    def _read(self, response: Any, request: Request, latency_s: float) -> Reply:
        """Read litellm's response, with the price that it computed."""
        body, dollars = response.model_dump(), _price(response)
        try:
            reply = read_reply(body, request, latency_s)
            if len(reply.text) > MAX_TEXT:
                raise BadReply(f"the reply is longer than {MAX_TEXT} characters; lower max_tokens")
        except BadReply as error:
            used = usage_in(body)
            error.usage = None if used is None else replace(used, dollars=dollars or used.dollars)
            raise
        return reply if dollars is None else replace(reply, dollars=dollars)

    def price_of(self, usage: Usage) -> float | None:
        """Return what tokens cost, in US dollars; None if litellm knows no price."""
        tokens = usage.prompt_tokens, usage.reply_tokens, usage.cached_tokens, usage.stored_tokens
        return price(self.model, *tokens)

    @property
    def secrets(self) -> list[str]:
        """Keys and passwords that no reply may quote."""
        return [*self._secrets, *environment_keys()]

    def require_provider(self) -> None:
        """Check that litellm knows a provider for the model, which loads litellm and sends nothing.

        Raises:
            ConfigError: If it knows none.
        """
        if self._litellm is None:
            self._litellm, self._failure = load()
        failure: MesaLLMError | None = None
        try:
            self._litellm.get_llm_provider(self.model, api_base=self._base)
        except self._failure as error:
            failure = self._as_our_error(error)
        if failure is not None:
            raise failure

    def _arguments(self, request: Request) -> dict[str, Any]:
        """Return the arguments of litellm's `acompletion` for a request."""
        arguments: dict[str, Any] = {
            "seed": request.salt.seed,
            **request.settings,
            "model": self._model_name(request.adapter),
            "messages": [message.to_wire() for message in request.messages],
            "timeout": self.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
        }
        if request.tools:
            arguments["tools"] = wire_tools(request.tools, request.options)
            arguments["tool_choice"] = tool_choice(request)
        if request.schema is not None:
            arguments["response_format"] = response_format(request.schema)
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

    def _as_our_error(self, error: Any) -> MesaLLMError:
        """Convert an exception of litellm's to one of ours, without secrets."""
        message = without_secrets(str(error), [*self._secrets, *environment_secrets()])
        detail = ErrorDetail(detail_of(_OWN_NAMES.sub("", message)).text, "")
        if isinstance(error, self._litellm.exceptions.APIResponseValidationError):
            return BadReply(f"{self.model}: {detail.text}")
        status = int(getattr(error, "status_code", None) or 500)
        if _NO_PROVIDER.search(detail.text):
            return ConfigError(
                f"no provider is known for llm={self.model!r}. Write rule, random, human or local; provider/model, "
                "such as openai/gpt-5-mini or ollama/qwen3; or NAME@URL for a model of an endpoint of your own"
            )
        if status in (400, 500) and _NEEDS_A_PERSON.search(detail.text):
            return AccessRefused(f"{self.model}: {detail.text}; check the model's name and its API key")
        headers = getattr(error, "litellm_response_headers", None) or {}
        failure = trouble(status, detail, self.model, headers.get("retry-after"))
        if getattr(error, "status_code", None) and not isinstance(error, self._litellm.exceptions.APIConnectionError):
            failure.usage = Usage(requests=1)
        return failure


def _provider_key(model: str) -> str | None:
    """Return the key that the environment holds for a provider, which litellm does not always look for at a base."""
    provider, slash, _ = model.partition("/")
    return (environment(f"{provider.upper().replace('-', '_')}_API_KEY") or None) if slash else None


def load() -> tuple[Any, type[Exception]]:
    """Load litellm, which takes seconds, with the price map of its own files and without its messages.

    Returns:
        The package, and the base class of its exceptions.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm
    import openai

    litellm.suppress_debug_info = True
    return litellm, openai.OpenAIError


def _price(response: Any) -> float | None:
    """Return the price that litellm computed, in US dollars; None where it knows none."""
    price = response._hidden_params.get("response_cost")
    return float(price) if isinstance(price, int | float) and math.isfinite(price) and price >= 0 else None
