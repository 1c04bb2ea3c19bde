"""The few HTTP requests that a batch takes: each is repeated for as long as that can help and costs nothing."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Collection, Mapping, Sequence

from mesa_llm.errors import ConfigError, MesaLLMError, RateLimited, ServerError
from mesa_llm.llm.address import Address, without_secrets
from mesa_llm.llm.batches.stage import MaybeCreated
from mesa_llm.llm.openai.connection import Response, send
from mesa_llm.llm.openai.errors import detail_in, trouble

logger = logging.getLogger(__name__)

ATTEMPTS = 8
"""Maximum number of times that one request is sent."""

FIRST_WAIT_S, MAX_WAIT_S = 0.5, 60.0
"""Waits before a request is sent again, in seconds: the first, which doubles, and the longest."""

TIMEOUT_S = 600.0
"""Seconds until a request is given up, as files are large."""

MAX_BYTES, MAX_LARGE_BYTES = 2_000_000, 1_000_000_000
"""Maximum number of bytes that are read of a response, and of a file of responses."""

_GONE = (404, 410)
"""HTTP statuses of a batch or a file that the provider has deleted."""

_WITHOUT_BATCHES = (404, 405, 501)
"""HTTP statuses of an endpoint that knows no batches."""


class _NoneHere(MesaLLMError):
    """There is nothing at a path."""


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

    async def get(self, path: str, *, is_large: bool = False, limit: int | None = None) -> bytes | None:
        """Fetch a document; None if it is gone.

        Args:
            path: Path below the base URL.
            is_large: Whether it may be a file of responses.
            limit: Maximum length of a list; None: it is no list.

        Raises:
            ConfigError: If a person must act.
            TransportError: If the provider cannot be reached.
        """
        max_bytes = MAX_LARGE_BYTES if is_large else MAX_BYTES
        query = "" if limit is None else f"?limit={limit}"
        try:
            return await self._repeated(f"{path}{query}", None, {}, max_bytes, may_repeat=True, none_here=_GONE)
        except _NoneHere:
            return None

    async def post(
        self,
        path: str,
        body: bytes,
        content_type: str = "application/json",
        *,
        may_repeat: bool = False,
    ) -> bytes:
        """Create something, and return the document about it.

        Args:
            path: Path below the base URL.
            body: What is sent.
            content_type: Its type.
            may_repeat: Whether it may be sent again if it is not known whether it arrived.

        Raises:
            MaybeCreated: If it is not known whether something was created.
            ConfigError: If there are no batches at this address, or a person must act.
            TransportError: If nothing was created.
        """
        headers = {"Content-Type": content_type}
        try:
            return await self._repeated(
                path, body, headers, MAX_BYTES, may_repeat=may_repeat, none_here=_WITHOUT_BATCHES
            )
        except _NoneHere as error:
            raise ConfigError(
                f"{error}: there are no batches at this address, and nothing was paid for. Leave out batch (--batch)"
            ) from None

    async def _repeated(
        self,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        max_bytes: int,
        *,
        may_repeat: bool,
        none_here: Collection[int],
    ) -> bytes:
        """Send a request until there is a response, as long as that can help.

        Args:
            path: Path below the base URL.
            body: What is posted; None: something is fetched.
            headers: Further headers.
            max_bytes: Maximum number of bytes that are read.
            may_repeat: As for `post`.
            none_here: HTTP statuses that mean that there is nothing at this path.

        Raises:
            _NoneHere: If it answers one of these.
            MesaLLMError: As for `get` and `post`.
        """
        wait_s, n_sent = FIRST_WAIT_S, 0
        while True:
            n_sent += 1
            try:
                return self._content(await self._send(path, body, headers, max_bytes, may_repeat), path, none_here)
            except (RateLimited, ServerError) as error:
                if n_sent == ATTEMPTS:
                    raise
                asked_s = error.retry_after_s if isinstance(error, RateLimited) else None
                logger.info("%s", error)
            await asyncio.sleep(random.uniform(wait_s / 2, wait_s) if asked_s is None else asked_s)
            wait_s = min(2 * wait_s, MAX_WAIT_S)

    async def _send(
        self, path: str, body: bytes | None, headers: Mapping[str, str], max_bytes: int, may_repeat: bool
    ) -> Response:
        url = f"{self.base}{path}"
        if self._query:
            url += f"{'&' if '?' in path else '?'}{self._query}"
        try:
            return await send(url, {**self._headers, **headers}, body, TIMEOUT_S, max_bytes)
        except ConnectionRefusedError as error:
            raise ServerError(self._without_secrets(f"the connection to {self.base}{path} failed: {error}")) from None
        except OSError as error:
            text = self._without_secrets(f"the connection to {self.base}{path} failed: {error}")
            if may_repeat:
                raise ServerError(text) from None
            raise MaybeCreated(
                f"{text}, so that it is not known whether a batch was created. With a run log, run the same again: "
                "the batch is looked for before another is created"
            ) from None

    def _content(self, response: Response, path: str, none_here: Collection[int]) -> bytes:
        """Return the body of a response.

        Raises:
            MesaLLMError: If it is an error.
        """
        if 200 <= response.status < 300:
            return response.body
        detail = detail_in(self._without_secrets(response.body.decode("utf-8", "replace")).encode())
        if response.status in none_here:
            raise _NoneHere(f"{self.base}{path} answered {response.status}")
        raise trouble(response.status, detail, f"{self.base}{path}", response.retry_after)

    def _without_secrets(self, text: str) -> str:
        return without_secrets(text, self._secrets)
