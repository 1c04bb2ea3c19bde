"""The few HTTP requests that a batch takes: each is repeated for as long as that can help and costs nothing."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from urllib.parse import urljoin, urlsplit

from mesa_llm.errors import ConfigError, MesaLLMError, RateLimited, ServerError
from mesa_llm.llm.address import Address
from mesa_llm.llm.batches.protocol import BatchGone, MaybeCreated
from mesa_llm.llm.credentials import without_secrets
from mesa_llm.llm.openai.connection import Response, send
from mesa_llm.llm.openai.errors import detail_in, error_for_status
from mesa_llm.llm.waiting import BatchClock, patiently

logger = logging.getLogger(__name__)

ATTEMPTS = 8
"""Maximum number of times that one request is sent."""

FIRST_WAIT_S, MAX_WAIT_S = 0.5, 60.0
"""Waits before a request is sent again, in seconds: the first, which doubles, and the longest."""

TIMEOUT_S = 600.0
"""Seconds until a request is given up, as files are large."""

MAX_BYTES, MAX_LARGE_BYTES = 2_000_000, 1_000_000_000
"""Maximum number of bytes that are read of a response, and of a file of responses."""

MAX_REDIRECTS = 3
"""Maximum number of redirects that are followed to a file of responses."""

_MISSING, _GONE = 404, 410
"""HTTP statuses of what a provider does not have, perhaps not yet, and of what it has deleted."""

_WITHOUT_BATCHES = (404, 405, 501)
"""HTTP statuses of an endpoint that knows no batches."""


class _NoneHere(MesaLLMError):
    """There is nothing at a path."""

    def __init__(self, text: str, status: int, detail: str) -> None:
        super().__init__(text)
        self.status, self.detail = status, detail


class BatchHTTP:
    """Sends the requests of batches to one address.

    Attributes:
        base: Base URL, without secrets.
    """

    def __init__(self, address: Address, headers: Mapping[str, str], secrets: Sequence[str]) -> None:
        """Set the address and the headers.

        Args:
            address: The address; its path is the start of all paths.
            headers: Headers of all requests, with the key.
            secrets: Keys and passwords that no error may quote.
        """
        self.base = address.base
        self._query = address.query
        self._headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        self._secrets = [*secrets, *address.secrets]

    def __repr__(self) -> str:
        """Name the address, not the key."""
        return f"BatchHTTP({self.base!r})"

    async def get(self, path: str) -> bytes:
        """Fetch a document; one that was just created is looked for again for minutes.

        Args:
            path: Path below the base URL.

        Raises:
            BatchGone: If it is not there.
            ConfigError: If a person must act.
            TransportError: If the provider cannot be reached.
        """
        async for is_last in patiently():
            try:
                return await self._repeated(path, None, {}, none_here=(_MISSING, _GONE))
            except _NoneHere as error:
                if is_last or error.status == _GONE:
                    raise BatchGone(str(error)) from None
                logger.info("%s; looking again", error)
        raise AssertionError

    async def file(self, path: str) -> bytes | None:
        """Fetch a file of responses as it is now; None if it is not there.

        Redirects are followed, as such files may lie with another host, which is sent no key.

        Args:
            path: Path below the base URL.

        Raises:
            BatchGone: If the provider has deleted it.
            ConfigError: If a person must act.
            TransportError: If the provider cannot be reached.
        """
        try:
            return await self._repeated(path, None, {}, none_here=(_MISSING, _GONE), max_bytes=MAX_LARGE_BYTES)
        except _NoneHere as error:
            if error.status == _GONE:
                raise BatchGone(str(error)) from None
            return None

    async def page(self, path: str, query: str) -> bytes | None:
        """Fetch a page of a list; None where an endpoint lists nothing.

        Args:
            path: Path below the base URL.
            query: Which page.

        Raises:
            ConfigError: If a person must act.
            TransportError: If the provider cannot be reached.
        """
        try:
            return await self._repeated(f"{path}?{query}", None, {}, none_here=_WITHOUT_BATCHES)
        except _NoneHere:
            return None

    async def upload(self, path: str, body: bytes, content_type: str) -> bytes:
        """Create a file, which may happen twice, and return the document about it.

        Args:
            path: Path below the base URL.
            body: What is sent.
            content_type: Its type.

        Raises:
            ConfigError: If there are no batches at this address, or a person must act.
            TransportError: If none was created.
        """
        try:
            return await self._repeated(path, body, {"Content-Type": content_type}, none_here=_WITHOUT_BATCHES)
        except _NoneHere as error:
            raise _without_batches(error) from None

    async def create(self, path: str, body: bytes, file_id: str | None = None) -> bytes:
        """Create a batch, and return the document about it.

        Args:
            path: Path below the base URL.
            body: What is sent.
            file_id: File of its requests, which the provider may not have yet; None: the body has them.

        Raises:
            MaybeCreated: If it is not known whether it was created.
            ConfigError: If there are no batches at this address, or a person must act.
            TransportError: If it was not created.
        """
        headers = {"Content-Type": "application/json"}
        none_here = _WITHOUT_BATCHES if file_id is None else (*_WITHOUT_BATCHES, 400)
        level = logging.WARNING  # said once
        async for is_last in patiently():
            try:
                return await self._repeated(path, body, headers, none_here=none_here, is_once=True)
            except _NoneHere as error:
                is_file_missing = file_id is not None and (error.status == _MISSING or file_id in error.detail)
                if error.status == 400 and not is_file_missing:
                    raise error_for_status(400, detail_in(error.detail.encode()), f"{self.base}{path}") from None
                if is_last or not is_file_missing:
                    raise _without_batches(error) from None
                logger.log(level, "%s; the file of its requests may not be there yet: trying again for minutes", error)
                level = logging.INFO
        raise AssertionError

    async def _repeated(
        self,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        *,
        none_here: Sequence[int],
        is_once: bool = False,
        max_bytes: int = MAX_BYTES,
    ) -> bytes:
        """Send a request until there is a response, as long as that can help.

        Args:
            path: Path below the base URL.
            body: What is posted; None: something is fetched.
            headers: Further headers.
            none_here: HTTP statuses that mean that there is nothing at this path.
            is_once: Whether it may not be sent again if it is not known what it has done.
            max_bytes: Maximum number of bytes that are read.

        Raises:
            _NoneHere: If it answers one of these.
            MaybeCreated: If it is not known what a request has done that may not be sent again.
            MesaLLMError: As for `get` and `create`.
        """
        wait_s, n_sent = FIRST_WAIT_S, 0
        while True:
            n_sent += 1
            try:
                response = await self._send(path, body, headers, max_bytes)
                if is_once and response.status >= 500 and response.status not in none_here:
                    raise MaybeCreated(f"{self.base}{path} answered {response.status}")
                return self._content(response, path, none_here)
            except (RateLimited, ServerError, _Cut) as error:
                if is_once and isinstance(error, _Cut):
                    raise MaybeCreated(str(error)) from None
                if n_sent == ATTEMPTS:
                    raise
                asked_s = error.retry_after_s if isinstance(error, RateLimited) else None
                logger.info("%s", error)
            await BatchClock.of_batches.sleep(random.uniform(wait_s / 2, wait_s) if asked_s is None else asked_s)
            wait_s = min(2 * wait_s, MAX_WAIT_S)

    async def _send(self, path: str, body: bytes | None, headers: Mapping[str, str], max_bytes: int) -> Response:
        """Send a request, and follow redirects to a large file.

        Raises:
            _Cut: If the connection was cut.
            ServerError: If nothing was sent.
        """
        url = f"{self.base}{path}"
        if self._query:
            url += f"{'&' if '?' in path else '?'}{self._query}"
        sent = {**self._headers, **headers}
        try:
            response = await send(url, sent, body, TIMEOUT_S, max_bytes)
            for _ in range(MAX_REDIRECTS if max_bytes > MAX_BYTES else 0):
                if response.location is None:
                    break
                url = urljoin(here := url, response.location)
                sent = sent if _origin(url) == _origin(here) else {}
                response = await send(url, sent, body, TIMEOUT_S, max_bytes)
        except ConnectionRefusedError as error:
            raise ServerError(self._without_secrets(f"the connection to {self.base}{path} failed: {error}")) from None
        except OSError as error:
            raise _Cut(self._without_secrets(f"the connection to {self.base}{path} failed: {error}")) from None
        return response

    def _content(self, response: Response, path: str, none_here: Sequence[int]) -> bytes:
        """Return the body of a response.

        Raises:
            MesaLLMError: If it is an error.
        """
        if 200 <= response.status < 300:
            return response.body
        text = self._without_secrets(response.body.decode("utf-8", "replace"))
        if response.status in none_here:
            raise _NoneHere(f"{self.base}{path} answered {response.status}", response.status, text)
        raise error_for_status(response.status, detail_in(text.encode()), f"{self.base}{path}", response.retry_after)

    def _without_secrets(self, text: str) -> str:
        return without_secrets(text, self._secrets)


class _Cut(ServerError):
    """A connection was cut after something may have been sent."""


def _without_batches(error: _NoneHere) -> ConfigError:
    return ConfigError(
        f"{error}: there are no batches at this address, and nothing was paid for. Leave out batch (--batch)"
    )


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
