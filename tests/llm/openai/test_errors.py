"""What an endpoint says decides who is told."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.errors import AccessRefused, BadReply, ConfigError, Filtered, Loading, RateLimited, Refused, ServerError
from mesa_llm.llm.openai import errors
from mesa_llm.llm.openai.errors import (
    MAX_MESSAGE,
    MAX_RETRY_AFTER_S,
    MAX_WAIT_S,
    ErrorDetail,
    detail_in,
    error_for_status,
    seconds_in,
    wait_in_headers,
)

SAID = ErrorDetail("no", "")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *[(status, AccessRefused) for status in (301, 308, 401, 402, 403, 404, 405)],
        *[(status, ServerError) for status in (408, 409, 425, 500, 502, 503, 504, 529)],
        *[(status, Refused) for status in (400, 413, 415, 422)],
        (429, RateLimited),
        (204, BadReply),
    ],
)
def test_a_status_says_who_must_act(status: int, kind: type[Exception]) -> None:
    assert type(error_for_status(status, SAID, "here")) is kind


def test_an_empty_account_needs_a_person_although_its_status_is_429() -> None:
    body = b'{"error": {"message": "You exceeded your quota", "param": null, "code": "insufficient_quota"}}'
    with pytest.raises(ConfigError, match="balance"):
        raise error_for_status(429, detail_in(body), "here")


def test_a_prompt_that_moderation_flags_is_filtered() -> None:
    assert type(error_for_status(403, ErrorDetail("Your input was flagged", ""), "here")) is Filtered


@pytest.mark.parametrize(
    ("body", "words", "about"),
    [
        (b'{"error": {"message": "too long", "param": "messages"}}', "too long", "messages"),
        (b'{"error": "model is\\n loading"}', "model is loading", ""),
        (b'{"detail": [{"loc": ["body", "seed"], "msg": "extra", "input": "secret"}]}', "['body', 'seed']: extra", ""),
        (b'{"message": "nope", "code": "bad_thing"}', "nope", "bad_thing"),
        (b"Bad gateway", "Bad gateway", ""),
        (b"[1, 2]", "[1, 2]", ""),
        (b"\xff\xfe", "\ufffd\ufffd", ""),
        (b"[" * 100_000, "[" * MAX_MESSAGE, ""),
    ],
)
def test_an_endpoints_words_are_found(body: bytes, words: str, about: str) -> None:
    assert detail_in(body)[:2] == (words, about)


any_text = st.text(st.characters(codec=None))
any_json = st.recursive(any_text, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner))


@given(st.binary(max_size=200) | any_json.map(lambda said: json.dumps({"error": said}).encode()))
def test_any_body_gives_short_words_on_one_line(body: bytes) -> None:
    words = detail_in(body).text
    assert len(words.encode()) <= 4 * MAX_MESSAGE
    assert words == " ".join(words.split())


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2.0),
        ("0.25", 0.25),
        ("86400", 86_400.0),
        ("inf", MAX_WAIT_S),
        *[(header, None) for header in ("-3", "nan", "soon", "", None, "Mon, 99 Foo 9999 99:99:99 GMT")],
    ],
)
def test_retry_after_is_bounded_and_never_nonsense(header: str | None, seconds: float | None) -> None:
    assert seconds_in(header) == seconds


def test_retry_after_can_be_a_date() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    assert seconds_in(soon) == pytest.approx(20, abs=3)
    assert seconds_in("Wed, 21 Oct 2015 07:28:00 GMT") is None


def test_a_retry_after_without_a_zone_is_in_gmt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    soon = seconds_in(time.asctime(time.gmtime(time.time() + 20)))
    monkeypatch.undo()
    time.tzset()
    assert soon == pytest.approx(20, abs=3)


@pytest.mark.parametrize(
    ("body", "wait_s"),
    [
        ({"error": {"message": "Rate limit reached: Limit 30000, Used 29900. Please try again in 7.0s. Visit"}}, 7.0),
        ({"error": {"message": "Please try again in 1m30s."}}, 90.0),
        ({"error": {"message": "Please try again in 6m0s."}}, 360.0),
        ({"error": {"message": "try again in 350ms"}}, 0.35),
        ({"error": {"message": "Please retry after 30 seconds."}}, 30.0),
        ({"error": {"message": "Please wait 1 minute and 5 seconds"}}, 65.0),
        ([{"error": {"code": 429, "message": "quota", "details": [{"@type": "RetryInfo", "retryDelay": "9s"}]}}], 9.0),
        ({"message": "slow down", "retry_after": 2.5}, 2.5),
        ({"error": {"message": "slow down", "retry_after_ms": 1500}}, 1.5),
        ({"error": "Model gpt2 is currently loading", "estimated_time": 20.5}, 20.5),
        *[({"error": {"message": said}}, None) for said in ("You sent 30 messages.", "try again later", "wait nan s")],
    ],
)
def test_a_delay_that_stands_in_the_body_is_found_and_bounded(body: Any, wait_s: float | None) -> None:
    assert detail_in(json.dumps(body).encode()).wait_s == wait_s
    error = error_for_status(429, detail_in(json.dumps(body).encode()), "here")
    assert isinstance(error, RateLimited | Loading)
    assert error.retry_after_s == wait_s


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "350", "retry-after": "1"}, 0.35),
        ({"retry-after": "7", "x-ratelimit-reset-tokens": "1s"}, 7.0),
        ({"x-ratelimit-remaining-requests": "14", "x-ratelimit-reset-requests": "2m0s"}, 120.0),
        (
            {"x-ratelimit-remaining-requests": "14", "x-ratelimit-reset-requests": "2m0s"}
            | {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7.66s"},
            7.66,
        ),
        ({"x-ratelimit-reset": "99999999999999"}, MAX_WAIT_S),
        ({"x-ratelimit-remaining": "3", "x-ratelimit-reset": "9h"}, MAX_RETRY_AFTER_S),
        ({"x-ratelimit-reset": "soon", "retry-after": "nan"}, None),
    ],
)
def test_headers_say_how_long_to_wait_in_several_ways(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_in(wait_in_headers(headers)) == seconds


@pytest.mark.parametrize(
    ("status", "said", "is_loading"),
    [
        (503, "Loading model", True),
        (503, "Model is loading, please wait", True),
        (500, "llm server loading model", True),
        (409, "The model is currently being loaded", True),
        (425, "model is not ready", True),
        (429, "Model gpt2 is currently loading", True),
        (503, "No models are currently loaded", False),
        (500, "error loading model: out of memory", False),
        (503, "Unloading model", False),
        (401, "Loading model", False),
    ],
)
def test_a_model_that_is_being_loaded_is_told_from_one_that_cannot_be(status: int, said: str, is_loading: bool) -> None:
    assert isinstance(error_for_status(status, ErrorDetail(said, ""), "here"), Loading) is is_loading


def test_a_router_quotes_what_its_provider_said() -> None:
    raw = json.dumps({"error": {"message": "System role not supported", "param": "messages"}})
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    detail = detail_in(json.dumps(body).encode())
    assert (detail.text, detail.about) == ("Provider returned error: System role not supported", "messages")


@pytest.mark.parametrize("invisible", ["\u200b", "\xad", "\ufeff", "\u2060", "\ufe0f", "\x1b[0m"])
def test_a_key_with_invisible_letters_in_it_is_not_shown(invisible: str) -> None:
    body = json.dumps({"error": {"message": f"bad key {invisible.join('sk-abcdef123456')}"}}).encode()
    assert errors.shown(errors.detail_in(body), ["sk-abcdef123456"]).text == "bad key (key)"
