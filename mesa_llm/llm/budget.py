"""Budgets of calls, tokens and US dollars: reserved before each request, and settled with its usage afterwards.

What is reserved is the most that a request can take: its prompt, as the model has been counting, and the maximum of
its reply. So a budget holds at any number of requests in flight.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

from mesa_llm.errors import AccessRefused, BudgetExceeded, ConfigError, Loading, MesaLLMError, RateLimited, Refused
from mesa_llm.llm.protocol import LLM, close_transport
from mesa_llm.llm.tokens import count_tokens, size_of
from mesa_llm.llm.waiting import waits
from mesa_llm.records import Reply, Request, Usage
from mesa_llm.text import counted

logger = logging.getLogger(__name__)

MAX_REPLY_TOKENS = 16_384
"""Maximum number of tokens that is reserved for a reply whose request names no maximum."""

LOOK_AGAIN_S = 0.05
"""Seconds after which a request that waits for others to be settled looks again, as those may be another process's."""

COUNT_MARGIN = 1.3
"""Factor by which a model may count more tokens in a prompt than are counted here."""

_COSTS_NOTHING = (RateLimited, Refused, AccessRefused)
"""Errors by which an endpoint says that it did not do what it was asked."""

_LENGTHS = ("max_tokens", "max_completion_tokens")
"""Names of the setting that bounds a reply."""


class Reservation(NamedTuple):
    """What a budget reserves for one request."""

    tokens: float = 0
    """Number of tokens, read and written; infinite where nothing is known yet."""

    dollars: float = 0.0
    """US dollars; infinite where nothing is known yet."""

    prompt_tokens: int = 0
    """Number of tokens of the prompt among them, which are charged where nothing becomes known of a request."""


_NOTHING = Reservation()

_NO_USAGE = Usage()


@runtime_checkable
class Priced(Protocol):
    """A transport that knows what its model costs."""

    def price_of(self, usage: Usage) -> float | None:
        """Return what tokens cost, in US dollars; None if it is not known."""
        ...


class UsageMeter:
    """Usage of the requests that one reply takes, from the first that is sent to the last.

    Attributes:
        usage: Usage of the requests that have ended.
        unsettled: What a request is taken to cost that is in a batch whose results are not known.
    """

    of_reply: ClassVar[ContextVar[UsageMeter | None]] = ContextVar("mesa_llm_usage_meter", default=None)
    """The meter of the reply that the current task awaits."""

    __slots__ = ("_budget", "_hold", "_is_in_batch", "_is_sent", "_request", "unsettled", "usage")

    def __init__(self) -> None:
        """Start with nothing."""
        self.usage = self.unsettled = _NO_USAGE
        self._budget: Budget | None = None
        self._hold: Reservation | None = None
        self._request: Any = None
        self._is_sent = self._is_in_batch = False

    def open(self, budget: Budget, request: Request, hold: Reservation) -> None:
        """Add a request for which a budget has reserved something."""
        self._budget, self._request, self._hold, self._is_sent = budget, request, hold, True

    def wait(self) -> None:
        """Note that the request is not sent yet."""
        self._is_sent = False

    def send(self, *, in_batch: bool = False) -> None:
        """Note that the request is sent.

        Args:
            in_batch: Whether it is in a batch whose results are not known yet.
        """
        self._is_sent, self._is_in_batch = True, in_batch

    def estimate(self) -> Usage:
        """Return the usage that the request is charged as long as nothing is known of it."""
        if self._budget is None or self._hold is None:
            return Usage(requests=1)
        return self._budget.estimate(self._request, self._hold)

    def settle(self, used: Usage | None) -> None:
        """End the request.

        Args:
            used: Its usage; None: nothing is known of it.
        """
        budget, hold = self._budget, self._hold
        if budget is None or hold is None:
            return
        self._hold = None
        if not self._is_sent:
            budget.purse.settle(None, hold)
            return
        if used is None and self._is_in_batch:
            self.unsettled = used = budget.estimate(self._request, hold)
            budget.purse.settle(used, hold)
            return
        used = budget.estimate(self._request, hold) if used is None else used
        self.usage = self.usage + used if self.usage.requests else used
        budget.purse.settle(used, hold)

    async def reserve_again(self, used: Usage | None) -> None:
        """End a request, and reserve the one that is sent in its place.

        Args:
            used: Usage of the first; None: nothing is known of it.

        Raises:
            BudgetExceeded: If the budget allows no other.
        """
        budget = self._budget
        if budget is None or self._hold is None:
            return
        self.settle(used)
        self._hold = await budget.reserve(self._request)


async def send_again(used: Usage | None = None) -> None:
    """Reserve one request more for the reply that the current task awaits; a transport calls this before it sends it.

    Args:
        used: Usage of the request before it; None: nothing is known of it.

    Raises:
        BudgetExceeded: If the budget allows no other request.
    """
    meter = UsageMeter.of_reply.get()
    if meter is not None:
        await meter.reserve_again(used)


class Budget:
    """Stops sending requests when a budget of calls, tokens or dollars is spent.

    Each request is reserved with the most that it can take, waits while that does not fit beside those in flight, and
    is settled with its usage: as the endpoint reports it, also in a reply that cannot be read. Where the endpoint
    reports none, tokens are counted here. A request that was cut, timed out or was given up counts as its prompt.
    """

    def __init__(
        self,
        inner: LLM,
        calls: int | None = None,
        tokens: int | None = None,
        dollars: float | None = None,
        *,
        purse: SharedBudget | None = None,
        transport: LLM | None = None,
        sends_together: bool = False,
    ) -> None:
        """Set what may be spent; None: no limit.

        Args:
            inner: The transport, or the layer around it.
            calls: Maximum number of requests.
            tokens: Maximum number of tokens, read and written.
            dollars: Maximum cost in US dollars. Replies whose price is not known count as free.
            purse: Budget to spend from in place of these three, which another process may hold.
            transport: The transport inside `inner`, which may know its prices; None: `inner`.
            sends_together: Whether requests are sent in batches, so that no reply is awaited to learn what one takes.

        Raises:
            ConfigError: If a budget is not above zero.
        """
        self.inner = inner
        self.purse = SharedBudget(calls, tokens, dollars) if purse is None else purse
        self._bounds_tokens, self._bounds_dollars = self.purse.bounds()
        transport = transport or inner
        self._priced = transport if isinstance(transport, Priced) else None
        self._seen = _Seen()
        self._sends_together = sends_together
        self._has_warned = self._has_no_prices = False

    @property
    def counts_here(self) -> bool:
        """Whether tokens are counted here, as the endpoint reports none."""
        return self._seen.counts_here

    @property
    def spent(self) -> Usage:
        """Usage so far."""
        return self.purse.spent()

    def also(self, inner: LLM, transport: LLM | None = None, *, sends_together: bool = False) -> Budget:
        """Return the same budget around another transport; both spend from it.

        Args:
            inner: As for `Budget`.
            transport: As for `Budget`.
            sends_together: As for `Budget`.
        """
        return Budget(inner, purse=self.purse, transport=transport, sends_together=sends_together)

    async def reply(self, request: Request) -> Reply:
        """Send the request if the budget allows it.

        Raises:
            BudgetExceeded: If it does not; nothing is sent then.
            TransportError: As the transport raises it.
        """
        meter = UsageMeter.of_reply.get()
        if meter is not None:
            return await self._ask(request, meter)
        meter = UsageMeter()
        token = UsageMeter.of_reply.set(meter)
        try:
            return await self._ask(request, meter)
        finally:
            UsageMeter.of_reply.reset(token)

    async def _ask(self, request: Request, meter: UsageMeter) -> Reply:
        hold = await self.reserve(request)
        meter.open(self, request, hold)
        n_before = meter.usage.requests
        try:
            reply = await self.inner.reply(request)
        except BaseException as error:
            if isinstance(error, Loading):  # it was looked whether the model is there yet
                meter.wait()
            used = self._usage_of(error)
            meter.settle(used)
            if used is not None and used.tokens:
                self._seen.add(request, used)
            raise
        reply = self._counted(request, reply)
        used = usage_of(reply, max(reply.attempts - (meter.usage.requests - n_before), 1))
        meter.settle(used)
        if self._bounds_tokens or self._bounds_dollars:
            self._seen.add(request, used)
        return reply

    async def reserve(self, request: Request) -> Reservation:
        """Reserve the most that a request can take, once that fits beside the requests in flight.

        Raises:
            BudgetExceeded: If it does not fit.
        """
        if not (self._bounds_tokens or self._bounds_dollars):
            return self.purse.reserve() or await self.purse.reserve_in_turn(lambda: (_NOTHING, _NOTHING))
        with waits():
            return await self.purse.reserve_in_turn(
                lambda: (self._need(request, None), self._need(request, max(self._seen.reply_tokens, 1)))
            )

    def _need(self, request: Request, n_reply: int | None) -> Reservation:
        """Return what a request takes whose reply has so many tokens; None: the most, all if nothing is known yet."""
        n_prompt = self._seen.prompt_tokens_of(request)
        n_most = _max_reply(request) if n_reply is None else min(n_reply, _max_reply(request))
        if not self._seen.n_replies and self._sends_together:
            n_prompt = math.ceil(COUNT_MARGIN * n_prompt)
        elif n_reply is None and not self._seen.n_replies:
            return Reservation(math.inf, math.inf if self._bounds_dollars else 0.0, n_prompt)
        dollars = self._dollars(n_prompt, n_most) if self._bounds_dollars else 0.0
        return Reservation(n_prompt + n_most if self._bounds_tokens else 0, dollars, n_prompt)

    def _dollars(self, n_prompt: int, n_reply: int) -> float:
        """Return the most that so many tokens can cost."""
        known = None if self._priced is None else self._priced.price_of(Usage(0, 0, n_prompt, n_reply))
        return max(self._seen.dollars, self._seen.dollars_of(n_prompt, n_reply) if known is None else known)

    def estimate(self, request: Request, hold: Reservation) -> Usage:
        """Return the usage that a request is charged of which nothing is known: its prompt."""
        n_prompt = count_tokens(request)
        used = Usage(0, 0, min(n_prompt, hold.prompt_tokens) if hold.prompt_tokens else n_prompt, requests=1)
        dollars = None if self._priced is None else self._priced.price_of(used)
        return used if dollars is None else replace(used, dollars=dollars)

    def _usage_of(self, error: BaseException) -> Usage | None:
        """Return the usage of a request that failed; None if nothing is known of it."""
        if isinstance(error, MesaLLMError) and isinstance(error.usage, Usage):
            dollars = error.usage.dollars
            if not dollars and self._priced is not None:
                dollars = self._priced.price_of(error.usage) or 0.0
            return replace(error.usage, calls=0, requests=1, dollars=dollars)
        return Usage(requests=1) if isinstance(error, _COSTS_NOTHING) else None

    def _counted(self, request: Request, reply: Reply) -> Reply:
        """Complete what an endpoint does not report of a reply, its tokens and their price, and say so once."""
        gaps: list[str] = []
        if not (reply.prompt_tokens or reply.reply_tokens or reply.dollars == 0):  # a script costs nothing
            gaps.append("no usage: its tokens are counted here, as OpenAI's models count them")
            self._seen.counts_here = True
            calls = "".join(call.name + str(call.arguments) for call in reply.tool_calls)
            n_reply = count_tokens(reply.reasoning + reply.text + calls)
            reply = replace(reply, prompt_tokens=count_tokens(request), reply_tokens=n_reply)
        if reply.dollars is None and self._priced is not None and not self._has_no_prices:
            dollars = self._priced.price_of(usage_of(reply))
            self._has_no_prices = dollars is None
            reply = reply if dollars is None else replace(reply, dollars=dollars)
        if reply.dollars is None and self._bounds_dollars:
            gaps.append("no price: its replies count as free in the budget")
        if gaps and not self._has_warned:
            self._has_warned = True
            logger.warning("%s reports %s", reply.model or request.model, "; and ".join(gaps))
        return reply

    async def close(self) -> None:
        """Close the transport."""
        await close_transport(self.inner)


def usage_of(reply: Reply, requests: int = 1) -> Usage:
    """Return the usage of a reply."""
    tokens = reply.prompt_tokens, reply.reply_tokens
    return Usage(1, 0, *tokens, reply.dollars or 0.0, 0, requests, reply.cached_tokens, reply.stored_tokens)


def _max_reply(request: Request) -> int:
    """Return the maximum number of tokens of the reply to a request."""
    for name in _LENGTHS:
        value = request.settings.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return MAX_REPLY_TOKENS


_ROUNDING = 1e-9
"""What sums of prices may be off by, in US dollars."""


class _Seen:
    """What a model's replies so far show of its token counts and prices.

    Attributes:
        n_replies: Number of replies.
        reply_tokens: Number of tokens of the longest reply.
        dollars: Price of the dearest reply.
        counts_here: Whether its tokens are counted here, as its endpoint reports none.
    """

    def __init__(self) -> None:
        self.n_replies = 0
        self.reply_tokens = 0
        self.dollars = 0.0
        self.counts_here = False
        self._prompt_tokens = 0
        self._per_character = 0.0
        self._prices: tuple[float, float] | None = None

    def add(self, request: Request, used: Usage) -> None:
        """Learn from a reply, or from one that could not be read."""
        self.n_replies += 1
        self.reply_tokens = max(self.reply_tokens, used.reply_tokens)
        self._prompt_tokens = max(self._prompt_tokens, used.prompt_tokens)
        self._per_character = max(self._per_character, used.prompt_tokens / max(size_of(request), 1))
        self.dollars = max(self.dollars, used.dollars)
        if used.dollars and used.prompt_tokens and used.reply_tokens:
            prices = used.dollars / used.prompt_tokens, used.dollars / used.reply_tokens
            if self._prices is None or prices[1] < self._prices[1]:
                self._prices = prices

    def prompt_tokens_of(self, request: Request) -> int:
        """Return the number of tokens of a prompt; rather too many than too few, once there has been a reply."""
        if not self.n_replies or self.counts_here:
            return count_tokens(request)
        return max(math.ceil(size_of(request) * self._per_character), self._prompt_tokens)

    def dollars_of(self, n_prompt: int, n_reply: int) -> float:
        """Return the most that tokens can cost, where only the price of whole replies is known.

        With constant prices for tokens read and written, a reply that cost `c` for `p` and `r` of them bounds the cost
        of others from above: they cost most if all of `c` was for what they have more of.
        """
        if self._prices is None:
            return self.dollars
        return max(n_prompt * self._prices[0], n_reply * self._prices[1])


class SharedBudget:
    """A budget and the usage so far, for use by several threads."""

    def __init__(self, calls: int | None = None, tokens: int | None = None, dollars: float | None = None) -> None:
        """Set what may be spent; None: no limit.

        Args:
            calls: Maximum number of requests.
            tokens: Maximum number of tokens, read and written.
            dollars: Maximum cost in US dollars.

        Raises:
            ConfigError: If a budget is not above zero.
        """
        for name, limit in (("calls", calls), ("tokens", tokens), ("dollars", dollars)):
            if isinstance(cast("Any", limit), str):
                raise ConfigError(f"a budget of {name} is a number, got {limit!r}")
            if limit is not None and not limit > 0:
                raise ConfigError(f"a budget of {limit!r} {name} allows nothing; give more, or None for no budget")
        self._calls, self._tokens, self._dollars = calls, tokens, dollars
        self._spent = Usage()
        self._in_flight = 0
        self._held_tokens = 0.0
        self._held_dollars = 0.0
        self._lock = threading.Lock()
        self._waiting: deque[_Turn] = deque()

    def bounds(self) -> tuple[bool, bool]:
        """Return whether tokens and whether dollars are limited."""
        return self._tokens is not None, self._dollars is not None

    def spent(self) -> Usage:
        """Return the usage so far."""
        return self._spent

    async def reserve_in_turn(self, need: Callable[[], tuple[Reservation, Reservation]]) -> Reservation:
        """Reserve a request, after those that already wait, as soon as there is room for it.

        Args:
            need: Returns the arguments of `reserve`, as far as they are known at the time.

        Returns:
            What is reserved.

        Raises:
            BudgetExceeded: If the budget does not allow it.
        """
        if not self._waiting and (held := self.reserve(*need())) is not None:
            return held
        turn = _Turn()
        self._waiting.append(turn)
        try:
            while True:
                if self._waiting[0] is turn and (held := self.reserve(*need())) is not None:
                    return held
                await turn.come(LOOK_AGAIN_S if self._waiting[0] is turn else None)
        finally:
            self._waiting.remove(turn)
            self.wake()

    def wake(self) -> None:
        """Let the first request that waits look again."""
        with suppress(IndexError):
            self._waiting[0].wake()

    def reserve(self, most: Reservation = _NOTHING, least: Reservation = _NOTHING) -> Reservation | None:
        """Reserve one request, which `settle` ends.

        Args:
            most: The most that it can take.
            least: What it should be able to take at least.

        Returns:
            What is reserved: `most`, or what is left; None: there is no room beside the requests in flight.

        Raises:
            BudgetExceeded: If the budget does not allow it.
        """
        with self._lock:
            if self._calls is not None and self._spent.requests + self._in_flight >= self._calls:
                raise BudgetExceeded(self._text(counted(self._calls, "call")))
            if self._tokens is None and self._dollars is None:
                self._in_flight += 1
                return _NOTHING
            tokens = self._part("tokens", self._tokens, self._held_tokens, most.tokens, least.tokens)
            dollars = self._part("dollars", self._dollars, self._held_dollars, most.dollars, least.dollars)
            if tokens is None or dollars is None:
                return None
            self._in_flight += 1
            self._held_tokens += tokens
            self._held_dollars += dollars
            return Reservation(tokens, dollars, most.prompt_tokens)

    def _part(self, unit: str, limit: float | None, held: float, most: float, least: float) -> float | None:
        """Return how much of a limit a request is given; None: there is no room for it beside the requests in flight.

        Where even the whole limit is less than the most that a request can take, or nothing is known of that yet,
        requests are sent one at a time, as long as what is left is as much as the largest so far has taken.

        Raises:
            BudgetExceeded: If it cannot have what it needs.
        """
        if limit is None:
            return 0.0
        spent: float = getattr(self._spent, unit)
        budget = f"{limit} tokens" if unit == "tokens" else f"${limit:g}"
        need = least if most > limit else most
        if spent >= limit - _ROUNDING:
            raise BudgetExceeded(self._text(budget))
        limit += _ROUNDING
        if need > limit - spent:
            need_text = f"{need:,.0f} tokens" if unit == "tokens" else f"${need:.4f}"
            raise BudgetExceeded(self._text(budget, f"; the next request may take {need_text}"))
        if most <= limit:
            return most if most <= limit - spent - held else None
        return None if self._in_flight else limit - spent

    def settle(self, used: Usage | None, hold: Reservation = _NOTHING) -> None:
        """End a reserved request.

        Args:
            used: Its usage; None: it was not sent.
            hold: What was reserved for it.
        """
        with self._lock:
            self._in_flight -= 1
            self._held_tokens -= hold.tokens
            self._held_dollars -= hold.dollars
            if not self._in_flight:
                self._held_tokens = self._held_dollars = 0.0
            if used is not None:
                self._spent += used if used.requests else replace(used, requests=1)
        if self._waiting:
            self.wake()

    def _text(self, budget: str, left: str = "") -> str:
        """Describe what was spent, and how to go on."""
        usage = self._spent
        more = f" and {self._in_flight} on their way" if self._in_flight else ""
        return (
            f"the budget of {budget} is spent: {counted(usage.requests, 'call')}{more}, {usage.tokens} tokens, "
            f"${usage.dollars:.4f}{left}. What was answered is kept: run the same again, with this budget or a larger "
            "one, to go on"
        )


class _Turn:
    """The turn of a request that waits for room in a budget."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._came = asyncio.Event()

    async def come(self, timeout_s: float | None) -> None:
        """Wait until it is woken, or some seconds have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._came.wait()
        self._came.clear()

    def wake(self) -> None:
        """Let it look again, from any thread."""
        with suppress(RuntimeError):  # its event loop has ended
            self._loop.call_soon_threadsafe(self._came.set)
