"""A plain Mesa model whose agents got minds, on Mesa's own page."""

from __future__ import annotations

from typing import Any

from mesa.examples.basic.boltzmann_wealth_model.agents import MoneyAgent
from mesa.examples.basic.boltzmann_wealth_model.model import BoltzmannScenario, BoltzmannWealth
from mesa.visualization import SolaraViz

from mesa_llm import Mind, action, connect
from mesa_llm.viz import ActionTable, AgentInspector, CostMeter, EventLog, Measures, Space


class Giver(MoneyAgent, Mind):
    """Gives one coin to somebody, where it can."""

    cell: Any

    def can_give(self) -> bool:
        """Check whether there is a coin, and somebody to give it to."""
        return self.wealth > 0 and len(self.cell.agents) > 1

    @action(when="can_give")
    def give(self) -> str:
        """Give one coin to somebody in your cell."""
        self.give_money()
        return f"You have {self.wealth} coins left."


class Givers(BoltzmannWealth):
    """Mesa's model, in which minds decide who gives."""

    def __init__(self, scenario: BoltzmannScenario | None = None) -> None:
        """Let the agents in."""
        super().__init__(scenario or BoltzmannScenario(n=20, width=5, height=5, rng=42))
        connect(self, max_calls=500)
        Giver.enter(self.agents, llm="random", config="You are generous, but not foolish.")


COMPONENTS: Any = [(Measures, 0), (Space, 0), (AgentInspector, 1), (ActionTable, 2), (CostMeter, 2), (EventLog, 2)]

page = SolaraViz(Givers(), components=COMPONENTS)
