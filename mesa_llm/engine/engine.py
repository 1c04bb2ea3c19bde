"""Asks language models: many decisions at once, bounded, in order, with failures as values."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import logging
import random
import signal
import threading
import time as clock
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from types import FrameType
from typing import Any, ClassVar, Protocol, TypeVar

from mesa_llm.config import Reasoning
from mesa_llm.engine.decision import Asking
from mesa_llm.engine.loop import EventLoop, run_now, submit
from mesa_llm.engine.transports import EngineOptions, Opened, Transports
from mesa_llm.errors import ConfigError, Stopped
from mesa_llm.llm.limits import InFlight
from mesa_llm.llm.protocol import LLM
from mesa_llm.records import Decision, Failure, Observation, Request, Salt, Usage
from mesa_llm.runlog.log import RunLog
from mesa_llm.tools.toolbox import ToolBox

T = TypeVar("T")

logger = logging.getLogger(__name__)


Place = tuple[int, str, str]
"""Agent, purpose and series (the label of what is asked, or what sets apart what is asked by hand): numbered alone."""

STRIDE = 1024
"""Numbers of requests that one turn has for itself; each question that it asks takes eight, for its follow-ups."""


GRACE_S = 5.0
"""Seconds that are waited at most for cancelled requests to end."""


class Thinker(Protocol):
    """What the engine asks of an agent."""

    @property
    def unique_id(self) -> int:
        """Mesa's number of it; 0 for who is no agent."""
        ...

    @property
    def request_purpose(self) -> str:
        """What it is asked for; all but `decide` is no decision of the run, and is counted under its purpose alone."""
        ...

    @property
    def request_series(self) -> str:
        """What sets apart what is asked by hand between two steps; empty for what the run asks."""
        ...

    @property
    def now(self) -> int:
        """The step that is being decided."""
        ...

    @property
    def opened(self) -> Opened:
        """What it thinks with."""
        ...

    @property
    def waits_by_itself(self) -> bool:
        """Whether it may wait for something even where its own language model replies at once."""
        ...

    def settle(self, seen: Observation) -> Coroutine[Any, Any, Decision | Failure]:
        """Decide on what is seen, and check the decision; reads only."""
        ...


class _Line:
    """The numbers that one turn has for its requests, in the order in which it makes them."""

    __slots__ = ("base", "n_asked")

    def __init__(self, base: int) -> None:
        self.base, self.n_asked = base, 0

    def take(self) -> int:
        """Take the next number."""
        number = self.base + 8 * self.n_asked
        self.n_asked += 1
        if number >= self.base + STRIDE:
            raise ConfigError(f"one decision asked more than {STRIDE // 8} questions; ask them in turns of their own")
        return number


_LINE: ContextVar[_Line | None] = ContextVar("mesa_llm_line", default=None)
"""The numbers of the turn that is being decided here."""


class Engine:
    """Asks language models on behalf of one model's agents.

    Attributes:
        runlog: Where replies are found and kept.
        run_seed: Seed that every request's salt begins with.
        usage: What has been used so far.
        usage_by_purpose: The same for each purpose: `decide`, `survey`, `memory`, …; failures are counted here for all.
        decisions: How many decisions have been asked for.
        on_decision: Called with the usage after each decision, from any thread.
        while_waiting: Entered while replies are waited for: nothing is written meanwhile.
        should_stop: Says whether what is about to be asked is to be stopped at once.
        is_interrupted: Whether a Ctrl-C came while it was deferred; see `interrupts_deferred`.
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
        self.should_stop: Callable[[], bool] = bool
        self.is_interrupted = False
        self.usage_by_purpose: dict[str, Usage] = {}
        self._lock = threading.Lock()
        self._transports = Transports(self.runlog, self.options, self.count)
        self._turns: dict[Place, tuple[int, int]] = {}
        self._counted_step = 0
        self._running: concurrent.futures.Future[Any] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False
        self._in_flight = InFlight()
        self._has_ended = threading.Event()

    @classmethod
    def of(cls, model: Any) -> Engine | None:
        """Return the engine of a Mesa model; None if it has none yet, see `mesa_llm.engine.plain.engine_of`."""
        return cls._of.get(model)

    def join(self, model: Any) -> None:
        """Become the engine of a Mesa model."""
        type(self)._of[model] = self

    def count(self, used: Usage, purpose: str = "decide") -> None:
        """Add to what has been used; called from any thread.

        Args:
            used: What has been used.
            purpose: What for; a second model that puts replies into form counts as the first.
        """
        purpose = purpose.removesuffix("-form")
        with self._lock:
            self.usage += used
            self.usage_by_purpose[purpose] = self.usage_by_purpose.get(purpose, _NOTHING) + used

    def count_failure(self, purpose: str) -> None:
        """Count an answer that did not come; only failed decisions count in `usage` as well."""
        if purpose == "decide":
            self.count(Usage(failures=1))
            return
        with self._lock:
            self.usage_by_purpose[purpose] = self.usage_by_purpose.get(purpose, _NOTHING) + Usage(failures=1)

    def salt(self, agent: int, time: int, purpose: str = "decide") -> Salt:
        """Number the next request of an agent; its follow-ups count on from there.

        In a turn, the number comes from those that the turn took when it was put in line, so that it never depends
        on how fast others are answered.

        Args:
            agent: Mesa `unique_id`.
            time: The step.
            purpose: What is asked for; each purpose is numbered by itself.
        """
        line = _LINE.get() or self._put_in_line((agent, purpose, ""), time)
        return Salt(self.run_seed, agent, time, purpose, line.take())

    def _put_in_line(self, place: Place, time: int) -> _Line:
        """Take the numbers of one turn; each step begins to count anew, and forgets what was counted before."""
        if time > self._counted_step:
            self._turns.clear()
            self._counted_step = time
        at, number = self._turns.get(place, (time, 0))
        number = number if at == time else 0
        self._turns[place] = (time, number + 1)
        series = place[2]
        first = int(hashlib.sha256(series.encode("utf-8", "surrogatepass")).hexdigest()[:7], 16) << 10 if series else 0
        return _Line((first + number) * STRIDE)

    # -- asking

    def open(self, llm: str | LLM, *, is_second: bool = False) -> Opened:
        """Open a language model, once for all agents that name it.

        Args:
            llm: Model string, or a transport of the user's own.
            is_second: Whether it is asked besides the models that agents think with, as a judge is.
        """
        return self._transports.open(llm, is_second=is_second)

    def declare(self, llms: Iterable[str | LLM]) -> None:
        """Note the models that agents think with, so that a second model of the same name is asked as they are."""
        self._transports.declare(llms)

    def asking(self, opened: Opened, seen: Observation, box: ToolBox, request: Request, reasoning: Reasoning) -> Asking:
        """Return all that one decision needs, with the second model that puts replies into form, if there is one."""
        if opened.llm is None:
            raise ConfigError("a rule is not asked")
        parser = self._transports.parser
        if parser is None:
            return Asking(opened.llm, seen, box, request, reasoning=reasoning)
        return Asking(opened.llm, seen, box, request, parser.llm, parser.name, reasoning)

    def gather(self, agents: Sequence[Thinker], seen: Sequence[Observation]) -> list[Decision | Failure]:
        """Let agents decide at once; return what they decided in the order asked.

        Requests are numbered in that order, before anything waits. What was interrupted can be asked again: it then
        has the same numbers, and finds every reply that came.

        Args:
            agents: Who decides; one may stand there several times.
            seen: What each sees.

        Raises:
            BudgetSpent: If a budget is spent; what is in flight is waited for and kept.
            ReplayError: For the first agent, in the order asked, whose reply is not recorded.
            ConfigError: If an endpoint refuses its key or its model.
            Stopped: If `stop` was called meanwhile.
        """
        places: list[Place] = [
            (agent.unique_id, agent.request_purpose, agent.request_series or sight.label)
            for agent, sight in zip(agents, seen, strict=True)
        ]
        before = {place: self._turns.get(place) for place in places}
        lines = [self._put_in_line(place, agent.now) for place, agent in zip(places, agents, strict=True)]
        results: list[Any] = [None] * len(agents)
        waiting: dict[str, list[int]] = {}
        limits: dict[str, int] = {}
        try:
            for index, (agent, sight) in enumerate(zip(agents, seen, strict=True)):
                opened = agent.opened
                if not opened.is_immediate:
                    waiting.setdefault(opened.name, []).append(index)
                    limits[opened.name] = max(limits.get(opened.name, 1), opened.concurrency)
                elif agent.waits_by_itself:  # all of them begin in order, as their rules may draw before they wait
                    waiting.setdefault("", []).append(index)
                    limits[""] = len(agents)
                else:
                    results[index] = self._done(_in_line(lines[index], agent.settle(sight)), agent.request_purpose)
            if waiting:
                jobs = [(indices, limits[name]) for name, indices in waiting.items()]
                self.wait(self._ask_all(agents, seen, lines, jobs, results))
        except BaseException:
            for place, turn in before.items():
                self._turns.pop(place)
                if turn is not None:
                    self._turns[place] = turn
            raise
        return results

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the event loop and wait for it.

        `stop` cancels it. A Ctrl-C lets nothing more be sent and waits for the replies to what was sent, as they are
        paid for; another one, or the time-out of a request, cancels what is left.

        Raises:
            Stopped: If `stop` was called meanwhile.
        """
        self._task, self._is_cancelled, self._in_flight = None, False, InFlight()
        self._has_ended = threading.Event()
        try:
            future = self._running = submit(self._as_task(work))  # a Ctrl-C may come here, too
            with self.while_waiting():
                return future.result()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not self.is_interrupted:
                self._wait_for_replies()
            self._cancel()
            if self._task is not None:  # it still runs, and what has come is to be kept before anybody goes on
                self._has_ended.wait(GRACE_S)
            self.runlog.may_repeat = True  # what was answered is found when it is asked for again
            if isinstance(error, concurrent.futures.CancelledError):
                raise Stopped("stopped while agents were deciding; nothing has happened in this step yet") from None
            raise
        finally:
            self._running = None

    def _wait_for_replies(self) -> None:
        """Send nothing more, and wait for the replies to what was sent; those of people are not waited for."""
        in_flight = self._in_flight
        with suppress(KeyboardInterrupt):
            submit(_ended(in_flight))
            if in_flight.n:
                logger.warning("waiting for the replies to %d requests; interrupt again to give them up", in_flight.n)
            in_flight.none_left.wait(self._transports.access.timeout_s)

    async def _as_task(self, work: Coroutine[Any, Any, T]) -> T:
        """Let work be cancelled by `stop`, also by one that came before it began."""
        self._task, has_ended = asyncio.current_task(), self._has_ended
        InFlight.of_run.set(self._in_flight)
        try:
            if self._is_cancelled or self.should_stop():
                work.close()
                raise asyncio.CancelledError
            return await work
        finally:
            has_ended.set()

    @contextmanager
    def interrupts_deferred(self) -> Generator[None]:
        """Let a first Ctrl-C wait until the block is over; the caller asks for `is_interrupted` then.

        SIGTERM waits as well where the program handles it. Other threads than the main one are never interrupted.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        before = {number: handler for number, handler in handlers.items() if callable(handler)}

        def defer(number: int, frame: FrameType | None) -> None:
            if self.is_interrupted:
                before[signal.Signals(number)](number, frame)
            self.is_interrupted = True
            logger.warning("the step is being finished; interrupt again to break it off")

        for number in before:
            signal.signal(number, defer)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def finish(self) -> None:
        """Send nothing more of what is being asked now, and cancel it once the replies to what was sent have come.

        From any thread, as a Ctrl-C does in the main one; returns at once.
        """
        asyncio.run_coroutine_threadsafe(self._finished(self._in_flight), EventLoop.get())

    async def _finished(self, in_flight: InFlight) -> None:
        await _ended(in_flight)
        ends = clock.monotonic() + self._transports.access.timeout_s
        while in_flight.n and clock.monotonic() < ends:
            await asyncio.sleep(0.01)
        if in_flight is self._in_flight:  # and nothing else is asked by now
            self._cancel()

    def stop(self) -> bool:
        """Cancel what is being asked now, from any thread; replies that came are kept.

        Returns:
            True if something was cancelled.
        """
        running = self._running
        if running is None or running.done():
            return False
        self._cancel()
        return True

    def _cancel(self) -> None:
        self._is_cancelled = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def _ask_all(
        self,
        agents: Sequence[Thinker],
        seen: Sequence[Observation],
        lines: Sequence[_Line],
        jobs: Sequence[tuple[list[int], int]],
        results: list[Any],
    ) -> None:
        """Let a bounded number of workers take agents in order, for each model by itself."""
        raised: dict[int, Exception] = {}

        async def worker(indices: Iterator[int]) -> None:
            for index in indices:
                if raised or self._in_flight.is_ending:
                    return
                _LINE.set(lines[index])
                try:
                    results[index] = self._done(await agents[index].settle(seen[index]), agents[index].request_purpose)
                except Exception as error:  # noqa: BLE001 - raised below, for the first agent in order
                    raised[index] = error

        workers: list[Awaitable[None]] = []
        for indices, concurrency in jobs:
            queue = iter(indices)
            workers += [worker(queue) for _ in range(min(concurrency, len(indices)))]
        await asyncio.gather(*workers)
        if raised:
            raise raised[min(raised)]
        if self._in_flight.is_ending and any(result is None for result in results):
            raise Stopped("stopped before everybody was asked; nothing has happened in this step yet")

    def _done(self, decided: Decision | Failure, purpose: str) -> Decision | Failure:
        if isinstance(decided, Failure):
            self.count_failure(purpose)
        if purpose != "decide":
            return decided
        self.decisions += 1
        if self.on_decision is not None:
            self.on_decision(self.usage)
        return decided

    def close(self) -> None:
        """Close connections and the run log."""
        self._transports.close()
        self.runlog.close()


async def _ended(in_flight: InFlight) -> None:
    in_flight.end()


def _in_line(line: _Line, work: Coroutine[Any, Any, T]) -> T:
    """Run the decision of a turn that waits for nothing."""
    token = _LINE.set(line)
    try:
        return run_now(work)
    finally:
        _LINE.reset(token)


_NOTHING = Usage()


def run_seed_of(model: Any) -> int:
    """Return the seed that the salts of a Mesa model's requests begin with.

    It comes from a copy of the model's generator, which is left as it was: equal seeds give equal salts.
    """
    return random.Random(repr(model.random.getstate()[1][:8])).getrandbits(31)
