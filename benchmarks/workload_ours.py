"""Workload of the comparison for this project: agents who pay into a pot, with one request a step each."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any

from measurement import PERSONA, TASK, Measurement, kilobytes_each, measured, open_files, run_measurement
from mock_server import fetch_counts
from pydantic import Field

from mesa_llm import Event, LLMAgent, LLMModel, Observation, action
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.records import ChatMessage, Request, Salt

WARM_UP = 3
"""Number of unmeasured steps, which open connections and find the endpoint's limit of requests."""


class Pot:
    """A pot that takes coins."""

    name = "pot"

    def __init__(self) -> None:
        """Start empty."""
        self.coins = 0

    def observe(self, agent: int) -> Observation:
        """Return the coins in the pot."""
        return Observation(text=f"The pot holds {self.coins} coins. {TASK}")

    @action
    def pay(self, actor: int, coins: Annotated[int, Field(ge=0, le=10)]) -> str:
        """Pay coins into the pot.

        Args:
            coins: How many coins you pay, from 0 to 10.
        """
        self.coins += coins
        return f"You paid {coins} coins."

    def end_step(self) -> list[Event]:
        """End the step without events."""
        return []


class PotModel(LLMModel):
    """Agents around a pot."""

    def __init__(self, n_agents: int, **options: Any) -> None:
        """Create the agents."""
        super().__init__(worlds=(Pot(),), **options)
        for number in range(n_agents):
            LLMAgent(self, config=PERSONA.format(number=number))


def pot(measurement: Measurement, folder: str) -> PotModel:
    """Build a model that asks the endpoint, with the default recording to a file."""
    log = Path(folder, "run.sqlite")
    options = {"concurrency": measurement.concurrency, "clients": measurement.clients, "log": log, "rng": 1}
    return PotModel(measurement.agents, llm="mock", api_base=measurement.base, **options)


def steps(measurement: Measurement) -> dict[str, Any]:
    """Measure whole steps: observe, ask, check, act, record."""
    with tempfile.TemporaryDirectory() as folder:
        model = pot(measurement, folder)
        for _ in range(WARM_UP):
            model.step()
        fetch_counts(measurement.base)
        failed = model.usage.failures
        with measured() as timing:
            for _ in range(measurement.steps):
                model.step()
        seen = fetch_counts(measurement.base)
        decisions = measurement.agents * measurement.steps
        failed = model.usage.failures - failed
        model.close()
    return {**vars(timing), "decisions": decisions, "requests": seen["requests"], "failures": failed}


def growth(measurement: Measurement) -> dict[str, Any]:
    """Measure figures that could grow from step to step."""
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        model = pot(measurement, folder)
        for _ in range(measurement.steps):
            model.step()
            seen = fetch_counts(measurement.base)
            prompt = seen["body_bytes"] / max(seen["requests"], 1)
            rows.append({"files": open_files(), "in_flight": seen["max_in_flight"], "prompt": prompt})
        model.close()
    return {"rows": rows}


def limited(measurement: Measurement) -> dict[str, Any]:
    """Count requests and answers with an endpoint that refuses some."""
    with tempfile.TemporaryDirectory() as folder, measured() as timing:
        model = pot(measurement, folder)
        for _ in range(measurement.steps):
            model.step()
        failures = model.usage.failures
        model.close()
    return {**fetch_counts(measurement.base), "wall_s": timing.wall_s, "failures": failures}


def calls(measurement: Measurement) -> dict[str, Any]:
    """Measure the transport alone: `agents` calls at once, `steps` times in sequence."""
    message = ChatMessage("user", f"{PERSONA.format(number=1)} The pot holds 10 coins. {TASK}")
    transport = OpenAIHTTP("mock", measurement.base)

    async def ask(agent: int, times: int) -> None:
        for time in range(times):
            await transport.reply(Request("mock", (message,), Salt(1, agent, time, "decide", 0)))

    async def ask_all(times: int) -> None:
        await asyncio.gather(*(ask(agent, times) for agent in range(measurement.agents)))

    async def warm_up_and_measure() -> dict[str, Any]:
        await ask_all(1)
        with measured() as timing:
            await ask_all(measurement.steps)
        await transport.close()
        return {**vars(timing), "calls": measurement.agents * measurement.steps}

    return asyncio.run(warm_up_and_measure())


def memory(measurement: Measurement) -> dict[str, Any]:
    """Measure the memory of a new agent with its own persona and the default memory."""
    model = PotModel(1, rng=1)

    def make(number: int) -> list[LLMAgent]:
        return [LLMAgent(model, config=PERSONA.format(number=n)) for n in range(number)]

    return {"kilobytes": kilobytes_each(make, measurement.agents)}


if __name__ == "__main__":
    run_measurement({kind.__name__: kind for kind in (steps, growth, limited, calls, memory)})
