"""Runs whose requests are sent in batches: one batch a round of a stage, collected exactly once whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import AgentDesign, BudgetExceeded, ConfigError, RunLog, ScriptedLLM
from mesa_llm.errors import Stopped
from mesa_llm.records import Reply, Request, ToolCall
from mesa_llm.runlog.queries import batches_in
from tests.batch_server import Batch, BatchServer
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion
from tests.pot import PotModel, QuizModel
from tests.processes import Python


def pay(body: Any) -> dict[str, Any]:
    """Answer at once: pay one coin."""
    return completion(None, [("pay", '{"coins": 1}')], body=body)


def payers(server: BatchServer, n_agents: int = 4, **options: Any) -> PotModel:
    """Make a model whose agents are asked in batches."""
    return PotModel(n_agents, "m", rng=1, batch=True, api_base=server.url, **options)


def stopped(model: PotModel) -> PotModel:
    """Stop a model at the first look at its batch."""
    model.engine.on_batch = lambda progress: model.engine.stop()
    with closing(model), pytest.raises(Stopped):
        model.step()
    return model


@pytest.fixture
def paying() -> Iterator[BatchServer]:
    """Give a server whose replies pay a coin."""
    with BatchServer(lambda batch, number: {"reply": pay}) as server:
        yield server


def test_a_stage_is_one_batch_and_shuffled_results_find_their_agents() -> None:
    def pay_own(body: Any) -> dict[str, Any]:
        return completion(None, [("pay", json.dumps({"coins": body["seed"] % 7}))], body=body)

    with BatchServer(lambda batch, number: {"reply": pay_own}) as server, closing(payers(server, 20)) as model:
        model.step()
        (batch,) = server.batches
        assert not any("stream" in body for _, body in batch.lines)
        assert [line["custom_id"] for line in batch.results] != [key for key, _ in batch.lines]
        assert model.coins == sum(body["seed"] % 7 for _, body in batch.lines)


def test_an_agent_that_uses_tools_or_is_repaired_is_in_the_next_batch() -> None:
    def reply(body: Any) -> dict[str, Any]:
        if len(body["messages"]) > 2:
            return pay(body)
        first = body["seed"] % 3
        return [pay(body), completion(None, [("count", "{}")], body=body), completion("hm", body=body)][first]

    with BatchServer(lambda batch, number: {"reply": reply}) as server, closing(payers(server, 12)) as model:
        model.step()
        n_again = sum(body["seed"] % 3 != 0 for _, body in server.batches[0].lines)
        assert server.sizes == [12, n_again]
        assert (model.coins, model.usage.failures) == (12, 0)


def test_several_questions_to_one_agent_are_one_batch() -> None:
    with BatchServer() as server, closing(QuizModel(3, "m", rng=1, batch=True, api_base=server.url)) as model:
        model.step()
        assert server.sizes == [15]


def test_a_vote_of_several_samples_is_one_batch(paying: BatchServer) -> None:
    with closing(payers(paying, 3, design=AgentDesign(decide="vote:5"))) as model:
        model.step()
    assert paying.sizes == [15]


def test_a_rule_beside_them_does_not_hold_up_a_batch(paying: BatchServer) -> None:
    with closing(PotModel(4, {1: "rule", "*": "m"}, rng=1, batch=True, api_base=paying.url)) as model:
        model.step()
    assert paying.sizes == [3]


def test_batches_and_live_requests_replay_each_other(tmp_path: Path, paying: BatchServer) -> None:
    with closing(payers(paying, log=tmp_path / "batch.sqlite")) as model:
        model.run_for(2)
        digest = model.runlog.digest
    with closing(PotModel(4, "m", rng=1, log=tmp_path / "batch.sqlite", api_base=paying.url)) as live:
        live.run_for(2)
        assert (live.runlog.digest, live.usage.requests) == (digest, 0)
    with FaultyServer(lambda body, number: pay(body)) as server:
        with closing(PotModel(4, "m", rng=1, log=tmp_path / "live.sqlite", api_base=server.url)) as live:
            live.run_for(2)
        with closing(PotModel(4, "m", rng=1, log=tmp_path / "live.sqlite", api_base=server.url, batch=True)) as model:
            model.run_for(2)
            assert (model.runlog.digest, model.usage.requests) == (digest, 0)


# -- what goes wrong in a batch


def test_a_refused_request_fails_alone() -> None:
    with BatchServer(lambda batch, number: {"reply": pay, "refused": [1]}) as server, closing(payers(server)) as model:
        model.step()
        assert (model.coins, model.usage.failures, server.sizes) == (3, 1, [4])


def test_what_an_expired_batch_lost_is_sent_again_once() -> None:
    fates: list[dict[str, Any]] = [{"reply": pay, "lost": [0, 2]}, {"reply": pay, "lost": [1]}]
    with BatchServer(lambda batch, number: fates[number - 1]) as server, closing(payers(server)) as model:
        model.step()
        assert (server.sizes, model.coins) == ([4, 2], 3)
        assert "not executed in time" in model.runlog.failures()[0]
        assert model.usage.requests == 6


def test_a_batch_that_is_refused_as_a_whole_ends_the_run() -> None:
    failure = {"code": "model_not_found", "message": "no such model"}
    refused = pytest.raises(ConfigError, match="refused batch batch_1: no such model")
    with BatchServer(lambda batch, number: {"failure": failure, "looks": None}) as server:
        model = payers(server)
        with closing(model), refused:
            model.step()


def test_a_provider_that_cannot_be_reached_ends_the_run_and_not_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesa_llm.llm.batches.http.ATTEMPTS", 1)

    def behave(batch: Batch, number: int) -> Mapping[str, Any]:
        server.trouble = [500]
        return {"reply": pay}

    with BatchServer(behave) as server:
        model = payers(server)
        with closing(model), pytest.raises(ConfigError, match="The batch goes on"):
            model.step()


def test_a_batch_with_more_tokens_than_may_be_in_progress_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesa_llm.llm.batches.stage.FIRST_WAIT_S", 0.01)

    def behave(batch: Batch, number: int) -> Mapping[str, Any]:
        too_many = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
        return {"failure": too_many, "looks": None} if len(batch.lines) > 2 else {"reply": pay}

    with BatchServer(behave) as server, closing(payers(server)) as model:
        model.step()
        assert (server.sizes, model.coins) == ([4, 2, 2], 4)


def test_a_provider_in_trouble_is_asked_again(paying: BatchServer) -> None:
    paying.trouble = [503, 429]
    with closing(payers(paying)) as model:
        model.step()
        assert (paying.sizes, model.coins) == ([4], 4)


def test_a_form_that_is_refused_is_learned_by_one_request() -> None:
    def reply(body: Any) -> dict[str, Any]:
        return pay(body)

    def behave(batch: Batch, number: int) -> Mapping[str, Any]:
        is_refused = "seed" in batch.lines[0][1]
        return {"reply": reply, "refused": range(99) if is_refused else (), "words": "Unknown parameter: 'seed'"}

    with BatchServer(behave) as server, closing(payers(server, 6)) as model:
        model.run_for(2)
        assert server.sizes == [6, 1, 5, 6]
        assert model.usage.failures == 0


# -- where batches cannot be


def test_an_endpoint_without_batches_is_said_before_anything_is_paid() -> None:
    with FaultyServer() as server, closing(payers(server)) as model:  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="there are no batches at this address"):
            model.step()
        assert server.count == 0


@pytest.mark.parametrize("llm", ["local:missing.gguf", "ollama_chat/x", ScriptedLLM(lambda request: "hm")])
def test_a_model_that_cannot_be_asked_in_batches_is_refused(llm: Any) -> None:
    refused = pytest.raises(ConfigError, match=r"cannot be asked in batches.*leave out batch \(--batch\)")
    with refused, closing(PotModel(2, llm, rng=1, batch=True)) as model:
        model.step()


def test_a_run_by_rule_ignores_batches() -> None:
    with closing(PotModel(2, "rule", rng=1, batch=True)) as model:
        model.step()
        assert model.engine.decisions == 2


# -- stopping and resuming


def test_the_batch_is_in_the_log_before_it_is_waited_for(tmp_path: Path) -> None:
    found: list[Any] = []

    def behave(batch: Batch, number: int) -> Mapping[str, Any]:
        with closing(RunLog(tmp_path / "run.sqlite", "read")) as log:
            found.append(batches_in(log.manifest))
        return {"reply": pay}

    with BatchServer(behave) as server, closing(payers(server, log=tmp_path / "run.sqlite")) as model:
        model.step()
        (entry,) = found[-1]
        keys = [key for key, _ in server.batches[0].lines]
        assert (entry["id"], entry["at"], entry["keys"]) == ("batch_1", server.url, keys)
        assert (found[0][0]["at"], found[0][0]["keys"]) == (server.url, keys)  # as it is being created
        assert batches_in(model.runlog.manifest) == [{"at": server.url, "id": "batch_1", "requests": 4}]


def test_a_stopped_run_says_how_to_collect_its_batch_and_does_so_once(tmp_path: Path, caplog: Any) -> None:
    fate: dict[str, Any] = {"looks": None, "reply": pay}
    log = tmp_path / "run.sqlite"
    with BatchServer(lambda batch, number: fate) as server:
        model = stopped(payers(server, log=log))
        assert "batch batch_1: 0 of 4 done; it goes on at" in caplog.text
        assert "run the same again" in caplog.text
        assert (model.usage.calls, model.usage.requests) == (0, 4)  # sent, so that they count as spent
        fate["looks"] = 1
        with closing(payers(server, log=log)) as model:
            assert model.runlog.paid().requests == 4
            model.step()
            assert (model.coins, model.usage.requests, model.runlog.paid().requests) == (4, 4, 4)
        with closing(payers(server, log=log)) as model:
            model.step()
            assert model.usage.requests == 0
        assert (server.sizes, server.heard.count("GET /v1/files/output-batch_1/content")) == ([4], 1)


def test_without_batch_a_resumed_run_does_not_pay_for_what_a_batch_holds(tmp_path: Path) -> None:
    fate: dict[str, Any] = {"looks": None, "reply": pay}
    with BatchServer(lambda batch, number: fate) as server:
        stopped(payers(server, log=tmp_path / "run.sqlite"))
        live = PotModel(4, "m", rng=1, log=tmp_path / "run.sqlite", api_base=server.url)
        with closing(live), pytest.raises(ConfigError, match="give batch=True"):
            live.step()


def test_a_resumed_run_with_another_prompt_pays_for_no_second_batch(tmp_path: Path) -> None:
    fate: dict[str, Any] = {"looks": None, "reply": pay}
    with BatchServer(lambda batch, number: fate) as server:
        stopped(payers(server, log=tmp_path / "run.sqlite"))
        fate["looks"] = 1
        model = payers(server, log=tmp_path / "run.sqlite")
        model.pot.coins = 3
        with closing(model), pytest.raises(ConfigError, match=r"batch_1 with 4 requests that this run does not make"):
            model.step()
        model = payers(server, log=tmp_path / "run.sqlite", ask_again=True)
        model.pot.coins = 3
        with closing(model):
            model.step()
        assert server.sizes == [4, 4]


def test_people_do_not_hold_up_a_batch(paying: BatchServer) -> None:
    class Person:
        """Pays once a batch was created."""

        is_person = True

        async def reply(self, request: Request) -> Reply:
            while not paying.batches:
                await asyncio.sleep(0.01)
            return Reply("", (ToolCall("pay", {"coins": 2}),))

    with closing(PotModel(4, {1: Person(), "*": "m"}, rng=1, batch=True, api_base=paying.url)) as model:
        model.step()
        assert (paying.sizes, model.coins) == ([3], 5)


RUN = """
import sys
from tests.pot import PotModel
PotModel(4, "m", rng=1, batch=True, api_base=sys.argv[1], log=sys.argv[2]).run_for(2)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_or_interrupted_run_collects_its_batch(end: signal.Signals, tmp_path: Path) -> None:
    was_seen, log = threading.Event(), tmp_path / "run.sqlite"
    fate: dict[str, Any] = {"looks": None, "reply": pay}

    def behave(batch: Batch, number: int) -> Mapping[str, Any]:
        if batch.n_looks:
            was_seen.set()
        return fate

    with BatchServer(behave) as server:
        process = Python("-c", RUN, server.url, log)
        assert was_seen.wait(60)
        os.kill(process.pid, end)
        process.wait()
        assert ("it goes on at" in process.err) == (end is signal.SIGINT)
        fate["looks"] = 1
        with closing(payers(server, log=log)) as model:
            model.run_for(2)
            assert (server.sizes, model.coins) == ([4, 4], 8)


# -- money


def test_what_a_batch_may_take_is_reserved_before_it_is_sent(paying: BatchServer) -> None:
    # Each request may take 2,000 tokens of a reply, and 250 or so of its prompt: three fit, then the other two.
    with closing(payers(paying, 5, max_tokens=7_000)) as model:
        model.step()
        assert (paying.sizes, model.coins) == ([3, 2], 5)


def test_a_budget_of_calls_holds_and_what_was_sent_is_kept(tmp_path: Path, paying: BatchServer) -> None:
    with closing(payers(paying, log=tmp_path / "run.sqlite", max_calls=3)) as model, pytest.raises(BudgetExceeded):
        model.step()
    with closing(payers(paying, log=tmp_path / "run.sqlite")) as model:
        model.step()
        assert (paying.sizes, model.usage.requests) == ([3, 1], 1)
