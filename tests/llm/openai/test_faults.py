"""The thin client against an endpoint that misbehaves in every way, alone and with `Retry` around it."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from typing import Any

import pytest

from mesa_llm.errors import AccessRefused, BadReply, ConfigError, MesaLLMError, RateLimited, Refused, ServerError
from mesa_llm.llm.lenient_json import read_value
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.retry import Retry
from mesa_llm.records import Reply, Request
from tests.faulty_server import (
    CUT_AT_ONCE,
    CUT_MIDWAY,
    EMPTY,
    HANG,
    HUGE,
    HUGE_NUMBERS,
    NAN_NUMBERS,
    NOT_JSON,
    SERVER_ERROR,
    TRUNCATED,
    UNKNOWN_TOOL,
    WRONG_SHAPE,
    Behaviour,
    Fault,
    FaultyServer,
    be_honest,
    rate_limited,
    refused,
)
from tests.honest_reply import completion
from tests.llm.human.questions import ACTIONS, VOTE, ask

KEY = "sk-very-secret"


def asked(behave: Behaviour, *requests: Request, attempts: int = 1, **options: Any) -> tuple[list[Any], FaultyServer]:
    """Ask a server; give the replies, or what was raised in their place, and the server."""

    async def ask_all(url: str) -> list[Any]:
        options.setdefault("timeout_s", 5.0)
        llm = OpenAIHTTP("tiny", url, KEY, **options)
        retrying = Retry(llm, attempts, base_s=0.01)
        try:
            return await asyncio.gather(*map(retrying.reply, requests or (ask(),)), return_exceptions=True)
        finally:
            await retrying.close()

    with FaultyServer(behave) as server:
        return asyncio.run(ask_all(server.url)), server


def always(fault: Any) -> Behaviour:
    return lambda body, number: fault


def once(fault: Any) -> Behaviour:
    return lambda body, number: fault if number == 1 else None


FAULTS = [
    (rate_limited(), RateLimited),
    (SERVER_ERROR, ServerError),
    (refused(408, "too slow"), ServerError),
    (HANG, ServerError),
    (CUT_AT_ONCE, ServerError),
    (CUT_MIDWAY, ServerError),
    (TRUNCATED, ServerError),
    (NOT_JSON, BadReply),
    (WRONG_SHAPE, BadReply),
    (completion(42), BadReply),
    (HUGE, BadReply),
    (Fault(body=b"[" * 100_000), BadReply),
    (Fault(body=b"\xff\xfe\xfd"), BadReply),
    (Fault(body=b"{" + b"1" * 5000 + b"}"), BadReply),
]


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
def test_each_fault_has_its_error(fault: Any, kind: type[MesaLLMError]) -> None:
    (error,), server = asked(always(fault), timeout_s=0.5)
    assert (type(error), server.count) == (kind, 1)


@pytest.mark.parametrize("fault", [fault for fault, _ in FAULTS])
def test_a_fault_that_passes_is_retried_away(fault: Any) -> None:
    (reply,), server = asked(once(fault), attempts=4, timeout_s=0.5)
    assert isinstance(reply, Reply)
    assert (reply.attempts, server.count) == (2, 2)


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
def test_retries_end(fault: Any, kind: type[MesaLLMError]) -> None:
    (error,), server = asked(always(fault), attempts=4, timeout_s=0.2)
    assert (type(error), server.count) == (kind, 3 if kind is BadReply else 4)
    assert f"requests sent: {server.count}" in str(error)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (refused(401, "no such key"), AccessRefused),
        (refused(403, "not yours"), AccessRefused),
        (refused(404, "no model tiny"), AccessRefused),
        (Fault(307, headers={"Location": "/elsewhere"}), AccessRefused),
        (refused(407, "who are you?"), AccessRefused),
        (refused(410, "tiny is gone"), AccessRefused),
        (refused(400, "too many messages"), Refused),
        (refused(422, "the prompt is too long"), Refused),
    ],
)
def test_what_asking_again_cannot_mend_is_asked_once(fault: Any, kind: type[MesaLLMError]) -> None:
    (error,), server = asked(always(fault), attempts=4)
    assert (type(error), server.count) == (kind, 1)


def test_the_endpoints_words_are_told_in_short() -> None:
    (error,), server = asked(always(refused(404, "no model tiny " * 1000)))
    assert str(error).startswith(f"{server.url}/chat/completions answered 404: no model tiny")
    assert len(str(error)) < 500


def test_retry_after_is_passed_on() -> None:
    (error,), _ = asked(always(rate_limited(7)))
    assert error.retry_after_s == 7


def test_a_server_that_says_when_it_is_back_is_left_alone_until_then() -> None:
    (error,), _ = asked(always(Fault(503, b"restarting", {"Retry-After": "7"})))
    assert (type(error), error.retry_after_s) == (RateLimited, 7)


def test_an_error_in_the_middle_of_a_choice_counts_as_one() -> None:
    choice = {"message": {"content": "I wou"}, "finish_reason": "error", "error": {"code": 429, "message": "slow down"}}
    (error,), _ = asked(always({"choices": [choice]}))
    assert (type(error), "slow down" in str(error)) == (RateLimited, True)


def test_an_error_inside_a_reply_counts_as_one() -> None:
    (limited,), _ = asked(always({"error": {"code": 429, "message": "slow down"}}))
    (broken,), _ = asked(always({"error": "upstream is gone"}))
    assert (type(limited), type(broken)) == (RateLimited, ServerError)


@pytest.mark.parametrize("sent", [NAN_NUMBERS, HUGE_NUMBERS])
def test_impossible_counts_do_not_spoil_a_reply(sent: dict[str, Any]) -> None:
    (reply,), _ = asked(always(sent))
    assert (reply.text, reply.prompt_tokens, reply.reply_tokens, reply.dollars) == ("fine", 0, 0, None)


def test_an_empty_reply_and_an_unknown_tool_are_replies() -> None:
    (empty,), _ = asked(always(EMPTY))
    (unknown,), _ = asked(always(UNKNOWN_TOOL))
    assert (empty.text, empty.tool_calls) == ("", ())
    assert unknown.tool_calls[0].name == "launch_rocket"


def test_a_small_reply_that_unpacks_to_a_huge_one_is_not_read() -> None:
    bomb = Fault(body=gzip.compress(HUGE.body), headers={"Content-Encoding": "gzip"})
    (error,), _ = asked(always(bomb))
    assert type(error) is BadReply


def test_nobody_at_the_address_is_server_trouble() -> None:
    with FaultyServer() as server:
        url = server.url
    llm = OpenAIHTTP("tiny", url)
    with pytest.raises(ServerError, match="the connection to http://127"):
        asyncio.run(llm.reply(ask()))


def test_equal_requests_get_equal_replies_in_the_order_asked() -> None:
    requests = [ask(agent=agent, tools=ACTIONS) for agent in range(1, 40)]
    first, server = asked(be_honest, *requests)
    again, _ = asked(be_honest, *requests[::-1])
    assert [reply.tool_calls for reply in first] == [reply.tool_calls for reply in again[::-1]]
    assert len({repr(reply.tool_calls) for reply in first}) > 10
    assert server.count == 39


@pytest.mark.parametrize(
    ("part", "words", "left"),
    [
        ("response_format", "response_format of type json_schema is unavailable", {"type": "json_object"}),
        ("tool_choice", "tool_choice 'required' is not supported", "auto"),
        ("temperature", "'temperature' does not support 0.7 with this model, only the default", None),
        ("seed", "['body', 'seed']: extra inputs are not permitted", None),
    ],
)
def test_a_part_an_endpoint_does_not_know_is_left_out_from_then_on(part: str, words: str, left: Any) -> None:
    def behave(body: dict[str, Any], number: int) -> Fault | None:
        return refused(400, words) if body.get(part) != left else None

    request = ask(tools=ACTIONS, schema=VOTE, settings={"temperature": 0.7})
    llm_replies, server = asked(behave, request)
    assert llm_replies[0].attempts == server.count == 2
    many, server = asked(behave, *[request] * 8)
    assert all(isinstance(reply, Reply) for reply in many)
    assert server.last.get(part) == left


def test_a_simplified_form_is_remembered_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def twice(url: str) -> list[int]:
        llm = OpenAIHTTP("tiny", url)
        attempts = [(await llm.reply(ask())).attempts for _ in range(3)]
        await llm.close()
        return attempts

    with FaultyServer(lambda body, number: refused(422, "unknown: seed") if "seed" in body else None) as server:
        assert asyncio.run(twice(server.url)) == [2, 1, 1]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_model_without_tool_calls_can_still_choose() -> None:
    def behave(body: dict[str, Any], number: int) -> Fault | str:
        return refused(400, "tiny does not support tools") if "tools" in body else '{"action": "rest", "arguments": {}}'

    (reply,), server = asked(behave, ask(tools=ACTIONS))
    assert read_value(reply.text).value == {"action": "rest", "arguments": {}}
    assert "talk_to" in server.last["messages"][0]["content"]


@pytest.mark.parametrize("length", [5000, 500_000])
def test_a_reply_just_within_the_bound_is_read(length: int) -> None:
    size = len(json.dumps(completion("x" * length, body={"model": ""})))
    (reply,), _ = asked(always(completion("x" * length)), max_reply_bytes=size)
    (error,), _ = asked(always(completion("x" * length)), max_reply_bytes=size - 1)
    assert (len(reply.text), type(error)) == (length, BadReply)


LOADING = [
    refused(503, "Loading model"),
    Fault(503, b"Loading model"),
    Fault(200, b'{"error": "Model tiny is currently loading", "estimated_time": 0.02}'),
    Fault(200, b'{"status": "loading model"}'),
    refused(409, "model is loading"),
    refused(425, "model is loading"),
    refused(500, "llm server loading model"),
]


@pytest.mark.parametrize("fault", LOADING)
def test_a_model_that_is_being_loaded_is_waited_for(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    (reply,), server = asked(lambda body, number: fault if number <= 2 else None)
    assert (reply.attempts, server.count) == (1, 3)
    assert [record.getMessage().rpartition("; ")[2] for record in caplog.records] == [
        "waiting until it is loaded, up to 300 s"
    ]


def test_a_model_that_goes_on_loading_ends_the_run_within_the_limit() -> None:
    async def ask_impatiently(url: str) -> None:
        await Retry(OpenAIHTTP("tiny", url), loading_timeout_s=0.3).reply(ask())

    with FaultyServer(always(LOADING[0])) as server, pytest.raises(ConfigError, match="or raise loading_timeout_s"):
        asyncio.run(ask_impatiently(server.url))


def test_a_reply_that_cannot_be_used_says_what_it_cost() -> None:
    (error,), _ = asked(always(completion(42, prompt_tokens=12, completion_tokens=5, cost=0.01)))
    assert (error.usage.prompt_tokens, error.usage.reply_tokens, error.usage.dollars) == (12, 5, 0.01)


WROTE = '<function=walk>{"metres": 2}</function>'
QUOTING = [
    {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": WROTE},
    {"message": "Provider returned error", "metadata": {"raw": json.dumps({"error": {"failed_generation": WROTE}})}},
    {"message": "Invalid function calling output.", "model_output": WROTE},
    {"message": "Failed.", "failed_generation": json.loads('{"name": "walk", "arguments": {"metres": 2}}')},
    {"message": "tool call validation failed: did not match schema", "code": "tool_use_failed"},
]


@pytest.mark.parametrize("fields", QUOTING)
def test_what_a_model_wrote_is_read_in_an_error_that_quotes_it(fields: dict[str, Any]) -> None:
    (reply,), server = asked(always(Fault(400, json.dumps({"error": fields}).encode())), ask(tools=ACTIONS))
    wrote = {3: json.dumps(QUOTING[3].get("failed_generation")), 4: ""}.get(QUOTING.index(fields), WROTE)
    assert (reply.text, server.count) == (wrote, 1)
    assert reply.prompt_tokens > 0


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"<html><head><title>502 Bad Gateway</title></head></html>", ServerError, "502 Bad Gateway"),
        (b"<!DOCTYPE html><html><title>Open WebUI</title></html>", BadReply, "check the api_base"),
        (b'event: error\ndata: {"error": {"message": "overloaded", "code": 529}}\n\n', ServerError, "overloaded"),
        (b'{"error_code": 18, "error_msg": "Open api qps request limit reached"}', RateLimited, "qps"),
        (b'{"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}', AccessRefused, "balance"),
        (b'{"choices": [{"finish_reason": "error", "message": {"content": "I wou"}}]}', ServerError, "in the middle"),
    ],
)
def test_a_reason_inside_a_success_is_read(body: bytes, kind: type[MesaLLMError], words: str) -> None:
    (error,), _ = asked(always(Fault(body=body)))
    assert (type(error), words in str(error)) == (kind, True)
