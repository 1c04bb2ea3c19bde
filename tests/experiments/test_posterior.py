"""Posteriors from a table of simulations cover the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.calibration.posterior import ReferenceTable
from mesa_llm.statistics import FloatArray


def epidemic(draw: FloatArray, rng: np.random.Generator) -> list[int]:
    """Return the number of ill people over twenty days; parameters between 0 and 1 are infection and recovery."""
    infection, recovery = 0.1 + 0.9 * draw[0], 0.02 + 0.5 * draw[1]
    healthy, ill, course = 195, 5, list[int]()
    for _ in range(20):
        new = rng.binomial(healthy, 1 - np.exp(-infection * ill / 200))
        healthy, ill = healthy - new, ill + new - rng.binomial(ill, 1 - np.exp(-recovery))
        course.append(ill)
    return course


@pytest.fixture(scope="module")
def table() -> ReferenceTable:
    rng, draws = np.random.default_rng(1), qmc.Halton(2, rng=1).random(400)
    return ReferenceTable(draws, np.array([epidemic(draw, rng) for draw in draws]))


def test_the_intervals_of_a_hundred_data_sets_cover_their_truths(table: ReferenceTable) -> None:
    rng = np.random.default_rng(2)
    truths = rng.random((100, 2))
    ends = np.array([table.posterior(np.array(epidemic(truth, rng))).interval() for truth in truths])
    covered = ((ends[:, 0] <= truths) & (truths <= ends[:, 1])).sum(axis=0)
    assert covered.min() >= 90
    assert (ends[:, 1] - ends[:, 0]).mean(axis=0).max() < 0.75  # those of the prior are 0.95 wide


def test_the_table_says_how_well_it_recovers_its_own_simulations(table: ReferenceTable) -> None:
    found = table.recovery(100)
    assert found.n == 100
    assert found.n_covered.min() >= 90
    assert found.error.max() < 0.2  # 0.29 for the mean of the prior


def test_runs_that_share_a_draw_do_not_recover_each_other() -> None:
    draws = np.repeat(np.random.default_rng(1).random((60, 1)), 2, axis=0)
    noise = np.random.default_rng(2).normal(size=(120, 3))
    found = ReferenceTable(draws, noise, np.repeat(np.arange(60), 2)).recovery()
    assert found.n == 60
    assert found.error[0] == pytest.approx(0.29, abs=0.05)  # nothing is to be learnt from noise


def test_a_model_without_chance_is_recovered_almost_exactly() -> None:
    draws = qmc.Halton(1, rng=1).random(100)
    found = ReferenceTable(draws, draws * [1.0, 2.0, 3.0]).posterior(np.array([0.3, 0.6, 0.9]))
    assert found.mean[0] == pytest.approx(0.3, abs=0.01)


def test_too_few_draws_and_a_share_out_of_range_are_errors() -> None:
    with pytest.raises(ConfigError, match="found 5 complete draws from the prior; a posterior needs 20 or more"):
        ReferenceTable(np.zeros((5, 1)), np.zeros((5, 2)))
    with pytest.raises(ConfigError, match=r"above 0 and up to 1; got 1\.5"):
        ReferenceTable(np.zeros((50, 1)), np.zeros((50, 2)), accepted=1.5)
