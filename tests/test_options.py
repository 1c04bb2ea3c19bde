"""Parameters of a model are checked before anything is built."""

import math

import pytest

from mesa_llm.activation import in_turn
from mesa_llm.errors import ConfigError
from mesa_llm.options import within
from models.social.model import SocialModel, SocialScenario
from tests.pot import PotModel


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_a_parameter_in_its_range_is_given_back(value) -> None:
    assert within("share", value, 0, 1) == value


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, -math.inf])
def test_a_parameter_out_of_its_range_is_refused_by_name(value) -> None:
    with pytest.raises(ConfigError, match="wage must be 0 or more, got"):
        within("wage", value, 0)


def test_an_activation_is_written_down_by_its_name() -> None:
    models = PotModel(1, activation=in_turn), PotModel(1, activation="in_turn")
    assert [model.runlog.manifest["parameters"]["activation"] for model in models] == ["in_turn"] * 2


def test_a_scenario_is_written_down_as_its_class_and_fields() -> None:
    written = SocialModel(scenario=SocialScenario(n_agents=5, rng=3)).runlog.manifest["parameters"]["scenario"]
    assert written["scenario"] == "models.social.model:SocialScenario"
    assert (written["fields"]["n_agents"], written["fields"]["rng"], written["fields"]["follows"]) == (5, 3, 3)
