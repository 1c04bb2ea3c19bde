"""Connections of the page server, limited in time and number.

Uvicorn waits for slow clients indefinitely. Here, a connection that waits too long for its client is closed, and when
the limit is reached, the one that has waited longest gives way, starting with the address that holds the most. So a
client that opens hundreds of connections displaces its own, and a browser that sends its request gets its page.
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
"""Maximum time for a complete request since the connection opened or the last response ended, in seconds."""

IDLE_S = 5
"""Maximum time between a response and the first byte of the next request, in seconds."""

STALL_S = 10.0
"""Maximum time for which a client reads none of what was sent, in seconds."""

LOOK_S = 1.0
"""Seconds between two checks of all connections."""

MAX_CONNECTIONS = 1024
"""Maximum number of connections."""

MAX_PER_ADDRESS = 400
"""Maximum number of connections per address: a class of 60 behind one router with 6 each, and some spare."""

MAX_ACCEPTED = 16
"""Maximum number of connections accepted per turn of the event loop: it takes some turns for others to give way, and
asyncio accepts none for a second once the descriptors are used up."""

MAX_QUEUE = 1024
"""Maximum number of connections waiting to be accepted; a browser retries only after a second."""

MAX_DESCRIPTORS = 4096
"""Maximum number of file descriptors to request from the operating system."""


def raise_descriptor_limit() -> int:
    """Raise the limit of file descriptors of this process, as far as it is allowed to.

    Returns:
        The limit; `MAX_DESCRIPTORS` if the operating system sets none.
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


class ConnectionPool:
    """All open connections of a server."""

    def __init__(self, n_descriptors: int, now: Callable[[], float] = clock.monotonic) -> None:
        """Start without connections.

        Args:
            n_descriptors: Limit of file descriptors of the process; half are left for files, run logs and language
                models.
            now: Monotonic clock, in seconds.
        """
        self.now = now
        self._maximum = min(MAX_CONNECTIONS, n_descriptors // 2)
        self._open: dict[Connection, None] = {}
        self._is_watching = False

    def protocol(self) -> type[Connection]:
        """Return the protocol of these connections for Uvicorn."""
        return type("ConnectionOfServer", (Connection,), {"pool": self})

    def admit(self, connection: Connection) -> None:
        """Add a connection, closing another one if necessary; if none can be closed, close this one.

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
        """Remove a connection that has ended."""
        self._open.pop(connection, None)

    def _displace(self, connections: Iterable[Connection]) -> bool:
        """Close the most dispensable connection, and return whether there was one."""
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
        """Close connections that have waited too long for their clients."""
        now = self.now()
        for connection in list(self._open):
            connection.look(now)
            if connection.is_gone:
                self.forget(connection)
        self._is_watching = False
        if self._open:
            self._watch()


class Connection(H11Protocol):
    """A connection that does not wait for its client forever.

    Attributes:
        pool: All connections of the server.
        network: Network of its client; see `network_of`.
        since: Time at which it began to wait for its client.
    """

    pool: ConnectionPool

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.network = network_of(self.client[0] if self.client else "")
        self.since = self.pool.now()
        self._n_unread = 0
        self._is_websocket = False
        self.pool.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for others."""
        super().connection_lost(exc)
        self.pool.forget(self)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self.since = self.pool.now()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Hand the connection to the WebSocket protocol, which detects lost clients by pings."""
        self._is_websocket = True
        super().handle_websocket_upgrade(event)

    @property
    def awaits_client(self) -> bool:
        """Whether the client has to act: finish a request, or read a response."""
        if self.transport.get_write_buffer_size():
            return True
        cycle: Any = self.cycle
        return not self._is_websocket and (cycle is None or cycle.response_complete or cycle.more_body)

    @property
    def is_gone(self) -> bool:
        """Whether its socket is closed."""
        return self.transport.get_extra_info("socket").fileno() < 0

    def look(self, now: float) -> None:
        """Close the connection if its client has been too slow.

        Args:
            now: The time.
        """
        n_unread = self.transport.get_write_buffer_size()
        if n_unread and (not self._n_unread or n_unread < self._n_unread):  # the client is reading
            self.since = now
        self._n_unread = n_unread
        if self.awaits_client and now - self.since >= (STALL_S if n_unread else REQUEST_S):
            self.abort()

    def abort(self) -> None:
        """Close the connection at once, even with unread data."""
        self.transport.abort()
