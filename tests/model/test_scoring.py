"""With `scoring="probabilities"`, decisions stay what they are, and the probabilities of their choices are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from mesa_llm import ScriptedLLM
from mesa_llm.engine.survey import Question
from mesa_llm.records import Reply, Request
from mesa_llm.registry import find_model


def leaning(request: Request) -> Reply:
    """Take the first choice, with a probability of 0.75, the rest on the last."""
    choices = request.choices or ("keep",)
    named = {str(one): 0.75 * (one == choices[0]) + 0.25 * (one == choices[-1]) for one in choices}
    first = {"action": choices[0], "arguments": {}} if request.schema is None else {"answer": choices[0]}
    return Reply(json.dumps(first), probabilities=named if request.choices else {}, off_list=0.1)


def made(name: str, **options: Any) -> Any:
    return find_model(name).load()(**{"rng": 1, "llm": ScriptedLLM(leaning), "scoring": "probabilities", **options})


def test_a_decision_carries_the_probabilities_of_its_choices() -> None:
    model = made("boltzmann_wealth", n_agents=4, size=2)
    model.step()
    given = {str(one): dict(one.probabilities) for one in model.last_decisions.values() if one.probabilities}
    assert given == {"keep()": {"keep": 0.75, "give": 0.25}}


def test_nothing_is_asked_for_by_default() -> None:
    seen: list[Request] = []
    model = made(
        "prisoners_dilemma", llm=ScriptedLLM(lambda request: seen.append(request) or "cooperate"), scoring=None
    )
    model.step()
    assert not any(request.choices for request in seen)
    assert model.runlog.probabilities().empty


def test_the_log_holds_a_row_for_each_choice_and_a_replay_has_them_too(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    model = made("prisoners_dilemma", log=log)
    model.step()
    rows = model.runlog.probabilities()
    model.close()
    assert set(rows["choice"]) == {"cooperate", "defect"}
    assert set(rows["label"]) == {f"against {player}" for player in range(1, 9)}
    assert set(rows["off_list"]) == {0.1}
    again = made("prisoners_dilemma", log=log, replay=True)
    again.step()
    assert again.runlog.probabilities().equals(rows)


def test_a_score_counts_the_expected_answer_and_items_are_asked_alone() -> None:
    model = made("psychobench", instruments=["Five traits"], subscales=["Extraversion"], administrations=1)
    model.step()
    assert model.engine.decisions == 4
    assert model.results()["Five traits: Extraversion"] == pytest.approx((2 * 2 + 4 * 2) / 4)


def test_affect_is_scored_from_items_asked_alone() -> None:
    model = made("emotionbench", repetitions=1, n_situations=1, n_defaults=1, emotions=["Anger"])
    model.step()
    results = model.results()
    assert results["Positive Affect, default"] == pytest.approx(10 * (0.75 * 1 + 0.25 * 5))
    assert results["usable_share"] == 1


def test_a_bias_is_scored_over_all_pairs_of_options() -> None:
    model = made("cognitive_biases", biases=["FramingEffect"], n_tests=1)
    model.step()
    (test,) = model.tests[0]
    ends = {test.index(1): 0.75, test.index(test.metric.n_options): 0.25}
    assert model.mean_of("FramingEffect") == pytest.approx(test.metric.expected_score(ends, ends))


def test_the_baseline_of_chance_has_its_exact_expectation() -> None:
    model = made("cognitive_biases", llm="random", n_tests=2)
    while model.running:
        model.step()
    results = model.results()
    assert all(results[name] == pytest.approx(results[f"{name}, random"], abs=1e-5) for name in model.names)


def test_a_survey_returns_the_probabilities_of_all_answers() -> None:
    model = made("opinion", n_agents=2)
    table = model.survey([Question("Shall it be closed?", Literal["yes", "no"]), Question("Why?")])
    assert table["probabilities"].tolist() == [{"yes": 0.75, "no": 0.25}, {}] * 2
