"""The other side of the comparison: upstream `mesa-llm` as installed, on the same task.

Only the environment that `overhead.py` makes for it can run this file: there, `mesa_llm` is the other package.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

from cell import PERSONA, TASK, Cell, kilobytes_each, measured, open_files, run_cell
from mesa import Model
from mesa_llm.llm_agent import LLMAgent
from mesa_llm.parallel_stepping import step_agents_parallel_sync
from mesa_llm.reasoning.cot import CoTReasoning
from mesa_llm.tools.tool_decorator import tool
from stub import counted


@tool
def pay(agent: LLMAgent, coins: int) -> str:
    """Pay coins into the pot.

    Args:
        agent: Who pays.
        coins: How many coins you pay, from 0 to 10.
    """
    agent.model.coins += coins
    return f"You paid {coins} coins."


class Payer(LLMAgent):
    """An agent that pays into the pot, stepped as in the package's own examples."""

    def step(self) -> None:
        """Observe, plan and act, waiting for each request."""
        self.look()
        seen = self.generate_obs()
        self.apply_plan(self.reasoning.plan(obs=seen, selected_tools=["pay"]))

    async def astep(self) -> None:
        """Observe, plan and act, concurrently with others."""
        self.look()
        seen = await self.agenerate_obs()
        await self.aapply_plan(await self.reasoning.aplan(obs=seen, selected_tools=["pay"]))

    def look(self) -> None:
        """Return the observation of the pot."""
        self.internal_state = [f"The pot holds {self.model.coins} coins."]


class PotModel(Model):
    """Agents around a pot."""

    def __init__(self, n_agents: int, base: str) -> None:
        """Create the agents."""
        super().__init__(rng=1)
        self.coins = 0
        self.base = base
        for number in range(n_agents):
            self.enter(number)

    def enter(self, number: int) -> Payer:
        """Add an agent with the default memory, without printing."""
        agent = Payer(
            self,
            reasoning=CoTReasoning,
            llm_model="openai/stub",
            system_prompt=PERSONA.format(number=number),
            step_prompt=TASK,
            api_base=self.base,
        )
        agent.memory.display = False
        return agent

    def step(self) -> None:
        """Step the agents in sequence, as `shuffle_do` does on Mesa 3.5 with any setting."""
        self.agents.shuffle_do("step")


class ParallelPotModel(PotModel):
    """Agents around a pot who step in parallel."""

    def step(self) -> None:
        """Step the agents with the package's parallel stepper, called directly."""
        step_agents_parallel_sync(list(self.agents))


def model_of(cell: Cell) -> PotModel:
    """Build the model, after another one has made the first requests of the process, which load more code."""
    kind = ParallelPotModel if cell.concurrency > 1 else PotModel
    kind(2, cell.base).step()
    return kind(cell.agents, cell.base)


def steps(cell: Cell) -> dict[str, Any]:
    """Measure whole steps."""
    model = model_of(cell)
    counted(cell.base)
    with measured() as stretch:
        for _ in range(cell.steps):
            model.step()
    return {**vars(stretch), "decisions": cell.agents * cell.steps, "requests": counted(cell.base)["requests"]}


def growth(cell: Cell) -> dict[str, Any]:
    """Measure figures that could grow from step to step."""
    model = model_of(cell)
    rows: list[dict[str, float]] = []
    for _ in range(cell.steps):
        counted(cell.base)
        model.step()
        seen = counted(cell.base)
        prompt = seen["body_bytes"] / max(seen["requests"], 1)
        rows.append({"files": open_files(), "in_flight": seen["most_in_flight"], "prompt": prompt})
    return {"rows": rows}


def limited(cell: Cell) -> dict[str, Any]:
    """Count requests and answers with an endpoint that refuses some."""
    model = ParallelPotModel(cell.agents, cell.base)
    with measured() as stretch:
        for _ in range(cell.steps):
            model.step()
    return {**counted(cell.base), "wall_s": stretch.wall_s}


def memory(cell: Cell) -> dict[str, Any]:
    """Measure the memory of a new agent."""
    model = PotModel(1, cell.base)
    return {"kilobytes": kilobytes_each(lambda number: [model.enter(n) for n in range(number)], cell.agents)}


if __name__ == "__main__":
    run_cell({kind.__name__: kind for kind in (steps, growth, limited, memory)})
