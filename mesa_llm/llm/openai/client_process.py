"""A process that sends the requests of another one; see `mesa_llm.llm.openai.processes`.

The two exchange frames over one socket, which is the standard input of this process. A frame is a head (`HEAD`) and a
content: the body of a request, as it is sent, or of a response, as it came. The process ends with its socket.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from enum import IntEnum
from struct import Struct
from typing import Any

from mesa_llm.errors import BadReply
from mesa_llm.llm.openai.connection import Connections

HEAD = Struct("<IIHI")
"""Head of a frame: the number of bytes of its content, the number of the request, the kind, and one number more.

The kind of a response is its HTTP status. The number more is that of the target, or, of a response, the number of bytes
at the start of the content that hold its `Retry-After`.
"""


class Kind(IntEnum):
    """Kind of a frame, smaller than any HTTP status."""

    TARGET = 1
    """An address that requests are sent to, with its headers and bounds, as JSON."""

    POST = 2
    """A request."""

    CANCEL = 3
    """A request whose response is not wanted any more."""

    RETIRE = 4
    """A target that gets no more requests."""

    TAKEN = 5
    """The number of the last request that may have been sent; 0 when the process begins."""

    TIMED_OUT = 6
    """Error of a request, as text; so are the next three."""

    NOT_CONNECTED = 7
    CUT = 8
    TOO_LONG = 9


class Frames(asyncio.Protocol):
    """One end of the socket; frames written in one pass of the event loop are sent together."""

    def __init__(self) -> None:
        """Start without a connection."""
        self.loop = asyncio.get_running_loop()
        self.transport: Any = None
        self._received = b""
        self._written: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Take all complete frames."""
        received = self._received + data if self._received else data
        start = 0
        while (begins := start + HEAD.size) <= len(received):
            size, number, kind, more = HEAD.unpack_from(received, start)
            if begins + size > len(received):
                break
            start = begins + size
            self.take(number, kind, more, received[begins:start])
        self._received = received[start:]

    def take(self, number: int, kind: int, more: int, content: bytes) -> None:
        """Take a frame.

        Args:
            number: Number of the request.
            kind: A `Kind`, or an HTTP status.
            more: The head's last number; see `HEAD`.
            content: Its content.
        """
        raise NotImplementedError

    def put(self, number: int, kind: int, more: int = 0, content: bytes = b"") -> None:
        """Write a frame; the arguments are those of `take`."""
        if not self._written:
            self.loop.call_soon(self.flush)
        self._written += (HEAD.pack(len(content), number, kind, more), content)

    def flush(self) -> None:
        """Send what is written."""
        self.transport.write(b"".join(self._written))
        self._written.clear()


class _Sender(Frames):
    """The end of this process: sends each request that it takes, and puts what came of it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_ended = self.loop.create_future()
        self._targets: dict[int, Connections] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._last = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.put(0, Kind.TAKEN)

    def data_received(self, data: bytes) -> None:
        before = self._last
        super().data_received(data)
        if self._last > before:  # said before anything is sent, as the tasks have not begun
            self.put(self._last, Kind.TAKEN)
            self.flush()

    def take(self, number: int, kind: int, more: int, content: bytes) -> None:
        if kind == Kind.POST:
            self._last = number
            self._tasks[number] = self.loop.create_task(self._send(number, self._targets[more], content))
        elif kind == Kind.TARGET:
            self._targets[more] = Connections(**json.loads(content))
        elif kind == Kind.RETIRE:
            self.loop.create_task(self._targets.pop(more).retire())
        elif kind == Kind.CANCEL and number in self._tasks:
            self._tasks[number].cancel()

    async def _send(self, number: int, target: Connections, body: bytes) -> None:
        try:
            response = await target.post(body)
        except TimeoutError as error:
            self.put(number, Kind.TIMED_OUT, 0, str(error).encode())
        except ConnectionRefusedError as error:
            self.put(number, Kind.NOT_CONNECTED, 0, str(error).encode())
        except OSError as error:
            self.put(number, Kind.CUT, 0, str(error).encode())
        except BadReply as error:
            self.put(number, Kind.TOO_LONG, 0, str(error).encode())
        else:
            retry_after = (response.retry_after or "").encode()
            self.put(number, response.status, len(retry_after), retry_after + response.body)
        finally:
            del self._tasks[number]

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended.set_result(None)


async def _serve(end: socket.socket) -> None:
    """Send requests until the other process closes its end."""
    _, sender = await asyncio.get_running_loop().create_connection(_Sender, sock=end)
    await sender.has_ended


def main() -> None:
    """Serve the socket on the standard input."""
    asyncio.run(_serve(socket.socket(fileno=os.dup(0))))


if __name__ == "__main__":
    main()
