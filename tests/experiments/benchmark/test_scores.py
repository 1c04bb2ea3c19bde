"""Runs become means with intervals, and an error to the target."""

from dataclasses import replace

import pytest

from mesa_llm.experiments.benchmarks import Reference
from mesa_llm.experiments.benchmarks.scores import constant_error, people_error, summarise
from mesa_llm.statistics import Estimate
from mesa_llm_models.compost.task import TASK as COMPOST
from tests.experiments.benchmark.pots import POT


def test_means_are_over_runs_and_the_error_is_that_of_the_means() -> None:
    found = summarise(POT, [{"coins": 10.0}, {"coins": 40.0}])
    assert found.scores["coins"].value == 25.0
    assert found.error is not None
    assert found.error.value == 5.0  # of the mean; the mean of the errors would be 15
    assert found.split_error == 30.0


def test_intervals_hold_the_mean_and_are_the_same_for_the_same_runs() -> None:
    runs = [{"coins": float(coins)} for coins in (10, 12, 14, 16, 30)]
    found = summarise(POT, runs)
    mean = found.scores["coins"]
    assert mean.low is not None
    assert mean.high is not None
    assert 8 < mean.low < 16.4 < mean.high < 36
    assert summarise(POT, runs) == found


def test_one_run_has_no_interval() -> None:
    assert summarise(POT, [{"coins": 10.0}]).error == Estimate(10.0, None, None, 1)


def test_a_run_that_lacks_a_score_is_left_out_of_its_mean() -> None:
    found = summarise(POT, [{"coins": 10.0, "love": 1.0}, {"coins": 20.0}])
    assert (found.scores["love"].value, found.scores["love"].n, found.scores["coins"].n) == (1.0, 1, 2)


@pytest.mark.parametrize("task", [replace(POT, target=None), POT])
def test_without_a_target_or_comparable_items_there_is_no_error(task) -> None:
    assert summarise(task, [{"coins": 1.0}], is_comparable=task.target is None).error is None


def test_what_an_error_is_held_against() -> None:
    assert (constant_error(POT), people_error(POT)) == (0.0, 6.0)


def test_a_constant_and_people_are_compared_in_the_scores_that_runs_have() -> None:
    target = Reference({"coins": 20.0, "love": 10.0, "luck": 0.0}, "somebody", "a guess")
    task = replace(POT, target=target)
    assert constant_error(task, ["coins", "love", "other"]) == 5.0
    assert constant_error(task, ["love"]) is None
    assert (people_error(task, ["coins"]), people_error(task, ["love"])) == (6.0, None)


def test_compost_compares_distributions_and_not_persona_by_persona() -> None:
    target = dict(COMPOST.target.values) if COMPOST.target else {}
    turned = dict(zip(target, reversed(list(target.values())), strict=True))
    assert COMPOST.error(turned, target) == pytest.approx(0)
