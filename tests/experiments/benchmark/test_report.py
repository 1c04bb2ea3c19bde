"""Reports of benchmarks: what can be compared with what, and what stands beside the scores."""

from dataclasses import replace

from mesa_llm import Access, ScriptedLLM
from mesa_llm.experiments.benchmark.report import COMPARISON, BenchmarkReport, report_of
from mesa_llm.experiments.benchmark.runs import Candidate, PlannedRun, TaskRuns
from mesa_llm.llm.replies import call
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
