"""A model of a user's own passes pyright's strict checks of overrides as it runs: these comments switch them on."""

# pyright: reportIncompatibleMethodOverride=true, reportIncompatibleVariableOverride=true

from __future__ import annotations

from typing import Any, Unpack

from mesa.discrete_space import CellAgent, OrthogonalMooreGrid

from mesa_llm import LLMModel, LLMOptions, LLMScenario, Mind, MovesOnGrid, Observation, ToolCall


class TownScenario(LLMScenario):
    """Parameters of the town."""

    n_agents: int = 2
    """Number of citizens."""


class Citizen(Mind, MovesOnGrid, CellAgent):
    """Walks north."""

    def __init__(self, model: Town, cell: Any, **components: Any) -> None:
        super().__init__(model, **components)
        self.cell = cell

    def rule(self, seen: Observation) -> ToolCall | None:
        return ToolCall("move", {"direction": "north"}) if "north" in seen.options.get("direction", ()) else None


class Neighbour(CellAgent, Mind):
    """Stands still."""

    def rule(self, seen: Observation) -> None:
        return None


class Town(LLMModel):
    """Citizens on a grid."""

    scenario_class = TownScenario
    scenario: TownScenario
    instructions = ""

    def __init__(self, scenario: TownScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(scenario, **options)
        self.grid = OrthogonalMooreGrid((3, 3), random=self.random)
        Citizen.create_agents(self, self.scenario.n_agents, cell=self.grid[2, 1])
        Neighbour(self)


def test_a_typed_model_runs_and_its_classes_override_nothing_wrongly() -> None:
    town = Town(rng=1)
    town.run_for(2)
    assert [citizen.cell.coordinate for citizen in town.agents_by_type[Citizen]] == [(0, 1), (0, 1)]
