"""Indices of sensitivity are those that are known, and an analysis resumes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Unpack

import pandas as pd
import pytest

from mesa_llm import ConfigError, LLMModel, LLMOptions, LLMScenario
from mesa_llm.experiments.calibration.sensitivity import Sensitivity, sensitivity


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
    how: dict[str, Any] = {"seeds": 1, "steps": 1, "workers": 1, **changes}
    return sensitivity(IshigamiModel, ranges, folder=folder, **how)


THREE = dict.fromkeys("abc", (-math.pi, math.pi))


def test_sobol_indices_are_those_of_ishigamis_function(tmp_path: Path) -> None:
    found = analyse(tmp_path, THREE, points=64)
    table = found.table[found.table["measure"] == "ishigami"]
    for index, expected in (("S1", (0.314, 0.442, 0)), ("ST", (0.558, 0.442, 0.244))):  # Ishigami and Homma (1990)
        for value, half, known in zip(table[index], table[f"{index}_conf"], expected, strict=True):
            assert abs(value - known) <= half
    linear = found.table[found.table["measure"] == "linear"]
    assert linear["ST"].tolist() == pytest.approx([9 / 25, 16 / 25, 0], abs=0.06)
    assert (found.n_points, found.n_runs) == (64 * 5, 64 * 5)
    assert found.left_out.keys() == {"constant", "name", "odd"}


def test_morris_finds_the_slopes_of_a_line_and_resumes(tmp_path: Path) -> None:
    ranges: dict[str, tuple[float, float]] = {"a": (0, 1), "b": (0, 2), "n": (1, 3)}
    found = analyse(tmp_path, ranges, method="morris", points=4, seeds=2, measures=["linear"])
    assert found.table["mu_star"].tolist() == pytest.approx([3, 8, 0])
    assert found.table["sigma"].tolist() == pytest.approx([0, 0, 0])
    assert found.n_runs == 2 * found.n_points <= 2 * 4 * 4
    next(iter(tmp_path.glob("*-2.json"))).unlink()
    again = analyse(tmp_path, ranges, method="morris", points=4, seeds=2, measures=["linear"])
    assert again.n_done == 1
    pd.testing.assert_frame_equal(again.table, found.table)
    assert json.loads((tmp_path / "sensitivity.json").read_text()) == again.to_json()
    assert [panel.title for panel in again.draw().charts] == ["linear"]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"points": 60}, "points=60: sobol needs a power of 2"),
        ({"method": "fast"}, "method='fast': expected sobol or morris"),
        ({"seeds": 0}, "seeds=0"),
        ({"points": 2, "measures": ["lines"]}, "the runs have no result 'lines'; they have .*did you mean linear"),
        ({"points": 2, "measures": ["name"]}, "there is no result to analyse: name: it is not a number"),
    ],
)
def test_what_cannot_be_is_an_error_that_says_so(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        analyse(tmp_path, {"a": (0, 1)}, **changes)
