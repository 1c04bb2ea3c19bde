"""What a provider of batches, its network or a kill can do: nothing is billed twice, or billed and thrown away."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError
from mesa_llm.llm.waiting import BatchClock
from tests.batch_server import CUT, ELSEWHERE, BatchServer
from tests.honest_reply import completion
from tests.pot import PotModel

N = 6
"""Number of requests of a run."""

PROVIDERS = ("openai", "anthropic")

Prepare = Callable[[BatchServer], None]


class FastClock(BatchClock):
    """A clock on which any wait is over at once."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FastClock:
    """Give batches a clock on which they wait for nothing."""
    fast = FastClock()
    monkeypatch.setattr(BatchClock, "of_batches", fast)
    return fast


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and what comes of it."""

    fates: tuple[Mapping[str, Any], ...] = ({},)
    """Fate of each batch; the last is that of all further ones."""

    prepare: Prepare = field(default=lambda server: None)
    """Called before the run."""

    billed: int = N
    """Number of requests that the provider carries out."""

    calls: int = N
    """Number of requests that the run log counts in the end."""

    failed: int = 0
    """Number of decisions that fail."""

    n_batches: int = 1
    """Number of batches that are created."""

    providers: tuple[str, ...] = PROVIDERS
    """Providers that can do this."""


def lines(change: Callable[[list[bytes]], list[bytes]], until: int = 99) -> dict[str, Any]:
    """Change the lines of a file of results, in the first fetches of it."""

    def changed(file: bytes, n_fetch: int) -> bytes:
        return file if n_fetch > until or not file else b"".join(line + b"\n" for line in change(file.splitlines()))

    return {"file": changed}


def bytes_of(change: Callable[[bytes], bytes], until: int = 99) -> dict[str, Any]:
    """Change a file of results, in the first fetches of it."""
    return {"file": lambda file, n_fetch: file if n_fetch > until else change(file)}


def as_error(line: bytes) -> bytes:
    """Return the line of a result as one of an error."""
    document = json.loads(line)
    if "result" in document:
        document["result"] = {"type": "expired"}
    else:
        document |= {"response": None, "error": {"code": "batch_expired", "message": "late"}}
    return json.dumps(document).encode()


def dearer(line: bytes) -> bytes:
    """Return the line of a result with another choice: three coins."""
    return line.replace(b'\\"coins\\": 1', b'\\"coins\\": 3').replace(b'"coins": 1', b'"coins": 3')


def elsewhere(line: bytes, key: Any) -> bytes:
    """Return the line of a result for another request."""
    return json.dumps(json.loads(line) | {"custom_id": key}).encode()


def crowd(n: int, ago_s: float = 0.0) -> Prepare:
    """Put batches of others before those of the run, created that long before it."""

    def prepare(server: BatchServer) -> None:
        at = datetime.now(UTC) - timedelta(seconds=ago_s)
        times = {"created_at": at.isoformat(), "request_counts": {"processing": 1, "total": 1}}
        server.others.extend({"id": f"other_{index}", **times} for index in range(n))

    return prepare


def first_creations(*statuses: int | None) -> Prepare:
    """Answer the first creations so, without creating anything."""
    return lambda server: server.creations.extend(statuses)


OPENAI, ANTHROPIC = ("openai",), ("anthropic",)
FAULTS = {
    "nothing": Fault(),
    "404 of the batch at first": Fault(({"missing": {"batches": 5}},)),
    "404 of the results at first": Fault(({"missing": {"output": 5}},)),
    "404 of the file of errors at first": Fault(
        ({"missing": {"error": 3}, "refused": [1]},), billed=N - 1, failed=1, providers=OPENAI
    ),
    "404 of the uploaded file at first": Fault(prepare=first_creations(404, 404, 404), providers=OPENAI),
    "the uploaded file is not ready": Fault(prepare=first_creations(404, None), providers=OPENAI),
    "half of the lines at first": Fault((lines(lambda all_: all_[: N // 2], until=4),)),
    "no line at first": Fault((lines(lambda all_: [], until=4),)),
    "a cut last line at first": Fault((bytes_of(lambda file: file[:-40], until=2),)),
    "no line break at the end": Fault((bytes_of(lambda file: file[:-1]),)),
    "CRLF, BOM and blank lines": Fault(
        (bytes_of(lambda file: b"\xef\xbb\xbf" + file.replace(b"\n", b"\r\n\r\n")),)
    ),
    "two lines for each request": Fault((lines(lambda all_: all_ * 2),)),
    "a second, other line": Fault((lines(lambda all_: [*all_, *map(dearer, all_)]),)),
    "an error after each good line": Fault((lines(lambda all_: [*all_, *map(as_error, all_)]),)),
    "an error before each good line": Fault((lines(lambda all_: [*map(as_error, all_), *all_]),)),
    "lines of others": Fault((lines(lambda all_: [*all_, elsewhere(all_[0], "x"), elsewhere(all_[0], 7)]),)),
    "lines of others in place of ours at first": Fault(
        (lines(lambda all_: [elsewhere(line, str(index)) for index, line in enumerate(all_)], until=2),)
    ),
    "lines that are none": Fault((lines(lambda all_: [b"[1]", b"{}", b"\xff\xfe", b"[" * 5000, *all_]),)),
    "an enormous line": Fault(
        (lines(lambda all_: [b'{"x": "%b", %b' % (b"y" * 5_000_000, all_[0][1:]), *all_[1:]]),),
        failed=1,
    ),
    "expired in part": Fault(({"lost": [0, 2]}, {}), n_batches=2, calls=N + 2),
    "cancelled in part": Fault(({"lost": [1], "status": "cancelled"}, {}), n_batches=2, calls=N + 1),
    "expired in part, without a file of errors": Fault(
        ({"lost": [0, 2], "missing": {"error": 99}, "counts": lambda counts: counts | {"failed": 0}}, {}),
        n_batches=2, calls=N + 2, providers=OPENAI,
    ),
    "refused in part": Fault(({"refused": [0, 1]},), billed=N - 2, failed=2),
    "counts of nothing": Fault(({"counts": lambda counts: {}},), providers=OPENAI),
    "counts of nothing, and half of the lines at first": Fault(
        ({"counts": lambda counts: {}, **lines(lambda all_: all_[:2], until=3)},), providers=OPENAI
    ),
    "creation answered 500, and created": Fault(({"created": 500},)),
    "creation answered 502, and not created": Fault(prepare=first_creations(502)),
    "creation cut off, and created": Fault(({"created": CUT},)),
    "creation cut off, and not created": Fault(prepare=first_creations(CUT)),
    "creation cut off among 250 batches of others": Fault(({"created": CUT},), prepare=crowd(250)),
    "creation cut off, not created, 250 old batches of others": Fault(prepare=lambda server: (
        crowd(250, 86_400)(server), first_creations(CUT)(server))[0]),
    "creation answered 429": Fault(prepare=first_creations(429, 429)),
    "polling answered 429 and 503": Fault(prepare=lambda server: setattr(server, "watch", sometimes(server, 429, 503))),
    "results are at another host": Fault(prepare=lambda server: setattr(server, "elsewhere", server.other_origin)),
}  # fmt: skip


def sometimes(server: BatchServer, *statuses: int) -> Callable[[str], int | None]:
    """Answer looks at a batch with these statuses, in turn, and the rest as usual."""
    left = list(statuses)
    return lambda heard: left.pop(0) if left and heard.startswith("GET") else None


def pay(body: Any) -> dict[str, Any]:
    """Pay one coin, in the form of the request."""
    if "max_completion_tokens" in body or body.get("model") == "m":
        return completion(None, [("pay", '{"coins": 1}')], body=body)
    content = [{"type": "tool_use", "id": "t", "name": "pay", "input": {"coins": 1}}]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content}
    return message | {"stop_reason": "tool_use", "usage": {"input_tokens": 9, "output_tokens": 3}}


@dataclass
class Account:
    """A provider, and models that ask it."""

    server: BatchServer
    provider: str
    log: Path

    def model(self, **options: Any) -> PotModel:
        """Make a model."""
        llm, base = ("m", self.server.url) if self.provider == "openai" else ("anthropic/claude-haiku-4-5", None)
        return PotModel(N, llm, rng=1, batch=True, api_base=base, **{"log": self.log, **options})


@pytest.fixture
def account(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """Give an account at a provider."""
    with BatchServer() as server:
        monkeypatch.setenv("ANTHROPIC_API_BASE", server.origin)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
        yield Account(server, request.param, tmp_path / "run.sqlite")


@pytest.mark.parametrize(
    ("name", "account"),
    [(name, provider) for name, fault in FAULTS.items() for provider in fault.providers],
    indirect=["account"],
)
def test_each_request_is_billed_once_and_counted_as_billed(name: str, account: Account) -> None:
    fault, server = FAULTS[name], account.server
    server.behave = lambda batch, number: {"reply": pay, **fault.fates[min(number, len(fault.fates)) - 1]}
    fault.prepare(server)
    with closing(account.model()) as model:
        model.step()
        paid = model.runlog.paid()
        assert (server.billed, server.n_billed_twice, len(server.batches)) == (fault.billed, 0, fault.n_batches)
        assert (paid.requests, model.usage.requests, model.usage.failures) == (fault.calls, fault.calls, fault.failed)
        assert model.coins == N - fault.failed


@pytest.mark.parametrize("account", PROVIDERS, indirect=True)
def test_a_host_that_results_are_redirected_to_is_sent_no_key(account: Account) -> None:
    server = account.server
    server.behave, server.elsewhere = (
        lambda batch, number: {"reply": pay},
        server.origin.replace("127.0.0.1", "localhost"),
    )
    with closing(account.model()) as model:
        model.step()
    sent = [headers for heard, headers in zip(server.heard, server.headers, strict=True) if ELSEWHERE in heard]
    assert sent
    assert not any({"authorization", "x-api-key"} & set(headers) for headers in sent)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda all_: all_ * 2, "6 more for requests that have one, of which the first good one counts"),
        (lambda all_: [*all_, elsewhere(all_[0], "x")], "1 for requests that are not in it, which are left out"),
    ],
)
@pytest.mark.parametrize("account", PROVIDERS, indirect=True)
def test_lines_too_many_are_counted_and_said_once(change: Any, text: str, account: Account, caplog: Any) -> None:
    account.server.behave = lambda batch, number: {"reply": pay, **lines(change)}
    with closing(account.model()) as model:
        model.step()
    said = [record.message for record in caplog.records if "lines too many" in record.message]
    assert said == [f"the results of batch {account.server.batches[0].id} have lines too many: {text}"]


@pytest.mark.parametrize(
    "fate", [{"missing": {"batches": 10**6}}, {"missing": {"output": 10**6}}, lines(lambda all_: all_[:2])]
)
@pytest.mark.parametrize("account", PROVIDERS, indirect=True)
def test_batch_not_listed_for_minutes_ends_the_run_and_is_found_on_resume(
    fate: Mapping[str, Any], account: Account, clock: FastClock
) -> None:
    server, fates = account.server, [fate]
    server.behave = lambda batch, number: {"reply": pay, **fates[0]}
    model = account.model()
    with closing(model), pytest.raises(ConfigError, match="--ask-again"):
        model.step()
    assert clock.seconds >= 120
    fates[0] = {}
    with closing(account.model()) as model:
        assert model.runlog.paid().requests == N
        model.step()
        assert (model.coins, server.billed, len(server.batches), model.runlog.paid().requests) == (N, N, 1, N)


@pytest.mark.parametrize("account", PROVIDERS, indirect=True)
def test_what_a_provider_has_lost_is_sent_again_on_demand_alone(account: Account) -> None:
    server, gone = account.server, {"missing": {"output": 10**6}}
    server.behave = lambda batch, number: {"reply": pay, **(gone if number == 1 else {})}
    model = account.model()
    with closing(model), pytest.raises(ConfigError, match="--ask-again"):
        model.step()
    with closing(account.model(ask_again=True)) as model:
        model.step()
        assert (model.coins, server.billed, len(server.batches)) == (N, 2 * N, 2)


# -- kills


def killed_at(account: Account, is_there: Callable[[str], bool], *, is_created: bool) -> Path:
    """Run until a request arrives; return a copy of the run log, as a kill at that moment would leave it.

    Args:
        account: The account.
        is_there: Takes method and path of a request.
        is_created: Whether the provider carries out the request, whose answer nobody hears.
    """
    server, copy = account.server, account.log.with_name("killed.sqlite")

    def watch(heard: str) -> int | None:
        if copy.exists() or not is_there(heard):
            return CUT if copy.exists() else None
        shutil.copy(account.log, copy)
        with suppress(FileNotFoundError):
            shutil.copy(f"{account.log}-wal", f"{copy}-wal")
        return None if is_created else CUT

    server.watch = watch
    model = account.model()
    with closing(model), suppress(ConfigError):
        model.step()
    server.watch = lambda heard: None
    assert copy.exists()
    return copy


KILLS = {
    "as the file is uploaded": (lambda heard: heard == "POST /v1/files", OPENAI),
    "as the batch is created": (lambda heard: heard.startswith("POST") and heard.endswith("/batches"), PROVIDERS),
    "as it is first looked at": (lambda heard: heard.startswith("GET") and "batch_1" in heard, PROVIDERS),
    "as its results are fetched": (lambda heard: heard.endswith(("/content", "/results")), PROVIDERS),
}


@pytest.mark.parametrize("is_created", [True, False])
@pytest.mark.parametrize(
    ("name", "account"), [(name, one) for name, (_, able) in KILLS.items() for one in able], indirect=["account"]
)
@pytest.mark.parametrize("n_others", [0, 250])
def test_a_run_that_is_killed_at_any_moment_goes_on_and_pays_once(
    name: str, is_created: bool, n_others: int, account: Account
) -> None:
    server = account.server
    server.behave = lambda batch, number: {"reply": pay}
    copy = killed_at(account, KILLS[name][0], is_created=is_created)
    crowd(n_others)(server)
    with closing(account.model(log=copy)) as model:
        assert model.runlog.paid().requests == N
        model.step()
        paid = model.runlog.paid()
        assert (model.coins, server.billed, server.n_billed_twice, paid.requests) == (N, N, 0, N)


@pytest.mark.parametrize("account", OPENAI, indirect=True)
def test_a_batch_is_found_by_its_requests_where_an_endpoint_keeps_no_mark(account: Account) -> None:
    server = account.server
    server.behave = lambda batch, number: setattr(batch, "mark", None) or {"reply": pay, "created": CUT}
    crowd(250)(server)
    with closing(account.model()) as model:
        model.step()
        assert (model.coins, server.billed, len(server.batches)) == (N, N, 1)


@pytest.mark.parametrize("account", ANTHROPIC, indirect=True)
def test_batch_with_the_same_requests_is_collected_among_equal_sizes(account: Account) -> None:
    server = account.server
    server.behave = lambda batch, number: {"reply": pay, "created": CUT if number == 3 else 200, "looks": number}
    for seed in (7, 8):
        with closing(PotModel(N, "anthropic/claude-haiku-4-5", rng=seed, batch=True)) as model:
            model.step()
    for batch in server.batches:
        batch.lines = [(f"other-{key}", body) for key, body in batch.lines]
        batch.results = [result | {"custom_id": f"other-{result['custom_id']}"} for result in batch.results]
    with closing(account.model()) as model:
        model.step()
        assert (model.coins, len(server.batches)) == (N, 3)
