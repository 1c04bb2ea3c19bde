"""An account without money or quota is known from every way of saying it, and nothing else is taken for one."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from mesa_llm.errors import AccessRefused, BudgetExceeded, RateLimited, Refused, TransportError
from mesa_llm.llm.openai.errors import detail_in, error_for_status, wait_in_headers
from mesa_llm.llm.retry import Refusals, Retry
from mesa_llm.llm.scripted import ScriptedLLM
from tests.llm.layers import PRICED, gathered


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


def google(quota: str, delay: str) -> list[dict[str, Any]]:
    violation = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}
    details = [violation, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    text = "You exceeded your current quota, please check your plan and billing details."
    return [{"error": {"code": 429, "message": text, "status": "RESOURCE_EXHAUSTED", "details": details}}]


def error(status: int, body: Any, headers: dict[str, str] | None = None, prompt: str = "") -> Any:
    detail = detail_in(json.dumps(body).encode())
    return error_for_status(status, detail, "https://api.example.com/v1", wait_in_headers(headers or {}), prompt)


def in_hours() -> str:
    return str(int((time.time() + 40_000) * 1000))


NO_MORE = {
    "OpenAI": (429, said("You exceeded your current quota", code="insufficient_quota")),
    "OpenAI, hard limit": (400, said("Billing hard limit has been reached", code="billing_hard_limit_reached")),
    "OpenAI, a day": (429, said("Rate limit reached on requests per day (RPD): Limit 200. Try again in 7m12s.")),
    "OpenRouter": (402, said("This request requires more credits, or fewer max_tokens.", code=402)),
    "OpenRouter, key": (403, said("Key limit exceeded (daily limit). Manage it in settings", code=403)),
    "Gemini": (429, google("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "1s")),
    "Gemini, not for free": (
        429,
        said("You exceeded your current quota. " + "See the page about limits. " * 20 + "Limit: 0. Retry in 21.4s."),
    ),
    "Moonshot, words": (429, said("Suspended, please check your plan and billing details")),
    "Anthropic": (400, said("Your credit balance is too low to access the Anthropic API.")),
    "Anthropic, month": (
        400,
        said("You have reached your API usage limits. You will regain access on 1 May."),
    ),
    "Zhipu": (
        429,
        said(
            "\u4f59\u989d\u4e0d\u8db3\u6216\u65e0\u53ef\u7528\u8d44\u6e90\u5305,\u8bf7\u5145\u503c\u3002", code="1113"
        ),
    ),
    "DeepSeek": (402, said("Insufficient Balance", type="unknown_error")),
    "Moonshot": (429, said("Your account is suspended", type="exceeded_current_quota_error")),
    "Moonshot, a day": (429, said("Your account reached max TPD: 1500000, please try again after 1 seconds")),
    "Mistral": (429, {"message": "Monthly token limit exceeded"}),
    "Groq": (429, said("Rate limit reached on tokens per day (TPD): Limit 500000. Please try again in 7m54.3s.")),
    "xAI": (429, {"error": "Your team has used all available credits or reached its monthly spending limit."}),
    "Together": (402, said("Credit limit exceeded", type="credit_limit")),
    "Fireworks": (412, {"error": "Account is suspended, possibly due to reaching the monthly spending limit"}),
    "Cohere": (429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}),
    "Azure": (429, said("Requests have exceeded the call rate limit. Please retry after 86400 seconds.", code="429")),
    "Perplexity": (401, said("You exceeded your current quota", type="insufficient_quota", code=401)),
    "Alibaba": (400, said("Access denied, is your account in good standing?", type="Arrearage", code="Arrearage")),
    "Alibaba, free": (403, said("The free tier of the model has been exhausted.", code="AllocationQuota.FreeTierOnly")),
    "Volcengine": (403, said("The request failed", code="AccountOverdueError")),
    "SiliconFlow": (403, {"code": 30001, "message": "Sorry, your account balance is insufficient", "data": None}),
    "Baidu": (502, {"error_code": 17, "error_msg": "Open api daily request limit reached"}),
    "Hugging Face": (402, {"error": "You have exceeded your monthly included credits for Inference Providers."}),
    "GitHub": (429, said("Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 43200 seconds.")),
    "Bedrock": (429, {"message": "Too many tokens per day, please wait before trying again."}),
}

NOT_NOW = {
    "Gemini, in words": (
        429,
        said(
            "Please check your plan and billing details. " + "See the page. " * 30 + "Limit: 10. Please retry in 31s."
        ),
    ),
    "Alibaba": (429, said("You exceeded it, please check your plan and billing details", code="limit_requests")),
    "Gemini": (429, google("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "38s")),
    "OpenRouter": (429, said("free-models-per-min. Add 10 credits to unlock 1000 free requests per day")),
    "Groq": (429, said("Rate limit reached on tokens per minute (TPM): Limit 6000. Please try again in 7.0s.")),
    "Cohere": (429, {"message": "You are using a Trial key, limited to 20 API calls / minute. Upgrade for more."}),
    "Mistral": (429, {"message": "Requests rate limit exceeded"}),
    "Moonshot": (429, said("max RPM: 3, please try again after 1 seconds", type="rate_limit_reached_error")),
    "Anthropic": (429, said("This request would exceed your account's rate limit.", type="rate_limit_error")),
    "Baidu": (502, {"error_code": 18, "error_msg": "Open api qps request limit reached"}),
}


@pytest.mark.parametrize("provider", NO_MORE)
def test_an_account_that_has_no_more_stops_the_run_and_says_what_to_do(provider: str) -> None:
    found = error(*NO_MORE[provider])
    assert (type(found), found.is_out_of_money) == (AccessRefused, True)
    assert "the account of your API key at api.example.com has" in str(found)
    assert str(found).endswith("What was answered is kept: run the same again to go on")


@pytest.mark.parametrize("provider", NOT_NOW)
def test_a_limit_of_the_moment_stops_nothing(provider: str) -> None:
    assert type(error(*NOT_NOW[provider])) is RateLimited


def test_a_limit_that_is_reset_in_hours_stops_the_run() -> None:
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": in_hours()}
    assert "it is reset, in 11 hours" in str(error(429, said("slow down"), headers))
    assert isinstance(error(429, said("slow down"), {"retry-after": "7200"}), AccessRefused)
    unspent = {"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "9h"}
    assert type(error(429, said("slow down"), unspent)) is RateLimited


def test_words_of_the_prompt_are_not_taken_for_the_providers() -> None:
    prompt = "Ann: My credit balance is too low for groceries, and my daily limit is reached by noon."
    quoting = said(f"invalid character in '{prompt[5:70]}'")
    assert type(error(400, quoting, prompt=prompt)) is Refused
    assert type(error(400, said("Your credit balance is too low to access the API."), prompt=prompt)) is AccessRefused


def test_after_a_reply_the_run_stops_at_the_first_refusal_and_can_be_resumed() -> None:
    asked: list[int] = []
    answers: list[Any] = [PRICED, error(*NO_MORE["OpenRouter"])]
    llm = Retry(Refusals(ScriptedLLM(lambda request: asked.append(1) or answers[min(len(asked), 2) - 1])), base_s=0)
    assert [type(gathered(llm, 1)[0]) for _ in range(2)] == [type(PRICED), BudgetExceeded]
    assert len(asked) == 2
    assert not isinstance(BudgetExceeded("no"), TransportError)
