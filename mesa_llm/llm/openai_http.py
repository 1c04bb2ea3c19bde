"""A thin client for every endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import math
import time
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, finalize

import aiohttp
from yarl import URL

from mesa_llm.errors import BadReply, ConfigError, ServerTrouble
from mesa_llm.llm.chat_reply import read_reply
from mesa_llm.llm.chat_request import Dialect, Writer
from mesa_llm.llm.trouble import Complaint, complaint_in, trouble
from mesa_llm.records import Reply, Request

logger = logging.getLogger(__name__)

MAX_COMPLAINT_BYTES = 100_000
"""Most bytes of an error page that are read."""

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)
"""aiohttp keeps no time: one `asyncio.timeout` around the whole call costs less than its timers."""

type _Sessions = WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession]


class _Answer(NamedTuple):
    status: int
    retry_after: str | None
    body: bytes


class OpenAIHTTP:
    """Asks one model of one OpenAI-compatible endpoint.

    A call takes about 0.2 ms of processor time. Connections are kept open, and belong to the event loop that
    asks. Where the endpoint complains about a part of the form (a schema, `tool_choice`, tools, a seed), the
    request is sent again without it, and later ones leave it out at once.

    Attributes:
        model: The model, by the name the endpoint knows.
        timeout_s: Seconds until a request is given up.
        max_reply_bytes: Longest reply that is read.
        concurrency: Most connections held open at once.
    """

    def __init__(
        self,
        model: str,
        api_base: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 60.0,
        max_reply_bytes: int = 2_000_000,
        concurrency: int = 512,
    ) -> None:
        """Set where and how to ask; connects to nothing yet.

        Args:
            model: The model, by the name the endpoint knows.
            api_base: Base URL, with or without the final `/chat/completions`.
            api_key: Key to send; None or empty: none. It appears in no error and no repr.
            timeout_s: Seconds until a request is given up, waiting for a free connection included.
            max_reply_bytes: Longest reply that is read.
            concurrency: Most connections held open at once.

        Raises:
            ConfigError: If the URL, the key or a bound cannot work.
        """
        if not (timeout_s > 0 and math.isfinite(timeout_s)):
            raise ConfigError(f"timeout_s must be a positive number of seconds, got {timeout_s!r}")
        if max_reply_bytes < 1 or concurrency < 1:
            raise ConfigError(f"{max_reply_bytes=} and {concurrency=} must both be 1 or more")
        self.model = model
        self.timeout_s = timeout_s
        self.max_reply_bytes = max_reply_bytes
        self.concurrency = concurrency
        self._key = _checked_key(api_key)
        self._url = _completions_url(api_base)
        self._where = str(self._url.with_query(None).with_user(None))
        self._writer = Writer(model)
        self._dialect = Dialect()
        self._sessions: _Sessions = WeakKeyDictionary()
        finalize(self, _close_all, self._sessions)

    def __repr__(self) -> str:
        """Name the model and the endpoint, not the key."""
        return f"OpenAIHTTP({self.model!r}, {self._where!r})"

    async def reply(self, request: Request) -> Reply:
        """Ask the endpoint; `attempts` of the reply counts requests with a simplified form too.

        Raises:
            ConfigError: If a person must act: key, balance, model's name, address.
            RateLimited: If it answers 429.
            ServerTrouble: If it fails, hangs, or cuts the connection.
            BadReply: If what comes is too long, no JSON, or holds nothing usable.
            Refused: If it refuses this request.
        """
        started = time.perf_counter()
        attempts = 1
        while True:
            dialect = self._dialect
            answer = await self._post(self._writer.write(request, dialect))
            if answer.status == 200:
                reply = self._read(answer, request, time.perf_counter() - started)
                return reply if attempts == 1 else replace(reply, attempts=attempts)
            complaint = complaint_in(self._without_key(answer.body))
            if not (_is_about_form(answer.status, complaint) and self._simplify(dialect, complaint)):
                raise trouble(answer.status, complaint, self._where, answer.retry_after)
            attempts += 1

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _post(self, body: bytes) -> _Answer:
        # Errors of aiohttp are not chained: they can hold the request's headers, and so the key.
        try:
            async with (
                asyncio.timeout(self.timeout_s),
                self._session().post(self._url, data=body, allow_redirects=False) as answer,
            ):
                is_ok = answer.status == 200
                most = self.max_reply_bytes if is_ok else MAX_COMPLAINT_BYTES
                read = await self._read_bytes(answer, most, keep_start=not is_ok)
                return _Answer(answer.status, answer.headers.get("Retry-After"), read)
        except TimeoutError:
            raise ServerTrouble(f"{self._where} gave no reply within {self.timeout_s:g} s") from None
        except aiohttp.ClientError as error:
            told = str(error)[:200] or type(error).__name__
            raise ServerTrouble(f"the connection to {self._where} failed: {told}") from None

    async def _read_bytes(self, answer: aiohttp.ClientResponse, most: int, keep_start: bool) -> bytes:
        """Read a body, but no more than a bound; past it, keep its start or give up."""
        parts: list[bytes] = []
        size = 0
        while part := await answer.content.readany():
            parts.append(part)
            size += len(part)
            if size > most:
                answer.close()
                if keep_start:
                    break
                raise BadReply(f"the reply is longer than {most} bytes; lower max_tokens")
        return b"".join(parts)

    def _read(self, answer: _Answer, request: Request, latency_s: float) -> Reply:
        try:
            body: Any = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            text = answer.body.strip()
            if text.startswith(b"{") and not text.endswith(b"}"):
                raise ServerTrouble(f"{self._where} cut its reply after {len(answer.body)} bytes") from None
            raise BadReply(f"the reply is no JSON ({error}): it starts {self._without_key(text)[:80]!r}") from None
        if isinstance(body, dict) and "error" in body and not body.get("choices"):
            self._raise_inner(body["error"], answer)
        return read_reply(body, request, latency_s)

    def _raise_inner(self, error: Any, answer: _Answer) -> None:
        """Raise the error that some endpoints put into a reply with status 200."""
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 502
        raise trouble(status, complaint_in(self._without_key(answer.body)), self._where, answer.retry_after)

    def _simplify(self, used: Dialect, complaint: Complaint) -> bool:
        """Leave out what the endpoint complains about; False if nothing can be left out."""
        if used != self._dialect:  # another request has learned something meanwhile
            return True
        simpler = used.without(complaint)
        if simpler is None:
            return False
        logger.warning("%s: %s; going on with %s", self._where, complaint.words, simpler)
        self._dialect = simpler
        return True

    def _without_key(self, body: bytes) -> bytes:
        """Take the key out of what an endpoint says, where it quotes it."""
        return body.replace(self._key.encode(), b"(key)") if self._key else body

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            headers = {"Content-Type": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self.concurrency),
                headers=headers,
                timeout=_NO_TIMEOUT,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._sessions[loop] = session
        return session


def _is_about_form(status: int, complaint: Complaint) -> bool:
    """Tell whether an endpoint may mean a part of the form that it does not know."""
    return status in (400, 422, 501) or (status == 404 and "support" in complaint.words)


def _close_all(sessions: _Sessions) -> None:
    """Close the connections of a client that nobody closed, where their event loops still run elsewhere."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    for loop, session in list(sessions.items()):
        if loop.is_running():
            closing = asyncio.run_coroutine_threadsafe(session.close(), loop)
            if loop is not here:
                concurrent.futures.wait([closing], timeout=1)


def _completions_url(api_base: str) -> URL:
    """Complete a base URL; its query (an API version) stays."""
    try:
        base = URL(api_base.strip())
    except ValueError:
        base = URL()
    if base.scheme not in ("http", "https") or not base.host:
        raise ConfigError(
            f"api_base must be a URL such as http://localhost:8080/v1, got {api_base.rpartition('@')[2]!r}"
        )
    if base.path.rstrip("/").endswith("/chat/completions"):
        return base
    return (base / "chat" / "completions").with_query(base.query)


def _checked_key(api_key: str | None) -> str:
    key = (api_key or "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise ConfigError("the API key holds spaces, line ends or letters that no HTTP header can carry")
    return key
