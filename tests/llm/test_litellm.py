"""The way through litellm: its own made-up replies, and an endpoint that misbehaves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mesa_llm.errors import AccessRefused, BadReply, ConfigError, MesaLLMError, RateLimited, Refused, ServerError
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
    Fault,
    FaultyServer,
    rate_limited,
    refused,
)
from tests.honest_reply import completion
from tests.listener import Listener
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
        (SERVER_ERROR, ServerError),
        (CUT_AT_ONCE, ServerError),
        (CUT_MIDWAY, ServerError),
        (NOT_JSON, ServerError),
        (NAN_NUMBERS, ServerError),
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


@pytest.mark.parametrize("words", ["`temperature` is deprecated for this model.", "temperature has been removed"])
def test_a_setting_that_a_provider_refuses_is_left_out_from_then_on(words: str, caplog) -> None:
    def behave(body: dict[str, Any], number: int) -> Any:
        return refused(400, words) if "temperature" in body else None

    async def twice(url: str) -> list[int]:
        llm = LiteLLM("openai/tiny", url, KEY, 30.0)
        return [(await llm.reply(ask(settings={"temperature": 0.7}))).attempts for _ in range(2)]

    with FaultyServer(behave) as server:
        assert asyncio.run(twice(server.url)) == [2, 1]
    said = [record.getMessage() for record in caplog.records if record.name.startswith("mesa_llm")]
    assert [one.rpartition("; ")[2] for one in said] == ["from now on, temperature is left out"]


def test_an_account_without_money_and_a_quoted_reply_are_known_here_too() -> None:
    broke, _ = served(refused(400, "Your credit balance is too low to access the Anthropic API."))
    body = {"error": {"message": "Failed to call a function.", "failed_generation": "<function=rest>{}</function>"}}
    quoted, server = served(Fault(400, json.dumps(body).encode()), tools=ACTIONS)
    assert (broke.is_out_of_money, quoted.text, server.count) == (True, "<function=rest>{}</function>", 1)


NOT_LOADED = """
import sys
from mesa_llm.errors import ConfigError
from mesa_llm.engine.access import Access
access = Access()
for name in ("gpt-4o-mini", "anthropic/claude-sonnet-4-5", "gemini/gemini-3-pro"):
    access.require(name)
for name in ("nosuch/model/x", "gtp-4o"):
    try:
        access.require(name)
    except ConfigError as error:
        assert "no provider is known" in str(error)
    else:
        raise SystemExit(f"{name} was taken")
assert "litellm" not in sys.modules
"""


def test_a_name_is_checked_without_loading_litellm() -> None:
    ran = run("-c", NOT_LOADED)
    assert (ran.returncode, ran.err) == (0, "")


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
    assert type(error) is ServerError


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


PROVIDERS = {
    "openai": "authorization",
    "azure": "api-key",
    "anthropic": "x-api-key",
    "gemini": "x-goog-api-key",
    "mistral": "authorization",
    "groq": "authorization",
    "deepseek": "authorization",
    "openrouter": "authorization",
    "together_ai": "authorization",
    "fireworks_ai": "authorization",
    "cohere": "authorization",
    "xai": "authorization",
    "perplexity": "authorization",
    "huggingface": "authorization",
    "nvidia_nim": "authorization",
    "cerebras": "authorization",
    "sambanova": "authorization",
    "deepinfra": "authorization",
    "databricks": "authorization",
    "hosted_vllm": "authorization",
    "azure_ai": "authorization",
    "moonshot": "authorization",
    "dashscope": "authorization",
    "ai21": "authorization",
}


def at_base(provider: str, url: str, monkeypatch: pytest.MonkeyPatch) -> LiteLLM:
    """Return a model of a provider whose address and key the environment sets."""
    monkeypatch.setenv(f"{provider.upper()}_API_BASE", url)
    monkeypatch.setenv("OPENAI_API_KEY", "openais-own-key")
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "my-own-provider-key")
    monkeypatch.setenv("AZURE_API_VERSION", "2024-06-01")
    return LiteLLM(f"{provider}/tiny", timeout_s=10)


@pytest.mark.parametrize(("provider", "header"), PROVIDERS.items())
def test_the_address_recorded_is_the_address_asked(provider: str, header: str, monkeypatch) -> None:
    with Listener() as server:
        llm = at_base(provider, server.url, monkeypatch)
        asked(llm)
    assert llm.name.endswith(f"tiny@{server.url}")
    assert "my-own-provider-key" in server.heard[0].headers[header]


def test_the_key_of_openai_goes_to_no_other_provider(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "openais-own-key")
    with Listener() as server:
        monkeypatch.setenv("AI21_API_BASE", server.url)
        error = asked(LiteLLM("ai21/tiny", timeout_s=10))
    assert "would send OPENAI_API_KEY to" in str(error)
    assert server.heard == []


@pytest.mark.parametrize("variable", ["REPLICATE_API_BASE", "BYTEZ_API_BASE", "ANTHROPIC_BASE_URL"])
def test_address_that_litellm_would_ignore_is_refused_first(variable: str, monkeypatch) -> None:
    provider = variable.split("_")[0].lower()
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "my-own-provider-key")
    with Listener() as server:
        monkeypatch.setenv(variable, server.url)
        error = asked(LiteLLM(f"{provider}/owner/tiny", timeout_s=10))
    assert isinstance(error, ConfigError)
    assert "nothing was sent" in str(error)
    assert server.heard == []


@pytest.mark.parametrize("provider", ["openai", "azure", "anthropic", "gemini", "mistral", "groq", "cohere"])
@pytest.mark.parametrize("status", [302, 307, 308])
def test_no_redirect_is_followed(provider: str, status: int, monkeypatch) -> None:
    with Listener() as second, Listener(status, second.url) as first:
        error = asked(at_base(provider, first.url, monkeypatch))
    assert isinstance(error, AccessRefused)
    assert f"answered {status}, a redirect to {second.url.removesuffix('/v1')}, which is not followed" in str(error)
    assert (len(first.heard), second.heard) == (1, [])


def test_name_without_a_provider_is_recorded_with_its_address(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://gpu:8000/v1")
    assert LiteLLM("gpt-4o-mini").name == "gpt-4o-mini@http://gpu:8000/v1"


def test_a_model_that_hides_an_address_is_refused() -> None:
    with pytest.raises(ConfigError, match="holds an address"):
        LiteLLM("huggingface/https://stranger.example/v1")


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 900}}, 900),
        ({"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100}, 900),
        ({}, 0),
    ],
)
def test_cached_tokens_are_read_and_priced(usage: dict[str, Any], cached: int) -> None:
    answer = completion("hm", prompt_tokens=1000, completion_tokens=10, **usage)
    with FaultyServer(lambda body, number: answer) as server:
        reply = asked(LiteLLM("openai/gpt-4o-mini", server.url, KEY))
    assert isinstance(reply, Reply)
    assert (reply.prompt_tokens, reply.cached_tokens) == (1000, cached)
    # gpt-4o-mini: $0.15 a million tokens read, $0.075 of them cached, and $0.60 written.
    assert reply.dollars == pytest.approx((1000 - cached) * 0.15e-6 + cached * 0.075e-6 + 10 * 0.60e-6)


def test_a_reply_that_cannot_be_read_says_what_it_cost() -> None:
    answer = {**completion(None, prompt_tokens=1000, completion_tokens=10), "choices": []}
    error, _ = served(answer)
    assert error.usage is None or error.usage.prompt_tokens == 1000
