"""Asks language models: many decisions at once, bounded, in order, with failures as values."""

from __future__ import annotations

import asyncio
import concurrent.futures
import random
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Protocol, TypeVar

from mesa_llm.errors import Stopped
from mesa_llm.llm.base import LLM
from mesa_llm.loop import run_now, submit
from mesa_llm.records import Decision, Failure, Observation, Salt, Usage
from mesa_llm.runlog import RunLog
from mesa_llm.transports import EngineOptions, Opened, Transports

T = TypeVar("T")


class Thinker(Protocol):
    """What the engine asks of an agent."""

    unique_id: int

    def decide(self, seen: Observation) -> Coroutine[Any, Any, Decision | Failure]:
        """Decide on what is seen; reads only."""
        ...


class Engine:
    """Asks language models on behalf of one model's agents.

    Attributes:
        runlog: Where replies are found and kept.
        run_seed: Seed that every request's salt begins with.
        usage: What has been used so far.
        decisions: How many decisions have been asked for.
        on_decision: Called with the usage after each decision, from any thread.
        while_waiting: Entered while replies are waited for: nothing is written meanwhile.
        should_stop: Says whether what is about to be asked is to be stopped at once.
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
        self._lock = threading.Lock()
        self._transports = Transports(self.runlog, self.options, self.count)
        self._salts: dict[tuple[int, str], tuple[int, int]] = {}
        self._running: concurrent.futures.Future[Any] | None = None

    @classmethod
    def of(cls, model: Any) -> Engine | None:
        """Give the engine of a Mesa model; None if it has none yet, see `mesa_llm.plain.engine_of`."""
        return cls._of.get(model)

    def join(self, model: Any) -> None:
        """Become the engine of a Mesa model."""
        type(self)._of[model] = self

    def count(self, used: Usage) -> None:
        """Add to what has been used; called from any thread."""
        with self._lock:
            self.usage += used

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

    # -- asking

    def open(self, llm: str | LLM) -> Opened:
        """Open a language model, once for all agents that name it.

        Args:
            llm: Model string, or a transport of the user's own.
        """
        return self._transports.open(llm)

    @property
    def parser(self) -> LLM | None:
        """The second model that puts faulty replies into form, if there is one."""
        return self._transports.parser

    def gather(
        self, agents: Sequence[Thinker], seen: Sequence[Observation], *, aside: bool = False
    ) -> list[Decision | Failure]:
        """Let agents decide at once; give what they decided in the order asked.

        Args:
            agents: Who decides.
            seen: What each sees.
            aside: True for what is no decision of the run: it is counted in calls and tokens alone.

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
            opened = self.open(getattr(agent, "llm", "rule"))
            if opened.is_immediate:
                results[place] = self._done(run_now(agent.decide(sight)), aside)
            else:
                waiting.setdefault(opened.name, []).append(place)
                limits[opened.name] = max(limits.get(opened.name, 1), opened.concurrency)
        if waiting:
            jobs = [(places, limits[name]) for name, places in waiting.items()]
            self.wait(self._ask_all(agents, seen, jobs, results, aside))
        return results

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the event loop and wait for it; Ctrl-C and `stop` cancel it.

        Raises:
            Stopped: If `stop` was called meanwhile.
        """
        future = submit(work)
        self._running = future
        if self.should_stop():  # told so before there was anything to cancel
            future.cancel()
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
        aside: bool,
    ) -> None:
        """Let a bounded number of workers take agents in order, for each model by itself."""
        raised: dict[int, Exception] = {}

        async def worker(places: Iterator[int]) -> None:
            for place in places:
                if raised:
                    return
                try:
                    results[place] = self._done(await agents[place].decide(seen[place]), aside)
                except Exception as error:  # noqa: BLE001 - raised below, for the first agent in order
                    raised[place] = error

        workers: list[Awaitable[None]] = []
        for places, concurrency in jobs:
            queue = iter(places)
            workers += [worker(queue) for _ in range(min(concurrency, len(places)))]
        await asyncio.gather(*workers)
        if raised:
            raise raised[min(raised)]

    def _done(self, decided: Decision | Failure, aside: bool) -> Decision | Failure:
        if aside:
            return decided
        self.decisions += 1
        if isinstance(decided, Failure):
            self.count(Usage(failures=1))
        if self.on_decision is not None:
            self.on_decision(self.usage)
        return decided

    def close(self) -> None:
        """Close connections and the run log."""
        self._transports.close()
        self.runlog.close()


def run_seed_of(model: Any) -> int:
    """Give the seed that the salts of a Mesa model's requests begin with.

    It comes from a copy of the model's generator, which is left as it was: equal seeds give equal salts.
    """
    return random.Random(repr(model.random.getstate()[1][:8])).getrandbits(31)
