"""What a run has paid for is in its log and its usage: also what failed, was sent again, or never answered."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import BudgetExceeded, RunLog
from mesa_llm.cli.inspect import tables
from mesa_llm.records import Usage
from tests.faulty_server import Fault, FaultyServer, refused
from tests.honest_reply import completion
from tests.pot import PotModel

UNREADABLE = {"answer": 42, "usage": {"prompt_tokens": 100, "completion_tokens": 20, "cost": 0.25}}
PAY = completion(None, [("pay", '{"coins": 1}')], prompt_tokens=100, completion_tokens=20, cost=0.25)
CACHED = completion(
    None, [("pay", '{"coins": 1}')], prompt_tokens=100, prompt_tokens_details={"cached_tokens": 64}, cost=0.25
)


def stepped(server: FaultyServer, log: Path, n_agents: int = 1, **options: Any) -> PotModel:
    """Make one step, whatever comes of it."""
    model = PotModel(n_agents, "m", rng=1, log=log, api_base=server.url, **options)
    with closing(model), suppress(BudgetExceeded):
        model.step()
    return model


def rows_in(log: Path) -> list[dict[str, Any]]:
    """Return the calls in a log, by column."""
    with closing(RunLog(log, "read")) as opened:
        return opened.calls().to_dict("records")


def usage_in(log: Path) -> dict[str, str]:
    """Return the only row of `mesa-llm inspect --usage --csv`, by column."""
    header, row = "\n".join(tables(log, ["usage"], None, csv=True)).splitlines()
    return dict(zip(header.split(","), row.split(","), strict=True))


@pytest.mark.parametrize("unreadable", [UNREADABLE, Fault(body=b"Sorry! " + json.dumps(UNREADABLE).encode())])
def test_a_reply_that_took_several_requests_costs_all_of_them(unreadable: Any, tmp_path: Path) -> None:
    with FaultyServer(lambda body, number: unreadable if number < 3 else PAY) as server:
        model = stepped(server, tmp_path / "run.sqlite")
    (row,) = rows_in(tmp_path / "run.sqlite")
    assert (row["prompt_tokens"], row["reply_tokens"], row["dollars"], row["attempts"]) == (300, 60, 0.75, 3)
    assert model.usage == Usage(1, 0, 300, 60, 0.75, 0, 3)
    assert usage_in(tmp_path / "run.sqlite")["requests"] == "3"


def test_what_failed_for_good_is_in_its_row(tmp_path: Path) -> None:
    with FaultyServer(lambda body, number: UNREADABLE) as server:
        model = stepped(server, tmp_path / "run.sqlite")
    (row,) = rows_in(tmp_path / "run.sqlite")
    assert row["error_kind"] == "BadReply"
    assert (row["prompt_tokens"], row["dollars"], row["attempts"]) == (300, 0.75, server.count)
    assert (model.usage.calls, model.usage.requests, model.usage.dollars) == (0, 3, 0.75)


@pytest.mark.parametrize("budget", [{"max_calls": 5}, {"max_tokens": 650}, {"max_dollars": 1.3}])
def test_budget_spent_within_a_reply_still_counts_all_requests(budget, tmp_path: Path) -> None:
    with FaultyServer(lambda body, number: UNREADABLE) as server:
        model = stepped(server, tmp_path / "run.sqlite", n_agents=4, **budget)
    shown = usage_in(tmp_path / "run.sqlite")
    assert server.count == 5
    assert (shown["requests"], shown["prompt_tokens"], shown["dollars"]) == ("5", "500", "1.25")
    assert (model.usage.requests, model.usage.tokens, model.usage.dollars) == (5, 600, 1.25)


def test_a_format_that_is_refused_counts_as_a_request(tmp_path: Path) -> None:
    with FaultyServer(lambda body, number: refused(400, "no seed here") if "seed" in body else PAY) as server:
        stepped(server, tmp_path / "run.sqlite", max_calls=2)
    shown = usage_in(tmp_path / "run.sqlite")
    assert (server.count, shown["requests"], shown["prompt_tokens"], shown["failed"]) == (2, "2", "100", "0")


def test_cached_tokens_show_in_the_usage(tmp_path: Path) -> None:
    with FaultyServer(lambda body, number: CACHED) as server:
        model = stepped(server, tmp_path / "run.sqlite", n_agents=2)
    assert usage_in(tmp_path / "run.sqlite")["cached_tokens"] == "128"
    assert model.usage.cached_tokens == 128


def test_a_damaged_note_of_what_was_never_answered_is_passed_over(tmp_path: Path) -> None:
    with closing(RunLog(tmp_path / "run.sqlite")) as log:
        log.begin({}, {})
        log.note("unanswered", {"m": {"requests": "many", "dollars": 1.5, "color": 3}, "n": 7})
        assert log.paid() == Usage(dollars=1.5)
