"""Sweeps: one tidy table, made again only where it is missing, with one purse for all workers."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from mesa_llm import AgentDesign, ConfigError
from mesa_llm.cli.app import app
from mesa_llm.cli.sweep import values_of
from mesa_llm.errors import BudgetExceeded
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.run import LAST, Run
from mesa_llm.experiments.runs.runner import Progress
from mesa_llm.experiments.runs.sweep import sweep
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.social.model import SocialModel
from tests.faulty_server import FaultyServer
from tests.pot import PotModel
from tests.processes import Python, run

TALK = """
persons = [{{class = "person", name = "Ada", background_story = "A nurse."}}]
host = {{class = "everyone"}}
endType = {{max_num_msgs = 1}}
experiment = {{scenario = "{}"}}
"""

COUNTED = ["follows", "llm", "design", "seed", "steps", "posts", "likes", "digest"]


def small(folder: Path, **changes: Any) -> Any:
    """Make a sweep of eight short runs, in this process."""
    options: dict[str, Any] = {"steps": 2, "seeds": 2, "fixed": {"n_agents": 5}, "workers": 1, **changes}
    designs = {"own": None, "forgetful": AgentDesign(memory="none")}
    return sweep(SocialModel, {"follows": [1, 2]}, folder=folder, designs=designs, **options)


def test_a_sweep_is_one_row_a_run_and_each_has_its_log(tmp_path: Path) -> None:
    made = small(tmp_path)
    assert (made.n_runs, made.n_done, made.n_failed, made.error) == (8, 8, 0, None)
    table = made.table
    assert table[["follows", "design", "seed"]].drop_duplicates().shape == (8, 3)
    assert table["steps"].eq(2).all()
    assert table["decisions"].eq(10).all()
    assert table["digest"].nunique() == 4  # a rule twin does not read its memory
    assert all((tmp_path / log).is_file() for log in table["log"])
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table.csv").filter(COUNTED), table.filter(COUNTED))


def test_a_kind_of_fault_that_did_not_occur_has_its_denominator_in_a_row(tmp_path: Path) -> None:
    done = sweep(PotModel, seeds=2, steps=2, workers=1, llm="random", folder=tmp_path)
    for row in done.table.to_dict("records"):
        assert json.loads(row["quality"])["failed"] == [0, row["decisions"]]


def test_mixtures_of_language_models_are_compared_like_single_ones(tmp_path: Path) -> None:
    words = ["sweep", "stock_agent", "--llm", "rule;1/2=random,2/2=rule", "--seeds", "1", "--steps", "4"]
    words += ["--set", "n_agents=4", "--out", str(tmp_path), "--workers", "1", "--json"]
    first, again = (json.loads(CliRunner().invoke(app, words).stdout.splitlines()[-1]) for _ in range(2))
    assert (first["done"], first["failed"], again["done"]) == (2, 0, 0)
    table: Any = pd.read_csv(tmp_path / "table.csv")
    assert list(table["llm"]) == ["rule", "1/2=random, 2/2=rule"]
    assert table["digest"].nunique() == 2


def test_a_misspelt_argument_of_a_sweep_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sweep has no llms=; did you mean llm\?"):
        small(tmp_path, llms="random")


def test_what_was_made_is_not_made_again_and_what_is_missing_is(tmp_path: Path) -> None:
    first = small(tmp_path).table
    next(iter(tmp_path.glob("*-2.json"))).unlink()
    again = small(tmp_path)
    assert (again.n_runs, again.n_done) == (8, 1)
    pd.testing.assert_frame_equal(again.table.filter(COUNTED), first.filter(COUNTED))
    longer = small(tmp_path, steps=3)
    assert (longer.n_done, longer.table["steps"].eq(3).all()) == (8, True)


def test_runs_are_made_anew_where_a_file_that_they_are_made_of_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "talk.toml"
    for n_done, scenario in ((1, "The park"), (0, "The park"), (1, "The pool")):
        file.write_text(TALK.format(scenario), encoding="utf-8")
        made = sweep(DiscussionModel, folder=tmp_path / "runs", fixed={"config": str(file)}, steps=None, workers=1)
        assert (made.n_done, len(made.table)) == (n_done, 1)


def test_a_sweep_begun_when_the_models_had_another_name_finds_its_logs(tmp_path: Path) -> None:
    model = "mesa_llm_models.social.model:SocialModel"
    job = Run(model, {"n_agents": 5}, "rule", "", {}, 1, 2, tmp_path, {})
    assert job.log == tmp_path / "0ca19a2a2085-1.sqlite"  # as version 0.10 named it


@pytest.mark.parametrize("option", ["retry_failures", "ask_again", "allow_new_endpoint"])
def test_a_sweep_that_is_asked_again_goes_on_with_its_logs(tmp_path: Path, option: str) -> None:
    first, logs = small(tmp_path).table, sorted(tmp_path.glob("*.sqlite"))
    again = small(tmp_path, options={option: True})
    assert (again.n_done, sorted(tmp_path.glob("*.sqlite"))) == (0, logs)
    pd.testing.assert_frame_equal(again.table.filter(COUNTED), first.filter(COUNTED))


def test_processes_make_the_same_runs_as_this_one(tmp_path: Path) -> None:
    here, there = small(tmp_path / "here"), small(tmp_path / "there", workers=2)
    pd.testing.assert_frame_equal(here.table.filter(COUNTED), there.table.filter(COUNTED))


class Mortal(PotModel):
    """Ends its own process in step 2: with seed 2 once, as for want of memory; with 3 each time; with 4, it quits."""

    def step(self) -> None:
        super().step()
        seed, file = self.scenario.rng, self.runlog.path
        assert file is not None
        if self.time != 2 or seed == 1 or file.with_suffix(".died").exists():
            return
        if seed == 2:
            file.with_suffix(".died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 3:
            os._exit(1)
        sys.exit("I quit")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_worker_that_dies_is_one_run_which_is_started_again(tmp_path: Path) -> None:
    made = sweep(Mortal, seeds=4, steps=3, workers=2, llm="random", folder=tmp_path)
    table = made.table.set_index("seed")
    assert list(table["steps"]) == [3, 3, 2, 2]
    errors = ["", "", "the worker broke 3 times,", "the model broke: SystemEx"]
    assert list(table["error"].fillna("").str[:25]) == errors
    whole = PotModel(rng=2, llm="random")
    whole.run_for(3)
    assert table["digest"][2] == whole.runlog.digest


def test_a_run_that_breaks_is_a_row_and_is_tried_again(tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    made = small(tmp_path / "runs", fixed={"users": str(users)})
    assert (made.n_done, made.n_failed) == (8, 8)
    assert made.table["error"].str.contains("users.csv").all()
    users.write_text("name,username,user_char,description\nAda,ada,curious,hello\nBen,ben,calm,hi\n")
    assert small(tmp_path / "runs", fixed={"users": str(users)}).n_failed == 0


def test_a_row_that_cannot_be_written_fails_its_run_alone(tmp_path: Path) -> None:
    first = small(tmp_path).table
    row = next(tmp_path.glob("*-2.json"))
    row.unlink()
    row.mkdir()
    again = small(tmp_path)
    assert (again.n_done, again.n_failed, again.table["error"].str.contains("cannot be written").sum()) == (1, 1, 1)
    assert again.table["digest"].tolist() == first["digest"].tolist()
    assert not list(tmp_path.glob("*.json.*"))


def test_a_table_that_cannot_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "table.csv").mkdir()
    with pytest.raises(ConfigError, match=r"table\.csv' cannot be written: .*the same sweep resumes"):
        small(tmp_path)
    (tmp_path / "table.csv").rmdir()
    assert small(tmp_path).n_done == 0


class Counting(SocialModel):
    """Counts by cells."""

    def results(self) -> dict[str, Any]:
        return {"counts": {(0, 1): 2}}


def test_a_result_may_name_what_it_counts_by_cells(tmp_path: Path) -> None:
    made = sweep(Counting, {}, seeds=1, steps=1, fixed={"n_agents": 3}, folder=tmp_path, workers=1)
    assert made.table["counts"].tolist() == [{"[0,1]": 2}]


@pytest.mark.parametrize("twice", [{"seeds": [1, 1]}, {"fixed": {}, "llm": ["rule", "rule"]}])
def test_a_run_that_is_named_twice_is_refused(tmp_path: Path, twice: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="the sweep repeats a run"):
        small(tmp_path, **twice)


def test_no_more_workers_run_than_the_limits_have_shares(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"concurrency=2 cannot be shared out among 4 workers.*workers=2"):
        small(tmp_path, workers=4, concurrency=2)
    assert small(tmp_path, workers=None, requests_per_min=1).n_done == 8


@pytest.mark.parametrize("workers", [1, 2])
def test_all_workers_spend_from_one_purse(tmp_path: Path, workers: int) -> None:
    with FaultyServer() as server:
        options = {"llm": "tiny", "api_base": server.url, "workers": workers}
        spent = small(tmp_path, **options, max_calls=25)
        assert isinstance(spent.error, BudgetExceeded)
        assert server.count == 25
        done = small(tmp_path, **{**options, "workers": 1})
        assert (done.error, server.count) == (None, 80)
        assert done.table["calls"].sum() == 80  # those of before count, too


def test_an_unknown_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"vary": {"followers": [1]}}, "no parameter 'followers' to vary; it has"),
        ({"vary": {"follows": []}}, "over no values"),
        ({"vary": {"follows": [1]}, "fixed": {"follows": 2}}, "both varied and fixed"),
        ({"seeds": 0}, "1 or more"),
        ({"workers": 0}, "1 or more"),
        ({"on": "clouds"}, "'processes', 'threads', 'ray', or an executor"),
        ({"options": {"reasonings": 1}}, "no option 'reasonings'"),
        ({"max_calls": 0}, "max_calls: input should be greater than 0"),
    ]
    for arguments, fault in cases:
        with pytest.raises(ConfigError, match=fault):
            sweep(SocialModel, **arguments, folder=tmp_path / "none")
        assert not list(tmp_path.glob("none/*.sqlite"))


def test_a_class_of_a_script_is_not_sent_to_workers(tmp_path: Path) -> None:
    class Local(MarketModel):
        """A model that no other process can import."""

    with pytest.raises(ConfigError, match="workers=1"):
        sweep(Local, seeds=2, workers=2, folder=tmp_path)


@pytest.mark.parametrize("typed", ["n_agents=2,x", "nobody=1"])
def test_a_value_that_cannot_be_is_an_error_about_the_option_it_stands_in(typed: str) -> None:
    with pytest.raises(ConfigError, match=r"^--vary (n_agents=x|nobody=1): "):
        values_of(SocialModel, [typed])


def command(folder: Path, *more: str) -> list[str]:
    """Return the command of a sweep over two values and three seeds."""
    arguments = ["social", "--vary", "follows=1,2", "--set", "n_agents=10", "--seeds", "3", "--steps", "40"]
    return ["-m", "mesa_llm.cli.app", "sweep", *arguments, "--out", str(folder), "--json", *more]


def last_line(text: str) -> dict[str, Any]:
    """Read the JSON that the command ends with."""
    return json.loads(text.strip().splitlines()[-1])


class Interrupted(SocialModel):
    """A model that is interrupted where everybody follows two."""

    def end_step(self) -> None:
        if self.scenario.follows == 2:
            raise KeyboardInterrupt


def test_an_interrupted_sweep_prints_as_json_what_was_made(tmp_path: Path) -> None:
    words = ["sweep", f"{__name__}:Interrupted", "--vary", "follows=1,2", "--set", "n_agents=5", "--steps", "1"]
    done = CliRunner().invoke(app, [*words, "--seeds", "1", "--workers", "1", "--out", str(tmp_path), "--json"])
    (found,) = map(json.loads, done.stdout.splitlines())
    assert (found["done"], found["failed"], found["interrupted"]) == (1, 0, True)
    assert pd.read_csv(found["table"])["follows"].tolist() == [1]


def test_the_runs_of_a_file_go_to_their_end_without_a_number_of_steps(tmp_path: Path) -> None:
    file = tmp_path / "talk.toml"
    file.write_text(TALK.format("The park").replace("max_num_msgs = 1", "max_num_msgs = 12"), encoding="utf-8")
    command = ["sweep", "discussion", "--config", str(file), "--seeds", "1", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, [*command, "--workers", "1"]).exit_code == 0
    assert pd.read_csv(tmp_path / "table.csv")["steps"].tolist() == [12]


def test_a_killed_sweep_makes_only_what_is_missing(tmp_path: Path) -> None:
    killed = Python(*command(tmp_path, "--workers", "1"))
    while not list(tmp_path.glob("*.json")) and killed.poll() is None:
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    n_made = len(list(tmp_path.glob("*.json")))
    again = last_line(run(*command(tmp_path, "--workers", "1")).out)
    assert (again["runs"], again["done"], again["failed"]) == (6, 6 - n_made, 0)
    assert set(again) == {"runs", "done", "failed", "tokens", "dollars", "table"}
    table = pd.read_csv(again["table"])
    whole = sweep(SocialModel, {"follows": [1, 2]}, fixed={"n_agents": 10}, seeds=3, steps=40, workers=1,
                  folder=tmp_path / "whole").table  # fmt: skip
    assert table["digest"].tolist() == whole["digest"].tolist()


def test_threads_make_the_same_runs_as_processes(tmp_path: Path) -> None:
    here, there = small(tmp_path / "here"), small(tmp_path / "there", on="threads", workers=3)
    assert here.n_failed == there.n_failed == 0
    pd.testing.assert_frame_equal(here.table.filter(COUNTED), there.table.filter(COUNTED))


@pytest.mark.parametrize("name", ["result", "digest", "seed", "dollars"])
def test_a_row_that_was_changed_is_named_and_not_used(name: str, tmp_path: Path) -> None:
    done = small(tmp_path, seeds=1)
    file = next(tmp_path.glob("*.json"))
    row = json.loads(file.read_text())
    known = set(done.table.columns) - {"seconds", "error"}
    result = next(one for one in row if one in known and one not in (*LAST, "seed", "steps", "llm", "design", "log"))
    file.write_text(json.dumps({**row, (result if name == "result" else name): "forged"}))
    with pytest.raises(
        ConfigError, match=rf"{file.name}' is not the row of its run: .*Delete it to have it made again"
    ):
        small(tmp_path, seeds=1)
    file.unlink()
    again = small(tmp_path, seeds=1)
    assert again.table.drop(columns="seconds").equals(done.table.drop(columns="seconds"))


def test_a_row_is_not_used_for_a_log_of_another_run(tmp_path: Path) -> None:
    small(tmp_path, seeds=1)
    first, second = sorted(tmp_path.glob("*.sqlite"))[:2]
    first.write_bytes(second.read_bytes())
    with pytest.raises(ConfigError, match=rf"{first.stem}.json' is not the row of its run: digest is"):
        small(tmp_path, seeds=1)


def test_a_row_of_an_earlier_version_is_used_as_before(tmp_path: Path) -> None:
    small(tmp_path, seeds=1)
    for log in tmp_path.glob("*.sqlite"):
        with closing(sqlite3.connect(log)) as database, database:
            database.execute("DELETE FROM manifest WHERE name = 'row'")
    assert small(tmp_path, seeds=1).n_done == 0


UNGUARDED = """
from mesa_llm.experiments import sweep
from tests.pot import PotModel

print(sweep(PotModel, seeds=2, steps=1, workers={workers}, llm="rule", out="runs").n_done)
"""


@pytest.mark.parametrize(("workers", "printed", "error"), [(None, "2\n", ""), (2, "", "if __name__ == '__main__':")])
def test_a_script_without_a_guard_makes_its_runs_itself_or_says_why_not(
    tmp_path: Path, workers: int | None, printed: str, error: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(workers=workers))
    done = run(str(script), cwd=tmp_path)
    assert (done.out, done.returncode) == (printed, int(not printed))
    assert error in done.err


def test_runs_by_rule_keep_logs_where_they_are_wanted_or_needed(tmp_path: Path) -> None:
    def logs(folder: Path, model: Any = DilemmaModel, **how: Any) -> int:
        found = sweep(model, steps=1, workers=1, out=folder, seeds=2, **how)
        assert found.n_failed == 0
        return len(list(folder.glob("*.sqlite")))

    assert logs(tmp_path / "folder") == 2  # the folder is asked for, and holds them
    assert logs(tmp_path / "rows", logs=False) == 0
    assert logs(tmp_path / "chance", logs=False, llm="random") == 2
    assert logs(tmp_path / "read", ReadingModel, logs=False) == 2  # its results count what is in the log
    assert list(sweep(DilemmaModel, steps=1, workers=1).table["log"]) == [""]


class ReadingModel(PotModel):
    """Counts the actions in its log."""

    def results(self) -> dict[str, Any]:
        return {"actions": len(self.runlog.actions())}


def test_a_folder_that_was_begun_with_logs_goes_on_with_logs(tmp_path: Path) -> None:
    sweep(DilemmaModel, steps=1, workers=1, out=tmp_path, seeds=1)
    sweep(DilemmaModel, steps=1, workers=1, out=tmp_path, seeds=2, logs=False)
    assert len(list(tmp_path.glob("*.sqlite"))) == 2


def test_factors_that_change_nothing_are_named_before_and_after() -> None:
    personas = {"kind": "You are kind.", "cruel": "You are cruel."}
    found = sweep(DilemmaModel, {"guests": [2, 3]}, personas=personas, steps=1, workers=1)
    sentence = "persona changes nothing with rule: the runs of kind, cruel are the same."
    assert found.without_effect == [sentence]
    assert sentence in found.text()
    assert sentence in found.preview().text()


def test_the_bar_moves_within_a_run() -> None:
    bar = RunBar(is_shown=True)
    bar.expect(2, steps=10)
    bar.progress(Progress("one", 5, 20, 1, 0.25))
    assert bar.text() == (0.5, "20 decisions, 1 failed, $0.2500")
    bar.end("one", 40, 1, 0.5)
    bar.progress(Progress("one", 5, 20, 1, 0.25))  # late
    assert bar.text() == (1, "40 decisions, 1 failed, $0.5000")
    bar.close()
