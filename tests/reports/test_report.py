"""Reports of runs: by rule the same for the same run, by a language model from what the rule found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm import ScriptedLLM
from mesa_llm.cli.app import app
from mesa_llm.errors import AllDecisionsFailed
from mesa_llm.reports import report_of, written_by
from mesa_llm.reports.findings import RunFacts, coalitions, frequent_words, spans
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.three_worlds.model import ThreeWorldsModel
from tests.pot import PotModel


@pytest.fixture(scope="module")
def town() -> ThreeWorldsModel:
    model = ThreeWorldsModel(n_agents=10, rng=1)
    model.run_for(4)
    model.inject("The *mayor* <b>has</b> resigned.")
    model.run_for(5)
    return model


def test_a_report_by_rule_is_the_same_for_the_same_run_and_holds_its_numbers(town: ThreeWorldsModel) -> None:
    report = report_of(town)
    assert report == report_of(town)
    topics = [finding.topic for finding in report.findings]
    assert {"outside", "market", "turning_point", "measure"} <= set(topics)
    assert f"{town.opinion_price:.0%}" in report.verdict
    assert [phase.title for phase in report.phases] == [
        "Beginning (steps 1 to 3)",
        "Middle (steps 4 to 6)",
        "End (steps 7 to 9)",
    ]
    names = [quotation.name for phase in report.phases for quotation in phase.quotations]
    assert len(names) == len(set(names)) > 3


def test_what_others_wrote_is_no_markup(town: ThreeWorldsModel) -> None:
    report = report_of(town)
    assert r"The \*mayor\* \<b\>has\</b\> resigned." in report.markdown()
    assert "&lt;b&gt;has&lt;/b&gt;" in report.html()
    assert "<b>has" not in report.html()


def test_coalitions_are_agents_of_one_stance_who_follow_each_other() -> None:
    model = ThreeWorldsModel(n_agents=6, rng=1)
    for agent, position in zip(model.agents, (0.5, 0.4, 0.9, -0.5, -0.6, 0.1), strict=True):
        agent.beliefs.positions[model.topic] = position
    model.social.follow_many([(a, b) for a in range(1, 7) for b in range(1, 7) if a != b])
    for agent in (3, 6):
        for other in (1, 2):
            if other in model.social.ties(agent).followed:
                model.social.unfollow(agent, other)
    found = coalitions(RunFacts(model))
    names = {agent.unique_id: agent.config.name for agent in model.agents}
    assert [(one.stance, one.members, one.ties) for one in found] == [
        ("for", (names[1], names[2]), 1),
        ("against", (names[4], names[5]), 1),
    ]


@pytest.mark.parametrize("kind", [PotModel, MarketModel, SocialModel])
def test_any_model_has_a_report_from_its_first_step_on(kind: Any) -> None:
    model = kind(3, rng=1) if kind is PotModel else kind(n_agents=3, rng=1)
    assert report_of(model).phases == ()
    model.step()
    assert report_of(model).verdict
    assert [phase.title for phase in report_of(model).phases] == ["The run (step 1)"]


def test_prices_move_by_points_and_large_figures_are_whole() -> None:
    model = MarketModel(rng=3)
    model.run_for(6)
    text = report_of(model).markdown()
    assert "its largest move was in step 3, by +36.0 points" in text
    assert "Traders fell from 12,000 to 9,516." in text


def test_words_and_spans() -> None:
    assert frequent_words(["The hall, the HALL!", "About taxes and halls"], 2) == ("hall", "halls")
    assert [span[1:] for span in spans(10)] == [(1, 3), (4, 6), (7, 10)]


def written(request: Any) -> Any:
    assert "## Findings" in request.messages[-1].content
    finding = {"title": "Prices", "text": "They rose.", "evidence": "measures"}
    return {"verdict": "Nothing is\nsure.", "findings": [finding], "story": "Once upon a time."}


def test_a_language_model_writes_from_what_the_rule_found(town: ThreeWorldsModel) -> None:
    report = written_by(town, ScriptedLLM(written, name="writer"), report_of(town))
    assert (report.by, report.verdict, report.story) == ("writer", "Nothing is sure.", "Once upon a time.")
    assert [finding.title for finding in report.findings] == ["Prices"]
    assert town.usage_by_purpose["report"].calls == 1
    with pytest.raises(AllDecisionsFailed, match="wrote no report"):
        written_by(town, ScriptedLLM(lambda request: "no"), report_of(town))


def test_a_report_is_written_on_the_command_line_and_asked_for_once(tmp_path: Path) -> None:
    log, page = tmp_path / "run.sqlite", tmp_path / "report.html"
    model = ThreeWorldsModel(n_agents=4, rng=1, log=log)
    model.run_for(3)
    model.close()
    before = log.read_bytes()
    done = CliRunner().invoke(app, ["report", str(log), "--out", str(page), "--days", "30", "--json"])
    assert json.loads(done.stdout)["by"] == "rule"
    assert "Weeks 1-2, step 1" in page.read_text()
    done = CliRunner().invoke(app, ["report", str(log), "--llm", "random"])
    assert done.exit_code in (0, 4), done.output
    assert (tmp_path / "report-run.sqlite").exists()
    assert log.read_bytes() == before
    assert CliRunner().invoke(app, ["report", str(log), "--out", "report.pdf"]).exit_code == 2
