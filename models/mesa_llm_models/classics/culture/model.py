"""The spread of culture: villagers meet a neighbour, and take over one of its habits or keep their own."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, Unpack

import networkx as nx
from mesa.datacollection import DataCollector
from mesa.discrete_space import FixedAgent, OrthogonalVonNeumannGrid
from pydantic import Field

from mesa_llm import (
    ActionResult,
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
    ToolError,
    action,
)
from mesa_llm.engine.activation import everyone
from mesa_llm_models.classics.culture.text import (
    KEPT,
    NOT_DIFFERENT,
    TRAITS,
    habit_name,
    observation_text,
    taken_text,
)
from mesa_llm_models.classics.people import OptionOrder, People, configs_of, known_as


class CultureScenario(LLMScenario):
    """Parameters of the village."""

    size: Annotated[int, Field(ge=2, le=50), Slider(2, 20), Structure(6, 14)] = 10
    """Number of houses along each side of the village, which has an edge."""

    features: Annotated[int, Field(ge=1, le=20), Slider(1, 15), Structure(3, 10)] = 5
    """Number of habits that everybody has (Axelrod's features)."""

    traits: Annotated[int, Field(ge=1, le=100), Slider(1, 30), Structure(5, 15)] = 10
    """Number of forms that each habit may take (Axelrod's traits)."""

    meetings: Annotated[
        Literal["one by one", "at once"], Structure("one by one", "at once", dimension="interaction protocol")
    ] = "one by one"
    """As many meetings in a step as there are villagers, of villagers drawn one after another (Axelrod); or everybody
    meets a neighbour, and all decide at once."""

    people: Annotated[People, Label("Villagers")] = "drawn"
    """Whether villagers are people with names and traits, drawn with the seed, or all alike."""

    option_order: OptionOrder = "drawn"
    """Whether the order of the habits in the prompt is drawn for each meeting, or always the same."""

    memory: str = "none"
    """Memory of the villagers."""


class Villager(Mind, FixedAgent):
    """Has a house and some habits.

    Attributes:
        cell: Its house.
        habits: Its trait for each feature, from 0.
        met: The habits of the neighbour it meets, as they are when they meet.
        met_name: How others speak of that neighbour.
    """

    cell: Any

    def __init__(self, model: CultureModel, cell: Any, **components: Any) -> None:
        """Move into a house, with habits that are drawn; `components` are `config`, `memory`, `llm`, `tools`."""
        super().__init__(model, **components)
        self.cell = cell
        self.habits = [self.random.randrange(model.scenario.traits) for _ in range(model.scenario.features)]
        self.met = tuple(self.habits)
        self.met_name = ""

    @property
    def neighbours(self) -> list[Villager]:
        """Those who live next door: up to four."""
        return list(self.cell.neighborhood.agents)

    def meet(self) -> None:
        """Meet a neighbour, who is drawn."""
        neighbour = self.random.choice(self.neighbours)
        self.met, self.met_name = tuple(neighbour.habits), known_as(neighbour)

    @property
    def differences(self) -> dict[str, int]:
        """Name → number of the features in which it differs from the neighbour it meets."""
        pairs = enumerate(zip(self.habits, self.met, strict=True))
        return {habit_name(feature): feature for feature, (own, theirs) in pairs if own != theirs}

    def observe(self) -> Observation:
        """Return its habits and those of the neighbour it meets."""
        names = tuple(self.differences)
        facts = {"n_shared": len(self.habits) - len(names), "n_different": len(names)}
        text = partial(observation_text, tuple(self.habits), self.met, self.met_name)
        options = {"habit": names} if names else {}
        return LazyObservation(text, facts=facts, options=options, option_order=self.model.scenario.option_order)

    def rule(self, seen: Observation) -> ToolCall:
        """Take over a habit, which is drawn, with a probability equal to the share of habits in common."""
        similarity = seen.facts["n_shared"] / self.model.scenario.features
        if seen.facts["n_different"] and self.random.random() < similarity:
            return ToolCall("take_over", {"habit": self.random.choice(seen.options["habit"])})
        return ToolCall("keep")

    def can_take_over(self) -> bool:
        """Check whether the neighbour has other habits."""
        return tuple(self.habits) != self.met

    @action(when="can_take_over")
    def take_over(self, habit: str) -> ActionResult:
        """Take over one of your neighbour's habits.

        Args:
            habit: Which of them.
        """
        feature = self.differences.get(habit)
        if feature is None:
            raise ToolError(NOT_DIFFERENT)
        self.habits[feature] = self.met[feature]
        self.model.n_taken += 1
        return ActionResult(
            taken_text(feature, self.met[feature], self.met_name), feature=feature, trait=self.met[feature]
        )

    @action
    def keep(self) -> str:
        """Keep all your habits as they are."""
        return KEPT


class CultureModel(LLMModel):
    """Villagers meet a neighbour, and take over one of its habits or keep their own.

    Attributes:
        grid: The village; one villager in a house.
        villagers: All of them.
        pairs: Those who live next door to each other.
        n_taken: Number of habits taken over in the last step.
        n_met: Number of meetings in this step, so far.
    """

    scenario_class = CultureScenario
    scenario: CultureScenario
    changeable = ("meetings",)
    max_stages = 50 * 50
    goes_on_after_failures = True

    def __init__(self, scenario: CultureScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        self.grid = OrthogonalVonNeumannGrid((fields.size, fields.size), torus=False, capacity=1, random=self.random)
        n, cells = fields.size**2, list(self.grid.all_cells)
        Villager.create_agents(self, n, cells, memory=fields.memory, config=configs_of(self, TRAITS, n))
        self.villagers: list[Villager] = list(self.agents)
        self.pairs = [
            (one, other) for one in self.villagers for other in one.neighbours if one.unique_id < other.unique_id
        ]
        self.n_taken = self.n_met = 0
        self.activation = CultureModel.first_stage
        self.datacollector = DataCollector(
            {name: name for name in ("regions", "zones", "largest", "active", "n_taken")}
        )
        self.datacollector.collect(self)

    def start_step(self) -> None:
        """Reset the counts."""
        self.n_taken = self.n_met = 0

    def first_stage(self) -> list[list[Villager]]:
        """Return the first meeting of a step, or all."""
        if self.scenario.meetings == "one by one":
            return [self.next_stage([])]
        for villager in self.villagers:
            villager.meet()
        self.n_met = len(self.villagers)
        return everyone(self)

    def next_stage(self, acted: list[Any]) -> list[Villager]:
        """Let a villager, who is drawn, meet a neighbour, until there were as many meetings as there are villagers."""
        if self.n_met == len(self.villagers):
            return []
        self.n_met += 1
        villager = self.random.choice(self.villagers)
        villager.meet()
        return [villager]

    def end_step(self) -> None:
        """End the run when all neighbours share every habit or none, and the rule twin would change nothing more."""
        self.running = self.active > 0

    def groups(self, n_shared: int) -> list[set[Villager]]:
        """Return the groups of villagers linked by neighbours who share at least `n_shared` habits, largest first."""
        village: nx.Graph[Villager] = nx.Graph()
        village.add_nodes_from(self.villagers)
        village.add_edges_from(pair for pair in self.pairs if shared(*pair) >= n_shared)
        return sorted(nx.connected_components(village), key=len, reverse=True)

    @property
    def regions(self) -> int:
        """Number of regions, in which all have the same habits."""
        return len(self.groups(self.scenario.features))

    @property
    def zones(self) -> int:
        """Number of zones, in which neighbours share at least one habit."""
        return len(self.groups(1))

    @property
    def largest(self) -> float:
        """Share of villagers who live in the largest region."""
        return len(self.groups(self.scenario.features)[0]) / len(self.villagers)

    @property
    def active(self) -> int:
        """Number of pairs of neighbours who share some habits but not all: the rule twin changes no others."""
        return sum(0 < shared(*pair) < self.scenario.features for pair in self.pairs)


def shared(one: Villager, other: Villager) -> int:
    """Return the number of habits that two villagers share."""
    return sum(map(int.__eq__, one.habits, other.habits))
