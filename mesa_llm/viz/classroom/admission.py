"""Admission to a classroom: limits on attempts to enter a code, and on how fast seats are taken.

No limit depends on an address alone, as a whole class may share that of the school's router. Visitors are recognised by
a cookie, which anybody can delete; so whatever is limited for one visitor is also limited for all of them together.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import math
import secrets
import time as clock
from collections import OrderedDict
from collections.abc import Callable

from mesa_llm.text import counted
from mesa_llm.viz.classroom.room import Classroom, NoSeat, StudentSeat, Visitor, WrongCode

MAX_KNOWN = 10_000
"""Maximum number of visitors or addresses to remember; the latest are kept."""

FREE_TRIES = 3
"""Number of wrong codes of a visitor without a penalty."""

MAX_PENALTY_S = 60.0
"""Maximum time before a visitor's next attempt, in seconds; it starts at 1 and doubles with each wrong code."""

STRANGER_TRIES, STRANGER_S = 10, 0.5
"""Number of wrong codes that visitors without a cookie may try at once from one address, and seconds for each further
one."""

GUESSES, GUESS_S = 200, 0.01
"""Number of wrong codes that all visitors together may try at once, and seconds for each further one."""

SEATS, SEAT_S = 6, 2.0
"""Number of seats that may be taken at once from one address, and seconds for each further one."""

STRANGER_WAIT_S, SEAT_WAIT_S = 5.0, 60.0
"""Maximum time that a visitor without a cookie, and one who takes a seat, waits for a turn, in seconds."""

MAX_WAITING = 60
"""Maximum number of visitors waiting for a turn, as each holds a connection."""


class TooSoon(NoSeat):
    """A visitor has to wait before the next attempt."""


def network_of(host: str) -> str:
    """Return the network of a client: an IPv4 address, the /64 network of an IPv6 address, or any other text unchanged.

    Args:
        host: Address of a client; with IPv6, one of many that the same machine may use.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    return str(address.ipv4_mapped or ipaddress.IPv6Network((int(address), 64), strict=False))


class Identities:
    """Identities of browsers in signed cookies."""

    def __init__(self) -> None:
        """Choose a key; identities are valid until the server ends."""
        self._key = secrets.token_bytes(32)

    def new(self) -> str:
        """Return a new identity."""
        return secrets.token_urlsafe(16)

    def cookie(self, identity: str) -> str:
        """Return the cookie for an identity."""
        return f"{identity}.{hmac.digest(self._key, identity.encode(), 'sha256').hex()}"

    def read(self, cookie: str) -> str:
        """Return the identity in a cookie; empty if this server did not sign it."""
        identity = cookie.partition(".")[0]
        return identity if hmac.compare_digest(cookie.encode(), self.cookie(identity).encode()) else ""


class Throttle:
    """Lets a burst through at once and then one at a time at intervals, separately for each key."""

    def __init__(self, burst: int, interval_s: float, now: Callable[[], float] = clock.monotonic) -> None:
        """Start idle.

        Args:
            burst: Number of turns that may be taken at once.
            interval_s: Seconds between two turns after that.
            now: Monotonic clock, in seconds.
        """
        self._lead_s, self._interval_s, self._now = (burst - 1) * interval_s, interval_s, now
        self._next: OrderedDict[str, float] = OrderedDict()

    def take(self, key: str, max_wait_s: float = 0.0) -> float | None:
        """Take the next turn.

        Args:
            key: Whose turn.
            max_wait_s: Maximum time to wait for the turn, in seconds.

        Returns:
            Seconds until the turn; None if that exceeds the maximum, and no turn was taken.
        """
        now = self._now()
        following = max(self._next.get(key, now), now)
        wait_s = max(0.0, following - self._lead_s - now)
        if wait_s > max_wait_s:
            return None
        self._next[key] = following + self._interval_s
        self._next.move_to_end(key)
        if len(self._next) > MAX_KNOWN:
            self._next.popitem(last=False)
        return wait_s

    def give_back(self, key: str) -> None:
        """Return a turn that was not used."""
        if key in self._next:
            self._next[key] -= self._interval_s


class AttemptLimits:
    """Slows down visitors who enter wrong codes, and nobody else.

    After `FREE_TRIES` wrong codes, each further one doubles a visitor's wait. Visitors without a cookie, which browsers
    get with the page, share one limit per address. As anybody can come back as a new visitor, all wrong codes together
    are limited as well, far above the needs of a class; others then only have to press the button again.

    There are 31**6 = 887,503,681 room codes. All visitors together can try 1 / `GUESS_S` = 100 per second, or 720,000
    in a lesson of two hours: a chance of 1 in 1,200 for somebody who floods the server throughout. One visitor can try
    130: 1 in 6,800,000. There are 31**8 = 852,891,037,441 seat codes.
    """

    def __init__(self, now: Callable[[], float] = clock.monotonic) -> None:
        """Start without attempts.

        Args:
            now: Monotonic clock, in seconds.
        """
        self._now = now
        self._wrong: OrderedDict[str, tuple[int, float]] = (
            OrderedDict()
        )  # visitor → number of wrong codes, time of next attempt
        self._strangers = Throttle(STRANGER_TRIES, STRANGER_S, now)
        self._all = Throttle(GUESSES, GUESS_S, now)

    def begin(self, visitor: Visitor) -> float:
        """Begin an attempt.

        Args:
            visitor: The visitor.

        Returns:
            Seconds to wait before the code is checked.

        Raises:
            TooSoon: If the code is not checked.
        """
        left_s = self._wrong.get(visitor.identity, (0, 0.0))[1] - self._now()
        if left_s > 0:
            raise TooSoon(f"Too many wrong codes. Check the code, and try again in {_seconds(left_s)}.")
        if self._all.take("") is None:
            raise TooSoon("Too many wrong codes are coming in. Please try again.")
        wait_s = 0.0 if visitor.is_known else self._strangers.take(visitor.network, STRANGER_WAIT_S)
        if wait_s is None:
            self._all.give_back("")
            raise TooSoon("Too many wrong codes from browsers without cookies. Allow cookies, and try again.")
        return wait_s

    def end(self, visitor: Visitor, *, is_wrong: bool) -> None:
        """End an attempt.

        Args:
            visitor: The visitor.
            is_wrong: Whether the code was wrong.
        """
        if not is_wrong:
            self._all.give_back("")
            if not visitor.is_known:
                self._strangers.give_back(visitor.network)
        elif visitor.is_known:
            n_wrong = self._wrong.pop(visitor.identity, (0, 0.0))[0] + 1
            penalty_s = min(2.0 ** min(n_wrong - FREE_TRIES, 30), MAX_PENALTY_S) if n_wrong >= FREE_TRIES else 0.0
            self._wrong[visitor.identity] = (n_wrong, self._now() + penalty_s)
            if len(self._wrong) > MAX_KNOWN:
                self._wrong.popitem(last=False)


class Admission:
    """Admits visitors to a classroom."""

    def __init__(self, room: Classroom) -> None:
        """Start admitting visitors.

        Args:
            room: The room.
        """
        self._room = room
        self._attempts = AttemptLimits()
        self._seats = Throttle(SEATS, SEAT_S)
        self._n_waiting = 0

    async def enter(self, code: str, name: str, seat_code: str, visitor: Visitor) -> StudentSeat:
        """Assign a visitor a seat when it is their turn.

        Args:
            code: Room code as typed by the visitor.
            name: Name as typed by the visitor.
            seat_code: Seat code of a visitor who comes back; empty: none.
            visitor: The visitor.

        Raises:
            NoSeat: If there is none, or the visitor has to wait.
        """
        await self._wait(self._attempts.begin(visitor))
        try:
            self._room.check_code(code)
            if not seat_code.strip() and self._room.seat_of_visitor(visitor) is None:
                await self._wait_for_seat(visitor)
            seat = self._room.join(code, name, seat_code, visitor)
        except NoSeat as refusal:
            self._attempts.end(visitor, is_wrong=isinstance(refusal, WrongCode))
            raise
        self._attempts.end(visitor, is_wrong=False)
        return seat

    async def _wait_for_seat(self, visitor: Visitor) -> None:
        wait_s = self._seats.take(visitor.network, SEAT_WAIT_S)
        if wait_s is None:
            raise TooSoon("Many people are joining from your network. Try again in a minute.")
        await self._wait(wait_s)

    async def _wait(self, seconds: float) -> None:
        if not seconds:
            return
        if self._n_waiting >= MAX_WAITING:
            raise TooSoon("Many people are joining. Try again in a minute.")
        self._n_waiting += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._n_waiting -= 1


def _seconds(seconds: float) -> str:
    return counted(math.ceil(seconds), "second")
