"""Interactions: changes that do together what neither does alone are found, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mesa_llm import ConfigError
from mesa_llm.charts.chart import Chart
from mesa_llm.experiments.audits import audit_setup, estimate_audit, level_of, plan_for
from mesa_llm.experiments.audits.dimensions import Setting
from mesa_llm.experiments.audits.interactions import (
    DEFAULT,
    N_SCREENED,
    N_SEEDS,
    beyond_the_sum,
    go_together,
    plan_interactions,
    strongest_pairs,
    together,
)
from mesa_llm.records import Request
from mesa_llm.statistics import correct
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from tests.experiments.audit.test_audit import LEVEL, PARAMETERS, PERSONA, move, planted

SETTING = Setting(PARAMETERS, PERSONA, "random")
FEW = ["format", "sequencing"]


def by_two(prompt: str, request: Request) -> Any:
    """Defect where what is seen is JSON and the options are reversed; each alone changes nothing."""
    is_reversed = str(request.schema).find("defect") < str(request.schema).find("cooperate")
    return move("defect" if is_reversed and '"seen":' in prompt else "cooperate")


def test_two_changes_that_do_together_what_neither_does_alone_are_found(tmp_path: Path) -> None:
    found = planted(tmp_path, by_two, dimensions=FEW, interactions=True, awareness=False)
    (interactions,) = found.interactions
    (row,) = interactions.shown
    assert {row.first, row.second} == {"what is seen as JSON", "options reversed"}
    assert (row.both.value, row.beyond.difference.value, row.beyond.difference.n) == (0, -1, N_SEEDS)
    assert all(one.result.change == "stable" for one in found.claims[0].perturbations)
    assert all(one.beyond.verdict == "absent" for one in interactions.pairs[1:])
    lowest = interactions.multiverse[0]
    assert (set(lowest.changes), lowest.effect.value) == ({"what is seen as JSON", "options reversed"}, 0)


def test_interactions_stand_in_page_json_methods_and_charts_and_nothing_is_run_twice(tmp_path: Path) -> None:
    options: dict[str, Any] = {"dimensions": FEW, "interactions": True, "awareness": False}
    found = planted(tmp_path, by_two, **options)
    text = "Interactions: of 4 pairs of changes that go together, all were run and tested"
    assert text in found.methods
    assert text in found.page()
    written = json.loads(json.dumps(found.to_json()))["interactions"][0]
    assert [row["verdict"] for row in written["tested"]] == ["shown", "absent", "absent", "absent"]
    found.chart(f"multiverse of {LEVEL.name}").savefig(tmp_path / "multiverse.png")
    assert (tmp_path / "multiverse.png").read_bytes().startswith(b"\x89PNG")
    curve, changes = (one for one in found.interactions[0].chart().charts if isinstance(one, Chart))
    assert len(curve.table().splitlines()) == 1 + len(found.interactions[0].multiverse)
    assert set(changes.names) == {name for row in found.interactions[0].multiverse for name in row.changes}
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "logs").glob("*.json")}
    assert planted(tmp_path, by_two, **options).interactions == found.interactions
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "logs").glob("*.json")} == before


@pytest.mark.slow
def test_a_pair_that_combinations_point_to_is_tested_with_other_seeds(tmp_path: Path) -> None:
    own: dict[str, Any] = {"dimensions": [*FEW, "context"], "interactions": 8, "awareness": False, "seeds": 4}
    (found,) = planted(tmp_path, by_two, parameters={**PARAMETERS, "rounds": 1}, **own).interactions
    assert found.n_pairs > 8
    assert {(row.first, row.second) for row in found.shown} == {("what is seen as JSON", "options reversed")}
    assert "run with 5 seeds; the " in found.text
    assert {row.effect.n for row in found.multiverse} == {N_SCREENED, N_SEEDS}


def test_many_changes_are_combined_so_that_each_pair_stands_in_a_few_combinations() -> None:
    own = plan_for(DilemmaModel, SETTING, steps=2).perturbations
    plan = plan_interactions(DilemmaModel, SETTING, own)
    covered = {pair for made in plan.combinations for pair in go_together(own) if set(pair) <= set(made)}
    assert len(plan.combinations) == DEFAULT < len(plan.pairs)
    assert len(covered) >= 0.95 * len(plan.pairs)
    assert plan == plan_interactions(DilemmaModel, SETTING, own)
    for made in plan.combinations:
        whole = together(own, made)
        assert whole is not None
        assert whole.change.names == set().union(*(own[index].change.names for index in made))


def test_what_sets_the_same_thing_does_not_go_together() -> None:
    own = plan_for(DilemmaModel, SETTING, dimensions=["format"], steps=2).perturbations
    assert go_together(own) == []
    with pytest.raises(ConfigError, match="interactions need two changes that go together; the audit has"):
        plan_interactions(DilemmaModel, SETTING, own)


@pytest.mark.parametrize("n_planted", [0, 1, 2])
def test_simulated_interactions_of_three_times_the_smallest_effect_are_found_and_no_others(n_planted: int) -> None:
    """Screened with 5 seeds in 64 combinations and tested with 20; runs scatter by 1.4 times the smallest effect."""
    own = plan_for(DilemmaModel, SETTING, steps=2).perturbations
    plan = plan_interactions(DilemmaModel, SETTING, own)
    made = [(), *((index,) for index in range(len(own))), *plan.combinations]
    rng = np.random.default_rng(n_planted)
    n_found, n_false, n_audits = 0, 0, 40
    for _ in range(n_audits):
        alone = np.zeros(len(own))
        alone[rng.choice(len(own), 4, replace=False)] = rng.choice([-0.1, 0.15], 4)
        real = {plan.pairs[index]: 0.15 for index in rng.choice(len(plan.pairs), n_planted, replace=False)}

        def runs(one: tuple[int, ...], n: int, alone: Any = alone, real: Any = real) -> Any:
            mean = alone[list(one)].sum() + sum(size for pair, size in real.items() if set(pair) <= set(one))
            return mean + rng.normal(0, 0.07, n)

        screened = np.array([runs(one, N_SCREENED) for one in made])
        pairs = strongest_pairs(screened, made, len(own), plan.pairs, 6)
        base, claim = runs((), N_SEEDS), level_of(DilemmaModel, "cooperation", 0.05)
        singles = {index: runs((index,), N_SEEDS) for index in {index for pair in pairs for index in pair}}
        tested = [
            beyond_the_sum(base, singles[pair[0]], singles[pair[1]], runs(pair, N_SEEDS), claim) for pair in pairs
        ]
        verdicts = zip(pairs, correct(tested, "holm"), strict=True)
        shown = {pair for pair, one in verdicts if one is not None and one.verdict == "shown"}
        n_found += len(shown & real.keys())
        n_false += bool(shown - real.keys())
    assert n_found >= 0.8 * n_planted * n_audits
    assert n_false <= 0.15 * n_audits


def test_a_trial_counts_the_runs_of_interactions_too(tmp_path: Path) -> None:
    own: dict[str, Any] = {"llm": "gpt-4o-mini", "parameters": PARAMETERS, "dimensions": FEW, "folder": tmp_path}
    costs = [
        estimate_audit(audit_setup(DilemmaModel, [LEVEL], interactions=number, **own))[0] for number in (False, True)
    ]
    n_decisions = PARAMETERS["guests"] * PARAMETERS["rounds"]
    assert costs[1].requests - costs[0].requests >= 4 * N_SEEDS * n_decisions
