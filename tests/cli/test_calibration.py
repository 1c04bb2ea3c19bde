"""Calibrations and sensitivity analyses that are typed: what they print, cost, and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from tests.faulty_server import FaultyServer

POT = "tests.pot:PotModel"


def run_command(*words: Any) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return the coins of six agents, who pay one and a half in a step on average."""
    file = tmp_path / "coins.csv"
    pd.DataFrame({"step": range(1, 6), "coins": [9 * step for step in range(1, 6)]}).to_csv(file, index=False)
    return file


def test_a_calibration_prints_what_it_found(tmp_path: Path, target: Path) -> None:
    words = ["calibrate", POT, target, "--fit", "n_agents=1:12", "--points", 30, "--seeds", 1, "--search", 0]
    words += ["--workers", 1, "--hold-out", 0.4, "--out", tmp_path / "out"]
    found = json.loads(run_command(*words, "--json").stdout)
    (parameter,) = found["parameters"]
    assert parameter["low"] <= 6 <= parameter["high"]
    assert found["n_runs"] == found["n_done"] == 30 + 10 * len({str(fit["parameters"]) for fit in found["fits"]})
    assert found["held_out_steps"] == [4, 5]
    text = run_command(*words).stdout
    assert f"{found['n_runs']} runs, 0 of them new" in text
    first = [line.split()[0] for line in text.splitlines() if line]
    assert first[:5] == ["Calibration", "Parameters", "parameter", "n_agents", "recovered:"]
    assert first[5:10] == ["Errors", "parameters", "defaults", "best", "posterior"]


def test_an_analysis_prints_and_draws_the_indices(tmp_path: Path) -> None:
    words = ["sensitivity", POT, "--vary", "n_agents=1:12", "--points", 4, "--seeds", 1, "--steps", 2]
    words += ["--workers", 1, "--plot", tmp_path / "bars.png", "--out", tmp_path / "out"]
    row, dummy, noise = json.loads(run_command(*words, "--json").stdout)["indices"]
    assert (row["measure"], row["parameter"]) == ("coins", "n_agents")
    assert (dummy["kind"], noise["kind"]) == ("dummy", "noise")
    assert 0 <= noise["ST"] < 0.5
    assert row["ST"] > 0.5
    assert "coins   n_agents" in run_command(*words).stdout
    assert (tmp_path / "bars.png").read_bytes()[:4] == b"\x89PNG"


def test_a_dry_run_says_what_all_runs_would_cost_and_asks_nobody(tmp_path: Path, target: Path) -> None:
    with FaultyServer() as server:
        llm = ["--llm", f"m@{server.url}", "--dry-run", "--out", tmp_path / "out"]
        words = ["calibrate", POT, target, "--fit", "n_agents=1:2", "--points", 30, "--seeds", 2, "--search", 10, *llm]
        found = json.loads(run_command(*words, "--json").stdout)
        text = run_command(*words, "--max-calls", 3).stdout
        one = json.loads(
            run_command("sensitivity", POT, "--vary", "n_agents=1:8", "--points", 4, *llm, "--json").stdout
        )
        assert server.count == 0
    assert not (tmp_path / "out").exists()
    assert found["runs"] == 2 * (30 + 10) + 3 * 10
    assert 5 * found["runs"] < found["total"]["requests"] < 10 * found["runs"]  # one or two agents, five steps
    assert "--max-calls 3 would end this experiment early" in text
    assert one["total"]["requests"] > one["runs"]
    free = run_command("calibrate", POT, target, "--fit", "n_agents=1:2", "--dry-run").stdout
    assert "470 runs, which ask no language model and cost nothing" in free


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["calibrate", "--fit", "n_agents"], "--fit n_agents: expected name=low:high, such as gain=0:1"),
        (["calibrate", "--fit", "n_agents=1:2", "--fit", "n_agents=1:3"], "n_agents is given twice"),
        (["calibrate", "--fit", "n_agents=5:1"], "--fit: n_agents=5:1: a range goes from a lower to a higher value"),
        (["calibrate", "--fit", "agents=1:5"], "no parameter 'agents'; it has n_agents; did you mean n_agents?"),
        (["calibrate", "--fit", "n_agents=1:5", "--points", "3"], "points=3: a posterior needs 20"),
        (["sensitivity", "--vary", "n_agents=1:5", "--plot", "bars.doc"], "expected a name ending in .png"),
        (["sensitivity", "--vary", "n_agents=1:5", "--method", "fast"], "expected sobol or morris"),
    ],
)
def test_what_cannot_be_is_an_error_that_says_so(target: Path, words: list[str], fault: str) -> None:
    place = [POT, str(target)] if words[0] == "calibrate" else [POT]
    done = run_command(words[0], *place, *words[1:])
    assert done.exit_code == 2
    assert fault in done.output
