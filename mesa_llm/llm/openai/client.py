"""A thin client for every endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, finalize

from pydantic_core import from_json

from mesa_llm.errors import BadReply, ConfigError, MesaLLMError, ServerTrouble
from mesa_llm.llm.address import Address, without_secrets
from mesa_llm.llm.budget import send_again
from mesa_llm.llm.openai.connection import Connections, Response
from mesa_llm.llm.openai.errors import ErrorDetail, detail_in, trouble
from mesa_llm.llm.openai.reply import read_reply
from mesa_llm.llm.openai.request import Dialect, Writer
from mesa_llm.llm.tokens import name_at, price, usage_of_failure
from mesa_llm.records import Reply, Request, Usage

logger = logging.getLogger(__name__)

MAX_ERROR_BYTES = 100_000
"""Maximum number of bytes of an error's body that are read."""

type _Pools = WeakKeyDictionary[asyncio.AbstractEventLoop, Connections]


class OpenAIHTTP:
    """Asks one model of one OpenAI-compatible endpoint.

    A call takes about 0.1 ms of processor time. Connections are kept open, and belong to the event loop that asks;
    there are as many as requests in flight, which `Limits` bounds. Where the endpoint rejects a part of a request that
    it does not know (a schema, `tool_choice`, tools, a seed), the request is sent again without it, and later requests
    leave it out from the start.

    Attributes:
        name: Model and base URL, without secrets.
        model: Name of the model at the endpoint.
        timeout_s: Seconds until a request is given up.
        max_reply_bytes: Maximum number of bytes of a response that are read.
    """

    def __init__(
        self,
        model: str,
        api_base: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 60.0,
        max_reply_bytes: int = 2_000_000,
    ) -> None:
        """Set where and how to ask; connects to nothing yet.

        Args:
            model: Name of the model at the endpoint.
            api_base: Base URL, with or without the final `/chat/completions`.
            api_key: Key to send; None or empty: none. It appears in no error and no repr.
            timeout_s: Seconds until a request is given up, connecting included.
            max_reply_bytes: Maximum number of bytes of a response that are read.

        Raises:
            ConfigError: If the URL, the key or a bound cannot work.
        """
        if not (timeout_s > 0 and math.isfinite(timeout_s)):
            raise ConfigError(f"timeout_s must be a positive number of seconds, got {timeout_s!r}")
        if max_reply_bytes < 1:
            raise ConfigError(f"max_reply_bytes must be 1 or more, got {max_reply_bytes}")
        self.model = model
        self.timeout_s = timeout_s
        self.max_reply_bytes = max_reply_bytes
        address = Address.of(api_base)
        self.name = f"{model}@{address.base}"
        self._key = _checked_key(api_key)
        self._secrets = [self._key, *address.secrets]
        self._priced_as = name_at(urlsplit(address.base).hostname or "", model)
        self._where = f"{address.base}/chat/completions"
        self._url, self._headers = address.completions, _headers(self._key, address)
        self._writer = Writer(model)
        self._dialect = Dialect()
        self._pools: _Pools = WeakKeyDictionary()
        finalize(self, _close_all, self._pools)

    def __repr__(self) -> str:
        """Name the model and the endpoint, not the key."""
        return f"OpenAIHTTP({self.model!r}, {self._where!r})"

    async def reply(self, request: Request) -> Reply:
        """Ask the endpoint; the reply's `attempts` counts every request sent, simplified ones included.

        Raises:
            ConfigError: If a person must act: key, balance, model's name, address.
            RateLimited: If it answers 429.
            ServerTrouble: If it fails, hangs, or cuts the connection.
            BadReply: If the response is too long, is not JSON, or holds no usable reply.
            Refused: If it refuses this request.
        """
        start = time.perf_counter()
        attempts = 1
        while True:
            dialect = self._dialect
            response = await self._post(self._writer.write(request, dialect))
            try:
                if 200 <= response.status < 300:
                    reply = self._read(response, request, time.perf_counter() - start)
                    return reply if attempts == 1 else replace(reply, attempts=attempts)
                detail = detail_in(self._without_secrets(response.body))
                if not (_is_about_form(response.status, detail) and self._simplify(dialect, detail)):
                    raise trouble(response.status, detail, self._where, response.retry_after)
            except MesaLLMError as error:
                error.usage = usage_of_failure(response.status, response.body)
                raise
            await send_again(usage_of_failure(response.status, response.body))
            attempts += 1

    @property
    def secrets(self) -> list[str]:
        """What no reply may quote."""
        return self._secrets

    def price_of(self, usage: Usage) -> float | None:
        """Return what tokens cost, in US dollars; None if the endpoint is no provider whose prices litellm knows."""
        name = self._priced_as
        if name is None:
            return None
        return price(name, usage.prompt_tokens, usage.reply_tokens, usage.cached_tokens, usage.stored_tokens)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    async def _post(self, body: bytes) -> Response:
        """Send the body of a request over a connection of the running event loop."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = Connections(self._url, self._headers, self.timeout_s, self.max_reply_bytes)
            self._pools[loop] = pool
        try:
            return await pool.post(body)
        except TimeoutError as error:
            if self._pools.get(loop) is pool:  # its other idle connections may have gone silent as well
                del self._pools[loop]
            await pool.retire()
            reason = (
                f"gave no reply within {self.timeout_s:g} s ({self._without_secrets(str(error).encode()).decode()})"
            )
            raise ServerTrouble(f"{self._where} {reason}") from None
        except ConnectionRefusedError as error:  # nothing was sent
            failure = ServerTrouble(f"the connection to {self._where} failed: {str(error)[:200]}")
            failure.usage = Usage(requests=1)
            raise failure from None
        except OSError as error:
            reason = self._without_secrets(str(error).encode()).decode()[:200] or type(error).__name__
            raise ServerTrouble(f"the connection to {self._where} failed: {reason}") from None

    def _read(self, response: Response, request: Request, latency_s: float) -> Reply:
        """Read the reply in a successful response."""
        try:
            body = _parsed(response.body)
        except (ValueError, RecursionError) as error:
            text = response.body.strip()
            if text.startswith(b"{") and not text.endswith(b"}"):
                raise ServerTrouble(f"{self._where} cut its reply after {len(response.body)} bytes") from None
            raise BadReply(f"the reply is no JSON ({error}): it starts {self._without_secrets(text)[:80]!r}") from None
        choices = body.get("choices") if isinstance(body, dict) else None
        self._check_error(choices[0] if isinstance(choices, list) and choices else body)
        return read_reply(body, request, latency_s)

    def _check_error(self, holder: Any) -> None:
        """Raise the error that some endpoints put into a response with status 200, or into its first choice."""
        error = holder.get("error") if isinstance(holder, dict) else None
        if not error:
            return
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 502
        raise trouble(status, detail_in(self._without_secrets(json.dumps(holder).encode())), self._where)

    def _simplify(self, dialect: Dialect, detail: ErrorDetail) -> bool:
        """Simplify the dialect by what the endpoint rejects; return False if nothing can be left out."""
        if dialect != self._dialect:  # another request has simplified it meanwhile
            return True
        simpler = dialect.without(detail)
        if simpler is None:
            return False
        logger.warning("%s: %s; going on with %s", self._where, detail.text, simpler)
        self._dialect = simpler
        return True

    def _without_secrets(self, body: bytes) -> bytes:
        """Remove key, user and query from an endpoint's message, which may quote them."""
        return without_secrets(body[:MAX_ERROR_BYTES].decode("utf-8", "replace"), self._secrets).encode()


def _parsed(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError:  # `json` accepts some encodings that pydantic's parser refuses
        return json.loads(body)


def _is_about_form(status: int, detail: ErrorDetail) -> bool:
    """Check whether an error may be about a part of the request that the endpoint does not know."""
    return status in (400, 422, 501) or (status == 404 and "support" in detail.text)


def _close_all(pools: _Pools) -> None:
    """Close the connections of a client that nobody closed, where their event loops are still running."""
    for loop, pool in list(pools.items()):
        if loop.is_running():
            loop.call_soon_threadsafe(_close_soon, loop, pool)


def _close_soon(loop: asyncio.AbstractEventLoop, pool: Connections) -> None:
    loop.create_task(pool.close())


def _headers(key: str, address: Address) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    authorization = f"Bearer {key}" if key else address.authorization
    return {**headers, "Authorization": authorization} if authorization else headers


def _checked_key(api_key: str | None) -> str:
    """Return the key without surrounding blanks; empty if there is none.

    Raises:
        ConfigError: If it holds what no HTTP header can carry.
    """
    key = (api_key or "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise ConfigError("the API key holds spaces, line ends or letters that no HTTP header can carry")
    return key
