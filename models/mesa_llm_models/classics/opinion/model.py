"""Bounded confidence: people meet, and compromise with those who think much as they do."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Annotated, Any, Literal, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    ActionResult,
    Label,
    LazyObservation,
    LLMAgent,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Observation,
    Slider,
    Structure,
    ToolCall,
    action,
)
from mesa_llm_models.classics.opinion.text import KEPT, TOPIC, TRAITS, Meeting, changed_text, observation_text
from mesa_llm_models.classics.people import People, configs_of, known_as

CLUSTER_SHARE = 0.05
"""Minimum share of all people for a group of similar opinions to be a cluster."""

CLUSTER_GAP = 0.02
"""Minimum distance between neighbouring opinions of different groups."""


class OpinionScenario(LLMScenario):
    """Parameters of the people and their meetings."""

    n_agents: Annotated[int, Field(ge=2, le=1000), Slider(2, 300, label="People")] = 30
    """Number of people; if it is odd, one meets nobody."""

    epsilon: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Bound of confidence")] = 0.2
    """Largest difference of opinions at which the rule twin compromises."""

    mu: Annotated[float, Field(gt=0, le=0.5), Slider(0.05, 0.5, 0.05, label="Size of a compromise")] = 0.5
    """Share of the difference that a compromise moves an opinion by, where people meet in pairs."""

    meetings: Annotated[
        Literal["pairs", "everyone"], Structure("pairs", "everyone", dimension="interaction protocol")
    ] = "pairs"
    """Pairs drawn anew in each step (Deffuant), or the mean of all within the bound (Hegselmann and Krause)."""

    topic: str = TOPIC
    """Topic of the opinions: 0 means nothing, 100 everything."""

    people: Annotated[People, Label("Persons")] = "drawn"
    """Whether agents are people with names and traits, drawn with the seed, or all alike."""

    memory: str = "window:4"
    """Memory of the people."""


class Citizen(LLMAgent):
    """A person with an opinion.

    Attributes:
        opinion: From 0 to 1.
        opposite: The opinion it meets in this step; None: it meets nobody.
        met: Whose opinion that is, as others speak of them; empty: it is the mean of similar opinions.
    """

    def __init__(self, model: OpinionModel, opinion: float, **components: Any) -> None:
        """Start with an opinion.

        Args:
            model: The model.
            opinion: From 0 to 1.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.opinion = opinion
        self.opposite: float | None = None
        self.met = ""

    def observe(self) -> Observation:
        """Return its opinion, and the one it meets."""
        facts = {"opinion": self.opinion}
        met = self.meeting()
        if met is not None:
            facts |= {"opposite": met.opinion, "distance": abs(met.opinion - self.opinion)}
        return LazyObservation(partial(observation_text, self.opinion, met), facts=facts)

    def meeting(self) -> Meeting | None:
        """Return the opinion it meets, as it reads it; None if it meets nobody."""
        if self.opposite is None:
            return None
        fields, outcome = self.model.scenario, self.compromised(self.opposite)
        if fields.meetings == "pairs":
            return Meeting(self.opposite, self.met, outcome=outcome)
        n_people = self.model.n_near(self.opinion)
        return Meeting(self.opposite, "", n_people, fields.epsilon, outcome)

    def compromised(self, opposite: float) -> float:
        """Return its opinion after a compromise with another one."""
        fields = self.model.scenario
        return self.opinion + (fields.mu if fields.meetings == "pairs" else 1) * (opposite - self.opinion)

    def rule(self, seen: Observation) -> ToolCall:
        """Compromise within the bound of confidence."""
        is_close = self.opposite is not None and abs(self.opposite - self.opinion) < self.model.scenario.epsilon
        return ToolCall("compromise" if is_close else "keep")

    def can_compromise(self) -> bool:
        """Check whether it meets anybody."""
        return self.opposite is not None

    @action(when="can_compromise")
    def compromise(self) -> ActionResult:
        """Move your opinion towards the other one."""
        if self.opposite is not None:
            self.opinion = self.compromised(self.opposite)
        self.model.n_compromises += 1
        return ActionResult(changed_text(self.opinion, self.met), opinion=self.opinion)

    @action
    def keep(self) -> str:
        """Keep your opinion as it is."""
        return KEPT


class OpinionModel(LLMModel):
    """Everybody meets another opinion, and decides for itself whether to move towards it.

    Attributes:
        n_compromises: Number of compromises in the last step.
    """

    scenario_class = OpinionScenario
    scenario: OpinionScenario
    changeable = ("epsilon", "mu", "meetings")

    def __init__(self, scenario: OpinionScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        opinions = [self.random.random() for _ in range(fields.n_agents)]
        configs = configs_of(self, TRAITS, fields.n_agents)
        Citizen.create_agents(self, fields.n_agents, opinions, memory=fields.memory, config=configs)
        self.n_compromises = 0
        names = ("clusters", "spread", "n_compromises")
        self.datacollector = DataCollector({name: name for name in names}, {"opinion": "opinion"})
        self.datacollector.collect(self)

    def start_step(self) -> None:
        """Let people meet."""
        self.n_compromises = 0
        if self.scenario.meetings == "everyone":
            for citizen in self.agents:
                citizen.opposite = self.mean_near(citizen.opinion)
            return
        citizens = list(self.agents)
        self.random.shuffle(citizens)
        for citizen in citizens:
            citizen.opposite, citizen.met = None, ""
        for one, other in zip(citizens[::2], citizens[1::2], strict=False):
            one.opposite, other.opposite = other.opinion, one.opinion
            one.met, other.met = known_as(other), known_as(one)

    def mean_near(self, opinion: float) -> float:
        """Return the mean of all opinions within the bound of confidence around one."""
        return fmean(other.opinion for other in self.agents if abs(other.opinion - opinion) <= self.scenario.epsilon)

    def n_near(self, opinion: float) -> int:
        """Return the number of opinions within the bound of confidence around one."""
        return sum(abs(other.opinion - opinion) <= self.scenario.epsilon for other in self.agents)

    @property
    def groups(self) -> list[list[float]]:
        """Opinions in groups with a gap between them, from the lowest."""
        opinions = sorted(citizen.opinion for citizen in self.agents)
        groups = [opinions[:1]]
        for lower, higher in pairwise(opinions):
            if higher - lower > CLUSTER_GAP:
                groups.append([])
            groups[-1].append(higher)
        return groups

    @property
    def clusters(self) -> int:
        """Number of groups of like opinions that are large enough to count."""
        return sum(len(group) > CLUSTER_SHARE * len(self.agents) for group in self.groups)

    @property
    def spread(self) -> float:
        """Standard deviation of the opinions."""
        return pstdev(citizen.opinion for citizen in self.agents)

    def stances(self) -> dict[int, float]:
        """Return everybody's opinion, from -1 to 1."""
        return {citizen.unique_id: 2 * citizen.opinion - 1 for citizen in self.agents}
