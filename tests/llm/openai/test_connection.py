"""The bare connection: encrypted, in pieces, by proxy, silent or cut while idle, after a fork, and no HTTP at all."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trustme

from mesa_llm.errors import AccessRefused, ServerError
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.openai.connection import Connections, Response
from mesa_llm.llm.openai.curl_transfers import HAS_EPOLL, Transfers
from mesa_llm.llm.retry import Retry
from tests.faulty_server import HANG, Fault, FaultyServer
from tests.llm.human.questions import ask

Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def sending(*pieces: bytes, closes: bool = False) -> Speak:
    """Answer every request on a connection with these pieces, sent one after another."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.002)
            if closes:
                writer.close()
                break

    return speak


def ask_server(speak: Speak, times: int = 1, pause_s: float = 0.0) -> tuple[list[Response | BaseException], int]:
    """Ask a server one time after the other; return the answers or errors, and the number of connections."""
    connections: list[object] = []

    async def ask_all() -> list[Response | BaseException]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.append(writer)
            try:
                await speak(reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        pool = Connections(f"http://127.0.0.1:{port}/v1", {}, timeout_s=5, max_reply_bytes=1000)
        answers: list[Response | BaseException] = []
        for _ in range(times):
            answers += await asyncio.gather(asyncio.wait_for(pool.post(b"{}"), 5), return_exceptions=True)
            await asyncio.sleep(pause_s)
        await pool.close()
        server.close()
        return answers

    return asyncio.run(ask_all()), len(connections)


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
HELLO = Response(200, None, b"hello")


@pytest.mark.parametrize("whole", [WHOLE, CHUNKED, b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE])
def test_an_answer_may_come_in_any_pieces_and_the_connection_is_used_again(whole: bytes) -> None:
    pieces = [whole[place : place + 1] for place in range(len(whole))]
    assert ask_server(sending(*pieces), times=2) == ([HELLO, HELLO], 1)
    assert ask_server(sending(whole), times=2) == ([HELLO, HELLO], 1)


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    assert ask_server(sending(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", closes=True), times=2) == ([HELLO, HELLO], 2)


@pytest.mark.parametrize("says", [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", WHOLE])
def test_a_connection_that_the_server_closes_is_not_used_again(says: bytes) -> None:
    assert ask_server(sending(says, closes=says == WHOLE), times=3, pause_s=0.05) == ([HELLO] * 3, 3)


def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_one() -> None:
    answers, connections = ask_server(sending(WHOLE + WHOLE.replace(b"hello", b"wrong")), times=3, pause_s=0.01)
    assert (answers, connections) == ([HELLO] * 3, 3)


@pytest.mark.parametrize("has_epoll", [True, False])
def test_an_answer_that_arrives_while_a_connection_is_idle_ends_it(
    has_epoll: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transfers.__init__, "__kwdefaults__", {"has_epoll": has_epoll and HAS_EPOLL})
    late = sending(WHOLE, WHOLE.replace(b"hello", b"wrong"))
    answers, connections = ask_server(late, times=4, pause_s=0.05)
    assert (answers, connections) == ([HELLO] * 4, 4)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/0.9"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 500_000, "gave up on what came"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "45 bytes"),
        (CHUNKED[:-5], "(?i)close|outstanding"),
        (b"", "Empty reply"),
    ],
)
def test_what_is_no_answer_is_an_error_that_says_why(says: bytes, why: str) -> None:
    (error,), _ = ask_server(sending(says, closes=True))
    assert isinstance(error, ConnectionError)
    assert re.search(why, str(error))


def test_of_a_long_error_page_the_start_is_kept() -> None:
    (answer,), _ = ask_server(
        sending(b"HTTP/1.1 500 No\r\nRetry-After: 7\r\nContent-Length: 999999\r\n\r\n" + b"x" * 200_000)
    )
    assert isinstance(answer, Response)
    assert (answer.status, answer.retry_after, answer.body[:3]) == (500, "7", b"xxx")


def test_connections_that_went_silent_while_idle_cost_one_time_out() -> None:
    greeted: set[str] = set()

    def silent_once_used(body: dict[str, Any], number: int) -> Fault | None:
        peer = server.requests[number - 1].peer
        return HANG if peer in greeted else greeted.add(peer)

    async def twice() -> list[int]:
        llm = Retry(OpenAIHTTP("tiny", server.url, timeout_s=1.0), base_s=0.01)
        await asyncio.gather(*(llm.reply(ask(agent=agent)) for agent in range(16)))
        replies = [await llm.reply(ask(agent=agent)) for agent in (20, 21)]
        await llm.close()
        return [reply.attempts for reply in replies[:1]]

    with FaultyServer(silent_once_used, latency_s=0.05) as server:
        assert asyncio.run(twice()) == [2]


def test_a_cancelled_request_leaves_no_answer_behind_for_the_next_one() -> None:
    async def cancel_and_ask(url: str) -> str:
        llm = OpenAIHTTP("tiny", url)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(llm.reply(ask()), 0.05)
        text = (await llm.reply(ask())).text
        await llm.close()
        return text

    with FaultyServer(lambda body, number: f"reply {number}", latency_s=0.2) as server:
        assert asyncio.run(cancel_and_ask(server.url)) == "reply 2"
        assert len({request.peer for request in server.requests}) == 2


def test_an_address_that_does_not_answer_is_given_up_within_the_time_out() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        llm = OpenAIHTTP("tiny", f"http://127.0.0.1:{full.getsockname()[1]}/v1", timeout_s=0.3)
        with pytest.raises(ServerError, match=r"no reply within 0\.3 s"):
            asyncio.run(llm.reply(ask()))


@pytest.mark.parametrize(("no_proxy", "through"), [("", True), ("other.example,127.0.0.1", False)])
def test_the_environment_says_which_proxy_is_used(
    no_proxy: str, through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "all_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with FaultyServer() as server, FaultyServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", no_proxy)
        asyncio.run(OpenAIHTTP("tiny", server.url).reply(ask()))
    assert (proxy.count, server.count) == ((1, 0) if through else (0, 1))


def test_a_proxy_that_wants_a_password_is_a_matter_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def refuse() -> None:
            connection, _ = proxy.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=refuse, daemon=True).start()
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        with pytest.raises(AccessRefused, match=r"407.*; check the proxy that the environment names"):
            asyncio.run(OpenAIHTTP("tiny", "https://llm.example/v1").reply(ask()))


FORKED = """
import os, sys
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.engine.event_loop import submit
from tests.llm.human.questions import ask
llm = OpenAIHTTP("tiny", sys.argv[1])
submit(llm.reply(ask())).result(10)
child = os.fork()
print(bool(submit(llm.reply(ask())).result(10).text), flush=True)
if not child:
    os._exit(0)
os.waitpid(child, 0)
submit(llm.close()).result(10)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_after_a_fork_parent_and_child_both_go_on() -> None:
    with FaultyServer() as server:
        command = [sys.executable, "-W", "ignore", "-c", FORKED, server.url]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout.count("True"), ran.stderr, server.count) == (2, "", 3)  # they may write at once
    assert len({request.peer for request in server.requests}) == 2


ASK = """
import asyncio, sys
from mesa_llm.llm.openai.client import OpenAIHTTP
from tests.llm.human.questions import ask
async def twice():
    llm = OpenAIHTTP("tiny", sys.argv[1])
    for _ in range(2): print(bool((await llm.reply(ask())).text))
    await llm.close()
asyncio.run(twice())
"""


def test_an_encrypted_endpoint_is_asked_only_if_its_certificate_is_trusted(tmp_path) -> None:
    authority, secret = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(secret)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    trusting = {**os.environ, "SSL_CERT_FILE": str(tmp_path / "ca.pem")}
    with FaultyServer(secret=secret) as server:
        command = [sys.executable, "-c", ASK, server.url]
        ran = subprocess.run(command, capture_output=True, text=True, env=trusting, timeout=60, check=False)
        wary = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("True\nTrue\n", "")
    assert len({request.peer for request in server.requests}) == 1
    assert "ServerError" in wary.stderr
    assert "certificate" in wary.stderr
