"""libcurl's transfers in asyncio's event loop, many of them at once.

`pycurl.AsyncCurlMulti` does the same, and has the event loop watch every socket anew for each request, which takes a
dozen calls of Python's. Here an epoll watches the sockets, and the event loop the epoll: what has arrived together is
read together.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pycurl

libcurl: Any = pycurl
"""The same module: the stubs that type checkers have of it lack what is newer."""

HAS_EPOLL = hasattr(select, "epoll")
"""Whether the system has an epoll, as Linux does; elsewhere the event loop watches each socket."""


class Transfers:
    """The transfers of one event loop, over connections that stay open."""

    def __init__(self, max_idle: int, *, has_epoll: bool = HAS_EPOLL) -> None:
        """Connect to nothing yet; to be called on the event loop.

        Args:
            max_idle: Maximum number of idle connections that are kept.
            has_epoll: Whether an epoll watches the sockets.
        """
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[pycurl.Curl, asyncio.Future[tuple[int, str] | None]] = {}
        self._timer: asyncio.Handle | None = None
        self._is_due = False  # whether the timer goes off as soon as the event loop goes on
        self._is_closed = False
        self._epoll: Any = None
        self._watched: dict[int, int] = {}
        if has_epoll:
            self._epoll = select.epoll()
            self._loop.add_reader(self._epoll.fileno(), self._take_ready)
        self._multi = libcurl.CurlMulti(close_handles=True)
        self._multi.setopt(pycurl.M_MAXCONNECTS, max_idle)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    async def perform(self, curl: pycurl.Curl) -> tuple[int, str] | None:
        """Make a transfer; a cancelled one cuts its connection.

        Returns:
            Number and text of the error that libcurl gave it up with; None: it is complete.
        """
        ended = self._waiting[curl] = self._loop.create_future()
        try:
            self._multi.add_handle(curl)
            return await ended
        finally:
            if self._waiting.pop(curl, None) is not None:
                self._multi.remove_handle(curl)

    async def close(self) -> None:
        """Cancel all transfers, and close the connections."""
        if self._is_closed:
            return
        self._is_closed = True
        self._set_timer(-1)
        waiting = dict(self._waiting)
        self._waiting.clear()
        for curl, ended in waiting.items():
            self._multi.remove_handle(curl)
            ended.cancel()
        self._multi.close()
        for socket in list(self._watched):
            self._watch(pycurl.POLL_REMOVE, socket)
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()

    # -- called by libcurl

    def _watch(self, wanted: int, socket: int, *_: Any) -> None:
        """Watch a socket for what libcurl waits for: `POLL_IN`, `POLL_OUT`, both, or nothing any more."""
        wanted &= pycurl.POLL_INOUT
        watched = self._watched.pop(socket, 0)
        if wanted:
            self._watched[socket] = wanted
        if self._epoll is None:
            self._watch_by_loop(wanted, socket)
        elif not wanted and watched:
            with suppress(OSError):  # it is closed already
                self._epoll.unregister(socket)
        elif wanted:
            events = (wanted & pycurl.POLL_IN and select.EPOLLIN) | (wanted & pycurl.POLL_OUT and select.EPOLLOUT)
            (self._epoll.modify if watched else self._epoll.register)(socket, events)

    def _watch_by_loop(self, wanted: int, socket: int) -> None:
        if wanted & pycurl.POLL_IN:
            self._loop.add_reader(socket, self._go_on, [(socket, pycurl.CSELECT_IN)])
        else:
            self._loop.remove_reader(socket)
        if wanted & pycurl.POLL_OUT:
            self._loop.add_writer(socket, self._go_on, [(socket, pycurl.CSELECT_OUT)])
        else:
            self._loop.remove_writer(socket)

    def _set_timer(self, ms: int) -> None:
        """Let libcurl go on after some milliseconds; negative: not before a socket is ready."""
        if ms == 0 and self._is_due:  # as each transfer says that is added before the event loop goes on
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_due = ms == 0
        if ms == 0:
            self._timer = self._loop.call_soon(self._take_timer)
        elif ms > 0:
            self._timer = self._loop.call_later(ms / 1000, self._take_timer)

    # -- called by the event loop

    def _take_timer(self) -> None:
        self._timer, self._is_due = None, False
        self._go_on([(pycurl.SOCKET_TIMEOUT, 0)])

    def _take_ready(self) -> None:
        """Go on with the sockets that are ready; an error is both read and written to, to be found."""
        self._go_on(
            [
                (
                    socket,
                    (events & ~select.EPOLLOUT and pycurl.CSELECT_IN)
                    | (events & ~select.EPOLLIN and pycurl.CSELECT_OUT),
                )
                for socket, events in self._epoll.poll(0)
            ]
        )

    def _go_on(self, ready: Sequence[tuple[int, int]]) -> None:
        """Let libcurl read and write what it can, and end the transfers that are complete.

        Args:
            ready: Sockets, and what each is ready for: `CSELECT_IN`, `CSELECT_OUT`, or both.
        """
        if self._is_closed:
            return
        try:
            for socket, events in ready:
                self._multi.socket_action(socket, events)
        except pycurl.error as error:  # libcurl can do nothing any more, and would end no transfer
            arguments: tuple[Any, ...] = error.args
            for curl in list(self._waiting):
                self._end(curl, (int(arguments[0]), str(arguments[1])))
            return
        _, complete, failed = self._multi.info_read()
        for curl in complete:
            self._end(curl, None)
        for curl, code, text in failed:
            self._end(curl, (code, text))

    def _end(self, curl: pycurl.Curl, error: tuple[int, str] | None) -> None:
        ended = self._waiting.pop(curl, None)
        if ended is None:
            return
        self._multi.remove_handle(curl)
        if not ended.done():
            ended.set_result(error)
