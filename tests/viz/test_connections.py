"""The server under clients that hold connections and do nothing with them, with few descriptors to spare."""

from __future__ import annotations

import os
import re
import socket
import time
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.processes import Python

PATIENCE_S = 120

SERVER = """
import resource, runpy, sys
from mesa_llm.viz.server import connections
connections.REQUEST_S = connections.STALL_S = SECONDS
connections.LOOK_S = 0.1
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
sys.argv = ["mesa-llm", "classroom", "tests.browser.apps.village:Hamlet", "--no-browser", "--port", "0"]
runpy.run_module("mesa_llm.cli.app", run_name="__main__")
"""

BEGINNINGS = [
    b"",
    b"GET /join HTTP/1.1\r\n",
    b"GET /join HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    b"POST /join HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\r\ncode=",
    b"GET /join HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /join/seat.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 200,
    b"POST /join/leave HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\r\nx",
    b"GET /x/channels HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
]
"""What a client sends before it does nothing more, not even read."""


@contextmanager
def served(home: Path, request_s: float) -> Generator[int]:
    """Serve a class, whose requests may take so long, in a process that may open 256 files; give its port."""
    server = SERVER.replace("SECONDS", str(request_s))
    process = Python("-c", server, env={**os.environ, "HOME": str(home), "MESA_LLM_RUNS": "none"})
    while not (found := re.search(r"students open http://127\.0\.0\.1:(\d+)/join", process.out)):
        assert process.poll() is None, f"the server ended: {process.err}"
        time.sleep(0.01)
    try:
        yield int(found[1])
    finally:
        process.kill()


def opened(port: int, beginning: bytes) -> socket.socket:
    """Open a connection with a small window, and send something."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.settimeout(PATIENCE_S)
    connection.connect(("127.0.0.1", port))
    connection.sendall(beginning)
    return connection


def has_ended(connection: socket.socket, more: bytes = b"", pause_s: float = 0.0) -> bool:
    """Wait until the server ends a connection, reading all that comes, or reading nothing and sending ever more."""
    try:
        while more:
            connection.sendall(more)
            time.sleep(pause_s)
        while connection.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError):
        pass
    return True


def test_a_student_gets_the_page_beside_hundreds_of_half_open_connections(tmp_path: Path) -> None:
    with served(tmp_path, 3600) as port, ExitStack() as held:
        for index in range(400):
            held.enter_context(opened(port, BEGINNINGS[index % 4]))
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/join", timeout=PATIENCE_S) as page:
                assert b"Room code" in page.read()


def test_connections_whose_clients_do_not_go_on_end_whatever_they_have_sent(tmp_path: Path) -> None:
    with served(tmp_path, 0.3) as port, ExitStack() as held:
        connections = [held.enter_context(opened(port, beginning)) for beginning in BEGINNINGS]
        assert all(map(has_ended, connections))
        slow, greedy = held.enter_context(opened(port, BEGINNINGS[2])), held.enter_context(opened(port, b""))
        assert has_ended(slow, b"x", pause_s=0.05)
        assert has_ended(greedy, BEGINNINGS[5])
