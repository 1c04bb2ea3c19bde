"""Models small enough to reason about: agents pay into a common pot, and answer a quiz."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Unpack

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import DoNothing, Event, LLMAgent, LLMModel, Observation, ToolCall, ToolError, action, tool
from mesa_llm.engine.activation import Turn, llm_agents
from mesa_llm.model.options import LLMOptions


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
    def pay(self, agent_id: int, coins: Annotated[int, Field(ge=0, le=10)]) -> str:
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
    def count(self, agent_id: int) -> int:
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
        **options: Unpack[LLMOptions],
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


class Quiz:
    """Asks typed questions, and keeps who answered what."""

    name = "quiz"

    def __init__(self) -> None:
        self.answers: list[tuple[int, str, Any]] = []

    def observe(self, agent: int) -> Observation:
        return Observation("You take part in a quiz.")

    def receive(self, agent_id: int, answer: Any, label: str) -> str:
        self.answers.append((agent_id, label, answer))
        return ""

    def end_step(self) -> list[Event]:
        return []


class Solver(LLMAgent):
    """Answers by rule: always one."""

    def rule(self, seen: Observation) -> Any:
        return 1


class QuizModel(LLMModel):
    """Agents who are asked all questions of a quiz at once."""

    kinds: ClassVar[dict[str, Any]] = {f"item {n}": int for n in range(1, 6)}
    """Question → type of its answer."""

    def __init__(self, n_agents: int = 1, llm: Any = "rule", rng: Any = None, **options: Unpack[LLMOptions]) -> None:
        super().__init__(llm=llm, rng=rng, **options)
        self.quiz = Quiz()
        self.worlds = (self.quiz,)
        self.activation = self._everything
        Solver.create_agents(self, n_agents)

    def _everything(self, model: Any) -> list[list[Turn]]:
        items = self.kinds.items()
        observations = [Observation(f"What of {label}?", answer=kind, label=label) for label, kind in items]
        return [[Turn(agent, seen) for agent in llm_agents(self) for seen in observations]]

    @property
    def answers(self) -> list[Any]:
        return [answer for _, _, answer in self.quiz.answers]
