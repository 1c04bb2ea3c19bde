"""Estimates from a few people and many simulated answers hold what their intervals promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mesa_llm.experiments.people.prediction_powered import PoweredEstimate, prediction_powered_mean

N_PEOPLE, N_OTHERS, N_STUDIES = 30, 300, 400
TRUTH = 3.0


def studies(simulate) -> list[PoweredEstimate]:
    """Return the estimates of many synthetic studies, in which a function simulates the answers of all units."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(N_STUDIES):
        answers = rng.normal(TRUTH, 1, N_PEOPLE + N_OTHERS)
        simulated = simulate(answers, rng)
        found.append(prediction_powered_mean(answers[:N_PEOPLE], simulated[:N_PEOPLE], simulated[N_PEOPLE:]))
    return found


def coverage(found, truth: float = TRUTH) -> float:
    return float(np.mean([one.powered.low <= truth <= one.powered.high for one in found]))


def width(found, kind: str) -> float:
    return float(np.mean([getattr(one, kind).high - getattr(one, kind).low for one in found]))


def test_good_biased_simulation_halves_the_interval_and_keeps_coverage() -> None:
    found = studies(lambda answers, rng: 0.8 * answers + 2 + rng.normal(0, 0.3, len(answers)))
    assert coverage(found) >= 0.93
    assert width(found, "powered") < 0.5 * width(found, "classical")


def test_a_useless_simulation_gets_no_weight_and_costs_nothing() -> None:
    found = studies(lambda answers, rng: rng.normal(-5, 2, len(answers)))
    assert coverage(found) >= 0.93
    assert np.mean([one.weight for one in found]) < 0.1
    assert width(found, "powered") <= 1.01 * width(found, "classical")


def test_shares_are_estimated_too() -> None:
    rng, hits = np.random.default_rng(5), 0
    for _ in range(N_STUDIES):
        yes = rng.random(N_PEOPLE + N_OTHERS) < 0.4
        simulated = np.where(rng.random(len(yes)) < 0.85, yes, ~yes).astype(float)
        answers = yes.astype(float)
        one: Any = prediction_powered_mean(answers[:N_PEOPLE], simulated[:N_PEOPLE], simulated[N_PEOPLE:])
        hits += one.powered.low <= 0.4 <= one.powered.high
    assert hits >= 0.93 * N_STUDIES


def test_a_simulation_that_says_one_thing_leaves_the_classical_estimate() -> None:
    found = prediction_powered_mean([1.0, 2.0, 4.0], [3.0, 3.0, 3.0], [3.0, 3.0])
    assert (found.weight, found.powered) == (0.0, found.classical)
    with pytest.raises(ValueError, match="two people or more"):
        prediction_powered_mean([1.0], [3.0], [3.0])
