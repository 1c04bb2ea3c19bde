"""Client processes: further processes that send the requests of this one, which goes on composing and recording.

Each is given the bodies of requests as they are sent, and gives back those of responses as they came, so that nothing
but the sending itself is divided: limits, budgets, retries and the run log stay here, and a run does not depend on how
many client processes it has.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import NoReturn
from weakref import WeakKeyDictionary

from mesa_llm.errors import BadReply, ConfigError
from mesa_llm.llm import child_process
from mesa_llm.llm.budget import send_again
from mesa_llm.llm.openai.client_process import Frames, Kind
from mesa_llm.llm.openai.connection import Response
from mesa_llm.text import counted

logger = logging.getLogger(__name__)

GRACE_S = 10.0
"""Seconds beyond the timeout of a request after which a client process that has not answered is ended."""

MAX_LOSSES = 3
"""Maximum number of client processes that one request is lost with; after that, it fails."""

MAX_EARLY_ENDS = 6
"""Maximum number of client processes that end in a row before any of them has answered a request."""

READ_BYTES = 1 << 20
"""Number of bytes that are read at a time of what a client process has left behind."""


@dataclass(eq=False, frozen=True, slots=True)
class _Target:
    """An address that requests are sent to."""

    number: int
    timeout_s: float
    frame: bytes
    """Its address, headers and bounds, as JSON."""


class _Lost(Exception):
    """The client process that had a request has ended."""

    def __init__(self, *, may_be_sent: bool) -> None:
        super().__init__()
        self.may_be_sent = may_be_sent


class ClientProcesses:
    """Client processes of one program, started when the first request is sent."""

    def __init__(self, n: int) -> None:
        """Start nothing yet.

        Args:
            n: Number of client processes.

        Raises:
            ConfigError: On Windows, where a process cannot be given a socket as its standard input.
        """
        if os.name == "nt":
            raise ConfigError("clients: client processes need Linux or macOS; leave the option out")
        self.n = n
        self._links: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Link]] = WeakKeyDictionary()
        self._starting: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._numbers = count(1)
        self._early_ends = 0

    @property
    def process_ids(self) -> list[int]:
        """Ids of the client processes that are running."""
        return [link.process.pid for links in self._links.values() for link in links]

    def connections(
        self, url: str, headers: Mapping[str, str], timeout_s: float, max_reply_bytes: int
    ) -> SharedConnections:
        """Return connections to one address, which the client processes hold; the arguments are those of `Connections`.

        Connects to nothing yet.
        """
        fields = {"url": url, "headers": dict(headers), "timeout_s": timeout_s, "max_reply_bytes": max_reply_bytes}
        return SharedConnections(self, _Target(next(self._numbers), timeout_s, json.dumps(fields).encode()))

    async def post(self, target: _Target, body: bytes) -> Response:
        """Have the least busy client process send a request; one that is lost with its process is sent again."""
        losses = 0
        while True:
            try:
                response = await (await self._least_busy()).post(target, body)
            except _Lost as lost:
                losses += 1
                if losses == MAX_LOSSES:
                    raise ConnectionError(f"{losses} client processes ended before there was a reply") from None
                if lost.may_be_sent:
                    await send_again()
            else:
                self._early_ends = 0
                return response

    async def _least_busy(self) -> _Link:
        """Return the client process with the fewest requests, after starting those that are missing."""
        loop = asyncio.get_running_loop()
        links = self._links.setdefault(loop, [])
        if len(links) < self.n:
            async with self._starting.setdefault(loop, asyncio.Lock()):
                while len(links) < self.n:
                    links += await self._start_several(self.n - len(links))
        return min(links, key=_n_waiting)

    async def _start_several(self, number: int) -> list[_Link]:
        """Start client processes at once; return those that have begun, and not ended since."""
        started: list[_Link] = []
        try:
            for _ in range(number):
                started.append(await self._start(asyncio.get_running_loop()))
            for link in started:
                await link.has_begun
        except asyncio.CancelledError:
            for link in started:
                link.close()
            raise
        return [link for link in started if not link.is_closed]

    async def _start(self, loop: asyncio.AbstractEventLoop) -> _Link:
        if self._early_ends >= MAX_EARLY_ENDS:
            raise ConfigError(
                f"client processes: {self._early_ends} in a row ended before any answered a request; their error is "
                "above, or the system ended them, as for lack of memory. Leave out clients (--clients), or lower it"
            )
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = subprocess.Popen(
                child_process.python("-m", "mesa_llm.llm.openai.client_process"),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=child_process.environment(),
                process_group=0,  # a Ctrl-C is not for it
            )
        _, link = await loop.create_connection(lambda: _Link(self, process, ours), sock=ours)
        return link

    def discard(self, link: _Link) -> None:
        """Use a client process no more, as it has ended."""
        self._early_ends += 1
        links = self._links.get(link.loop, [])
        if link in links:
            links.remove(link)

    def retire(self, target: _Target) -> None:
        """Send no more requests to a target, and close its connections."""
        for link in self._links.get(asyncio.get_running_loop(), ()):
            link.retire(target)

    async def close(self) -> None:
        """End the client processes of the running event loop; requests in flight are cancelled."""
        for link in self._links.pop(asyncio.get_running_loop(), []):
            link.close()


class SharedConnections:
    """Connections to one address that client processes hold; used like `Connections`."""

    def __init__(self, processes: ClientProcesses, target: _Target) -> None:
        """Set the client processes and the address."""
        self._processes = processes
        self._target = target

    async def post(self, body: bytes) -> Response:
        """Send a body, and wait for the response.

        Raises:
            OSError: As for `Connections.post`, or if several client processes have ended before there was a response.
            BadReply: If a successful response is longer than it may be.
            ConfigError: If client processes end before they answer anything.
        """
        return await self._processes.post(self._target, body)

    async def retire(self) -> None:
        """Use none of the connections again."""
        self._processes.retire(self._target)

    close = retire


class _Link(Frames):
    """One client process, and the requests that it has."""

    def __init__(self, processes: ClientProcesses, process: subprocess.Popen[bytes], end: socket.socket) -> None:
        super().__init__()
        self.waiting: dict[int, tuple[asyncio.Future[tuple[int, int, bytes]], float]] = {}  # with the deadline
        self.has_begun: asyncio.Future[None] = self.loop.create_future()  # or ended before that
        self._processes = processes
        self.process = process
        self._end = end
        self._targets: set[int] = set()
        self._numbers = count(1)
        self._last_taken = 0
        self._watch: asyncio.TimerHandle | None = None
        self.is_closed = False

    async def post(self, target: _Target, body: bytes) -> Response:
        """Have a request sent, and wait for the response."""
        if target.number not in self._targets:
            self._targets.add(target.number)
            self.put(0, Kind.TARGET, target.number, target.frame)
        number, future = next(self._numbers), self.loop.create_future()
        deadline = self.loop.time() + target.timeout_s + GRACE_S
        self.waiting[number] = future, deadline
        if self._watch is None:
            self._watch = self.loop.call_at(deadline, self._check_deadline)
        self.put(number, Kind.POST, target.number, body)
        try:
            kind, more, content = await future
        except asyncio.CancelledError:
            if not self.is_closed:
                self.put(number, Kind.CANCEL)
            raise
        finally:
            self.waiting.pop(number, None)
        if kind < 100:
            _raise(kind, content.decode())
        return Response(kind, content[:more].decode() if more else None, content[more:] if more else content)

    def take(self, number: int, kind: int, more: int, content: bytes) -> None:
        if kind == Kind.TAKEN:
            self._last_taken = number
            if not self.has_begun.done():
                self.has_begun.set_result(None)
        elif number in self.waiting and not (future := self.waiting[number][0]).done():
            future.set_result((kind, more, content))

    def retire(self, target: _Target) -> None:
        """Have the connections to a target closed."""
        if target.number in self._targets:
            self._targets.remove(target.number)
            self.put(0, Kind.RETIRE, target.number)

    def _check_deadline(self) -> None:
        """End the process if it has not answered the oldest request in time: it hangs, or was stopped."""
        self._watch = None
        _, deadline = next(iter(self.waiting.values()), (None, 0.0))
        if deadline > self.loop.time():
            self._watch = self.loop.call_at(deadline, self._check_deadline)
        elif deadline:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the requests of a process that has ended be sent by another one."""
        if self._watch is not None:
            self._watch.cancel()
        status = self.process.poll()
        self.process.kill()
        self.process.wait()
        if self.is_closed:
            return
        self.is_closed = True
        self._processes.discard(self)
        if not self.has_begun.done():
            self.has_begun.set_result(None)
        with suppress(OSError):  # responses that it had passed on, if writing to it has failed before reading them
            while data := self._end.recv(READ_BYTES):
                self.data_received(data)
        waiting = {number: future for number, (future, _) in self.waiting.items() if not future.done()}
        reason = "" if status is None else f" (status {status})"
        logger.warning(
            "a client process ended%s; sending again what it had: %s", reason, counted(len(waiting), "request")
        )
        for number, future in waiting.items():
            future.set_exception(_Lost(may_be_sent=number <= self._last_taken))

    def close(self) -> None:
        """End the process, and cancel its requests."""
        self.is_closed = True
        for future, _ in self.waiting.values():
            future.cancel()
        self.transport.abort()


def _n_waiting(link: _Link) -> int:
    return len(link.waiting)


def _raise(kind: int, text: str) -> NoReturn:
    """Raise the error that a client process reports of a request."""
    if kind == Kind.TOO_LONG:
        raise BadReply(text)
    errors: dict[int, type[OSError]] = {Kind.TIMED_OUT: TimeoutError, Kind.NOT_CONNECTED: ConnectionRefusedError}
    raise errors.get(kind, ConnectionError)(text)
