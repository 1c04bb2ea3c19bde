"""The runner of all experiments: results, exceptions and stops are the same wherever runs are made."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import Access, ConfigError
from mesa_llm.errors import Stopped
from mesa_llm.experiments.runs.runner import Job, Progress, Stop, run_jobs
from tests.pot import PotModel


@dataclass(frozen=True)
class PotJob(Job[tuple[int, int]]):
    """A run of a pot, which raises an error if its seed is 13."""

    seed: int
    steps: int = 2

    def run(self, access: Access, stop: Stop) -> tuple[int, int]:
        """Run the pot, and return its seed and its number of steps."""
        if self.seed == 13:
            raise ConfigError("an unlucky number")
        with closing(PotModel(rng=self.seed, llm="random", access=access)) as model:
            stop.run(model, self.steps)
            return self.seed, int(model.time)

    def broken(self, error: Exception) -> tuple[int, int]:
        """Return no steps."""
        return self.seed, 0


def results(seeds: Sequence[int], **where: Any) -> dict[int, Any]:
    """Make runs, and return their results by seed."""
    return {job.seed: result for job, result in run_jobs([PotJob(seed) for seed in seeds], {}, **where)}


PLACES = pytest.mark.parametrize("where", [{}, {"workers": 2}, {"on": "threads"}])


@PLACES
def test_each_job_comes_with_its_result_wherever_it_is_made(where: dict[str, Any]) -> None:
    assert results([1, 2, 3], **where) == {1: (1, 2), 2: (2, 2), 3: (3, 2)}


@PLACES
def test_an_exception_of_a_run_is_raised_where_the_results_are_read(where: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="an unlucky number"):
        results([13], **where)


def test_runs_under_way_are_stopped_once_nobody_reads_the_results() -> None:
    jobs = [PotJob(1, 1), PotJob(2, 100_000)]
    with closing(run_jobs(jobs, {}, on="threads", workers=2)) as runs:
        assert next(runs)[0].seed == 1  # the other one, which would take minutes, is stopped here


def test_a_run_that_is_stopped_says_so() -> None:
    stop = Stop()
    stop.is_requested = True
    with closing(Access()) as access, pytest.raises(Stopped, match="before it began"):
        PotJob(1).run(access, stop)


class WaitingPot(PotModel):
    """Goes on after its first step only once somebody was told of it."""

    def __init__(self, told: Path, **options: Any) -> None:
        super().__init__(**options)
        self.told = told

    def start_step(self) -> None:
        for _ in range(600 if self.now > 1 else 0):
            if self.told.exists():
                return
            time.sleep(0.1)


@dataclass(frozen=True)
class WaitingJob(Job[int]):
    """A run whose second step waits for a report of the first."""

    told: Path

    def run(self, access: Access, stop: Stop) -> int:
        with closing(WaitingPot(self.told, access=access)) as model:
            stop.run(model, 2, "waiting")
        return int(self.told.exists())


@pytest.mark.parametrize("where", [{"workers": 1}, {"workers": 2}, {"on": "threads"}])
def test_the_progress_of_a_run_is_reported_before_it_ends(tmp_path: Path, where: dict[str, Any]) -> None:
    def report(progress: Progress) -> None:
        if progress.decisions:  # the first step may have begun only
            told.write_text(f"{progress.label} {progress.decisions}")

    told = tmp_path / "told"
    jobs = [WaitingJob(told)] * 2
    assert [result for _, result in run_jobs(jobs, {}, on_progress=report, **where)] == [1, 1]
    assert told.read_text() in ("waiting 4", "waiting 8")
