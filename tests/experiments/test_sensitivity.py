"""Indices of sensitivity are those that are known, and an analysis resumes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
import pytest

from mesa_llm import ConfigError, LLMModel, LLMOptions, LLMScenario
from mesa_llm.experiments.calibration.indices import Indices, morris_indices, sobol_indices
from mesa_llm.experiments.calibration.ranges import ParameterRange
from mesa_llm.experiments.calibration.sensitivity import Sensitivity, sample_points, sensitivity


class IshigamiScenario(LLMScenario):
    """The arguments of Ishigami's function, and one that does nothing."""

    a: float = 0
    """First argument."""

    b: float = 0
    """Second argument."""

    c: float = 0
    """Third argument."""

    n: int = 1
    """Nothing."""


class IshigamiModel(LLMModel):
    """Computes functions of its parameters, with noise of the seed."""

    scenario_class = IshigamiScenario
    scenario: IshigamiScenario
    instructions = ""

    def __init__(self, scenario: IshigamiScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        self.noise = self.random.gauss(0, 0.1)

    def results(self) -> dict[str, Any]:
        a, b, c = self.scenario.a, self.scenario.b, self.scenario.c
        ishigami = math.sin(a) + 7 * math.sin(b) ** 2 + 0.1 * c**4 * math.sin(a) + self.noise
        linear = 3 * a + 4 * b
        return {"ishigami": ishigami, "linear": linear, "constant": 1, "name": "x", "odd": None if a > 0 else 1}


def analyse(folder: Path, ranges: dict[str, tuple[float, float]], **changes: Any) -> Sensitivity:
    """Analyse the functions, in this process; a run has no step to make."""
    how: dict[str, Any] = {"seeds": 1, "steps": 1, "workers": 1, "model": IshigamiModel, **changes}
    return sensitivity(how.pop("model"), ranges, folder=folder, **how)


THREE = dict.fromkeys("abc", (-math.pi, math.pi))


def test_sobol_indices_are_those_of_ishigamis_function(tmp_path: Path) -> None:
    found = analyse(tmp_path, THREE, points=64, rng=2)
    table = found.table[found.table["measure"] == "ishigami"].set_index("parameter").loc[[*"abc"]]
    for index, expected in (("S1", (0.314, 0.442, 0)), ("ST", (0.558, 0.442, 0.244))):  # Ishigami and Homma (1990)
        for low, high, known in zip(table[f"{index}_low"], table[f"{index}_high"], expected, strict=True):
            assert low <= known <= high
    linear = found.table[found.table["measure"] == "linear"]
    assert linear["parameter"].tolist() == ["b", "a", "c", "dummy", "noise between seeds"]
    assert linear["rank"].tolist()[:2] == [1, 2]
    assert np.isnan(np.array(linear["rank"], float)).sum() == 3
    assert linear["ST"].tolist() == pytest.approx([16 / 25, 9 / 25, 0, 0, 0], abs=0.2)
    assert (found.n_points, found.n_runs) == (64 * 5, 64 * 6)
    assert found.left_out.keys() == {"constant", "name", "odd"}
    assert found.warnings["linear"] == ["c cannot be told from a parameter that does nothing."]


def test_morris_finds_the_slopes_of_a_line_and_resumes(tmp_path: Path) -> None:
    ranges: dict[str, tuple[float, float]] = {"a": (0, 1), "b": (0, 2), "n": (1, 3)}
    found = analyse(tmp_path, ranges, method="morris", points=4, seeds=2, measures=["linear"])
    assert found.table["parameter"].tolist() == ["b", "a", "n", "dummy", "noise between seeds"]
    assert found.table["mu_star"].tolist() == pytest.approx([8, 3, 0, 0, 0])
    assert found.table["sigma"].tolist()[:4] == pytest.approx([0, 0, 0, 0])
    assert found.n_points < found.n_runs <= 2 * 4 * 5
    next(iter(tmp_path.glob("*-2.json"))).unlink()
    again = analyse(tmp_path, ranges, method="morris", points=4, seeds=2, measures=["linear"])
    assert again.n_done == 1
    pd.testing.assert_frame_equal(again.table, found.table)
    assert json.loads((tmp_path / "sensitivity.json").read_text()) == again.to_json()
    assert [panel.title for panel in again.draw().charts] == ["linear"]
    more = analyse(tmp_path, ranges, method="morris", points=4, seeds=3, measures=["linear"])
    assert more.n_done == more.n_runs - found.n_runs == found.n_runs / 2


def noisy(noise: float, seeds: int = 2, points: int = 64, n_seed: int = 1, at: str = "sobol") -> Indices:
    """Analyse 3 a + 4 b over 0 to 1, with noise as a share of the signal's standard deviation, and c without effect."""
    ranges = tuple(ParameterRange(name, 0, 1, is_whole=False, default=None) for name in "abc")
    units = sample_points(ranges, "morris" if at == "morris" else "sobol", points, n_seed)
    signal = units[..., :2] @ np.array([3.0, 4.0])
    drawn = np.random.default_rng(n_seed).uniform(-1, 1, (*signal.shape, seeds))
    values = signal[..., None] + noise * math.sqrt(25 / 12) * math.sqrt(3) * drawn
    return sobol_indices(values) if at == "sobol" else morris_indices(values, units)


@pytest.mark.parametrize("noise", [0, 1, 3])
@pytest.mark.parametrize("points", [16, 64])
def test_intervals_of_indices_and_of_the_noise_hold_the_truth_whatever_the_noise(noise: float, points: int) -> None:
    expected = {"S1": (9 / 25, 16 / 25, 0, 0), "ST": (9 / 25, 16 / 25, 0, 0)}
    hits: list[bool] = []
    for seed in range(12):
        found = noisy(noise, points=points, n_seed=seed)
        pairs = [(one[name], expected[name][place]) for place, one in enumerate(found.parameters) for name in expected]
        pairs.append((found.noise, noise**2 / (1 + noise**2)))
        for one, truth in pairs:
            low, high = (None, None) if one is None else (one.low, one.high)
            hits.append(low is None or high is None or low - 1e-9 <= truth <= high + 1e-9)
    assert len(hits) == 12 * 9
    assert sum(hits) >= 0.88 * len(hits)


@pytest.mark.parametrize(("at", "unit"), [("sobol", 25 / 25), ("morris", 4)])
def test_what_does_nothing_has_no_index_on_average_although_noise_equals_the_signal(at: str, unit: float) -> None:
    found = [noisy(1, n_seed=seed, at=at) for seed in range(30)]
    for place in (2, 3):
        values = [one.parameters[place][{"sobol": "ST", "morris": "mu_star"}[at]] for one in found]
        assert abs(np.mean([one.value for one in values if one])) < 0.1 * unit


class ChanceModel(IshigamiModel):
    """Computes sums of its parameters that are hidden by chance, or not."""

    def results(self) -> dict[str, Any]:
        a, b, chance = self.scenario.a, self.scenario.b, self.random.gauss(0, 1)
        return {"nothing": chance, "hidden": a + 3 * chance, "plain": a + 0.1 * chance, "exact": 2 * a + b}


@pytest.mark.parametrize("method", ["sobol", "morris"])
@pytest.mark.parametrize("seeds", [1, 2])
def test_parameters_are_ranked_only_where_they_stand_out_from_chance(tmp_path: Path, method: str, seeds: int) -> None:
    ranges: dict[str, tuple[float, float]] = {"a": (0, 1), "b": (0, 1)}
    found = analyse(tmp_path, ranges, points=16, seeds=seeds, method=method, model=ChanceModel)
    rank: Any = found.table.set_index(["measure", "parameter"])["rank"]
    for measure in ("nothing", "hidden"):
        assert rank[measure].isna().all()
        assert found.compare(measure)["parameter"].tolist() == ["a", "b", "dummy", "noise between seeds"]
        assert found.chart(measure).title == f"{measure}: no ranking"
        assert f"{measure}: noise between seeds" in found.text()
        assert f"{measure}: no ranking" in found.text()
    assert (rank["plain", "a"], rank["exact", "a"], rank["exact", "b"]) == (1, 1, 2)
    assert "exact" not in found.warnings
    assert ("contain the noise" in found.text()) == (seeds == 1)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"points": 1}, "points=1: sobol needs 2 base points"),
        ({"method": "fast"}, "method='fast': expected sobol or morris"),
        ({"seeds": 0}, "seeds=0"),
        ({"points": 2, "measures": ["lines"]}, "the runs have no result 'lines'; they have .*did you mean linear"),
        ({"points": 2, "measures": ["name"]}, "there is no result to analyse: name: it is not a number"),
    ],
)
def test_what_cannot_be_is_an_error_that_says_so(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        analyse(tmp_path, {"a": (0, 1)}, **changes)
