"""A scenario and parameters by keyword are settled into one scenario and one seed."""

from typing import Any

import pytest
from mesa.experimental.scenarios import Scenario

from mesa_llm import LLMModel
from mesa_llm.errors import ConfigError
from mesa_llm.model.scenario import LLMScenario
from mesa_llm_models.social.model import SocialModel, SocialScenario
from tests.pot import PotModel


class Parametrised(PotModel):
    """Takes parameters by keyword and in a scenario, as Mesa's models do."""

    def __init__(self, n_agents=4, rng=None, scenario=None, **options) -> None:
        super().__init__(n_agents if scenario is None else scenario.n_agents, rng=rng, scenario=scenario, **options)


class PotScenario(Scenario):
    """Parameters of a pot."""

    n_agents: int = 4


@pytest.mark.parametrize(
    ("fields", "given", "seed"),
    [
        ({"rng": 7}, {"rng": 7}, 7),
        ({"rng": 7}, {"rng": "7"}, 7),
        ({"rng": 7}, {}, 7),
        ({"rng": 7, "n_agents": 3}, {"n_agents": 3}, 7),
        ({}, {"rng": 7}, 7),
        ({}, {"rng": "7"}, 7),
    ],
)
def test_a_scenario_and_keywords_that_agree_are_one(fields, given, seed) -> None:
    scenario = PotScenario(**fields)
    model, same = Parametrised(scenario=scenario, **given), PotModel(scenario.n_agents, rng=seed)
    for one in (model, same):
        one.run_for(2)
    assert (model.runlog.manifest["rng"], model.runlog.digest) == (seed, same.runlog.digest)


@pytest.mark.parametrize("given", [{"rng": 8}, {"rng": "8"}, {"n_agents": 5}, {"n_agents": 5, "rng": 7}])
def test_a_scenario_and_keywords_that_differ_are_an_error(given) -> None:
    with pytest.raises(ConfigError, match=r"by keyword and .* in the scenario; give it once"):
        Parametrised(scenario=PotScenario(rng=7), **given)


def test_the_scenario_of_another_model_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"SocialModel: wanted a scenario \(SocialScenario\), got a PotScenario"):
        SocialModel(PotScenario(rng=1))


def test_mesas_batch_run_gives_a_scenario_its_seeds() -> None:
    batch_run = pytest.importorskip("mesa.batchrunner").batch_run  # Mesa 4.0.0a0 has none
    scenario = SocialScenario(n_agents=3)
    rows = batch_run(SocialModel, {"scenario": [scenario]}, rng=[1, 2], max_steps=2, display_progress=False)
    assert {row["rng"] for row in rows} == {1, 2}
    assert scenario.to_dict()["rng"] is None
    with pytest.raises(ConfigError, match="rng is 1 by keyword and 7 in the scenario"):
        batch_run(SocialModel, {"scenario": [SocialScenario(rng=7)]}, rng=[1], display_progress=False)


class Meeting(LLMScenario):
    """Parameters of a meeting."""

    n_agents: int = 4


def model_with(initialise, base=LLMModel):
    return type("Assembly", (base,), {"scenario_class": Meeting, "__init__": initialise})


def forgets_all(self, scenario=None, **options):
    LLMModel.__init__(self, scenario)


def forgets_the_scenario(self, scenario=None, **options):
    LLMModel.__init__(self, **options)


def forgets_the_seed(self, scenario=None, *, rng=None, **options):
    LLMModel.__init__(self, scenario, **options)


def passes_a_part_on(self, scenario=None, **options):
    LLMModel.__init__(self, scenario, rng=options["rng"])


def replaces(self, scenario=None, **options: Any):
    others: Any = {**options, "llm": "random"}
    LLMModel.__init__(self, scenario, **others)


def makes_a_scenario(self, scenario=None, **options):
    LLMModel.__init__(self, Meeting(rng=1))


@pytest.mark.parametrize(
    ("initialise", "given", "lost"),
    [
        (forgets_all, {"llm": "mock/a", "rng": 1, "max_calls": 5}, "llm, rng, max_calls on to super"),
        (forgets_all, {"llm": "mock/a"}, r"llm on .*llm='mock/a' became 'rule'"),
        (forgets_the_scenario, {"scenario": Meeting(n_agents=9)}, "scenario on to super"),
        (forgets_the_seed, {"rng": 1}, "rng on to super"),
        (passes_a_part_on, {"rng": 1, "llm": "random"}, "llm on to super"),
        (replaces, {"llm": "mock/a"}, "llm='mock/a' became 'random'"),
        (makes_a_scenario, {"n_agents": 9}, "n_agents=9 became 4"),
    ],
)
def test_an_option_that_a_model_does_not_pass_on_is_an_error(initialise, given, lost) -> None:
    kind = model_with(initialise)
    inherits = type("Inherits", (kind,), {"__init__": lambda self, *args, **rest: kind.__init__(self, *args, **rest)})
    for one in (kind, inherits):
        with pytest.raises(ConfigError, match=lost):
            one(**given)


def test_options_that_are_passed_on_or_replaced_on_purpose_are_no_error() -> None:
    def chooses(self, scenario=None, *, llm="rule", **options):
        LLMModel.__init__(self, scenario, llm={"*": llm}, **options)

    model = model_with(chooses)(Meeting(n_agents=3), llm="random", rng=1)
    assert (model.llm, model.scenario.n_agents) == ({"*": "random"}, 3)
    assert model_with(forgets_all)(n_agents=9, llm="rule").scenario.n_agents == 9  # fields, and what is the default
