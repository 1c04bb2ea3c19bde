"""`dev.py record` records what is declared, several runs at a time, and writes the figures into READMEs."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.experiments.runs.recordings import declared_runs, recorded_run
from mesa_llm.registry import find_model

ROOT = Path(__file__).parents[1]


@pytest.fixture
def record(monkeypatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("record")


def test_a_name_stands_for_a_run_for_the_runs_of_a_model_or_for_all(record) -> None:
    assert list(record.named_runs(["discussion"])) == ["discussion/debate", "discussion/trolley"]
    assert list(record.named_runs(["discussion/trolley", "discussion"])) == ["discussion/trolley", "discussion/debate"]
    assert list(record.named_runs(["all"])) == list(declared_runs())
    with pytest.raises(SystemExit, match="there is no run 'discusion'"):
        record.named_runs(["discusion"])


def test_what_has_been_recorded_is_listed_with_its_figures(record, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["record"])
    assert record.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(declared_runs())
    assert any("schelling/town: " in line and "% valid" in line for line in lines)


def test_a_verdict_on_each_recording_names_what_is_flat(record) -> None:
    heading, _, *rows = record.verdicts_table([(name, recorded_run(name)) for name in ("schelling", "social/network")])
    assert "| measures moved | idle | repeated | promise | verdict | seeds tried |" in heading
    assert [row.count("|") for row in rows] == [heading.count("|")] * 2


def test_measures_stand_beside_those_of_the_rule_twin_and_of_chance(record, tmp_path) -> None:
    run = recorded_run("schelling").model_copy(update={"folder": tmp_path})
    shutil.copy(recorded_run("schelling").file, run.file)
    assert record.twins_table([("schelling/town", run)]) == []
    run.record_twins(find_model("schelling").load())
    heading, _, *rows = record.twins_table([("schelling/town", run)])
    assert heading == "| measure at the end | recorded | rule twin | chance |"
    assert {row.split(" (`")[0] for row in rows} == {"| happy", "| likeness", "| n_moves"}
    readme = record.section("# Schelling\n", [("schelling/town", run)])
    assert record.section(readme, [("schelling/town", run)]) == readme


def test_the_section_of_a_readme_is_added_once_and_its_table_renewed(record) -> None:
    runs = [("schelling/town", recorded_run("schelling"))]
    first = record.section("# Schelling\n\n## Question\n\nWho?\n", runs)
    assert first.count(record.HEADING) == 1
    assert "mesa-llm view schelling/town" in first
    edited = first.replace("| 6 |", "| 5 |") + "\nIt shows a town.\n\n## After\n\n| a | table |\n"
    renewed = record.section(edited, runs)
    assert renewed == edited.replace("| 5 |", "| 6 |")
