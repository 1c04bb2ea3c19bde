"""What commands make of a log whose decisions were changed by hand, which none of them passes over."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm import ScriptedLLM
from mesa_llm.cli.app import app
from mesa_llm.llm.replies import call
from tests.pot import PotModel

CHANGED = "holds something else than its replies give (decisions.text, step 1, agent 1: "
NOT_CHECKED = "not checked against the recorded replies; to check: mesa-llm replay "


@pytest.fixture
def log(tmp_path: Path) -> Path:
    model = PotModel(10, ScriptedLLM(lambda request: call("pay", coins=request.salt.agent)), rng=1, log=tmp_path / "a")
    model.run_for(3)
    model.close()
    return tmp_path / "a"


def change(log: Path) -> None:
    with closing(sqlite3.connect(log)) as database, database:
        database.execute("UPDATE decisions SET text = 'forged' WHERE time = 1 AND agent = 1")


def typed(command: str, log: Path) -> Any:
    folder = log.parent
    (folder / "people.csv").write_text("coins\n3\n4\n")
    places = {"LOG": log, "OUT": folder / "out", "MIND": folder / "mind.json", "PEOPLE": folder / "people.csv"}
    return CliRunner().invoke(app, [str(places.get(word, word)) for word in command.split()])


REPEATED = ["report LOG --trust", "export LOG --out OUT --trust", "distill LOG --out MIND --trust"]


@pytest.mark.parametrize("command", REPEATED)
def test_output_made_from_replies_warns_if_the_log_was_changed(
    command: str, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = typed(command, log)
    assert (whole.exit_code, caplog.text) == (0, ""), whole.output
    change(log)
    assert typed(command, log).exit_code == 0
    assert CHANGED in caplog.text


@pytest.mark.parametrize(
    "command", ["inspect LOG", "inspect LOG --decisions", "people PEOPLE LOG", "branch LOG --from-step 1 --trust"]
)
def test_what_is_read_from_a_log_says_that_it_was_not_checked(command: str, log: Path) -> None:
    done = typed(command, log)
    assert done.exit_code == 0, done.output
    assert f"{NOT_CHECKED}{log}" in done.output
