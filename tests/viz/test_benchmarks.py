"""The page of benchmarks: which it finds, and which of their runs it opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from mesa_llm.errors import ConfigError
from mesa_llm.viz.server.benchmarks import FinishedBenchmark, result_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run a benchmark in a folder, which is then moved to where the page looks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MESA_LLM_RUNS", "none")
    words = ["bench", "tests.experiments.benchmark.pots:POT", "--repeats", "1", "--out", "first"]
    assert CliRunner().invoke(app, words).exit_code == 0
    (tmp_path / "runs").mkdir()
    return (tmp_path / "first").rename(tmp_path / "runs" / "moved")


def test_benchmarks_are_found_in_runs_and_in_named_folders(folder: Path) -> None:
    assert result_files() == [folder / "report.json"]
    other = folder.rename(folder.parents[1] / "other")
    assert result_files() == []
    assert result_files([other]) == [other / "report.json"]


def test_runs_are_opened_from_where_their_folder_is_now(folder: Path) -> None:
    written = FinishedBenchmark(folder / "report.json")
    assert [log.parent for _, log in written.runs] == [folder] * 2
    assert written.fragment().count('data-pick="run ') == 2
    written.runs[0][1].unlink()
    assert written.fragment().count('data-pick="run ') == 1
    assert written.title.startswith("runs/moved · tasks · ")


def test_a_damaged_file_is_one_clear_error(folder: Path) -> None:
    (folder / "report.json").write_text('{"options": {}}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"report\.json is not a report of this version of mesa-llm bench"):
        _ = FinishedBenchmark(folder / "report.json").results


def test_a_file_of_any_size_is_one_clear_error(folder: Path) -> None:
    with (folder / "report.json").open("r+b") as file:
        file.truncate(10**10)
    with pytest.raises(ConfigError, match=r"report\.json has 10,000,000,000 bytes; the maximum is"):
        _ = FinishedBenchmark(folder / "report.json").results


def test_what_a_damaged_file_holds_is_never_run_as_markup(folder: Path) -> None:
    file = folder / "report.json"
    file.write_text(file.read_text(encoding="utf-8").replace("Our own.", "<img src=x onerror=alert(1)>"), "utf-8")
    assert "&lt;img src=x" in FinishedBenchmark(file).fragment()
