"""Several servers of one model behind one name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mesa_llm import Access, ConfigError, Endpoint
from mesa_llm.errors import Refused, ServerError
from mesa_llm.llm.openai import replicas
from mesa_llm.records import Reply
from tests.faulty_server import SERVER_ERROR, FaultyServer, refused
from tests.llm.human.questions import ask


def replies_of(first: FaultyServer, *others: FaultyServer, number: int) -> list[Any]:
    """Ask a name with several servers a number of times at once; return replies and errors."""
    endpoint = Endpoint(model="tiny", api_base=first.url, replicas=tuple(server.url for server in others))
    opened = Access(endpoints={"cluster": endpoint}, attempts=1).open("cluster")
    assert opened.capabilities.name == endpoint.name == f"tiny@{first.url}"

    async def ask_all() -> list[Any]:
        requests = [ask(agent=agent) for agent in range(1, number + 1)]
        return await asyncio.gather(*map(opened.transport.reply, requests), return_exceptions=True)

    return asyncio.run(ask_all())


def test_servers_share_the_work() -> None:
    with FaultyServer(latency_s=0.05) as one, FaultyServer(latency_s=0.05) as other:
        replies = replies_of(one, other, number=40)
        assert all(isinstance(reply, Reply) for reply in replies)
        assert (one.count, other.count) == (20, 20)


def test_a_dead_server_is_left_out_and_nothing_is_lost() -> None:
    with FaultyServer(lambda body, number: SERVER_ERROR, latency_s=0.01) as dead, FaultyServer() as sound:
        replies = replies_of(dead, sound, number=30)
        assert all(isinstance(reply, Reply) for reply in replies)
        assert sound.count == 30


def test_a_server_that_is_back_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "FIRST_REST_S", 0.0)
    with FaultyServer(lambda body, number: SERVER_ERROR if number == 1 else None) as shaky, FaultyServer() as sound:
        endpoint = Endpoint(model="tiny", api_base=shaky.url, replicas=(sound.url,))
        llm = Access(endpoints={"cluster": endpoint}, attempts=1).open("cluster").transport

        async def ask_in_turn() -> None:
            for agent in range(1, 5):
                await llm.reply(ask(agent=agent))

        asyncio.run(ask_in_turn())
        assert (shaky.count, sound.count) == (4, 1)


def test_a_server_that_refuses_a_request_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "FIRST_REST_S", 0.05)
    faults = {1: SERVER_ERROR, 2: refused(413, "too long")}
    with FaultyServer(lambda body, number: faults.get(number)) as shaky, FaultyServer() as sound:
        endpoint = Endpoint(model="tiny", api_base=shaky.url, replicas=(sound.url,))
        llm = Access(endpoints={"cluster": endpoint}, attempts=1).open("cluster").transport

        async def ask_in_turn() -> None:
            await llm.reply(ask(agent=1))
            await asyncio.sleep(0.1)
            with pytest.raises(Refused, match="too long"):
                await llm.reply(ask(agent=2))
            await llm.reply(ask(agent=3))

        asyncio.run(ask_in_turn())
        assert (shaky.count, sound.count) == (3, 1)


def test_it_fails_when_all_servers_fail() -> None:
    with FaultyServer(lambda body, number: SERVER_ERROR) as one, FaultyServer(lambda body, number: SERVER_ERROR) as two:
        (error,) = replies_of(one, two, number=1)
    assert isinstance(error, ServerError)
    assert (one.count, two.count) == (1, 1)


def test_replicas_need_a_first_server() -> None:
    with pytest.raises(ConfigError, match="give the first one as api_base"):
        Access(endpoints={"cluster": {"model": "tiny", "replicas": ["http://localhost:1/v1"]}})  # type: ignore[dict-item]
