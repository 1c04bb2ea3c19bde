"""Limits of an endpoint: requests in flight, requests a minute and tokens a minute."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from contextvars import ContextVar
from typing import ClassVar

from mesa_llm.errors import RateLimited, Stopped
from mesa_llm.llm.budget import UsageMeter
from mesa_llm.llm.protocol import LLM, close_transport
from mesa_llm.llm.rate_control import RateControl
from mesa_llm.records import Reply, Request


class InFlight:
    """Counts the requests of one run that are sent and not answered yet; they are paid for even if the run ends.

    Attributes:
        n: Number of such requests.
        is_ending: Whether no more requests may be sent.
        none_left: Set once the run is ending and the last reply is there.
    """

    of_run: ClassVar[ContextVar[InFlight | None]] = ContextVar("mesa_llm_in_flight", default=None)
    """The count of the run that the current task belongs to; used on the event loop alone."""

    def __init__(self) -> None:
        """Start at zero."""
        self.n = 0
        self.is_ending = False
        self.none_left = threading.Event()

    def __enter__(self) -> None:
        """Count a request until the block is over.

        Raises:
            Stopped: If the run is ending.
        """
        if self.is_ending:
            raise Stopped("stopped before this request was sent")
        self.n += 1

    def __exit__(self, *error: object) -> None:
        """Take the request off the count."""
        self.n -= 1
        self._check()

    def end(self) -> None:
        """Let no more requests be sent."""
        self.is_ending = True
        self._check()

    def _check(self) -> None:
        if self.is_ending and not self.n:
            self.none_left.set()


_OUTSIDE_OF_RUNS = nullcontext()


class Limits:
    """Bounds how many requests are in flight, and how many requests and tokens are sent in a minute.

    How many requests an endpoint accepts is learned from those it rejects; see `RateControl`.

    Attributes:
        pace: The pace, as it has been learned.
    """

    def __init__(
        self,
        inner: LLM,
        concurrency: int = 64,
        requests_per_min: float | None = None,
        tokens_per_min: float | None = None,
    ) -> None:
        """Set the bounds, which `AccessOptions` and `Endpoint` have checked.

        Args:
            inner: The transport.
            concurrency: Maximum number of requests in flight.
            requests_per_min: Maximum number of requests in any minute; None: no limit.
            tokens_per_min: Maximum number of tokens in any minute, read and written; None: no limit.
        """
        self.inner = inner
        self.pace = RateControl(concurrency, requests_per_min, tokens_per_min)
        self._counts_tokens = tokens_per_min is not None
        self._tokens_seen = 1  # with the characters, the ratio by which tokens of requests are estimated
        self._characters_seen = 4

    async def reply(self, request: Request) -> Reply:
        """Send the request when it is its turn.

        Raises:
            Stopped: If the run is ending.
            RateLimited: If the endpoint has done nothing but reject for a long time.
            TransportError: As the transport raises it.
        """
        meter = UsageMeter.of_reply.get()
        if meter is not None:
            meter.wait()
        characters = 1 + sum(len(message.content) for message in request.messages) if self._counts_tokens else 0
        epoch = await self.pace.enter(tokens=characters * self._tokens_seen / self._characters_seen)
        in_flight = InFlight.of_run.get() or _OUTSIDE_OF_RUNS
        start = time.perf_counter()
        try:
            with in_flight:
                if meter is not None:
                    meter.send()
                reply = await self.inner.reply(request)
            self.pace.accept(epoch)
        except RateLimited as limited:
            self.pace.reject(epoch, limited.retry_after_s)
            raise
        finally:
            self.pace.leave()
        if self._counts_tokens and reply.prompt_tokens:
            self._tokens_seen += reply.prompt_tokens + reply.reply_tokens
            self._characters_seen += characters
        return reply if reply.latency_s else reply.timed(time.perf_counter() - start)

    async def close(self) -> None:
        """Close the transport."""
        await close_transport(self.inner)
