"""Reports of benchmarks: what can be compared with what, and what stands beside the scores."""

from dataclasses import replace
from pathlib import Path

import pytest

from mesa_llm import Access, AgentDesign, ConfigError, ScriptedLLM
from mesa_llm.experiments.benchmarks import Baseline, Reference, read_reference
from mesa_llm.experiments.benchmarks.report import COMPARISON, BenchmarkReport, report_of
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun, TaskRuns
from mesa_llm.llm.replies import call
from mesa_llm.statistics import Estimate
from tests.experiments.benchmark.pots import POT


def report(task=POT, coins: int = 5) -> BenchmarkReport:
    """Run a task with a script, and report on it."""
    script = Candidate("script", ScriptedLLM(lambda request: call("pay", coins=coins)))
    runs = TaskRuns([PlannedRun(task, script, 1)], access=Access(), folder=None).run()
    return report_of([task], [script], runs, {})


def test_the_studys_error_stands_beside_runs_that_can_be_compared() -> None:
    found = report()
    assert found.error_row(found.tasks[0])[-3:] == ["1", "9", "coins"]
    assert COMPARISON in found.text()


def test_beside_runs_that_cannot_be_compared_stands_no_error_of_the_study() -> None:
    found = report(replace(POT, is_comparable=lambda model: False))
    assert found.error_row(found.tasks[0])[-3:] == ["–", "–", "coins"]
    assert "the study's own error (1, baseline 9) has nothing here" in found.text()
    assert COMPARISON not in found.text()


def test_refusals_stand_beside_the_scores() -> None:
    found = report(coins=7)
    assert (
        "BESIDE pot, script: 12 of 12 actions and answers were refused by the world. Read the results with"
        in found.text()
    )
    assert found.runs[0].quality["refused"] == (12, 12)


def test_the_studys_baseline_is_run_as_the_study_has_it() -> None:
    llm = ScriptedLLM(lambda request: call("pay", coins=1 if "remember" in request.messages[-1].content else 5))
    tested, chance = Candidate("script", llm, AgentDesign(memory="window:3")), Candidate("random", "random")
    shuffled = Baseline(shuffled=lambda model: {"coins": 19.0})
    for baseline, error, n_runs in (
        (Baseline(without=("memory",)), 40.0, 1),
        (shuffled, 1.0, 0),
        (Baseline(), None, 0),
    ):
        task = replace(POT, baseline=baseline)
        plans = [PlannedRun(task, tested, 1), PlannedRun(task, chance, 1), PlannedRun.of_baseline(task, tested, 1)]
        runs = TaskRuns(list(filter(None, plans)), access=Access(), folder=None).run()
        (found,) = report_of([task], [tested, chance], runs, {}).tasks
        assert found.baseline_result is not None
        expected = found.results["random"].error if error is None else Estimate(error, None, None, 1)
        assert (found.baseline_result.error, len(found.baseline_result.runs)) == (expected, n_runs)


def test_study_error_against_another_target_is_marked(tmp_path: Path) -> None:
    assert POT.published is not None
    task = replace(POT, published=replace(POT.published, other_target="a run that is not public"))
    found = report(task)
    assert found.error_row(found.tasks[0])[-3:] == ["1 ≠", "9 ≠", "coins"]
    file = tmp_path / "own.csv"
    file.write_text("score,value\ncoins,10\ncoins,20\n")
    found = report(task.with_target(read_reference(file)))
    assert found.tasks[0].target == Reference({"coins": 15.0}, "own target", str(file))
    assert found.error_row(found.tasks[0])[-3:] == ["1", "9", "coins"]


@pytest.mark.parametrize("text", ["[1, 2]", "{}", '{"coins": "many"}', '{"coins": []}', "{"])
def test_a_target_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"own\.json"):
        read_reference(file)
