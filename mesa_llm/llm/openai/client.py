"""A thin client for every endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
from copy import copy
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, finalize

from pydantic_core import from_json

from mesa_llm.errors import BadReply, ConfigError, MesaLLMError, ServerError
from mesa_llm.llm.address import Address
from mesa_llm.llm.batches.forms import OpenAIBatches
from mesa_llm.llm.batches.http import BatchHTTP
from mesa_llm.llm.batches.stage import post
from mesa_llm.llm.budget import send_again
from mesa_llm.llm.credentials import visible, without_secrets
from mesa_llm.llm.endings import CUT, DECLINED, FILTERED, UNENDED, ending_of
from mesa_llm.llm.openai.connection import Connections, Response
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.errors import ErrorDetail, detail_in, error_for_status, shown, text_of_page
from mesa_llm.llm.openai.learning import Learner, prompt_in
from mesa_llm.llm.openai.probabilities import Answered, tokens_of, weighed
from mesa_llm.llm.openai.processes import ClientProcesses, SharedConnections
from mesa_llm.llm.openai.reply import Cut, parse, quoted_reply, read_reply
from mesa_llm.llm.openai.request import Writer, tool_choice
from mesa_llm.llm.openai.truncation_detector import TruncationDetector, cut_text
from mesa_llm.llm.tokens import name_at, price_of, usage_of_failure
from mesa_llm.llm.waiting import waiting_for
from mesa_llm.records import Reply, Request, Usage

logger = logging.getLogger(__name__)

MAX_ERROR_BYTES = 100_000
"""Maximum number of bytes of an error's body that are read."""

_GATEWAY = re.compile(r"\b(?:408|429|5\d\d)\b")
"""The status in the page of a gateway."""

_TELLS_ERROR = frozenset(
    {"error_code", "error_msg", "errorcode", "err_code", "base_resp", "code", "status_code", "errors"}
)
"""Fields of a response with status 200 that holds an error in place of a reply."""

type _Pools = WeakKeyDictionary[asyncio.AbstractEventLoop, Connections | SharedConnections]


class OpenAIHTTP:
    """Sends requests to one model of one OpenAI-compatible endpoint.

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

    takes_images = True

    def __init__(
        self,
        model: str,
        api_base: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 60.0,
        max_reply_bytes: int = 2_000_000,
        processes: ClientProcesses | None = None,
    ) -> None:
        """Set the endpoint and how it is used; nothing is connected yet.

        Args:
            model: Name of the model at the endpoint.
            api_base: Base URL, with or without the final `/chat/completions`.
            api_key: Key to send; None or empty: none. It appears in no error and no repr.
            timeout_s: Seconds until a request is given up, connecting included.
            max_reply_bytes: Maximum number of bytes of a response that are read.
            processes: Client processes that send the requests, which whoever made them closes; None: this one does.

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
        self._address = address = Address.of(api_base)
        self.name = f"{model}@{address.base}"
        self._key = _checked_key(api_key)
        self._secrets = [self._key, *address.secrets]
        self._priced_as = name_at(urlsplit(address.base).hostname or "", model)
        self._where = f"{address.base}/chat/completions"
        self._url, self._headers = address.completions, _headers(self._key, address)
        self._writer = Writer(model)
        self._learner = Learner(self._where)
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._calls_tools = False
        self._cuts = TruncationDetector()
        self._batches: OpenAIBatches | None = None
        self._pools: _Pools = WeakKeyDictionary()
        self._processes = processes
        finalize(self, _close_all, self._pools)

    def __repr__(self) -> str:
        """Name the model and the endpoint, not the key."""
        return f"OpenAIHTTP({self.model!r}, {self._where!r})"

    async def reply(self, request: Request) -> Reply:
        """Send the request; the reply's `attempts` counts every request sent, simplified ones included.

        Raises:
            ConfigError: If a person must act: key, balance, model's name, address.
            RateLimited: If it answers 429.
            ServerError: If it fails, hangs, or cuts the connection.
            BadReply: If the response is too long, is not JSON, or holds no usable reply.
            Refused: If it refuses this request.
            NoProbabilities: If it returns none, and the request asks for those of its choices.
        """
        start = time.perf_counter()
        answered = await self._try(request, start) or await self._try_again(request, start)
        return await weighed(request, answered, self.name, self._exchange) if request.choices else answered[0]

    async def _exchange(self, request: Request) -> Answered:
        """Send a request, in whatever form the endpoint accepts."""
        start = time.perf_counter()
        return await self._try(request, start) or await self._try_again(request, start)

    async def _try(self, request: Request, start: float) -> Answered | None:
        """Send a request; return its reply, or None if there is one to be had by writing it differently.

        Args:
            request: The request.
            start: Time on the clock, in seconds, at which it was first sent.
        """
        dialect = self._learner.dialect
        sent = self._writer.write(request, dialect)
        response = await (self._post(sent) if self._batches is None else post(self._batches, request, sent))
        try:
            answered = self._read(response, request, time.perf_counter() - start)
        except _ErrorResponse as failed:
            error = failed
        except MesaLLMError as unusable:
            unusable.usage = usage_of_failure(response.status, response.body)
            raise
        else:
            if dialect is not self._learner.accepted:
                self._learner.accept(dialect)
            self._notice(request, answered[0], dialect)
            return answered
        return await self._complained(error, response, request, dialect, sent)

    async def _complained(
        self, failed: _ErrorResponse, response: Response, request: Request, dialect: Dialect, sent: bytes
    ) -> Answered | None:
        """Return what the model wrote, if the error quotes it; None if another form of the request may help.

        Raises:
            MesaLLMError: If neither is so.
        """
        usage, detail = usage_of_failure(response.status, response.body), failed.detail
        if detail.wrote is not None:
            return quoted_reply(detail, request, usage), []
        body = json.loads(sent)
        if self._learner.learn(dialect, failed.status, detail, body):
            await send_again(usage)
            return None
        self._learner.give_up(dialect)
        error = error_for_status(failed.status, detail, self._where, response.retry_after, prompt_in(body))
        error.usage = usage
        raise error

    async def _try_again(self, request: Request, start: float) -> Answered:
        """Send a request until it is accepted; of those that were refused together, one learns for all."""
        attempts = 1
        while True:
            async with waiting_for(self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())):
                while self._learner.dialect is not self._learner.accepted:
                    attempts += 1
                    if (answered := await self._try(request, start)) is not None:
                        return replace(answered[0], attempts=attempts), answered[1]
            attempts += 1
            if (answered := await self._try(request, start)) is not None:
                return replace(answered[0], attempts=attempts), answered[1]

    def batched(self) -> OpenAIHTTP:
        """Return a client of the same model that sends requests in batches, where nothing is streamed."""
        client = copy(self)
        client._writer = Writer(self.model)
        dialect = self._learner.dialect
        client._learner = Learner(self._where, replace(dialect, omitted=dialect.omitted | {"stream"}))
        client._batches = OpenAIBatches(BatchHTTP(self._address, self._headers, self._secrets))
        return client

    @property
    def dialect(self) -> Dialect:
        """The dialect of the endpoint, as far as it has been learned."""
        return self._learner.dialect

    @property
    def secrets(self) -> list[str]:
        """Keys and passwords that no reply may quote."""
        return self._secrets

    def price_of(self, usage: Usage) -> float | None:
        """Return what tokens cost, in US dollars; None if the endpoint is no provider whose prices litellm knows."""
        name = self._priced_as
        if name is None:
            return None
        return price_of(name, usage, is_batch=self._batches is not None)

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
            open_pool = Connections if self._processes is None else self._processes.connections
            pool = open_pool(self._url, self._headers, self.timeout_s, self.max_reply_bytes)
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
            raise ServerError(f"{self._where} {reason}") from None
        except ConnectionRefusedError as error:  # nothing was sent
            failure = ServerError(f"the connection to {self._where} failed: {str(error)[:200]}")
            failure.usage = Usage(requests=1)
            raise failure from None
        except OSError as error:
            reason = self._without_secrets(str(error).encode()).decode()[:200] or type(error).__name__
            raise ServerError(f"the connection to {self._where} failed: {reason}") from None

    def _read(self, response: Response, request: Request, latency_s: float) -> Answered:
        """Read the reply in a response, and its tokens if their alternatives were asked for.

        Raises:
            _ErrorResponse: If the response is an error.
            ServerError: If it was cut.
            BadReply: If it holds no usable reply; with the usage that it reports.
        """
        if not 200 <= response.status < 300:
            raise _ErrorResponse(response.status, shown(detail_in(self._without_secrets(response.body)), self._secrets))
        try:
            body = parse(response.body)
        except Cut:
            raise ServerError(f"{self._where} cut its reply after {len(response.body)} bytes") from None
        except (ValueError, RecursionError) as error:
            raise self._no_json(response.body, error) from None
        self._check_error(body)
        return read_reply(body, request, latency_s), tokens_of(body) if request.choices else []

    def _no_json(self, body: bytes, error: Exception) -> Exception:
        """Return the error for a response that is no JSON: that of a gateway, if it is the page of one."""
        text = self._without_secrets(body.strip()).decode("utf-8", "replace")
        page = text_of_page(text)
        if (status := _GATEWAY.search(page) if page != text else None) is not None:
            return _ErrorResponse(int(status[0]), ErrorDetail(page, ""))
        if page != text:
            return BadReply(f"{self._where} answered with {page}, not with JSON; check the api_base")
        return BadReply(f"the reply is no JSON ({error}): it starts {text[:80].encode()!r}")

    def _check_error(self, body: Any) -> None:
        """Raise the error that some endpoints put into a response with status 200, or into its first choice."""
        choices = body.get("choices") if isinstance(body, dict) else None
        holder = choices[0] if isinstance(choices, list) and choices else body
        error = holder.get("error") if isinstance(holder, dict) else None
        if not error and (choices or not isinstance(body, dict)):
            return
        if not error and ending_of({}, body) in UNENDED:
            return  # withheld
        detail = shown(detail_in(self._without_secrets(json.dumps(holder).encode())), self._secrets)
        if error or detail.is_about_loading or _TELLS_ERROR.intersection(map(str.lower, holder)):
            code = next((int(code) for code in detail.codes if code.isdigit() and 400 <= int(code) < 600), 502)
            raise _ErrorResponse(code, detail)

    def _notice(self, request: Request, reply: Reply, dialect: Dialect) -> None:
        """Learn from a reply whether the endpoint reads whole prompts, and enforces the form that it accepted."""
        if reply.prompt_tokens >= self._cuts.largest and self._cuts.look(request.messages, reply.prompt_tokens):
            logger.warning("%s: %s", self._where, cut_text(request.messages, reply.prompt_tokens))
        if reply.tool_calls:
            self._calls_tools = True
            return
        if request.schema is None and (not request.tools or request.choices):
            return
        if not reply.text or reply.finish in (FILTERED, DECLINED):
            return
        learned = self._learner.dialect
        is_json = _is_json_object(reply.text) or reply.finish == CUT
        if request.schema is not None and dialect.schema == "schema" and not is_json:
            learned = replace(learned, schema_words=True)
        must_call = request.tools and tool_choice(request) == "required" and dialect.choice == "required"
        if must_call and dialect.tools and not self._calls_tools:
            learned = replace(learned, tools=False)
        self._learner.note(learned, "it does not keep to the form of a reply")

    def _without_secrets(self, body: bytes) -> bytes:
        """Remove key, user and query from an endpoint's message, which may quote them."""
        return without_secrets(visible(body[:MAX_ERROR_BYTES].decode("utf-8", "replace")), self._secrets).encode()


class _ErrorResponse(Exception):
    """An error that an endpoint reports, in whatever way."""

    def __init__(self, status: int, detail: ErrorDetail) -> None:
        super().__init__(detail.text)
        self.status = status
        self.detail = detail


def _is_json_object(text: str) -> bool:
    """Check whether a text is a JSON object, be it after reasoning or in a fence."""
    start, end = text.find("{"), text.rfind("}")
    try:
        return 0 <= start < end and isinstance(from_json(text[start : end + 1]), dict)
    except ValueError:
        return False


def _close_all(pools: _Pools) -> None:
    """Close the connections of a client that nobody closed, where their event loops are still running."""
    for loop, pool in list(pools.items()):
        if loop.is_running():
            loop.call_soon_threadsafe(_close_soon, loop, pool)


def _close_soon(loop: asyncio.AbstractEventLoop, pool: Connections | SharedConnections) -> None:
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
