"""Several servers of one model behind one name: the least busy is asked, and a dead one is left out for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from mesa_llm.errors import RateLimited, ServerTrouble
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.records import Reply, Request

FIRST_REST_S, MAX_REST_S = 1.0, 30.0
"""Seconds until a server that failed is tried again: after its first failure in a row, and at most."""


@dataclass(eq=False)
class _Server:
    """One of the servers."""

    client: OpenAIHTTP
    in_flight: int = 0
    rest_s: float = 0.0
    """Seconds that it is left out after its last failure; 0: it replied."""

    back_at: float = 0.0
    """Time of the event loop from which on it is tried again."""


class Replicas:
    """Asks one of several servers of the same model, by turns as they are free.

    A request that one server fails is sent to the next, and fails when each of them has failed it. A server that failed
    is left out for a second, then for two, up to half a minute; then one request tries it.

    Attributes:
        name: Name of the first: a recording does not depend on which server replied.
    """

    def __init__(self, clients: Sequence[OpenAIHTTP]) -> None:
        """Set the servers.

        Args:
            clients: A client for each; the first gives the name.
        """
        self._servers = [_Server(client) for client in clients]
        self.name = clients[0].name

    def __repr__(self) -> str:
        """Name the model, its first server, and how many there are."""
        return f"Replicas({self.name!r}, {len(self._servers)} servers)"

    async def reply(self, request: Request) -> Reply:
        """Ask the least busy server; if that fails, the next.

        Raises:
            ServerTrouble: If all fail.
            RateLimited: If the last one that is left asks to be called less often.
            TransportError: As a server raises it, if the fault is the request's.
        """
        remaining = list(self._servers)
        while True:
            server = self._choose(remaining)
            remaining.remove(server)
            server.in_flight += 1
            try:
                reply = await server.client.reply(request)
            except ServerTrouble:
                self._leave_out(server, min(max(2 * server.rest_s, FIRST_REST_S), MAX_REST_S))
                if not remaining:
                    raise
            except RateLimited as limited:  # it is busy, not dead
                self._leave_out(server, limited.retry_after_s or 0.0)
                if not remaining:
                    raise
            else:
                server.rest_s = server.back_at = 0.0
                return reply
            finally:
                server.in_flight -= 1

    def _choose(self, servers: Sequence[_Server]) -> _Server:
        """Return the least busy server that is not left out; of those left out, the one that is back first."""
        now = asyncio.get_running_loop().time()
        ready = [server for server in servers if server.back_at <= now]
        if not ready:
            return min(servers, key=lambda server: server.back_at)
        server = min(ready, key=lambda server: server.in_flight)
        if server.rest_s:
            server.back_at = now + server.rest_s  # this request tries it; others wait for what comes of that
        return server

    @staticmethod
    def _leave_out(server: _Server, rest_s: float) -> None:
        """Leave a server out for some seconds."""
        server.rest_s = rest_s
        server.back_at = asyncio.get_running_loop().time() + rest_s

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        for server in self._servers:
            await server.client.close()
