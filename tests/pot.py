"""A model small enough to reason about: agents pay into a common pot."""

from __future__ import annotations

from typing import Annotated, Any, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import DoNothing, Event, LLMAgent, LLMModel, Observation, ToolCall, ToolError, action, tool
from mesa_llm.options import ModelOptions


class Pot(DoNothing):
    """A pot that takes at most ten coins at a time, and never seven."""

    name = "pot"

    def __init__(self) -> None:
        self.coins = 0
        self.steps = 0
        self.is_broken = False

    def observe(self, agent: int) -> Observation:
        return Observation(text=f"The pot holds {self.coins} coins.", facts=self.coins)

    @action
    def pay(self, actor: int, coins: Annotated[int, Field(ge=0, le=10)]) -> str:
        """Pay into the pot.

        Args:
            coins: How many coins you pay.
        """
        if self.is_broken:
            raise ZeroDivisionError("a rule of the world is broken")
        if coins == 7:
            raise ToolError("the pot takes no seven coins.")
        self.coins += coins
        return f"You paid {coins}."

    @tool
    def count(self, actor: int) -> int:
        """Count the coins in the pot."""
        return self.coins

    def end_step(self) -> list[Event]:
        self.steps += 1
        return [Event("pot", "counted", {"coins": self.coins}, time=self.steps)]


class Payer(LLMAgent):
    """Pays by rule: one coin more or less."""

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("pay", {"coins": self.random.randint(0, 3)})


class PotModel(LLMModel):
    """Agents around a pot."""

    def __init__(
        self,
        n_agents: int = 4,
        llm: Any = "rule",
        rng: Any = None,
        scenario: Any = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(llm=llm, rng=rng, scenario=scenario, **options)
        self.pot = Pot()
        self.worlds = (self.pot,)
        Payer.create_agents(self, n_agents, config="You like round numbers.")
        self.datacollector = DataCollector(model_reporters={"coins": "coins"})
        self.datacollector.collect(self)

    @property
    def coins(self) -> int:
        return self.pot.coins
