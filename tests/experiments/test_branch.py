"""Branches: a run forked from its log, with a change, and compared with its parent."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import AgentDesign, ConfigError, LLMModel, RunLog, ScriptedLLM, branch
from mesa_llm.experiments.runs.neutral import NEUTRAL
from mesa_llm.llm.replies import call
from mesa_llm.model.interventions import Minds, News
from mesa_llm.model.recording import Recording
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.three_worlds.model import ThreeWorldsModel
from tests.faulty_server import FaultyServer
from tests.pot import PotModel
from tests.processes import run


class Payers:
    """Pays by what the prompt says, and counts who is asked."""

    def __init__(self) -> None:
        self.n_calls = 0
        self.llm = ScriptedLLM(self.reply)

    def reply(self, request: Any) -> Any:
        self.n_calls += 1
        return call("pay", coins=9 if "Be generous" in request.messages[-1].content else 1)


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """Return the log of a run of four steps, with news before step 4."""
    model = PotModel(3, Payers().llm, rng=1, log=tmp_path / "parent.sqlite")
    model.run_for(3)
    model.inject("Nothing new.")
    model.step()
    model.close()
    return tmp_path / "parent.sqlite"


def coins(fork: Any) -> list[tuple[float, float]]:
    table = fork.compare()
    rows = table[table["measure"] == "coins"]
    return list(zip(rows["parent"], rows["branch"], strict=True))


def test_a_log_whose_name_is_no_utf_8_is_branched(parent: Path, tmp_path: Path) -> None:
    renamed = parent.rename(tmp_path / os.fsdecode(b"parent \xff.sqlite"))
    fork = branch(renamed, 2, log=tmp_path / "fork.sqlite", llm=Payers().llm)
    fork.run()
    fork.close()
    assert Recording.read(tmp_path / "fork.sqlite").last_step == 4


def test_a_branch_asks_only_for_what_its_parent_was_not_asked(parent: Path, tmp_path: Path) -> None:
    before = hashlib.sha256(parent.read_bytes()).digest()
    payers = Payers()
    fork = branch(parent, 2, inject=["Be generous."], log=tmp_path / "fork.sqlite", llm=payers.llm)
    assert payers.n_calls == 0
    fork.run()
    assert coins(fork) == [(3, 3), (6, 6), (9, 33), (12, 36)]
    assert fork.placebo is not None
    assert (fork.model.runlog.n_copied, fork.model.usage.calls) == (6, 6)  # in step 4 the pot holds other sums
    assert payers.n_calls == fork.model.usage.calls + fork.placebo.model.usage.calls
    assert [applied.step for applied in fork.model.interventions.log] == [3, 3, 4]
    fork.close()
    assert hashlib.sha256(parent.read_bytes()).digest() == before


def test_a_placebo_has_a_neutral_sentence_at_the_same_point_to_the_same_agents(parent: Path) -> None:
    news = News(text="Be generous.", to=(2,), steps=2)
    with closing(branch(parent, 2, inject=[news], llm=Payers().llm)) as fork:
        fork.run()
        assert fork.placebo is not None
        (first, *_) = (one for one in fork.placebo.model.interventions.log if isinstance(one.intervention, News))
        assert (first.step, first.intervention) == (3, news.model_copy(update={"text": NEUTRAL[0]}))
        table = fork.compare("coins")
        assert table["beyond_placebo"].tolist() == (table["branch"] - table["placebo"]).tolist()
        assert table["placebo"].tolist() == table["parent"].tolist()  # it moves nobody who follows the words


def test_a_placebo_can_be_left_out(parent: Path) -> None:
    with closing(branch(parent, 2, inject=["Be generous."], llm=Payers().llm, placebo=False)) as fork:
        fork.run()
        assert fork.placebo is None
        assert "placebo" not in fork.compare()


def test_a_branch_without_a_change_is_its_parent(parent: Path) -> None:
    fork = branch(parent, 2)
    fork.run()
    assert fork.model.runlog.digest == Recording.read(parent).digests[4]
    assert fork.model.usage.calls == 0
    assert set(fork.compare()["difference"]) == {0.0}


def test_a_branch_is_a_run_log_that_replays_and_goes_on_alone(tmp_path: Path) -> None:
    log, new = tmp_path / "parent.sqlite", tmp_path / "fork.sqlite"
    MarketModel(n_agents=3, rng=1, log=log, horizon=5).run_for(3)

    def fork() -> LLMModel:
        made = branch(log, 2, changes={"fee": 0.05, "horizon": 4}, design=AgentDesign(llm="random"), log=new)
        made.run(3)
        made.close()
        return made.model

    first = fork()
    assert not first.running
    assert first.time == 4
    assert fork().runlog.digest == first.runlog.digest
    log.rename(tmp_path / "gone.sqlite")
    assert Recording.read(new).replayed().runlog.digest == first.runlog.digest


def test_a_branch_can_be_branched(parent: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.sqlite", tmp_path / "second.sqlite"
    fork = branch(parent, 2, inject=["Be generous."], log=first, llm=Payers().llm)
    fork.run()
    fork.close()
    payers = Payers()
    again = branch(first, 3, inject=["Be generous."], log=second, llm=payers.llm, keeps_later=False)
    again.run()
    assert coins(again)[3:] == [(36, 60)]
    assert again.model.usage.calls == 3
    assert [applied.step for applied in again.model.interventions.log] == [3, 3, 4, 4]


def test_a_run_whose_endpoint_has_moved_is_branched_where_that_is_said(tmp_path: Path) -> None:
    with FaultyServer() as old, FaultyServer() as new:
        PotModel(3, "stub", rng=1, log=tmp_path / "parent.sqlite", api_base=old.url).run_for(2)
        n_asked = old.count
        with pytest.raises(ConfigError, match=rf"asked stub at {old.url}, and now it would be asked at {new.url}"):
            branch(tmp_path / "parent.sqlite", 1, api_base=new.url)
        fork = branch(tmp_path / "parent.sqlite", 1, api_base=new.url, allow_new_endpoint=True, inject=["News."])
        fork.run()
        assert old.count == n_asked
        assert new.count > 0 < fork.model.runlog.n_copied


def test_an_address_out_of_a_log_gets_no_key_unless_it_is_named_again(tmp_path: Path, monkeypatch) -> None:
    log = tmp_path / "stranger.sqlite"
    with FaultyServer() as stranger:
        llm = f"stub@{stranger.url}"
        with closing(PotModel(2, llm, rng=1, log=log)) as model:
            model.run_for(2)
        monkeypatch.setenv("MESA_LLM_API_KEY", "mine-mine-mine")

        def keys(source: Any, **options: Any) -> set[str | None]:
            before = stranger.count
            with closing(branch(source, 1, inject=[f"News {before}."], **options)) as fork:
                fork.run(1)
            return {received.headers.get("authorization") for received in stranger.requests[before:]}

        assert keys(log) == {None}
        with closing(Recording.read(log).replayed()) as viewed:
            assert keys(viewed) == {None}
            assert keys(viewed, log=tmp_path / "branch.sqlite") == {None}
        assert keys(tmp_path / "branch.sqlite") == {None}
        assert keys(log, llm=llm) == keys(log, api_base=stranger.url) == {"Bearer mine-mine-mine"}


def test_a_model_that_the_log_adds_later_gets_no_key_either(tmp_path: Path, monkeypatch) -> None:
    log = tmp_path / "stranger.sqlite"
    with FaultyServer() as stranger:
        with closing(PotModel(2, "rule", rng=1, log=log)) as model:
            model.step()
            model.inject(Minds(llm=f"stub@{stranger.url}"))
            model.step()
        monkeypatch.setenv("MESA_LLM_API_KEY", "mine-mine-mine")
        before = stranger.count
        with closing(branch(log, 1, inject=["News."])) as fork:
            fork.run()
    assert {received.headers.get("authorization") for received in stranger.requests[before:]} == {None}


def test_the_model_of_a_run_under_way_keeps_its_key(monkeypatch) -> None:
    monkeypatch.setenv("MESA_LLM_API_KEY", "mine-mine-mine")
    with FaultyServer() as server, closing(PotModel(2, f"stub@{server.url}", rng=1)) as model:
        model.run_for(2)
        with closing(branch(model, 1, inject=["News."])) as fork:
            fork.run(1)
    assert {received.headers.get("authorization") for received in server.requests} == {"Bearer mine-mine-mine"}


def test_a_parameter_can_differ_from_the_start_on(tmp_path: Path) -> None:
    model = ThreeWorldsModel(n_agents=4, rng=1)
    model.run_for(2)
    fork = branch(model, 0, changes={"bridged": False})
    fork.run()
    table = fork.compare()
    assert not fork.model.scenario.bridged
    assert set(table[table["step"] == 2]["measure"]) >= {"heard", "posts"}
    assert model.time == 2


@pytest.mark.parametrize("damaged", ["replace(measures, ':', ';')", "'[1]'", f"'{'[' * 100_000}'"])
def test_a_parent_whose_measures_are_damaged_is_named(parent: Path, damaged: str) -> None:
    with closing(sqlite3.connect(parent)) as log, log:
        log.execute(f"UPDATE steps SET measures = {damaged} WHERE time = 2")
    with pytest.raises(ConfigError, match=r"parent.sqlite' is damaged: the measures of step 2 cannot be read"):
        branch(parent, 1)


def test_what_cannot_be_branched_is_one_clear_error(parent: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="step 9: the parent has the steps 0 to 4"):
        branch(parent, 9)
    with pytest.raises(ConfigError, match="is the parent's log"):
        branch(parent, 2, log=parent)
    with pytest.raises(ConfigError, match="'n_agents' cannot be changed during a run of PotModel"):
        branch(parent, 2, changes={"n_agents": 4}, log=tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()
    branch(parent, 2, inject=["Be generous."], log=tmp_path / "new.sqlite", llm=Payers().llm).close()
    with pytest.raises(ConfigError, match="a branch with other changes"):
        branch(parent, 2, inject=["Be mean."], log=tmp_path / "new.sqlite")
    with pytest.raises(ConfigError, match="give the number of steps"):
        branch(parent, 4).run()


KILLED = """
import os, signal, sys
from mesa_llm import branch
from tests.experiments.test_branch import Payers
parent, log, after = sys.argv[1:]
returns = 0
def count(frame, event, _):
    global returns
    if event == "return" and frame.f_code.co_filename.endswith(("runlog/log.py", "runlog/database.py")):
        returns += frame.f_code.co_name in ("__init__", "begin", "note", "commit", "end_step", "_check_writable")
        if returns == int(after):
            os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(count)
branch(parent, 2, inject=["Be generous."], log=log, llm=Payers().llm).run()
print("ran to its end")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process takes too long to start here")
def test_a_branch_killed_after_any_write_goes_on_and_is_the_same(parent: Path, tmp_path: Path) -> None:
    def digest_of(log: Path) -> str:
        with closing(branch(parent, 2, inject=["Be generous."], log=log, llm=Payers().llm)) as fork:
            fork.run()
            return fork.model.runlog.digest

    whole = digest_of(tmp_path / "whole.sqlite")
    for after in [*range(1, 12), *range(12, 200, 16)]:
        log = tmp_path / f"{after}.sqlite"
        child = run("-c", KILLED, str(parent), str(log), str(after))
        if log.exists() and (manifest := RunLog(log, "read").manifest):
            assert [row["step"] for row in manifest["interventions"]] == [3, 3, 4]
            assert "branch" in manifest
        assert digest_of(log) == whole
        if "ran to its end" in child.out:
            return
    raise AssertionError("it never ran to its end")
