"""Sugarscape with traders: people who need sugar and spice, go where they see some, and trade with their neighbours."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np
from mesa.datacollection import DataCollector
from mesa.discrete_space import CellAgent, OrthogonalVonNeumannGrid
from pydantic import Field

from mesa_llm import (
    ActionResult,
    Decision,
    Failure,
    Label,
    LazyObservation,
    LLMModel,
    LLMOptions,
    LLMScenario,
    Mind,
    Observation,
    Outcome,
    Slider,
    Structure,
    ToolCall,
    ToolError,
    action,
)
from mesa_llm.model.measures import gini
from mesa_llm.space import PlaceName
from mesa_llm.space.text import place_label
from mesa_llm_models.classics.people import OptionOrder, People, configs_of
from mesa_llm_models.classics.sugarscape.text import (
    STAYED,
    TRAITS,
    Stock,
    move_text,
    observation_text,
    place_of,
    places_of,
    taken_text,
)

RICHEST = 4
"""Sugar, or spice, in a cell on a peak."""


class SugarScenario(LLMScenario):
    """Parameters of the landscape and its traders."""

    n_agents: Annotated[int, Field(ge=1), Slider(2, 200, label="Traders")] = 20
    """Number of traders at the start."""

    size: Annotated[int, Field(ge=4, le=100), Slider(4, 50), Structure(8, 20)] = 12
    """Number of cells along each side of the landscape."""

    metabolism: Annotated[int, Field(ge=1), Slider(1, 10, label="Largest metabolism")] = 5
    """Largest amount of sugar, or of spice, that a trader uses up in a step; each draws its own, from 1 on."""

    vision: Annotated[int, Field(ge=1, le=10), Slider(1, 10, label="Largest vision"), Structure(1, 6)] = 3
    """Farthest that a trader sees, in cells; each draws its own, from 1 on."""

    poorest: Annotated[int, Field(ge=1), Slider(1, 100)] = 25
    """Smallest amount of sugar, and of spice, that a trader starts with; the largest is twice as much."""

    trades: bool = True
    """Whether neighbours trade with each other."""

    people: Annotated[People, Label("Persons")] = "drawn"
    """Whether agents are people with names and traits, drawn with the seed, or all alike."""

    option_order: OptionOrder = "drawn"
    """Whether the order of the places in the prompt is drawn for each person and step, or always the same."""

    memory: str = "window:4"
    """Memory of the traders."""


class Trader(Mind, CellAgent):
    """A trader, who lives on sugar and spice.

    Attributes:
        cell: Its cell.
        sugar: Its sugar.
        spice: Its spice.
        sugar_need: Sugar that it uses up in a step.
        spice_need: Spice that it uses up in a step.
        vision: Range of its sight, in cells.
    """

    cell: Any

    def __init__(self, model: SugarModel, cell: Any, **components: Any) -> None:
        """Enter the landscape, with stocks, needs and vision drawn at random.

        Args:
            model: The model.
            cell: Its first cell.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        fields = model.scenario
        self.cell = cell
        self.sugar, self.spice = (self.random.randint(fields.poorest, 2 * fields.poorest) for _ in range(2))
        self.sugar_need, self.spice_need = (self.random.randint(1, fields.metabolism) for _ in range(2))
        self.vision = self.random.randint(1, fields.vision)

    def welfare(self, sugar: float, spice: float) -> float:
        """Compute the welfare from stocks (Cobb-Douglas; Epstein and Axtell 1996, p. 97)."""
        share = self.sugar_need / (self.sugar_need + self.spice_need)
        return max(sugar, 0) ** share * max(spice, 0) ** (1 - share)

    def hunger_with(self, sugar: float, spice: float) -> float:
        """Compute the spice that it would give for a sugar: its marginal rate of substitution (ibid., p. 102)."""
        return (spice / self.spice_need) / (sugar / self.sugar_need)

    @property
    def hunger(self) -> float:
        """Spice that it would give for a sugar now."""
        return self.hunger_with(self.sugar, self.spice)

    @property
    def places(self) -> dict[str, Any]:
        """The empty cells in sight, by name."""
        near = self.cell.get_neighborhood(radius=self.vision)
        return {place_label(cell.coordinate): cell for cell in near if cell.is_empty}

    def observe(self) -> Observation:
        """Return its stocks and how long they last, and the sugar and spice in sight."""
        cells = self.places
        stocks = Stock("sugar", self.sugar, self.sugar_need), Stock("spice", self.spice, self.spice_need)
        here, free = place_of(place_label(self.cell.coordinate), self.cell), places_of(cells)
        n_traders = sum(1 for _ in self.cell.get_neighborhood(radius=self.vision).agents)
        facts = {name: getattr(self, name) for name in ("sugar", "spice", "sugar_need", "spice_need")}
        in_sight = [{"place": one.name, "sugar": one.sugar, "spice": one.spice} for one in free]
        lasts = {f"{stock.name}_lasts": stock.n_steps for stock in stocks}
        return LazyObservation(
            partial(observation_text, stocks, here, free, n_traders),
            options={"place": tuple(cells)},
            option_order=self.model.scenario.option_order,
            facts={**facts, **lasts, "n_traders": n_traders, "places": in_sight},
        )

    def rule(self, seen: Observation) -> ToolCall:
        """Go to the cell with the highest welfare, the nearest among equals, drawn if there are several."""
        cells = {"": self.cell, **self.places}
        worth = {
            name: round(self.welfare(self.sugar + int(cell.sugar), self.spice + int(cell.spice)), 9)
            for name, cell in cells.items()
        }
        best = [name for name in cells if worth[name] == max(worth.values())]
        far = {name: math.dist(self.cell.coordinate, cells[name].coordinate) for name in best}
        place = self.random.choice([name for name in best if far[name] == min(far.values())])
        return ToolCall("go_to", {"place": place}) if place else ToolCall("stay")

    def can_go(self) -> bool:
        """Check whether a cell in sight is free."""
        return bool(self.places)

    @action(when="can_go", did="You went to {place}.")
    def go_to(self, place: PlaceName) -> ActionResult:
        """Go to a free cell in sight, and eat what grows there.

        Args:
            place: Name of the cell.
        """
        cell = self.places.get(place)
        if cell is None:
            raise ToolError(taken_text(place))
        self.cell = cell
        return ActionResult(move_text(place), coordinate=cell.coordinate)

    @action
    def stay(self) -> str:
        """Stay where you are, and eat what grows there."""
        return STAYED

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out the decision; then harvest the cell, and use up stocks."""
        outcomes = super().act(decision, seen)
        self.sugar += int(self.cell.sugar) - self.sugar_need
        self.spice += int(self.cell.spice) - self.spice_need
        self.cell.sugar = self.cell.spice = 0
        if min(self.sugar, self.spice) <= 0:
            self.remove()
        return outcomes

    def trade(self, other: Trader) -> list[float]:
        """Trade with a neighbour as long as both gain, and return the prices in spice per sugar (ibid., p. 105)."""
        prices: list[float] = []
        while not math.isclose(self.hunger, other.hunger):
            buyer, seller = (self, other) if self.hunger > other.hunger else (other, self)
            price = math.sqrt(buyer.hunger * seller.hunger)
            sugar, spice = (1, int(price)) if price >= 1 else (int(1 / price), 1)
            bought, sold = (buyer.sugar + sugar, buyer.spice - spice), (seller.sugar - sugar, seller.spice + spice)
            if min(*bought, *sold) <= 0 or buyer.hunger_with(*bought) <= seller.hunger_with(*sold):
                break
            if buyer.welfare(*bought) <= buyer.welfare(buyer.sugar, buyer.spice):
                break
            if seller.welfare(*sold) <= seller.welfare(seller.sugar, seller.spice):
                break
            (buyer.sugar, buyer.spice), (seller.sugar, seller.spice) = bought, sold
            prices.append(price)
        return prices


class SugarModel(LLMModel):
    """Sugar and spice grow; all decide where to go, go one after another, harvest and eat; then neighbours trade.

    Attributes:
        grid: The landscape, with what has grown: `cell.sugar` and `cell.spice`.
        prices: Prices of all trades of the last step, in spice per sugar.
    """

    scenario_class = SugarScenario
    scenario: SugarScenario
    changeable = ("trades",)

    def __init__(self, scenario: SugarScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        self.grid: Any = OrthogonalVonNeumannGrid((fields.size, fields.size), random=self.random)
        self.capacity = {"sugar": (sugar := two_peaks(fields.size)), "spice": np.flip(sugar, 1)}
        for name, most in self.capacity.items():
            self.grid.create_property_layer(name, default_value=0, dtype=int)
            for cell in self.grid.all_cells:
                setattr(cell, name, int(most[cell.coordinate]))
        cells = list(self.grid.all_cells)
        for config in configs_of(self, TRAITS, fields.n_agents):
            Trader(self, self.random.choice(cells), memory=fields.memory, config=config)
        self.prices: list[float] = []
        self.datacollector = DataCollector({name: name for name in ("traders", "price", "n_trades", "gini")})
        self.datacollector.collect(self)

    def start_step(self) -> None:
        """Let one sugar and one spice grow in each cell that can hold more."""
        for cell in self.grid.all_cells:
            cell.sugar = min(int(cell.sugar) + 1, int(self.capacity["sugar"][cell.coordinate]))
            cell.spice = min(int(cell.spice) + 1, int(self.capacity["spice"][cell.coordinate]))

    def end_step(self) -> None:
        """Let neighbours trade; a run ends when nobody is left."""
        self.prices = []
        if self.scenario.trades:
            for trader in self.agents.shuffle():
                for other in trader.cell.get_neighborhood(radius=trader.vision).agents:
                    self.prices += trader.trade(other)
        self.running = len(self.agents) > 0

    @property
    def traders(self) -> int:
        """Number of traders alive."""
        return len(self.agents)

    @property
    def price(self) -> float | None:
        """Geometric mean of the prices of the last step, in spice per sugar; None without trades."""
        return math.exp(sum(map(math.log, self.prices)) / len(self.prices)) if self.prices else None

    @property
    def n_trades(self) -> int:
        """Number of trades in the last step."""
        return len(self.prices)

    @property
    def gini(self) -> float:
        """Gini coefficient of sugar and spice together."""
        return gini(trader.sugar + trader.spice for trader in self.agents)


def two_peaks(size: int) -> np.ndarray:
    """Compute the capacity of cells: two peaks in opposite corners, and less in rings around them.

    Args:
        size: Number of cells along each side.

    Returns:
        Whole numbers from 0 to `RICHEST`, shape `(size, size)`.
    """
    rows, columns = np.indices((size, size)) / (size - 1)
    far = np.minimum(np.hypot(rows - 0.25, columns - 0.75), np.hypot(rows - 0.75, columns - 0.25))
    return np.clip(np.ceil(RICHEST - 8 * far), 0, RICHEST).astype(int)
