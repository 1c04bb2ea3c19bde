"""Workload of the comparison for the other system: upstream `mesa-llm` as installed, on the same task.

Only the environment that `overhead.py` makes for it can run this file: there, `mesa_llm` is the other package.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

from measurement import PERSONA, TASK, Measurement, kilobytes_each, measured, open_files, run_measurement
from mesa import Model
from mesa_llm.llm_agent import LLMAgent
from mesa_llm.parallel_stepping import step_agents_parallel_sync
from mesa_llm.reasoning.cot import CoTReasoning
from mesa_llm.tools.tool_decorator import tool
from mock_server import fetch_counts


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
            llm_model="openai/mock",
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


def model_of(measurement: Measurement) -> PotModel:
    """Build the model, after another one has made the first requests of the process, which load more code."""
    kind = ParallelPotModel if measurement.concurrency > 1 else PotModel
    kind(2, measurement.base).step()
    return kind(measurement.agents, measurement.base)


def steps(measurement: Measurement) -> dict[str, Any]:
    """Measure whole steps."""
    model = model_of(measurement)
    fetch_counts(measurement.base)
    with measured() as timing:
        for _ in range(measurement.steps):
            model.step()
    return {
        **vars(timing),
        "decisions": measurement.agents * measurement.steps,
        "requests": fetch_counts(measurement.base)["requests"],
    }


def growth(measurement: Measurement) -> dict[str, Any]:
    """Measure figures that could grow from step to step."""
    model = model_of(measurement)
    rows: list[dict[str, float]] = []
    for _ in range(measurement.steps):
        fetch_counts(measurement.base)
        model.step()
        seen = fetch_counts(measurement.base)
        prompt = seen["body_bytes"] / max(seen["requests"], 1)
        rows.append({"files": open_files(), "in_flight": seen["max_in_flight"], "prompt": prompt})
    return {"rows": rows}


def limited(measurement: Measurement) -> dict[str, Any]:
    """Count requests and answers with an endpoint that refuses some."""
    model = ParallelPotModel(measurement.agents, measurement.base)
    with measured() as timing:
        for _ in range(measurement.steps):
            model.step()
    return {**fetch_counts(measurement.base), "wall_s": timing.wall_s}


def memory(measurement: Measurement) -> dict[str, Any]:
    """Measure the memory of a new agent."""
    model = PotModel(1, measurement.base)
    return {"kilobytes": kilobytes_each(lambda number: [model.enter(n) for n in range(number)], measurement.agents)}


if __name__ == "__main__":
    run_measurement({kind.__name__: kind for kind in (steps, growth, limited, memory)})
