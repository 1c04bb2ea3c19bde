"""Looks of an audit: fixed beforehand, with the error spent on them, change by change, and the same when resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mesa_llm import ConfigError
from mesa_llm.experiments.audits import audit_setup, level_of
from mesa_llm.experiments.audits.judged import Judged, judged_by_looks
from mesa_llm.experiments.audits.looks import look_numbers, looks_at, power_text
from mesa_llm.experiments.audits.setup import AuditSetup, n_runs, runs_of
from mesa_llm.statistics import effect_needed, power
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

LEVEL = level_of(DilemmaModel, "cooperation", 0.1)


def planned(folder: Path, **changes: Any) -> AuditSetup:
    """Plan an audit of two dimensions."""
    options: dict[str, Any] = {"dimensions": ["format", "sequencing"], "parameters": {"rounds": 2}, **changes}
    return audit_setup(DilemmaModel, [LEVEL], folder=folder, llm="planted", **options)


def judged(setup: AuditSetup, value: Callable[[int, int], float]) -> tuple[Judged, int]:
    """Judge an audit whose measure depends on arm and seed; return what it says, and the number of its runs."""
    rows: dict[Path, Any] = {}
    arm_of = {
        run.log: (arm, seed)
        for arm in reversed(range(len(setup.arms)))
        for seed in setup.seeds
        for run in setup.runs((0, arm), seed)
    }
    looking = judged_by_looks(setup, rows)
    while True:
        try:
            rows |= {run.log: {"error": "", "cooperation": value(*arm_of[run.log])} for run in next(looking)}
        except StopIteration as end:
            return end.value, len(rows)


def noisy(arm: int, seed: int) -> float:
    """Return 0.5 with noise of 0.1, and 0.3 more under the first change."""
    return 0.5 + 0.3 * (arm == 1) + 0.1 * float(np.random.default_rng([arm, seed]).normal())


def test_the_default_looks_at_10_15_to_80_seeds(tmp_path: Path) -> None:
    setup = planned(tmp_path)
    assert (setup.look_numbers, len(setup.seeds)) == (tuple(range(10, 81, 5)), 80)
    assert [look.number for look in setup.looks] == list(range(1, 16))
    assert planned(tmp_path, seeds=12).looks[0].level == pytest.approx(0.05)  # a fixed design


def test_all_looks_together_reject_what_is_not_there_in_five_percent() -> None:
    draws = np.random.default_rng(2).standard_normal((20_000, 80))
    sums, squares = draws.cumsum(axis=1), np.square(draws).cumsum(axis=1)
    rejected = np.zeros(20_000, dtype=bool)
    for look in looks_at(look_numbers()):
        n, mean = look.n_seeds, sums[:, look.n_seeds - 1] / look.n_seeds
        error = np.sqrt((squares[:, n - 1] / n - mean**2) / (n - 1))
        rejected |= 2 * stats.t.sf(abs(mean) / error, n - 1) <= look.level
    assert rejected.mean() == pytest.approx(0.05, abs=0.005)  # 3 standard errors


def test_a_decided_change_gets_no_further_runs(tmp_path: Path) -> None:
    setup = planned(tmp_path)
    found, n = judged(setup, noisy)
    first = found.changes[0, 1]
    assert (first.change, first.look, first.n) == ("sensitive", found.changes[0, 1].look, found.n_seeds[0, 1])
    assert first.n < max(found.n_seeds[0, arm] for arm in range(2, len(setup.plan.perturbations) + 1)) <= 80
    assert found.n_seeds[0, 0] == max(one.n for one in found.changes.values())
    assert n < n_runs(setup)


def test_the_audit_ends_where_everything_is_decided(tmp_path: Path) -> None:
    found, n = judged(planned(tmp_path), lambda arm, seed: 0.5 + seed / 1000)
    assert {(one.change, one.n, one.look) for one in found.changes.values()} == {("stable", 10, 1)}
    assert n == len(runs_of(planned(tmp_path, seeds=10)))


def test_a_fixed_design_has_one_look(tmp_path: Path) -> None:
    found, n = judged(planned(tmp_path, seeds=7), noisy)
    assert {(one.look, one.n, round(one.coverage, 6)) for one in found.changes.values()} == {(None, 7, 0.9)}
    assert n == n_runs(planned(tmp_path, seeds=7))


@pytest.mark.parametrize("looks", [[], [3, 8], [8, 8], [10, 90]])
def test_faulty_looks_are_refused(tmp_path: Path, looks: list[int]) -> None:
    with pytest.raises(ConfigError, match=r"looks? "):
        planned(tmp_path, looks=looks, seeds=80)


def test_what_is_found_is_said_beforehand(tmp_path: Path) -> None:
    text = power_text(planned(tmp_path).looks, 6)
    assert text.startswith(
        "Found with a probability of 80%, corrected for 6 tests: a change of at least 2 with 10 seeds"
    )
    assert power(effect_needed(20, 0.8, 0.01), 1.0, 20, 0.01) == pytest.approx(0.8, abs=1e-4)
