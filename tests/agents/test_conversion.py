"""Agents of Mesa's own models that get a mind: counted, activated, born and removed as before."""

from typing import Any

import mesa
import pytest
from mesa.examples.advanced.wolf_sheep.agents import Sheep, Wolf
from mesa.examples.advanced.wolf_sheep.model import WolfSheep, WolfSheepScenario

from mesa_llm import ConfigError, LLMAgent, Mind, Observation, ToolCall, action
from mesa_llm.agents.conversion import AgentsByType
from mesa_llm.engine.plain import connect, engine_of


class Ewe(Sheep, Mind):
    """Mesa's sheep, with a mind."""

    @action
    def graze(self) -> str:
        """Eat where you are."""
        self.feed()
        return "You ate."

    @action
    def bear(self) -> str:
        """Have a lamb."""
        self.spawn_offspring()
        return "You have a lamb."

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("graze")


def flock(**components) -> WolfSheep:
    model = WolfSheep(WolfSheepScenario(width=8, height=8, initial_sheep=10, initial_wolves=5, rng=1))
    Ewe.enter(model.agents_by_type[Sheep], **components)
    return model


def test_a_model_that_activates_by_class_goes_on_activating_those_that_entered() -> None:
    model = flock()
    model.step()
    decided = engine_of(model).runlog.decisions()
    assert 0 < len(decided) <= 10
    assert set(decided["agent"]) <= set(range(1, 11))


def test_an_agent_that_entered_and_is_removed_is_in_no_set_of_its_model() -> None:
    model = flock()
    model.run_for(3)
    (alive,) = {frozenset(model.agents_by_type[kind]) for kind in (Sheep, Ewe)}
    assert alive == {agent for agent in model.agents if isinstance(agent, Ewe)}
    assert len(alive) < 10


def test_agents_that_entered_are_counted_once_among_all_classes() -> None:
    model = flock()
    agents = [agent for kind in model.agent_types for agent in model.agents_by_type[kind]]
    assert sorted(agent.unique_id for agent in agents) == sorted(agent.unique_id for agent in model.agents)
    assert Ewe in model.agents_by_type


def test_child_of_a_converted_agent_is_activated_like_its_parent() -> None:
    model = flock(llm="random", config="You are a sheep.", memory="none")
    (mother,) = model.agents_by_type[Ewe].select(lambda ewe: ewe.unique_id == 1)
    mother.spawn_offspring()
    lamb = list(model.agents)[-1]
    assert lamb in model.agents_by_type[Sheep]
    assert (lamb.llm, lamb.config.persona, type(lamb.memory)) == ("random", "You are a sheep.", type(mother.memory))


def test_agents_enter_once() -> None:
    model = flock()
    with pytest.raises(ConfigError, match="agent 1 is a Ewe and is converted already; set its llm"):
        Ewe.enter(model.agents_by_type[Ewe], llm="random")


def test_what_an_agent_keeps_under_the_name_of_a_component_is_not_lost() -> None:
    model = WolfSheep(WolfSheepScenario(initial_sheep=1, rng=1))
    model.agents_by_type[Sheep].set("memory", ["grass"])
    with pytest.raises(ConfigError, match="Sheep already has an attribute memory; rename it"):
        Ewe.enter(model.agents_by_type[Sheep])
    assert list(model.agents_by_type[Sheep].get("memory")) == [["grass"]]


def test_the_memory_given_on_entering_is_the_memory_an_agent_has() -> None:
    assert {agent.memory.kind for agent in flock(memory="chat:500").agents_by_type[Ewe]} == {"chat"}


def test_mesa_registers_agents_in_the_sets_that_conversion_replaces() -> None:
    """Contract with Mesa, whose mapping of agents by class is private."""
    model = flock()
    assert model.agents_by_type is model._agents_by_type is AgentsByType.of(model)
    born = Ewe(model)
    assert born in model.agents_by_type[Ewe]
    assert born in model.agents_by_type[Sheep]
    born.remove()
    assert born not in model.agents_by_type[Ewe]
    assert born not in model.agents_by_type[Sheep]
    assert Ewe not in model.agent_types


def test_selecting_converted_agents_does_not_change_the_model() -> None:
    model = flock()
    chosen = model.agents_by_type[Ewe].select(at_most=2)
    chosen.discard(next(iter(chosen)))
    assert (len(chosen), len(model.agents_by_type[Ewe]), len(model.agents_by_type[Sheep])) == (1, 10, 10)


def test_those_that_can_be_converted_are_named_among_agents_of_several_classes() -> None:
    model = WolfSheep(WolfSheepScenario(width=8, height=8, initial_sheep=3, initial_wolves=2, rng=1))
    with pytest.raises(
        ConfigError, match=r"cannot become Ewe, as Sheep can.*Ewe\.enter\(model\.agents_by_type\[Sheep\]"
    ):
        Ewe.enter(model.agents)
    with pytest.raises(ConfigError, match=r"Wolf cannot become Ewe; write class Ewe\(Wolf, Mind\)"):
        Ewe.enter(model.agents_by_type[Wolf])


@pytest.mark.parametrize(
    ("llm", "fault"),
    [
        ("randm", "no provider is known for llm='randm'"),
        ("nosuch/model", "no provider"),
        ("", "is empty"),
        (7, "got 7"),
    ],
)
def test_a_language_model_that_does_not_exist_is_refused_when_agents_enter(llm, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        flock(llm=llm)


def test_a_name_that_an_endpoint_knows_may_enter(tmp_path) -> None:
    for replay in (False, True):
        model = WolfSheep(WolfSheepScenario(width=8, height=8, initial_sheep=2, initial_wolves=1, rng=1))
        where: Any = {} if replay else {"api_base": "http://localhost:1/v1"}
        connect(model, log=tmp_path / "run.sqlite", replay=replay, **where)
        Ewe.enter(model.agents_by_type[Sheep], llm="mymodel")


class Prisoner(mesa.Agent):
    """Serves a sentence."""

    sentence = 3

    def step(self) -> None:
        if self.sentence:
            self.sentence -= 1
        self.look()
        self.move()

    def look(self) -> None:
        """Look around."""

    def move(self) -> None:
        """Move."""


def test_what_no_longer_runs_of_a_step_that_thinking_replaces_is_said(caplog) -> None:
    kind = type("Thinker", (Prisoner, Mind), {"move": action(lambda self: "Moved.")})
    assert issubclass(kind, Mind)
    (said,) = caplog.messages
    assert "Prisoner.step() no longer runs: Thinker decides in its place" in said
    assert "It changed or called look(), sentence, which Thinker does not" in said
    assert "def step(self): Prisoner.step(self); Mind.step(self)" in said


@pytest.mark.parametrize(
    ("bases", "own"),
    [
        ((Prisoner, Mind), {"step": lambda self: (Prisoner.step(self), Mind.step(self))}),
        ((mesa.Agent, Mind), {}),
        ((LLMAgent,), {}),
    ],
)
def test_nothing_is_said_where_no_step_is_lost(bases, own, caplog) -> None:
    type("Thinker", bases, own)
    assert caplog.messages == []
