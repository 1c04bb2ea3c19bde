"""Pages of plain Mesa models, whose agents got minds by `Mind.enter`."""

from __future__ import annotations

import pickle
from typing import Any, cast

import mesa
import pytest
import reacton
from ipyvue import VueTemplate
from ipyvuetify import Alert
from mesa.examples.advanced.wolf_sheep.model import WolfSheep, WolfSheepScenario
from mesa.examples.basic.boltzmann_wealth_model.agents import MoneyAgent
from mesa.examples.basic.boltzmann_wealth_model.model import BoltzmannScenario, BoltzmannWealth
from mesa.visualization import SolaraViz

from mesa_llm import Mind, action
from mesa_llm.engine.engine import Engine
from mesa_llm.errors import ConfigError
from mesa_llm.viz import ActionTable, AgentInspector, CostMeter, EventLog, InterviewForm, Measures, Runner, Space
from mesa_llm.viz.components.space import portray, portray_classes
from mesa_llm.viz.render.trace import agent_steps
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.rw_lock import lock_of, steady
from mesa_llm.viz.session.session import PageSession
from mesa_llm_models.social.components import follow_network, spread_curves


class Giver(MoneyAgent, Mind):
    """Gives one coin to somebody, where it can."""

    @action
    def give(self) -> str:
        """Give one coin to somebody in your cell."""
        return f"You have {self.wealth} coins left."


@pytest.fixture
def model() -> BoltzmannWealth:
    made = BoltzmannWealth(BoltzmannScenario(n=4, width=2, height=2, rng=1))
    Giver.enter(made.agents, llm="random", config="You are generous.")
    return made


def texts_of(element: Any) -> str:
    """Return all that a component shows, as one text."""
    _, context = reacton.render(element, handle_error=False)
    found = "".join(str(one.get_state()) for kind in (VueTemplate, Alert) for one in context.find(kind).widgets)
    context.close()
    return found


def test_the_open_step_of_a_plain_model_can_be_looked_into(model: BoltzmannWealth) -> None:
    model.run_for(2)
    first, second = agent_steps(model, 1)
    assert (first.time, second.time) == (2, 1)
    assert first.decisions[0].by == "chance"
    assert [deed.action for deed in first.actions] in ([], ["give"])


def test_looking_at_a_plain_model_does_not_connect_it(model: BoltzmannWealth) -> None:
    for show in (AgentInspector, ActionTable, CostMeter, Measures, Space):
        texts_of(show(model))
    assert Engine.of(model) is None


def test_components_show_what_a_plain_model_did_and_measured(model: BoltzmannWealth) -> None:
    model.run_for(1)
    assert "You are generous." in texts_of(AgentInspector(model))
    assert "coins left." in texts_of(ActionTable(model))
    assert ">4<" in texts_of(CostMeter(model))
    assert "Gini" in texts_of(Measures(model))


def test_agent_classes_have_own_colours_and_grass_is_drawn_below() -> None:
    meadow = WolfSheep(WolfSheepScenario(rng=1))
    portray_class = portray_classes()
    looks: dict[str, Any] = {type(agent).__name__: portray_class(agent) for agent in meadow.agents}
    assert len({look.color for look in looks.values()}) == 3
    assert looks["GrassPatch"].zorder < looks["Sheep"].zorder == looks["Wolf"].zorder


def test_static_agents_are_drawn_below_moving_ones() -> None:
    looks: dict[str, Any] = {type(agent).__name__: portray(agent) for agent in WolfSheep(WolfSheepScenario()).agents}
    assert looks["GrassPatch"].zorder < looks["Sheep"].zorder
    assert looks["GrassPatch"].color != looks["Sheep"].color


@pytest.mark.parametrize("show", [EventLog, InterviewForm, follow_network(), spread_curves()])
def test_what_needs_an_llm_model_says_so_in_its_place(show: Any, model: BoltzmannWealth) -> None:
    assert "needs an LLMModel, and BoltzmannWealth is a plain Mesa model" in texts_of(show(model))


def test_a_model_that_measures_nothing_says_so() -> None:
    assert "has no data collector" in texts_of(Measures(mesa.Model(rng=1)))


def test_a_page_of_mesa_draws_our_components_of_a_plain_model(model: BoltzmannWealth) -> None:
    model.run_for(1)
    drawn: list[Any] = []
    components: Any = [AgentInspector, ActionTable, CostMeter, Measures, drawn.append]
    page = SolaraViz(model, components=components)
    _, context = reacton.render(page, handle_error=False)  # raises what any of them raises
    context.close()
    assert drawn[0] is model


def test_a_runner_names_what_steps_a_plain_model(model: BoltzmannWealth) -> None:
    with pytest.raises(
        ConfigError, match="steps LLMModels, and BoltzmannWealth is a plain Mesa model: step it yourself"
    ):
        Runner(cast(Any, model))


@pytest.mark.parametrize("factory", [BoltzmannWealth, lambda: BoltzmannWealth()])
def test_our_page_names_the_page_that_shows_a_plain_model(factory: Any) -> None:
    session = PageSession(factory, RunSettings(seed="42"))
    assert "makes a plain Mesa model: show it with Mesa's SolaraViz" in session.error
    assert session.runner is None


def test_a_model_that_a_page_has_shown_can_still_be_copied() -> None:
    model = mesa.Model(rng=1)
    with steady(model):
        _, context = reacton.render(AgentInspector(model), handle_error=False)
        context.close()
    copied = pickle.loads(pickle.dumps(model))
    assert lock_of(copied) is not lock_of(model)
