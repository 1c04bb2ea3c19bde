"""The command line, as its user types it."""

import json
import math
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest.mock import ANY

import numpy
import pandas
import pytest
import typer
from typer.testing import CliRunner

from mesa_llm import AgentDesign, ConfigError, LLMModel, ScriptedLLM, __version__, recorded_run
from mesa_llm.cli.app import app
from mesa_llm.cli.command import exits, say
from mesa_llm.cli.run import run_model, summary
from mesa_llm.engine.activation import in_turn
from mesa_llm.errors import AllDecisionsFailed, BadReply
from mesa_llm.llm.address import secret_in
from mesa_llm.memory import MemoryEntry, WindowMemory
from mesa_llm.registry import find_model
from mesa_llm.testing import CHECKS, honest, honest_reply
from mesa_llm_models.social.model import SocialModel, SocialScenario
from tests.batch_server import BatchServer
from tests.faulty_server import FaultyServer
from tests.pot import PotModel
from tests.processes import Python

ROOT = Path(__file__).parents[2]

FIELDS = {
    *("model", "seed", "steps", "ended", "digest", "decisions", "failures", "calls"),
    *("asked_again", "repaired", "quality", "judges"),
    *("replayed", "tokens", "dollars", "seconds", "log"),
    *("results", "failures_by_purpose", "usage_by_purpose", "failed_steps", "warning"),
}


def run_command(*command):
    return CliRunner().invoke(app, [str(word) for word in command])


def figures_of(*command) -> dict:
    done = run_command(*command, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1])


def test_a_recorded_run_is_listed_with_its_model_and_replayed_by_its_name() -> None:
    assert "schelling/town  A small town of two groups" in run_command("list", "schelling").stdout
    earlier = "recorded with 0.12.0" if recorded_run("schelling").is_of_earlier_prompts else ""
    for name in ("schelling", "schelling/town"):
        done = run_command("replay", name)
        assert "identical: " in done.stdout or (earlier and earlier in done.stderr), done.output
    assert "no run log at 'schelling/village'" in run_command("replay", "schelling/village").stderr


def test_the_notebooks_are_copied_into_a_new_folder_and_never_over_one(tmp_path) -> None:
    done = run_command("notebooks", tmp_path / "mine")
    assert (done.exit_code, f"jupyter lab {tmp_path / 'mine'}" in done.stdout.replace("\n", "")) == (0, True)
    assert (tmp_path / "mine" / "course" / "08_prompt_persona" / "page.py").is_file()
    assert {file.name for file in (tmp_path / "mine").glob("*.ipynb")} >= {"10_market.ipynb", "30_classics.ipynb"}
    again = run_command("notebooks", tmp_path / "mine")
    assert (again.exit_code, "exists; name a new folder" in again.stderr) == (2, True)


def test_the_models_are_listed_with_their_question() -> None:
    assert "social" in run_command("list").stdout
    assert "BROKEN" not in run_command("list").stdout


def test_a_run_prints_some_of_what_is_said_unless_it_is_quiet() -> None:
    chosen = ("--set", "config=debate", "--set", "people_play=false")
    words = ("run", "discussion", *chosen, "--llm", "rule", "--rng", 1, "--steps", 4)
    lines = run_command(*words).stdout.splitlines()
    said = [line for line in lines if re.match(r"  \w+: “.+”$", line)]
    assert 0 < len(said) <= 12
    assert all(len(line) <= 200 for line in said)
    assert any(re.match(r"step \d", line) for line in lines)
    assert "“" not in run_command(*words, "--quiet").stdout.partition("steps")[0]


def test_a_run_tells_one_json_object_at_the_end() -> None:
    run = figures_of("run", "social", "--steps", 3, "--rng", 1, "--set", "n_agents=5")
    assert set(run) == FIELDS
    assert (run["model"], run["steps"], run["decisions"], run["calls"]) == ("social", 3, 15, 0)


def test_a_run_of_a_file_goes_to_its_end(tmp_path) -> None:
    file = tmp_path / "talk.json"
    persons = [{"class": "person", "name": name, "background_story": ""} for name in "AB"]
    talk = {"host": {"class": "Round Robin Host", "start_person_index": 0}, "experiment": {"scenario": "A room"}}
    end = {"class": "iteration", "max_num_msgs": 13}
    file.write_text(json.dumps({"persons": persons, "endType": end, **talk}))
    run = figures_of("run", "discussion", "--config", file, "--rng", 1)
    assert (run["steps"], run["ended"], run["results"]["messages"]) == (13, True, 13)
    assert "13 steps: the model ended by itself" in run_command("run", "discussion", "--config", file).stdout
    assert figures_of("run", "discussion", "--config", file, "--steps", 2)["steps"] == 2
    for words, fault in {
        ("social", "--config", str(file)): "SocialModel takes no --config",
        ("discussion", "--config", str(file), "--set", "config=debate"): "--set gives another one, 'debate'",
        (
            "discussion",
            "--config",
            "nowhere.json",
        ): "config=nowhere.json: wanted one of debate, debate_guns, debate_climate, trolley, or a file",
    }.items():
        refused = run_command("run", *words)
        assert (refused.exit_code, fault in refused.stderr) == (2, True)


def test_a_run_without_json_says_in_words_what_happened(tmp_path) -> None:
    done = run_command("run", "social", "--steps", 2, "--rng", 1, "--log", tmp_path / "run.sqlite")
    assert "What happened" in done.stdout
    assert str(tmp_path / "run.sqlite") in done.stdout
    assert f"mesa-llm view {tmp_path / 'run.sqlite'}" in done.stdout


def test_the_version_is_printed() -> None:
    assert run_command("--version").stdout == f"mesa-llm-worlds {__version__}\n"


def test_run_without_a_seed_prints_a_seed_that_reproduces_it() -> None:
    first = figures_of("run", "social", "--steps", 2)
    again = run_command("run", "social", "--steps", 2, "--rng", first["seed"])
    assert f"seed: {first['seed']} (to repeat the run: --rng {first['seed']})" in again.stdout
    assert first["digest"] in again.stdout


def test_what_a_model_measures_is_written_as_csv_one_row_a_step(tmp_path) -> None:
    run = figures_of("run", "social", "--steps", 3, "--rng", 1, "--csv", tmp_path / "measures.csv")
    table = pandas.read_csv(tmp_path / "measures.csv")
    assert list(table["step"]) == [0, 1, 2, 3]
    assert table["posts"].iloc[-1] == run["results"]["posts"]


@pytest.mark.parametrize("name", ["nowhere/measures.csv", ".", "run.sqlite"])
def test_a_csv_file_that_cannot_be_is_refused_before_the_run(name, tmp_path) -> None:
    done = run_command("run", "social", "--csv", tmp_path / name, "--log", tmp_path / "run.sqlite")
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


class Over(PotModel):
    """Has ended before it begins."""

    def __init__(self, **options) -> None:
        super().__init__(1, **options)
        self.running = False


def test_a_model_that_has_ended_before_its_first_step_is_an_error() -> None:
    with pytest.raises(ConfigError, match="'over' has ended before its first step"):
        run_model("over", Over(), 3, as_json=True, say=print)


def test_a_model_that_ends_by_itself_says_so() -> None:
    done = run_command("run", "auction_arena", "--steps", 500, "--rng", 1, "--set", "n_agents=2")
    assert " of 500: the model ended by itself" in done.stdout
    assert figures_of("run", "auction_arena", "--steps", 500, "--rng", 1, "--set", "n_agents=2")["ended"]


def test_a_recorded_run_is_replayed_inspected_and_gone_on_with(tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    command = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=4", "--log", log]
    with FaultyServer() as server:
        first = figures_of(*command, "--steps", 2, "--api-base", server.url)
        longer = figures_of(*command, "--steps", 3, "--api-base", server.url)
    assert (longer["replayed"], longer["calls"]) == (first["calls"], longer["decisions"] - 8)
    again = figures_of("replay", log)
    assert (again["digest"], again["calls"], again["replayed"]) == (longer["digest"], 0, 12)
    assert again["model"] == longer["model"] == "social"
    assert "prompt" in run_command("inspect", log, "--calls", "--csv").stdout
    assert "stub" in run_command("inspect", log, "--usage").stdout
    assert "social" in run_command("inspect", log).stdout
    assert len(run_command("inspect", log, "--decisions", "--agent", 2, "--csv").stdout.splitlines()) == 4
    assert (
        run_command("inspect", log, "--usage", "--agent", 2, "--csv")
        .stdout.splitlines()[1]
        .startswith("stub@http://127")
    )


def test_a_replay_says_from_which_step_on_it_differs(tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    assert run_command("run", "social", "--rng", 1, "--steps", 3, "--log", log).exit_code == 0
    assert figures_of("replay", log)["differs_from"] is None
    with closing(sqlite3.connect(log)) as file, file:
        file.execute("UPDATE steps SET digest = 'another' WHERE time >= 2")
    done = run_command("replay", log)
    assert done.exit_code == 1
    assert "\ndiffers from step 2 on: recorded another, now " in done.stdout


def test_a_scenario_of_a_recorded_run_is_built_again_for_its_replay(tmp_path) -> None:
    made = SocialModel(scenario=SocialScenario(n_agents=5, rng=3), llm="random", log=tmp_path / "run.sqlite")
    made.run_for(2)
    made.close()
    assert figures_of("replay", tmp_path / "run.sqlite")["digest"] == made.runlog.digest


def test_a_run_whose_scenario_had_no_seed_gets_one_and_is_replayed(tmp_path) -> None:
    model = SocialModel(scenario=SocialScenario(n_agents=5), log=tmp_path / "run.sqlite")
    model.run_for(1)
    model.close()
    assert figures_of("replay", tmp_path / "run.sqlite")["digest"] == model.runlog.digest


def weigh() -> int:
    """Weigh the pot."""
    return 3


async def generous(agent, seen):
    """Think twice."""
    await agent.decide(seen)
    return await agent.decide(seen)


@pytest.mark.parametrize("decide", [None, generous])
def test_a_run_with_a_design_is_replayed(decide, tmp_path) -> None:
    design = AgentDesign(llm=honest(), settings={"temperature": 0.2}, memory="window:2", tools=(weigh,), decide=decide)
    made = PotModel(3, rng=1, log=tmp_path / "run.sqlite", design=design)
    made.run_for(2)
    made.close()
    again = figures_of("replay", tmp_path / "run.sqlite", "--trust")
    assert (again["digest"], again["calls"]) == (made.runlog.digest, 0)
    assert again["replayed"] == made.usage.calls > 0


class Ann(ScriptedLLM):
    """A person, who is asked for no reasoning."""

    name = "ann"
    is_person = True


@pytest.mark.parametrize("noted", [None, [1], {"ann": 1}, {"ann": {"is_person": 1}}])
def test_a_person_of_somebodys_own_is_one_in_the_replay_by_its_name(noted, tmp_path) -> None:
    made = PotModel(3, Ann(honest_reply), rng=1, log=tmp_path / "run.sqlite", reasoning="inline")
    made.run_for(2)
    made.close()
    again = figures_of("replay", tmp_path / "run.sqlite", "--trust")
    assert (again["digest"], again["replayed"]) == (made.runlog.digest, 6)
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file, file:
        file.execute("UPDATE manifest SET value = ? WHERE name = 'capabilities'", [json.dumps(noted)])
    damaged = run_command("replay", tmp_path / "run.sqlite", "--trust")
    assert (damaged.exit_code, "recorded" in damaged.stderr) == (2, True)


def test_results_and_what_each_purpose_used_are_told_as_json(tmp_path) -> None:
    run = figures_of("run", "social", "--steps", 2, "--rng", 1, "--set", "n_agents=3")
    assert isinstance(run["results"]["posts"], int)
    with FaultyServer() as server:
        command = ["--llm", "stub", "--api-base", server.url, "--set", "n_agents=3", "--rng", 1, "--steps", 1]
        run = figures_of("run", "social", *command)
    assert run["failures_by_purpose"] == {"decide": 0}
    assert run["usage_by_purpose"]["decide"]["calls"] == run["calls"] == 3


class Odd(PotModel):
    """Has results that JSON cannot hold."""

    def results(self):
        return {"gini": math.nan, "shares": numpy.array([1.5, math.inf]), "names": {"b", "a"}, "n": numpy.int64(3)}


class Unfinished(PotModel):
    """Has no results yet."""

    def results(self):
        raise ZeroDivisionError("no trades")


def test_results_that_json_does_not_know_are_told_all_the_same() -> None:
    results = [summary("odd", kind(1, rng=1), 0.1)["results"] for kind in (Odd, Unfinished)]
    assert results[0] == {"gini": None, "shares": [1.5, None], "names": ANY, "n": 3}
    assert results[1] == {}


def test_reasoning_length_parser_and_design_are_options_of_a_run(tmp_path) -> None:
    design = tmp_path / "design.json"
    design.write_text('{"settings": {"temperature": 0.25}, "style": "short"}')
    command = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=2", "--steps", 1]
    command += ["--reasoning", "first", "--reply-tokens", 77, "--design", design]
    with FaultyServer() as server, FaultyServer() as other:
        first = figures_of(
            *command, "--parser", f"form@{other.url}", "--api-base", server.url, "--log", tmp_path / "run.sqlite"
        )
        bodies = [request.body for request in server.requests]
        forms = [request.body["model"] for request in other.requests]
    assert (first["decisions"], len(bodies), forms) == (2, 2, ["form", "form"])
    assert {(body["max_tokens"], body["temperature"]) for body in bodies} == {(77, 0.25)}
    assert all("How you write: short" in str(body["messages"]) and "tools" not in body for body in bodies)
    assert figures_of("replay", tmp_path / "run.sqlite")["digest"] == first["digest"]


def test_a_run_goes_on_at_a_new_address_when_it_is_told_so(tmp_path) -> None:
    command = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=2", "--log", tmp_path / "run.sqlite"]
    with FaultyServer() as server:
        figures_of(*command, "--steps", 1, "--api-base", server.url)
    with FaultyServer() as server:
        refused = run_command(*command, "--steps", 2, "--api-base", server.url)
        run = figures_of(*command, "--steps", 2, "--api-base", server.url, "--allow-new-endpoint")
    assert (refused.exit_code, "--allow-new-endpoint" in refused.stderr) == (2, True)
    assert (run["calls"], run["replayed"]) == (2, 2)


@pytest.mark.parametrize(
    ("text", "fault"),
    [("[1]", "JSON object"), ("{", "design.json"), ('{"colour": 1}', "no field 'colour'"), (None, "No such file")],
)
def test_a_design_that_cannot_be_read_is_told_in_one_line(text, fault, tmp_path) -> None:
    file = tmp_path / "design.json"
    if text is not None:
        file.write_text(text)
    done = run_command("run", "social", "--design", file)
    assert (done.exit_code, len(done.stderr.splitlines()), fault in done.stderr) == (2, 1, True)


class Plain(LLMModel):
    """Nobody lives here."""


class Passing(PotModel):
    """Hands on whatever it is given."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)


@pytest.mark.parametrize("make", [Plain, partial(Plain, activation=in_turn), partial(Passing, 2, "random")])
def test_a_model_whose_constructor_names_no_parameters_is_replayed(make, tmp_path) -> None:
    made = make(rng=1, log=tmp_path / "run.sqlite")
    made.run_for(2)
    made.close()
    assert figures_of("replay", tmp_path / "run.sqlite", "--trust")["digest"] == made.runlog.digest


def test_a_run_that_began_with_memories_of_another_life_is_replayed_with_them(tmp_path) -> None:
    life = WindowMemory()
    life.add(MemoryEntry(3, "outcome", "You won.", world="lottery", unit="month"))
    made = PotModel(2, honest(), rng=1, log=tmp_path / "run.sqlite", memories={1: life.to_json()})
    made.run_for(2)
    prompts = made.runlog.calls().query("agent == 1 and time == 1")["prompt"].item()
    made.close()
    assert "In an earlier life in lottery, in month 3 the result was: You won." in prompts
    assert figures_of("replay", tmp_path / "run.sqlite", "--trust")["digest"] == made.runlog.digest
    with pytest.raises(ConfigError, match="memories"):
        PotModel(2, honest(), rng=1, log=tmp_path / "run.sqlite")


@pytest.mark.parametrize(
    "named", ["os:system", "mesa_llm_models.social.model:SocialScenario", "os:nothing", "nowhere:Model"]
)
def test_a_log_can_call_nothing_but_a_model(named, tmp_path) -> None:
    PotModel(rng=1, log=tmp_path / "run.sqlite").run_for(1)
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as file, file:
        file.execute("UPDATE manifest SET value = ? WHERE name = 'model'", [json.dumps(named)])
    for command in ([], ["--trust"]):
        done = run_command("replay", tmp_path / "run.sqlite", *command)
        assert (done.exit_code, len(done.output.splitlines())) == (2, 1)
        assert named in done.output


def loud_module(folder):
    """Write a module that leaves a trace when it is imported; give the trace."""
    text = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n"
    (folder / "loudmodule.py").write_text(text + TINY + "class Fields:\n    pass\n")
    return folder / "imported"


@pytest.mark.parametrize("where", ["model", "scenario", "decide", "memory", "tools"])
def test_a_replay_imports_nothing_that_is_not_listed_unless_it_is_trusted(where, tmp_path, import_path) -> None:
    trace = loud_module(tmp_path)
    import_path(tmp_path)
    log = tmp_path / "run.sqlite"
    figures_of("run", "social", "--rng", 1, "--steps", 1, "--set", "n_agents=2", "--log", log)
    named = ["loudmodule:Fields"] if where == "tools" else "loudmodule:Fields"
    design = {"design": {"design": {where: named}}}
    scenario = {"scenario": {"scenario": named, "fields": {"rng": 1}}}
    value = {"model": "loudmodule:Tiny", "scenario": scenario}.get(where, design)
    with closing(sqlite3.connect(log)) as file, file:
        place = "model" if where == "model" else "parameters"
        file.execute("UPDATE manifest SET value = ? WHERE name = ?", [json.dumps(value), place])
    done = run_command("replay", log)
    assert (done.exit_code, len(done.stderr.splitlines()), trace.exists()) == (2, 1, False)
    assert "loudmodule" in done.stderr
    assert "--trust" in done.stderr
    run_command("replay", log, "--trust")
    assert trace.exists()


def test_a_changed_prompt_stops_a_replay_and_shows_the_difference(tmp_path, monkeypatch) -> None:
    log = tmp_path / "run.sqlite"
    with FaultyServer() as server:
        figures_of(
            "run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=3", "--log", log, "--api-base", server.url
        )
    monkeypatch.setattr(SocialModel, "instructions_text", "You write to each other on paper.")
    done = run_command("replay", log)
    assert done.exit_code == 2
    assert "+system: " in done.output
    assert "on paper" in done.output


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (["run", "nothing"], "there is no model 'nothing'; there are: "),
        (["run", "berries/model.py"], "is a file; a model of your own is MODULE:CLASS, as model:MyModel"),
        (["run", "socail"], "wolf_sheep; did you mean social?"),
        (["run", "my.model"], "one of your own is MODULE:CLASS, such as my_model:MyModel"),
        (["run", "social", "--set", "agents=3"], "; did you mean n_agents?"),
        (["run", "social", "--rng", "-1"], "--rng -1: a seed is 0 or a positive whole number"),
        (["run", "social", "--steps", "-1"], "'--steps': Input should be greater than or equal to 0"),
        (["run", "social", "--stepz", "1"], "No such option: --stepz"),
        (["rum"], "No such command 'rum'"),
        (["sweep", "social", "--vary", "rng=1,2"], "; the seed is --rng, and a sweep has --seeds"),
        (["run", "social", "--set", "colour=red"], "expected name=value, where name is one of n_agents"),
        (["run", "social", "--set", "n_agents=many"], "--set n_agents=many: input should be a valid integer"),
        (["run", "social", "--set", "n_agents=true"], "--set n_agents=true: input should be a valid integer"),
        (["run", "social", "--users", "nowhere.csv"], "no file 'nowhere.csv'"),
        (["run", "social", "--on-error", "cry"], "on_error: input should be 'skip'"),
        (["run", "social", "--max-calls", "0"], "--max-calls 0: a budget must be above 0"),
        (["run", "social", "--llm", "stub", "--max-dollars", "nan"], "--max-dollars nan: a budget must be above 0"),
        (["run", "three_worlds", "--set", "shocks=5"], "this is a list, written as JSON: --set 'shocks=[…]'"),
        (["run", "three_worlds", "--set", "variables=5"], "this is a mapping, written as JSON"),
        (["replay", "nowhere.sqlite"], "record a run with log= (--log) first"),
        (["inspect", "nowhere.sqlite"], "no run log"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_told_in_one_line_and_exits_with_2(command, fault, tmp_path) -> None:
    done = run_command(*command)
    assert done.exit_code == 2
    assert fault in done.output
    assert len(done.output.splitlines()) == 1


KEYED = [
    ("http://ann:pass-word@127.0.0.1:9/v1", "a user or password"),
    ("http://127.0.0.1:9/v1?api-version=2&api-key=pass-word", "a key in its query"),
    ("http://127.0.0.1:9/sk-pass-word/v1", "a key in its path"),
    ("http://127.0.0.1:9/v1/pass-word/0123456789abcdef0123", "a key in its path"),
    ("http://127.0.0.1:9/v1/my-pass-word", "a key of the environment"),
]


@pytest.mark.parametrize(
    "command", ["--api-base {}", "--llm m@{}", "--parser m@{}", "--set judge=m@{}", '--set j=["m@{}"]']
)
@pytest.mark.parametrize(("address", "found"), KEYED)
def test_a_key_on_the_command_line_is_refused_and_not_repeated(command, address, found, monkeypatch) -> None:
    monkeypatch.setenv("MESA_LLM_API_KEY", "my-pass-word")
    done = run_command("run", "social", "--steps", 1, *(word.format(address) for word in command.split()))
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert all(wanted in done.stderr for wanted in (found, "MESA_LLM_API_KEY", "mesa-llm.toml", "key_env"))
    assert "pass-word" not in done.output
    assert "0123456789" not in done.output


@pytest.mark.parametrize("bad", ["ann:pass-word@127.0.0.1/v1", "http://ann:pass-word@[bad", "sk-pass-word-typed"])
def test_a_key_in_what_is_no_address_is_not_repeated_either(bad) -> None:
    done = run_command("run", "social", "--llm", "m", "--api-base", bad)
    assert (done.exit_code, "pass-word" in done.output) == (2, False)


@pytest.mark.parametrize(
    "address",
    [
        "https://me.openai.azure.com/openai/deployments/gpt-4o-mini-2024-07-18?api-version=2024-02-15-preview",
        "https://router.huggingface.co/hf-inference/models/meta-llama/Llama-3.1-405B-Instruct/v1",
        "http://[::1]:8000/3f2504e0-4f89-11d3-9a0c-0305e82c3301/v1",
    ],
)
def test_an_address_without_a_key_is_taken(address) -> None:
    assert secret_in(address) == ""


def test_a_spent_budget_exits_with_3_and_can_be_gone_on_with(tmp_path) -> None:
    command = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=4", "--steps", 2]
    command += ["--log", tmp_path / "run.sqlite"]
    with FaultyServer() as server:
        poor = run_command(*command, "--api-base", server.url, "--max-calls", 5, "--json")
        assert poor.exit_code == 3
        assert "5 calls" in poor.output
        rich = figures_of(*command, "--api-base", server.url, "--max-calls", 50)
    so_far = json.loads(poor.stdout.splitlines()[-1])
    assert set(so_far) == FIELDS
    assert (so_far["steps"], so_far["calls"], so_far["decisions"], rich["replayed"]) == (1, 5, 5, 5)


def test_a_budget_is_that_of_one_command_and_replies_from_the_log_are_free(tmp_path) -> None:
    command = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=4", "--steps", 2]
    command += ["--log", tmp_path / "run.sqlite", "--max-calls", 4]
    with FaultyServer() as server:
        assert run_command(*command, "--api-base", server.url).exit_code == 3
        again = figures_of(*command, "--api-base", server.url)
    assert (again["steps"], again["calls"], again["replayed"]) == (2, 4, 4)


@pytest.mark.parametrize(
    ("option", "end"), [("log", "run the same command with the same --log"), ("out", "--out"), ("rng", "interrupted")]
)
def test_an_interrupted_command_says_with_which_option_it_goes_on(option, end, tmp_path, capsys) -> None:
    @exits
    def command(**options: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit):
        command(**{option: tmp_path})
    assert capsys.readouterr().err.endswith(f"{end}\n")


def test_interrupted_command_without_json_prints_where_complete_results_are(tmp_path, capsys) -> None:
    @exits
    def command(*, has_spoken: bool, **options: object) -> None:
        if has_spoken:
            say("{}")
        raise KeyboardInterrupt

    for has_spoken in (False, True):
        with pytest.raises(typer.Exit):
            command(has_spoken=has_spoken, out=tmp_path, as_json=True)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"interrupted": True, "out": str(tmp_path)},
        {},
    ]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_sigterm_exits_with_130_and_the_same_command_goes_on(sent, tmp_path) -> None:
    command = ["-m", "mesa_llm.cli.app", "run", "social", "--llm", "stub", "--rng", "1", "--steps", "2", "--json"]
    command += ["--set", "n_agents=4", "--log", str(tmp_path / "run.sqlite"), "--concurrency", "1"]
    with FaultyServer(latency_s=0.2) as server:
        command += ["--api-base", server.url]
        interrupted = Python(*command)
        while server.count < 3 and interrupted.poll() is None:
            time.sleep(0.01)
        interrupted.send_signal(sent)
        assert interrupted.wait(250) == 130
        left = [file.name for file in tmp_path.iterdir()]
        again = figures_of(*command[2:])
    assert set(json.loads(interrupted.out.splitlines()[-1])) == FIELDS
    assert "to resume, run the same command" in interrupted.err
    assert left == ["run.sqlite"]
    assert again["replayed"] >= 2


def test_a_dead_endpoint_exits_with_4_and_says_why(tmp_path) -> None:
    command = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=3", "--steps", 1]
    command += ["--log", tmp_path / "run.sqlite"]
    dead = run_command(*command, "--api-base", "http://127.0.0.1:9/v1", "--json")
    assert (dead.exit_code, json.loads(dead.stdout.splitlines()[-1])["failures"]) == (4, 3)
    assert "none of the 3 decisions succeeded" in dead.stderr
    assert "Failed to connect" in json.loads(dead.stdout.splitlines()[-1])["warning"]
    assert "--retry-failures" in dead.stderr
    with FaultyServer() as server:
        assert figures_of(*command, "--api-base", server.url, "--retry-failures")["failures"] == 0


def test_a_step_in_which_most_decisions_failed_is_said_in_words_and_in_figures() -> None:
    def fails_in_step_2(request):
        return BadReply("down") if request.salt.time == 2 and request.salt.agent != 1 else honest_reply(request)

    lines, warnings = [], []
    model = PotModel(3, ScriptedLLM(fails_in_step_2), rng=1, attempts=1)
    figures = run_model("pot", model, 3, as_json=False, say=lines.append, warn=warnings.append, is_live=True)
    assert figures["failed_steps"] == [{"step": 2, "decisions": 3, "failures": 2}]
    assert [line.partition(": down")[0] for line in warnings] == ["step 2: 2 of 3 decisions failed"]
    assert figures["warning"].startswith("2 of 9 decisions failed, more than half of them in 1 step of 3. The first")
    assert f"WARNING: {figures['warning']}" in lines


def test_reason_for_a_run_without_decisions_ends_with_one_full_stop() -> None:
    model = PotModel(1, ScriptedLLM(lambda request: "nonsense"), rng=1)
    with pytest.raises(AllDecisionsFailed, match=r"names no action\. Check --llm"):
        run_model("pot", model, 1, as_json=False, say=print, warn=print, is_live=True)


def test_a_few_failures_are_no_warning() -> None:
    model = PotModel(3, ScriptedLLM(lambda r: BadReply("down") if r.salt.agent == 1 else honest_reply(r)), rng=1)
    figures = run_model("pot", model, 2, as_json=True, say=print, is_live=True)
    assert (figures["failures"], figures["warning"], figures["failed_steps"]) == (2, None, [])


def test_a_changed_prompt_stops_a_resumed_run_until_it_is_told_to_ask_again(tmp_path, monkeypatch) -> None:
    with FaultyServer() as server:
        command = ["run", "social", "--llm", "stub", "--rng", 1, "--set", "n_agents=3", "--api-base", server.url]
        command += ["--log", tmp_path / "run.sqlite", "--steps", 2]
        figures_of(*command)
        monkeypatch.setattr(SocialModel, "instructions_text", "You write to each other on paper.")
        stopped, n_requests = run_command(*command), server.count
        again = figures_of(*command, "--ask-again")
    assert (stopped.exit_code, n_requests, again["calls"]) == (2, 6, 6)
    assert "--ask-again" in stopped.stderr


def test_a_broken_model_is_listed_and_named_when_it_is_run_and_by_doctor(installed) -> None:
    installed(
        "bad = badmodels\nworse = not_there\nmute = badmodels.loud:Nobody\n",
        {"badmodels/sad/model.py": "import no_such_package", "badmodels/loud/model.py": "import sys; sys.exit('bye')"},
    )
    listed = run_command("list")
    assert listed.exit_code == 0
    assert {"sad", "loud", "social", "worse", "mute"} <= {line.split()[0] for line in listed.stdout.splitlines()}
    faults = {
        "sad": "no_such_package",
        "worse": "not_there",
        "loud": "SystemExit: bye",
        "mute": "Nobody cannot be found",
    }
    for name, fault in faults.items():
        broken = run_command("run", name)
        assert (broken.exit_code, fault in broken.stderr) == (2, True)
    assert figures_of("run", "social", "--steps", 1)["steps"] == 1
    assert set(json.loads(run_command("doctor", "--json").stdout)["broken_models"]) == set(faults)


def test_the_models_are_listed_without_importing_one() -> None:
    code = "import sys; from mesa_llm.cli.app import app; app(['list'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *lines, modules = done.stdout.splitlines()
    assert ["market", "Do"] in [line.split()[:2] for line in lines]
    assert not {"mesa", "numpy", "mesa_llm.model", "mesa_llm_models"} & set(modules.split())


def test_help_lists_commands_without_importing_them_and_hides_no_option() -> None:
    code = "import sys; from mesa_llm.cli.app import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Find the parameters with which a model follows observed series" in done.stdout
    assert not {"mesa", "numpy", "mesa_llm.cli.calibrate"} & set(done.stdout.split())
    assert (run_command("rum").exit_code, "--yes" in run_command("trust", "--help").stdout) == (2, True)


TINY = '''
from mesa_llm import LLMModel
class Tiny(LLMModel):
    """Does nothing happen?

    Nothing does.
    """
'''


@pytest.mark.parametrize("value", ["tinypkg", "tinypkg.model:Tiny", "tinypkg.model : Tiny", "tinymodule:Tiny"])
def test_a_model_of_another_package_goes_by_the_name_of_its_entry_point(value, installed) -> None:
    installed(f"hello-you = {value}\n", {"tinypkg/model.py": TINY, "tinymodule.py": TINY})
    assert ["hello-you", "Does nothing happen?"] in [
        line.split(None, 1) for line in run_command("list").stdout.splitlines()
    ]
    assert figures_of("run", "hello-you", "--steps", 1)["model"] == "hello-you"
    assert not find_model("hello_you").has_page


def test_a_step_of_many_agents_is_not_counted_anew_for_each_of_them() -> None:
    looks = []

    class Crowd(PotModel):
        @property
        def due(self):
            looks.append(1)
            return super().due

    run_model("crowd", Crowd(n_agents=100, rng=1), 3, as_json=True, say=lambda line: None)
    assert len(looks) < 10


def test_check_prints_a_line_per_promise_and_exits_1_on_failure() -> None:
    done = run_command("check", "tests.pot:PotModel")
    lines = [line.split(":")[0].split() for line in done.stdout.splitlines()]
    assert [name for state, name in lines if state == "BROKEN"] == ["has_page", "has_readme"]
    assert [name for _, name in lines] == list(CHECKS)
    assert (done.exit_code, done.stderr) == (1, "mesa-llm: tests.pot:PotModel breaks 2 of its promises\n")


def test_a_model_that_raises_breaks_its_promises_and_ends_no_check(tmp_path, import_path) -> None:
    (tmp_path / "falling.py").write_text(TINY + "    def end_step(self):\n        1 / 0\n")
    import_path(tmp_path)
    done = run_command("check", "falling:Tiny")
    assert "BROKEN  runs_offline: ZeroDivisionError: division by zero" in done.stdout
    assert "has_page" not in done.stdout


def test_a_run_of_a_model_in_the_working_directory_is_replayed_as_it_says(tmp_path, monkeypatch) -> None:
    (tmp_path / "tiny_here.py").write_text(TINY)
    monkeypatch.chdir(tmp_path)
    hint = "replay run.sqlite --trust"
    for command in ("run tiny_here:Tiny --steps 1 --log run.sqlite", hint):
        monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tmp_path)])
        monkeypatch.delitem(sys.modules, "tiny_here", raising=False)
        done = run_command(*command.split())
        assert done.exit_code == 0
    assert hint in done.stdout
    assert done.stdout.splitlines()[-1].startswith("identical: ")


def test_a_model_that_is_not_listed_is_run_by_its_module_and_class() -> None:
    assert figures_of("run", "tests.pot:PotModel", "--steps", 1)["model"] == "PotModel"
    done = run_command("run", "tests.pot:Nobody")
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)


@pytest.fixture
def installed(tmp_path, import_path):
    """Put a package with entry points of our group, and Python files, on the import path for one test."""

    def install(entry_points: str, files: dict[str, str]) -> None:
        info = tmp_path / "others-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[mesa_llm.models]\n{entry_points}")
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            for folder in list(file.relative_to(tmp_path).parents)[:-1]:
                (tmp_path / folder / "__init__.py").touch()
            file.write_text(text)
        import_path(tmp_path)

    return install


@pytest.fixture
def import_path(request):
    """Put a folder on the import path for one test."""

    def put(folder) -> None:
        sys.path.insert(0, str(folder))
        request.addfinalizer(lambda: sys.path.remove(str(folder)))
        request.addfinalizer(lambda: [sys.modules.pop(name) for name in _modules_in(folder)])

    return put


def _modules_in(folder) -> list[str]:
    return [name for name, module in sys.modules.items() if str(folder) in str(getattr(module, "__file__", ""))]


def test_a_dry_run_says_what_a_run_would_cost_and_asks_nobody(tmp_path) -> None:
    with FaultyServer() as server:
        words = ["run", "social", "--llm", f"m@{server.url}", "--steps", 2, "--set", "n_agents=5", "--rng", 1]
        words += ["--log", tmp_path / "run.sqlite", "--inject", "2: It snows.", "--dry-run"]
        text = run_command(*words, "--max-calls", 3).stdout
        figures = figures_of(*words, "--design", "vote:3")
        assert server.count == 0
    assert not list(tmp_path.iterdir())
    assert "An estimate, for which nothing was sent" in text
    assert "litellm has no price for m@" in text
    assert "--max-calls 3 would end this run early: it needs 10 or more." in text
    assert (figures["total"]["requests"], figures["decisions"]) == (30, 10)


def test_a_dry_run_by_rule_costs_nothing() -> None:
    assert "costs nothing" in run_command("run", "social", "--steps", 1, "--set", "n_agents=3", "--dry-run").stdout


def test_news_is_brought_in_before_its_step_and_once(tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    words = ["run", "social", "--set", "n_agents=3", "--rng", 1, "--steps"]
    news = ["--inject", "2: It snows.", "--inject", '4:{"kind": "news", "text": "It thaws."}']
    first = figures_of(*words, 3, "--log", log, *news)
    assert figures_of(*words, 3, "--log", log, *news)["digest"] == first["digest"]
    whole = figures_of(*words, 5, "--log", log, *news)
    assert figures_of(*words, 5, *news)["digest"] == whole["digest"]
    assert figures_of("replay", log)["digest"] == whole["digest"]
    assert list(run_command("inspect", log, "--events", "--csv").stdout.splitlines())[1].startswith("2,")
    late = run_command(*words, 6, "--log", log, "--inject", "3: It hails.")
    assert (late.exit_code, "step 3 is over without this" in late.stderr) == (2, True)


@pytest.mark.parametrize("text", ["It snows.", "0: It snows.", "x: It snows.", "3:", "2:{"])
def test_an_intervention_without_a_step_or_text_is_refused(text) -> None:
    done = run_command("run", "social", "--inject", text)
    assert (done.exit_code, "--inject" in done.stderr) == (2, True)


def test_a_run_in_batches_shows_how_far_they_are(tmp_path) -> None:
    with BatchServer() as server:
        words = ["run", "social", "--llm", "m", "--api-base", server.url, "--batch", "--steps", 1, "--rng", 1]
        result = run_command(*words, "--set", "n_agents=3", "--log", tmp_path / "run.sqlite")
        assert server.sizes == [3]
    assert "batch batch_1: 3 of 3 done" in result.stderr


def test_a_dry_run_in_batches_says_so() -> None:
    words = ["run", "social", "--llm", "gpt-4o-mini", "--batch", "--steps", 1, "--set", "n_agents=3", "--dry-run"]
    assert "Prices are those of the provider's batches." in run_command(*words).stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_an_error_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "mesa_llm.cli.app", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the output cannot be written" in done.stderr
