"""What may be changed in the middle of a run: every model declares it, and what it declares has an effect."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import Change, ConfigError, ToolError
from mesa_llm.model.interventions import meaning_of, variables
from mesa_llm.registry import find_models
from mesa_llm_models.auction_arena.model import AuctionArena
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.econ_agent.model import EconAgentModel
from mesa_llm_models.economy.model import EconomyModel
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.oasis.herd import HerdModel
from mesa_llm_models.oasis.polarisation import PolarisationModel
from mesa_llm_models.oasis.rumours import RumourModel
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.sotopia.model import SotopiaModel
from mesa_llm_models.stock_agent.model import StockAgentModel
from mesa_llm_models.three_worlds.model import ThreeWorldsModel

MODELS = {entry.name: entry for entry in find_models()}

CHANGELESS = {"boltzmann_wealth", "psychobench", "compost", "cognitive_biases", "emotionbench", "emergent_analogies"}
"""Models of one measurement, and one whose parameters are all about the start."""


@pytest.mark.parametrize("name", MODELS)
def test_model_variables_are_documented_and_can_be_set_between_steps(name: str) -> None:
    model = MODELS[name].load()(rng=1)
    model.step()
    found = variables(model)
    assert bool(found) != (name in CHANGELESS)
    for (world, variable), value in found.items():
        assert meaning_of(model, world, variable) or world == "economy", variable
        if model.running:
            model.inject(Change(variable=variable, value=value, world=world))
            assert variables(model)[world, variable] == value
    model.step()


def changed(model: Any, measure: Any, **changes: Any) -> tuple[Any, Any]:
    """Return a measure of two steps of a run, and of the same with a change after the first."""
    other = type(model)(**{name: getattr(model.scenario, name) for name in type(model.scenario).fields}, rng=1)
    for one in (model, other):
        one.step()
    for variable, value in changes.items():
        other.inject(Change(variable=variable, value=value))
    for one in (model, other):
        one.step()
    return measure(model), measure(other)


def test_changes_reach_the_worlds_of_the_models() -> None:
    before, after = changed(EconAgentModel(rng=1), lambda one: one.world.economy.households.tax_paid.sum(), tax="none")
    assert before > 0 == after
    before, after = changed(EconomyModel(rng=1), lambda one: one.total_output, productivity=3.0)
    assert after > before
    before, after = changed(SocialModel(rng=1), lambda one: len(one.world.feed(1)), feed_size=1)
    assert before > 1 == after
    before, after = changed(MarketModel(rng=1), lambda one: one.dollars_traded, max_trade_dollars=0.01)
    assert after < before
    assert changed(ThreeWorldsModel(rng=1), lambda one: one.crossings.crowd_dollars, crowd_dollars=7.0) == (50.0, 7.0)


def test_runs_are_made_longer_and_shorter() -> None:
    assert changed(DilemmaModel(rng=1), lambda one: one.running, rounds=2) == (True, False)
    assert changed(DiscussionModel(rng=1), lambda one: one.running, max_messages=2) == (True, False)
    assert changed(SotopiaModel(rng=1), lambda one: len(one.open_episodes) > 0, max_turns=2) == (True, False)
    assert changed(AuctionArena(rng=1), lambda one: one.scenario.n_auctions, n_auctions=3)[1] == 3
    exchange = StockAgentModel(rng=1, days=3, sessions=1)
    exchange.step()
    exchange.inject(Change(variable="days", value=1))
    exchange.run(30)
    assert (exchange.running, exchange.world.now.day) == (False, 1)


@pytest.mark.parametrize("kind", [HerdModel, PolarisationModel, RumourModel])
def test_studies_declare_what_they_read_in_each_step(kind: Any) -> None:
    model = kind(rng=1)
    model.step()
    for variable in kind.changeable:
        model.inject(Change(variable=variable, value=getattr(model.scenario, variable)))
    model.step()


def test_a_model_in_which_nothing_changes_says_so() -> None:
    with pytest.raises(ConfigError, match="'coins' cannot be changed during a run of WealthModel; what can be: none"):
        MODELS["boltzmann_wealth"].load()(rng=1).inject(Change(variable="coins", value=2))


def test_a_number_beyond_all_floats_is_refused_as_any_other_that_is_none() -> None:
    model = MarketModel(rng=1)
    for value in (10**400, float("nan"), True):
        with pytest.raises(ToolError, match="wanted fee"):
            model.world.change("max_trade_dollars", value)
