"""Branches of recorded runs, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from mesa_llm_models.three_worlds.model import ThreeWorldsModel


def typed(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    model = ThreeWorldsModel(n_agents=4, rng=1, log=tmp_path / "parent.sqlite")
    model.run_for(4)
    model.close()
    return tmp_path / "parent.sqlite"


def test_a_branch_is_compared_with_its_parent_and_replays(parent: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.sqlite"
    changes = ["--set", "minimum_wage=30", "--inject", "Wages are raised.", "--csv", tmp_path / "both.csv"]
    done = typed("branch", parent, "--from-step", 2, *changes, "--log", new, "--json")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    heard = figures["series"]["heard"]
    assert (figures["at"], figures["steps"], heard["step"]) == (2, 4, [1, 2, 3, 4])
    assert heard["difference"][:2] == [0, 0]
    assert heard["difference"][2] == 4
    assert (
        (tmp_path / "both.csv").read_text().startswith("step,measure,parent,branch,difference,placebo,beyond_placebo\n")
    )
    replayed = typed("replay", new, "--json")
    assert json.loads(replayed.stdout)["digest"] == figures["digest"]
    assert typed("replay", parent).exit_code == 0
    assert "step 3:" in typed("branch", parent, "--from-step", 2, "--steps", 1).stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--from-step", 9], "step 9: the parent has the steps 0 to 4"),
        (["--from-step", 4], "give the number of steps with --steps"),
        (["--from-step", 2, "--set", "wage=nan:"], "wage"),
        (["--from-step", 2, "--inject", "{bad"], "--inject {bad: this is not JSON"),
        (["--from-step", 2, "--inject", '{"kind": "post"}'], "Post: text: field required"),
    ],
)
def test_what_cannot_be_branched_is_one_line(parent: Path, words: list[Any], reason: str) -> None:
    done = typed("branch", parent, *words)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_pairs_with_further_seeds_are_compared_and_gone_on_with(parent: Path, tmp_path: Path) -> None:
    words = [
        "branch",
        parent,
        "--from-step",
        2,
        "--set",
        "minimum_wage=30",
        "--seeds",
        4,
        "--log",
        tmp_path / "new.sqlite",
    ]
    done = typed(*words, "--csv", tmp_path / "pairs.csv", "--json")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    apart = figures["paired"]["work_price"]["comparison"]["difference"]
    assert (figures["seeds"], figures["step"], apart["n"]) == ([1, 2, 3, 4], 4, 4)
    assert apart["low"] <= apart["value"] <= apart["high"]
    assert figures["paired"]["work_price"]["beyond"]["difference"]["n"] == 4
    assert {path.name for path in tmp_path.glob("new*.sqlite")} == {
        *("new.sqlite", "new-placebo.sqlite"),
        *(f"new-{seed}{whose}.sqlite" for seed in (2, 3, 4) for whose in ("", "-parent", "-placebo")),
    }
    assert "4 pairs of runs" in typed(*words, "--workers", 2).stdout
    words[7] = 3
    assert "neither an interval nor a test" in typed(*words).stdout


def test_the_first_pair_is_the_recorded_run_and_its_branch(parent: Path, tmp_path: Path) -> None:
    words = ["branch", parent, "--from-step", 2, "--set", "minimum_wage=30", "--csv", tmp_path / "pairs.csv"]
    alone = json.loads(typed(*words, "--json").stdout)["series"]["work_price"]["branch"]
    assert typed(*words, "--seeds", 2).exit_code == 0
    rows = [row.split(",") for row in (tmp_path / "pairs.csv").read_text().splitlines()]
    assert [float(row[4]) for row in rows if (row[0], row[2]) == ("1", "work_price")] == alone


def test_pairs_are_compared_with_placebos_unless_these_are_left_out(parent: Path) -> None:
    words = ["branch", parent, "--from-step", 2, "--set", "minimum_wage=30", "--seeds", 4]
    told, alone = typed(*words).stdout, typed(*words, "--no-placebo").stdout
    assert ("beyond placebo [95 %]" in told, "cannot tell" in told, "Holm" in told) == (True, True, True)
    assert "placebo" not in alone


def test_one_branch_says_that_it_shows_no_effect(parent: Path) -> None:
    words = ["branch", parent, "--from-step", 2, "--inject", "Wages are raised."]
    told, alone = typed(*words).stdout, typed(*words, "--no-placebo").stdout
    assert "beyond placebo" in told
    assert "placebo" not in alone
    assert all("One run of each shows no effect" in text for text in (told, alone))


def test_a_dry_run_counts_branches_and_placebos_and_says_what_they_can_find(parent: Path) -> None:
    words = ["branch", parent, "--from-step", 2, "--inject", "Wages are raised.", "--seeds", 10, "--dry-run"]
    assert "20 branches, half of them placebos, and 9 further parents" in typed(*words).stdout
    assert "10 pairs of runs find a difference of 1.00 standard deviations" in typed(*words).stdout
    assert json.loads(typed(*words, "--no-placebo", "--json").stdout)["branches"] == 10
