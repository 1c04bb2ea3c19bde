"""Sends POST requests to one address over connections that stay open, and reads responses within bounds.

The client is libcurl, through `pycurl` (see `mesa_llm.llm.openai.curl_transfers`): it takes a few dozen µs of processor
time per request, works again after a fork, and respects `HTTPS_PROXY`, `NO_PROXY` and the variables that name trusted
certificates. Here it follows no redirects, asks for no compression, and reads no `.netrc`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

import pycurl

from mesa_llm.errors import BadReply
from mesa_llm.llm.certificates import CERTIFICATE_ADVICE, curl_options
from mesa_llm.llm.openai.content_coding import unpacked
from mesa_llm.llm.openai.curl_transfers import Transfers
from mesa_llm.llm.openai.errors import wait_in_headers

MAX_IDLE_S = 30
"""Seconds after which an idle connection is not used again, as a router or proxy may have dropped it by then."""

CONNECT_TIMEOUT_S = 10.0
"""Seconds until a connection is given up, name look-up and TLS included."""

_NOT_SENT = (pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_RESOLVE_PROXY)
"""Errors of libcurl before anything was sent."""

_UNTRUSTED = (pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CACERT_BADFILE)
"""Errors of libcurl about certificates, before anything was sent."""

PLAIN_START, PLAIN_END = b'{["d: \r\n', b'}]" \r\n'
"""First and last bytes of JSON and of server-sent events, which are surely not compressed."""

PROXY_WANTS_PASSWORD = 407
"""HTTP status of a proxy that requires authentication."""


class Response(NamedTuple):
    """Response of an endpoint."""

    status: int
    """HTTP status."""

    retry_after: str | None
    """How long an error's headers ask to wait, as `seconds_in` reads it; None: they do not say."""

    body: bytes
    """Its body; if that of an error is too long, only its start."""

    location: str | None = None
    """Where a redirect leads, which is not followed here."""


async def send(
    url: str, headers: Mapping[str, str], body: bytes | None, timeout_s: float, max_reply_bytes: int
) -> Response:
    """Send a single request over a connection of its own, and wait for the response.

    Args:
        url: Its address.
        headers: Its headers.
        body: What is posted; None: something is fetched.
        timeout_s: Seconds until it is given up, connecting included.
        max_reply_bytes: Maximum number of bytes of a body.

    Raises:
        OSError: As for `Connections.post`.
        BadReply: If a successful response is longer than `max_reply_bytes`.
    """
    exchange = _Exchange(_options(url, headers, timeout_s), max_reply_bytes)
    exchange.begin(body)
    transfers = Transfers()
    try:
        error = await transfers.perform(exchange.curl)
    finally:
        await transfers.close()
    return exchange.response if error is None else exchange.end(*error)


class Connections:
    """Connections to one address, for one event loop, as many as there are requests in flight."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float, max_reply_bytes: int) -> None:
        """Set up requests; connects to nothing yet.

        Args:
            url: Address of requests.
            headers: Headers of every request.
            timeout_s: Seconds until a request is given up, connecting included.
            max_reply_bytes: Maximum number of bytes of a body.
        """
        self._exchanges: list[_Exchange] = []
        self._in_flight = 0
        self._is_retired = False
        self._options = _options(url, headers, timeout_s)
        self._max_reply_bytes = max_reply_bytes
        self._transfers = Transfers()
        _CONNECTIONS.add(self)

    async def post(self, body: bytes) -> Response:
        """Send a body, and wait for the response; a cancelled wait cuts its connection.

        Raises:
            TimeoutError: If it takes too long.
            OSError: If the address cannot be reached, cuts the connection, or speaks no HTTP.
            BadReply: If a successful response is longer than `max_reply_bytes`.
        """
        exchange = self._exchanges.pop() if self._exchanges else _Exchange(self._options, self._max_reply_bytes)
        exchange.begin(body)
        self._in_flight += 1
        try:
            error = await self._transfers.perform(exchange.curl)
            if error is not None:
                return exchange.end(*error)
            self._exchanges.append(exchange)
            return exchange.response
        finally:
            self._in_flight -= 1
            if self._is_retired:
                await self.retire()

    async def retire(self) -> None:
        """Use none of the connections again, and close them once the last request in flight has ended."""
        self._is_retired = True
        if not self._in_flight:
            await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._transfers.close()


class _Exchange:
    """A libcurl handle, which makes one request at a time."""

    def __init__(self, options: Mapping[int, Any], max_reply_bytes: int) -> None:
        self.curl = pycurl.Curl()
        for option, value in options.items():
            self.curl.setopt(option, value)
        self._head: list[bytes] = []
        self.curl.setopt(pycurl.WRITEFUNCTION, self._take)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._head.append)
        self._max_reply_bytes = max_reply_bytes

    def begin(self, body: bytes | None) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._head.clear()
        if body is None:
            self.curl.setopt(pycurl.HTTPGET, 1)
        else:
            self.curl.setopt(pycurl.POSTFIELDS, body)

    @property
    def response(self) -> Response:
        status, body = self._status, b"".join(self._parts)
        if not (body[:1] in PLAIN_START and body[-1:] in PLAIN_END):
            body = self._unpacked(body, status)
        retry_after = wait_in_headers(self._headers()) if status >= 400 else None
        location = self._headers().get("location") if 300 <= status < 400 else None
        return Response(status, retry_after, body, location)

    def _unpacked(self, body: bytes, status: int) -> bytes:
        """Unpack a body that does not look like JSON, if it is compressed."""
        is_success = 200 <= status < 300
        try:
            body = unpacked(body, self._headers().get("content-encoding", ""), self._max_reply_bytes)
        except (BadReply, ConnectionError) as error:
            if is_success:
                raise
            return str(error).encode()
        if is_success and len(body) > self._max_reply_bytes:
            raise self._too_long()
        return body

    def _headers(self) -> dict[str, str]:
        """Return the headers of the response, with names in lower case."""
        lines = (line.decode("latin-1").partition(":") for line in self._head)
        return {name.strip().lower(): value.strip() for name, colon, value in lines if colon}

    def end(self, code: int, message: str) -> Response:
        """Return what arrived of a response that libcurl gave up, or raise the reason."""
        if code == pycurl.E_WRITE_ERROR and 200 <= self._status < 300:
            raise self._too_long()
        if code == pycurl.E_WRITE_ERROR:
            return self.response
        if code == pycurl.E_OPERATION_TIMEDOUT:
            raise TimeoutError(message)
        if self.curl.getinfo(pycurl.HTTP_CONNECTCODE) == PROXY_WANTS_PASSWORD:
            return Response(PROXY_WANTS_PASSWORD, None, message.encode())
        if code in _NOT_SENT:
            raise ConnectionRefusedError(message)
        if code in _UNTRUSTED:
            raise ConnectionRefusedError(f"{message}; {CERTIFICATE_ADVICE}")
        raise ConnectionError(message or f"libcurl gave up on what came (error {code})")

    def _too_long(self) -> BadReply:
        return BadReply(f"the reply is longer than {self._max_reply_bytes} bytes; lower max_tokens")

    @property
    def _status(self) -> int:
        return self.curl.getinfo(pycurl.RESPONSE_CODE)

    def _take(self, part: bytes) -> int:
        """Add a part of the body; return -1, which ends the transfer, once there is more than may be read."""
        self._parts.append(part)
        self._size += len(part)
        return len(part) if self._size <= self._max_reply_bytes else -1


def _options(url: str, headers: Mapping[str, str], timeout_s: float) -> dict[int, Any]:
    """Return libcurl's options for requests to one address."""
    return {
        pycurl.URL: url,
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.HTTPHEADER: [*(f"{name}: {value}" for name, value in headers.items()), "Expect:"],
        pycurl.NOSIGNAL: 1,
        pycurl.TCP_KEEPALIVE: 1,
        pycurl.MAXAGE_CONN: MAX_IDLE_S,
        pycurl.CONNECTTIMEOUT_MS: int(1000 * CONNECT_TIMEOUT_S),
        pycurl.TIMEOUT_MS: max(1, int(1000 * min(timeout_s, 1e6))),
        **(curl_options() if url.lower().startswith("https:") else {}),
    }


_CONNECTIONS: weakref.WeakSet[Connections] = weakref.WeakSet()

_PARENTS: list[Connections] = []
"""Connections that a forked child has inherited; closing them there would end the parent's TLS sessions."""

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=lambda: _PARENTS.extend(_CONNECTIONS))
