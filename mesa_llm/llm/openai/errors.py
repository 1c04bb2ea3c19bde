"""Converts errors of OpenAI-compatible endpoints to ours, by who can do something about them."""

from __future__ import annotations

import json
import math
import re
import time
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, cast

from mesa_llm.errors import AccessRefused, BadReply, MesaLLMError, RateLimited, Refused, ServerTrouble

MAX_MESSAGE = 300
"""Maximum number of characters of an endpoint's message that an error quotes."""

MAX_RETRY_AFTER_S = 120.0
"""Maximum wait that an endpoint can ask for, in seconds."""

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


class ErrorDetail(NamedTuple):
    """The error that an endpoint reports."""

    text: str
    """Its message, at most `MAX_MESSAGE` characters on one line."""

    about: str
    """Name of the parameter it is about, or its error code; empty if it names none."""


def detail_in(body: bytes) -> ErrorDetail:
    """Read an endpoint's error from the body of a response, in OpenAI's form, FastAPI's, or plain text."""
    text = body[:20_000].decode("utf-8", "replace")
    try:
        return detail_of(json.loads(text))
    except (ValueError, RecursionError):
        return ErrorDetail(_one_line(text), "")


def detail_of(body: Any) -> ErrorDetail:
    """Read an endpoint's error from JSON values."""
    try:
        return _detail(body)
    except RecursionError:
        return ErrorDetail("(nested too deeply)", "")


def _detail(body: Any) -> ErrorDetail:
    if not isinstance(body, dict):
        return ErrorDetail(_one_line(str(body)), "")
    fields = cast("dict[str, Any]", body)
    for name in ("error", "detail", "message"):
        inner = fields.get(name)
        if inner and isinstance(inner, str):
            return ErrorDetail(_one_line(inner), str(fields.get("param") or fields.get("code") or "")[:100])
        if inner and isinstance(inner, dict):
            return _detail(inner)
        if inner and isinstance(inner, list):
            return ErrorDetail(_one_line(_detail_in(cast("list[Any]", inner))), "")
    return ErrorDetail(_one_line(str(fields)), "")


def _detail_in(faults: list[Any]) -> str:
    """Describe FastAPI's list of faults, without the input that it quotes."""
    entries = [cast("dict[str, Any]", fault) for fault in faults if isinstance(fault, dict)]
    return "; ".join(f"{fault.get('loc', '')}: {fault.get('msg', '')}" for fault in entries) or str(faults)


def _one_line(text: str) -> str:
    """Return a text on one line of at most `MAX_MESSAGE` characters, without lone surrogates."""
    line = " ".join(text[: 10 * MAX_MESSAGE].split())[:MAX_MESSAGE].rstrip()
    return line.encode("utf-8", "replace").decode()


def trouble(status: int, detail: ErrorDetail, address: str, retry_after: str | None = None) -> MesaLLMError:
    """Return the error to raise for an HTTP status.

    Args:
        status: HTTP status; one of success means that the response holds no reply.
        detail: The error that the endpoint reports.
        address: Name of the endpoint, for the error's text.
        retry_after: Its `Retry-After` header.

    Returns:
        `AccessRefused` where a person must act (key, balance, model's name, address), `RateLimited` (429,
        and 503 with a `Retry-After`), `ServerTrouble` (5xx, 408, 409, 425), `BadReply` (2xx), else `Refused`.
    """
    message = f"{address} answered {status}: {detail.text or '(nothing)'}"
    wait_s = seconds_in(retry_after)
    if (status == 429 and detail.about != "insufficient_quota") or (status == 503 and wait_s):
        return RateLimited(message, wait_s)
    if status >= 500 or status in (408, 409, 425):
        return ServerTrouble(message)
    if status == 403 and re.search(r"flagged|moderation|content polic", detail.text, re.IGNORECASE):
        return Refused(message)
    if status in (402, 429):
        return AccessRefused(f"{message}; {_FOR_A_PERSON[402]}", is_out_of_money=True)
    if status in _FOR_A_PERSON:
        return AccessRefused(f"{message}; {_FOR_A_PERSON[status]}")
    if status < 300:
        return BadReply(message)
    if status < 400:
        return AccessRefused(f"{message}; the endpoint has moved, {_FOR_A_PERSON[405]}")
    return Refused(message)


def seconds_in(retry_after: str | None) -> float | None:
    """Read a `Retry-After` header: seconds or an HTTP date.

    Returns:
        Seconds to wait, at most `MAX_RETRY_AFTER_S`; None if it is missing, malformed or in the past.
    """
    if not retry_after:
        return None
    try:
        wait_s = float(retry_after)
    except ValueError:
        try:
            date = parsedate_to_datetime(retry_after)
            wait_s = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    if math.isnan(wait_s) or wait_s < 0:
        return None
    return min(wait_s, MAX_RETRY_AFTER_S)
