"""libcurl's transfers on the event loop: with an epoll of their own, and where the system has none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pycurl
import pytest

from mesa_llm.llm.openai.curl_transfers import HAS_EPOLL, Transfers
from tests.faulty_server import HANG, FaultyServer

WAYS = [pytest.param(True, marks=pytest.mark.skipif(not HAS_EPOLL, reason="the system has no epoll")), False]


def request(url: str, parts: list[bytes], body: bytes = b"{}") -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, f"{url}/chat/completions")
    curl.setopt(pycurl.POSTFIELDS, body)
    curl.setopt(pycurl.WRITEFUNCTION, parts.append)
    return curl


def run(has_epoll: bool, work: Callable[[Transfers], Awaitable[None]]) -> None:
    async def with_transfers() -> None:
        transfers = Transfers(has_epoll=has_epoll)
        try:
            await work(transfers)
        finally:
            await transfers.close()

    asyncio.run(with_transfers())


@pytest.mark.parametrize("has_epoll", WAYS)
def test_many_transfers_at_once_each_get_their_own_response(has_epoll: bool) -> None:
    bodies = [b'{"n": %d, "long": "%b"}' % (n, b"x" * 200_000) for n in range(20)]
    received: list[list[bytes]] = [[] for _ in bodies]

    async def twice(transfers: Transfers) -> None:
        for _ in range(2):
            pairs = zip(bodies, received, strict=True)
            made = [transfers.perform(request(server.url, parts, body)) for body, parts in pairs]
            assert await asyncio.gather(*made) == [None] * 20

    with FaultyServer(lambda body, number: f"This is {body['n']}.", latency_s=0.05) as server:
        run(has_epoll, twice)
        assert len({one.peer for one in server.requests}) == 20
    assert all(b"".join(parts).count(b"This is %d." % n) == 2 for n, parts in enumerate(received))


@pytest.mark.parametrize("has_epoll", WAYS)
def test_no_more_connections_are_made_than_there_are_transfers_at_once(has_epoll: bool) -> None:
    async def three_times(transfers: Transfers) -> None:
        for n in (150, 100, 1):
            made = [transfers.perform(request(server.url, [])) for _ in range(n)]
            assert await asyncio.gather(*made) == [None] * n

    with FaultyServer(lambda body, number: "Yes.") as server:
        run(has_epoll, three_times)
        peers = [one.peer for one in server.requests]
    assert len(peers) == 251
    assert len(set(peers)) == 150


@pytest.mark.parametrize("has_epoll", WAYS)
def test_transfers_that_fail_or_are_cancelled_leave_the_others_alone(has_epoll: bool) -> None:
    async def four(transfers: Transfers) -> None:
        refused = await transfers.perform(request("http://127.0.0.1:1", []))
        assert refused is not None
        assert refused[0] == pycurl.E_COULDNT_CONNECT
        unanswered = b'{"hang": true}'
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(transfers.perform(request(server.url, [], unanswered)), 0.05)
        assert await transfers.perform(request(server.url, [])) is None
        hanging = asyncio.ensure_future(transfers.perform(request(server.url, [], unanswered)))
        await asyncio.sleep(0.05)
        await transfers.close()
        with pytest.raises(asyncio.CancelledError):
            await hanging

    with FaultyServer(lambda body, number: HANG if "hang" in body else "Yes.") as server:
        run(has_epoll, four)
