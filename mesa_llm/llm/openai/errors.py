"""Converts errors of OpenAI-compatible endpoints to ours, by who can do something about them."""

from __future__ import annotations

import html
import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from mesa_llm.errors import AccessRefused, BadReply, Filtered, Loading, MesaLLMError, RateLimited, Refused, ServerError
from mesa_llm.llm.credentials import visible, without_secrets
from mesa_llm.llm.openai.accounts import LONG_WAIT_S, NO_LIMIT, ZERO_LIMIT, Lack, lack_of, lack_text, says

MAX_MESSAGE = 300
"""Maximum number of characters of an endpoint's message that an error quotes."""

MAX_RETRY_AFTER_S = LONG_WAIT_S
"""Maximum wait that an endpoint can ask for, in seconds; if it asks for a longer one, the run stops."""

_FOR_A_PERSON = {
    401: "check the API key",
    402: "check the account's balance",
    403: "check what the API key may do",
    404: "check the model's name and the api_base",
    405: "check the api_base",
    407: "check the proxy that the environment names",
    410: "check the model's name and the api_base",
}
"""HTTP statuses after which a person has to act, and what to do."""

_LOADING = re.compile(
    r"(?<!un)\bloading\b.{0,20}\bmodel|\bmodel\b.{0,100}?\b(?:is|are|still|currently|being)\b.{0,15}"
    r"\b(?:(?:down)?loading|loaded|starting|initiali[sz]\w+|warming)\b|^\W*loading( model)?\W*$|warming up|"
    r"model is not (yet )?ready"
    r"|\b(?:currently|still) loading\b",
    re.IGNORECASE,
)
"""Messages of endpoints that are loading a model."""

_NOT_LOADING = re.compile(
    r"fail|error|could not|couldn't|cannot|can't|unable|out of memory|not enough|no models?\b|"
    r"not (?:currently )?loaded",
    re.IGNORECASE,
)
"""Words of messages about a model that will not be loaded."""


class ErrorDetail(NamedTuple):
    """The error that an endpoint reports."""

    text: str
    """Its message, at most `MAX_MESSAGE` characters on one line."""

    about: str
    """Name of the parameter it is about, or its error code; empty if it names none."""

    wait_s: float | None = None
    """Seconds that it asks to wait before the next request; None: it does not say."""

    codes: tuple[str, ...] = ()
    """Codes, types, reasons and ids of quotas that stand in it."""

    paths: tuple[str, ...] = ()
    """Parts of the request that it names in fields of their own, such as `generationConfig.temperature`."""

    wrote: str | None = None
    """What the language model wrote, which the endpoint could not use; None: it quotes nothing."""

    @property
    def is_about_loading(self) -> bool:
        """Whether the model is still being loaded."""
        return bool(_LOADING.search(self.text)) and not _NOT_LOADING.search(self.text)


def shown(detail: ErrorDetail, secrets: Iterable[str]) -> ErrorDetail:
    """Return an error without secrets in what a screen shows of it, where escapes and invisible letters are gone."""
    text = without_secrets(visible(detail.text), secrets)
    return detail if text == detail.text else detail._replace(text=text)


def detail_in(body: bytes) -> ErrorDetail:
    """Read an endpoint's error from the body of a response, in OpenAI's form, FastAPI's, or plain text."""
    text = body[:MAX_BODY].decode("utf-8", "replace")
    try:
        return detail_of(json.loads(text))
    except (ValueError, RecursionError):
        text = text_of_page(text)
        return ErrorDetail(_one_line(text), "", wait_in(text))


def detail_of(body: Any) -> ErrorDetail:
    """Read an endpoint's error from JSON values."""
    try:
        detail = _detail(body)
        fields = list(_fields(body, 0))
        waits = [wait_s for wait_s in (*_waits(body, 0), _reset_in(fields)) if wait_s is not None]
        codes = tuple(dict.fromkeys(_codes(fields)))
        wrote = next((_as_text(value) for name, value in fields if value is not None and _WROTE.fullmatch(name)), None)
        if wrote is None and not _FAILED_REPLIES.isdisjoint(codes):
            wrote = ""
        return detail._replace(
            wait_s=waits[0] if waits else wait_in(_messages(fields) or detail.text),
            codes=codes,
            paths=_paths(fields),
            wrote=wrote,
        )
    except RecursionError:
        return ErrorDetail("(nested too deeply)", "")


def detail_quoted(text: str) -> ErrorDetail:
    """Read an endpoint's error from a text that may quote its JSON, as exceptions do."""
    body = _quoted(text)
    return detail_of(text) if body is None else detail_of(body)


MAX_BODY = 100_000
"""Maximum number of characters of an error that are read."""

MAX_FIELDS = 500
"""Maximum number of its fields that are looked at."""

_CODE = re.compile(
    r"(error_?|err_?|status_?)?(code|type|reason|status|kind)|quota_?(id|metric|limit)|(biz|sub)_?code", re.IGNORECASE
)
"""Names of fields that hold a code."""

_PATH = re.compile(
    r"param|parameter|field|loc|location|path|pointer|property|argument|target|(data|json|instance)_?(path|pointer)|"
    r"(additional|unevaluated|unknown|extra)_?(property|properties|fields?|keys?|params?|parameters?)",
    re.IGNORECASE,
)
"""Names of fields that name a part of the request."""

_WROTE = re.compile(
    r"failed_?generation|(?:error_?)?(?:model|raw|generated|invalid|partial|llm)_?"
    r"(?:output|text|reply|response|generation|completion|content)",
    re.IGNORECASE,
)
"""Names of fields that hold what a language model wrote, and its endpoint could not use."""

_SAYING = frozenset({"message", "detail", "error", "msg", "raw"})
"""Names of fields that hold the words of an error."""

_FAILED_REPLIES = frozenset({"tool_use_failed", "json_validate_failed", "output_parse_failed", "tool_parse_failed"})
"""Codes of errors about what a language model wrote, whether or not it is quoted."""

_VERDICT = re.compile(r"content_?filter|flagged", re.IGNORECASE)
"""Names of fields that hold the verdict of a content filter."""


def _fields(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an error at any depth, also of one that it quotes as text."""
    if depth > 8:
        return
    if isinstance(value, list):
        for item in cast("list[Any]", value)[:50]:
            yield from _fields(item, depth + 1)
        return
    if not isinstance(value, dict):
        return
    for name, inner in list(cast("dict[str, Any]", value).items())[:MAX_FIELDS]:
        yield name, inner
        if name in ("raw", "body", "message", "detail", "error") and isinstance(inner, str) and "{" in inner:
            inner = _quoted(inner)
        yield from _fields(inner, depth + 1)


def _quoted(text: str) -> Any:
    """Return the JSON that a message quotes; None if it quotes none."""
    start = text.find("{")
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _messages(fields: Iterable[tuple[str, Any]]) -> str:
    """Return what an error says in full, where it may be too long to be quoted."""
    return " ".join(value for name, value in fields if name in _SAYING and isinstance(value, str))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _codes(fields: Iterable[tuple[str, Any]]) -> Iterator[str]:
    for name, value in fields:
        is_code = isinstance(value, str | int) and not isinstance(value, bool)
        if is_code and value != "" and _CODE.fullmatch(name):
            yield str(value)[:100]
        elif value and _VERDICT.search(name):
            yield "content_filter"
        elif isinstance(value, str) and NO_LIMIT.search(value):
            yield ZERO_LIMIT


def _paths(fields: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    paths: list[str] = []
    for name, value in fields:
        if value and _PATH.fullmatch(name):
            parts = cast("list[Any]", value) if isinstance(value, list) else [value]
            if all(isinstance(part, str | int) for part in parts):
                paths.append(".".join(map(str, parts))[:200])
    return tuple(paths)


def _reset_in(fields: Iterable[tuple[str, Any]]) -> float | None:
    """Return the seconds until a limit is reset, of headers that a router quotes in its error."""
    headers = {name.lower(): str(value) for name, value in fields if "ratelimit" in name.lower()}
    return seconds_in(wait_in_headers(headers)) if headers else None


def text_of_page(text: str) -> str:
    """Return the title of a web page, or its words; any other text unchanged."""
    if re.match(r"\s*(?:<!doctype html|<html|<head|<body)", text, re.IGNORECASE) is None:
        return text
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    words = re.sub(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", " ", text, flags=re.IGNORECASE | re.DOTALL)
    return f"a web page ({html.unescape((title[1] if title else words).strip())[:200]})"


def _detail(body: Any) -> ErrorDetail:
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = body[0]
    if not isinstance(body, dict):
        return ErrorDetail(_one_line(str(body)), "")
    fields = cast("dict[str, Any]", body)
    for name in ("error", "detail", "message", "errors"):
        inner = fields.get(name)
        if inner and isinstance(inner, str):
            about = str(fields.get("param") or fields.get("code") or "")[:100]
            return _with_cause(ErrorDetail(_one_line(inner), about), fields)
        if inner and isinstance(inner, dict):
            return _detail(inner)
        if inner and isinstance(inner, list):
            return ErrorDetail(_one_line(_detail_in(cast("list[Any]", inner))), "")
    return ErrorDetail(_one_line(str(fields)), "")


def _with_cause(detail: ErrorDetail, fields: Mapping[str, Any]) -> ErrorDetail:
    """Add the error of the provider behind a router, which quotes it as text."""
    metadata = fields.get("metadata")
    raw = cast("dict[str, Any]", metadata).get("raw") if isinstance(metadata, dict) else None
    quoted = raw or (fields.get("message") if detail.text.startswith("{") else None)
    if not isinstance(quoted, str):
        return detail
    cause = detail_in(quoted.encode("utf-8", "replace"))
    text = cause.text if quoted is not raw else f"{detail.text}: {cause.text}"
    return ErrorDetail(_one_line(text), cause.about or detail.about)


def _detail_in(faults: list[Any]) -> str:
    """Describe FastAPI's list of faults, without the input that it quotes."""
    entries = [cast("dict[str, Any]", fault) for fault in faults if isinstance(fault, dict)]
    texts = [f"{fault.get('loc', '')}: {fault.get('msg') or fault.get('message', '')}" for fault in entries]
    return "; ".join(text.removeprefix(": ") for text in texts) or str(faults)


def _one_line(text: str) -> str:
    """Return a text on one line of at most `MAX_MESSAGE` characters, without lone surrogates."""
    line = " ".join(text[: 10 * MAX_MESSAGE].split())[:MAX_MESSAGE].rstrip()
    return line.encode("utf-8", "replace").decode()


def error_for_status(
    status: int, detail: ErrorDetail, address: str, retry_after: str | None = None, prompt: str = ""
) -> MesaLLMError:
    """Return the error to raise for an HTTP status.

    Args:
        status: HTTP status; one of success means that the response holds no reply.
        detail: The error that the endpoint reports.
        address: Name of the endpoint, for the error's text.
        retry_after: Its `Retry-After` header, which goes before what the body says.
        prompt: What was sent, whose words in a message are not taken for the endpoint's.

    Returns:
        `Loading` where the model is still being loaded, `AccessRefused` where a person must act (key, balance, quota of
        a day, model's name, address), `RateLimited` (429, and 503 that says how long to wait), `Filtered` where a
        content filter rejects the prompt, `ServerError` (5xx, 408, 409, 425), `BadReply` (2xx), else `Refused`.
    """
    message = f"{address} answered {status}: {detail.text or '(nothing)'}"
    header_s = seconds_in(retry_after)
    asked_s = detail.wait_s if header_s is None else header_s
    wait_s = None if asked_s is None else min(asked_s, MAX_RETRY_AFTER_S)
    if detail.is_about_loading and status not in (401, 402, 403):
        return Loading(message, wait_s)
    if (lack := _lack(status, detail, asked_s, prompt)) is not None:
        return AccessRefused(f"{message}; {lack_text(lack, host_of(address), asked_s)}", is_out_of_money=True)
    if is_filtered(status, detail, prompt):
        return Filtered(f"{message}; a content filter of the provider rejects this prompt")
    if status == 429 or (status == 503 and wait_s) or (status == 502 and _RATE.search(f"{detail.about} {detail.text}")):
        return RateLimited(message, wait_s)
    if status >= 500 or status in (408, 409, 425):
        return ServerError(message)
    if status in _FOR_A_PERSON:
        return AccessRefused(f"{message}; {_FOR_A_PERSON[status]}")
    if status < 300:
        return BadReply(message)
    if status < 400:
        return AccessRefused(f"{message}; the endpoint has moved, {_FOR_A_PERSON[405]}")
    return Refused(message)


_RATE = re.compile(r"rate.?limit|too many requests|qps|throttl|slow down", re.IGNORECASE)
"""Words of a limit of the moment, in an error within a response with a status of success."""


def _lack(status: int, detail: ErrorDetail, wait_s: float | None, prompt: str) -> Lack | None:
    return lack_of(status, f"{detail.about} {detail.text}", detail.codes, wait_s, prompt)


def is_final(status: int, detail: ErrorDetail, prompt: str) -> bool:
    """Check whether an error is about money, a quota or what a prompt says, so that no other form of it can help.

    Args:
        status: HTTP status.
        detail: The error that the endpoint reports.
        prompt: As for `error_for_status`.
    """
    return _lack(status, detail, detail.wait_s, prompt) is not None or is_filtered(status, detail, prompt)


def host_of(address: str) -> str:
    """Return the host of an address; a name that is none unchanged."""
    return urlsplit(address).hostname or address


_FILTER_CODES = re.compile(
    r"content.?(?:filter|polic|moderat|sensitive|safety|block|risk|violation)|responsible.?ai|data.?inspection|moderation|"
    r"sensitive|guardrail|prompt.?block|flagged|invalid_prompt|safety",
    re.IGNORECASE,
)
"""Codes of errors by a content filter."""

_FILTER_NUMBERS = frozenset({"1301", "1026", "1027"})
"""Numbers of such errors: Zhipu, MiniMax."""

_FILTER_WORDS = re.compile(
    r"content (?:management|filter|polic|moderation)|content-filter|\bflagged\b|\bmoderation\b|prohibited content|"
    r"(?:safety|responsible AI) (?:system|filter|polic|check|reason|setting)|content exists risk|considered high risk|"
    r"usage (?:polic|guideline)|(?:inappropriate|sensitive|harmful|unsafe) (?:content|information|words|material)|"
    r"violat\w+ .{0,40}(?:polic|guideline|terms)|\u654f\u611f|\u8fdd\u89c4|\u4e0d\u5b89\u5168|\u4e0d\u5f53",
    re.IGNORECASE,
)
"""An error by a content filter, in words."""


def is_filtered(status: int, detail: ErrorDetail, prompt: str = "") -> bool:
    """Check whether an error says that a content filter rejects what a prompt says.

    Args:
        status: HTTP status.
        detail: The error that the endpoint reports.
        prompt: As for `error_for_status`.
    """
    if status not in (400, 403, 406, 422, 451, 502):
        return False
    codes = (detail.about, *detail.codes)
    if any(_FILTER_CODES.search(code) for code in codes) or not _FILTER_NUMBERS.isdisjoint(codes):
        return True
    return says(_FILTER_WORDS, detail.text, prompt)


# -- how long to wait

MAX_WAIT_S = 366 * 86_400.0
"""Maximum wait that is read, in seconds."""

_UNIT = r"(?:milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)"
_AMOUNT = r"\d{1,9}(?:\.\d{1,9})?"
_DURATION = re.compile(rf"({_AMOUNT})\s*({_UNIT})(?![a-z])", re.IGNORECASE)
_WAIT = re.compile(
    r"\b(?:again|retry\w*|wait|resets?|ready|available|after)\b[^.\d;]{0,40}?"
    rf"((?:{_AMOUNT}\s*{_UNIT}(?:\s|,|and|(?=\d))*)+(?![a-z])|(?<=after ){_AMOUNT}\b)",
    re.IGNORECASE,
)
"""A delay in a message: "Please try again in 6m0s.", "Please retry after 30 seconds", "Retry after 7"."""

_WAIT_FIELD = re.compile(
    r"retry_?(delay|after|in)(_?(s|sec|seconds|ms))?|estimated_?time|wait_?(time|seconds)", re.IGNORECASE
)
"""Names of fields that hold a delay."""


def seconds_in(retry_after: str | None) -> float | None:
    """Read a `Retry-After` header: seconds, a duration with units (`6m0s`), or an HTTP date.

    Returns:
        Seconds to wait; None if it is missing, malformed or in the past.
    """
    if not retry_after:
        return None
    try:
        wait_s = float(retry_after)
    except ValueError:
        if (wait_s := _duration_s(retry_after)) is None:
            try:
                date = parsedate_to_datetime(retry_after)
                wait_s = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time()
            except (ValueError, OverflowError):
                return None
    return _bounded(wait_s)


def wait_in(text: str) -> float | None:
    """Read how long a message asks to wait, in seconds; None: it does not say."""
    found = _WAIT.search(text[: 10 * MAX_MESSAGE])
    return None if found is None else seconds_in(found[1].strip())


def wait_in_headers(headers: Mapping[str, str]) -> str | None:
    """Return how long the headers of an error ask to wait, as a value that `seconds_in` reads; None: they do not say.

    `retry-after-ms` goes before `Retry-After`, and that before the limits of `x-ratelimit-*`, of which those count that
    are used up.

    Args:
        headers: Headers, with names in lower case.
    """
    in_ms = headers.get("retry-after-ms", "")
    if (wait_s := _number(in_ms)) is not None:
        return str(wait_s / 1000)
    if (header := headers.get("retry-after")) and seconds_in(header) is not None:
        return header
    waits = [
        (_reset_s(value), _remaining(headers, name)) for name, value in headers.items() if "ratelimit-reset" in name
    ]
    known = [(wait_s, remaining) for wait_s, remaining in waits if wait_s is not None]
    spent = [wait_s for wait_s, remaining in known if not remaining]
    if spent:  # a limit that does not say what remains of it counts if no other one is spent
        return str(max([wait_s for wait_s, remaining in known if remaining == 0] or [min(spent)]))
    return str(min(min(wait_s for wait_s, _ in known), MAX_RETRY_AFTER_S)) if known else None


def _remaining(headers: Mapping[str, str], name: str) -> float | None:
    return _number(headers.get(name.replace("-reset", "-remaining"), ""))


def _reset_s(value: str) -> float | None:
    """Return the seconds until a limit is reset: a duration, a number of seconds, or a time since 1970 in s or ms."""
    number = _number(value)
    if number is None:
        return seconds_in(value)
    if number > 1e11:
        number /= 1000
    return _bounded(number - time.time() if number > 1e9 else number)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number >= 0 else None


def _duration_s(text: str) -> float | None:
    """Return the seconds of a duration with units, such as `7.0s`, `6m0s` or `1 minute 30 seconds`."""
    parts = _DURATION.findall(text)
    if not parts or re.sub(r"[\s,]|and", "", _DURATION.sub("", text)):
        return None
    return round(sum(float(amount) * _unit_s(unit.lower()) for amount, unit in parts), 6)


def _unit_s(unit: str) -> float:
    """Return the seconds of a unit of time."""
    if unit.startswith(("ms", "milli")):
        return 0.001
    return {"s": 1.0, "m": 60.0, "h": 3600.0}[unit[0]]


def _bounded(wait_s: float) -> float | None:
    return None if math.isnan(wait_s) or wait_s < 0 else min(wait_s, MAX_WAIT_S)


def _waits(value: Any, depth: int) -> Iterator[float]:
    """Find the delays in the fields of an error, whatever they are called."""
    if depth > 6 or not isinstance(value, dict | list):
        return
    if isinstance(value, list):
        for inner in cast("list[Any]", value)[:50]:
            yield from _waits(inner, depth + 1)
        return
    for name, inner in list(cast("dict[str, Any]", value).items())[:50]:
        if _WAIT_FIELD.fullmatch(name) and (wait_s := _field_s(inner, name)) is not None:
            yield wait_s
        else:
            yield from _waits(inner, depth + 1)


def _field_s(value: Any, name: str) -> float | None:
    """Return the seconds that a field holds: a number, a text with or without units, or seconds and nanoseconds."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return _field_s(fields.get("seconds"), name)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value)[:40]
    in_ms = _number(text) if name.endswith("ms") else None
    return seconds_in(text) if in_ms is None else _bounded(in_ms / 1000)
