"""The language models of one run: each opened once, asked within bounds, and everything they reply recorded."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import time as clock
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

from mesa_llm.errors import ConfigError, MesaLLMError, ReplayError, TransportError
from mesa_llm.llm import Endpoint, open_llm
from mesa_llm.llm.base import LLM, Closable, Capabilities
from mesa_llm.llm.limits import Budget, Limits, Retry
from mesa_llm.loop import EventLoop
from mesa_llm.records import Reply, Request, Usage
from mesa_llm.runlog import RunLog

logger = logging.getLogger(__name__)


class EngineOptions(TypedDict, total=False):
    """How language models are reached, and how much may be spent."""

    api_base: str | None
    """Base URL of an OpenAI-compatible endpoint."""

    api_key: str | None
    """Key for it; None: from the environment."""

    timeout_s: float
    """Seconds until a request is given up; default 60."""

    concurrency: int
    """Most requests in flight to one model; default 64."""

    attempts: int
    """Most requests for one reply; default 4."""

    requests_per_min: float | None
    """Rate limit; None: none."""

    tokens_per_min: float | None
    """Rate limit; None: none."""

    max_calls: int | None
    """Budget of live replies to one model object; those from the log are free."""

    max_tokens: int | None
    """Budget of tokens of live replies, read and written."""

    max_dollars: float | None
    """Budget of US dollars for live replies."""

    parser: str | LLM | None
    """Second model that puts faulty replies into form."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A language model ready to be asked by agents that name it."""

    capabilities: Capabilities
    """What it is."""

    llm: LLM | None
    """What replies; None for the rule twin."""

    is_immediate: bool
    """Whether nothing is waited for, as in every replay."""

    concurrency: int
    """Maximum number of requests in flight."""

    @property
    def name(self) -> str:
        """The model's name, part of every request's key."""
        return self.capabilities.name

    @property
    def is_language_model(self) -> bool:
        """Whether a language model replies, and neither a rule, nor chance, nor a person."""
        return self.llm is not None and not self.capabilities.is_immediate and not self.capabilities.is_person


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outermost layer: serves what is recorded, and records the rest as it arrives."""

    run: Transports
    inner: LLM

    async def reply(self, request: Request) -> Reply:
        """Answer from the run log, or ask and record.

        Raises:
            TransportError: If no reply came, now or when it was recorded.
            ReplayError: In a replay, if the reply is not recorded.
        """
        log = self.run.runlog
        found = log.find(request)
        if found is not None:
            self.run.count(Usage(replayed=1))
            if isinstance(found, Reply):
                return found
            raise found
        if log.mode == "replay":
            raise ReplayError(log.explain(request))
        begun = clock.perf_counter()
        try:
            reply = await self._ask(request)
        except TransportError as error:
            log.keep(request, error, clock.perf_counter() - begun, commit=False)
            await self.run.commit()
            raise
        if not reply.latency_s:
            reply = replace(reply, latency_s=clock.perf_counter() - begun)
        log.keep(request, reply, reply.latency_s, commit=False)
        await self.run.commit()
        self.run.count(Usage(1, 0, reply.prompt_tokens, reply.reply_tokens, reply.dollars or 0.0))
        return reply

    async def _ask(self, request: Request) -> Reply:
        try:
            return await self.inner.reply(request)
        except MesaLLMError:
            raise
        except Exception as error:  # a transport of the user's own may raise anything; the other agents go on
            logger.exception("%s raised", request.model)
            raise TransportError(f"it raised {type(error).__name__}: {str(error)[:300]}") from error


@dataclass(slots=True)
class _Commit:
    """A commit that several wait for."""

    fault: str | None = None
    """Why it could not be made."""


class Transports:
    """Opens language models, and puts around each what bounds, spends and records."""

    def __init__(self, runlog: RunLog, options: EngineOptions, count: Callable[[Usage], None]) -> None:
        """Open nothing yet.

        Args:
            runlog: Where replies are found and kept.
            options: How models are reached, and how much may be spent.
            count: Told what each reply cost; called from any thread.
        """
        self.runlog = runlog
        self.options = options
        self.count = count
        self._lock = threading.Lock()
        self._opened: dict[str | int, Opened] = {}
        self._kept: list[LLM] = []
        self._budget: Budget | None = None
        self._commit_due: _Commit | None = None
        self.close = weakref.finalize(self, _close_all, self._kept)

    async def commit(self) -> None:
        """Wait until what is kept in this pass of the event loop is committed, once for all of it.

        Nothing else is asked before, so that a killed run loses no more than what is in flight.

        Raises:
            ConfigError: If it cannot be written, as on a full disk.
        """
        due = self._commit_due
        if due is None:
            due = self._commit_due = _Commit()
            asyncio.get_running_loop().call_soon(self._commit, due)
        await asyncio.sleep(0)  # who waits goes on in the next pass, after the commit that was asked for first
        if due.fault is not None:
            raise ConfigError(due.fault)

    def _commit(self, due: _Commit) -> None:
        self._commit_due = None
        try:
            self.runlog.commit()
        except ConfigError as error:
            due.fault = str(error)

    def open(self, llm: str | LLM) -> Opened:
        """Open a model once for all agents that name it.

        Args:
            llm: Model string, or a transport of the user's own.
        """
        kept_as = llm if isinstance(llm, str) else id(llm)
        opened = self._opened.get(kept_as)
        if opened is None:
            with self._lock:
                opened = self._opened.setdefault(kept_as, self._open(llm))
        return opened

    def _open(self, llm: str | LLM) -> Opened:
        concurrency = int(self.options.get("concurrency", 64))
        if concurrency < 1:
            raise ConfigError(f"concurrency is at least 1, got {concurrency}")
        if llm == "rule":
            return Opened(Capabilities("rule", is_immediate=True), None, True, 1)
        transport = llm
        if isinstance(transport, str):
            transport = open_llm(transport, self._endpoint())
            self._kept.append(transport)
        capabilities = Capabilities.of(transport)
        if capabilities.is_immediate:
            return Opened(capabilities, transport, True, 1)
        if isinstance(llm, str):
            capabilities = replace(capabilities, name=llm)
        if self.runlog.mode == "replay":
            return Opened(capabilities, Recorded(self, _Silent()), True, 1)
        if capabilities.is_person:
            return Opened(capabilities, Recorded(self, transport), False, 1_000_000)
        limited = Limits(
            transport,
            concurrency=1 if llm == "local" else concurrency,
            requests_per_min=self.options.get("requests_per_min"),
            tokens_per_min=self.options.get("tokens_per_min"),
        )
        spending = self._spend(Retry(limited, attempts=int(self.options.get("attempts", 4))))
        return Opened(capabilities, Recorded(self, spending), False, concurrency)

    def _endpoint(self) -> Endpoint:
        options = self.options
        return Endpoint(options.get("api_base"), options.get("api_key"), options.get("timeout_s", 60.0))

    def _spend(self, inner: LLM) -> LLM:
        """Put the run's one budget around a transport."""
        options = self.options
        limits = (options.get("max_calls"), options.get("max_tokens"), options.get("max_dollars"))
        if limits == (None, None, None):
            return inner
        if self._budget is None:
            self._budget = Budget(inner, *limits)
            return self._budget
        return self._budget.also(inner)

    @property
    def parser(self) -> LLM | None:
        """The second model that puts faulty replies into form, if there is one."""
        spec = self.options.get("parser")
        return None if spec is None else self.open(spec).llm


def _close_all(transports: list[LLM]) -> None:
    """Close what was opened and forgotten, or is open at the end of the process."""
    closing = [transport.close() for transport in transports if isinstance(transport, Closable)]
    transports.clear()
    if not closing:
        return
    try:
        loop = EventLoop.get()
    except RuntimeError:  # the interpreter is ending, and with it whatever is open
        for work in closing:
            work.close()
        return
    started = [asyncio.run_coroutine_threadsafe(work, loop) for work in closing]
    if threading.current_thread() is not EventLoop.thread:
        concurrent.futures.wait(started, timeout=5)


class _Silent:
    """Stands where a transport would be, in a replay."""

    async def reply(self, request: Request) -> Reply:
        raise ReplayError(f"a replay asks nobody ({request.model})")
