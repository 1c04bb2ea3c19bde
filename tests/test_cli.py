"""The command line, as its user types it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from mesa_llm.cli import app
from mesa_llm.gallery import find_models
from tests.faulty_server import FaultyServer

FIELDS = {
    *("model", "steps", "digest", "decisions", "failures", "calls"),
    *("replayed", "tokens", "dollars", "seconds", "log"),
}


def typed(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def told(*words) -> dict:
    done = typed(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1])


def test_the_models_are_listed_with_their_question() -> None:
    assert "social" in typed("list").stdout
    assert "BROKEN" not in typed("list").stdout


def test_a_run_tells_one_json_object_at_the_end() -> None:
    run = told("run", "social", "--steps", 3, "--rng", 1, "--set", "n_agents=5")
    assert set(run) == FIELDS
    assert (run["model"], run["steps"], run["decisions"], run["calls"]) == ("social", 3, 15, 0)


def test_a_run_without_json_says_in_words_what_happened(tmp_path) -> None:
    done = typed("run", "social", "--steps", 2, "--rng", 1, "--log", tmp_path / "run.sqlite")
    assert "What happened" in done.stdout
    assert str(tmp_path / "run.sqlite") in done.stdout
    assert "mesa-llm app" in done.stdout


def test_a_recorded_run_is_replayed_inspected_and_gone_on_with(tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    words = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=4", "--log", log]
    with FaultyServer() as server:
        first = told(*words, "--steps", 2, "--api-base", server.url)
        longer = told(*words, "--steps", 3, "--api-base", server.url)
    assert (longer["replayed"], longer["calls"]) == (first["calls"], longer["decisions"] - 8)
    again = told("replay", log)
    assert (again["digest"], again["calls"], again["replayed"]) == (longer["digest"], 0, 12)
    assert "prompt" in typed("inspect", log, "--calls", "--csv").stdout
    assert "stub" in typed("inspect", log, "--usage").stdout
    assert "social" in typed("inspect", log).stdout
    assert len(typed("inspect", log, "--decisions", "--agent", 2, "--csv").stdout.splitlines()) == 4


def test_a_changed_prompt_stops_a_replay_and_shows_the_difference(tmp_path, request) -> None:
    log = tmp_path / "run.sqlite"
    with FaultyServer() as server:
        told(
            "run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=3", "--log", log, "--api-base", server.url
        )
    from models.social import model

    rules = model.RULES
    request.addfinalizer(lambda: setattr(model, "RULES", rules))
    model.RULES = rules.replace("online", "on paper")
    done = typed("replay", log)
    assert done.exit_code == 2
    assert "+system: " in done.output
    assert "on paper" in done.output


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["run", "nothing"], "there is no model 'nothing'; there are: "),
        (["run", "social", "--set", "colour=red"], "wanted name=value, with one of the names n_agents"),
        (["run", "social", "--set", "n_agents=many"], "n_agents=many"),
        (["run", "social", "--users", "nowhere.csv"], "no file 'nowhere.csv'"),
        (["run", "social", "--on-error", "cry"], "on_error is"),
        (["run", "social", "--max-calls", "0"], "budget"),
        (["replay", "nowhere.sqlite"], "no run log"),
        (["inspect", "nowhere.sqlite"], "no run log"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_told_in_one_line_and_exits_with_2(words, fault, tmp_path) -> None:
    done = typed(*words, *(["--llm", "stub", "--api-base", "http://127.0.0.1:9"] if "--max-calls" in words else []))
    assert done.exit_code == 2
    assert fault in done.output
    assert "Traceback" not in done.output


def test_a_spent_budget_exits_with_3_and_can_be_gone_on_with(tmp_path) -> None:
    words = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=4", "--steps", 2]
    words += ["--log", tmp_path / "run.sqlite"]
    with FaultyServer() as server:
        poor = typed(*words, "--api-base", server.url, "--max-calls", 5)
        assert poor.exit_code == 3
        assert "5 calls" in poor.output
        rich = told(*words, "--api-base", server.url, "--max-calls", 50)
    assert rich["replayed"] == 5


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(tmp_path) -> None:
    command = [sys.executable, "-m", "mesa_llm.cli", "run", "social", "--llm", "stub", "--rng", "1", "--steps", "2"]
    command += ["--set", "n_agents=4", "--log", str(tmp_path / "run.sqlite"), "--json", "--concurrency", "1"]
    with FaultyServer(latency_s=0.2) as server:
        command += ["--api-base", server.url]
        run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while server.count < 3 and run.poll() is None:
            time.sleep(0.01)
        os.kill(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=60)
        again = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    assert run.returncode == 130
    assert "goes on" in said
    assert again["replayed"] >= 2


def test_a_broken_model_of_another_package_is_listed_and_disturbs_nothing(tmp_path, import_path) -> None:
    package = tmp_path / "badmodels"
    (package / "sad").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sad" / "__init__.py").write_text("")
    (package / "sad" / "model.py").write_text("import no_such_package")
    info = tmp_path / "badmodels-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: badmodels\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mesa_llm.models]\nbad = badmodels\nworse = not_there\n")
    import_path(tmp_path)
    listed = typed("list").stdout
    assert "sad" in listed
    assert "no_such_package" in listed
    assert "not_there" in listed
    assert told("run", "social", "--steps", 1)["steps"] == 1
    assert {"sad", "social", "worse"} <= {entry.name for entry in find_models()}


@pytest.fixture
def import_path(request):
    """Put a folder on the import path for one test."""

    def put(folder) -> None:
        sys.path.insert(0, str(folder))
        request.addfinalizer(lambda: sys.path.remove(str(folder)))

    return put
