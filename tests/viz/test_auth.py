"""Who gets through to a page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from mesa_llm.errors import ConfigError
from mesa_llm.viz.classroom.admission import network_of
from mesa_llm.viz.server.auth import Auth, foreign_origin, host_name, is_loopback
from mesa_llm.viz.server.server import PageServer

TOKEN = "the token of this test"
HERE = "http://127.0.0.1:8765"


async def echo(socket: WebSocket) -> None:
    """Answer one message."""
    await socket.accept()
    await socket.send_text(await socket.receive_text())


def secret(request: Any) -> PlainTextResponse:
    """Show what nobody else may see."""
    return PlainTextResponse("secret")


@pytest.fixture
def guard() -> Auth:
    """Auth a small application."""
    inner = Starlette(routes=[WebSocketRoute("/ws", echo), Route("/{path:path}", secret, methods=["GET", "POST"])])
    return Auth(inner, TOKEN, cookie="pass", hosts=["pages.example"])


@pytest.fixture
def stranger(guard: Auth) -> TestClient:
    """Come without a token."""
    return TestClient(guard, HERE)


@pytest.fixture
def visitor(guard: Auth) -> TestClient:
    """Come with the token, and keep the cookie."""
    visitor = TestClient(guard, HERE)
    visitor.get("/", params={"token": TOKEN})
    return visitor


def connects(client: TestClient, **headers: str) -> bool:
    """Try to open a WebSocket."""
    try:
        with client.websocket_connect("ws://127.0.0.1:8765/ws", headers=headers) as socket:
            socket.send_text("hello")
            return socket.receive_text() == "hello"
    except WebSocketDisconnect:
        return False


@pytest.mark.parametrize("path", ["/", "/social", "/readyz", "/static/public/x.js", "/_solara/api/close/1"])
def test_without_token_nothing_is_served(stranger: TestClient, path: str) -> None:
    refused = stranger.get(path)
    assert (refused.status_code, "needs its token" in refused.text) == (403, True)
    assert stranger.post(path).status_code == 403


def test_a_wrong_token_is_refused_and_makes_no_cookie(stranger: TestClient) -> None:
    for token in ("", TOKEN[:-1], TOKEN + "x", "ä"):
        assert stranger.get("/", params={"token": token}).status_code == 403
    assert not stranger.cookies


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(stranger: TestClient) -> None:
    admitted = stranger.get("/social", params={"token": TOKEN, "x": "1"})
    assert re.search(r"^pass=[\w-]{40,}; HttpOnly; Path=/; SameSite=strict$", admitted.headers["set-cookie"])
    assert 'content="0;url=./social?x=1"' in admitted.text
    assert TOKEN not in admitted.text
    assert TOKEN not in admitted.headers["set-cookie"]
    assert stranger.get("/social").text == "secret"


@pytest.mark.parametrize("path", ["//evil.example", "/a//evil.example", "/\\evil.example", '/"><script>'])
def test_the_way_on_leads_to_no_other_server(stranger: TestClient, path: str) -> None:
    page = stranger.get(f"{HERE}{path}", params={"token": TOKEN}).text
    assert re.search(r'content="0;url=\./[\w.%]*"', page)


def test_a_ticket_is_good_for_one_visit(guard: Auth) -> None:
    ticket = guard.ticket()
    assert TestClient(guard, HERE).get("/", params={"token": ticket}).status_code == 200
    assert TestClient(guard, HERE).get("/", params={"token": ticket}).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "", "["]
)
def test_a_foreign_name_is_refused_even_with_the_cookie(visitor: TestClient, host: str) -> None:
    assert visitor.get("/", headers={"host": host}).status_code == 403
    assert visitor.get("/", headers={"host": host}, params={"token": TOKEN}).status_code == 403
    assert not connects(visitor, host=host, origin=f"http://{host}")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST", "[::1]:8765", "127.8.8.8", "pages.example"]
)
def test_names_of_this_machine_and_those_that_were_allowed_are_known(visitor: TestClient, host: str) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    assert visitor.get("/", headers={"host": host, "cookie": cookie}).text == "secret"


def test_server_on_all_addresses_refuses_foreign_host_names() -> None:
    guard = Auth(PlainTextResponse("secret"), TOKEN, cookie="pass", any_address=True)
    for host, status in {"192.168.1.2:8765": 200, "[fe80::1]:8765": 200, "evil.example": 403}.items():
        client = TestClient(guard, HERE)
        assert client.get("/", headers={"host": host}, params={"token": TOKEN}).status_code == status


FOREIGN = ["http://127.0.0.1:9999", "http://localhost:8765", "https://evil.example", "null", "file://", "http://["]


@pytest.mark.parametrize("origin", FOREIGN)
def test_another_origin_is_refused_even_with_the_cookie(visitor: TestClient, origin: str) -> None:
    assert not connects(visitor, origin=origin)
    assert visitor.get("/", headers={"origin": origin}).status_code == 403
    assert visitor.post("/_solara/api/close/1", headers={"origin": origin}).status_code == 403


def test_a_websocket_needs_cookie_and_origin(visitor: TestClient, stranger: TestClient) -> None:
    assert connects(visitor, origin=HERE)
    assert not connects(visitor)
    assert not connects(stranger, origin=HERE)
    stranger.cookies["pass"] = TOKEN
    assert not connects(stranger, origin=HERE)


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("same-origin", "no-cors", "script", 200),
        ("none", "navigate", "document", 200),
        ("cross-site", "navigate", "document", 200),
        ("cross-site", "navigate", "iframe", 403),
        ("same-site", "no-cors", "script", 403),
        ("same-site", "navigate", "iframe", 403),
    ],
)
def test_other_sites_may_link_here_but_not_embed(
    visitor: TestClient, site: str, mode: str, dest: str, status: int
) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    assert visitor.get("/", headers=headers).status_code == status


def test_no_page_may_frame_this_one(visitor: TestClient, stranger: TestClient) -> None:
    for response in (visitor.get("/"), stranger.get("/"), stranger.get("/", params={"token": TOKEN})):
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["content-security-policy"] == "frame-ancestors 'none'"


def test_a_page_knows_who_opened_its_websocket() -> None:
    own = {"origin": ["http://localhost:8765"], "host": ["localhost:8765"]}
    behind = {"origin": ["https://pages.example"], "host": ["10.0.0.1"], "x-forwarded-host": ["pages.example"]}
    assert [foreign_origin(headers) for headers in (None, {}, own, behind)] == [""] * 4
    assert foreign_origin({**own, "origin": ["http://localhost:9999"]}) == "http://localhost:9999"


def test_what_is_this_machine_and_what_only_looks_like_it() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.1.2.3", "::1")))
    assert not any(map(is_loopback, ("", "0.0.0.0", "::", "10.0.0.1", "localhost.example", "evil.example")))
    assert (host_name("LocalHost.:80"), host_name("[::1]:80"), host_name("a@b"), host_name("[")) == (
        "localhost",
        "::1",
        "b",
        "",
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.2", "pages.example"])
def test_other_machines_get_in_only_with_a_long_token_that_was_chosen(host: str) -> None:
    with pytest.raises(ConfigError, match=r"lets other machines in: set the token .* for example: [\w-]{20,}"):
        PageServer("mesa_llm.viz.server.gallery", host=host, port=0)
    with pytest.raises(ConfigError, match="needs at least 16 characters, not 5"):
        PageServer("mesa_llm.viz.server.gallery", host=host, port=0, token="short")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),  # a machine gives itself as many as it likes
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("testclient", "", False),
    ],
)
def test_addresses_that_one_machine_can_take_count_as_one(one: str, other: str, is_same: bool) -> None:
    assert (network_of(one) == network_of(other)) is is_same


def test_a_page_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"there is no file 'nowhere\.py'"):
        PageServer("nowhere.py", port=0)
    with pytest.raises(ConfigError, match="there is no page 'no_such_module'"):
        PageServer("no_such_module", port=0)
