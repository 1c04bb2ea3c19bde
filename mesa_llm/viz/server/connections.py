"""Connections of the page server, each bounded in time, and all of them in number.

Uvicorn waits for a client for as long as the client likes: for a request that is never finished, for a reader that
never reads. Here, a connection that waits too long for its client is closed; and where there is no room for another,
the one that has waited longest for its client gives way, first of all at the address that holds the most. So whoever
opens connections by the hundred displaces their own, and a browser that sends its request gets its page.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from mesa_llm.viz.classroom.admission import network_of

REQUEST_S = 10.0
"""Maximum time for a whole request, from the beginning of a connection or the end of the last response, in seconds."""

IDLE_S = 5
"""Maximum time between a response and the first byte of the next request, in seconds."""

STALL_S = 10.0
"""Maximum time in which a client reads nothing of what was sent to it, in seconds."""

LOOK_S = 1.0
"""Seconds between two checks of all connections."""

MAX_CONNECTIONS = 1024
"""Maximum number of connections."""

MAX_PER_ADDRESS = 400
"""Maximum number of connections of an address: a class of 60 behind one router, each browser with 6, and some more."""

MAX_ACCEPTED = 16
"""Maximum number of connections that are accepted in a turn of the event loop; some turns pass before others give way,
and asyncio accepts none for a second once there is no descriptor left."""

MAX_QUEUE = 1024
"""Maximum number of connections that wait to be accepted; a browser tries again after a second only."""

MAX_DESCRIPTORS = 4096
"""Maximum number of descriptors that the server asks its operating system for."""


def raise_descriptor_limit() -> int:
    """Raise the number of descriptors that this process may open, as far as it may by itself.

    Returns:
        The number; `MAX_DESCRIPTORS` where the operating system sets none.
    """
    try:
        import resource
    except ImportError:  # Windows
        return MAX_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY:
        return MAX_DESCRIPTORS
    if soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return soft


class Connections:
    """All open connections of a server."""

    def __init__(self, n_descriptors: int, now: Callable[[], float] = clock.monotonic) -> None:
        """Start with none.

        Args:
            n_descriptors: Number of descriptors that the process may open; half of them are left to files, run logs and
                language models.
            now: Returns the seconds of any monotonic clock.
        """
        self.now = now
        self._maximum = min(MAX_CONNECTIONS, n_descriptors // 2)
        self._open: dict[Connection, None] = {}
        self._is_watching = False

    def protocol(self) -> type[Connection]:
        """Return the protocol of these connections, for uvicorn."""
        return type("ConnectionOfServer", (Connection,), {"pool": self})

    def admit(self, connection: Connection) -> None:
        """Add a connection, in whose favour another may be closed; without room, it is closed itself.

        Args:
            connection: The connection.
        """
        neighbours = [other for other in self._open if other.network == connection.network]
        if len(neighbours) >= MAX_PER_ADDRESS:
            has_room = self._displace(neighbours)
        else:
            has_room = len(self._open) < self._maximum or self._displace(self._open)
        if not has_room:
            connection.abort()
            return
        self._open[connection] = None
        self._watch()

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has ended."""
        self._open.pop(connection, None)

    def _displace(self, connections: Iterable[Connection]) -> bool:
        """Close the connection that can best be spared, and return whether there was one."""
        sizes, now = Counter(connection.network for connection in self._open), self.now()
        idle = [connection for connection in connections if connection.awaits_client]
        if not idle:
            return False
        worst = max(idle, key=lambda connection: (sizes[connection.network], now - connection.since))
        worst.abort()
        self.forget(worst)
        return True

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Close all connections that have waited too long for their clients."""
        now = self.now()
        for connection in list(self._open):
            connection.look(now)
            if connection.is_gone:
                self.forget(connection)
        self._is_watching = False
        if self._open:
            self._watch()


class Connection(H11Protocol):
    """A connection that does not wait for its client for ever.

    Attributes:
        pool: All connections of the server.
        network: The address of its client, or the network that one household or class shares.
        since: Time since which it has waited for its client, if it does.
    """

    pool: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.network = network_of(self.client[0] if self.client else "")
        self.since = self.pool.now()
        self._n_unread = 0
        self._is_websocket = False
        self.pool.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the room to others."""
        super().connection_lost(exc)
        self.pool.forget(self)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self.since = self.pool.now()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the connection to the protocol of WebSockets, whose pings find out whether its client lives."""
        self._is_websocket = True
        super().handle_websocket_upgrade(event)

    @property
    def awaits_client(self) -> bool:
        """Whether it is the client's turn: to finish a request, or to read a response."""
        if self.transport.get_write_buffer_size():
            return True
        cycle: Any = self.cycle
        return not self._is_websocket and (cycle is None or cycle.response_complete or cycle.more_body)

    @property
    def is_gone(self) -> bool:
        """Whether its socket is closed."""
        return self.transport.get_extra_info("socket").fileno() < 0

    def look(self, now: float) -> None:
        """End the connection if its client has not done its part in time.

        Args:
            now: The time.
        """
        n_unread = self.transport.get_write_buffer_size()
        if n_unread and (not self._n_unread or n_unread < self._n_unread):  # the client reads
            self.since = now
        self._n_unread = n_unread
        if self.awaits_client and now - self.since >= (STALL_S if n_unread else REQUEST_S):
            self.abort()

    def abort(self) -> None:
        """End the connection at once, whatever the client has not read yet."""
        self.transport.abort()
