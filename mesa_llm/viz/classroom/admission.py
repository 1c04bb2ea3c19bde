"""The door of a room: who may try a code, and when; and how fast seats are taken.

Nothing here depends on an address alone: a whole class may come from one, that of the school's router. A visitor is
known by a cookie, which anybody can throw away; so what is counted for a visitor is limited for all together as well.
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
from mesa_llm.viz.classroom.room import NoSeat, Room, Seat, Visitor, WrongCode

MAX_KNOWN = 10_000
"""Maximum number of visitors or addresses that are remembered; those who were seen last stay."""

FREE_TRIES = 3
"""Number of wrong codes of a visitor that cost nothing."""

MAX_PENALTY_S = 60.0
"""Maximum time before a visitor's next try, in seconds; it doubles from 1 with each wrong code."""

STRANGER_TRIES, STRANGER_S = 10, 0.5
"""Number of wrong codes that visitors without a cookie may try at once from one address, and the seconds for each
further one."""

GUESSES, GUESS_S = 200, 0.01
"""Number of wrong codes that all visitors together may try at once, and the seconds for each further one."""

SEATS, SEAT_S = 6, 2.0
"""Number of seats that may be taken at once from one address, and the seconds for each further one."""

STRANGER_WAIT_S, SEAT_WAIT_S = 5.0, 60.0
"""Maximum time that a visitor without a cookie, and one who asks for a seat, waits for a turn, in seconds."""

MAX_WAITING = 60
"""Maximum number of visitors who wait for a turn, as each holds a connection."""


class TooSoon(NoSeat):
    """A visitor has to wait before the next try."""


def network_of(host: str) -> str:
    """Return what stands for one client: an IPv4 address, the /64 network of an IPv6 address, or the text as it is.

    Args:
        host: Address of a client; one of IPv6 is one of many that the same machine may take.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    return str(address.ipv4_mapped or ipaddress.IPv6Network((int(address), 64), strict=False))


class Identities:
    """The identities of browsers, in cookies that nobody else can make."""

    def __init__(self) -> None:
        """Choose a key; identities end with the server."""
        self._key = secrets.token_bytes(32)

    def new(self) -> str:
        """Return a new identity."""
        return secrets.token_urlsafe(16)

    def cookie(self, identity: str) -> str:
        """Return the cookie of an identity."""
        return f"{identity}.{hmac.digest(self._key, identity.encode(), 'sha256').hex()}"

    def read(self, cookie: str) -> str:
        """Return the identity in a cookie; empty if this server has not made it."""
        identity = cookie.partition(".")[0]
        return identity if hmac.compare_digest(cookie.encode(), self.cookie(identity).encode()) else ""


class Throttle:
    """Lets some through at once, and then one after another at intervals, for each key by itself."""

    def __init__(self, burst: int, interval_s: float, now: Callable[[], float] = clock.monotonic) -> None:
        """Start with nobody.

        Args:
            burst: Number of those who are let through at once.
            interval_s: Seconds between two after that.
            now: Returns the seconds of any monotonic clock.
        """
        self._lead_s, self._interval_s, self._now = (burst - 1) * interval_s, interval_s, now
        self._next: OrderedDict[str, float] = OrderedDict()

    def take(self, key: str, max_wait_s: float = 0.0) -> float | None:
        """Take the next turn.

        Args:
            key: Whose.
            max_wait_s: Maximum time to wait for it, in seconds.

        Returns:
            Seconds until it comes; None if that is longer than the maximum, and it was not taken.
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
        """Give back a turn, which counts no more."""
        if key in self._next:
            self._next[key] -= self._interval_s


class Tries:
    """Slows down those who type wrong codes, and nobody else.

    After `FREE_TRIES` wrong codes each further one doubles a visitor's wait. Who comes without a cookie shares the pace
    of all others at the same address who do; browsers get one with the page. As anybody can be a new visitor again, all
    wrong codes together have a pace too, which is far above that of a class and only makes others press a button again.

    A room code is one of 31**6 = 887,503,681. All visitors together can try 1 / `GUESS_S` = 100 a second, which is
    720,000 in a lesson of two hours: one chance in 1,200 for somebody who floods the server all along. A visitor alone
    can try 130: one in 6,800,000. A seat code is one of 31**8 = 852,891,037,441.
    """

    def __init__(self, now: Callable[[], float] = clock.monotonic) -> None:
        """Start with none.

        Args:
            now: Returns the seconds of any monotonic clock.
        """
        self._now = now
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # visitor → number of wrong codes, next try
        self._strangers = Throttle(STRANGER_TRIES, STRANGER_S, now)
        self._all = Throttle(GUESSES, GUESS_S, now)

    def begin(self, visitor: Visitor) -> float:
        """Begin a try.

        Args:
            visitor: The visitor.

        Returns:
            Seconds to wait before the code is looked at.

        Raises:
            TooSoon: If it is not looked at.
        """
        left_s = self._wrong.get(visitor.identity, (0, 0.0))[1] - self._now()
        if left_s > 0:
            raise TooSoon(f"Too many wrong codes. Look at the code again, and try it in {_seconds(left_s)}.")
        if self._all.take("") is None:
            raise TooSoon("Too many wrong codes are coming in. Try again.")
        wait_s = 0.0 if visitor.is_known else self._strangers.take(visitor.network, STRANGER_WAIT_S)
        if wait_s is None:
            self._all.give_back("")
            raise TooSoon("Too many wrong codes came from browsers without cookies. Allow cookies, and try again.")
        return wait_s

    def end(self, visitor: Visitor, *, is_wrong: bool) -> None:
        """End a try.

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
    """The door of a room."""

    def __init__(self, room: Room) -> None:
        """Open it.

        Args:
            room: The room.
        """
        self._room = room
        self._tries = Tries()
        self._seats = Throttle(SEATS, SEAT_S)
        self._n_waiting = 0

    async def enter(self, code: str, name: str, seat_code: str, visitor: Visitor) -> Seat:
        """Assign a visitor a seat, when it is the visitor's turn.

        Args:
            code: Code of the room, as the visitor typed it.
            name: Name, as the visitor typed it.
            seat_code: Code of the seat of a visitor who comes back; empty: none.
            visitor: The visitor.

        Raises:
            NoSeat: If there is none, or it is not the visitor's turn.
        """
        await self._wait(self._tries.begin(visitor))
        try:
            self._room.check_code(code)
            if not seat_code.strip() and self._room.seat_of_visitor(visitor) is None:
                await self._wait_for_seat(visitor)
            seat = self._room.join(code, name, seat_code, visitor)
        except NoSeat as refusal:
            self._tries.end(visitor, is_wrong=isinstance(refusal, WrongCode))
            raise
        self._tries.end(visitor, is_wrong=False)
        return seat

    async def _wait_for_seat(self, visitor: Visitor) -> None:
        wait_s = self._seats.take(visitor.network, SEAT_WAIT_S)
        if wait_s is None:
            raise TooSoon("Very many seats are being taken from your network. Try again in a minute.")
        await self._wait(wait_s)

    async def _wait(self, seconds: float) -> None:
        if not seconds:
            return
        if self._n_waiting >= MAX_WAITING:
            raise TooSoon("Very many are at the door. Try again in a minute.")
        self._n_waiting += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._n_waiting -= 1


def _seconds(seconds: float) -> str:
    return counted(math.ceil(seconds), "second")
