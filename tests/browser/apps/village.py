"""A small model for browser tests: villagers on a ring who greet each other, as slowly as they are told to."""

from __future__ import annotations

import time
from typing import Annotated, Any

import networkx as nx
from mesa.datacollection import DataCollector
from mesa.discrete_space import CellAgent, Network
from mesa.visualization import SpaceRenderer
from mesa.visualization.components import AgentPortrayalStyle
from pydantic import Field

from mesa_llm import (
    AgentConfig,
    LLMModel,
    LLMScenario,
    Mind,
    Observation,
    ScriptedLLM,
    Slider,
    ToolCall,
    ToolError,
    action,
)
from mesa_llm.records import Event, Request

HOSTILE = "<img src=x onerror='window.hacked = true'> {{ 7 * 7 }} hello"
"""What a villager says who wants to break the page."""


class Square:
    """A village square: greetings are counted."""

    name = "square"

    def __init__(self) -> None:
        """Start in silence."""
        self.greetings: list[str] = []

    def observe(self, agent: int) -> Observation:
        """Show the last greeting."""
        last = self.greetings[-1] if self.greetings else "nobody has spoken"
        return Observation(f"You stand on the square. Last heard: {last}", instructions="You live in a village.")

    @action
    def greet(self, agent_id: int, words: str, times: Annotated[int, Field(ge=1, le=3)] = 1) -> str:
        """Greet everybody on the square.

        Args:
            words: What you say.
            times: How often you say it.
        """
        if "curse" in words:
            raise ToolError("Nobody curses on the square.")
        self.greetings += [words] * times
        return f"{times} greetings were heard."

    @action
    def rest(self, agent_id: int) -> str:
        """Sit down and say nothing."""
        return "You rested."

    def end_step(self) -> list[Event]:
        """Tell how many greetings there have been."""
        return [Event(self.name, "greetings", text=f"{len(self.greetings)} greetings so far")]


class Villager(Mind, CellAgent):
    """Greets, or rests."""

    def rule(self, seen: Observation) -> ToolCall:
        """Greet every other time, after some thought."""
        time.sleep(self.model.delay_s)
        return ToolCall("greet", {"words": "Good day"}) if self.random.random() < 0.5 else ToolCall("rest")


def say(request: Request) -> Any:
    """Reply as a villager would: one is hostile, one speaks no JSON."""
    match request.salt.agent:
        case 1:
            return ToolCall("greet", {"words": HOSTILE})
        case 2:
            return "I would rather talk about the weather."
        case _:
            return ToolCall("greet", {"words": f"Hello from {request.salt.agent}"})


class Village(LLMModel):
    """Villagers around a square."""

    def __init__(
        self, n_agents: int = 4, delay_s: float = 0.0, llm: Any = "rule", rng: Any = None, **options: Any
    ) -> None:
        """Let villagers arrive."""
        self.delay_s = delay_s
        if llm == "scripted":
            llm = ScriptedLLM(say, delay_s)
        super().__init__(llm=llm, rng=rng, **options)
        self.square = Square()
        self.worlds = (self.square,)
        self.grid = Network(nx.cycle_graph(n_agents), random=self.random)
        for number, cell in enumerate(self.grid.all_cells, start=1):
            villager = Villager(self, config=AgentConfig(name=f"Villager {number}", persona="You are friendly."))
            villager.cell = cell
        self.datacollector = DataCollector({"greetings": lambda model: len(model.square.greetings)})
        self.datacollector.collect(self)


class HamletScenario(LLMScenario):
    """Parameters of a hamlet."""

    n_agents: Annotated[int, Field(ge=1), Slider(2, 10, label="Villagers")] = 4
    """Number of villagers."""

    greeting: str = "Good day"
    """What villagers say."""


class Neighbour(Villager):
    """Greets, in the words of the hamlet."""

    def rule(self, seen: Observation) -> ToolCall:
        """Greet."""
        return ToolCall("greet", {"words": self.model.scenario.greeting})


class Hamlet(LLMModel):
    """Who greets whom in a hamlet?"""

    scenario_class = HamletScenario
    scenario: HamletScenario

    def __init__(self, scenario: HamletScenario | None = None, **options: Any) -> None:
        """Let villagers arrive."""
        super().__init__(scenario, **options)
        self.square = Square()
        self.worlds = (self.square,)
        self.grid = Network(nx.cycle_graph(self.scenario.n_agents), random=self.random)
        for number, cell in enumerate(self.grid.all_cells, start=1):
            Neighbour(self, config=AgentConfig(name=f"Villager {number}")).cell = cell
        self.datacollector = DataCollector({"greetings": lambda model: len(model.square.greetings)})
        self.datacollector.collect(self)


def renderer(model: LLMModel) -> SpaceRenderer:
    """Draw the ring."""
    return SpaceRenderer(model).setup_agents(lambda agent: AgentPortrayalStyle(size=120, color="tab:blue"))


N_AGENTS = {"type": "SliderInt", "label": "Villagers", "value": 4, "min": 2, "max": 10, "step": 1}
DELAY = {"type": "Select", "label": "Seconds to think", "value": 300.0, "values": [0.0, 300.0]}
