"""A provider of batches on this machine, in OpenAI's form and in Anthropic's, that misbehaves to order."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

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
    n_looks: int = 0
    """How often it was looked at."""

    results: list[Body] = field(default_factory=list)
    """Lines of its results, once it is over; in OpenAI's form with those of the errors."""

    is_over: bool = False
    n_fetched: int = 0
    """How often its results were fetched."""


Behaviour = Callable[[Batch, int], Mapping[str, Any]]
"""Takes a batch and its number from 1; gives its fate, of which each part may be left out:

`looks` (at which it is over, 1 by default; None: never), `lost` and `refused` (indices of requests), `failure` (error
of the whole batch), `reply` (function of a request's body), `words` of refusals, `cut` (True: the connection is cut in
place of the answer that it was created).
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
    """

    def __init__(self, behave: Behaviour = be_honest) -> None:
        """Set how it behaves."""
        self.behave = behave
        self.batches: list[Batch] = []
        self.heard: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.trouble: list[int] = []
        self._files: dict[str, bytes] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
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

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Answer a request."""
        if self.trouble:
            return self.trouble.pop(0), b'{"error": {"message": "not now"}}'
        match method, path.partition("?")[0].removeprefix("/v1").strip("/").split("/"):
            case "POST", ["files"]:
                name = f"file-{len(self._files)}"
                self._files[name] = body.split(b"application/jsonl\r\n\r\n")[1].rpartition(b"\r\n--")[0]
                return 200, _json({"id": name, "object": "file"})
            case "POST", ["batches"]:
                batch_fields = json.loads(body)
                lines = map(json.loads, self._files[batch_fields["input_file_id"]].splitlines())
                created = [(line["custom_id"], line["body"]) for line in lines]
                return self._created("batch", created, batch_fields.get("metadata"))
            case "POST", ["messages", "batches"]:
                return self._created("msgbatch", [(r["custom_id"], r["params"]) for r in json.loads(body)["requests"]])
            case "GET", ["batches"]:
                return 200, _json({"data": [self._openai(batch) for batch in self.batches]})
            case "GET", ["messages", "batches"]:
                return 200, _json({"data": list(map(_anthropic, self.batches))})
            case "GET", ["batches", name]:
                return 200, _json(self._openai(self._look(name)))
            case "GET", ["messages", "batches", name]:
                return 200, _json(_anthropic(self._look(name)))
            case "GET", ["files", name, "content"]:
                return 200, self._files[name]
            case "GET", ["messages", "batches", name, "results"]:
                return 200, _lines(self._fetched(name).results)
            case _:
                return 404, b'{"error": {"message": "no such path"}}'

    def _created(self, kind: str, lines: list[tuple[str, Body]], mark: Any = None) -> tuple[int, bytes]:
        batch = Batch(f"{kind}_{len(self.batches) + 1}", lines, mark)
        self.batches.append(batch)
        status = CUT if self._fate(batch).get("cut") else 200
        return status, _json(self._openai(batch) if kind == "batch" else _anthropic(batch))

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
        status = "completed" if not fate.get("lost") else "expired"
        document: Body = {"id": batch.id, "object": "batch", "status": status if batch.is_over else "in_progress"}
        document["metadata"] = batch.mark
        if "failure" in fate:
            return document | {"status": "failed", "errors": {"object": "list", "data": [fate["failure"]]}}
        n_done = len(batch.lines) if batch.is_over else 0
        document["request_counts"] = {"total": len(batch.lines), "completed": n_done, "failed": 0}
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
