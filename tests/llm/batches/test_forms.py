"""Forms of batches on the wire, and what providers may send in them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mesa_llm.errors import AccessRefused, ConfigError, RateLimited, ServerError
from mesa_llm.llm.address import Address
from mesa_llm.llm.batches.forms import AnthropicBatches, OpenAIBatches
from mesa_llm.llm.batches.http import BatchHTTP
from mesa_llm.llm.batches.protocol import BatchState
from mesa_llm.llm.openai.connection import Response
from mesa_llm.records import Usage
from tests.batch_server import BatchServer
from tests.listener import Listener

KEY = "sk-very-secret-123"


def http_at(url: str) -> BatchHTTP:
    """Return the way to a server."""
    return BatchHTTP(Address.of(url), {"Authorization": f"Bearer {KEY}"}, [KEY])


def chat(text: str) -> bytes:
    """Write a request."""
    return json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}).encode()


def made(form: Any, texts: str) -> Any:
    """Create a batch, and fetch what became of its requests."""

    async def make() -> Any:
        batch_id = await form.create([form.line(text, chat(text)) for text in texts], "mark")
        while not (state := await form.look(batch_id)).is_over:
            await asyncio.sleep(0.01)
        return (await form.results(batch_id, state)).of

    return asyncio.run(make())


@pytest.mark.parametrize("kind", [OpenAIBatches, AnthropicBatches])
def test_each_request_gets_its_own_response_or_error(kind: Any) -> None:
    with BatchServer(lambda batch, number: {"looks": 2, "lost": [1], "refused": [2]}) as server:
        url = server.url if kind is OpenAIBatches else f"{server.url}/messages"
        responses = made(kind(http_at(url)), "abcd")
        assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    statuses = {key: one.status for key, one in responses.items() if isinstance(one, Response)}
    assert statuses == {"a": 200, "c": 400, "d": 200}
    assert isinstance(responses["b"], ServerError)
    assert responses["b"].usage == Usage(requests=1)


def test_a_file_of_requests_is_uploaded_for_the_path_they_would_be_sent_to() -> None:
    with BatchServer() as server:
        made(OpenAIBatches(http_at(server.url)), "ab")
        assert [body for _, body in server.batches[0].lines] == [json.loads(chat("a")), json.loads(chat("b"))]
    line = json.loads(OpenAIBatches(http_at(server.url), "/responses").line("k", b"{}"))
    assert line == {"custom_id": "k", "method": "POST", "url": "/v1/responses", "body": {}}


@pytest.mark.parametrize(
    ("code", "kind"),
    [("token_limit_exceeded", RateLimited), ("billing_hard_limit_reached", AccessRefused), ("empty", AccessRefused)],
)
def test_a_batch_that_failed_as_a_whole_is_one_error(code: str, kind: Any) -> None:
    document = {"status": "failed", "errors": {"data": [{"code": code, "message": "no"}]}}
    form = OpenAIBatches(http_at("http://nowhere/v1"))
    error: Any = asyncio.run(form.results("batch_1", BatchState(0, 0, True, document)))
    assert type(error) is kind
    assert error.usage == Usage(requests=1)


def test_a_provider_in_trouble_is_asked_a_few_times(monkeypatch: Any) -> None:
    monkeypatch.setattr("mesa_llm.llm.batches.http.ATTEMPTS", 2)
    with BatchServer() as server:
        server.trouble = [500, 500]
        with pytest.raises(ServerError, match="answered 500"):
            asyncio.run(OpenAIBatches(http_at(server.url)).look("batch_1"))


def test_an_endpoint_that_creates_something_else_is_said() -> None:
    with Listener() as listener, pytest.raises(ConfigError, match="something that is no batch"):
        asyncio.run(OpenAIBatches(http_at(listener.url)).create([b"{}"], "mark"))


def test_no_redirect_is_followed_and_no_error_quotes_a_key() -> None:
    with Listener() as other, Listener(307, other.url) as first:
        with pytest.raises(AccessRefused) as caught:
            asyncio.run(OpenAIBatches(http_at(first.url)).create([b"{}"], "mark"))
        assert other.heard == []
    assert KEY not in str(caught.value)
