"""A model is calibrated to observed series, resumes, and is judged by steps that it was not shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import pandas as pd
import pytest
from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import ConfigError, LLMModel, LLMOptions, LLMScenario
from mesa_llm.errors import MesaLLMError
from mesa_llm.experiments.calibration.calibration import Calibration, calibrate


class TankScenario(LLMScenario):
    """Parameters of the tank."""

    gain: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Share of the distance to the level that is covered in a step."""

    level: Annotated[int, Field(ge=0)] = 2
    """Level that the tank approaches."""

    label: str = ""
    """Name of the tank."""


class TankModel(LLMModel):
    """A tank that fills up, with some noise; it is over when it overflows."""

    scenario_class = TankScenario
    scenario: TankScenario
    instructions = ""

    def __init__(self, scenario: TankScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        self.water = 0.0
        self.datacollector = DataCollector({"water": "water", "label": lambda model: model.scenario.label})
        self.datacollector.collect(self)

    def end_step(self) -> None:
        self.water += self.scenario.gain * (self.scenario.level - self.water) + self.random.gauss(0, 0.3)
        self.running = self.water < 30


def observed(gain: float = 0.3, level: int = 12, steps: int = 12) -> pd.DataFrame:
    """Return what a tank does whose parameters are not the defaults."""
    tank = TankModel(gain=gain, level=level, rng=999)
    tank.run_for(steps)
    water = tank.datacollector.model_vars["water"]
    return pd.DataFrame({"step": range(steps + 1), "water": water})


def small(folder: Path, target: Any = None, ranges: Any = None, **changes: Any) -> Calibration:
    """Make a small calibration, in this process."""
    how: dict[str, Any] = {"points": 40, "seeds": 1, "search": 0, "workers": 1, **changes}
    own = {"gain": (0, 1), "level": (0, 20)} if ranges is None else ranges
    return calibrate(TankModel, observed() if target is None else target, own, folder=folder, **how)


def test_planted_parameters_are_recovered_in_ninety_of_a_hundred_data_sets(tmp_path: Path) -> None:
    found = small(tmp_path, points=100)
    for one, truth in zip(found.parameters, (0.3, 12), strict=True):
        assert one.low <= truth <= one.high
        assert one.n_recovered == 100
        assert one.n_covered >= 90
        assert one.recovery_error < 0.6 * one.prior_error
    defaults, best, median = found.fits
    assert (defaults.name, best.name, median.name) == ("defaults", "best", "posterior median")
    for fit in (best, median):
        assert fit.fit_error is not None
        assert fit.held_out_error is not None
        assert fit.fit_error < 0.3 * (defaults.fit_error or 0)
        assert fit.held_out_error < 0.3 * (defaults.held_out_error or 0)
    assert (found.fitted_steps, found.held_out_steps) == ((0, 8), (9, 12))


def test_steps_held_out_take_no_part_in_the_fit(tmp_path: Path) -> None:
    first, target = small(tmp_path), observed()
    target.loc[target["step"] > 8, "water"] += 100
    again = small(tmp_path, target)
    assert again.parameters == first.parameters
    assert [fit.fit_error for fit in again.fits] == [fit.fit_error for fit in first.fits]
    assert min(fit.held_out_error or 0 for fit in again.fits) > 10


def test_the_search_finds_a_smaller_error_and_resumes(tmp_path: Path) -> None:
    target = observed()
    target.to_csv(tmp_path / "observed.csv", index=False)
    first = small(tmp_path, tmp_path / "observed.csv", points=20, search=2)
    assert (first.n_runs, first.n_done) == (52, 52)
    assert small(tmp_path, target, points=20, search=2).n_done == 0
    for kind in ("prior", "search"):
        next(iter((tmp_path / kind).glob("*-*.json"))).unlink()
    again = small(tmp_path, target, points=20, search=2)
    assert again.n_done == 2
    assert again.to_json() | {"n_done": 52} == first.to_json()
    assert json.loads((tmp_path / "calibration.json").read_text()) == again.to_json()
    assert pd.read_csv(tmp_path / "posterior.csv").columns.tolist() == ["gain", "level", "weight"]
    more = small(tmp_path, target, points=21, search=0)
    assert more.n_done == 1 + 20  # one more point, and the check of the two results that it changes


def test_light_runs_give_the_same_posterior(tmp_path: Path) -> None:
    light = small(tmp_path / "light", options={"light": True})
    assert light.parameters == small(tmp_path / "logged").parameters


def test_runs_that_end_early_are_left_out(tmp_path: Path) -> None:
    found = small(tmp_path, ranges={"level": (0, 45)}, fixed={"gain": 0.5})
    assert 5 < found.n_incomplete < 20
    assert found.parameters[0].high < 30


def test_cells_without_a_value_are_left_out(tmp_path: Path) -> None:
    target = observed()
    target.loc[3, "water"] = np.nan
    assert small(tmp_path, target).parameters[0].n_recovered == 40


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"target": observed().rename(columns={"water": "waters"})}, "column 'waters', which TankModel does not "
         "collect; it collects water, label; did you mean water"),
        ({"target": observed().rename(columns={"step": "day"})}, "has the columns day, water; wanted 'step'"),
        ({"target": observed(steps=3).iloc[1:]}, "has 3 steps, of which 2 would be fitted and 1 held out; both need 2"),
        ({"target": observed().assign(step=1)}, "numbers each step once"),
        ({"target": observed().assign(water="much")}, "the column 'water' holds 'much'; wanted a number"),
        ({"target": observed().assign(label=1.0)}, "TankModel collects 'label' as '', which is no number"),
        ({"ranges": {"gains": (0, 1)}}, "no parameter 'gains'; it has gain, level, label; did you mean gain"),
        ({"ranges": {"label": (0, 1)}}, "label is not a number, so it has no range"),
        ({"ranges": {"gain": (1, 0)}}, "gain=1:0: a range goes from a lower to a higher value"),
        ({"ranges": {"gain": (0, 2)}}, "gain: input should be less than or equal to 1"),
        ({"ranges": {}}, "no parameter has a range"),
        ({"points": 10}, "points=10: a posterior needs 20"),
        ({"hold_out": 0}, "between 0 and 1; got 0"),
        ({"accepted": 0}, "above 0 and up to 1; got 0"),
        ({"fixed": {"level": 99}, "ranges": {"gain": (0.6, 1)}}, "no run has a value of 'water' in step 2: all"),
        ({"fixed": {"gain": 0.5}}, "'gain' is both varied and fixed"),
        ({"llms": "rule"}, r"no llms=; did you mean llm\?"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_error_that_says_so(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        small(tmp_path, **{"points": 20, **changes})


class LateModel(TankModel):
    """A tank that is not looked at before its first step."""

    def __init__(self, scenario: TankScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        self.datacollector = DataCollector({"water": "water"})


def test_a_step_in_which_the_model_collects_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the target has a step 0, and LateModel collects nothing"):
        calibrate(LateModel, observed(), {"gain": (0, 1)}, folder=tmp_path, points=20, seeds=1, workers=1)


class BrokenModel(TankModel):
    """A tank that breaks."""

    def end_step(self) -> None:
        raise ZeroDivisionError


def test_runs_that_fail_end_the_calibration(tmp_path: Path) -> None:
    with pytest.raises(
        MesaLLMError, match=r"20 runs of prior failed\. The first one: the model broke: ZeroDivisionError"
    ):
        calibrate(BrokenModel, observed(), {"gain": (0, 1)}, folder=tmp_path, points=20, seeds=1, workers=1)
