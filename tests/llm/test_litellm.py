"""The way through litellm: its own made-up replies, and an endpoint that misbehaves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mesa_llm.errors import AccessRefused, BadReply, ConfigError, MesaLLMError, RateLimited, Refused, ServerTrouble
from mesa_llm.llm.litellm import LiteLLM
from mesa_llm.records import Reply
from tests.faulty_server import (
    CUT_AT_ONCE,
    CUT_MIDWAY,
    EMPTY,
    HANG,
    HUGE,
    NAN_NUMBERS,
    NOT_JSON,
    SERVER_ERROR,
    UNKNOWN_TOOL,
    FaultyServer,
    rate_limited,
    refused,
)
from tests.llm.human.questions import ACTIONS, VOTE, ask
from tests.processes import run

KEY = "sk-very-secret"


def asked(llm: LiteLLM, **fields: Any) -> Reply | MesaLLMError:
    """Ask once; give the reply, or what was raised in its place."""
    try:
        return asyncio.run(llm.reply(ask(**fields)))
    except MesaLLMError as error:
        return error


def served(fault: Any, **fields: Any) -> tuple[Any, FaultyServer]:
    """Ask a server once."""
    with FaultyServer(lambda body, number: fault) as server:
        return asked(LiteLLM("openai/tiny", server.url, KEY, 30.0), **fields), server


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Load litellm and make its first call, which takes seconds, before anything is timed."""
    served(None, tools=ACTIONS)


def test_a_made_up_reply_is_read_and_priced() -> None:
    reply = asked(LiteLLM("gpt-4o-mini"), settings={"mock_response": "It is warm."})
    assert isinstance(reply, Reply)
    assert (reply.text, reply.prompt_tokens, reply.reply_tokens) == ("It is warm.", 10, 20)
    # gpt-4o-mini: $0.15 and $0.60 a million tokens read and written.
    assert reply.dollars == pytest.approx(10 * 0.15e-6 + 20 * 0.60e-6)


def test_a_model_without_a_price_has_none() -> None:
    reply = asked(LiteLLM("openai/tiny"), settings={"mock_response": "hm"})
    assert isinstance(reply, Reply)
    assert reply.dollars is None


def test_everything_asked_for_reaches_the_endpoint() -> None:
    reply, server = served(None, tools=ACTIONS, settings={"temperature": 0.3})
    assert reply.tool_calls[0].name in {tool.name for tool in ACTIONS}
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.last["tools"] == [tool.wire for tool in ACTIONS]
    found = (server.last["model"], server.last["tool_choice"], server.last["temperature"], server.last["seed"])
    assert found == ("tiny", "required", 0.3, ask().salt.seed)


def test_a_schema_is_followed() -> None:
    reply, server = served(None, schema=VOTE)
    assert json.loads(reply.text)["vote"] in ("Green", "Oil")
    assert server.last["response_format"]["json_schema"]["schema"] == VOTE


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (rate_limited(7), RateLimited),
        (SERVER_ERROR, ServerTrouble),
        (CUT_AT_ONCE, ServerTrouble),
        (CUT_MIDWAY, ServerTrouble),
        (NOT_JSON, ServerTrouble),
        (NAN_NUMBERS, ServerTrouble),
        (HUGE, BadReply),
        (refused(400, "the prompt is too long"), Refused),
        (refused(422, "temperature must be 1"), Refused),
        (refused(401, f"{KEY} is no key we know"), AccessRefused),
        (refused(402, "no money"), AccessRefused),
        (refused(404, "no model tiny"), AccessRefused),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # litellm's own, about the numbers that are none
def test_each_fault_has_its_error_and_is_asked_once(fault: Any, kind: type[MesaLLMError]) -> None:
    error, server = served(fault)
    assert (type(error), server.count) == (kind, 1)
    assert KEY not in f"{error!r} {error} {error.__cause__!r}"


def test_an_error_quotes_no_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant/quoted+key")
    error, _ = served(refused(400, "the keys sk-ant/quoted+key and sk-ant%2Fquoted%2Bkey are none"))
    assert "quoted" not in f"{error!r} {error} {error.__cause__!r} {error.__context__!r}"


def test_what_a_model_thought_and_may_think_pass_through() -> None:
    thought = {"choices": [{"message": {"content": "Yes.", "reasoning_content": "Hm."}, "finish_reason": "length"}]}
    reply, server = served(thought, settings={"reasoning_effort": "low", "max_tokens": 50})
    assert (reply.reasoning, reply.finish) == ("Hm.", "length")
    assert (server.last.get("reasoning_effort"), server.last["max_tokens"]) in [("low", 50), (None, 50)]


def test_retry_after_is_passed_on() -> None:
    error, _ = served(rate_limited(7))
    assert error.retry_after_s == 7


def test_an_empty_reply_and_an_unknown_tool_are_replies() -> None:
    empty, _ = served(EMPTY)
    unknown, _ = served(UNKNOWN_TOOL)
    assert (empty.text, empty.tool_calls, unknown.tool_calls[0].name) == ("", (), "launch_rocket")


def test_a_provider_that_hangs_is_given_up() -> None:
    with FaultyServer(lambda body, number: HANG) as server:
        error = asked(LiteLLM("openai/tiny", server.url, KEY, 0.5))
    assert type(error) is ServerTrouble


@pytest.mark.parametrize("name", ["nowhere/tiny", "ollama"])
def test_a_provider_nobody_knows_or_without_a_model_is_a_matter_for_a_person(name: str) -> None:
    error = asked(LiteLLM(name))
    assert type(error) is ConfigError
    assert f"no provider is known for llm='{name}'" in str(error)


@pytest.mark.parametrize("model", ["gpt-4o-mini", "anthropic/claude-sonnet-4-5"])
def test_a_missing_key_is_a_matter_for_a_person(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert type(asked(LiteLLM(model))) is AccessRefused


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf")])
def test_a_timeout_that_cannot_work_is_refused(timeout_s: float) -> None:
    with pytest.raises(ConfigError):
        LiteLLM("gpt-4o-mini", timeout_s=timeout_s)


def test_its_repr_holds_no_key() -> None:
    assert repr(LiteLLM("gpt-4o-mini", api_key=KEY)) == "LiteLLM('gpt-4o-mini')"


QUIET = """
import asyncio, socket, sys
looked_up = []
found = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **named: looked_up.append(host) or found(host, *more, **named)
from mesa_llm.llm.litellm import LiteLLM
from tests.llm.human.questions import ask
llm = LiteLLM("gpt-4o-mini")
assert "litellm" not in sys.modules
asyncio.run(llm.reply(ask(settings={"mock_response": "hm"})))
assert looked_up == [], looked_up
"""


@pytest.mark.slow
def test_it_loads_late_says_nothing_and_calls_nobody() -> None:
    ran = run("-c", QUIET)
    assert (ran.returncode, ran.out, ran.err) == (0, "", "")
