"""The one seam to a language model."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mesa_llm.records import Reply, Request


@runtime_checkable
class LLM(Protocol):
    """Gives replies to requests. Transports and the layers around them all have this one method."""

    async def reply(self, request: Request) -> Reply:
        """Answer a request.

        Raises:
            TransportError: If no reply came (see `mesa_llm.errors` for which kind).
        """
        ...


@runtime_checkable
class Closable(Protocol):
    """A transport that holds connections or a loaded model."""

    async def close(self) -> None:
        """Let go of what is held."""
        ...
