"""Every command that asks a language model has every option of a run, and the option reaches the run."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import mesa_llm.cli
from mesa_llm.cli.app import app
from mesa_llm.cli.options import NOT_TYPED
from mesa_llm.engine.options import AccessOptions, RunOptions
from mesa_llm.runlog.log import RunLog
from tests.faulty_server import SERVER_ERROR, FaultyServer
from tests.pot import PotModel

OWN = RunOptions.model_fields.keys() - AccessOptions.model_fields.keys() - NOT_TYPED.keys()
"""Options of a run besides those of its access to language models."""

LACKING: dict[str, set[str]] = {
    "audit": {"light", "reasoning"},  # it reads the logs; how agents reason is what it varies
    "bench": {"light"},  # scores and costs are read from the logs
    "branch": OWN - {"labels", "allow_new_endpoint"},  # the steps up to the fork are the parent's
    "doctor": OWN - {"scoring"},  # single answers are compared, and no log is kept
    "app": OWN,  # its pages choose for each run
    "classroom": OWN,  # as app; and --timeout-s is the time that a student has
    "report": OWN,  # asks once, about a run that is over
    "extract": OWN,  # asks once or twice, about a text
    "distill": OWN | set(AccessOptions.model_fields) - NOT_TYPED.keys(),  # replays; --llm names who decided
}
"""Command → options that it lacks, for the reason beside it."""


def test_a_command_that_asks_a_language_model_has_every_option_of_a_run() -> None:
    group: Any = get_command(app)
    commands = {name: group.get_command(None, name) for name in group.list_commands(None)}
    flags = {name: {flag for one in command.params for flag in one.opts} for name, command in commands.items()}
    wanted = {name: f"--{name.replace('_', '-')}" for name in RunOptions.model_fields if name not in NOT_TYPED}
    asking = sorted(name for name, own in flags.items() if "--llm" in own or name == "app")
    lacking = {name: {one for one, flag in wanted.items() if flag not in flags[name]} for name in asking}
    assert {name: options for name, options in lacking.items() if options} == LACKING


POT = "tests.pot:PotModel"
MANY = "--seeds 1 --workers 1 --out OUT"
COMMANDS = {
    "run": f"run {POT} --rng 1 --steps 1 --log OUT/run.sqlite",
    "sweep": f"sweep {POT} --vary n_agents=2 --steps 1 {MANY}",
    "calibrate": f"calibrate {POT} OUT.csv --fit n_agents=1:2 --points 20 --search 0 --hold-out 0.5 {MANY}",
    "power": f"power {POT} --measure coins --smallest-effect 1 --steps 1 --seeds 4 --workers 1 --out OUT",
    "sensitivity": f"sensitivity {POT} --vary n_agents=1:9 --method morris --points 3 --steps 3 {MANY}",
    "study": "study classics persona_form --set rounds=1 --seeds 1 --out OUT",
    "audit": "audit prisoners_dilemma --measure cooperation --smallest-effect 0.1 --seeds 2 --dimensions format "
    "--no-awareness --set guests=2 --set regulars=false --set rounds=2 --out OUT",
    "bench": "bench tests.experiments.benchmark.pots:POT --repeats 1 --out OUT",
    "branch": "branch OUT.sqlite --trust --from-step 1 --steps 1 --log OUT/run.sqlite",
}
"""Command → its words; OUT stands for a folder."""

LIMITS = {"timeout_s": 7.0, "attempts": 2, "loading_timeout_s": 9.0, "concurrency": 8, "requests_per_min": 6000.0}
LIMITS |= {"tokens_per_min": 900000.0}
OF_THE_RUN = {"on_error": "rule", "reasoning": "none", "reply_tokens": 77, "scoring": "replies", "parser": "random"}


def run_command(name: str, folder: Path, *more: str) -> Any:
    """Run a command with its results in a folder, and with more options."""
    folder.mkdir(exist_ok=True)
    pd.DataFrame({"step": range(1, 5), "coins": [3, 6, 9, 12]}).to_csv(folder.with_suffix(".csv"), index=False)
    parent = folder.with_suffix(".sqlite")
    if not parent.exists():
        with closing(PotModel(2, rng=1, log=parent)) as model:
            model.run_for(2)
    return CliRunner().invoke(app, [*COMMANDS[name].replace("OUT", str(folder)).split(), *more])


def typed(options: dict[str, Any]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]


@pytest.mark.parametrize("name", COMMANDS)
def test_limits_and_options_typed_for_a_command_are_those_of_its_runs(name: str, tmp_path: Path) -> None:
    own = {option: value for option, value in OF_THE_RUN.items() if option not in LACKING.get(name, ())}
    done = run_command(name, tmp_path / "out", "--llm", "random", "--allow-new-endpoint", *typed(LIMITS), *typed(own))
    assert done.exit_code == 0, done.output
    logs = sorted((tmp_path / "out").rglob("*.sqlite"))
    assert logs
    for file in logs:
        with closing(RunLog(file, "read")) as log:
            recorded = log.manifest
        assert {**recorded["options"], **LIMITS, "allow_new_endpoint": True} == recorded["options"], file
        if name != "branch":
            assert {**recorded["parameters"], **own} == recorded["parameters"], file


@pytest.mark.parametrize("name", COMMANDS)
def test_labels_and_a_budget_reach_the_runs_of_a_command(name: str, tmp_path: Path) -> None:
    lost = run_command(name, tmp_path / "out", "--labels", "nowhere.csv")
    assert lost.exit_code != 0
    assert "nowhere.csv" in lost.output
    with FaultyServer() as server:
        poor = run_command(name, tmp_path / "poor", "--llm", f"tiny@{server.url}", "--max-calls", "1")
    assert (poor.exit_code, server.count) == (3, 1), poor.output


@pytest.mark.parametrize("name", ["calibrate", "sweep"])
def test_a_light_experiment_keeps_no_logs(name: str, tmp_path: Path) -> None:
    done = run_command(name, tmp_path / "out", "--light")
    assert done.exit_code == 0, done.output
    assert not list((tmp_path / "out").rglob("*.sqlite"))


@pytest.mark.parametrize("name", ["run", "sweep", "study"])
def test_failures_are_sent_again_if_that_is_asked_for(name: str, tmp_path: Path) -> None:
    with FaultyServer(lambda body, number: SERVER_ERROR if number == 1 else None) as server:
        words = ["--llm", f"tiny@{server.url}", "--attempts", "1"]
        run_command(name, tmp_path / "out", *words)
        n_before = server.count
        run_command(name, tmp_path / "out", *words)
        assert server.count == n_before
        run_command(name, tmp_path / "out", *words, "--retry-failures")
        assert server.count > n_before


def test_no_command_declares_an_option_of_a_run_by_hand() -> None:
    folder = Path(mesa_llm.cli.__file__).parent
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.py")}
    by_hand = {
        (file, name)
        for file, text in texts.items()
        for name in RunOptions.model_fields
        if f"\n    {name}: Annotated[" in text
    }
    servers = {("serve.py", "timeout_s"), ("serve.py", "concurrency")}
    assert by_hand == servers | {("classroom.py", "timeout_s"), ("agreement.py", "labels")}
