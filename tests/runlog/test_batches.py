"""Batches in a run log: what is open, and what may be asked for again."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from mesa_llm import ConfigError, RunLog
from mesa_llm.records import Reply, Usage
from mesa_llm.runlog.batches import OpenBatches, batches_in, keys_in_batches
from tests.llm.human.questions import ask

BASE = "http://here/v1"
REQUESTS = [ask(agent=agent) for agent in (1, 2, 3)]
KEYS = [request.key for request in REQUESTS]


def expected(keys: list[str]) -> dict[str, tuple[str, Usage]]:
    """Say what each request is taken to cost."""
    return {key: ("m", Usage(prompt_tokens=10, dollars=0.5, requests=1)) for key in keys}


def created(batches: OpenBatches, batch_id: str, keys: list[str]) -> None:
    """Write down a batch."""
    batches.begin(f"mark of {batch_id}", BASE, expected(keys))
    batches.add(f"mark of {batch_id}", batch_id)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a log with a batch of three requests, of which one is answered."""
    with closing(RunLog(tmp_path / "run.sqlite")) as log:
        created(OpenBatches(log), "batch_1", KEYS)
        log.keep(REQUESTS[0], Reply("hm"), 1.0)
    return tmp_path / "run.sqlite"


def test_requests_are_found_until_their_replies_are_recorded(path: Path) -> None:
    with closing(RunLog(path)) as log:
        batches = OpenBatches(log)
        assert [batches.batch_of(key, BASE) for key in KEYS] == [None, "batch_1", "batch_1"]
        assert batches.batch_of(KEYS[1], "http://elsewhere/v1") is None
        assert keys_in_batches(log) == set(KEYS[1:])


def test_what_one_batch_lost_is_in_the_next(path: Path) -> None:
    with closing(RunLog(path)) as log:
        created(OpenBatches(log), "batch_2", KEYS[2:])
        assert [OpenBatches(log).batch_of(key, BASE) for key in KEYS[1:]] == ["batch_1", "batch_2"]


def test_a_collected_batch_is_listed_without_its_requests(path: Path) -> None:
    with closing(RunLog(path)) as log:
        OpenBatches(log).collect(["batch_1"])
        assert batches_in(log.manifest) == [{"at": BASE, "id": "batch_1", "requests": 3}]
        assert keys_in_batches(log) == set()


def test_an_earlier_batch_has_to_be_used_before_another_is_paid_for(path: Path) -> None:
    with closing(RunLog(path)) as log:
        batches = OpenBatches(log)
        with pytest.raises(ConfigError, match="batch_1 with 3 requests"):
            batches.require_claimed()
        batches.batch_of(KEYS[1], BASE)
        batches.require_claimed()
    with closing(RunLog(path, ask_again=True)) as log:
        OpenBatches(log).require_claimed()
        assert keys_in_batches(log) == set()


@pytest.mark.parametrize(
    "damaged",
    [
        3,
        [3, {"id": 1}],
        [{"id": "b", "keys": 3, "at": BASE, "requests": 1}],
        [{"mark": "m", "at": BASE, "requests": 1}],
    ],
)
def test_a_damaged_list_holds_no_batch(damaged: object, tmp_path: Path) -> None:
    with closing(RunLog(tmp_path / "run.sqlite")) as log:
        log.note("batches", damaged)
        assert keys_in_batches(log) == set()
        OpenBatches(log).require_claimed()


def test_a_batch_that_may_have_been_created_is_looked_for(path: Path) -> None:
    with closing(RunLog(path)) as log:
        OpenBatches(log).begin("mark", BASE, expected(KEYS[2:]))
        batches = OpenBatches(log)
        intent = batches.intent_of(KEYS[2], BASE)
        assert intent is not None
        assert intent[:2] == ("mark", 1)
        assert (intent.known, intent.keys) == ({"batch_1"}, {KEYS[2]})
        assert batches.intent_of(KEYS[1], BASE) is None
        batches.add("mark", "batch_2")
        assert (batches.batch_of(KEYS[2], BASE), batches.intent_of(KEYS[2], BASE)) == ("batch_2", None)
        batches.begin("another", BASE, expected(KEYS[1:2]))
        batches.add("another", None)
        assert [batch["id"] for batch in batches_in(log.manifest)] == ["batch_1", "batch_2"]


def test_what_a_batch_holds_counts_as_paid_until_its_replies_are_there(path: Path) -> None:
    with closing(RunLog(path)) as log:
        paid = log.paid()
        assert (paid.requests, paid.prompt_tokens, paid.dollars) == (3, 20, 1.0)
        assert sum(log.usage()["requests"]) == 3
        log.keep(REQUESTS[1], Reply("hm", prompt_tokens=7, dollars=0.1), 1.0)
        log.keep(REQUESTS[2], Reply("hm", prompt_tokens=7, dollars=0.1), 1.0)
        assert (log.paid().requests, log.paid().dollars) == (3, pytest.approx(0.2))


def test_an_intent_is_on_the_disk_before_the_batch_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (synced.append(os.fstat(number).st_ino), fsync(number)))
    with closing(RunLog(tmp_path / "run.sqlite")) as log:
        OpenBatches(log).begin("mark", BASE, expected(KEYS))
        assert (tmp_path / "run.sqlite-wal").stat().st_ino in synced
        assert b'"mark"' in (tmp_path / "run.sqlite-wal").read_bytes()
