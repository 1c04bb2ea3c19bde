"""The benchmark, as its user types it."""

import json
import re
import shlex
import signal
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from mesa_llm.cli.arguments import llm_in
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.benchmarks.report import BenchmarkReport
from mesa_llm.experiments.benchmarks.task import SHACHI
from mesa_llm_models.stock_agent.model import StockAgentModel
from tests.faulty_server import FaultyServer, refused
from tests.processes import Python

ROOT = Path(__file__).parents[2]
POT = "tests.experiments.benchmark.pots:POT"


def typed(*words):
    return CliRunner().invoke(app, ["bench", *(str(word) for word in words)])


def told(*words, code: int = 0) -> dict:
    done = typed(*words, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout.splitlines()[-1])


def test_without_a_name_the_tasks_are_listed_and_none_of_the_ten_is_missing() -> None:
    listed = typed().stdout
    assert {line.split()[0] for line in listed.splitlines() if line.strip()} >= set(SHACHI)
    assert "not here yet" not in listed


def test_a_benchmark_prints_a_table_and_leaves_a_page_and_a_log_for_each_run(tmp_path) -> None:
    done = typed(POT, "--llm", "random", "--repeats", 2, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "pot" in done.stdout
    assert "target: somebody (a guess); A study: a model; baseline: chance" in done.stdout
    assert len(list(tmp_path.glob("pot-random-*-[12].sqlite"))) == 2
    assert len(list(tmp_path.glob("pot-rule-*-[12].sqlite"))) == 2
    assert len(list(tmp_path.iterdir())) == 6
    assert "data:image/svg+xml" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_run(tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    done = typed(POT, "--repeats", 1, "--out", tmp_path / "file")
    assert done.exit_code == 2
    assert done.stderr == f"mesa-llm: '{tmp_path / 'file'}' cannot be created as a folder for runs: File exists\n"


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--dry-run", "--cross", "--design", "react")], ids=" ".join)
def test_a_provider_that_nobody_knows_is_said_before_anything_is_run(words, tmp_path) -> None:
    done = typed(POT, "--llm", "nobody/knows", "--out", tmp_path / "runs", *words)
    assert done.exit_code == 2
    assert done.stderr.startswith("mesa-llm: no provider is known for llm='nobody/knows'.")
    assert not (tmp_path / "runs").exists()


def test_another_setting_is_run_in_the_same_folder(tmp_path) -> None:
    words = [POT, "--repeats", 1, "--out", tmp_path]
    first, other = told(*words), told(*words, "--quick")
    assert [one["tasks"][0]["results"]["rule"]["runs"][0]["decisions"] for one in (first, other)] == [12, 2]


def test_json_holds_scores_errors_and_runs_of_everybody(tmp_path) -> None:
    (task,) = told(POT, "--repeats", 2, "--out", tmp_path)["tasks"]
    assert (task["task"], task["level"], task["people_error"]) == ("pot", 2, 6.0)
    assert task["published_error"]["agent"] == 1.0
    rule = task["results"]["rule"]
    assert (rule["error"]["n"], len(rule["runs"]), set(task["results"])) == (2, 2, {"rule", "random"})
    assert rule["scores"]["coins"]["value"] == sum(run["scores"]["coins"] for run in rule["runs"]) / 2


def test_parameters_are_for_all_tasks_that_have_them_or_for_one(tmp_path) -> None:
    words = [POT, "tests.experiments.benchmark.pots:BROKEN", "--repeats", 1, "--out", tmp_path]
    found = told(*words, "--set", "n_agents=2", "--set", "pot.n_agents=3", code=1)["tasks"]
    assert [task["setting"].get("n_agents") for task in found] == [3, 2]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nothing"], "there is no task 'nothing'"),
        ([POT, "--set", "colour=red"], "expected name=value or TASK.name=value"),
        ([POT, "--set", "n_agents=many"], "n_agents=many"),
        ([POT, "--items", "stolen"], "expected own or original"),
        (["compost", "--items", "original"], "myracheng/lm_caricature, commit 9cda928"),
        (["cognitive_biases", "--items", "original"], "pass it with --set cognitive_biases.tests=FILE"),
        (["compost", "--set", "topics=nowhere.txt"], "a text file with one a line; got 'nowhere.txt'"),
        ([POT, "--llm", "m@http://me:secret@host/v1"], "the address holds"),
        ([POT, "--max-calls", 0], "a budget must be above 0"),
        (["sotopia", "--llm", "gpt-4o-mini"], "no scores without a judge"),
        ([POT, "--design", "own,sotopia"], "compare them with --cross"),
        ([POT, "--measure", "pot=love"], "it needs --cross or --ablate"),
        (["--cross", "nothing"], "there is no task 'nothing'"),
        (["--cross", "--llm", "gpt-4o-mini"], "no scores without a judge"),
        ([POT, "--cross", "--design", "mine"], "no such design or file; expected a JSON file, or own, original, emer"),
        ([POT, "--cross", "--design", "nowhere.json"], "nowhere.json cannot be opened"),
        ([POT, "--cross", "--design", "original,sotopia"], "two designs are named 'sotopia'"),
        ([POT, "--cross", "--measure", "sotopia=GOAL"], "expected TASK=SCORE, for pot"),
        ([POT, "--cross", "--measure", "pot=hate"], "pot has no such score; it has coins, love"),
        ([POT, "--ablate", "original"], "--ablate original: expected one design"),
        ([POT, "--ablate", "nothing"], "--ablate nothing: there is no such design"),
    ],
)
def test_what_cannot_be_is_one_line_before_anything_runs(words, why, tmp_path) -> None:
    done = typed(*words, "--out", tmp_path / "bench")
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert why in done.stderr
    assert not (tmp_path / "bench").exists()


def test_no_judge_is_asked_for_the_scores_that_a_measure_is_chosen_from(tmp_path) -> None:
    with FaultyServer() as server:
        judge = f"judge=m@{server.url}"
        done = typed("sotopia", "--quick", "--set", judge, "--cross", "--measure", "sotopia=hate", "--out", tmp_path)
    assert "sotopia has no such score; it has SOC, " in done.stderr
    assert (done.exit_code, server.count) == (2, 0)


def test_spent_budget_exits_3_and_the_same_command_resumes(tmp_path) -> None:
    with FaultyServer() as server:
        words = [POT, "--llm", "stub", "--api-base", server.url, "--repeats", 2, "--out", tmp_path]
        poor = told(*words, "--max-calls", 15, code=3)
        rich = told(*words)
        assert server.count == 15 + rich["usage"]["calls"]
    assert rich["usage"]["replayed"] == poor["usage"]["calls"] == 15
    assert (poor["paid"]["calls"], rich["paid"]["calls"], rich["paid"]["requests"]) == (15, server.count, server.count)
    assert poor["failed_runs"] >= 1
    assert rich["failed_runs"] == 0


def test_a_benchmark_in_which_nothing_succeeds_exits_with_4(tmp_path) -> None:
    with FaultyServer(lambda body, number: refused(422, "no")) as server:
        words = [POT, "--llm", "stub", "--api-base", server.url, "--repeats", 1, "--quick", "--out", tmp_path]
        dead = typed(*words)
    assert dead.exit_code == 4
    assert "1 of 3 runs produced nothing. pot, stub, seed 1: none of the 2 decisions succeeded" in dead.stderr


def test_decisions_that_failed_are_counted_in_the_table_and_on_the_page(tmp_path) -> None:
    with FaultyServer(lambda body, number: refused(422, "no") if number > 6 else None) as server:
        words = ["--llm", "stub", "--api-base", server.url, "--repeats", 1, "--concurrency", 1, "--out", tmp_path]
        gap = re.compile(r"IN PART pot, stub: \d of 12 decisions failed, and the scores are of what came")
        assert gap.search(typed(POT, *words).stdout)
        assert gap.search((tmp_path / "report.html").read_text(encoding="utf-8"))


def test_a_dry_run_says_what_it_would_cost_and_asks_nobody(tmp_path) -> None:
    with FaultyServer() as server:
        words = [POT, "--llm", "stub", "--api-base", server.url, "--out", tmp_path / "bench", "--dry-run"]
        assert told(*words)["total"]["requests"] == 36
        assert "nothing was sent" in typed(*words).stdout
        assert (server.count, (tmp_path / "bench").exists()) == (0, False)


def test_designs_are_crossed_with_tasks_within_one_budget_and_gone_on_with(tmp_path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text('{"memory": "none", "persona": "none"}', encoding="utf-8")
    with FaultyServer() as server:
        words = [POT, "--cross", "--design", f"own,{mine}", "--llm", "stub", "--api-base", server.url]
        words += ["--repeats", 2, "--out", tmp_path / "out"]
        assert told(*words, "--dry-run")["total"]["requests"] == 48
        assert server.count == 0
        poor = told(*words, "--max-calls", 30, code=3)
        rich = told(*words)
        assert server.count == 30 + rich["usage"]["calls"]
    assert rich["usage"]["replayed"] == poor["usage"]["calls"] == 30
    assert [(cell["design"], len(cell["runs"]), cell["figure"]["n"]) for cell in rich["cells"]] == [
        ("own", 2, 2),
        ("mine", 2, 2),
    ]
    assert 'alt="Designs × tasks' in (tmp_path / "out" / "cross.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "out" / "cross.json").read_text(encoding="utf-8")) == rich


@pytest.mark.parametrize(
    "text", ["[1]", "{", '{"memori": "none"}', '{"memory": "elephant"}', '{"decide": "os:getcwd"}']
)
def test_a_broken_design_file_is_one_line(text, tmp_path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(text, encoding="utf-8")
    done = typed(POT, "--cross", "--design", file, "--out", tmp_path / "out")
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_a_design_is_taken_apart(tmp_path) -> None:
    done = typed(POT, "--ablate", "stock_agent", "--llm", "random", "--repeats", 6, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    ratios = [line.split()[:4] for line in done.stdout.splitlines() if line.startswith("stock_agent without")]
    assert ratios == [["stock_agent", "without", name, "1"] for name in ("config", "memory", "tools")]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_or_killed_benchmark_resumes(sent, tmp_path) -> None:
    with FaultyServer(latency_s=0.2) as server:
        words = [POT, "--llm", "stub", "--repeats", "2", "--out", str(tmp_path), "--api-base", server.url]
        first = Python("-m", "mesa_llm.cli.app", "bench", *words, cwd=ROOT)
        while server.count < 9 and first.poll() is None:
            time.sleep(0.01)
        first.send_signal(sent)
        first.wait(250)
        before = server.count_after_all()
        again = told(*words)
    assert first.returncode == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    assert again["usage"]["calls"] == server.count - before
    replayed = again["usage"]["replayed"]
    assert replayed == before if sent == signal.SIGINT else 1 <= replayed <= before


def test_a_report_says_by_which_command_it_is_made_again(tmp_path) -> None:
    words = [POT, "--quick", "--repeats", 2, "--rng", 0, "--set", "n_agents=3", "--reply-tokens", 50, "--out", tmp_path]
    first = told(*words)
    report = BenchmarkReport.read(tmp_path / "report.json")
    again = told(*shlex.split(report.command(tmp_path))[2:])
    assert again["options"] == first["options"]


def test_several_language_models_play_against_each_other(tmp_path) -> None:
    words = ["auction_arena", "--quick", "--repeats", 1, "--out", tmp_path]
    for llm, more in (("main=random,others=rule", ()), ("1/2=random,2/2=rule", ()), ("random", ("opponents=rule",))):
        (task,) = told(*words, "--llm", llm, *(word for one in more for word in ("--set", one)))["tasks"]
        assert set(task["results"]) >= {"rule", "random"}
        (run,) = next(iter(task["results"].values()))["runs"]
        assert run["decisions"] > 0


@pytest.mark.parametrize("text", ["main=a,b", "1=a,main=b", "3/2=a"])
def test_language_models_that_are_for_nobody_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--llm"):
        llm_in(text)


def test_shares_are_every_nth_agent() -> None:
    assert llm_in("m@http://h/v1?a=b,c") == "m@http://h/v1?a=b,c"
    llms = llm_in("1/2=random, 2/2=rule")
    model = StockAgentModel(n_agents=6, days=1, llm=llms, rng=1)
    assert [model.llm_of(agent) for agent in model.agents] == ["random", "rule"] * 3
