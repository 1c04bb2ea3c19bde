"""The bare connection: encrypted, in pieces, without a length, cut while idle, and told what is no HTTP."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import pytest
import trustme

from mesa_llm.llm.connection import MAX_HEAD_BYTES, Address, Answer, Connections
from tests.faulty_server import FaultyServer

Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def told(*pieces: bytes, closes: bool = False) -> Speak:
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


def asked(speak: Speak, times: int = 1, pause_s: float = 0.0) -> tuple[list[Answer | BaseException], int]:
    """Ask a server one time after the other; give the answers or errors, and how many connections it took."""
    opened: list[object] = []

    async def ask_all() -> list[Answer | BaseException]:
        async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            opened.append(writer)
            try:
                await speak(reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        server = await asyncio.start_server(heard, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        pool = Connections(Address.of(urlsplit(f"http://127.0.0.1:{port}/v1"), {}), max_reply_bytes=1000)
        answers: list[Answer | BaseException] = []
        for _ in range(times):
            answers += await asyncio.gather(asyncio.wait_for(pool.post(b"{}"), 5), return_exceptions=True)
            await asyncio.sleep(pause_s)
        pool.close()
        server.close()
        return answers

    return asyncio.run(ask_all()), len(opened)


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
HELLO = Answer(200, None, b"hello")


@pytest.mark.parametrize("whole", [WHOLE, CHUNKED, b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE])
def test_an_answer_may_come_in_any_pieces_and_the_connection_is_used_again(whole: bytes) -> None:
    pieces = [whole[place : place + 1] for place in range(len(whole))]
    assert asked(told(*pieces), times=2) == ([HELLO, HELLO], 1)
    assert asked(told(whole), times=2) == ([HELLO, HELLO], 1)


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    assert asked(told(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", closes=True), times=2) == ([HELLO, HELLO], 2)


@pytest.mark.parametrize("says", [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", WHOLE])
def test_a_connection_that_the_server_closes_is_not_used_again(says: bytes) -> None:
    assert asked(told(says, closes=says == WHOLE), times=3, pause_s=0.05) == ([HELLO] * 3, 3)


def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_one() -> None:
    answers, opened = asked(told(WHOLE + WHOLE.replace(b"hello", b"wrong")), times=3, pause_s=0.01)
    assert (answers, opened) == ([HELLO] * 3, 3)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES, "do not end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "cut"),
        (CHUNKED[:-5], "cut"),
        (b"", "cut"),
    ],
)
def test_what_is_no_answer_is_an_error_that_says_why(says: bytes, why: str) -> None:
    (error,), _ = asked(told(says, closes=True))
    assert isinstance(error, ConnectionError)
    assert why in str(error)


def test_of_a_long_error_page_the_start_is_kept() -> None:
    (answer,), _ = asked(told(b"HTTP/1.1 500 No\r\nRetry-After: 7\r\nContent-Length: 999999\r\n\r\n" + b"x" * 200_000))
    assert isinstance(answer, Answer)
    assert (answer.status, answer.retry_after, answer.body[:3]) == (500, "7", b"xxx")


def test_a_user_in_the_address_is_sent_as_authorization_and_a_key_goes_before_it() -> None:
    url = urlsplit("https://ann:p%40ss@[::1]:8443/v1?api-version=2")
    address = Address.of(url, {})
    assert (address.host, address.port, address.is_secret) == ("::1", 8443, True)
    assert address.head.startswith(b"POST /v1?api-version=2 HTTP/1.1\r\nHost: [::1]:8443\r\n")
    assert b"Authorization: Basic YW5uOnBAc3M=\r\n" in address.head
    assert b"Basic" not in Address.of(url, {"Authorization": "Bearer k"}).head


ASK = """
import asyncio, sys
from mesa_llm.llm.openai_http import OpenAIHTTP
from tests.llm.asked import ask
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
    assert "ServerTrouble" in wary.stderr
    assert "certificate" in wary.stderr
