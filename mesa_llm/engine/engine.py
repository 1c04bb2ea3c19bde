"""The engine: makes many decisions at once, within limits and in order; a failure is a value, not an exception."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
import random
import signal
import threading
import time as clock
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar, cast

from mesa_llm.config import Reasoning
from mesa_llm.engine.access import Access, EngineOptions, OpenedModel
from mesa_llm.engine.allowance import Allowances
from mesa_llm.engine.decision import ASKED_AGAIN, FORCED, NOT_ASKED, Query, always, is_declined, is_filtered
from mesa_llm.engine.event_loop import EventLoop, Workers, run_now, submit
from mesa_llm.engine.gc_pause import gc_paused, gc_running
from mesa_llm.engine.mcp import ToolSessions
from mesa_llm.engine.numbering import Numbering, TurnNumbers, purpose_counted
from mesa_llm.engine.opening import OpenedModels
from mesa_llm.engine.presentation import AS_WRITTEN, SAMPLE_SEEDS, Presentation
from mesa_llm.engine.reading.aliases import Aliases
from mesa_llm.engine.recorder import Recorder
from mesa_llm.errors import BudgetExceeded, ConfigError, HumanTimeout, Stopped
from mesa_llm.llm.batches.protocol import BatchProgress
from mesa_llm.llm.batches.stage import BatchStage
from mesa_llm.llm.limits import InFlight
from mesa_llm.llm.probabilities import Scoring, choices_of
from mesa_llm.llm.protocol import LLM
from mesa_llm.llm.surrogate.names import is_surrogate
from mesa_llm.records import Decision, Failure, Observation, Request, Salt, Usage
from mesa_llm.runlog.batches import OpenBatches, keys_in_batches
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted, one_line
from mesa_llm.tools.toolbox import ToolBox

if TYPE_CHECKING:
    from mesa import Model

T = TypeVar("T")

logger = logging.getLogger(__name__)


SENT_TOGETHER = 64
"""Number of requests written before they are sent, so that their replies arrive while others are being written."""

COLLECTOR_AFTER_S = 10.0
"""Seconds of waiting after which the garbage collector resumes; any sooner, it would scan all observations."""

GRACE_S = 5.0
"""Maximum number of seconds to wait for cancelled requests to end."""


class Thinker(Protocol):
    """What the engine needs to know about an agent."""

    @property
    def unique_id(self) -> int:
        """Mesa `unique_id`; 0 if no agent asks."""
        ...

    @property
    def request_purpose(self) -> str:
        """Purpose of its requests: `decide` for decisions of the run; others are counted under their purpose only."""
        ...

    @property
    def request_series(self) -> str:
        """Series of a question asked by hand between two steps; empty for the run's own questions."""
        ...

    @property
    def now(self) -> int:
        """The step that is being decided."""
        ...

    @property
    def opened(self) -> OpenedModel:
        """The language model it thinks with."""
        ...

    @property
    def waits_by_itself(self) -> bool:
        """Whether its own code may have to wait even if its language model replies at once."""
        ...

    def resolve(self, seen: Observation, opened: OpenedModel) -> Coroutine[Any, Any, Decision | Failure]:
        """Decide on an observation with the language model that was opened, and check the decision; reads only."""
        ...


Deferral = tuple[bool, AbstractContextManager[None] | None]
"""Whether interrupts were deferred before, and the handlers that do it."""

DecisionListener = Callable[[Sequence[Any], Sequence[Observation], Sequence[Decision | Failure]], None]
"""Called with agents, their observations and their decisions."""


@dataclass(slots=True, eq=False)
class _Deciding:
    """An agent that decides together with others."""

    index: int
    """Its index in the order asked."""

    agent: Thinker
    seen: Observation
    numbers: TurnNumbers
    opened: OpenedModel = field(init=False)
    decision: Decision | Failure | None = None


class Engine:
    """Sends the requests of one Mesa model's agents to language models.

    Attributes:
        runlog: Run log in which replies are looked up and recorded.
        run_seed: Seed of the run, the first part of every request's salt.
        scoring: What decisions of few choices are scored by; see `RunOptions`.
        presentation: How what agents read is put to their language models; set it with `present`.
        usage_by_purpose: Calls, tokens, dollars and failures so far by purpose: `decide`, `survey`, `memory`, …
        decisions: Number of decisions made so far.
        reprompted: Number of decisions whose first reply could not be used, so that the model was prompted again.
        parsed_leniently: Number of decisions whose reply was parsed with repairs; `Decision.reading` names them.
        not_asked: Number of decisions that needed no request, as only one was possible.
        by_surrogate: Number of decisions made by a surrogate mind, fitted to recorded decisions of a language model.
        declined: Number of decisions in which a language model refused the task, or a filter of its provider.
        filtered: Number of these that a filter stopped.
        human_timeouts: Number of decisions that people did not make in time; these also count as failures.
        allowances: What agents may spend, by agent or class; see `allow`.
        tool_sessions: Sessions with the servers whose tools agents may call.
        on_decision: Called with the usage after each decision, from any thread.
        on_decisions: Called with the agents that have decided together, their observations and their decisions, before
            anybody acts.
        on_batch: Called with the progress of a batch after each look at it, from any thread.
        while_waiting: Context manager entered while the engine waits for replies; nothing is written meanwhile.
        warn: Called with one line the first time in a run that more than half of a step's decisions fail, and about
            agents without any action.
        should_stop: Checked before each request; return True to stop.
        is_interrupted: Whether a Ctrl-C arrived while it was deferred; see `defer_interrupts`.
    """

    _of: ClassVar[weakref.WeakKeyDictionary[Any, Engine]] = weakref.WeakKeyDictionary()

    def __init__(self, runlog: RunLog | None = None, run_seed: int = 0, options: EngineOptions | None = None) -> None:
        """Set up an engine; nothing is opened before it is used.

        Args:
            runlog: Run log in which replies are looked up and recorded; None: one in memory.
            run_seed: Seed of the run.
            options: How language models are reached, and how much may be spent.
        """
        self.runlog = runlog or RunLog()
        self.run_seed = run_seed
        self.options: EngineOptions = options or {}
        self.scoring: Scoring = "replies"
        self.presentation: Presentation = AS_WRITTEN
        self._aliases: Callable[[], Aliases] | None = None
        self.decisions = self.human_timeouts = self.reprompted = self.parsed_leniently = 0
        self.not_asked = self.declined = self.filtered = self.by_surrogate = 0
        self.on_decision: Callable[[Usage], None] | None = None
        self.on_decisions: DecisionListener | None = None
        self.on_batch: Callable[[BatchProgress], object] = lambda progress: logger.info("%s", progress)
        self.warn: Callable[[str], object] = logger.warning
        self.while_waiting: Callable[[], AbstractContextManager[None]] = nullcontext
        self.should_stop: Callable[[], bool] = bool
        self.is_interrupted = self._is_handling = self._is_deferring = False
        self.usage_by_purpose: dict[str, Usage] = {}
        self._lock = threading.Lock()
        self._recorder = Recorder(self.runlog, self.count)
        self._models = OpenedModels(self._recorder, self.options)
        if not self._models.access.asks_in_batches:
            self._recorder.in_batches = keys_in_batches(self.runlog)
        self.allowances = Allowances()
        self.tool_sessions = ToolSessions(self.runlog, run_seed, self.options.get("named"))
        self._numbering = Numbering()
        self._has_warned = False
        self._warnings: set[str] = set()
        self._running: concurrent.futures.Future[Any] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False
        self._in_flight = InFlight()
        self._batches: BatchStage | None = None
        self._open_batches: OpenBatches | None = None
        self._has_ended = threading.Event()

    @classmethod
    def of(cls, model: Model[Any, Any]) -> Engine | None:
        """Return the engine of a Mesa model; None if it has none yet, see `mesa_llm.engine.plain.engine_of`."""
        own = getattr(model, "engine", None)  # that of an LLMModel; other models may use the name for anything
        return own if isinstance(own, Engine) else cls._of.get(model)

    def join(self, model: Model[Any, Any]) -> None:
        """Register itself as the engine of a Mesa model."""
        type(self)._of[model] = self

    def __getstate__(self) -> NoReturn:
        """Refuse to be copied or pickled, with advice on what to do instead."""
        raise ConfigError(
            "an engine holds connections and an open run log, and cannot be copied or pickled, nor can a model that "
            "keeps what connect() returned; make the model anew with the same parameters and log=, which replays it "
            "for nothing"
        )

    @property
    def usage(self) -> Usage:
        """Calls, tokens and dollars so far, and decisions that failed."""
        by_purpose = dict(self.usage_by_purpose)
        if not by_purpose:
            return _NOTHING
        total = sum(by_purpose.values(), _NOTHING)
        return replace(total, failures=by_purpose.get("decide", _NOTHING).failures)

    def count(self, usage: Usage, purpose: str = "decide") -> None:
        """Add to the usage; may be called from any thread.

        Args:
            usage: Calls, tokens and dollars to add.
            purpose: Purpose to count under; a second model that parses replies counts under that of the first.
        """
        purpose = purpose_counted(purpose)
        with self._lock:
            self.usage_by_purpose[purpose] = self.usage_by_purpose.get(purpose, _NOTHING) + usage

    def count_failure(self, purpose: str) -> None:
        """Count a failure under its purpose; only failed decisions also count in `usage`."""
        self.count(Usage(failures=1), purpose)

    def warn_of(self, failures: Sequence[Failure], n_decisions: int, step: int) -> None:
        """Warn of the first step in which more than half of the decisions failed, not counting those of people.

        Args:
            failures: The failures, in order.
            n_decisions: Number of decisions, including the failures.
            step: The step.
        """
        failures = [failure for failure in failures if failure.kind != HumanTimeout.__name__]
        if self._has_warned or 2 * len(failures) <= n_decisions:
            return
        self._has_warned = True
        reason = one_line(failures[0].reason, 300) or "unknown"
        self.warn(f"step {step}: {len(failures)} of {counted(n_decisions, 'decision')} failed: {reason}")

    def warn_once(self, line: str) -> None:
        """Warn of a slip in the model's set-up, unless it was said before; empty: nothing."""
        if line and line not in self._warnings:
            self._warnings.add(line)
            self.warn(line)

    def salt(self, agent: int, time: int, purpose: str = "decide") -> Salt:
        """Number the next request of an agent; its follow-ups continue from there.

        Within a turn, the number is one of those reserved for the turn, so that it never depends on how fast other
        agents get their replies.

        Args:
            agent: Mesa `unique_id`.
            time: The step.
            purpose: Purpose of the request; each purpose has a numbering of its own.
        """
        seed = self.run_seed + SAMPLE_SEEDS * self.presentation.sample
        return Salt(seed, agent, time, purpose, self._numbering.take(agent, time, purpose))

    def present(self, presentation: Presentation, aliases: Callable[[], Aliases]) -> None:
        """Put what agents read to their language models in another way from now on.

        Args:
            presentation: The presentation.
            aliases: Returns the names that are exchanged, if the presentation exchanges names.
        """
        self.presentation = presentation
        self._aliases = aliases if presentation.names == "exchanged" else None

    # -- asking

    @property
    def access(self) -> Access:
        """The connections to its language models."""
        return self._models.access

    def allow(self, allowances: Mapping[Any, Any] | None) -> None:
        """Set what agents may spend; see `Allowances`.

        Raises:
            ConfigError: If one is invalid.
        """
        self.allowances = Allowances(allowances)
        if self.allowances:
            self._recorder.charge = self.allowances.charge

    def open(self, llm: str | LLM, *, is_auxiliary: bool = False) -> OpenedModel:
        """Open a language model; all agents that name it share it.

        Args:
            llm: Model string, or a transport of the user's own.
            is_auxiliary: Whether it is asked in addition to the models that agents think with, as a judge is.
        """
        return self._models.open(llm, is_auxiliary=is_auxiliary)

    def paid(self, transport: LLM) -> LLM:
        """Return a transport whose replies are recorded and paid from the budget, and which no limit slows.

        Args:
            transport: What is called in place of a language model.
        """
        return self._models.paid(transport)

    def declare(self, llms: Iterable[str | LLM]) -> None:
        """Register the models that agents think with, so that a second model of that name uses their endpoint."""
        self._models.declare(llms)

    def scored(self, request: Request, opened: OpenedModel) -> Request:
        """Return a request that asks for the probabilities of its choices, if decisions are scored by them."""
        if self.scoring != "probabilities" or opened.capabilities.is_person:
            return request
        return replace(request, choices=choices_of(request))

    def query(
        self, opened: OpenedModel, seen: Observation, box: ToolBox, request: Request, reasoning: Reasoning
    ) -> Query:
        """Prepare a decision, including the second model that parses replies, if there is one.

        A language model, or its surrogate, is not asked where only one decision is possible, unless its reply is
        recorded already. People and the random baseline say what they say.
        """
        says_anything = opened.capabilities.is_person or opened.capabilities.ignores_prompt
        if says_anything and seen.speech is not None:
            seen = replace(seen, speech=None)
        version, parser = self.runlog.request_version, self._models.parser
        may_be_forced = opened.is_language_model or opened.capabilities.reads_facts
        return Query(
            opened.transport,
            seen,
            box,
            request,
            None if parser is None else parser.llm,
            "" if parser is None else parser.name,
            reasoning,
            tracebacks=self._recorder.tracebacks,
            requires_request=self.runlog.holds if may_be_forced else always,
            presentation=self.presentation,
            aliases=None if self._aliases is None else self._aliases(),
            drops_spent_tools=version > 2,
            forced_by=FORCED if version > 3 else request.model,
            takes_unended=version < 4,
        )

    def gather(self, agents: Sequence[Thinker], observations: Sequence[Observation]) -> list[Decision | Failure]:
        """Let agents decide concurrently; return their decisions in the order of the agents.

        Requests are numbered in that order before anything waits. After an interruption the same agents can be asked
        again: their requests have the same numbers, and find every reply that had arrived.

        Args:
            agents: The agents that decide; one may appear several times.
            observations: Observation of each of them.

        Raises:
            BudgetExceeded: If a budget is spent; replies to requests in flight are awaited and recorded first.
            ReplayError: For the first agent, in the order asked, whose reply is not recorded.
            ConfigError: If an endpoint refuses its key or its model, or an observation is not an `Observation`.
            Stopped: If `stop` was called meanwhile.
        """
        for agent, observation in zip(agents, observations, strict=True):
            require_observation(agent, observation)
        series = [
            ((agent.unique_id, agent.request_purpose, agent.request_series or observation.label), agent.now)
            for agent, observation in zip(agents, observations, strict=True)
        ]
        with self._numbering.reserved(series) as numbers:
            deciding = list(map(_Deciding, count(), agents, observations, numbers))
            waiting: dict[str, list[_Deciding]] = {}
            for one in deciding:
                agent = one.agent
                one.opened = opened = agent.opened
                if not opened.is_immediate:
                    waiting.setdefault(opened.name, []).append(one)
                elif agent.waits_by_itself:  # these start in order, as their rules may draw before they wait
                    waiting.setdefault("", []).append(one)
                else:  # its reply comes at once
                    decision = _run_numbered(one.numbers, agent.resolve(one.seen, opened))
                    one.decision = self._count_decision(decision, agent.request_purpose)
            if waiting:
                self.wait(self._ask_all(waiting))
        decisions = [cast("Decision | Failure", one.decision) for one in deciding]
        if self.on_decisions is not None:
            self.on_decisions(agents, observations, decisions)
        return decisions

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop and wait for its result.

        `stop` cancels it. After a Ctrl-C nothing more is sent, and the replies to what was sent are awaited, as they
        are paid for; a second Ctrl-C, or the timeout of a request, cancels the rest.

        Raises:
            Stopped: If `stop` was called meanwhile.
        """
        self._task, self._is_cancelled, self._in_flight = None, False, InFlight()
        self._batches = self._new_batch_stage() if self._models.access.asks_in_batches else None
        self._has_ended = threading.Event()
        try:
            future = self._running = submit(self._as_task(work))  # a Ctrl-C may arrive here, too
            with self.while_waiting():
                is_waiting = bool(concurrent.futures.wait([future], COLLECTOR_AFTER_S).not_done)
                with gc_running() if is_waiting else nullcontext():
                    return future.result()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not self.is_interrupted:
                self._wait_for_replies()
            self._cancel()
            if self._task is not None:  # it is still running, and replies that came are to be recorded first
                self._has_ended.wait(GRACE_S)
            self.runlog.may_repeat = True  # replies that came are found when they are requested again
            if isinstance(error, concurrent.futures.CancelledError):
                raise Stopped("stopped while agents were deciding; nothing has happened in this step yet") from None
            raise
        finally:
            self._running = None
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:  # what was to run it has failed before
                work.close()

    def _wait_for_replies(self) -> None:
        """Send no more requests, and wait for the replies to those in flight, except those of people."""
        in_flight = self._in_flight
        with suppress(KeyboardInterrupt):
            submit(_end_in_flight(in_flight))
            if in_flight.n:
                requests = counted(in_flight.n, "request")
                logger.warning("waiting for the replies to %s; interrupt again to give them up", requests)
            in_flight.none_left.wait(self._models.access.timeout_s)

    def _new_batch_stage(self) -> BatchStage:
        """Begin a stage whose requests are sent in batches."""
        if self._open_batches is None:
            self._open_batches = OpenBatches(self.runlog)
            if self.runlog.mode == "record" and self.runlog.path is None:
                self.warn_once(
                    "batches are sent and there is no run log: if the run is stopped, their replies are lost"
                )
        return BatchStage(self._open_batches, lambda progress: self.on_batch(progress), self._in_flight)

    async def _as_task(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine as a task that `stop` can cancel, even if `stop` was called before the task began."""
        self._task, has_ended = asyncio.current_task(), self._has_ended
        InFlight.of_run.set(self._in_flight)
        batches = self._batches
        BatchStage.of_run.set(batches)
        try:
            if self._is_cancelled or self.should_stop():
                work.close()
                raise asyncio.CancelledError
            try:
                result = await work
            except Stopped:  # perhaps because the run log cannot be written, which is the reason to name
                self._recorder.commit()
                raise
            self._recorder.commit()
            return result
        finally:
            if batches is not None:
                batches.close()
            has_ended.set()

    @contextmanager
    def interrupts_handled(self) -> Generator[None]:
        """Install once, for a whole run, what `defer_interrupts` would install each time."""
        if self._is_handling or threading.current_thread() is not threading.main_thread():
            yield
            return
        self._is_deferring, self._is_handling = False, True
        try:
            with self._own_handlers():
                yield
        finally:
            self._is_handling = False

    def defer_interrupts(self) -> Deferral | None:
        """Defer a first Ctrl-C until `end_deferral`; the caller then checks `is_interrupted`.

        SIGTERM is deferred as well if the program handles it. Threads other than the main one are never interrupted.

        Returns:
            What `end_deferral` takes.
        """
        if threading.current_thread() is not threading.main_thread():
            return None
        was_deferring, self._is_deferring = self._is_deferring, True
        handlers = None if self._is_handling else self._own_handlers()
        if handlers is not None:
            handlers.__enter__()
        return was_deferring, handlers

    def end_deferral(self, deferral: Deferral | None) -> None:
        """Let Ctrl-C and SIGTERM interrupt again, as before `defer_interrupts`, which returned the deferral."""
        if deferral is None:
            return
        was_deferring, handlers = deferral
        try:
            if handlers is not None:
                handlers.__exit__(None, None, None)
        finally:
            self._is_deferring = was_deferring

    @contextmanager
    def _own_handlers(self) -> Generator[None]:
        """Handle Ctrl-C, and SIGTERM if the program handles it, in the main thread."""
        handlers = {signal_number: signal.getsignal(signal_number) for signal_number in (signal.SIGINT, signal.SIGTERM)}
        previous = {signal_number: handler for signal_number, handler in handlers.items() if callable(handler)}

        def defer(signal_number: int, frame: FrameType | None) -> None:
            if not self._is_deferring or self.is_interrupted:
                previous[signal.Signals(signal_number)](signal_number, frame)
                return
            self.is_interrupted = True
            logger.warning("the step is being finished; interrupt again to break it off")

        for signal_number in previous:
            signal.signal(signal_number, defer)
        try:
            yield
        finally:
            for signal_number, handler in previous.items():
                signal.signal(signal_number, handler)

    def finish(self) -> None:
        """Send no more requests, and cancel the rest when the replies to those in flight have arrived.

        Does from any thread what a Ctrl-C does in the main one; returns at once.
        """
        asyncio.run_coroutine_threadsafe(self._finished(self._in_flight), EventLoop.get())

    async def _finished(self, in_flight: InFlight) -> None:
        await _end_in_flight(in_flight)
        ends = clock.monotonic() + self._models.access.timeout_s
        while in_flight.n and clock.monotonic() < ends:
            await asyncio.sleep(0.01)
        if in_flight is self._in_flight:  # and nothing else is being asked by now
            self._cancel()

    def stop(self) -> bool:
        """Cancel the current requests, from any thread; replies that have arrived stay recorded.

        Returns:
            True if something was cancelled.
        """
        work = (self._task, self._running)  # the task may begin before the thread that submitted it holds its future
        if all(one is None or one.done() for one in work):
            return False
        self._cancel()
        return True

    def _cancel(self) -> None:
        self._is_cancelled = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def _ask_all(self, waiting: Mapping[str, Sequence[_Deciding]]) -> None:
        """Let agents decide in order, with a bounded number of workers per language model.

        Args:
            waiting: Name of a language model → who decides with it; of the empty name, all decide at once.
        """
        errors: list[tuple[_Deciding, Exception]] = []
        batches, in_flight = self._batches, self._in_flight

        async def work(queue: Iterator[_Deciding], stage: BatchStage | None) -> None:
            try:
                for one in queue:
                    if errors or in_flight.is_ending:
                        return
                    Numbering.of_turn.set(one.numbers)
                    try:
                        if batches is None:
                            decision = await one.agent.resolve(one.seen, one.opened)
                        else:
                            with batches.deciding():
                                decision = await one.agent.resolve(one.seen, one.opened)
                        one.decision = self._count_decision(decision, one.agent.request_purpose)
                    except asyncio.CancelledError as error:
                        if self._is_cancelled or cast("asyncio.Task[Any]", asyncio.current_task()).cancelling():
                            raise
                        stray = RuntimeError("CancelledError was raised where nothing had been cancelled")
                        stray.__cause__ = error
                        errors.append((one, stray))
                    except Exception as error:  # noqa: BLE001 - raised below, for the first agent in order
                        errors.append((one, error))
            except BaseException as error:
                workers.fail(error)
                raise
            finally:
                if stage is not None:
                    stage.end_decider()
                workers.end_one()

        jobs: list[tuple[Sequence[_Deciding], int, BatchStage | None]] = []
        for name, group in waiting.items():
            n_workers = min(len(group), max(one.opened.concurrency for one in group) if name else len(group))
            stage = None if group[0].opened.capabilities.is_person else batches  # a batch does not wait for people
            jobs.append((group, n_workers, stage))
            if stage is not None:
                stage.begin_deciders(n_workers)
        workers = Workers()
        async with workers:
            with gc_paused():
                for group, n_workers, stage in jobs:
                    queue = iter(group)
                    for n_begun in range(1, 1 + n_workers):
                        workers.start(work(queue, stage))
                        if n_begun % SENT_TOGETHER == 0:
                            await asyncio.sleep(0)
                await asyncio.sleep(0)  # the last requests are sent in the next pass of the event loop
            await self._recorder.prepare_calls()
        if batches is not None and all(isinstance(error, BudgetExceeded) for _, error in errors):
            batches.end()
        if errors:  # what stopped others is the reason, not that they were stopped
            raise min(errors, key=lambda item: (isinstance(item[1], Stopped), item[0].index))[1]
        if any(one.decision is None for group in waiting.values() for one in group):
            raise Stopped("stopped before everybody was asked; nothing has happened in this step yet")

    @property
    def n_asked(self) -> int:
        """Number of decisions that were asked for."""
        return self.decisions - self.not_asked

    @property
    def all_failed(self) -> bool:
        """Whether decisions were asked for, and every one of them failed, as when an endpoint is dead."""
        return 0 < self.n_asked <= self.usage.failures

    def count_at_once(
        self, agents: Sequence[Thinker], observations: Sequence[Observation], decisions: Sequence[Decision | Failure]
    ) -> None:
        """Count decisions that rules have made without `gather`; each takes the number of a turn, as all do.

        Args:
            agents: The agents that decided.
            observations: Observation of each of them.
            decisions: Decision or failure of each of them.
        """
        if not agents:
            return
        turns = [(agent.unique_id, "decide", seen.label) for agent, seen in zip(agents, observations, strict=True)]
        self._numbering.skip(turns, agents[0].now)
        if self.on_decision is None and Failure not in set(map(type, decisions)):
            self.decisions += len(decisions)
            return
        for decision in decisions:
            self._count_decision(decision, "decide")

    def _count_decision(self, decision: Decision | Failure, purpose: str) -> Decision | Failure:
        if isinstance(decision, Failure):
            self.count_failure(purpose)
            self.filtered += purpose == "decide" and bool(decision.keys) and is_filtered(decision)
        if purpose != "decide":
            return decision
        self.decisions += 1
        self.human_timeouts += isinstance(decision, Failure) and decision.kind == HumanTimeout.__name__
        self.not_asked += decision.reading == NOT_ASKED
        self.by_surrogate += bool(decision.keys) and isinstance(decision, Decision) and is_surrogate(decision.by)
        self.declined += bool(decision.keys) and is_declined(decision)
        if ";" in decision.reading or decision.reading == ASKED_AGAIN:
            reading = decision.reading.removeprefix(ASKED_AGAIN)
            self.reprompted += reading != decision.reading
            self.parsed_leniently += ";" in reading.removeprefix("; ")
        if self.on_decision is not None:
            self.on_decision(self.usage)
        return decision

    def close(self) -> None:
        """Close connections and the run log."""
        self.tool_sessions.close()
        self._models.close()
        self.runlog.close()


def require_observation(agent: Thinker, seen: Any) -> None:
    """Check that an observation has the right types, and options in an order that is the same on every machine.

    Raises:
        ConfigError: If it is not an `Observation`, its options or tools have another form, or the values of an
            option are not an ordered list.
    """
    if not isinstance(seen, Observation):
        raise ConfigError(
            f"{type(agent).__name__}.observe() returned {seen!r:.60}; return an Observation, such as "
            "Observation('a text')"
        )
    options: Any = seen.options
    tools: Any = seen.tools
    # isinstance with Mapping is slow, and nearly all are dictionaries
    if not (type(options) is dict or isinstance(options, Mapping)) or isinstance(tools, str):
        raise ConfigError(
            f"{type(agent).__name__} observes options={options!r:.60} and tools={tools!r:.60}; options are a "
            "dictionary from the names of arguments to tuples of values, and tools a tuple of names"
        )
    for name, values in cast("Mapping[str, Any]", options).items():
        if type(values) is tuple or (isinstance(values, Iterable) and not isinstance(values, str | set | frozenset)):
            continue
        raise ConfigError(
            f"options of {name!r}, which {type(agent).__name__} observes, are {values!r:.60}; give a tuple, as "
            "tuple(sorted(…)) of a set, whose order differs from run to run"
        )


async def _end_in_flight(in_flight: InFlight) -> None:
    in_flight.end()


def _run_numbered(numbers: TurnNumbers, work: Coroutine[Any, Any, T]) -> T:
    """Run a decision that does not wait, with the request numbers of its turn."""
    token = Numbering.of_turn.set(numbers)
    try:
        return run_now(work)
    finally:
        Numbering.of_turn.reset(token)


_NOTHING = Usage()


def run_seed_of(model: Model[Any, Any]) -> int:
    """Return the seed that the salts of a Mesa model's requests begin with.

    It is drawn from a copy of the model's generator, which itself is left untouched: equal seeds give equal salts.
    """
    return random.Random(repr(model.random.getstate()[1][:8])).getrandbits(31)
