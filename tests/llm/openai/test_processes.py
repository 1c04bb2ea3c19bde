"""Client processes that send the requests of one run."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import Access, ConfigError, RunLog
from mesa_llm.errors import BadReply, MesaLLMError, ServerError
from mesa_llm.llm.openai import processes
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.openai.processes import ClientProcesses
from mesa_llm.llm.retry import Retry
from mesa_llm.records import Reply
from tests.faulty_server import CUT_MIDWAY, HANG, HUGE, FaultyServer, rate_limited
from tests.llm.human.questions import ask
from tests.pot import PotModel


def replies_of(url: str, clients: ClientProcesses, number: int, *, timeout_s: float = 10.0) -> list[Any]:
    """Ask through client processes a number of times at once; return replies and errors."""

    async def ask_all() -> list[Any]:
        llm = Retry(OpenAIHTTP("tiny", url, timeout_s=timeout_s, processes=clients), attempts=1)
        requests = [ask(agent=agent) for agent in range(1, number + 1)]
        try:
            return await asyncio.gather(*map(llm.reply, requests), return_exceptions=True)
        finally:
            await llm.close()
            await clients.close()

    return asyncio.run(ask_all())


def killing(clients: ClientProcesses, at: int, signal_number: int = signal.SIGKILL) -> Callable[[Any, int], None]:
    """Send a signal to all client processes when a request with a number arrives, and be honest."""

    def behave(body: Any, number: int) -> None:
        if number == at:
            for process_id in clients.process_ids:
                os.kill(process_id, signal_number)

    return behave


def client_processes(access: Access) -> ClientProcesses:
    """Return the client processes of an access."""
    assert access._processes is not None
    return access._processes


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("clients", [1, 3])
def test_a_run_does_not_depend_on_the_number_of_client_processes(clients: int) -> None:
    with FaultyServer(latency_s=0.001) as server:
        runs = [PotModel(n_agents=12, llm="tiny", api_base=server.url, rng=1, clients=n) for n in (0, clients)]
        for run in runs:
            run.run_for(3)
            run.close()
    assert runs[0].runlog.digest == runs[1].runlog.digest
    assert [run.usage.requests for run in runs] == [server.count / 2] * 2


def test_the_work_is_divided() -> None:
    with FaultyServer(latency_s=0.05) as server:
        replies = replies_of(server.url, ClientProcesses(2), 40)
        assert all(isinstance(reply, Reply) for reply in replies)
        assert len({request.peer for request in server.requests}) == 40


def test_the_requests_of_dead_client_processes_are_sent_again() -> None:
    clients = ClientProcesses(2)
    with FaultyServer(killing(clients, at=20), latency_s=0.05) as server:
        replies = replies_of(server.url, clients, 40)
        assert [type(reply) for reply in replies] == [Reply] * 40
        assert 40 < server.count_after_all() <= 80


def test_dead_client_processes_lose_no_reply_or_count(tmp_path: Path) -> None:
    with FaultyServer(lambda body, number: killing(client_processes(access), at=8)(body, number)) as server:
        access = Access(api_base=server.url, clients=2)
        model = PotModel(n_agents=12, llm="tiny", access=access, rng=1, log=tmp_path / "run.sqlite")
        model.run_for(1)
        usage = model.usage
        model.close()
        assert usage.failures == 0
        n_arrived = server.count_after_all()
        assert n_arrived <= usage.requests <= n_arrived + len(model.agents)  # those lost may or may not have been sent
    log = RunLog(tmp_path / "run.sqlite", mode="read")
    calls = log.calls()
    log.close()
    assert calls["key"].is_unique
    assert calls["attempts"].sum() == usage.requests > len(calls)


def test_a_client_process_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.2)
    clients = ClientProcesses(1)
    with FaultyServer(killing(clients, 1, signal.SIGSTOP), latency_s=0.1) as server:
        (reply,) = replies_of(server.url, clients, 1, timeout_s=0.3)
    assert isinstance(reply, Reply)


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (HANG, ServerError, "gave no reply within 0.5 s"),
        (CUT_MIDWAY, ServerError, "the connection to .* failed"),
        (HUGE, BadReply, "longer than"),
    ],
)
def test_errors_are_those_of_this_process(fault: Any, kind: type[MesaLLMError], text: str) -> None:
    with FaultyServer(lambda body, number: fault) as server, pytest.raises(kind, match=text):
        raise replies_of(server.url, ClientProcesses(1), 1, timeout_s=0.5)[0]


def test_where_nothing_listens_the_connection_fails() -> None:
    with FaultyServer() as server:
        url = server.url
    (error,) = replies_of(url, ClientProcesses(1), 1)
    assert isinstance(error, ServerError)
    assert error.usage is not None
    assert (error.usage.requests, error.usage.tokens) == (1, 0)


def test_a_wait_that_the_endpoint_asks_for_is_passed_on() -> None:
    with FaultyServer(lambda body, number: rate_limited(7)) as server:
        (error,) = replies_of(server.url, ClientProcesses(1), 1)
    assert error.retry_after_s == 7


def test_client_processes_end_with_their_access() -> None:
    with FaultyServer() as server:
        model = PotModel(n_agents=2, llm="tiny", api_base=server.url, rng=1, clients=2)
        model.run_for(1)
        ids = client_processes(model.engine._models.access).process_ids
        model.close()
    assert len(ids) == 2
    assert not any(map(is_running, ids))


def test_client_processes_that_cannot_start_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with FaultyServer() as server:
        errors = replies_of(server.url, ClientProcesses(2), 3)
    assert {type(error) for error in errors} <= {ConfigError, ServerError}
    assert any("in a row ended before any answered" in str(error) for error in errors)


def test_a_cancelled_request_is_cut_where_it_was_sent() -> None:
    async def cancel(url: str) -> None:
        clients = ClientProcesses(1)
        asking = asyncio.create_task(OpenAIHTTP("tiny", url, processes=clients).reply(ask()))
        while not server.count:
            await asyncio.sleep(0.01)
        asking.cancel()
        async with asyncio.timeout(60):
            while server.n_open:
                await asyncio.sleep(0.01)
        await clients.close()

    with FaultyServer(lambda body, number: HANG) as server:
        asyncio.run(cancel(server.url))
