"""People label what a judge was asked, and are compared with it."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from typing import Any

import pandas as pd
import pytest

from mesa_llm import ConfigError
from mesa_llm.experiments.people.agreement import agreement_text, judge_agreement, write_label_template
from mesa_llm_models.oasis.herd import HerdModel, rule_disagreement


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("herd") / "run.sqlite"
    model = HerdModel(preset="counterfactual_herd", n_agents=30, active_share=0.5, rng=1, log=path)
    model.run_for(2)
    model.close()
    return path


def filled(path, label) -> None:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["person_1"] = row["person_2"] = label(row["text"])
    pd.DataFrame(rows).to_csv(path, index=False)


def test_a_template_holds_texts_without_what_the_judge_said(log, tmp_path) -> None:
    n_rows = write_label_template(log, tmp_path / "labels.csv", sample=12)
    table = pd.read_csv(tmp_path / "labels.csv")
    assert n_rows == len(table) == 12
    assert list(table) == ["unit", "measure", "text", "person_1", "person_2"]
    assert table["text"].str.contains("Comment:").all()
    assert table[["person_1", "person_2"]].isna().to_numpy().all()
    with pytest.raises(ConfigError, match="may hold labels"):
        write_label_template(log, tmp_path / "labels.csv")


def test_a_filled_template_says_how_far_the_judge_agrees(log, tmp_path) -> None:
    write_label_template(log, tmp_path / "labels.csv", sample=10)
    filled(tmp_path / "labels.csv", rule_disagreement)
    (row,) = judge_agreement(tmp_path / "labels.csv", log)
    assert (row.level, row.n_labelled, row.verdict) == ("interval", 10, "reliable")
    assert "judge: judge and people agree with alpha 1;" in agreement_text([row])
    filled(tmp_path / "labels.csv", lambda text: 5)
    (row,) = judge_agreement(tmp_path / "labels.csv", log, level="ordinal")
    assert row.verdict == "not to be used"


def test_a_log_whose_decisions_were_changed_is_warned_of(log, tmp_path, caplog) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(log.read_bytes())
    write_label_template(copy, tmp_path / "labels.csv")
    assert not caplog.text
    with closing(sqlite3.connect(copy)) as database, database:
        database.execute("UPDATE decisions SET label = 'forged' WHERE time = 1")
    filled(tmp_path / "labels.csv", rule_disagreement)
    judge_agreement(tmp_path / "labels.csv", copy)
    assert "copy.sqlite holds something else than its replies give (decisions.label, step 1" in caplog.text


def test_judgements_may_come_from_a_table(tmp_path) -> None:
    labels = pd.DataFrame({"unit": ["a", "b", "c"], "Ana": ["yes", "no", "no"], "Ben": ["yes", "no", None]})
    judgements = pd.DataFrame({"unit": ["a", "b", "c", "d"], "judgement": [True, False, True, True]})
    row: Any = judge_agreement(labels, judgements)[0]
    assert (row.level, row.n_people, row.n_labelled, row.n_judged) == ("nominal", 2, 3, 4)
    assert row.people.value == 1.0
    with pytest.raises(ConfigError, match="neither yes nor no"):
        judge_agreement(labels.replace("yes", "perhaps"), judgements)
    with pytest.raises(ConfigError, match="labels no text that was judged"):
        judge_agreement(labels.assign(unit=["x", "y", "z"]), judgements)
