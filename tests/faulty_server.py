"""A chat completions endpoint on this machine that misbehaves to order, and is honest without one."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx
from aiohttp import web

from tests.honest_reply import completion, honest


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to misbehave."""

    status: int = 200
    """HTTP status."""

    body: bytes = b""
    """What is sent."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers besides the usual ones."""

    cut_at: int | None = None
    """Bytes of the body after which the connection is cut; None: it is sent whole."""

    hangs: bool = False
    """True if nothing is ever sent."""


def rate_limited(retry_after: float | str | None = None) -> Fault:
    """Answer 429, with or without `Retry-After`."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Fault(429, b'{"error": {"message": "slow down"}}', headers)


def refused(status: int, message: str, **fields: Any) -> Fault:
    """Answer with an error status and the endpoint's words."""
    return Fault(status, json.dumps({"error": {"message": message, **fields}}).encode())


HONEST_BYTES = json.dumps(completion("all is well")).encode()

HANG = Fault(hangs=True)
CUT_AT_ONCE = Fault(cut_at=0)
CUT_MIDWAY = Fault(body=HONEST_BYTES, cut_at=len(HONEST_BYTES) // 2)
TRUNCATED = Fault(body=HONEST_BYTES[: len(HONEST_BYTES) // 2])
NOT_JSON = Fault(body=b"<html>It works!</html>")
WRONG_SHAPE = Fault(body=b'{"answer": 42}')
SERVER_ERROR = refused(500, "out of memory")
HUGE = Fault(body=json.dumps(completion("x" * 10_000_000)).encode())

EMPTY = completion(None)
UNKNOWN_TOOL = completion(None, [("launch_rocket", "{}")])
NAN_NUMBERS = completion("fine", prompt_tokens=float("nan"), completion_tokens=float("inf"), cost=float("nan"))
HUGE_NUMBERS = completion("fine", prompt_tokens=10**30, completion_tokens=1e300, cost=1e300)

Behaviour = Callable[[dict[str, Any], int], Fault | dict[str, Any] | str | None]
"""Takes a request's body and its number from 1; gives a fault, a completion, its text, or None: be honest."""


@dataclass(frozen=True, slots=True)
class Received:
    """One request, as it arrived."""

    body: dict[str, Any]
    """Its body."""

    headers: Mapping[str, str]
    """Its headers, names in lower case."""

    peer: str
    """Address and port it came from: one connection has one."""


def be_honest(body: dict[str, Any], number: int) -> None:
    """Answer every request honestly."""


class FaultyServer:
    """A server on a free port, up while it is entered.

    Attributes:
        requests: What arrived, in order.
        peak_in_flight: Maximum number of requests that were open at once.
        refusals: How many were answered 429 by the server's own limits.
    """

    def __init__(
        self,
        behave: Behaviour = be_honest,
        *,
        latency_s: float = 0.0,
        max_in_flight: int | None = None,
        max_per_s: int | None = None,
        retry_after: float | None = None,
        secret: ssl.SSLContext | None = None,
    ) -> None:
        """Set how it behaves.

        Args:
            behave: What each request is answered.
            latency_s: Seconds an answer takes; a refusal comes at once.
            max_in_flight: Requests beyond this many at once are answered 429.
            max_per_s: Requests beyond this many in one second are answered 429.
            retry_after: What those 429 say in `Retry-After`; None: nothing.
            secret: Certificate and key to speak https with.
        """
        self.behave = behave
        self.latency_s = latency_s
        self.max_in_flight = max_in_flight
        self.max_per_s = max_per_s
        self.retry_after = retry_after
        self.secret = secret
        self.requests: list[Received] = []
        self.peak_in_flight = 0
        self.refusals = 0
        self._in_flight = 0
        self._window = (0.0, 0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty-server", daemon=True)
        self._runner: web.AppRunner | None = None
        self.url = ""

    def __enter__(self) -> Self:
        """Start listening; `url` is then the base of its API."""
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.url = f"{'https' if self.secret else 'http'}://127.0.0.1:{port}/v1"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cut what is open and stop."""
        if self._runner is not None:
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def count(self) -> int:
        """How many requests arrived."""
        return len(self.requests)

    @property
    def n_open(self) -> int:
        """How many requests are open."""
        return self._in_flight

    def count_after_all(self) -> int:
        """How many requests arrived, those included that a client now dead had sent but nobody had read yet."""
        for _ in range(2):
            httpx.get(self.url, trust_env=False)
        return self.count

    @property
    def last(self) -> dict[str, Any]:
        """Body of the last request."""
        return self.requests[-1].body

    async def _listen(self) -> int:
        application = web.Application(client_max_size=50_000_000)
        application.router.add_post("/{anything:.*}chat/completions", self._handle)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.2, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=2000, ssl_context=self.secret).start()
        self._runner = runner
        return runner.addresses[0][1]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = json.loads(await request.read())
        self.requests.append(Received(body, headers, _peer(request)))
        number = len(self.requests)
        self._in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self._in_flight)
        try:
            if self._is_too_much():
                self.refusals += 1
                return await _send(request, rate_limited(self.retry_after))
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            return await _send(request, self._decided(body, number))
        finally:
            self._in_flight -= 1

    def _is_too_much(self) -> bool:
        if self.max_in_flight is not None and self._in_flight > self.max_in_flight:
            return True
        if self.max_per_s is None:
            return False
        now = time.monotonic()
        started, seen = self._window if now - self._window[0] < 1 else (now, 0)
        self._window = (started, seen + 1)
        return seen >= self.max_per_s

    def _decided(self, body: dict[str, Any], number: int) -> Fault:
        decided = self.behave(body, number)
        if isinstance(decided, Fault):
            return decided
        if isinstance(decided, str):
            decided = completion(decided, body=body)
        return Fault(body=json.dumps(honest(body) if decided is None else decided).encode())


def _peer(request: web.Request) -> str:
    return str(request.transport.get_extra_info("peername")) if request.transport is not None else ""


async def _send(request: web.Request, fault: Fault) -> web.StreamResponse:
    if fault.hangs:
        await asyncio.sleep(3600)
    if fault.cut_at is None:
        headers = {"Content-Type": "application/json", **fault.headers}
        return web.Response(body=fault.body, status=fault.status, headers=headers)
    partial = web.StreamResponse(status=fault.status, headers={"Content-Length": str(len(fault.body) or 1)})
    if fault.cut_at:
        await partial.prepare(request)
        await partial.write(fault.body[: fault.cut_at])
    if request.transport is not None:
        request.transport.abort()
    return partial
