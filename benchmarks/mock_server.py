"""An endpoint on this machine that speaks OpenAI's chat completions, answers after a fixed time, and counts.

It runs in its own process, so that its cost is not fetch_counts as the client's. It reads no more of
a request than it needs to choose between two fixed replies: a tool call if tools are offered, or a text.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import time
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

CALLS_NOTHING = re.compile(rb'"tool_choice":\s*"none"')
HAS_TOOLS = re.compile(rb'"tools":\s*\[')
LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)


class Behaviour(NamedTuple):
    """Latency and limits of the endpoint."""

    latency_ms: float = 0.0
    """Milliseconds from the arrival of a request to its reply."""

    max_in_flight: int = 0
    """Maximum number of requests in flight; further ones are refused with 429. 0: any number."""

    per_second: float = 0.0
    """Requests granted a second, evenly, up to one second's worth saved up; others are told to retry. 0: any number."""

    fits: bool = False
    """Whether replies fit what was asked: drawn from the schema, or from that of an action; else one of two fixed
    ones."""


UNLIMITED = Behaviour()
"""Answer everything at once."""


def completion(**message: Any) -> bytes:
    """Return an HTTP reply with one chat completion."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "mock",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, **message},
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
            }
        ],
        "usage": {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320},
    }
    return over_http("200 OK", json.dumps(body).encode())


def over_http(status: str, body: bytes, more: str = "") -> bytes:
    """Return an HTTP reply with a JSON body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


PAY = {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": '{"coins": 2}'}}
CALL = completion(tool_calls=[PAY])
TEXT = completion(content=json.dumps({"reasoning": "The pot is small.", "action": "I pay 2 coins into the pot."}))
SLOW_DOWN = b'{"error": {"message": "too many requests", "type": "rate_limit", "code": "rate_limit_exceeded"}}'


def fitting(body: bytes) -> bytes:
    """Return a reply that fits a request: an answer drawn from its schema, a call of one of its actions, or a text.

    Tools that only read (`read_…`) are not called.
    """
    from mesa_llm.llm.schema.sampling import sample_value

    request, rng = json.loads(body), random.Random(zlib.crc32(body))
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
    functions = [tool["function"] for tool in request.get("tools", ())]
    actions = [function for function in functions if not function["name"].startswith("read_")]
    if schema is not None:
        return completion(content=json.dumps(sample_value(schema, rng)))
    if not actions or CALLS_NOTHING.search(body):
        return completion(content="Good morning. I have thought about it, and it will do.")
    chosen = rng.choice(actions)
    arguments = json.dumps(sample_value(chosen["parameters"], rng))
    named = {"name": chosen["name"], "arguments": arguments}
    return completion(tool_calls=[{"id": "call_1", "type": "function", "function": named}])


class Counts:
    """Counts of the endpoint's requests."""

    def __init__(self) -> None:
        """Start at 0."""
        self.requests = self.answers = self.in_flight = self.max_in_flight = self.connections = 0
        self.body_bytes = 0

    def taken(self) -> dict[str, int]:
        """Return the counts, and reset those of a period."""
        counts = vars(self).copy()
        self.requests = self.answers = self.body_bytes = 0
        self.max_in_flight = self.in_flight
        return counts


class RateLimiter:
    """Limits on requests."""

    def __init__(self, behaviour: Behaviour, counts: Counts) -> None:
        """Open with one second's worth of requests saved up."""
        self.behaviour = behaviour
        self.counts = counts
        self._saved, self._at = behaviour.per_second, time.monotonic()

    def refusal(self) -> bytes | None:
        """Return the refusal of a request that arrives now; None if it is granted."""
        behaviour = self.behaviour
        if behaviour.max_in_flight and self.counts.in_flight >= behaviour.max_in_flight:
            return over_http("429 Too Many Requests", SLOW_DOWN)
        if behaviour.per_second:
            now = time.monotonic()
            self._saved = min(behaviour.per_second, self._saved + (now - self._at) * behaviour.per_second)
            self._at = now
            if self._saved < 1:
                return over_http("429 Too Many Requests", SLOW_DOWN, "Retry-After: 1\r\n")
            self._saved -= 1
        return None


class ServerConnection(asyncio.Protocol):
    """One connection."""

    def __init__(self, limiter: RateLimiter) -> None:
        """Wait for requests."""
        self._limiter = limiter
        self._counts = limiter.counts
        self._received = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = transport
        self._counts.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the connection as closed."""
        self._counts.connections -= 1

    def data_received(self, data: bytes) -> None:
        """Handle all complete requests."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end]
            length = LENGTH.search(head)
            stop = end + 4 + (int(length[1]) if length else 0)
            if CHUNKED.search(head):
                last = self._received.find(b"0\r\n\r\n", end)
                if last < 0:
                    return
                stop = last + 5
            if len(self._received) < stop:
                return
            body, self._received = self._received[end + 4 : stop], self._received[stop:]
            self._take(head, body)

    def _take(self, head: bytes, body: bytes) -> None:
        counts = self._counts
        if head.startswith(b"GET"):
            self._transport.write(over_http("200 OK", json.dumps(counts.taken()).encode()))
            return
        counts.requests += 1
        counts.body_bytes += len(body)
        refusal = self._limiter.refusal()
        if refusal is not None:
            self._transport.write(refusal)
            return
        counts.in_flight += 1
        counts.max_in_flight = max(counts.max_in_flight, counts.in_flight)
        latency_s = self._limiter.behaviour.latency_ms / 1000
        if not latency_s:
            self._answer(self._reply_to(body))
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + latency_s
        loop.call_at(due - latency_s / 2, lambda: loop.call_at(due, self._answer, self._reply_to(body)))

    def _reply_to(self, body: bytes) -> bytes:
        if self._limiter.behaviour.fits:
            return fitting(body)
        return CALL if HAS_TOOLS.search(body) and not CALLS_NOTHING.search(body) else TEXT

    def _answer(self, reply: bytes) -> None:
        self._counts.in_flight -= 1
        self._counts.answers += 1
        if not self._transport.is_closing():
            self._transport.write(reply)


async def serve(behaviour: Behaviour) -> None:
    """Print the port, and serve until the standard input closes."""
    limiter = RateLimiter(behaviour, Counts())
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ServerConnection(limiter), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def mock_server(behaviour: Behaviour) -> Iterator[str]:
    """Run an endpoint in its own process, and yield its base URL."""
    command = [sys.executable, str(Path(__file__)), json.dumps(behaviour._asdict())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def fetch_counts(base: str) -> dict[str, int]:
    """Fetch the counts of an endpoint since the last call."""
    with urllib.request.urlopen(f"{base}/counts", timeout=10) as answer:
        return json.load(answer)


if __name__ == "__main__":
    asyncio.run(serve(Behaviour(**json.loads(sys.argv[1]))))
