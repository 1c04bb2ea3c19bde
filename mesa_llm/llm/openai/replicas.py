"""Several servers of one model under one name: the least busy is asked, and one that fails is left out for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from mesa_llm.errors import AccessRefused, RateLimited, Refused, ServerError
from mesa_llm.llm.budget import send_again
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.records import Reply, Request

FIRST_REST_S, MAX_REST_S = 1.0, 30.0
"""Seconds until a server that failed is tried again: after the first failure in a row, and at most."""


@dataclass(eq=False)
class _Server:
    """One of the servers."""

    client: OpenAIHTTP
    in_flight: int = 0
    rest_s: float = 0.0
    """Seconds for which it is left out after its last failure; 0 after a reply or a refusal."""

    back_at: float = 0.0
    """Time on the event loop's clock, in seconds, from which it is tried again."""


class Replicas:
    """Asks the least busy of several servers of the same model.

    A request that fails at one server is sent to the next, and fails when it has failed at every one. A server that
    fails is left out for a second, then for two, up to half a minute, after which one request tries it.

    Attributes:
        name: Name of the first: a recording does not depend on which server replied.
    """

    takes_images = True

    def __init__(self, clients: Sequence[OpenAIHTTP]) -> None:
        """Set the servers.

        Args:
            clients: A client for each server, at least one; the first gives the name.
        """
        self._servers = [_Server(client) for client in clients]
        self.name = clients[0].name

    def __repr__(self) -> str:
        """Name the model, the first server, and the number of servers."""
        return f"Replicas({self.name!r}, {len(self._servers)} servers)"

    @property
    def secrets(self) -> list[str]:
        """What no reply may quote."""
        return [secret for server in self._servers for secret in server.client.secrets]

    async def reply(self, request: Request) -> Reply:
        """Ask the least busy server; if that fails, the next.

        Raises:
            ServerError: If all fail, and the last of them is in trouble.
            RateLimited: If all fail, and the last of them asks to be called less often.
            TransportError: As the first server raises it that refuses the request, or whose reply cannot be read.
        """
        remaining = list(self._servers)
        failure: ServerError | RateLimited | None = None
        while True:
            if failure is not None:
                await send_again(failure.usage)
            server = self._choose(remaining)
            remaining.remove(server)
            server.in_flight += 1
            try:
                reply = await server.client.reply(request)
            except ServerError as error:
                failure = error
                self._leave_out(server, min(max(2 * server.rest_s, FIRST_REST_S), MAX_REST_S))
                if not remaining:
                    raise
            except RateLimited as limited:  # it is busy, not dead
                failure = limited
                self._leave_out(server, limited.retry_after_s or 0.0)
                if not remaining:
                    raise
            except (Refused, AccessRefused):  # it is back, whatever it makes of this request
                server.rest_s = server.back_at = 0.0
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
            server.back_at = now + server.rest_s  # this request tries it; others leave it out meanwhile
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
