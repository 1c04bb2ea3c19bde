"""A hostile web server: its page looks like the pages under test, but opens its WebSocket at their server."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RESTING = '{"action": "rest", "arguments": {}}'
REPLY = {"choices": [{"message": {"content": RESTING}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}

SCRIPT = """<script>
window.opened = [];
window.WebSocket = class extends WebSocket {
  constructor(url, protocols) {
    super(url.replace(location.host, %s), protocols);
    this.addEventListener("open", () => window.opened.push("open"));
    this.addEventListener("close", () => window.opened.push("closed"));
  }
};
</script>"""


class Endpoint(ThreadingHTTPServer):
    """A stub of a language model; keeps what it was sent.

    Attributes:
        authorizations: The Authorization header of each request, None where there was none.
    """

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port."""
        self.authorizations: list[str | None] = []
        super().__init__(("127.0.0.1", 0), _Endpoint)

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Endpoint(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        self.server.authorizations.append(self.headers["Authorization"])
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(REPLY).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Keep still."""


class Attacker(ThreadingHTTPServer):
    """Serves the front end of the pages, which anybody can have, with a script of its own in front."""

    daemon_threads = True

    def __init__(self, victim: str, cookie: str) -> None:
        """Listen on a free port.

        Args:
            victim: Address of the server under attack.
            cookie: Lets the attacker copy the front end; an attacker installs Solara instead.
        """
        self.victim = victim
        self.cookie = cookie
        super().__init__(("127.0.0.1", 0), _Attacker)


class _Attacker(BaseHTTPRequestHandler):
    server: Attacker

    def do_GET(self) -> None:
        copied = urllib.request.Request(self.server.victim + self.path, headers={"Cookie": self.server.cookie})
        with urllib.request.urlopen(copied) as page:
            body, kind = page.read(), page.headers["Content-Type"]
        if kind.startswith("text/html"):
            host = self.server.victim.removeprefix("http://")
            body = body.replace(b"<head>", b"<head>" + (SCRIPT % json.dumps(host)).encode(), 1)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Keep still."""


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[Any]:
    """Serve in a thread, for as long as the block lasts."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
