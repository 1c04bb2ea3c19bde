"""A Solara server for each module of tests, and a page in the machine's own Chromium for each test."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.browser.attacker import Endpoint, serving
from tests.processes import Python

ROOT = Path(__file__).parents[2]
APP = ROOT / "tests" / "browser" / "apps" / "pages.py"
TOKEN = "a token for the tests"
LOCAL = re.compile(r"(127\.0\.0\.1|localhost):\d+$")
STARTING_S = 120
"""The first server imports Mesa, pandas and matplotlib; on a loaded machine that takes a while."""

STARTING_MS = 60_000
"""A page that is opened gets the parts of the front end first."""

WINDOW: ViewportSize = {"width": 1500, "height": 950}

expect.set_options(timeout=30_000)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Find the browser; without one, skip here and fail in CI."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
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


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve the pages under test."""
    with serve_guarded(tmp_path_factory.mktemp("server")) as served:
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


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Start the browser once."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        started.close()


@contextmanager
def opened(browser: Browser, server: Served) -> Generator[Page]:
    """Open a fresh page; fail at the end if anything went wrong on it, or if it asked an outside host."""
    context = browser.new_context(viewport=WINDOW, base_url=server.address)
    context.set_default_timeout(30_000)
    if server.token:
        assert context.request.get("/", params={"token": server.token}).ok
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    hosts: set[str] = set()
    page.on("requestfailed", lambda request: errors.append(request.url))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    yield page
    serious = [error for error in errors if "/api/close/" not in error]  # a page that is left says so in vain
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


def visit(page: Page, path: str) -> None:
    """Pause the page, and go to another as links do, by way of the gallery, so that nothing of it is left."""
    if page.url == "about:blank":
        page.goto("/")
    page.wait_for_function("!!window.solara?.router?.push")
    page.evaluate("[...document.querySelectorAll('button')].find(each => each.textContent.includes('Pause'))?.click()")
    page.evaluate("window.solara.router.push('/')")
    expect(page.locator(".mesa-llm-entry").first).to_be_visible(timeout=STARTING_MS)
    expect(page.locator(".mesa-llm-main")).to_have_count(0)
    page.evaluate("path => window.solara.router.push(path)", path)


@pytest.fixture(scope="module")
def stepped(browser: Browser, server: Served) -> Iterator[Page]:
    """Open the village once, make one step, and let tests look around."""
    with opened(browser, server) as shared:
        shared.goto("/fast")
        shared.get_by_role("button", name="Step", exact=True).click(timeout=STARTING_MS)
        expect(shared.get_by_text("Step 1 is over")).to_be_visible()
        yield shared
