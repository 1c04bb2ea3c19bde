"""Collects the requests of a stage until nobody in it can add another, and sends them as one batch.

The engine knows which decisions are being made, and each decision knows which of its requests wait for a batch, or for
others to be settled in a budget. Once every decision waits, what has been collected is sent. A decision that prompts
its model again after a reply is part of the next batch, with all others that do so.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time as clock
import weakref
from collections.abc import Callable, Collection, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from mesa_llm.errors import ConfigError, MesaLLMError, RateLimited, TransportError
from mesa_llm.llm.batches.protocol import (
    BatchForm,
    BatchGone,
    BatchLedger,
    BatchProgress,
    BatchState,
    MaybeCreated,
    lost,
)
from mesa_llm.llm.budget import UsageMeter
from mesa_llm.llm.protocol import LLM, close_transport
from mesa_llm.llm.waiting import FIRST_LOOK_S, BatchClock, BatchedDecision, patiently, waits
from mesa_llm.records import BatchIntent, Reply, Request, Usage
from mesa_llm.text import counted

if TYPE_CHECKING:
    from mesa_llm.llm.openai.connection import Response

logger = logging.getLogger(__name__)

LISTED_WITHIN_S = 15.0
"""Seconds after which a batch that is in no list was not created."""

MAX_CREATIONS = 3
"""Maximum number of times that a batch is created of which it is not known each time whether it was."""

FIRST_WAIT_S, LONGEST_WAIT_S = 5.0, 600.0
"""Seconds to wait where a provider takes no more tokens: at first, after which the wait doubles, and at most."""

MAX_WAITS = 150
"""Maximum number of such waits, in about a day."""

PASSES = 4
"""Passes of the event loop in which a request that a budget has let through reaches its batch."""


@dataclass(slots=True, eq=False)
class _Line:
    """A request that waits for its batch."""

    form: BatchForm
    request: Request
    body: bytes
    response: asyncio.Future[Response]
    meter: UsageMeter | None

    @property
    def key(self) -> str:
        return self.request.key

    def estimate(self) -> Usage:
        """Return what it is taken to cost until its reply is there."""
        return Usage(requests=1) if self.meter is None else self.meter.estimate()

    def keep(self) -> None:
        """Note that it is not with the provider."""
        if self.meter is not None:
            self.meter.wait()

    def send(self) -> None:
        """Note that it is with the provider, who may bill it from now on."""
        if self.meter is not None:
            self.meter.send(in_batch=True)


async def post(form: BatchForm, request: Request, body: bytes) -> Response:
    """Send a request with the next batch, or collect it from the batch in which a stopped run has sent it.

    Args:
        form: The provider's form of batches, at its address.
        request: The request.
        body: Its body as it would be sent alone.

    Raises:
        ConfigError: If the provider has no batches, refuses the key, or cannot be reached.
        TransportError: If the batch fails, or loses the request.
        Stopped: If the run is ending.
    """
    stage = _STAGE.get()
    if stage is None:
        raise ConfigError("a request of a batch is sent through `Batched`")
    meter = UsageMeter.of_reply.get()
    if meter is not None:
        meter.wait()  # given up before its batch is created, it costs nothing
    return await stage.post(form, request, body, meter)


class Batched:
    """The outermost layer around a transport that asks in batches: counts the requests of each decision."""

    def __init__(self, inner: LLM) -> None:
        """Wrap a transport.

        Args:
            inner: The transport in its layers, which was returned by `Batchable.batched`.
        """
        self.inner = inner
        self._stages: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, BatchStage] = weakref.WeakKeyDictionary()

    async def reply(self, request: Request) -> Reply:
        """Send the request with the next batch.

        Raises:
            TransportError: As the transport raises it.
        """
        if (decision := BatchedDecision.of_task.get()) is not None:
            return await self._reply(request, decision)
        stage = BatchStage.of_run.get() or self._stages.setdefault(asyncio.get_running_loop(), BatchStage())
        stage.begin_deciders(1)
        try:
            with stage.deciding() as decision:
                return await self._reply(request, decision)
        finally:
            stage.end_decider()

    async def _reply(self, request: Request, decision: BatchedDecision) -> Reply:
        decision.change(n_open=1)
        try:
            return await self.inner.reply(request)
        finally:
            decision.change(n_open=-1)

    async def close(self) -> None:
        """Close the transport."""
        await close_transport(self.inner)


class BatchStage:
    """The decisions of one stage, and the batches in which their requests are sent.

    It belongs to one event loop.
    """

    of_run: ClassVar[ContextVar[BatchStage | None]] = ContextVar("mesa_llm_batch_stage", default=None)
    """The stage that the current task belongs to."""

    def __init__(
        self,
        ledger: BatchLedger | None = None,
        report: Callable[[BatchProgress], object] | None = None,
        in_flight: AbstractContextManager[None] | None = None,
    ) -> None:
        """Start without a decision.

        Args:
            ledger: Where batches are written down; None: nowhere.
            report: Called after each look at a batch.
            in_flight: Entered while a batch is created, in which a run does not end; raises `Stopped` if the run is
                ending.
        """
        self._ledger = ledger
        self._report = report or (lambda progress: None)
        self._in_flight = in_flight or nullcontext()
        self._n_deciding = self._n_waiting = 0
        self._queue: list[_Line] = []
        self._sending: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[str, tuple[str, BatchProgress]] = {}  # id → address, progress
        self._answered: list[str] = []  # batches whose replies have been handed out
        self._is_closed = False

    def begin_deciders(self, n: int) -> None:
        """Expect the decisions of `n` tasks, each of which makes them in turn and then calls `end_decider`."""
        self._n_deciding += n

    def end_decider(self) -> None:
        """Note that a task makes no more decisions."""
        self._n_deciding -= 1
        self._look_soon()

    @contextmanager
    def deciding(self) -> Generator[BatchedDecision]:
        """Make a decision; requests in this block, and in tasks that it starts, are part of it."""
        decision = BatchedDecision(self.change)
        tokens = BatchedDecision.of_task.set(decision), _STAGE.set(self)
        try:
            yield decision
        finally:
            BatchedDecision.of_task.reset(tokens[0])
            _STAGE.reset(tokens[1])

    def change(self, n_waiting: int) -> None:
        """Count decisions that begin or end to wait."""
        self._n_waiting += n_waiting
        self._look_soon()

    async def post(self, form: BatchForm, request: Request, body: bytes, meter: UsageMeter | None = None) -> Response:
        """Wait for the response to a request, which is sent with the next batch; see `post`."""
        line = _Line(form, request, body, asyncio.get_running_loop().create_future(), meter)
        self._queue.append(line)
        try:
            with waits():
                response = await line.response
            if meter is not None:
                meter.send()
            return response
        except TransportError:
            if meter is not None:
                meter.send()
            raise
        finally:
            with suppress(ValueError):
                self._queue.remove(line)

    # -- sending

    @property
    def _is_complete(self) -> bool:
        """Whether nobody can add a request before another has ended."""
        return bool(self._queue) and self._n_waiting >= self._n_deciding and not self._is_closed

    def _look_soon(self) -> None:
        if self._sending is None and self._is_complete:
            self._sending = asyncio.get_running_loop().create_task(self._send_if_complete())

    async def _send_if_complete(self) -> None:
        """Send what is collected, unless somebody adds to it until all that was let through has arrived."""
        try:
            n_before = -1
            while n_before != len(self._queue):
                n_before = len(self._queue)
                for _ in range(PASSES):
                    await asyncio.sleep(0)
                if not self._is_complete:
                    return
            queue, self._queue = self._queue, []
            try:
                self._end_answered()
                works = self._batches_of([line for line in queue if not line.response.done()])
            except Exception as error:  # noqa: BLE001 - raised for every request
                for line in queue:
                    _fail(line, error)
                return
            for work in works:
                task = asyncio.get_running_loop().create_task(work)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            self._sending = None

    def _batches_of(self, lines: Sequence[_Line]) -> Sequence[Coroutine[Any, Any, None]]:
        """Divide requests into batches: those that a stopped run has sent, and new ones within a provider's limits.

        Raises:
            ConfigError: If a stopped run has sent other requests.
        """
        sent: dict[tuple[BatchForm, str], list[_Line]] = {}
        unsure: dict[tuple[BatchForm, BatchIntent], list[_Line]] = {}
        fresh: dict[BatchForm, list[_Line]] = {}
        for line in lines:
            place = line.key, line.form.base
            if self._ledger is not None and (batch_id := self._ledger.batch_of(*place)) is not None:
                sent.setdefault((line.form, batch_id), []).append(line)
            elif self._ledger is not None and (intent := self._ledger.intent_of(*place)) is not None:
                unsure.setdefault((line.form, intent), []).append(line)
            else:
                fresh.setdefault(line.form, []).append(line)
        if fresh and self._ledger is not None:
            self._ledger.require_claimed()
        new = [self._answer(form, part, None) for form, group in fresh.items() for part in split(group, form)]
        old = [self._answer(form, group, batch_id) for (form, batch_id), group in sent.items()]
        return new + old + [self._answer(form, group, intent) for (form, intent), group in unsure.items()]

    async def _answer(
        self, form: BatchForm, lines: Sequence[_Line], batch: str | BatchIntent | None, n_waits: int = 0
    ) -> None:
        """Create a batch, unless it exists, wait for it, and hand out its responses in the order of the requests.

        Args:
            form: The provider's form of batches.
            lines: The requests.
            batch: Id of the batch, or what is known of one that may exist; None: it is new.
            n_waits: Number of times that the provider took no more tokens.
        """
        try:
            batch_id = await self._find(form, batch) if isinstance(batch, BatchIntent) else batch
            if batch_id is None:
                batch_id = await self._create(form, lines)
            for line in lines:
                line.send()
            outcomes = await self._collect(form, batch_id, {line.key for line in lines})
        except Exception as error:  # noqa: BLE001 - raised for every request of the batch
            for line in lines:
                _fail(line, error)
            return
        self._running.pop(batch_id, None)
        if isinstance(outcomes, MesaLLMError):  # nothing of it was carried out
            if self._ledger is not None:
                self._ledger.collect([batch_id])
            if isinstance(outcomes, RateLimited) and n_waits < MAX_WAITS:
                await self._answer_later(form, lines, n_waits)
                return
            outcomes = dict.fromkeys((line.key for line in lines), outcomes)
        elif not any(isinstance(outcome, ConfigError) for outcome in outcomes.values()):
            self._answered.append(batch_id)
        for line in lines:
            outcome = outcomes[line.key]
            if isinstance(outcome, MesaLLMError):
                _fail(line, outcome)
            elif not line.response.done():
                line.response.set_result(outcome)

    async def _answer_later(self, form: BatchForm, lines: Sequence[_Line], n_waits: int) -> None:
        """Send requests again, of which the provider takes no more tokens beside those of other batches.

        They are sent after the other batches of this process; if there are none, in halves, ever later, as other
        processes may have some.
        """
        if form.in_progress:
            while form.in_progress:
                await BatchClock.of_batches.sleep(FIRST_LOOK_S)
            await self._answer(form, lines, None, n_waits)
            return
        await BatchClock.of_batches.sleep(min(FIRST_WAIT_S * 2.0**n_waits, LONGEST_WAIT_S))
        half = (len(lines) + 1) // 2
        for part in filter(None, (lines[:half], lines[half:])):
            await self._answer(form, part, None, n_waits + 1)

    async def _find(self, form: BatchForm, intent: BatchIntent) -> str | None:
        """Find out whether a batch was created, and write that down."""
        batch_id = await self._search(form, intent)
        if self._ledger is not None:
            self._ledger.add(intent.mark, batch_id)
        return batch_id

    async def _search(self, form: BatchForm, intent: BatchIntent) -> str | None:
        """Look for a batch in the provider's lists, which may show it some seconds after it was created."""
        with _going_on():
            async for _ in patiently(LISTED_WITHIN_S):
                if (batch_id := await form.find(intent)) is not None:
                    return batch_id
        return None

    async def _create(self, form: BatchForm, lines: Sequence[_Line]) -> str:
        """Create a batch, and write it down before anything else happens."""
        mark = uuid4().hex
        keys = frozenset(line.key for line in lines)
        with self._in_flight:
            intent = BatchIntent(mark, len(keys), clock.time(), frozenset(form.in_progress), keys)
            if self._ledger is not None:
                expected = {line.key: (line.request.model, line.estimate()) for line in lines}
                intent = self._ledger.begin(mark, form.base, expected)
            for line in lines:
                line.send()
            batch_id = await self._create_once(form, lines, intent)
            self._running[batch_id] = form.base, BatchProgress(batch_id, 0, len(lines))
            if self._ledger is not None:
                self._ledger.add(mark, batch_id)
        return batch_id

    async def _create_once(self, form: BatchForm, lines: Sequence[_Line], intent: BatchIntent) -> str:
        """Create a batch; where it is not known whether it was created, look for it before it is created again.

        Raises:
            MesaLLMError: If it was not created, or that cannot be known.
        """
        wanted = [form.line(line.key, line.body) for line in lines]
        for n_left in reversed(range(MAX_CREATIONS)):
            try:
                return await form.create(wanted, intent.mark)
            except MaybeCreated as error:
                logger.warning("%s: looking whether a batch was created", error)
                if (batch_id := await self._search(form, intent)) is not None:
                    return batch_id
                if not n_left:
                    raise ConfigError(
                        f"{error}, so that it is not known whether a batch was created. With a run log, run the same "
                        "again: the batch is looked for before another is created"
                    ) from None
            except MesaLLMError:
                for line in lines:
                    line.keep()
                if self._ledger is not None:
                    self._ledger.add(intent.mark, None)
                raise
        raise AssertionError

    async def _collect(
        self, form: BatchForm, batch_id: str, keys: Collection[str]
    ) -> Mapping[str, Response | MesaLLMError] | MesaLLMError:
        """Wait for a batch, and return what became of each of its requests, or the error of the whole batch.

        What the provider says it has, and does not show yet, is fetched again for minutes; after that, its requests end
        the run, as they may have been billed.
        """
        form.in_progress.add(batch_id)
        try:
            with _going_on():
                state = await self._wait(form, batch_id, len(keys))
                results = await self._fetch(form, batch_id, state, keys)
        except BatchGone as error:
            return dict.fromkeys(keys, self._missing(f"{error}. The batch may have been billed"))
        finally:
            form.in_progress.discard(batch_id)
        if isinstance(results, MesaLLMError):
            return results
        found, is_whole = results
        missing: MesaLLMError = lost(f"batch {batch_id} holds no response to this request")
        if not is_whole:
            n_missing = len(set(keys).difference(found))
            missing = self._missing(
                f"{form.base} counts results of batch {batch_id} that it does not show: {n_missing} of "
                f"{counted(len(keys), 'request')} have none. Those that are there are kept"
            )
        return {key: found.get(key, missing) for key in keys}

    async def _fetch(
        self, form: BatchForm, batch_id: str, state: BatchState, keys: Collection[str]
    ) -> tuple[Mapping[str, Response | MesaLLMError], bool] | MesaLLMError:
        """Fetch the results of a batch that is over; return them, and whether they are all."""
        async for is_last in patiently():
            results = await form.results(batch_id, state)
            if isinstance(results, MesaLLMError):
                return results
            if (is_whole := results.are_whole(keys, state)) or is_last:
                if oddities := results.oddities(keys, state):
                    logger.warning("the results of batch %s have lines too many: %s", batch_id, oddities)
                return results.of, is_whole
            logger.info("batch %s does not show all its results yet", batch_id)
            state = await form.look(batch_id)  # which may name more files by now
        raise AssertionError

    def _missing(self, text: str) -> MesaLLMError:
        """Return the error of requests that may have been billed, and whose replies are not to be had now."""
        if self._ledger is not None and self._ledger.may_ask_again:
            return lost(text)
        return ConfigError(
            f"{text}. Run the same again to look once more; to send what is missing again and pay for both, give "
            "--ask-again (in Python ask_again=True)"
        )

    async def _wait(self, form: BatchForm, batch_id: str, n_requests: int) -> BatchState:
        """Look at a batch until it is complete, ever less often."""
        async for _ in patiently(math.inf):
            state = await form.look(batch_id)
            progress = BatchProgress(batch_id, state.n_done, state.n_requests or n_requests)
            self._running[batch_id] = form.base, progress
            self._report(progress)
            if state.is_over:
                return state
        raise AssertionError

    # -- ending

    def _end_answered(self) -> None:
        """Note that the batches are collected whose replies have been recorded."""
        if self._answered and self._ledger is not None:
            self._ledger.collect(self._answered)
        self._answered.clear()

    def end(self) -> None:
        """End after all decisions, of which each reply is recorded.

        Raises:
            ConfigError: If the run log cannot be written.
        """
        self._end_answered()

    def close(self) -> None:
        """Wait for no batch any more; those that go on at their provider are named, and how to collect them."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        is_kept = self._ledger is not None and self._ledger.is_kept
        way = "to collect it, run the same again with the same run log" if is_kept else "it is in no run log"
        for base, progress in self._running.values():
            logger.warning("%s; it goes on at %s: %s", progress, base, way)
        self._running.clear()


_STAGE: ContextVar[BatchStage | None] = ContextVar("mesa_llm_stage_of_decision", default=None)
"""The stage of the decision that the current task belongs to."""


@contextmanager
def _going_on() -> Generator[None]:
    """End the run on errors in this block, in place of a decision: the batch goes on.

    Raises:
        ConfigError: In place of a `TransportError`.
    """
    try:
        yield
    except TransportError as error:
        raise ConfigError(f"{error}. The batch goes on; with a run log, run the same again to collect it") from None


def split(lines: Sequence[_Line], form: BatchForm) -> Iterator[list[_Line]]:
    """Divide requests, in order, into batches within the provider's limits on their number and size."""
    part: list[_Line] = []
    n_bytes = 0
    for line in lines:
        size = len(form.line(line.key, line.body)) + 1  # and what separates it from the next
        if part and (len(part) == form.max_requests or n_bytes + size > form.max_bytes):
            yield part
            part, n_bytes = [], 0
        part.append(line)
        n_bytes += size
    if part:
        yield part


def _fail(line: _Line, error: Exception) -> None:
    if not line.response.done():
        line.response.set_exception(error)
