"""A provider of batches on this machine, in OpenAI's form and in Anthropic's, that misbehaves to order."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl

from tests.honest_reply import honest

Body = dict[str, Any]

CUT = 0
"""Stands for the status of a connection that is cut."""


@dataclass
class Batch:
    """A batch that was created."""

    id: str
    lines: list[tuple[str, Body]]
    """Id and body of each request."""

    mark: Any = None
    """Its metadata, in OpenAI's form."""

    created_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    file_id: str = ""
    """File of its requests, in OpenAI's form."""

    n_looks: int = 0
    """How often it was looked at."""

    results: list[Body] = field(default_factory=list)
    """Lines of its results, once it is over; in OpenAI's form with those of the errors."""

    is_over: bool = False
    n_fetched: int = 0
    """How often its results were fetched."""


ELSEWHERE = "/elsewhere"
"""Start of the paths of files to which a request was redirected."""

Behaviour = Callable[[Batch, int], Mapping[str, Any]]
"""Takes a batch and its number from 1; gives its fate, of which each part may be left out:

`looks` (at which it is over, 1 by default; None: never), `lost` and `refused` (indices of requests), `failure` (error
of the whole batch), `reply` (function of a request's body), `words` of refusals, `created` (status that is answered in
place of the batch that was created; CUT: the connection is cut), `status` (of a batch that is over), `missing` (path's
first word, `batches`, `output` or `error` → number of looks that are answered 404), `file` (function of the bytes of a
file of results and the number of the fetch, from 1), `counts` (function of its counts).
"""


def be_honest(batch: Batch, number: int) -> Mapping[str, Any]:
    """Complete every batch at the first look."""
    return {}


class BatchServer:
    """Such a provider on a free port, up while it is entered.

    Attributes:
        batches: The batches, in order.
        heard: Method and path of every request.
        headers: Headers of every request, names in lower case.
        trouble: Statuses with which the next requests are answered.
        creations: Statuses with which the next creations of batches are answered, which create none; None: as usual.
        others: Batches of others that are listed before the last one that was created.
        watch: Called with method and path of each request before it is answered; returns a status, or None.
        elsewhere: Origin to which requests for files of results are redirected; None: they are answered.
    """

    def __init__(self, behave: Behaviour = be_honest) -> None:
        """Set how it behaves."""
        self.behave = behave
        self.batches: list[Batch] = []
        self.heard: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.trouble: list[int] = []
        self.creations: list[int | None] = []
        self.others: list[Body] = []
        self.watch: Callable[[str], int | None] = lambda heard: None
        self.elsewhere: str | None = None
        self._asked: Counter[tuple[str, str]] = Counter()
        self._files: dict[str, bytes] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self.other_origin = self.origin.replace("127.0.0.1", "localhost")
        self.url = f"{self.origin}/v1"

    def __enter__(self) -> Self:
        """Start listening."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def sizes(self) -> list[int]:
        """Number of requests of each batch."""
        return [len(batch.lines) for batch in self.batches]

    @property
    def billed(self) -> int:
        """Number of requests that were carried out."""
        return len(self._carried_out)

    @property
    def n_billed_twice(self) -> int:
        """Number of requests that were carried out, and were so before."""
        return len(self._carried_out) - len(set(self._carried_out))

    @property
    def _carried_out(self) -> list[str]:
        """Ids of the requests that were carried out."""
        results = [result for batch in self.batches for result in batch.results]
        return [
            result["custom_id"]
            for result in results
            if (result.get("response") or {}).get("status_code") == 200
            or (result.get("result") or {}).get("type") == "succeeded"
        ]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Answer a request."""
        if self.trouble:
            return self.trouble.pop(0), b'{"error": {"message": "not now"}}'
        if (status := self.watch(f"{method} {path}")) is not None:
            return status, b'{"error": {"message": "not now"}}'
        is_redirected = self.elsewhere is not None and not path.startswith(ELSEWHERE)
        path = path.removeprefix(ELSEWHERE)
        is_creation = method == "POST" and path.endswith("/batches")
        if is_creation and self.creations and (status := self.creations.pop(0)) is not None:
            return status, b'{"error": {"message": "No such File object"}}'
        match method, path.partition("?")[0].removeprefix("/v1").strip("/").split("/"):
            case "POST", ["files"]:
                name = f"file-{len(self._files)}"
                self._files[name] = body.split(b"application/jsonl\r\n\r\n")[1].rpartition(b"\r\n--")[0]
                return 200, _json({"id": name, "object": "file"})
            case "POST", ["batches"]:
                batch_fields = json.loads(body)
                lines = map(json.loads, self._files[batch_fields["input_file_id"]].splitlines())
                created = [(line["custom_id"], line["body"]) for line in lines]
                status, document = self._created("batch", created, batch_fields.get("metadata"))
                self.batches[-1].file_id = batch_fields["input_file_id"]
                return status, document
            case "POST", ["messages", "batches"]:
                return self._created("msgbatch", [(r["custom_id"], r["params"]) for r in json.loads(body)["requests"]])
            case "GET", ["batches"]:
                return 200, self._page([self._openai(batch) for batch in self.batches], path, "after")
            case "GET", ["messages", "batches"]:
                return 200, self._page(list(map(_anthropic, self.batches)), path, "after_id")
            case "GET", ["batches", name]:
                return self._shown(name, "batches", lambda: _json(self._openai(self._look(name))))
            case "GET", ["messages", "batches", name]:
                return self._shown(name, "batches", lambda: _json(_anthropic(self._look(name))))
            case "GET", ["files", name, "content"] if name.startswith(("output", "error")):
                kind, _, batch_name = name.partition("-")
                return self._shown(batch_name, kind, lambda: self._files[name], is_redirected)
            case "GET", ["files", name, "content"]:
                return 200, self._files[name]
            case "GET", ["messages", "batches", name, "results"]:
                return self._shown(name, "output", lambda: _lines(self._fetched(name).results), is_redirected)
            case _:
                return 404, b'{"error": {"message": "no such path"}}'

    def _created(self, kind: str, lines: list[tuple[str, Body]], mark: Any = None) -> tuple[int, bytes]:
        batch = Batch(f"{kind}_{len(self.batches) + 1}", lines, mark)
        self.batches.append(batch)
        status = self._fate(batch).get("created", 200)
        return status, _json(self._openai(batch) if kind == "batch" else _anthropic(batch))

    def _page(self, batches: list[Body], path: str, after: str) -> bytes:
        """Return a page of the batches of the account, the latest first, as the query names it."""
        listed = [*self.others, *reversed(batches)]
        query = dict(parse_qsl(path.partition("?")[2]))
        last = query.get(after)
        start = 0 if last is None else 1 + [batch["id"] for batch in listed].index(last)
        page = listed[start : start + int(query["limit"])]
        return _json({"data": page, "has_more": start + len(page) < len(listed)})

    def _shown(
        self, name: str, kind: str, content: Callable[[], bytes], is_redirected: bool = False
    ) -> tuple[int, bytes]:
        """Return a batch or a file of its results, or the error in its place."""
        fate = self._fate(self._named(name))
        self._asked[name, kind] += 1
        n_asked = self._asked[name, kind] - fate.get("missing", {}).get(kind, 0)
        if n_asked <= 0:
            return 404, b'{"error": {"message": "not found"}}'
        if is_redirected:
            return 302, b""
        return 200, content() if kind == "batches" else fate.get("file", lambda file, n: file)(content(), n_asked)

    def _fate(self, batch: Batch) -> Mapping[str, Any]:
        return self.behave(batch, self.batches.index(batch) + 1)

    def _named(self, name: str) -> Batch:
        return next(batch for batch in self.batches if batch.id == name)

    def _fetched(self, name: str) -> Batch:
        batch = self._named(name)
        batch.n_fetched += 1
        return batch

    def _look(self, name: str) -> Batch:
        batch = self._named(name)
        batch.n_looks += 1
        looks = self._fate(batch).get("looks", 1)
        if looks is None or batch.n_looks < looks or batch.is_over:
            return batch
        batch.is_over = True
        fate, is_openai = self._fate(batch), not name.startswith("msg")
        for index, (key, body) in enumerate(batch.lines):
            write = _openai_result if is_openai else _anthropic_result
            batch.results.append({"custom_id": key} | write(body, index, fate))
        random.Random(1).shuffle(batch.results)
        if is_openai:
            is_error = [one["error"] is not None or one["response"]["status_code"] >= 400 for one in batch.results]
            for kind, wanted in (("output", False), ("error", True)):
                chosen = [one for one, error in zip(batch.results, is_error, strict=True) if error is wanted]
                self._files[f"{kind}-{name}"] = _lines(chosen)
        return batch

    def _openai(self, batch: Batch) -> Body:
        fate = self._fate(batch)
        status = fate.get("status", "expired" if fate.get("lost") else "completed")
        document: Body = {"id": batch.id, "object": "batch", "status": status if batch.is_over else "in_progress"}
        document["metadata"] = batch.mark
        if "failure" in fate:
            return document | {"status": "failed", "errors": {"object": "list", "data": [fate["failure"]]}}
        n_failed = sum(one["error"] is not None or one["response"]["status_code"] >= 400 for one in batch.results)
        n_done = len(batch.results) - n_failed
        counts = {"total": len(batch.lines), "completed": n_done, "failed": n_failed}
        document["request_counts"] = fate.get("counts", dict)(counts)
        document["created_at"] = int(datetime.fromisoformat(batch.created_at).timestamp())
        document["input_file_id"] = batch.file_id
        if batch.is_over:
            document |= {"output_file_id": f"output-{batch.id}", "error_file_id": f"error-{batch.id}"}
        return document

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.heard.append(f"{self.command} {self.path}")
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, content = server.answer(self.command, self.path, body)
                if status == CUT:
                    self.close_connection = True
                    return
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{server.elsewhere}{ELSEWHERE}{self.path}")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler


def _openai_result(body: Body, index: int, fate: Mapping[str, Any]) -> Body:
    if index in fate.get("lost", ()):
        return {"response": None, "error": {"code": "batch_expired", "message": "not executed in time"}}
    if index in fate.get("refused", ()):
        return {
            "response": {"status_code": 400, "body": {"error": {"message": fate.get("words", "refused")}}},
            "error": None,
        }
    return {"response": {"status_code": 200, "body": fate.get("reply", honest)(body)}, "error": None}


def _anthropic_result(body: Body, index: int, fate: Mapping[str, Any]) -> Body:
    if index in fate.get("lost", ()):
        return {"result": {"type": "expired"}}
    if index in fate.get("refused", ()):
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": "refused"}}
        return {"result": {"type": "errored", "error": error}}
    return {"result": {"type": "succeeded", "message": fate.get("reply", honest_message)(body)}}


def honest_message(body: Body) -> Body:
    """Answer a request in Anthropic's form: call its first tool with an honest answer's arguments, or write a text."""
    tools = [
        {"type": "function", "function": {"name": tool["name"], "parameters": tool["input_schema"]}}
        for tool in body.get("tools", ())
    ]
    chat = {"messages": [{"content": str(body["messages"])}], "tools": tools}
    message = honest(chat)["choices"][0]["message"]
    content: list[Body] = [{"type": "text", "text": message["content"] or ""}] if not tools else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        given = json.loads(function["arguments"])
        content.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": given})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if tools else "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }


def _anthropic(batch: Batch) -> Body:
    n_done = len(batch.lines) if batch.is_over else 0
    counts = {"processing": len(batch.lines) - n_done, "succeeded": n_done, "errored": 0, "canceled": 0, "expired": 0}
    status = "ended" if batch.is_over else "in_progress"
    document = {"id": batch.id, "type": "message_batch", "processing_status": status, "request_counts": counts}
    return document | {"created_at": batch.created_at}


def _lines(objects: list[Body]) -> bytes:
    return b"".join(_json(one) + b"\n" for one in objects)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
