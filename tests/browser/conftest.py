"""A Solara server and the machine's own Chromium, and a page in it for each module of tests."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.browser.attacker import Endpoint, serving
from tests.processes import Python

ROOT = Path(__file__).parents[2]
APP = ROOT / "tests" / "browser" / "apps" / "pages.py"
EMPTY = "/empty"
TOKEN = "a token for the tests"
LOCAL = re.compile(r"(127\.0\.0\.1|localhost):\d+$")
STARTING_S = 120
"""The first server imports Mesa, pandas and matplotlib; on a loaded machine that takes a while."""

STARTING_MS = 90_000
"""A page that is opened gets the parts of the front end first."""

WINDOW: ViewportSize = {"width": 1500, "height": 950}

STILL = """
const still = document.createElement("style");
still.textContent = "*, *::before, *::after { transition: none !important; animation: none !important }";
new MutationObserver((_, watching) => {
  if (document.head) { document.head.append(still); watching.disconnect(); }
}).observe(document, { childList: true, subtree: true });
"""
"""Ends all that moves on a page: to draw it takes half of the browser's time."""

SHARED = ExitStack()
"""Ends what all modules of this folder share."""

expect.set_options(timeout=60_000)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End what is shared before a test of another folder: while Playwright stands, no event loop starts beside it."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        SHARED.close()


@pytest.fixture(scope="session")
def chromium() -> str:
    """Find the browser; without one, skip here and fail in CI."""
    # a shell without a window of its own takes a tenth less processor time than a whole browser
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None and os.environ.get("CI"):
        pytest.fail("the browser tests need Chromium on PATH, or its path in CHROMIUM")
    if found is None:
        pytest.skip("no Chromium on PATH, and none named by CHROMIUM")
    return found


@dataclass(frozen=True)
class Served:
    """A server of pages."""

    address: str
    """Where it is."""

    token: str
    """What lets a browser in."""

    log: Path
    """What it has printed and logged."""

    process: Python
    """The server."""


@contextmanager
def serve(home: Path, *arguments: str, token: str = "", **environment: str) -> Generator[Served]:
    """Start a server of pages, and end it.

    Args:
        home: Folder for what it writes.
        *arguments: What comes after `python -m` on its command line; `PORT` stands for its port.
        token: What lets a browser in.
        **environment: Environment variables.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    quiet = {"SOLARA_TELEMETRY_MIXPANEL_ENABLE": "False", "HOME": str(home), "MPLCONFIGDIR": str(home)}
    quiet["MESA_LLM_RUNS"] = str(home / "runs")
    log = home / "server.log"
    command = [port if part == "PORT" else part for part in arguments]
    process = Python("-m", *command, log=log, env={**os.environ, **quiet, **environment}, cwd=ROOT)
    try:
        wait_until_ready(f"http://127.0.0.1:{port}", process)
        yield Served(f"http://127.0.0.1:{port}", token, log, process)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except TimeoutError:
            process.kill()
            pytest.fail("the server did not end when it was told to: a thread keeps it")


def serve_guarded(home: Path, *options: str, **environment: str) -> AbstractContextManager[Served]:
    """Serve the pages under test as `mesa-llm app` does.

    Args:
        home: Folder for what it writes.
        *options: Options of `mesa-llm app`.
        **environment: Environment variables.
    """
    command = ["mesa_llm.cli.app", "app", str(APP), "--no-browser", "--port", "PORT", *options]
    return serve(home, *command, token=TOKEN, MESA_LLM_APP_TOKEN=TOKEN, **environment)


@cache
def shared_server() -> Served:
    """Serve the pages under test."""
    SHARED.callback(shared_server.cache_clear)
    home = SHARED.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
    return SHARED.enter_context(serve_guarded(Path(home)))


@pytest.fixture(scope="module")
def server(chromium: str) -> Iterator[Served]:
    """Serve the pages under test."""
    served = shared_server()
    yield served
    assert "raised exception" not in served.log.read_text(), "a component of a page raised"


def wait_until_ready(address: str, process: Python) -> None:
    """Wait until the server answers, be it with a refusal; fail with its log if it ends before."""
    give_up = time.monotonic() + STARTING_S
    while time.monotonic() < give_up and process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/readyz", timeout=2).close()
            return
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{process.out[-3000:]}")


@cache
def shared_browser(chromium: str) -> Browser:
    """Start the browser."""
    SHARED.callback(shared_browser.cache_clear)
    playwright = SHARED.enter_context(sync_playwright())
    started = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
    SHARED.callback(started.close)
    return started


@pytest.fixture(scope="module")
def browser(chromium: str) -> Browser:
    """Start the browser."""
    return shared_browser(chromium)


@contextmanager
def opened(browser: Browser, server: Served) -> Generator[Page]:
    """Open a fresh page; fail at the end if anything went wrong on it, or if it asked an outside host."""
    context = browser.new_context(viewport=WINDOW, base_url=server.address)
    context.set_default_timeout(60_000)
    context.add_init_script(STILL)
    if server.token:
        assert context.request.get("/", params={"token": server.token}).ok
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    hosts: set[str] = set()
    page.on("requestfailed", lambda request: errors.append(request.url))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    yield page
    in_vain = ("/api/close/", "/join/now")  # what a page that is left says, and asks
    serious = [error for error in errors if not any(path in error for path in in_vain)]
    context.close()
    assert not serious, f"the page had errors: {serious}"
    assert all(not host or LOCAL.match(host) for host in hosts), hosts


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Listen for requests, and for keys."""
    with serving(Endpoint()) as listening:
        yield listening


@pytest.fixture(scope="module")
def tab(browser: Browser, server: Served) -> Iterator[Page]:
    """Open a page for all tests of a module: what takes long is to load the front end."""
    with opened(browser, server) as shared:
        yield shared


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """Give a test the page; `visit` makes all of it anew, except for the front end."""
    yield tab
    for other in tab.context.pages:
        if other != tab:
            other.close()
    tab.set_viewport_size(WINDOW)


def pause(page: Page) -> None:
    """Pause the page, unless its model has ended or none plays on it."""
    page.evaluate("[...document.querySelectorAll('button')].find(each => each.textContent.includes('Pause'))?.click()")


def visit(page: Page, path: str) -> None:
    """Pause the page, and go to another as links do, by way of an empty one, so that nothing of it is left."""
    if page.url == "about:blank":
        page.goto(EMPTY)
    page.wait_for_function("!!window.solara?.router?.push")
    pause(page)
    page.evaluate("path => window.solara.router.push(path)", EMPTY)
    expect(page.get_by_text("Nothing is here.")).to_be_visible(timeout=STARTING_MS)
    expect(page.locator(".mesa-llm-main, .v-navigation-drawer")).to_have_count(0)  # the sidebar goes last
    page.evaluate("path => window.solara.router.push(path)", path)
