"""`mesa-llm people`: answers in run logs and tables, beside those of people."""

from __future__ import annotations

import json
from typing import Literal

import pandas as pd
import pytest
from typer.testing import CliRunner

from mesa_llm import Question
from mesa_llm.cli.app import app
from mesa_llm_models.social.model import SocialModel

VOTE = Question("Do you agree?", Literal["yes", "no"], name="vote")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two run logs, people's answers, and the agents' traits."""
    for seed in (1, 2):
        model = SocialModel(n_agents=10, llm="random", rng=seed, log=tmp_path / f"run{seed}.sqlite")
        model.step()
        model.survey([VOTE])
        model.close()
    people = {"vote": ["yes", "no"] * 10, "posts": range(20), "age": ["old"] * 10 + ["young"] * 10}
    pd.DataFrame(people).to_csv(tmp_path / "people.csv", index=False, sep=";")
    traits = pd.DataFrame({"agent": range(1, 11), "age": ["old", "young"] * 5})
    traits.to_csv(tmp_path / "traits.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(line: str):
    return CliRunner().invoke(app, line.split())


def test_run_logs_of_one_name_are_put_together(folder) -> None:
    done = command("people people.csv both=run1.sqlite both=run2.sqlite run1.sqlite --question vote --json")
    rows = json.loads(done.output)["rows"]
    assert [(row["source"], row["n"], row["n_people"]) for row in rows] == [("both", 20, 20), ("run1", 10, 20)]


def test_groups_are_printed_and_figures_written(folder) -> None:
    done = command("people people.csv llm=run1.sqlite --by age --traits traits.csv --question vote --csv out.csv")
    assert done.exit_code == 0, done.output
    assert "vote (age = old)" in done.output
    assert "split-half: distance of random parts of the people" in done.output
    assert pd.read_csv(folder / "out.csv")["group"].tolist()[1:] == ["age = old", "age = young"]


def test_a_scale_marks_and_an_encoding_are_given_on_the_command_line(folder) -> None:
    text = "posts;who\n3;Łucja\n-7;Ewa\nweg;Jan\n80;Ola\n9;Ala\n"
    (folder / "polish.csv").write_bytes(text.encode("cp1250"))
    done = command(
        "people polish.csv r=run1.sqlite --question posts --scale posts=0:50 --missing weg --encoding cp1250 --json"
    )
    found = json.loads(done.output.splitlines()[-1])
    assert (found["rows"][0]["n_people"], found["rows"][0]["n_people_missing"]) == (2, 3)
    assert "2 answers to 'posts' taken for missing (-7, 80); it allows 0 to 50" in found["notes"][0]


def test_measures_of_runs_are_compared_like_answers(folder) -> None:
    (row,) = json.loads(command("people people.csv r=run1.sqlite r=run2.sqlite --question posts --json").output)["rows"]
    assert (row["question"], row["kind"], row["n"]) == ("posts", "number", 2)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("people none.csv run1.sqlite", "there is no file 'none.csv'"),
        ("people people.csv none.sqlite", "there is no file 'none.sqlite', and no recorded run of this name"),
        ("people people.csv run1.sqlite --by sex", "has no column 'sex'"),
        ("people people.csv run1.sqlite --scale posts=low", "--scale posts=low: expected QUESTION=LOW:HIGH"),
        ("people people.csv run1.sqlite --question mood", "there is no question 'mood'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(folder, line, fault) -> None:
    done = command(line)
    assert done.exit_code == 2
    assert fault in done.output
