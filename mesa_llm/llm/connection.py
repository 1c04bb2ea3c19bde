"""HTTP/1.1 at its leanest: POST a body to one address over connections that stay open, and read what comes back.

A general client takes more processor time for a request than all the rest of a decision. Bytes are parsed by llhttp
(through `httptools`), connected and encrypted by asyncio; what is left is here. It follows no redirect, asks for no
compression, and uses no proxy.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from functools import cache
from typing import NamedTuple, cast
from urllib.parse import SplitResult, unquote

import httptools

from mesa_llm.errors import BadReply

MAX_HEAD_BYTES = 100_000
"""Most bytes of an answer's headers."""

MAX_COMPLAINT_BYTES = 100_000
"""Most bytes of an error page that are read."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    """HTTP status."""

    retry_after: str | None
    """What the header `Retry-After` says."""

    body: bytes
    """The body; of an error page, its start."""


class Address(NamedTuple):
    """Where requests go, and how each of them starts."""

    host: str
    """Name or number of the machine."""

    port: int
    """TCP port."""

    is_secret: bool
    """True for https."""

    head: bytes
    """Request line and headers, up to the number of the body's bytes."""

    @classmethod
    def of(cls, url: SplitResult, headers: dict[str, str]) -> Address:
        """Read a URL; a user and password in it are sent as basic authorization.

        Raises:
            ValueError: If its host or port cannot be one, or what is sent is not ASCII.
        """
        name, is_secret = url.hostname or "", url.scheme == "https"
        host = f"[{name}]" if ":" in name else name.encode("idna").decode()
        sent = {"Host": f"{host}:{url.port}" if url.port else host, "User-Agent": "mesa-llm-worlds"}
        if url.username is not None:
            said = f"{unquote(url.username)}:{unquote(url.password or '')}"
            sent["Authorization"] = "Basic " + base64.b64encode(said.encode()).decode()
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        lines = [f"POST {target} HTTP/1.1", *(f"{key}: {value}" for key, value in {**sent, **headers}.items())]
        head = "\r\n".join([*lines, "Content-Length: "]).encode("ascii")
        return cls(name, url.port or (443 if is_secret else 80), is_secret, head)


class Connections:
    """Connections to one address, for one event loop: as many as there are requests at once.

    Attributes:
        idle: Those that carry nothing now, the latest used last.
        open: All of them.
    """

    def __init__(self, address: Address, max_reply_bytes: int) -> None:
        """Connect to nothing yet.

        Args:
            address: Where to send to.
            max_reply_bytes: Longest body that is read.
        """
        self.idle: list[Connection] = []
        self.open: set[Connection] = set()
        self.max_reply_bytes = max_reply_bytes
        self._address = address

    async def post(self, body: bytes) -> Answer:
        """Send a body, and wait for the answer.

        Raises:
            OSError: If the address cannot be reached, cuts the connection, or speaks no HTTP.
            BadReply: If the answer is longer than it may be.
        """
        connection = self.idle.pop() if self.idle else await self._connect()
        try:
            return await connection.carry(b"%b%d\r\n\r\n%b" % (self._address.head, len(body), body))
        except asyncio.CancelledError:
            connection.close()
            raise

    def close(self) -> None:
        """Close all connections; called on their event loop."""
        for connection in list(self.open):
            connection.close()

    async def _connect(self) -> Connection:
        host, port, is_secret, _ = self._address
        connecting = asyncio.get_running_loop().create_connection(
            lambda: Connection(self), host, port, ssl=_trusted() if is_secret else None, happy_eyeballs_delay=0.25
        )
        return (await connecting)[1]


class Connection(asyncio.Protocol):
    """One connection; carries one request at a time."""

    def __init__(self, pool: Connections) -> None:
        """Belong to those of an address."""
        self._pool = pool
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._answered: asyncio.Future[Answer] | None = None
        self.on_message_begin()

    def carry(self, request: bytes) -> asyncio.Future[Answer]:
        """Send a request; its answer comes later."""
        answered = self._answered = asyncio.get_running_loop().create_future()
        if self._transport is None or self._transport.is_closing():
            self._fail(ConnectionError("it was closed"))
        else:
            self._transport.write(request)
        return answered

    def close(self) -> None:
        """Cut the connection at once."""
        self._pool.open.discard(self)
        if self in self._pool.idle:
            self._pool.idle.remove(self)
        if self._transport is not None:
            self._transport.abort()

    @property
    def _awaited(self) -> asyncio.Future[Answer] | None:
        """The answer that is still awaited, if one is."""
        return self._answered if self._answered is not None and not self._answered.done() else None

    def _finish(self) -> None:
        if awaited := self._awaited:
            awaited.set_result(Answer(self._parser.get_status_code(), self._retry_after, b"".join(self._parts)))

    def _fail(self, error: Exception) -> None:
        if awaited := self._awaited:
            awaited.set_exception(error)
        self.close()

    # -- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what to write to."""
        self._transport = cast("asyncio.Transport", transport)
        self._pool.open.add(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        if self._awaited is None:
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"what it sends is no HTTP ({str(error)[:100]})"))
        if not self._has_head:
            self._size += len(data)
            if self._size > MAX_HEAD_BYTES:
                self._fail(ConnectionError("the headers of its answer do not end"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is being carried; a body without a length ends with the connection."""
        if self._has_head and not self._has_length and exc is None:
            self._finish()
        self._fail(ConnectionError(f"it was cut ({exc})" if exc else "it was cut"))

    # -- called by the parser

    def on_message_begin(self) -> None:
        """Make ready for an answer."""
        self._parts: list[bytes] = []
        self._size = 0
        self._retry_after: str | None = None
        self._has_head = self._has_length = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note the few headers that matter."""
        name = name.lower()
        if name == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif name in (b"content-length", b"transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        """Tell an answer from what only announces one (1xx), and begin to count its body."""
        self._has_head = self._parser.get_status_code() >= 200
        self._size = 0

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body, but no more than a bound."""
        most = self._pool.max_reply_bytes
        self._parts.append(body)
        self._size += len(body)
        if self._parser.get_status_code() == 200:
            if self._size > most:
                self._fail(BadReply(f"the reply is longer than {most} bytes; lower max_tokens"))
        elif self._size > MAX_COMPLAINT_BYTES:
            self._finish()
            self.close()

    def on_message_complete(self) -> None:
        """Hand the answer over; the connection is free for the next request."""
        if not self._has_head:
            return
        is_awaited = self._awaited is not None
        self._finish()
        if is_awaited and self._parser.should_keep_alive():
            self._pool.idle.append(self)
        else:
            self.close()


@cache
def _trusted() -> ssl.SSLContext:
    """Trust whom the system trusts; the environment's `SSL_CERT_FILE` names others."""
    return ssl.create_default_context()
