"""Runs go at once through one access, have a log each, and fail alone."""

import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from mesa_llm import Access, AgentDesign, ScriptedLLM
from mesa_llm.errors import AllDecisionsFailed, BadReply, BudgetExceeded, Stopped
from mesa_llm.experiments.benchmarks import note_scoring
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun, TaskRuns
from mesa_llm.llm.replies import call
from tests.experiments.benchmark.pots import BROKEN, LOVELESS, POT
from tests.pot import PotModel

FIVE = ScriptedLLM(lambda request: call("pay", coins=5), name="five")


def made(plans, folder: Path | None = None, **limits):
    access = Access(attempts=1, **limits)
    runs = TaskRuns(plans, access=access, folder=folder).run()
    access.close()
    return runs


def plans(llm, seeds=(1, 2, 3), task=POT):
    return [PlannedRun(task, Candidate("somebody", llm), seed) for seed in seeds]


def test_runs_are_scored_in_the_order_planned() -> None:
    runs = made(plans(FIVE))
    assert [run.plan.seed for run in runs] == [1, 2, 3]
    assert [(run.scores, run.decisions, run.error) for run in runs] == [({"coins": 60.0}, 12, None)] * 3


def test_runs_have_one_budget() -> None:
    runs = made(plans(FIVE), max_calls=20)
    assert sum(run.usage.calls for run in runs) == 20
    assert any(isinstance(run.error, BudgetExceeded) for run in runs)
    assert all(not run.scores for run in runs if run.error)


def test_what_is_in_the_logs_is_not_asked_again(tmp_path) -> None:
    first = made(plans(FIVE, seeds=(1, 2)), tmp_path, max_calls=15)
    again = made(plans(FIVE), tmp_path)
    used = sum(run.usage.calls for run in first), sum(run.usage.calls for run in again)
    assert used == (15, 3 * 12 - 15)
    assert sum(run.paid.calls for run in again) == 3 * 12
    assert len(list(tmp_path.glob("pot-somebody-*.sqlite"))) == 3
    assert made(plans(FIVE, seeds=(1,)))[0].digest == again[0].digest


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (plans(ScriptedLLM(lambda request: BadReply("down")))[0], "none of the 12 decisions succeeded"),
        (plans("rule", task=LOVELESS)[0], "no score"),
        (plans("rule", task=BROKEN)[0], "ZeroDivisionError: no coins"),
        (plans("rule", task=replace(POT, setting={"coins": 1}))[0], "unknown options: coins"),
        (plans("rule", task=replace(POT, setting={"n_agents": 0}))[0], "no agent was asked"),
    ],
)
def test_a_run_that_produces_nothing_is_an_error_and_disturbs_no_other(plan, why) -> None:
    failed, other = made([plan, *plans("rule", seeds=(1,))])
    assert why in str(failed.error)
    assert isinstance(failed.error, AllDecisionsFailed) == ("down" in why or "no " in why[:3] or why.startswith("n"))
    assert other.error is None


def test_whoever_or_whatever_is_another_has_another_log(tmp_path) -> None:
    (plan,) = plans("rule", seeds=(1,))
    designed = replace(plan.candidate, design=AgentDesign(memory="window:2"))
    others = [
        plan._replace(candidate=designed),
        plan._replace(candidate=replace(plan.candidate, name="some/body")),
        plan._replace(candidate=replace(plan.candidate, name="some-body")),
        plan._replace(task=POT.as_quick()),
        plan._replace(seed=2),
    ]
    logs = {one.log_in(tmp_path, {"retry_failures": True}) for one in (plan, *others)}
    assert len(logs) == 6
    assert plan.log_in(tmp_path, {"retry_failures": False}) in logs
    assert plan.log_in(tmp_path, {"reply_tokens": 9}) not in logs


def test_a_stop_ends_scoring_between_two_parts() -> None:
    def slow(model: PotModel) -> dict[str, float]:
        for part in range(1_000_000):
            note_scoring(part, 1_000_000)
        return {"coins": 1.0}

    def interrupt(plan: PlannedRun, n_done: int, n: int) -> None:
        if n_done == 2:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    runs = TaskRuns(plans("rule", (1,), replace(POT, score=slow)), access=Access(), folder=None)
    with pytest.raises(KeyboardInterrupt):
        runs.run(on_scoring=interrupt)
    assert isinstance(runs.done[0].error, Stopped)
