"""Retries: which failed requests are sent again, when, and which refusals a person has to act on.

`Retry` sends a request again that failed for a reason that may pass; `Refusals` tells a wrong key or model from a stray
refusal. An access nests them with the budget and the limits, as `Retry(Refusals(Budget(Limits(transport))))`; each is a
transport itself. A reply that came but cannot be used is another matter: see `mesa_llm.engine.decision`, which has it
repaired once.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import replace

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from mesa_llm.errors import (
    AccessRefused,
    BadReply,
    BudgetExceeded,
    ConfigError,
    Loading,
    MesaLLMError,
    RateLimited,
    Refused,
    ServerError,
    TransportError,
)
from mesa_llm.llm.protocol import LLM, close_transport
from mesa_llm.records import Reply, Request

logger = logging.getLogger(__name__)

BAD_REPLY_ATTEMPTS = 3
"""Maximum number of attempts while replies cannot be read: a model that writes such replies tends to go on."""

MAX_REFUSALS = 16
"""Maximum number of refusals in a row, of key, model or address, that only fail decisions; see `Refusals`."""

MAX_SILENT_WAIT_S = 60.0
"""Wait that an endpoint may ask for without a word about it, in seconds."""

FIRST_LOADING_WAIT_S, MAX_LOADING_WAIT_S = 0.25, 4.0
"""Waits for a model that is being loaded, in seconds: the first, which doubles, and the longest."""

_MAY_PASS = (RateLimited, ServerError, BadReply)
"""Errors after which it can help to send the request again."""


class Retry:
    """Sends a request again, after a wait, if that can help: too many requests, a failing server, an unreadable reply.

    Waits double from one attempt to the next, and each is drawn between half of that and all of it, so that agents do
    not come back all at once. None is shorter than the endpoint's `Retry-After`. While an endpoint loads its model, no
    attempt is used up.
    """

    def __init__(
        self,
        inner: LLM,
        attempts: int = 4,
        base_s: float = 0.5,
        max_wait_s: float = 30.0,
        seed: int | None = None,
        loading_timeout_s: float = 300.0,
    ) -> None:
        """Set how often to send a request, and how long to wait in between; `AccessOptions` has checked the values.

        Args:
            inner: The transport.
            attempts: Maximum number of times that one request is sent.
            base_s: Maximum of the first wait, in seconds.
            max_wait_s: Maximum of any wait, in seconds, unless the endpoint asks for a longer one.
            seed: Seed of the waits, which do not affect a run.
            loading_timeout_s: Maximum time for which the endpoint may load its model, in seconds.
        """
        self.inner = inner
        self.attempts = attempts
        self.base_s = base_s
        self.max_wait_s = max_wait_s
        self.loading_timeout_s = loading_timeout_s
        self._rng = random.Random(seed)
        self._has_said_loading = self._has_said_waiting = False

    async def reply(self, request: Request) -> Reply:
        """Send a request until there is a reply, whose `attempts` counts how often it was sent.

        Raises:
            ConfigError: If the endpoint goes on loading its model for too long.
            TransportError: The last one, if all attempts failed, or one that asking again cannot help.
        """
        try:
            return await self.inner.reply(request)
        except _MAY_PASS as error:
            return await self._retry(request, error)

    async def _once_loaded(self, request: Request, loading: Loading) -> Reply:
        """Keep sending while the endpoint loads its model."""
        clock = asyncio.get_running_loop().time
        end, wait_s = clock() + self.loading_timeout_s, FIRST_LOADING_WAIT_S
        if not self._has_said_loading:
            self._has_said_loading = True
            logger.warning("%s; waiting until it is loaded, up to %g s", loading, self.loading_timeout_s)
        while (left_s := end - clock()) > 0:
            await asyncio.sleep(min(left_s, wait_s if loading.retry_after_s is None else loading.retry_after_s))
            wait_s = min(2 * wait_s, MAX_LOADING_WAIT_S)
            try:
                return await self.inner.reply(request)
            except Loading as error:
                loading = error
        raise ConfigError(
            f"{loading}, and that for {self.loading_timeout_s:g} s; wait until it is loaded, or raise "
            "loading_timeout_s. What was answered is kept: run the same again to go on"
        )

    async def _retry(self, request: Request, failure: TransportError) -> Reply:
        """Go on after a first failure; if every call went through tenacity, that would cost as much as its JSON."""
        failures = [failure]

        async def ask() -> Reply:
            try:
                if failures:
                    raise failures.pop()
                return await self.inner.reply(request)
            except Loading as loading:
                return await self._once_loaded(request, loading)

        retrying = AsyncRetrying(
            stop=self._is_enough,
            wait=self._wait_s,
            retry=retry_if_exception_type(_MAY_PASS),
            sleep=asyncio.sleep,
            reraise=True,
        )
        try:
            reply = await retrying(ask)
        except TransportError as error:
            text = f"{error} (requests sent: {retrying.statistics['attempt_number']})"
            raise _with_text(error, text) from error.__cause__
        return replace(reply, attempts=reply.attempts + retrying.statistics["attempt_number"] - 1)

    async def close(self) -> None:
        """Close the transport."""
        await close_transport(self.inner)

    def _is_enough(self, state: RetryCallState) -> bool:
        attempts = self.attempts
        if isinstance(_failure(state), BadReply):
            attempts = min(attempts, BAD_REPLY_ATTEMPTS)
        return state.attempt_number >= attempts

    def _wait_s(self, state: RetryCallState) -> float:
        longest_s = min(self.max_wait_s, self.base_s * 2.0 ** (state.attempt_number - 1))
        error = _failure(state)
        if isinstance(error, RateLimited) and error.retry_after_s is not None:
            if error.retry_after_s > MAX_SILENT_WAIT_S and not self._has_said_waiting:
                self._has_said_waiting = True
                logger.warning("%s; waiting %g s, as it asks (said once)", error, error.retry_after_s)
            return error.retry_after_s + self._rng.uniform(0, min(self.base_s, longest_s))
        return self._rng.uniform(longest_s / 2, longest_s)


class Refusals:
    """Distinguishes a wrong set-up from a stray refusal.

    A refusal of the key, the model or the address before there was any reply needs a person: `ConfigError`. After a
    reply it is `Refused`, the failure of one decision, until there are more than `MAX_REFUSALS` in a row: then the key
    has been withdrawn, or the model taken down, and a person has to act. Where an account has no money, or no quota for
    hours, the run stops at once, as it does when a budget is spent: nothing is recorded as failed, and the same run
    goes on once there is more.

    Refusals are in a row if each request was sent after the previous refusal had arrived. Refusals of requests that
    were in flight together count once, so that a momentary one weighs the same at any concurrency.
    """

    def __init__(self, inner: LLM) -> None:
        """Start before the first reply.

        Args:
            inner: The transport.
        """
        self.inner = inner
        self._has_replied = False
        self._in_a_row = 0
        self._n_counted = 0

    async def reply(self, request: Request) -> Reply:
        """Send the request, and judge a refusal by what came before it.

        Raises:
            ConfigError: If a person must act.
            BudgetExceeded: If the account is out of money.
            TransportError: As the transport raises it, or in place of a refusal that fails only this request.
        """
        counted_before = self._n_counted
        try:
            reply = await self.inner.reply(request)
        except AccessRefused as refused:
            if counted_before == self._n_counted:
                self._n_counted += 1
                self._in_a_row += 1
            error = self._judge(refused)
        else:
            self._has_replied, self._in_a_row = True, 0
            return reply
        raise error

    def _judge(self, refusal: AccessRefused) -> MesaLLMError:
        """Return the error to raise for a refusal."""
        if not self._has_replied:
            return refusal
        if refusal.is_out_of_money:
            return BudgetExceeded(str(refusal))
        return refusal if self._in_a_row > MAX_REFUSALS else Refused(str(refusal))

    async def close(self) -> None:
        """Close the transport."""
        await close_transport(self.inner)


def _with_text(error: TransportError, text: str) -> TransportError:
    """Return a copy of an error with another text: a transport may raise one object for many requests."""
    copied = type(error).__new__(type(error), text)
    vars(copied).update(vars(error))
    return copied.with_traceback(error.__traceback__)


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None
