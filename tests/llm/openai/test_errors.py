"""What an endpoint says decides who is told."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.errors import AccessRefused, BadReply, ConfigError, RateLimited, Refused, ServerTrouble
from mesa_llm.llm.openai.errors import MAX_MESSAGE, MAX_RETRY_AFTER_S, ErrorDetail, detail_in, seconds_in, trouble

SAID = ErrorDetail("no", "")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *[(status, AccessRefused) for status in (301, 308, 401, 402, 403, 404, 405)],
        *[(status, ServerTrouble) for status in (408, 409, 425, 500, 502, 503, 504, 529)],
        *[(status, Refused) for status in (400, 413, 415, 422)],
        (429, RateLimited),
        (204, BadReply),
    ],
)
def test_a_status_says_who_must_act(status: int, kind: type[Exception]) -> None:
    assert type(trouble(status, SAID, "here")) is kind


def test_an_empty_account_needs_a_person_although_its_status_is_429() -> None:
    body = b'{"error": {"message": "You exceeded your quota", "param": null, "code": "insufficient_quota"}}'
    with pytest.raises(ConfigError, match="balance"):
        raise trouble(429, detail_in(body), "here")


def test_a_prompt_that_moderation_flags_is_only_refused() -> None:
    assert type(trouble(403, ErrorDetail("Your input was flagged", ""), "here")) is Refused


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
        ("86400", MAX_RETRY_AFTER_S),
        ("inf", MAX_RETRY_AFTER_S),
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
