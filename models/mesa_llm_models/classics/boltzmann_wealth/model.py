"""The Boltzmann wealth model: people meet by chance, and give a coin away or keep it."""

from __future__ import annotations

from functools import partial
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
from mesa_llm.model.measures import gini
from mesa_llm_models.classics.boltzmann_wealth.text import KEPT, NOBODY_MET, TRAITS, Met, gift_text, observation_text
from mesa_llm_models.classics.people import People, configs_of, known_as


class WealthScenario(LLMScenario):
    """Parameters of the people and their coins."""

    n_agents: Annotated[int, Field(ge=2, le=1000), Slider(2, 200, label="People")] = 30
    """Number of people."""

    size: Annotated[int, Field(ge=2, le=100), Slider(2, 30), Structure(3, 10)] = 5
    """Number of cells along each side of the grid."""

    coins: Annotated[int, Field(ge=1), Slider(1, 20)] = 1
    """Number of coins that each person starts with."""

    people: Annotated[People, Label("Persons")] = "drawn"
    """Whether agents are people with names and traits, drawn with the seed, or all alike."""

    memory: str = "window:4"
    """Memory of the people."""


class Walker(Mind, CellAgent):
    """A person who walks about with coins.

    Attributes:
        cell: Its cell.
        wealth: Number of its coins.
        met: The person in its cell when it arrived; None: there was none.
    """

    cell: Any

    def __init__(self, model: WealthModel, cell: Any, **components: Any) -> None:
        """Begin in a cell, with the coins that everybody starts with.

        Args:
            model: The model.
            cell: Its first cell.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.cell = cell
        self.wealth = model.scenario.coins
        self.met: Walker | None = None

    def walk(self) -> None:
        """Go to a neighbouring cell, and meet one of those who are there now."""
        self.cell = self.cell.neighborhood.select_random_cell()
        others = [other for other in self.cell.agents if other is not self]
        self.met = self.random.choice(others) if others else None

    def observe(self) -> Observation:
        """Return its coins, and those of the person it has met and of the others there."""
        met = self.met
        if met is None:
            text = partial(observation_text, self.wealth, None)
            return LazyObservation(text, facts={"coins": self.wealth, "meets": False})
        others = [other.wealth for other in self.cell.agents if other is not self and other is not met]
        facts = {
            "coins": self.wealth,
            "meets": True,
            "their_coins": met.wealth,
            "n_others": len(others),
            "others_coins": sum(others),
        }
        text = partial(observation_text, self.wealth, Met(known_as(met), met.wealth, len(others), sum(others)))
        return LazyObservation(text, facts=facts)

    def rule(self, seen: Observation) -> ToolCall:
        """Give whenever there is a coin, and somebody."""
        return ToolCall("give" if self.can_give() else "keep")

    @action
    def keep(self) -> str:
        """Keep your coins."""
        return KEPT

    def can_give(self) -> bool:
        """Check whether it has a coin, and has met somebody."""
        return self.wealth > 0 and self.met is not None

    @action(when="can_give")
    def give(self) -> ActionResult:
        """Give one coin to the person you meet."""
        if self.met is None:
            raise ToolError(NOBODY_MET)
        self.wealth -= 1
        self.met.wealth += 1
        self.model.n_gifts += 1
        text = gift_text(known_as(self.met), self.wealth)
        return ActionResult(text, to=self.met.unique_id, wealth=self.wealth)


class WealthModel(LLMModel):
    """Everybody walks to a cell and meets somebody there; then all decide whether to give, and give in an order drawn.

    Attributes:
        grid: Where they walk; any number of people in a cell.
        n_gifts: Number of coins given in the last step.
    """

    scenario_class = WealthScenario
    scenario: WealthScenario

    def __init__(self, scenario: WealthScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        self.grid = OrthogonalMooreGrid((fields.size, fields.size), random=self.random)
        cells = self.random.choices(list(self.grid.all_cells), k=fields.n_agents)
        configs = configs_of(self, TRAITS, fields.n_agents)
        Walker.create_agents(self, fields.n_agents, cells, memory=fields.memory, config=configs)
        self.n_gifts = 0
        self.datacollector = DataCollector({name: name for name in ("gini", "n_gifts")}, {"wealth": "wealth"})
        self.datacollector.collect(self)

    @property
    def gini(self) -> float:
        """Gini coefficient of the coins."""
        return gini(walker.wealth for walker in self.agents)

    def start_step(self) -> None:
        """Let everybody walk, one after another."""
        self.n_gifts = 0
        self.agents.shuffle_do("walk")
