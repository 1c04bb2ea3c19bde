"""Wolves and sheep on a meadow: where they go, what they eat, and when they have young."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Unpack

from mesa.datacollection import DataCollector
from mesa.discrete_space import CellAgent, OrthogonalVonNeumannGrid
from pydantic import Field

from mesa_llm import (
    ByType,
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
    action,
)
from mesa_llm.space import MovesToPlaces
from mesa_llm.space.text import place_label
from mesa_llm_models.classics.people import OptionOrder, People, animal_config
from mesa_llm_models.classics.wolf_sheep.text import STAYED, TEMPERS, Body, Cell, observation_text

MESA_RATES: Mapping[str, float] = MappingProxyType(
    {"sheep_reproduce": 0.04, "wolf_reproduce": 0.05, "sheep_gain": 4.0, "wolf_gain": 20.0, "regrowth": 30}
)
"""Rates of Mesa's example, with which the recorded run was made: wolves eat all sheep, and starve."""


class MeadowScenario(LLMScenario):
    """Parameters of the meadow, in which by default wolves and sheep live together in cycles of about 85 steps."""

    size: Annotated[int, Field(ge=3, le=100), Slider(3, 41), Structure(15, 27)] = 21
    """Number of cells along each side of the meadow, which has no edge. If it is even, animals that move in each step
    are of two kinds that never meet, on the cells of one colour of a chessboard and on those of the other."""

    n_sheep: Annotated[int, Field(ge=0), Slider(0, 400, label="Sheep"), Structure(100, 300, dimension="population")] = (
        200
    )
    """Number of sheep at the start."""

    n_wolves: Annotated[int, Field(ge=0), Slider(0, 200, label="Wolves"), Structure(30, 90, dimension="population")] = (
        60
    )
    """Number of wolves at the start."""

    sheep_reproduce: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.01)] = 0.25
    """Probability that a sheep has a lamb in a step."""

    wolf_reproduce: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.01)] = 0.08
    """Probability that a wolf has a cub in a step."""

    sheep_gain: Annotated[float, Field(ge=0), Slider(1, 10, 0.5)] = 4.0
    """Energy that a sheep gains from the grass of a cell."""

    wolf_gain: Annotated[float, Field(ge=0), Slider(1, 50, 1)] = 3.0
    """Energy that a wolf gains from a sheep."""

    regrowth: Annotated[int, Field(ge=1), Slider(1, 50)] = 3
    """Steps until grass that was eaten has grown again."""

    people: Annotated[People, Label("Tempers")] = "drawn"
    """Whether animals have tempers, drawn with the seed, or are all alike."""

    option_order: OptionOrder = "drawn"
    """Whether the order of the places in the prompt is drawn for each animal and step, or always the same."""

    memory: str = "window:4"
    """Memory of the animals."""


class Animal(MovesToPlaces, Mind, CellAgent):
    """An animal, which moves, eats, starves and has young.

    Attributes:
        cell: Its cell.
        energy: Number of steps that it can live without food.
        gain: Energy that it gains from a meal.
        birth_rate: Probability that it has young in a step.
        since: Step in which it was born; 0: it has been there from the beginning.
        n_young: Number of its young so far.
    """

    cell: Any
    gain: float
    birth_rate: float

    def __init__(self, model: MeadowModel, cell: Any, energy: float, **components: Any) -> None:
        """Enter the meadow.

        Args:
            model: The model.
            cell: Its first cell.
            energy: Number of steps that it can live without food.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        model.n_animals += 1
        config = animal_config(model, TEMPERS[type(self).__name__.lower()], model.n_animals)
        super().__init__(model, config=components.pop("config", config), **components)
        self.cell = cell
        self.energy = energy
        self.since, self.n_young = model.now, 0

    @action
    def stay(self) -> str:
        """Stay where you are."""
        return STAYED

    def rule(self, seen: Observation) -> ToolCall:
        """Go to a cell drawn from the best neighbouring ones."""
        best = self.preferred()
        if not best:
            return ToolCall("stay")
        return ToolCall("go_to", {"place": place_label(self.random.choice(best).coordinate)})

    def preferred(self) -> list[Any]:
        """Return the neighbouring cells that the rule twin would go to; empty: it stays."""
        raise NotImplementedError

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out the decision; then eat what is there, and starve or have young."""
        outcomes = super().act(decision, seen)
        self.energy -= 1
        if self.feeds():
            self.energy += self.gain
        if self.energy < 0:
            self.remove()
        elif self.random.random() < self.birth_rate:
            self.energy /= 2
            type(self)(self.model, self.cell, self.energy, memory=self.model.scenario.memory)
            self.n_young += 1
            self.model.n_births += 1
        return outcomes

    def feeds(self) -> bool:
        """Eat the food in its cell, and return whether there was any."""
        raise NotImplementedError

    def observe(self) -> Observation:
        """Return its energy, and the contents of its cell and the neighbouring ones."""
        cells = list(self.cell.neighborhood)
        places = tuple([place_label(cell.coordinate) for cell in cells])
        here = place_label(self.cell.coordinate), self.cell.agents, self.cell.regrowth
        around = [(place, cell.agents, cell.regrowth) for place, cell in zip(places, cells, strict=True)]
        age = self.model.now - 1 - self.since
        body = Body(type(self).__name__.lower(), max(0, age), max(0, int(self.energy)), self.gain, self.n_young)
        sight = body, here, around
        return LazyObservation(
            partial(_text_of, *sight),
            options={"place": places},
            option_order=self.model.scenario.option_order,
            facts=partial(_facts_of, *sight),
        )


class Sheep(Animal):
    """Lives on grass, and keeps away from wolves."""

    @property
    def gain(self) -> float:
        """Energy gained from grass."""
        return self.model.scenario.sheep_gain

    @property
    def birth_rate(self) -> float:
        """Probability of a lamb in a step."""
        return self.model.scenario.sheep_reproduce

    def preferred(self) -> list[Any]:
        """Return the cells with grass and no wolf, else those without a wolf."""
        safe = [cell for cell in self.cell.neighborhood if not _those(Wolf, cell)]
        return [cell for cell in safe if cell.regrowth == 0] or safe

    def feeds(self) -> bool:
        """Eat the grass, if it has grown."""
        has_grass = self.cell.regrowth == 0
        if has_grass:
            self.cell.regrowth = self.model.scenario.regrowth
        return has_grass


class Wolf(Animal):
    """Lives on sheep."""

    @property
    def gain(self) -> float:
        """Energy gained from a sheep."""
        return self.model.scenario.wolf_gain

    @property
    def birth_rate(self) -> float:
        """Probability of a cub in a step."""
        return self.model.scenario.wolf_reproduce

    def preferred(self) -> list[Any]:
        """Return the cells with sheep, else all."""
        cells = list(self.cell.neighborhood)
        return [cell for cell in cells if _those(Sheep, cell)] or cells

    def feeds(self) -> bool:
        """Eat one of the sheep, drawn."""
        sheep = _those(Sheep, self.cell)
        if sheep:
            self.random.choice(sheep).remove()
        return bool(sheep)


class MeadowModel(LLMModel):
    """All sheep decide and go, then all wolves; each eats where it comes to, and starves or has young.

    Attributes:
        grid: The meadow; `cell.regrowth` is the number of steps until grass has grown there.
        n_births: Number of animals born in the last step.
        n_animals: Number of animals so far, dead or alive.
    """

    scenario_class = MeadowScenario
    scenario: MeadowScenario
    changeable = ("sheep_reproduce", "wolf_reproduce", "sheep_gain", "wolf_gain", "regrowth")

    def __init__(self, scenario: MeadowScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        fields = self.scenario
        self.activation = ByType(Sheep, Wolf)
        self.n_births = self.n_animals = 0
        self.grid: Any = OrthogonalVonNeumannGrid((fields.size, fields.size), torus=True, random=self.random)
        self.grid.create_property_layer("regrowth", default_value=0, dtype=int)
        for cell in self.grid.all_cells:
            cell.regrowth = 0 if self.random.random() < 0.5 else self.random.randrange(fields.regrowth)
        cells = list(self.grid.all_cells)
        for kind, number, gain in (
            (Sheep, fields.n_sheep, fields.sheep_gain),
            (Wolf, fields.n_wolves, fields.wolf_gain),
        ):
            for _ in range(number):
                kind(self, self.random.choice(cells), self.random.random() * 2 * gain, memory=fields.memory)
        self.datacollector = DataCollector({name: name for name in ("sheep", "wolves", "grass", "n_births")})
        self.datacollector.collect(self)

    def start_step(self) -> None:
        """Let the grass grow."""
        self.n_births = 0
        for cell in self.grid.all_cells:
            cell.regrowth = max(0, int(cell.regrowth) - 1)

    def end_step(self) -> None:
        """End the run when all animals are dead."""
        self.running = len(self.agents) > 0

    @property
    def sheep(self) -> int:
        """Number of sheep."""
        return len(self.agents_by_type.get(Sheep, ()))

    @property
    def wolves(self) -> int:
        """Number of wolves."""
        return len(self.agents_by_type.get(Wolf, ()))

    @property
    def grass(self) -> int:
        """Number of cells with grown grass."""
        return sum(cell.regrowth == 0 for cell in self.grid.all_cells)


def _those(kind: type[Animal], cell: Any) -> list[Any]:
    return [animal for animal in cell.agents if isinstance(animal, kind)]


Contents = tuple[str, list[Any], int]
"""Name of a cell, the animals in it, and the steps until its grass has grown."""


def _cell_of(name: str, animals: list[Any], regrowth: int) -> Cell:
    n_sheep = sum(isinstance(animal, Sheep) for animal in animals)
    return Cell(name, n_sheep, sum(isinstance(animal, Wolf) for animal in animals), int(regrowth))


def _facts_of(body: Body, here: Contents, around: list[Contents]) -> dict[str, Any]:
    """Return what an animal saw as values, when somebody reads them."""
    own, *places = (
        {"place": one.name, "n_sheep": one.n_sheep, "n_wolves": one.n_wolves, "grass": int(one.regrowth == 0)}
        for one in (_cell_of(*contents) for contents in (here, *around))
    )
    del own["place"]
    known = {"kind": body.kind, "energy": body.energy, "hungry": body.is_hungry, "age": body.age}
    return {**known, **own, "places": places}


def _text_of(body: Body, here: Contents, around: list[Contents]) -> str:
    """Write what an animal saw, when somebody reads it."""
    return observation_text(body, _cell_of(*here), [_cell_of(*contents) for contents in around])
