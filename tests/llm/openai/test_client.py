"""How the thin client connects, keeps its key to itself, and says what cannot work."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import traceback
from typing import Any

import pytest

from mesa_llm.errors import ConfigError, Refused
from mesa_llm.llm.limits import Limits
from mesa_llm.llm.openai.client import OpenAIHTTP
from tests.faulty_server import FaultyServer, refused
from tests.llm.human.questions import ask

KEY = "sk-very-secret"


def test_the_key_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with FaultyServer(lambda body, number: refused(401, f"{KEY} is no key we know")) as server:
        llm = OpenAIHTTP("tiny", server.url, KEY)
        with pytest.raises(ConfigError) as error:
            asyncio.run(llm.reply(ask()))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    texts = [repr(llm), caplog.text, *traceback.format_exception(error.value), repr(error.value.__context__)]
    assert not any(KEY in text for text in texts)


def test_what_is_secret_in_the_address_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    quoted = "ann:p%40ssword and p@ssword and abc%2Fdef1234 and abc/def1234"
    with FaultyServer(lambda body, number: refused(400, f"you sent {quoted}")) as server:
        base = server.url.replace("//", "//ann:p%40ssword@") + "?api-key=abc%2Fdef1234"
        llm = OpenAIHTTP("tiny", base)
        with pytest.raises(Refused) as error:
            asyncio.run(llm.reply(ask()))
    assert server.requests[0].headers["authorization"] == "Basic YW5uOnBAc3N3b3Jk"
    texts = [repr(llm), llm.name, caplog.text, *traceback.format_exception(error.value), repr(error.value.__context__)]
    assert not any(secret in text for text in texts for secret in ("ssword", "def1234"))


def test_without_a_key_none_is_sent() -> None:
    with FaultyServer() as server:
        asyncio.run(OpenAIHTTP("tiny", server.url).reply(ask()))
    assert "authorization" not in server.requests[0].headers


def test_an_adapter_is_asked_for_by_its_name() -> None:
    with FaultyServer() as server:
        asyncio.run(OpenAIHTTP("tiny", server.url).reply(ask(adapter="my-lora")))
    assert server.last["model"] == "my-lora"


def test_connections_are_kept_open_and_no_more_than_there_are_requests_at_once() -> None:
    ports: set[str] = set()

    async def many(url: str) -> None:
        llm = Limits(OpenAIHTTP("tiny", url), concurrency=3)
        await asyncio.gather(*(llm.reply(ask(agent=agent)) for agent in range(30)))
        await llm.close()

    with FaultyServer(latency_s=0.01) as server:
        asyncio.run(many(server.url))
        ports.update(request.peer for request in server.requests)
    assert (server.count, len(ports), server.peak_in_flight) == (30, 3, 3)


def test_one_client_serves_several_event_loops_one_after_another() -> None:
    with FaultyServer() as server:
        llm = OpenAIHTTP("tiny", server.url)

        async def once_more() -> str:
            reply = await llm.reply(ask())
            await llm.close()
            return reply.text

        assert asyncio.run(once_more()) == asyncio.run(once_more()) != ""


FORGOTTEN = """
import asyncio, gc, threading
from mesa_llm.llm.openai.client import OpenAIHTTP
from tests.faulty_server import FaultyServer
from tests.llm.human.questions import ask
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
with FaultyServer() as server:
    clients = [OpenAIHTTP("tiny", server.url), OpenAIHTTP("tiny", server.url)]
    for client in clients:
        asyncio.run_coroutine_threadsafe(client.reply(ask()), loop).result()
    clients.pop()
    gc.collect()
"""


def test_a_client_that_nobody_closes_makes_no_noise() -> None:
    ran = subprocess.run([sys.executable, "-c", FORGOTTEN], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("given", "sent_to"),
    [
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://user:secret@h/v1?api-version=2", "https://h/v1/chat/completions"),
    ],
)
def test_the_base_url_is_completed(given: str, sent_to: str) -> None:
    assert repr(OpenAIHTTP("tiny", given)) == f"OpenAIHTTP('tiny', '{sent_to}')"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("tiny", "localhost:8080"), {}),
        (("tiny", ""), {}),
        (("tiny", "ftp://h/v1"), {}),
        (("tiny", "http://h/v1", "two\nlines"), {}),
        (("tiny", "http://h/v1"), {"timeout_s": float("nan")}),
        (("tiny", "http://h/v1"), {"timeout_s": 0}),
        (("tiny", "http://h/v1"), {"max_reply_bytes": 0}),
        (("tiny", "http://h:port/v1"), {}),
    ],
)
def test_what_cannot_work_is_said_at_once(arguments: tuple[str, ...], options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as error:
        OpenAIHTTP(*arguments, **options)
    assert "two" not in str(error.value)
