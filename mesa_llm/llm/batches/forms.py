"""How providers take batches: OpenAI's form, which others speak too, and Anthropic's."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from uuid import uuid4

from mesa_llm.canonical import compact_json
from mesa_llm.errors import AccessRefused, BadReply, ConfigError, MesaLLMError, RateLimited
from mesa_llm.llm.batches.http import BatchHTTP
from mesa_llm.llm.batches.stage import BatchState, Responses, lost
from mesa_llm.llm.openai.connection import Response
from mesa_llm.llm.openai.errors import detail_of
from mesa_llm.llm.tokens import count_of
from mesa_llm.records import BatchIntent, Usage

MARK = "mesa_llm"
"""Name under which OpenAI keeps the mark of a batch."""

CLOCKS_DIFFER_S = 300.0
"""Seconds by which the clocks of this machine and a provider may differ."""

MAX_RESPONSE_BYTES = 2_000_000
"""Maximum size of the response to one request."""

WINDOW = "24h"
"""Time within which OpenAI answers a batch, or gives it up."""


GONE = BatchState(0, 0, True, {})
"""State of a batch that the provider no longer has."""


@dataclass(eq=False)
class OpenAIBatches:
    """Batches in OpenAI's form: a file of requests is uploaded, and files of responses and errors are fetched.

    Source:
        OpenAI, API reference, Batch and Files (2024): 50,000 requests and 200 MB a batch, completed within 24 hours.
    """

    http: BatchHTTP
    """Way to the endpoint."""

    path: str = "/chat/completions"
    """Path of single requests, below the base URL."""

    max_requests: int = 50_000
    max_bytes: int = 200_000_000
    in_progress: set[str] = field(default_factory=set[str])

    @property
    def base(self) -> str:
        """Base URL, without secrets."""
        return self.http.base

    def line(self, key: str, body: bytes) -> bytes:
        """Write a request as a line of the file."""
        return b'{"custom_id":"%b","method":"POST","url":"/v1%b","body":%b}' % (key.encode(), self.path.encode(), body)

    async def create(self, lines: Sequence[bytes], mark: str) -> str:
        """Upload a file of requests, and create a batch of it; see `BatchForm`."""
        body, content_type = _as_form({"purpose": "batch"}, b"\n".join(lines) + b"\n")
        uploaded = await self.http.post("/files", body, content_type, may_repeat=True)
        batch: dict[str, Any] = {"input_file_id": _id_in(uploaded), "endpoint": f"/v1{self.path}"}
        batch |= {"completion_window": WINDOW, "metadata": {MARK: mark}}
        return _id_in(await self.http.post("/batches", compact_json(batch)), "status")

    async def find(self, intent: BatchIntent) -> str | None:
        """Look for a batch by its mark among the latest; see `BatchForm`."""
        marks = {_mapping(batch.get("metadata")).get(MARK): batch for batch in await _latest(self.http)}
        batch = marks.get(intent.mark)
        return None if batch is None else str(batch.get("id"))

    async def look(self, batch_id: str) -> BatchState:
        """Return the state of a batch; see `BatchForm`."""
        if (document := await self.http.get(f"/batches/{batch_id}")) is None:
            return GONE
        batch = _object(document)
        counts = _mapping(batch.get("request_counts"))
        n_done = count_of(counts.get("completed")) + count_of(counts.get("failed"))
        is_over = batch.get("status") in ("completed", "failed", "expired", "cancelled")
        return BatchState(n_done, count_of(counts.get("total")), is_over, batch)

    async def responses(self, batch_id: str, state: BatchState) -> Responses:
        """Fetch the files of responses and of errors; see `BatchForm`."""
        batch = state.document
        if batch.get("status") == "failed":
            return self._failure(batch_id, batch)
        responses: dict[str, Response | MesaLLMError] = {}
        for name in ("error_file_id", "output_file_id"):
            if isinstance(file_id := batch.get(name), str):
                content = await self.http.get(f"/files/{file_id}/content", is_large=True)
                for line in _lines_in(content or b""):
                    responses[str(line.get("custom_id"))] = self._response(line)
        return responses

    def _response(self, line: Mapping[str, Any]) -> Response | MesaLLMError:
        """Return the response in a line, or the error in its place."""
        response = _mapping(line.get("response"))
        if response:
            status = response.get("status_code")
            return _response_of(status if isinstance(status, int) else 200, response.get("body"))
        detail = detail_of({"error": line.get("error") or "no reason is given"})
        return lost(f"{self.base}: a request of a batch was not carried out: {detail.text}")

    def _failure(self, batch_id: str, batch: Mapping[str, Any]) -> MesaLLMError:
        """Return the error of a batch that was refused as a whole, of which nothing was carried out."""
        errors = _mapping(batch.get("errors")).get("data")
        first = _mapping(cast("list[Any]", errors)[0]) if isinstance(errors, list) and errors else {}
        text = f"{self.base} refused batch {batch_id}: {detail_of({'error': first or 'no reason is given'}).text}"
        code = str(first.get("code"))
        error: MesaLLMError
        if code == "token_limit_exceeded":  # of the tokens in all batches that are in progress
            error = RateLimited(text)
        else:
            error = AccessRefused(text, is_out_of_money="billing" in code)
        error.usage = Usage(requests=1)
        return error


@dataclass(eq=False)
class AnthropicBatches:
    """Batches in Anthropic's form: one request holds all, and their results are streamed as lines.

    Source:
        Anthropic, API reference, Message Batches (2024): 100,000 requests and 256 MB a batch, ended within 24 hours.
    """

    http: BatchHTTP
    """Way to the endpoint; its base ends with `/messages`."""

    max_requests: int = 100_000
    max_bytes: int = 256_000_000
    in_progress: set[str] = field(default_factory=set[str])

    @property
    def base(self) -> str:
        """Base URL, without secrets."""
        return self.http.base

    def line(self, key: str, body: bytes) -> bytes:
        """Write a request as an element of the batch."""
        return b'{"custom_id":"%b","params":%b}' % (key.encode(), body)

    async def create(self, lines: Sequence[bytes], mark: str) -> str:
        """Create a batch, which cannot be marked; see `BatchForm`."""
        body = b'{"requests":[%b]}' % b",".join(lines)
        return _id_in(await self.http.post("/batches", body), "processing_status")

    async def find(self, intent: BatchIntent) -> str | None:
        """Look for a batch by its size and time among the latest; see `BatchForm`."""
        candidates = [
            str(batch.get("id"))
            for batch in await _latest(self.http)
            if sum(map(count_of, _mapping(batch.get("request_counts")).values())) == intent.n_requests
            and _time_s(batch.get("created_at")) >= intent.since_s - CLOCKS_DIFFER_S
            and batch.get("id") not in intent.known
        ]
        if len(candidates) > 1:
            raise ConfigError(
                f"the run was cut off while it created a batch of {intent.n_requests} requests at {self.base}, which "
                f"is one of {', '.join(candidates)}. To send its requests again, give --ask-again (in Python "
                "ask_again=True)"
            )
        return candidates[0] if candidates else None

    async def look(self, batch_id: str) -> BatchState:
        """Return the state of a batch; see `BatchForm`."""
        if (document := await self.http.get(f"/batches/{batch_id}")) is None:
            return GONE
        batch = _object(document)
        counts = {name: count_of(n) for name, n in _mapping(batch.get("request_counts")).items()}
        total = sum(counts.values())
        is_over = batch.get("processing_status") == "ended"
        return BatchState(total - counts.get("processing", 0), total, is_over, batch)

    async def responses(self, batch_id: str, state: BatchState) -> Responses:
        """Fetch the results, from the address of the batch, whatever address it names; see `BatchForm`."""
        content = await self.http.get(f"/batches/{batch_id}/results", is_large=True)
        return {str(line.get("custom_id")): self._response(line) for line in _lines_in(content or b"")}

    def _response(self, line: Mapping[str, Any]) -> Response | MesaLLMError:
        """Return the response in a line, or the error in its place."""
        result = _mapping(line.get("result"))
        match result.get("type"):
            case "succeeded":
                return _response_of(200, result.get("message"))
            case "errored":
                error = _mapping(result.get("error"))
                kind = _mapping(error.get("error")).get("type")
                return _response_of(_STATUSES.get(str(kind), 500), error)
            case other:
                return lost(f"{self.base}: a request of a batch was not carried out: {other}")


_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Anthropic's types of errors, with the HTTP statuses that they have for single requests."""


async def _latest(http: BatchHTTP) -> list[Mapping[str, Any]]:
    """Return the latest batches of an account; none where an endpoint lists none."""
    document = await http.get("/batches", limit=100)
    listed = _object(document).get("data") if document is not None else None
    return list(map(_mapping, cast("list[Any]", listed))) if isinstance(listed, list) else []


def _time_s(text: object) -> float:
    """Return a time in ISO 8601 as seconds since 1970; infinite if it is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return math.inf


def _response_of(status: int, document: object) -> Response | BadReply:
    """Return the response to a request as it would have come alone."""
    body = json.dumps(document).encode()
    if len(body) > MAX_RESPONSE_BYTES:
        return BadReply(f"the reply is longer than {MAX_RESPONSE_BYTES} bytes; lower max_tokens")
    return Response(status, None, body)


def _as_form(fields: Mapping[str, str], content: bytes) -> tuple[bytes, str]:
    """Write fields and a file as a multipart form; return its body and its content type."""
    boundary = uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    body = "".join([*parts, head]).encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"


def _object(content: bytes) -> Mapping[str, Any]:
    """Return the JSON object in a response.

    Raises:
        BadReply: If it is none.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadReply(f"what was said of a batch is no JSON object: it starts {content[:80]!r}")
    return cast("dict[str, Any]", found)


def _id_in(content: bytes, status: str | None = None) -> str:
    """Return the id of what was created.

    Args:
        content: What the endpoint says of it.
        status: Name of the field with its status, if it is a batch.

    Raises:
        ConfigError: If it is something else, as where an endpoint speaks another form.
    """
    document = _object(content)
    found = document.get("id")
    is_batch = status is None or isinstance(document.get(status), str)
    if not is_batch or not isinstance(found, str) or not found.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(
            f"the endpoint created something that is no batch: {content[:80]!r}; leave out batch (--batch)"
        )
    return found


def _lines_in(content: bytes) -> Iterator[Mapping[str, Any]]:
    """Read JSON objects, one a line; a line that is none is left out, and its request is lost."""
    for line in content.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield cast("dict[str, Any]", found)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
