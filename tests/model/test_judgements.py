"""Judgements of language models are compared with people's labels, and nothing passes for checked that is not."""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd
import pytest
from pydantic import BaseModel

from mesa_llm import ConfigError, LLMAgent, LLMModel, ScriptedLLM
from mesa_llm.model.judgements import judged_values, read_labels, unit_of
from mesa_llm.model.quality import Rate, judge_text, quality_warning

TEXTS = [f"Remark {number}: {'thank you' if number % 2 else 'go away'}" for number in range(10)]


class Silent(LLMAgent):
    """Does nothing."""

    def rule(self, seen) -> None:
        return None


class RemarkModel(LLMModel):
    """Remarks that somebody outside judges."""

    def __init__(self, judge="rule", **options) -> None:
        super().__init__(**options)
        self.judge = judge
        Silent.create_agents(self, 1)

    def end_step(self) -> None:
        kind = Literal["polite", "rude"]
        self.consult(self.judge, TEXTS, answer=kind, rule=lambda text: "polite" if "thank" in text else "rude")


def labelled(path, people: int = 2, wrong: int = 0) -> None:
    truth = ["polite" if number % 2 else "rude" for number in range(10)]
    columns = {f"person_{one}": [*(["rude"] * wrong), *truth[wrong:]] for one in range(people)}
    pd.DataFrame({"unit": list(map(unit_of, TEXTS)), **columns}).to_csv(path, index=False)


def judged(judge, **options) -> RemarkModel:
    model = RemarkModel(judge, rng=1, **options)
    model.step()
    return model


def test_a_judge_without_labels_is_not_checked_and_a_rule_is_a_rule() -> None:
    polite = ScriptedLLM(lambda request: {"answer": "polite"})
    assert judged(polite).data_quality()["judge_unchecked"] == Rate(10, 10)
    assert "10 of 10 judgements were not checked against people's labels" in quality_warning(
        judged(polite).data_quality()
    )
    assert judge_text(judged("rule")) == "10 of 10 judgements were made by a rule, not by a language model or a person"
    assert quality_warning(judged("rule").data_quality()) == ""
    assert judge_text(RemarkModel(rng=1)) == ""


def test_a_judge_that_says_what_people_say_is_reliable(tmp_path) -> None:
    labelled(tmp_path / "labels.csv")
    model = judged("rule", labels=tmp_path / "labels.csv")
    row: Any = model.judge_agreement()[0]
    assert (row.measure, row.verdict, row.judge.value, row.people.value) == ("judge", "reliable", 1.0, 1.0)
    assert (row.n_people, row.n_labelled, row.n_judged) == (2, 10, 10)
    assert judge_text(model) == "10 of 10 judgements are by a judge that agrees with people (alpha of 0.8 or more)"


def test_a_judge_that_says_the_same_of_everything_is_not_to_be_used(tmp_path) -> None:
    labelled(tmp_path / "labels.csv", people=1)
    model = judged(ScriptedLLM(lambda request: {"answer": "polite"}), labels=tmp_path / "labels.csv")
    row: Any = model.judge_agreement()[0]
    assert row.verdict == "not to be used"
    assert row.people is None
    assert row.judge.value < 0
    assert "agrees too little with people" in quality_warning(model.data_quality())


def test_labels_change_nothing_in_a_run(tmp_path) -> None:
    labelled(tmp_path / "labels.csv")
    without = judged("rule", log=tmp_path / "run.sqlite")
    without.close()
    again = judged("rule", log=tmp_path / "run.sqlite", replay=True, labels=tmp_path / "labels.csv")
    assert again.runlog.digest == without.runlog.digest
    assert again.judge_agreement()[0].verdict == "reliable"
    again.close()


def test_labels_may_have_a_row_each_and_any_separator(tmp_path) -> None:
    (tmp_path / "labels.csv").write_text("Unit;Coder;Label\nu1;Ana;3,5\nu1;Ben;4\nu2;Ana;\n", encoding="utf-16")
    assert read_labels(tmp_path / "labels.csv").of("judge") == {"u1": {"Ana": "3,5", "Ben": "4"}, "u2": {}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("text,person\na,1\n", "wanted 'unit'"),
        ("unit,person_1\nu1,\nu2,\n", "holds no labels yet"),
        ("unit,coder,label\nu1,Ana,1\nu1,Ana,2\n", "Ana labels  'u1' twice"),
    ],
)
def test_what_is_wrong_with_labels_is_said(tmp_path, text, fault) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(ConfigError, match=fault):
        read_labels(tmp_path / "labels.csv")


class Ruling(BaseModel):
    agreed: bool
    reason: str


def test_a_judgement_is_taken_apart_by_measure_and_person_without_its_reasons() -> None:
    assert list(judged_values("judge", "u", Ruling(agreed=True, reason="All nod."))) == [("judge.agreed", "u", True)]
    marks = {"agent_1": {"goal": {"reasoning": "…", "score": 3}}, "agent_2": {"goal": {"reasoning": "…", "score": 4}}}
    assert list(judged_values("judge", "u", marks)) == [
        ("judge.goal.score", "u/agent_1", 3),
        ("judge.goal.score", "u/agent_2", 4),
    ]
