"""How providers take batches: OpenAI's form, which others speak too, and Anthropic's."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote, urlsplit
from uuid import uuid4

from mesa_llm.canonical import compact_json
from mesa_llm.errors import AccessRefused, BadReply, ConfigError, MesaLLMError, RateLimited, Refused
from mesa_llm.llm.batches.http import BatchHTTP
from mesa_llm.llm.batches.protocol import BatchGone, BatchState, lost
from mesa_llm.llm.batches.results import BatchLines, response_of
from mesa_llm.llm.openai.connection import Response
from mesa_llm.llm.openai.errors import detail_of
from mesa_llm.llm.tokens import count_of
from mesa_llm.llm.waiting import patiently
from mesa_llm.records import BatchIntent, Usage

logger = logging.getLogger(__name__)

MARK = "mesa_llm"
"""Name under which OpenAI keeps the mark of a batch."""

CLOCKS_DIFFER_S = 300.0
"""Seconds by which the clocks of this machine and a provider may differ."""

WINDOW = "24h"
"""Time within which OpenAI answers a batch, or gives it up."""

PAGE, MAX_PAGES = 100, 1000
"""Number of batches on a page of a provider's list, and maximum number of pages that are read."""


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
    _foreign: set[str] = field(default_factory=set[str])
    """Ids of batches without a mark that have other requests."""

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
        file_id = _id_in(await self.http.upload("/files", body, content_type))
        batch: dict[str, Any] = {"input_file_id": file_id, "endpoint": f"/v1{self.path}"}
        batch |= {"completion_window": WINDOW, "metadata": {MARK: mark}}
        return _id_in(await self.http.create("/batches", compact_json(batch), file_id), "status")

    async def find(self, intent: BatchIntent) -> str | None:
        """Look for a batch by its mark or, where the endpoint keeps none, its requests; see `BatchForm`."""
        async for batch in _listed(self.http, "after", intent.since_s):
            marks = _mapping(batch.get("metadata"))
            if marks.get(MARK) == intent.mark:
                return str(batch.get("id"))
            batch_id, file_id = str(batch.get("id")), batch.get("input_file_id")
            is_foreign = marks or batch_id in intent.known | self._foreign or not _may_be(batch, intent)
            if is_foreign or not isinstance(file_id, str):
                continue
            if intent.keys & await self._keys_in(file_id):
                return batch_id
            self._foreign.add(batch_id)
        return None

    async def _keys_in(self, file_id: str) -> frozenset[str]:
        """Return the ids of the requests in a file; none if this account may not read it."""
        requests = BatchLines()
        with suppress(ConfigError, Refused):
            content = await self.http.file(f"/files/{quote(file_id)}/content")
            requests.read(content or b"", lambda line: Response(200, None, b""))
        return frozenset(requests.of)

    async def look(self, batch_id: str) -> BatchState:
        """Return the state of a batch; see `BatchForm`."""
        batch = _object(await self.http.get(f"/batches/{batch_id}"))
        counts = _mapping(batch.get("request_counts"))
        n_done = count_of(counts.get("completed")) + count_of(counts.get("failed"))
        total, status = count_of(counts.get("total")), batch.get("status")
        is_over = status in ("completed", "failed", "expired", "cancelled", "canceled")
        n_lines = n_done if total else None if status == "completed" else 0
        return BatchState(n_done, total, is_over, batch, n_lines)

    async def results(self, batch_id: str, state: BatchState) -> BatchLines | MesaLLMError:
        """Fetch the files of responses and of errors, as far as they are there; see `BatchForm`."""
        batch = state.document
        if batch.get("status") == "failed":
            return self._failure(batch_id, batch)
        results = BatchLines()
        for name in ("output_file_id", "error_file_id"):
            if isinstance(file_id := batch.get(name), str) and file_id:
                results.read(await self.http.file(f"/files/{quote(file_id)}/content") or b"", self._response)
        return results

    def _response(self, line: Mapping[str, Any]) -> Response | MesaLLMError:
        """Return the response in a line, or the error in its place."""
        response = _mapping(line.get("response"))
        if response:
            status = str(response.get("status_code"))
            return response_of(int(status) if status.isdecimal() else 200, response.get("body"))
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
        return _id_in(await self.http.create("/batches", body), "processing_status")

    async def find(self, intent: BatchIntent) -> str | None:
        """Look for a batch by its requests among those of its size and time; see `BatchForm`.

        Which requests a batch has is known once it has ended.
        """
        listed = _listed(self.http, "after_id", intent.since_s)
        candidates = [str(batch.get("id")) async for batch in listed if _may_be(batch, intent)]
        candidates = [batch_id for batch_id in candidates if batch_id not in intent.known]
        if candidates:
            logger.warning(
                "the run was cut off while it created a batch of %d requests at %s: waiting until it shows whether it "
                "is one of %s",
                intent.n_requests,
                self.base,
                ", ".join(candidates),
            )
        async for _ in patiently(math.inf):
            for batch_id in list(candidates):
                if (state := await self.look(batch_id)).is_over:
                    candidates.remove(batch_id)
                    if await self._is_of(batch_id, state, intent):
                        return batch_id
            if not candidates:
                return None
        raise AssertionError

    async def _is_of(self, batch_id: str, state: BatchState, intent: BatchIntent) -> bool:
        """Check whether a batch that has ended has the requests of one that was to be created."""
        async for is_last in patiently():
            try:
                results = await self.results(batch_id, state)
            except BatchGone:
                return False
            if results.of or is_last:
                return not intent.keys.isdisjoint(results.of)
        raise AssertionError

    async def look(self, batch_id: str) -> BatchState:
        """Return the state of a batch; see `BatchForm`."""
        batch = _object(await self.http.get(f"/batches/{batch_id}"))
        counts = {name: count_of(n) for name, n in _mapping(batch.get("request_counts")).items()}
        total = sum(counts.values())
        is_over = batch.get("processing_status") == "ended"
        n_done = total - counts.get("processing", 0)
        return BatchState(n_done, total, is_over, batch, n_done if total else None)

    async def results(self, batch_id: str, state: BatchState) -> BatchLines:
        """Fetch the results, from the address of the batch, whatever address it names; see `BatchForm`."""
        results = BatchLines()
        results.read(await self.http.file(f"/batches/{batch_id}/results") or b"", self._response)
        return results

    def _response(self, line: Mapping[str, Any]) -> Response | MesaLLMError:
        """Return the response in a line, or the error in its place."""
        result = _mapping(line.get("result"))
        match result.get("type"):
            case "succeeded":
                return response_of(200, result.get("message"))
            case "errored":
                error = _mapping(result.get("error"))
                kind = _mapping(error.get("error")).get("type")
                return response_of(_STATUSES.get(str(kind), 500), error)
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


async def _listed(http: BatchHTTP, after: str, since_s: float) -> AsyncGenerator[Mapping[str, Any]]:
    """Yield the batches of an account, the latest first, until they are older than a time.

    Args:
        http: Way to the endpoint.
        after: Parameter of a page that names the last batch of the page before.
        since_s: The time, in seconds since 1970.
    """
    query = f"limit={PAGE}"
    for _ in range(MAX_PAGES):
        page = await http.page("/batches", query)
        document = _object(page) if page is not None else {}
        listed = document.get("data")
        batches = list(map(_mapping, cast("list[Any]", listed))) if isinstance(listed, list) else []
        for batch in batches:
            yield batch
        if not batches or all(_time_s(batch.get("created_at")) < since_s - CLOCKS_DIFFER_S for batch in batches):
            return
        further = document.get("next")
        if document.get("has_more") is True:
            last = document.get("last_id") or batches[-1].get("id")
            query = f"limit={PAGE}&{after}={quote(str(last), safe='')}"
        elif isinstance(further, str) and further:
            query = urlsplit(further).query or f"limit={PAGE}&{after}={quote(further, safe='')}"
        else:
            return


def _may_be(batch: Mapping[str, Any], intent: BatchIntent) -> bool:
    """Check whether a listed batch has the size and the time of one that was to be created."""
    counts = {name: count_of(n) for name, n in _mapping(batch.get("request_counts")).items()}
    total = counts.get("total") or sum(counts.values())
    is_recent = _time_s(batch.get("created_at")) >= intent.since_s - CLOCKS_DIFFER_S
    return total in (0, intent.n_requests) and is_recent


def _time_s(value: object) -> float:
    """Return a time, in seconds or in ISO 8601, as seconds since 1970; infinite if it is none."""
    if isinstance(value, int | float):
        return float(value)
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return math.inf


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


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
