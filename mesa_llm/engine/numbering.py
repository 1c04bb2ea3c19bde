"""Numbers of requests: part of every salt, and never dependent on how fast replies arrive.

Requests are numbered per agent, step, purpose and series. A series is the label of an observation, or the text of a
question asked by hand between two steps; most requests belong to the series without a name, whose digest is 0.

    first number of a turn   (digest of the series × 1024 + index of the turn in the series) × 1024
    number of a request      first number of its turn + 8 × index of the request in the turn
    number of a follow-up    number of the request before it + 1 (after a round of tools, for a repair, after reasoning)
    number of a tool call    number of the request whose reply holds it × 32 + index of the call; purpose `tool`

So a turn has room for 128 requests, a request for 7 follow-ups, a reply for 32 tool calls, and a series for 1024 turns.
A model that parses replies is asked under the number of the request whose reply it parses; its purpose ends in `-form`.
Recordings find replies by these numbers: the layout must never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import ClassVar

from mesa_llm.errors import ConfigError
from mesa_llm.records import Salt

TURNS_PER_SERIES = 1024
"""Turns that a series has room for."""

NUMBERS_PER_TURN = 1024
"""Numbers reserved for a turn."""

NUMBERS_PER_REQUEST = 8
"""Numbers reserved for a request and its follow-ups."""

CALLS_PER_REPLY = 32
"""Numbers reserved for the tool calls of a reply."""

_PARSING = "-form"
"""End of the purpose of requests to a model that parses replies."""

SeriesKey = tuple[int, str, str]
"""Agent, purpose and name of a series."""


class TurnNumbers:
    """Hands out the numbers of one turn, in order."""

    __slots__ = ("first", "n_requests")

    def __init__(self, first: int) -> None:
        """Start with the first number of a turn."""
        self.first, self.n_requests = first, 0

    def take(self) -> int:
        """Return the number of the next request.

        Raises:
            ConfigError: If the turn has no numbers left.
        """
        number = self.first + NUMBERS_PER_REQUEST * self.n_requests
        self.n_requests += 1
        if number >= self.first + NUMBERS_PER_TURN:
            limit = NUMBERS_PER_TURN // NUMBERS_PER_REQUEST
            raise ConfigError(f"one decision asked more than {limit} questions; ask them in turns of their own")
        return number


class Numbering:
    """Numbers the requests of one run."""

    of_turn: ClassVar[ContextVar[TurnNumbers | None]] = ContextVar("mesa_llm_numbers", default=None)
    """Numbers of the turn that is being decided in the current context."""

    def __init__(self) -> None:
        """Start before the first step."""
        self._turns: dict[SeriesKey, tuple[int, int]] = {}
        self._step = 0
        self._skipped: list[tuple[int, Sequence[SeriesKey]]] = []

    def take(self, agent: int, step: int, purpose: str) -> int:
        """Return the number of an agent's next request: one of those reserved for its turn, if it has one now."""
        numbers = self.of_turn.get()
        if numbers is None:
            self._reserve_skipped()
            numbers = self._reserve((agent, purpose, ""), step)
        return numbers.take()

    def skip(self, turns: Sequence[SeriesKey], step: int) -> None:
        """Pass over turns that need no request; their numbers are reserved only if others are, later in the step."""
        if self._skipped and self._skipped[0][0] != step:
            self._skipped.clear()
        self._skipped.append((step, turns))

    def _reserve_skipped(self) -> None:
        """Reserve the numbers of the turns passed over in this step, in order."""
        skipped, self._skipped = self._skipped, []
        for step, turns in skipped:
            for key in turns:
                self._reserve(key, step)

    @contextmanager
    def reserved(self, turns: Iterable[tuple[SeriesKey, int]]) -> Generator[list[TurnNumbers]]:
        """Reserve the numbers of turns, in order; if the block fails, the same turns get the same numbers again.

        Args:
            turns: Series and step of each turn.
        """
        turns = list(turns)
        self._reserve_skipped()
        before = {key: self._turns.get(key) for key, _ in turns}
        numbers = [self._reserve(key, step) for key, step in turns]
        try:
            yield numbers
        except BaseException:
            for key, turn in before.items():
                self._turns.pop(key)
                if turn is not None:
                    self._turns[key] = turn
            raise

    def _reserve(self, key: SeriesKey, step: int) -> TurnNumbers:
        """Reserve the numbers of one turn; they start over in each step."""
        if step > self._step:
            self._turns.clear()
            self._step = step
        counted_step, index = self._turns.get(key, (step, 0))
        index = index if counted_step == step else 0
        self._turns[key] = (step, index + 1)
        return TurnNumbers((_digest(key[2]) * TURNS_PER_SERIES + index) * NUMBERS_PER_TURN)


@lru_cache(maxsize=4096)
def _digest(series: str) -> int:
    return int(hashlib.sha256(series.encode("utf-8", "surrogatepass")).hexdigest()[:7], 16) if series else 0


def follow_up(salt: Salt) -> Salt:
    """Return the salt of the request that follows another one in the same decision."""
    return salt._replace(call=salt.call + 1)


def tool_call(salt: Salt, index: int) -> Salt:
    """Return the salt of a tool call.

    Args:
        salt: Salt of the request whose reply holds the call.
        index: Index of the call in the reply.
    """
    return salt._replace(purpose="tool", call=salt.call * CALLS_PER_REPLY + index)


def parsing(salt: Salt) -> Salt:
    """Return the salt of the request by which a second model parses the reply to a first one."""
    return salt._replace(purpose=salt.purpose + _PARSING)


def purpose_counted(purpose: str) -> str:
    """Return the purpose that a request is counted under: parsing counts under that of the reply parsed."""
    return purpose.removesuffix(_PARSING)


def by_content(salt: Salt, text: str) -> Salt:
    """Return the salt of a request that is numbered by what it asks for, whoever asks first."""
    return salt._replace(call=int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big"))
