"""`mesa-llm agreement`: a template for people, then the judge's agreement with them."""

from __future__ import annotations

import json

import pandas as pd
from typer.testing import CliRunner

from mesa_llm.cli.app import app

SET = ("preset=counterfactual_herd", "n_agents=30", "active_share=0.5")
RUN = ["run", "mesa_llm_models.oasis.herd:HerdModel", "--rng", "1", "--steps", "2"]
RUN += [word for text in SET for word in ("--set", text)]


def command(*words: object) -> str:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done.output


def test_a_judge_is_checked_by_two_commands(tmp_path) -> None:
    log, labels = tmp_path / "run.sqlite", tmp_path / "labels.csv"
    assert "judgements were made by a rule" in command(*RUN, "--log", log)
    assert f"Then: mesa-llm agreement {labels} {log}" in command(
        "agreement", labels, log, "--trust", "--template", "--sample", 10
    )
    table = pd.read_csv(labels)
    table["person_1"] = range(len(table))
    table.to_csv(labels, index=False)
    assert "not to be used" in command("agreement", labels, log, "--trust")
    (row,) = json.loads(command("agreement", labels, log, "--trust", "--json"))
    assert (row["measure"], row["verdict"], row["n_labelled"]) == ("judge", "not to be used", 10)
    found = json.loads(command("run", *RUN[1:], "--labels", labels, "--json").splitlines()[-1])
    assert found["judges"] == [row | {"n_judged": found["judges"][0]["n_judged"]}]


def test_missing_labels_are_asked_for_by_their_template(tmp_path) -> None:
    done = CliRunner().invoke(app, ["agreement", str(tmp_path / "none.csv"), "sotopia/ten_episodes"])
    assert done.exit_code == 2
    assert "with --template, it is written" in done.output
