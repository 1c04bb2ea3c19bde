"""libcurl's transfers on asyncio's event loop, many at once.

`pycurl.AsyncCurlMulti` does the same, but makes the event loop watch every socket again for each request, which takes a
dozen Python calls. Here an epoll watches the sockets, and the event loop the epoll, so that what has arrived together
is read together. Transfers are divided into pools, as libcurl looks for an idle connection among all those of a pool:
in one pool of 2,000 transfers, this would take longer than everything else it does for a request.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import pycurl

libcurl: Any = pycurl
"""The same module, untyped: the stubs for type checkers lack its newer names."""

HAS_EPOLL = hasattr(select, "epoll")
"""Whether the system has an epoll, as Linux does; elsewhere the event loop watches each socket."""

MAX_UNASKED = 64
"""Maximum number of times that input which nobody asked for is read."""

POOL_SIZE = 64
"""Maximum number of transfers in a pool, and of idle connections that it keeps."""


@dataclass(slots=True, eq=False)
class _Pool:
    """Transfers that share connections."""

    multi: Any
    waiting: dict[pycurl.Curl, asyncio.Future[tuple[int, str] | None]] = field(default_factory=dict)
    due: asyncio.Handle | None = None
    """Lets libcurl continue as soon as the event loop does; None: it did not ask for that."""
    timer: asyncio.TimerHandle | None = None
    """Lets libcurl continue at a time, or sooner: it asks for another one with every transfer."""
    timer_at: float = inf
    """Time of the event loop at which libcurl wants to continue, in seconds."""

    def end_complete(self) -> None:
        """End all transfers that are complete, or that libcurl has given up."""
        _, complete, failed = self.multi.info_read()
        for curl in complete:
            self.end(curl, None)
        for curl, code, text in failed:
            self.end(curl, (code, text))

    def end(self, curl: pycurl.Curl, error: tuple[int, str] | None) -> None:
        """End a transfer, if it is still awaited.

        Args:
            curl: Its handle.
            error: Number and text of libcurl's error; None: it is complete.
        """
        future = self.waiting.pop(curl, None)
        if future is None:
            return
        self.multi.remove_handle(curl)
        if not future.done():
            future.set_result(error)


class _IdleSockets:
    """Sockets of connections that wait for a request, on which nothing may arrive.

    What arrives all the same is an answer that nobody asked for, or the end of the connection. If the connection were
    used again, each request on it would get the answer to the one before.
    """

    def __init__(self, has_epoll: bool) -> None:
        self._epoll: Any = select.epoll() if has_epoll else None
        self._sockets: set[int] = set()  # without an epoll

    def add(self, number: int) -> None:
        """Watch a socket that has become idle, unless it is closed already."""
        if self._epoll is None:
            self._sockets.add(number)
            return
        try:  # faster than `suppress`
            self._epoll.register(number, select.EPOLLIN)
        except OSError:  # it is closed already
            return

    def discard(self, number: int) -> None:
        """Stop watching a socket, if it is watched."""
        if self._epoll is None:
            self._sockets.discard(number)
            return
        try:
            self._epoll.unregister(number)
        except OSError:  # it was never idle
            return

    def end_unclean(self) -> None:
        """End the connections on which something has arrived; libcurl then opens new ones in their place."""
        if self._epoll is None:
            for number in [number for number in self._sockets if _has_input(number)]:
                self._sockets.discard(number)
                _end(number)
            return
        for number, _ in self._epoll.poll(0):
            try:
                self._epoll.unregister(number)
            except OSError:  # it is closed here, but not in a forked child
                self.close()
                self._epoll = select.epoll()
                return
            _end(number)

    def close(self) -> None:
        """Stop watching sockets."""
        self._sockets.clear()
        if self._epoll is not None:
            self._epoll.close()


def _has_input(number: int) -> bool:
    """Check whether something has arrived on a socket, its end included."""
    try:
        with socket.socket(fileno=os.dup(number)) as copy:
            return bool(select.select([copy], [], [], 0)[0])
    except (OSError, ValueError):  # closed, or more than `select` can watch
        return False


def _end(number: int) -> None:
    """Discard what has arrived on a socket, and shut it down, so that libcurl finds its connection closed."""
    with suppress(OSError), socket.socket(fileno=os.dup(number)) as copy:
        copy.setblocking(False)
        with suppress(BlockingIOError):
            for _ in range(MAX_UNASKED):
                if not copy.recv(65536):
                    break
        copy.shutdown(socket.SHUT_RDWR)


class Transfers:
    """Runs the transfers of one event loop, over connections that stay open."""

    def __init__(self, *, has_epoll: bool = HAS_EPOLL) -> None:
        """Start without transfers; to be called on the event loop.

        Args:
            has_epoll: Whether an epoll watches the sockets.
        """
        self._loop = asyncio.get_running_loop()
        self._pools: list[_Pool] = []
        self._is_closed = False
        self._epoll: Any = None
        self._idle = _IdleSockets(has_epoll)
        self._watched: dict[int, _Pool] = {}  # socket → its pool
        if has_epoll:
            self._epoll = select.epoll()
            self._loop.add_reader(self._epoll.fileno(), self._take_ready)

    async def perform(self, curl: pycurl.Curl) -> tuple[int, str] | None:
        """Run a transfer; cancelling it cuts its connection.

        Args:
            curl: Its handle, set up.

        Returns:
            Number and text of the error with which libcurl gave it up; None: it is complete.
        """
        self._idle.end_unclean()
        for pool in self._pools:  # the first with room, which is the likeliest to have an idle connection
            if len(pool.waiting) < POOL_SIZE:
                break
        else:
            pool = self._open_pool()
        future = pool.waiting[curl] = self._loop.create_future()
        try:
            pool.multi.add_handle(curl)
            return await future
        finally:
            if pool.waiting.pop(curl, None) is not None:
                pool.multi.remove_handle(curl)

    def _open_pool(self) -> _Pool:
        multi = libcurl.CurlMulti(close_handles=True)
        pool = _Pool(multi)
        multi.setopt(pycurl.M_MAXCONNECTS, POOL_SIZE)
        multi.setopt(pycurl.M_SOCKETFUNCTION, partial(self._watch, pool))
        multi.setopt(pycurl.M_TIMERFUNCTION, partial(self._set_timer, pool))
        self._pools.append(pool)
        return pool

    async def close(self) -> None:
        """Cancel all transfers, and close the connections."""
        if self._is_closed:
            return
        self._is_closed = True
        for pool in self._pools:
            self._set_timer(pool, -1)
            self._start_timer(pool)
            waiting = dict(pool.waiting)
            pool.waiting.clear()
            for curl, future in waiting.items():
                pool.multi.remove_handle(curl)
                future.cancel()
            pool.multi.close()
        for number, pool in list(self._watched.items()):
            self._watch(pool, pycurl.POLL_REMOVE, number)
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
        self._idle.close()

    # -- called by libcurl

    def _watch(self, pool: _Pool, actions: int, number: int, *_: Any) -> None:
        """Watch a socket for what libcurl waits for: `POLL_IN`, `POLL_OUT`, both, or nothing any more."""
        actions &= pycurl.POLL_INOUT
        is_watched = self._watched.pop(number, None) is not None
        if not actions:
            self._idle.add(number)
        elif not is_watched:
            self._idle.discard(number)
        if actions:
            self._watched[number] = pool
        if self._epoll is None:
            self._watch_by_loop(pool, actions, number)
        elif not actions and is_watched:
            try:  # faster than `suppress`
                self._epoll.unregister(number)
            except OSError:  # it is already closed
                return
        elif actions:
            events = (actions & pycurl.POLL_IN and select.EPOLLIN) | (actions & pycurl.POLL_OUT and select.EPOLLOUT)
            (self._epoll.modify if is_watched else self._epoll.register)(number, events)

    def _watch_by_loop(self, pool: _Pool, actions: int, number: int) -> None:
        if actions & pycurl.POLL_IN:
            self._loop.add_reader(number, self._go_on, pool, [(number, pycurl.CSELECT_IN)])
        else:
            self._loop.remove_reader(number)
        if actions & pycurl.POLL_OUT:
            self._loop.add_writer(number, self._go_on, pool, [(number, pycurl.CSELECT_OUT)])
        else:
            self._loop.remove_writer(number)

    def _set_timer(self, pool: _Pool, ms: int) -> None:
        """Let libcurl continue after some milliseconds; negative: not before a socket is ready."""
        if ms == 0:
            pool.timer_at = inf
            if pool.due is None:  # libcurl sets it for each transfer added before the event loop continues
                pool.due = self._loop.call_soon(self._take_due, pool)
            return
        if pool.due is not None:
            pool.due.cancel()
            pool.due = None
        pool.timer_at = inf if ms < 0 else self._loop.time() + ms / 1000
        if pool.timer is None or pool.timer_at < pool.timer.when():
            self._start_timer(pool)

    def _start_timer(self, pool: _Pool) -> None:
        """Wake up when libcurl wants to continue."""
        if pool.timer is not None:
            pool.timer.cancel()
        is_wanted = pool.timer_at < inf
        pool.timer = self._loop.call_at(pool.timer_at, self._take_timer, pool) if is_wanted else None

    # -- called by the event loop

    def _take_due(self, pool: _Pool) -> None:
        pool.due = None
        self._go_on(pool, [(pycurl.SOCKET_TIMEOUT, 0)])

    def _take_timer(self, pool: _Pool) -> None:
        pool.timer = None
        if pool.timer_at > self._loop.time():  # another transfer has put it off since
            self._start_timer(pool)
            return
        pool.timer_at = inf
        self._go_on(pool, [(pycurl.SOCKET_TIMEOUT, 0)])

    def _take_ready(self) -> None:
        """Continue with the sockets that are ready; one with an error is reported as ready for both."""
        ready: dict[_Pool, list[tuple[int, int]]] = {}
        for number, events in self._epoll.poll(0):
            actions = (events & ~select.EPOLLOUT and pycurl.CSELECT_IN) | (
                events & ~select.EPOLLIN and pycurl.CSELECT_OUT
            )
            ready.setdefault(self._watched[number], []).append((number, actions))
        for pool, sockets in ready.items():
            self._go_on(pool, sockets)

    def _go_on(self, pool: _Pool, ready: Sequence[tuple[int, int]]) -> None:
        """Let libcurl read and write what it can, and end the transfers that are complete.

        Args:
            pool: The pool of the sockets.
            ready: Sockets, and what each is ready for: `CSELECT_IN`, `CSELECT_OUT`, or both.
        """
        if self._is_closed:
            return
        try:
            for number, actions in ready:
                pool.multi.socket_action(number, actions)
        except pycurl.error as error:  # libcurl can do nothing more, and would end no transfer
            arguments: tuple[Any, ...] = error.args
            for curl in list(pool.waiting):
                pool.end(curl, (int(arguments[0]), str(arguments[1])))
            return
        pool.end_complete()
