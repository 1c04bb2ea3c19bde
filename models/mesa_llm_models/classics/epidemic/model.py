"""An epidemic on a network: people who go out or stay at home while a virus spreads along their ties."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, Unpack

import networkx as nx
from mesa.datacollection import DataCollector
from mesa.discrete_space import FixedAgent, Network
from pydantic import Field

from mesa_llm import (
    Label,
    LazyObservation,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Mind,
    Observation,
    Slider,
    Structure,
    ToolCall,
    action,
)
from mesa_llm_models.classics.epidemic.text import STAYED_HOME, TRAITS, WENT_OUT, EpidemicView, observation_text
from mesa_llm_models.classics.people import People, configs_of

Health = Literal["susceptible", "infected", "resistant"]


class EpidemicScenario(LLMScenario):
    """Parameters of the network and the virus."""

    n_agents: Annotated[int, Field(ge=2, le=2000), Slider(5, 200, label="People")] = 30
    """Number of people."""

    ties: Annotated[float, Field(ge=0), Slider(0, 10, 0.5), Structure(2.0, 6.0)] = 3.0
    """Mean number of ties of a person."""

    n_infected: Annotated[int, Field(ge=0), Slider(0, 20), Structure(1, 4)] = 2
    """Number of people who have the virus at the start."""

    spread: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.4
    """Probability that the virus passes along a tie in a step."""

    check_frequency: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.4
    """Probability that an ill person is treated in a step."""

    recovery: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.3
    """Probability that a treatment cures."""

    resistance: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.5
    """Probability that a cured person becomes resistant."""

    caution: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.0
    """Probability that the rule twin stays at home while it or one of its contacts is ill."""

    people: Annotated[People, Label("Persons")] = "drawn"
    """Whether agents are people with names and traits, drawn with the seed, or all alike."""

    memory: str = "window:4"
    """Memory of the people."""


class Person(Mind, FixedAgent):
    """A person with ties to others.

    Attributes:
        cell: Its node of the network.
        health: Whether it can catch the virus, has it, or is resistant.
        is_out: Whether it goes out in this step.
        n_out: Number of steps in which it went out.
        n_steps_ill: Number of steps since it caught the virus, if it is ill.
        has_been_ill: Whether it has had the virus and recovered.
    """

    cell: Any

    def __init__(self, model: EpidemicModel, cell: Any, **components: Any) -> None:
        """Put somebody at a node of the network, in good health.

        Args:
            model: The model.
            cell: Its node.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.cell = cell
        self.health: Health = "susceptible"
        self.is_out = True
        self.n_out = self.n_steps_ill = 0
        self.has_been_ill = False

    @property
    def contacts(self) -> list[Person]:
        """The people it has ties to."""
        return list(self.cell.neighborhood.agents)

    def observe(self) -> Observation:
        """Return its health, the number of its contacts who are ill, and what going out risks."""
        contacts = self.contacts
        n_ill = sum(other.health == "infected" for other in contacts)
        spread = self.model.scenario.spread
        seen = EpidemicView(self.health, self.n_steps_ill, self.has_been_ill, len(contacts), n_ill, spread)
        facts = {"health": self.health, "n_contacts": len(contacts), "n_ill": n_ill, "risk": seen.risk}
        return LazyObservation(partial(observation_text, seen), facts=facts)

    def rule(self, seen: Observation) -> ToolCall:
        """Go out, or stay at home with probability `caution` while the virus is near."""
        is_near = seen.facts["n_ill"] > 0 or self.health == "infected"
        is_careful = is_near and self.random.random() < self.model.scenario.caution
        return ToolCall("stay_home" if is_careful else "go_out")

    @action
    def go_out(self) -> str:
        """Go out and meet people; the virus can pass between those who are both out."""
        self.is_out = True
        self.n_out += 1
        return WENT_OUT

    @action
    def stay_home(self) -> str:
        """Stay at home; nobody can pass the virus to you, nor you to anybody."""
        self.is_out = False
        return STAYED_HOME

    def infect(self) -> None:
        """Pass the virus to contacts, if it is ill and both are out."""
        if self.health != "infected" or not self.is_out:
            return
        for other in self.contacts:
            if other.is_out and other.health == "susceptible" and self.random.random() < self.model.scenario.spread:
                other.health, other.n_steps_ill = "infected", 0

    def be_treated(self) -> None:
        """Recover by chance, if it is ill; it may then become resistant."""
        fields = self.model.scenario
        if self.health != "infected" or self.random.random() >= fields.check_frequency:
            return
        if self.random.random() < fields.recovery:
            self.health = "resistant" if self.random.random() < fields.resistance else "susceptible"
            self.has_been_ill = True


class EpidemicModel(LLMModel):
    """Everybody goes out or stays at home; then each in turn passes the virus on, and may recover.

    Attributes:
        grid: The network; one person at a node.
    """

    scenario_class = EpidemicScenario
    scenario: EpidemicScenario
    changeable = ("spread", "check_frequency", "recovery", "resistance", "caution")

    def __init__(self, scenario: EpidemicScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        n, p = fields.n_agents, min(1.0, fields.ties / fields.n_agents)
        graph = nx.gnp_random_graph(n, p, seed=self.random.getrandbits(32))
        self.grid = Network(graph, capacity=1, random=self.random, layout=nx.circular_layout(graph))
        configs = configs_of(self, TRAITS, n)
        Person.create_agents(self, n, list(self.grid.all_cells), memory=fields.memory, config=configs)
        for person in self.random.sample(list(self.agents), min(fields.n_infected, n)):
            person.health = "infected"
        self.datacollector = DataCollector({name: name for name in ("infected", "susceptible", "resistant", "out")})
        self.datacollector.collect(self)

    def end_step(self) -> None:
        """Let the virus spread; a run ends when nobody is ill."""
        for person in self.agents.shuffle():
            person.infect()
            person.be_treated()
        for person in self.agents:
            person.n_steps_ill += person.health == "infected"
        self.running = self.infected > 0

    def share(self, health: Health) -> float:
        """Return the share of people in a state of health."""
        return sum(person.health == health for person in self.agents) / len(self.agents)

    @property
    def infected(self) -> float:
        """Share of people who are ill."""
        return self.share("infected")

    @property
    def susceptible(self) -> float:
        """Share of people who can catch the virus."""
        return self.share("susceptible")

    @property
    def resistant(self) -> float:
        """Share of people who cannot catch the virus any more."""
        return self.share("resistant")

    @property
    def out(self) -> float:
        """Share of people who went out in the last step."""
        return sum(person.is_out for person in self.agents) / len(self.agents)
