"""The server of the pages, as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import Python, run

PATIENCE_S = 120
APP = ("-m", "mesa_llm.cli.app", "app")
PAGE = "import solara\n\n@solara.component\ndef Page():\n    solara.Text('hello')\n"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Start servers of a small page; give each process, and the address that it prints."""
    started: list[Python] = []
    (tmp_path / "page.py").write_text(PAGE)

    def start(*options: str, **environment: str) -> tuple[Python, str]:
        command = [*APP, str(tmp_path / "page.py"), "--no-browser", "--port", "0", *options]
        process = Python(*command, env={**os.environ, "HOME": str(tmp_path), **environment})
        started.append(process)
        while not (found := re.search(r"opens at (http://\S+)\n", process.out)):
            assert process.poll() is None, f"the server ended: {process.err}"
            time.sleep(0.01)
        return process, found[1]

    yield start
    for process in started:
        process.kill()


def status(address: str | urllib.request.Request) -> int:
    """Ask for a page; 0 if nobody listens."""
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as page:
            return page.status
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except OSError:
        return 0


@pytest.mark.parametrize(
    "ending", [signal.SIGTERM, signal.SIGINT, *([] if sys.platform == "win32" else [signal.SIGHUP])]
)
def test_a_server_that_is_told_to_end_listens_no_more(start: Any, ending: signal.Signals) -> None:
    process, address = start()
    assert status(address) == 200
    process.send_signal(ending)
    assert process.wait(PATIENCE_S) == 0
    assert status(address) == 0


def test_each_server_prints_a_token_of_its_own_once(start: Any) -> None:
    (first, address), (_, other) = start(), start()
    token = re.search(r"^http://127\.0\.0\.1:\d+/\?token=([\w-]{40,})$", address)
    assert token
    assert token[1] not in other
    assert (status(address), status(address.partition("?")[0])) == (200, 403)
    first.terminate()
    first.wait(PATIENCE_S)
    assert (first.out.count(token[1]), token[1] in first.err) == (1, False)


def test_the_token_may_be_fixed_in_the_environment(start: Any) -> None:
    _, address = start(MESA_LLM_APP_TOKEN="always the same")
    assert address.endswith("/?token=always%20the%20same")
    assert status(address) == 200


def test_other_machines_are_let_in_under_the_names_that_were_allowed(start: Any) -> None:
    _, address = start("--host", "0.0.0.0", "--allow-host", "pages.example", MESA_LLM_APP_TOKEN="x" * 16)
    assert status(address) == 200
    for host, wanted in {
        "pages.example": 200,
        socket.gethostname(): 200,
        "192.0.2.1": 200,
        "evil.example": 403,
    }.items():
        assert status(urllib.request.Request(address, headers={"Host": host})) == wanted


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run(*APP, "--no-browser", "--port", port)
    assert (done.returncode, done.out) == (2, "")
    assert re.fullmatch(rf"mesa-llm: cannot listen on 127\.0\.0\.1, port {port}: .* choose another .*\n", done.err)


def test_all_addresses_without_a_token_are_refused() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MESA_LLM_APP_TOKEN"}
    done = run(*APP, "--no-browser", "--host", "0.0.0.0", env=environment)
    assert (done.returncode, done.out) == (2, "")
    assert done.err.startswith("mesa-llm: --host 0.0.0.0 lets other machines in: set the token")


def test_importing_the_pages_starts_no_thread() -> None:
    code = "import threading, mesa_llm_models.classics.charts; print([thread.name for thread in threading.enumerate()])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['MainThread']\n"
