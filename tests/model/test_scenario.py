"""A parameter is said once, in the scenario; everything else comes from there."""

from __future__ import annotations

import inspect
import math
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import pytest
from mesa.datacollection import DataCollector
from mesa.experimental.scenarios import Scenario
from pydantic import Field

from mesa_llm import ConfigError, Hidden, Label, LLMAgent, LLMModel, LLMOptions, LLMScenario, Observation, Slider
from mesa_llm.model.measures import gini
from mesa_llm.model.scenario import controls, parameters_of
from tests.pot import Pot


class TownScenario(LLMScenario):
    """Parameters of a town."""

    n_agents: Annotated[int, Field(ge=1), Slider(1, 50)] = 4
    """Number of people,
    children included."""

    wage: Annotated[float, Field(gt=0)] = 2.5
    """Dollars an hour."""

    mood: Annotated[Literal["calm", "angry"] | None, Label("Mood of the town")] = None
    names: tuple[str, ...] = ()
    is_open: bool = True
    motto: Annotated[str, Hidden()] = ""

    def check(self) -> None:
        """Refuse a town that nobody believes."""
        if self.mood == "angry" and self.n_agents == 1:
            raise ConfigError("nobody is angry alone")


class PlainScenario(Scenario):
    """A scenario of Mesa, which checks nothing."""


class Idler(LLMAgent):
    """Does nothing."""

    def rule(self, seen: Observation) -> None:
        """Do nothing."""


class TownModel(LLMModel):
    """A town."""

    scenario_class = TownScenario
    scenario: TownScenario

    def __init__(self, scenario: TownScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, worlds=(Pot(),), **options)
        for _ in range(self.scenario.n_agents):
            Idler(self)
        self.datacollector = DataCollector({"agents": lambda model: len(model.agents)})


def test_keywords_and_a_scenario_make_the_same_run() -> None:
    models = (
        TownModel(n_agents=3, rng=1),
        TownModel(TownScenario(n_agents=3, rng=1)),
        TownModel(scenario=TownScenario(n_agents=3), rng=1),
        TownModel(n_agents="3", names=["a"], rng="1"),
    )
    manifests = [model.runlog.manifest for model in models]
    assert [model.scenario.n_agents for model in models] == [3] * 4
    assert manifests[0]["parameters"] == manifests[1]["parameters"] == manifests[2]["parameters"]
    assert manifests[0]["parameters"]["n_agents"] == 3
    assert [manifest["run_seed"] for manifest in manifests] == [manifests[0]["run_seed"]] * 4
    assert models[3].scenario.names == ("a",)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"n_agents": 0}, "n_agents: .*greater than or equal to 1"),
        ({"n_agents": True}, "^n_agents: input should be a number, got True$"),
        ({"wage": math.inf}, "^wage: input .*finite"),
        ({"mood": "sad"}, "mood: .*'calm' or 'angry'"),
        ({"mood": "angry", "n_agents": 1}, "nobody is angry alone"),
        ({"n_agent": 3}, "unknown options: n_agent; did you mean n_agents?"),
        ({"scenario": TownScenario(n_agents=3), "n_agents": 4}, "give it once"),
        ({"rng": -1}, "^rng is the seed, a whole number from 0 on, got -1; leave it out for a new one$"),
        ({"rng": "x"}, "^rng is the seed, .* got 'x'"),
        ({"rng": 1.5}, "^rng is the seed, .* got 1.5"),
        ({"scenario": {"n_agents": 3}}, r"wanted a scenario \(TownScenario\), got {'n_agents': 3}; give .* by name"),
    ],
)
def test_parameters_that_cannot_be_are_refused_in_a_line(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        TownModel(**given)


def test_a_scenario_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ConfigError, match="TownScenario has no 'n_agent'"):
        TownScenario(n_agent=3)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="size needs a default"):
        type("Bare", (LLMScenario,), {"__annotations__": {"size": int}})
    with pytest.raises(ConfigError, match="rng is the seed, a whole number from 0 on, got True"):
        TownScenario(rng=True)
    with pytest.raises(ConfigError, match=r"^rng is the seed, .* got -1"):
        LLMModel(PlainScenario(rng=-1))


def test_a_seed_typed_on_a_page_of_mesa_comes_as_text_in_a_scenario() -> None:
    runs = [TownModel(scenario=TownScenario(rng=seed)) for seed in ("42", 42)]
    assert runs[0].random.random() == runs[1].random.random()
    assert TownScenario(rng="").rng is None
    with pytest.raises(ConfigError, match="rng is the seed, a whole number from 0 on, got 'x'"):
        TownScenario(rng="x")


@pytest.mark.parametrize("name", ["scenario", "rng", *LLMModel.option_defaults])
def test_a_parameter_cannot_have_the_name_of_an_option(name: str) -> None:
    with pytest.raises(TypeError, match=f"Taken.{name}: every LLMModel has an option {name}=; rename the field"):
        type("Taken", (LLMScenario,), {"__annotations__": {name: int}, name: 1})


@pytest.mark.parametrize("name", ["model", "check", "fields", "parameters", "to_dict"])
def test_a_parameter_cannot_have_the_name_of_what_all_scenarios_have(name: str) -> None:
    with pytest.raises(TypeError, match=f"Taken.{name}: every scenario has {name} of its own; rename the field"):
        type("Taken", (LLMScenario,), {"__annotations__": {name: int}, name: 1})


def test_a_model_cannot_name_a_scenario_of_mesas_as_its_class() -> None:
    with pytest.raises(TypeError, match=r"must be an LLMScenario; write class PlainScenario\(LLMScenario\)"):
        type("Plain", (LLMModel,), {"scenario_class": PlainScenario})


def test_what_a_page_and_a_list_need_comes_from_the_fields() -> None:
    by_name = {parameter.name: parameter for parameter in parameters_of(TownModel)}
    assert list(by_name) == ["n_agents", "wage", "mood", "names", "is_open", "motto"]
    assert by_name["n_agents"].meaning == "Number of people, children included."
    assert [by_name[name].range for name in ("n_agents", "wage", "mood")] == ["≥ 1", "> 0", "calm | angry | None"]
    by_control = controls(TownModel)
    assert {name: control["type"] for name, control in by_control.items()} == {
        "n_agents": "SliderInt",
        "wage": "InputText",
        "mood": "Select",
        "is_open": "Checkbox",
    }
    assert (by_control["n_agents"]["label"], by_control["mood"]["label"]) == ("Number of agents", "Mood of the town")
    assert TownModel(wage="3.5", mood="").scenario.to_dict().items() >= {"wage": 3.5, "mood": None}.items()


class SoundScenario(LLMScenario):
    """Parameters whose defaults lie beside the marks of a hundred steps, or of the step that is asked for."""

    pitch: Annotated[float, Slider(30.0, 400.0)] = 100.0
    volume: Annotated[float, Slider(0.0, 0.5, 0.05)] = 0.125
    voices: Annotated[int, Slider(5, 200, 5)] = 12
    length: Annotated[float, Slider(0.0, 1.0)] = 2.5


def test_a_slider_has_a_mark_at_the_default() -> None:
    sliders = controls(type("SoundModel", (LLMModel,), {"scenario_class": SoundScenario}))
    steps = [sliders[name]["step"] for name in ("pitch", "volume", "voices", "length")]
    assert steps == pytest.approx([1.0, 0.025, 1, 0.025])
    assert sliders["length"]["max"] == 2.5


def test_the_signature_shows_parameters_and_options() -> None:
    taken = inspect.signature(TownModel).parameters
    assert list(taken)[:4] == ["scenario", "n_agents", "wage", "mood"]
    assert taken["n_agents"].default == 4
    assert {"llm", "rng", "log", "max_calls"} <= set(taken)
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())


def test_mesas_batch_run_drives_fields_and_scenarios() -> None:
    batch_run = pytest.importorskip("mesa.batchrunner").batch_run  # Mesa 4.0.0a0 has none
    how: dict[str, Any] = {"rng": [1, 2], "max_steps": 1, "display_progress": False}
    rows = batch_run(TownModel, {"n_agents": np.arange(2, 4)}, **how)
    assert {(row["n_agents"], row["rng"], row["agents"]) for row in rows} == {
        (2, 1, 2),
        (2, 2, 2),
        (3, 1, 3),
        (3, 2, 3),
    }
    rows = batch_run(TownModel, {"scenario": [TownScenario(n_agents=5)]}, **how)
    assert {(row["rng"], row["agents"]) for row in rows} == {(1, 5), (2, 5)}


@pytest.mark.parametrize(("values", "wanted"), [([], 0), ([0, 0], 0), ([3, 3, 3], 0), ([0, 0, 0, 1], 0.75)])
def test_gini(values: list[float], wanted: float) -> None:
    assert gini(values) == pytest.approx(wanted)
