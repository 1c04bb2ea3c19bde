"""Asks language models: many decisions at once, bounded, in order, with failures as values."""

from __future__ import annotations

import asyncio
import concurrent.futures
import random
import threading
import time as clock
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypedDict, TypeVar

from mesa_llm.errors import ConfigError, ReplayError, Stopped, TransportError
from mesa_llm.llm import Endpoint, open_llm
from mesa_llm.llm.base import LLM, Closable
from mesa_llm.llm.limits import Budget, Limits, Retry
from mesa_llm.loop import EventLoop, run_now, submit
from mesa_llm.records import Decision, Failure, Observation, Reply, Request, Salt, Usage
from mesa_llm.runlog import RunLog

T = TypeVar("T")


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
    """Budget of replies in a run."""

    max_tokens: int | None
    """Budget of tokens in a run, read and written."""

    max_dollars: float | None
    """Budget of US dollars in a run."""

    parser: str | LLM | None
    """Second model that puts faulty replies into form."""


class Thinker(Protocol):
    """What the engine asks of an agent."""

    unique_id: int

    def decide(self, seen: Observation) -> Coroutine[Any, Any, Decision | Failure]:
        """Decide on what is seen; reads only."""
        ...


@dataclass(frozen=True, slots=True)
class Mind:
    """A language model ready to be asked by agents of one model string."""

    name: str
    """The model string; part of every request's key."""

    llm: LLM | None
    """What replies; None for the rule twin."""

    is_immediate: bool
    """True if it waits for nothing."""

    concurrency: int
    """Most requests in flight."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outermost layer: serves what is recorded, and records the rest as it arrives."""

    engine: Engine
    inner: LLM

    async def reply(self, request: Request) -> Reply:
        """Answer from the run log, or ask and record.

        Raises:
            TransportError: If no reply came, now or when it was recorded.
            ReplayError: In a replay, if the reply is not recorded.
        """
        log = self.engine.runlog
        found = log.find(request)
        if found is not None:
            self.engine.count(Usage(replayed=1))
            if isinstance(found, Reply):
                return found
            raise found
        if log.mode == "replay":
            raise ReplayError(log.explain(request))
        begun = clock.perf_counter()
        try:
            reply = await self.inner.reply(request)
        except TransportError as error:
            log.keep(request, error, clock.perf_counter() - begun, commit=False)
            await self.engine.commit()
            raise
        seconds = clock.perf_counter() - begun
        if not reply.latency_s:
            reply = replace(reply, latency_s=seconds)
        log.keep(request, reply, seconds, commit=False)
        await self.engine.commit()
        self.engine.count(Usage(1, 0, reply.prompt_tokens, reply.reply_tokens, reply.dollars or 0.0))
        return reply


class Engine:
    """Asks language models on behalf of one model's agents.

    Attributes:
        runlog: Where replies are found and kept.
        run_seed: Seed that every request's salt begins with.
        usage: What has been used so far.
        decisions: How many decisions have been asked for.
        on_decision: Called with the usage after each decision, from any thread.
        while_waiting: Entered while replies are waited for: nothing is written meanwhile.
    """

    _of: ClassVar[weakref.WeakKeyDictionary[Any, Engine]] = weakref.WeakKeyDictionary()

    def __init__(self, runlog: RunLog | None = None, run_seed: int = 0, options: EngineOptions | None = None) -> None:
        """Set an engine up; nothing is opened before it is used.

        Args:
            runlog: Where replies are found and kept; None: in memory.
            run_seed: Seed of the run.
            options: How models are reached, and how much may be spent.
        """
        self.runlog = runlog or RunLog()
        self.run_seed = run_seed
        self.options: EngineOptions = options or {}
        self.usage = Usage()
        self.decisions = 0
        self.on_decision: Callable[[Usage], None] | None = None
        self.while_waiting: Callable[[], AbstractContextManager[None]] = nullcontext
        self._lock = threading.Lock()
        self._is_commit_due = False
        self._minds: dict[str | int, Mind] = {}
        self._kept: list[LLM] = []
        self._salts: dict[tuple[int, str], tuple[int, int]] = {}
        self._budget: Budget | None = None
        self._running: concurrent.futures.Future[Any] | None = None
        self._finish = weakref.finalize(self, _close_all, self._kept)

    @classmethod
    def of(cls, model: Any) -> Engine:
        """Give the engine of a Mesa model; a model that brings none gets one with default options."""
        if model not in cls._of:
            cls(run_seed=run_seed_of(model)).join(model)
        return cls._of[model]

    def join(self, model: Any) -> None:
        """Become the engine of a Mesa model."""
        type(self)._of[model] = self

    def count(self, used: Usage) -> None:
        """Add to what has been used; called from any thread."""
        with self._lock:
            self.usage += used

    async def commit(self) -> None:
        """Wait until what is kept in this pass of the event loop is committed, once for all of it.

        Nothing else is asked before, so that a killed run loses no more than what is in flight.
        """
        if not self._is_commit_due:
            self._is_commit_due = True
            asyncio.get_running_loop().call_soon(self._commit)
        await asyncio.sleep(0)  # who waits goes on in the next pass, after the commit that was asked for first

    def _commit(self) -> None:
        self._is_commit_due = False
        self.runlog.commit()

    def salt(self, agent: int, time: int, purpose: str = "decide") -> Salt:
        """Number the next request of an agent; follow-ups count on from it by eights.

        Args:
            agent: Mesa `unique_id`.
            time: The step.
            purpose: What is asked for; each purpose is numbered by itself.
        """
        at, number = self._salts.get((agent, purpose), (time, 0))
        number = number if at == time else 0
        self._salts[agent, purpose] = (time, number + 8)
        return Salt(self.run_seed, agent, time, purpose, number)

    def numbering(self, agents: Iterable[int], purpose: str = "decide") -> dict[tuple[int, str], tuple[int, int]]:
        """Give the state of some agents' numbering, so that what was interrupted can be asked again.

        Args:
            agents: Their Mesa `unique_id`.
            purpose: What is about to be asked for.
        """
        return {(agent, purpose): self._salts.get((agent, purpose), (-1, 0)) for agent in agents}

    def renumber(self, state: Mapping[tuple[int, str], tuple[int, int]]) -> None:
        """Set the numbering back to a state."""
        self._salts.update(state)

    # -- opening models

    def mind(self, llm: str | LLM) -> Mind:
        """Open a model once for all agents that name it.

        Args:
            llm: Model string, or a transport of the user's own.
        """
        kept_as = llm if isinstance(llm, str) else id(llm)
        mind = self._minds.get(kept_as)
        if mind is None:
            with self._lock:
                mind = self._minds.setdefault(kept_as, self._open(llm))
        return mind

    def _open(self, llm: str | LLM) -> Mind:
        concurrency = int(self.options.get("concurrency", 64))
        if concurrency < 1:
            raise ConfigError(f"concurrency is at least 1, got {concurrency}")
        if llm == "rule":
            return Mind("rule", None, True, 1)
        name = llm if isinstance(llm, str) else str(getattr(llm, "name", type(llm).__name__))
        if self.runlog.mode == "replay" and llm != "random":
            return Mind(name, Recorded(self, _Silent()), True, 1)
        transport = llm
        if isinstance(transport, str):
            transport = open_llm(transport, self._endpoint())
            self._kept.append(transport)
        if getattr(transport, "immediate", False):
            return Mind(name, transport, True, 1)
        if getattr(transport, "is_person", False):
            return Mind(name, Recorded(self, transport), False, 1_000_000)
        limited = Limits(
            transport,
            concurrency=1 if llm == "local" else concurrency,
            requests_per_min=self.options.get("requests_per_min"),
            tokens_per_min=self.options.get("tokens_per_min"),
        )
        spending = self._spend(Retry(limited, attempts=int(self.options.get("attempts", 4))))
        return Mind(name, Recorded(self, spending), False, concurrency)

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
        return None if spec is None else self.mind(spec).llm

    # -- asking

    def gather(self, agents: Sequence[Thinker], seen: Sequence[Observation]) -> list[Decision | Failure]:
        """Let agents decide at once; give what they decided in the order asked.

        Args:
            agents: Who decides.
            seen: What each sees.

        Raises:
            BudgetSpent: If a budget is spent; what is in flight is waited for and kept.
            ReplayError: For the first agent, in the order asked, whose reply is not recorded.
            ConfigError: If an endpoint refuses its key or its model.
            Stopped: If `stop` was called meanwhile.
        """
        results: list[Any] = [None] * len(agents)
        waiting: dict[str, list[int]] = {}
        limits: dict[str, int] = {}
        for place, (agent, sight) in enumerate(zip(agents, seen, strict=True)):
            mind: Mind = self.mind(getattr(agent, "llm", "rule"))
            if mind.is_immediate:
                results[place] = self._done(run_now(agent.decide(sight)))
            else:
                waiting.setdefault(mind.name, []).append(place)
                limits[mind.name] = max(limits.get(mind.name, 1), mind.concurrency)
        if waiting:
            jobs = [(places, limits[name]) for name, places in waiting.items()]
            self.wait(self._ask_all(agents, seen, jobs, results))
        return results

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the event loop and wait for it; Ctrl-C and `stop` cancel it.

        Raises:
            Stopped: If `stop` was called meanwhile.
        """
        future = submit(work)
        self._running = future
        try:
            with self.while_waiting():
                return future.result()
        except BaseException as error:
            future.cancel()  # after Ctrl-C it still runs
            self.runlog.may_repeat = True  # what was answered is found when it is asked for again
            if isinstance(error, concurrent.futures.CancelledError):
                raise Stopped("stopped while agents were deciding; nothing has happened in this step yet") from None
            raise
        finally:
            self._running = None

    def stop(self) -> bool:
        """Cancel what is being asked now, from any thread; replies that came are kept.

        Returns:
            True if something was cancelled.
        """
        running = self._running
        return running is not None and running.cancel()

    async def _ask_all(
        self,
        agents: Sequence[Thinker],
        seen: Sequence[Observation],
        jobs: Sequence[tuple[list[int], int]],
        results: list[Any],
    ) -> None:
        """Let a bounded number of workers take agents in order, for each model by itself."""
        raised: dict[int, Exception] = {}

        async def worker(places: Iterator[int]) -> None:
            for place in places:
                if raised:
                    return
                try:
                    results[place] = self._done(await agents[place].decide(seen[place]))
                except Exception as error:  # noqa: BLE001 - raised below, for the first agent in order
                    raised[place] = error

        workers: list[Awaitable[None]] = []
        for places, concurrency in jobs:
            queue = iter(places)
            workers += [worker(queue) for _ in range(min(concurrency, len(places)))]
        await asyncio.gather(*workers)
        if raised:
            raise raised[min(raised)]

    def _done(self, decided: Decision | Failure) -> Decision | Failure:
        self.decisions += 1
        if isinstance(decided, Failure):
            self.count(Usage(failures=1))
        if self.on_decision is not None:
            self.on_decision(self.usage)
        return decided

    def close(self) -> None:
        """Close connections and the run log."""
        self._finish()
        self.runlog.close()


def _close_all(transports: list[LLM]) -> None:
    """Close what a forgotten engine, or one at the end of the process, has opened."""
    closing = [transport.close() for transport in transports if isinstance(transport, Closable)]
    transports.clear()
    if not closing:
        return
    loop = EventLoop.get()
    started = [asyncio.run_coroutine_threadsafe(work, loop) for work in closing]
    if threading.current_thread() is not EventLoop.thread:
        concurrent.futures.wait(started, timeout=5)


class _Silent:
    """Stands where a transport would be, in a replay."""

    async def reply(self, request: Request) -> Reply:
        raise ReplayError(f"a replay asks nobody ({request.model})")


def run_seed_of(model: Any) -> int:
    """Give the seed that the salts of a Mesa model's requests begin with.

    It comes from a copy of the model's generator, which is left as it was: equal seeds give equal salts.
    """
    return random.Random(repr(model.random.getstate()[1][:8])).getrandbits(31)
