"""A scenario and parameters by keyword are settled into one scenario and one seed."""

import pytest
from mesa.experimental.scenarios import Scenario

from mesa_llm.errors import ConfigError
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
