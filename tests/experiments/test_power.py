"""How many runs a comparison needs: what the pilot says is what a study then finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mesa import DataCollector, Model

from mesa_llm import ConfigError
from mesa_llm.experiments import power, sweep
from mesa_llm.statistics import compare, effect_needed
from mesa_llm.statistics import power as statistics_power
from tests.pot import PotModel


class Noise(Model[Any, Any]):
    """A model whose result is its level, and chance."""

    def __init__(self, level: float = 0.0, rng: Any = None) -> None:
        """Take the level."""
        super().__init__(rng=rng)
        self.level = level
        self.datacollector = DataCollector(model_reporters={"result": "result"})
        self.step()

    def step(self) -> None:
        """Draw a result."""
        self.result = self.level + self.rng.normal(size=2)[int(self.level)]  # other dice, so that pairs differ
        self.datacollector.collect(self)


def test_a_study_of_the_safe_size_finds_the_effect() -> None:
    found: Any = power(Noise, "result", 1.0, vary={"level": [0.0, 1.0]}, seeds=8, steps=1, workers=1)
    (row,) = found.table.to_dict("records")
    assert row["safe"] > row["runs"] >= 4
    rng = np.random.default_rng(1)
    n = int(row["safe"])
    hits = [compare(rng.normal(1.0, 1.0, n).tolist(), rng.normal(0.0, 1.0, n).tolist()) for _ in range(300)]
    assert np.mean([one is not None and one.verdict == "shown" for one in hits]) > 0.8
    assert str(int(row["safe"])) in found.text()


def test_an_arm_alone_is_compared_with_itself_and_more_seeds_go_on_from_the_pilot(tmp_path) -> None:
    options: dict[str, Any] = {"llm": "random", "steps": 2, "workers": 1, "out": tmp_path}
    found = power(PotModel, "coins", 1.0, seeds=4, **options)
    (row,) = found.table.to_dict("records")
    assert (row["pairs"], row["second"]) == (4, "itself, with other seeds")
    assert sweep(PotModel, seeds=6, **options).n_done == 2


@pytest.mark.parametrize(
    ("measure", "effect", "options", "message"),
    [
        ("coin", 1.0, {}, "no measure 'coin'"),
        ("coins", 0.0, {}, "must be a number other than 0"),
        ("coins", 1.0, {"wanted": 1.0}, "between 0 and 1"),
        ("coins", 1.0, {"seeds": 3}, "a pilot needs 4"),
    ],
)
def test_what_no_number_of_runs_answers_is_refused(measure, effect, options: Any, message) -> None:
    all_options: dict[str, Any] = {"seeds": 4, "llm": "random", "steps": 1, "workers": 1, **options}
    with pytest.raises(ConfigError, match=message):
        power(PotModel, measure, effect, **all_options)


@pytest.mark.parametrize(("n", "effect"), [(5, 1.68), (10, 1.0), (20, 0.66), (30, 0.53)])
def test_the_effect_needed_is_found_with_the_wanted_power(n, effect) -> None:
    found = effect_needed(n)
    assert found == pytest.approx(effect, abs=0.005)
    assert statistics_power(found, 1.0, n) == pytest.approx(0.8)
