"""Commands that open pages: what they refuse before anything is served."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from tests.browser.apps.village import Hamlet

HAMLET = "tests.browser.apps.village:Hamlet"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["classroom", "no_such_model"], "there is no model 'no_such_model'"),
        (["classroom", HAMLET, "--agents", "1,two"], "--agents 1,two: expected numbers of agents separated by commas"),
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
