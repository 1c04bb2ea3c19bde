"""A server on this machine that hears every request, whatever its path, and answers each in the same way."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self

from tests.honest_reply import completion


class Heard(NamedTuple):
    """A request."""

    path: str
    headers: dict[str, str]
    """Its headers, names in lower case."""


class Listener:
    """Such a server, up while it is entered.

    Attributes:
        heard: The requests, in order.
        url: Base of its API.
    """

    def __init__(self, status: int = 200, location: str = "") -> None:
        """Set what it answers.

        Args:
            status: HTTP status.
            location: Base of the address that a redirect leads to.
        """
        self.heard: list[Heard] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(status, location))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        """Start listening."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self, status: int, location: str) -> type[BaseHTTPRequestHandler]:
        heard, body = self.heard, json.dumps(completion("hm", prompt_tokens=3, completion_tokens=1)).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                heard.append(Heard(self.path, {name.lower(): value for name, value in self.headers.items()}))
                self.send_response(status)
                if location:
                    self.send_header("Location", location.removesuffix("/v1") + self.path)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler
