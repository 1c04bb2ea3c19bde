"""Replies of one run: taken from the run log if it holds them, else requested and recorded as they arrive."""

from __future__ import annotations

import asyncio
import logging
import time as clock
from collections.abc import Callable, Collection, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import coroutine

from mesa_llm.errors import ConfigError, MesaLLMError, ReplayError, TransportError
from mesa_llm.llm.budget import UsageMeter, usage_of
from mesa_llm.llm.limits import InFlight
from mesa_llm.llm.protocol import LLM, Describing, describing
from mesa_llm.records import Reply, Request, Usage
from mesa_llm.runlog.log import PreparedCall, RunLog

logger = logging.getLogger(__name__)

PREPARED_TOGETHER = 8
"""Number of calls that the run log prepares before yielding to the event loop: each takes a few dozen µs."""


class Recorder:
    """Records the replies of one run.

    Attributes:
        runlog: Run log in which replies are looked up and recorded.
        count: Called with the usage and the purpose of each reply, from any thread.
        awaited: The requests whose replies are awaited, in the order asked.
        in_batches: Keys of requests that may not be sent, as a batch holds them that is not collected yet.
        charge: Called with the agent and the usage of each reply, also of a recorded one.
        has_uncommitted: Whether replies are recorded that are not committed, be it because they cannot be.
        tracebacks: Names of transports and tools, with the types of their exceptions for which a traceback has been
            shown.
    """

    def __init__(self, runlog: RunLog, count: Callable[[Usage, str], None]) -> None:
        """Start with no request.

        Args:
            runlog: Run log in which replies are looked up and recorded.
            count: Called with the usage and the purpose of each reply, from any thread.
        """
        self.runlog = runlog
        self.count = count
        self.awaited: dict[int, _Awaited] = {}
        self.in_batches: Collection[str] = frozenset()
        self.tracebacks: set[tuple[str, type[Exception]]] = set()
        self.charge: Callable[[int, Usage], object] = lambda agent_id, used: None
        self.has_uncommitted = self._is_scheduled = False

    async def prepare_calls(self) -> None:
        """Let the run log prepare rows for the awaited replies; replies that arrive meanwhile are handled first."""
        awaited = list(self.awaited.values())
        for start in range(0, len(awaited), PREPARED_TOGETHER):
            await asyncio.sleep(0)
            for one in awaited[start : start + PREPARED_TOGETHER]:
                if one.prepared is None and id(one) in self.awaited:
                    try:
                        one.prepared = self.runlog.prepare(one.request)
                    except ConfigError:  # the log cannot be written; recording the first reply will raise this again
                        return

    def commit(self) -> None:
        """Commit the recorded replies.

        Raises:
            ConfigError: If they cannot be written, as on a full disk, now or at an earlier attempt.
        """
        if self.has_uncommitted:
            self.runlog.commit()
            self.has_uncommitted = False

    def commit_soon(self) -> None:
        """Commit after this pass of the event loop; one commit serves all replies that arrive in it."""
        self.has_uncommitted = True
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._commit)

    async def committed(self) -> None:
        """Wait until all replies are committed: before that no other request is sent, so that a killed run loses no
        more than what is in flight.

        Raises:
            ConfigError: As for `commit`.
        """
        if self._is_scheduled:
            await next_pass()
        self.commit()

    def _commit(self) -> None:
        self._is_scheduled = False
        try:
            self.commit()
        except ConfigError:
            if (in_flight := InFlight.of_run.get()) is not None:
                in_flight.end()  # requests that wait for their turn, or to be sent again, would be paid for


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outermost layer around a transport: returns recorded replies, and records all others as they arrive."""

    recorder: Recorder
    """Records the replies."""

    inner: LLM
    """The transport, or the layer around it."""

    describing: Describing | None = field(init=False)
    """The transport, if it adds to the messages of a request."""

    def __post_init__(self) -> None:
        """Look once whether the transport adds to the messages of a request."""
        object.__setattr__(self, "describing", describing(self.inner))

    async def reply(self, request: Request) -> Reply:
        """Return the recorded reply, or request one and record it.

        Raises:
            TransportError: If no reply came, now or when it was recorded.
            ReplayError: In a replay, if the reply is not recorded.
        """
        log = self.recorder.runlog
        entry = log.find(request)
        if entry is not None:
            self.recorder.count(Usage(replayed=1), request.salt.purpose)
            if isinstance(entry, Reply):
                self.recorder.charge(request.salt.agent, usage_of(entry, entry.attempts))
                return entry
            raise entry
        if log.mode == "replay":
            raise ReplayError(log.explain(request))
        if self.recorder.in_batches and request.key in self.recorder.in_batches:
            raise ConfigError(
                "the run log names a batch of requests that is not collected yet: give batch=True (--batch) to collect "
                "it, or ask_again=True (--ask-again) to ask at once and pay for both"
            )
        if self.describing is not None and (sent := self.describing.wire_text(request)):
            request = replace(request, sent=sent)
        if self.recorder.has_uncommitted:
            await self.recorder.committed()
        start = clock.perf_counter()
        awaited = _Awaited(request)
        self.recorder.awaited[id(awaited)] = awaited
        meter = UsageMeter()
        token = UsageMeter.of_reply.set(meter)
        try:
            reply = await self.inner.reply(request)
        except TransportError as error:
            self._keep_failure(awaited, error, meter.usage, start)
            raise
        except (MesaLLMError, asyncio.CancelledError):
            self._note_unanswered(request, meter)
            raise
        except Exception as error:  # a custom transport may raise anything; the other agents carry on
            if (fault := (request.model, type(error))) not in self.recorder.tracebacks:
                self.recorder.tracebacks.add(fault)
                logger.exception("%s raised (said once; all failures are in the run log)", request.model)
            failure = TransportError(f"it raised {type(error).__name__}: {str(error)[:300]}")
            self._keep_failure(awaited, failure, meter.usage, start)
            raise failure from error
        finally:
            UsageMeter.of_reply.reset(token)
            del self.recorder.awaited[id(awaited)]
        if meter.usage.requests > 1:
            reply = _with_all_paid(reply, meter.usage)
        if not reply.latency_s:
            reply = reply.timed(clock.perf_counter() - start)
        log.keep(request, reply, reply.latency_s, prepared=awaited.prepared, commit=False)
        self.recorder.commit_soon()
        used = usage_of(reply, reply.attempts)
        self.recorder.count(used, request.salt.purpose)
        self.recorder.charge(request.salt.agent, used)
        return reply

    def _keep_failure(self, awaited: _Awaited, failure: TransportError, paid: Usage, start: float) -> None:
        """Record a failure, with the usage of its requests."""
        request, seconds = awaited.request, clock.perf_counter() - start
        self.recorder.runlog.keep(request, failure, seconds, prepared=awaited.prepared, commit=False, paid=paid)
        self.recorder.commit_soon()
        self.recorder.count(paid, request.salt.purpose)

    def _note_unanswered(self, request: Request, meter: UsageMeter) -> None:
        """Record the usage of requests that were sent for a reply that never came, as the run ended before it.

        That of a batch that is not collected yet is in the run log already.
        """
        used = meter.usage + meter.unsettled
        if not used.requests:
            return
        self.recorder.count(used, request.salt.purpose)
        if meter.usage.requests:
            with suppress(ConfigError):  # the log is closed already, or cannot be written
                self.recorder.runlog.note_unanswered(request.model, meter.usage)


def _with_all_paid(reply: Reply, paid: Usage) -> Reply:
    """Return a reply with the usage of all requests that it took."""
    dollars = paid.dollars if paid.dollars else reply.dollars
    tokens = {"prompt_tokens": paid.prompt_tokens, "reply_tokens": paid.reply_tokens}
    cached = {"cached_tokens": paid.cached_tokens, "stored_tokens": paid.stored_tokens}
    return replace(reply, dollars=dollars, attempts=paid.requests, **tokens, **cached)


@dataclass(slots=True, eq=False)
class _Awaited:
    """A request whose reply is awaited."""

    request: Request
    prepared: PreparedCall | None = None
    """Row that the run log has prepared for the call."""


@coroutine
def next_pass() -> Generator[None]:
    """Wait for the next pass of the event loop, like `asyncio.sleep(0)` but faster."""
    yield
