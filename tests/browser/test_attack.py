"""What pages of other origins, open in the same browser, can do to the pages: nothing."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.attacker import Attacker, Endpoint, serving
from tests.browser.conftest import APP, STARTING_MS, TOKEN, Served, opened, serve, serve_guarded
from tests.browser.test_pages import ask_endpoint, open_ready, press

pytestmark = pytest.mark.browser

KEYS = {"OPENAI_API_KEY": "sk-of-the-environment", "MESA_LLM_API_KEY": "sk-of-the-environment-too"}
TYPED = "sk-typed-on-the-page"
FETCH = "([url, options]) => fetch(url, options).then(() => 'read', () => 'refused')"


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve the pages as `mesa-llm app` does, with keys in the environment."""
    with serve_guarded(tmp_path_factory.mktemp("guarded"), **KEYS) as served:
        yield served


@pytest.fixture(scope="module")
def unguarded(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve the pages as Solara alone does."""
    command = ["solara", "run", str(APP), "--production", "--no-open", "--host", "127.0.0.1", "--port", "PORT"]
    with serve(tmp_path_factory.mktemp("unguarded"), *command, **KEYS) as served:
        yield served


@contextmanager
def attacked(server: Served, page: Page, name: str, path: str = "/rules") -> Generator[Page]:
    """Open, in the browser that has the page open, the attacker's page under another origin."""
    cookies = {cookie.get("name"): cookie.get("value") for cookie in page.context.cookies()}
    with serving(Attacker(server.address, "; ".join(f"{name}={value}" for name, value in cookies.items()))) as attacker:
        hostile = page.context.new_page()
        hostile.goto(f"http://{name}:{attacker.server_port}{path}")
        hostile.wait_for_function("window.opened.length", timeout=STARTING_MS)
        yield hostile


# another port of the same host gets the cookie, as cookies know no ports; another name is another site
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_hostile_page_gets_no_websocket_key_frame_or_post(
    page: Page, server: Served, endpoint: Endpoint, name: str
) -> None:
    open_ready(page, "/rules")
    with attacked(server, page, name) as hostile:
        if "open" in hostile.evaluate("window.opened"):
            ask_endpoint(hostile, endpoint)
            hostile.wait_for_timeout(2000)
        fetched = hostile.evaluate(FETCH, [server.address, {"credentials": "include"}])
        posted = hostile.evaluate(FETCH, [f"{server.address}/_solara/api/close/1?session_id=1", {"method": "POST"}])
        assert (fetched, posted) == ("refused", "refused")
        hostile.evaluate("url => document.body.appendChild(document.createElement('iframe')).src = url", server.address)
        hostile.wait_for_function("frames.length == 1")
        hostile.wait_for_timeout(1000)
        assert "Fast" not in hostile.frames[-1].content()
        assert endpoint.authorizations == []
        assert set(hostile.evaluate("window.opened")) == {"closed"}
    press(page, "Step")
    expect(page.get_by_text("Step 1 finished")).to_be_visible()


def test_without_the_token_a_browser_gets_one_sentence(browser: Browser, server: Served) -> None:
    with opened(browser, replace(server, token="")) as stranger:
        stranger.goto("/rules")
        expect(stranger.get_by_text("This page needs its token")).to_be_visible()


def test_the_token_leaves_the_address_even_for_who_comes_by_a_link(browser: Browser, server: Served) -> None:
    with opened(browser, replace(server, token="")) as visitor:
        link = f"{server.address}/rules?token={quote(TOKEN)}"
        visitor.set_content(f'<a href="{link}">open</a>')
        visitor.get_by_text("open").click()
        expect(visitor.get_by_text("Ready.", exact=True)).to_be_visible(timeout=STARTING_MS)
        assert visitor.url == f"{server.address}/rules"
        assert visitor.evaluate("document.cookie.includes('mesa-llm')") is False


def test_an_endpoint_typed_on_the_page_gets_no_key_of_the_environment(page: Page, endpoint: Endpoint) -> None:
    open_ready(page, "/rules")
    ask_endpoint(page, endpoint)
    expect(page.get_by_text("Step 1 finished")).to_be_visible()
    assert set(endpoint.authorizations) == {None}


def test_a_key_typed_for_an_endpoint_is_sent_there_and_nowhere_shown(
    page: Page, server: Served, endpoint: Endpoint
) -> None:
    open_ready(page, "/rules")
    ask_endpoint(page, endpoint, TYPED)
    expect(page.get_by_text("Step 1 finished")).to_be_visible()
    assert set(endpoint.authorizations) == {f"Bearer {TYPED}"}
    assert TYPED not in page.content()
    assert TYPED not in server.log.read_text()


def test_a_page_that_solara_alone_serves_shows_nothing_to_another_origin(
    browser: Browser, unguarded: Served, endpoint: Endpoint
) -> None:
    with opened(browser, unguarded) as page:
        open_ready(page, "/rules")
        with attacked(unguarded, page, "localhost") as hostile:
            expect(hostile.get_by_text("This page was opened from http://localhost")).to_be_visible()
            assert hostile.get_by_role("button", name="Step").count() == 0
        ask_endpoint(page, endpoint)
        expect(page.get_by_text("Step 1 finished")).to_be_visible()
    assert set(endpoint.authorizations) == {None}
