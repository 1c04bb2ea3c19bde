"""Commands that open pages: what they refuse before anything is served."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from tests.browser.apps.village import Hamlet
from tests.browser.conftest import serve

HAMLET = "tests.browser.apps.village:Hamlet"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["classroom", "no_such_model"], "there is no model 'no_such_model'"),
        (["classroom", HAMLET, "--agents", "1,two"], "--agents 1,two: expected numbers of agents separated by commas"),
        (["classroom", HAMLET, "--agents", "1,9"], "the model has no agent 9; the agents that decide are: 1, 2, 3, 4"),
        (["classroom", HAMLET, "--set", "n_agent=2"], "--set n_agent=2: expected name=value"),
        (["classroom", HAMLET, "--set", "n_agents=none"], "--set n_agents=none: "),
        (["classroom", HAMLET, "--llm", "human"], "--llm human: students take the seats"),
        (["classroom", HAMLET, "--llm", "main=rule,others=random"], "expected one name for all agents without a seat"),
        (["classroom", HAMLET, "--host", "0.0.0.0"], "--host 0.0.0.0 lets other machines in"),
        (["view", "no_such_file.sqlite"], "no_such_file.sqlite"),
        (["app", "--bench", "no_such_folder"], "--bench no_such_folder: there is no such folder"),
    ],
)
def test_what_cannot_be_opened_is_told_in_a_line(arguments: list[str], fault: str) -> None:
    result = CliRunner().invoke(app, [*arguments, "--no-browser", "--port", "0"])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert fault in result.stderr


def test_a_log_of_a_model_that_is_not_listed_is_opened_with_trust_only(tmp_path: Path) -> None:
    model = Hamlet(rng=1, log=tmp_path / "run.sqlite")
    model.step()
    model.close()
    result = CliRunner().invoke(app, ["view", str(tmp_path / "run.sqlite"), "--no-browser", "--port", "0"])
    assert result.exit_code == 2
    assert "add --trust" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "seating"),
    [
        (["--seats", "2", "--set", "n_agents=5", "--llm", "random"], "3 agents have no seat and think with random"),
        (["--set", "n_agents=5"], "5 seats for 5 agents; empty seats are played by their rule twins; every agent"),
        (["--agents", "2,4"], "2 agents have no seat and think with rule"),
    ],
)
def test_a_class_is_told_how_many_seats_there_are_and_who_decides_elsewhere(
    options: list[str], seating: str, tmp_path: Path
) -> None:
    command = ["mesa_llm.cli.app", "classroom", HAMLET, *options, "--no-browser", "--port", "PORT"]
    with serve(tmp_path, *command, MESA_LLM_APP_TOKEN="a token for the tests") as served:
        assert seating in served.log.read_text()
