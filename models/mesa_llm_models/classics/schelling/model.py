"""Schelling's model of segregation: a town of two groups, whose members stay or move."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Annotated, Any, Unpack

from mesa.datacollection import DataCollector
from mesa.discrete_space import CellAgent, OrthogonalMooreGrid
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
from mesa_llm_models.classics.people import People, configs_of
from mesa_llm_models.classics.schelling.text import MOVED, NO_HOME, STAYED, TRAITS, Neighbourhood, observation_text

COLOURS = ("orange", "blue")
"""Names of the majority and of the minority."""


class SchellingScenario(LLMScenario):
    """Parameters of the town."""

    size: Annotated[int, Field(ge=2, le=100), Slider(4, 30), Structure(6, 12)] = 8
    """Number of cells along each side of the town."""

    density: Annotated[
        float, Field(gt=0, lt=1), Slider(0.1, 0.95, 0.05), Structure(0.6, 0.9, dimension="population")
    ] = 0.8
    """Probability that a cell is occupied at the start."""

    minority: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05), Structure(0.3)] = 0.5
    """Probability that a resident is blue."""

    homophily: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05)] = 0.4
    """Minimum share of neighbours of their own colour for residents to be content."""

    radius: Annotated[int, Field(ge=1, le=5), Slider(1, 5), Structure(2)] = 1
    """Radius of the neighbourhood, in cells."""

    states_wish: bool = True
    """Whether the prompt states the share from which on residents are content; else that is left to them."""

    people: Annotated[People, Label("Residents")] = "drawn"
    """Whether residents are people with names and traits, drawn with the seed, or all alike."""

    memory: str = "window:4"
    """Memory of the residents."""


class Resident(Mind, CellAgent):
    """A resident, of one of two colours.

    Attributes:
        cell: Its home.
        colour: Its colour.
    """

    cell: Any

    def __init__(self, model: SchellingModel, cell: Any, colour: str, **components: Any) -> None:
        """Move in.

        Args:
            model: The town.
            cell: Its first home.
            colour: Its colour.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.cell = cell
        self.colour = colour

    @property
    def neighbours(self) -> list[Resident]:
        """The residents within the radius."""
        return list(self.cell.get_neighborhood(radius=self.model.scenario.radius).agents)

    @property
    def likeness(self) -> float:
        """Share of its neighbours who have its colour; 0 without neighbours, as in Mesa's example."""
        neighbours = self.neighbours
        return fmean(other.colour == self.colour for other in neighbours) if neighbours else 0.0

    @property
    def is_happy(self) -> bool:
        """Whether enough neighbours have its colour."""
        return self.likeness >= self.model.scenario.homophily

    def observe(self) -> Observation:
        """Return the neighbours by colour, and whether they make it content."""
        fields = self.model.scenario
        colours = [other.colour for other in self.neighbours]
        n_alike = colours.count(self.colour)
        likeness = n_alike / len(colours) if colours else 0.0
        wish = fields.homophily if fields.states_wish else None
        n_empty = fields.size**2 - len(self.model.agents)
        facts = {
            "colour": self.colour,
            "n_alike": n_alike,
            "n_others": len(colours) - n_alike,
            "likeness": likeness,
            "n_empty": n_empty,
            **({} if wish is None else {"content": likeness >= wish}),
        }
        text = partial(observation_text, Neighbourhood(self.colour, n_alike, len(colours) - n_alike, n_empty), wish)
        return LazyObservation(text, facts=facts)

    def rule(self, seen: Observation) -> ToolCall:
        """Move if unhappy."""
        likeness = self.likeness if seen.facts is None else seen.facts["likeness"]
        is_happy = likeness >= self.model.scenario.homophily
        return ToolCall("stay" if is_happy or not self.can_move() else "move")

    @action
    def stay(self) -> str:
        """Stay where you live."""
        return STAYED

    def can_move(self) -> bool:
        """Check whether a home is empty."""
        return len(self.model.agents) < self.model.scenario.size**2

    @action(when="can_move")
    def move(self) -> ActionResult:
        """Move away, into an empty home that is chosen at random."""
        if not self.can_move():
            raise ToolError(NO_HOME)
        self.cell = self.model.grid.select_random_empty_cell()
        self.model.n_moves += 1
        return ActionResult(MOVED, coordinate=self.cell.coordinate)


class SchellingModel(LLMModel):
    """Residents decide on the same map whether to stay; then those who leave move, one after another.

    Attributes:
        grid: The town; one home in a cell.
        n_moves: Number of moves in the last step.
    """

    scenario_class = SchellingScenario
    scenario: SchellingScenario
    changeable = ("homophily", "radius")

    def __init__(self, scenario: SchellingScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        self.grid = OrthogonalMooreGrid((fields.size, fields.size), capacity=1, random=self.random)
        homes = [
            (cell, COLOURS[self.random.random() < fields.minority])
            for cell in self.grid.all_cells
            if self.random.random() < fields.density
        ]
        for (cell, colour), config in zip(homes, configs_of(self, TRAITS, len(homes)), strict=True):
            Resident(self, cell, colour, memory=fields.memory, config=config)
        self.n_moves = 0
        self.datacollector = DataCollector({name: name for name in ("likeness", "happy", "n_moves")})
        self.datacollector.collect(self)

    @property
    def likeness(self) -> float:
        """Mean share of neighbours of one's own colour: about 0.5 where colours are mixed, 1 where they live apart."""
        return fmean(agent.likeness for agent in self.agents) if len(self.agents) else 0.0

    @property
    def happy(self) -> int:
        """Number of residents with enough neighbours of their own colour."""
        return sum(agent.is_happy for agent in self.agents)

    def start_step(self) -> None:
        """Reset the count of moves."""
        self.n_moves = 0

    def end_step(self) -> None:
        """End the run when everybody is happy."""
        self.running = self.happy < len(self.agents)
