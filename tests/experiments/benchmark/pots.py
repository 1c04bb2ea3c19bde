"""Tasks small enough to reason about: what is in a pot after three steps."""

from __future__ import annotations

from mesa_llm import Task
from mesa_llm.experiments.benchmarks import PublishedError, Reference
from tests.pot import PotModel


def scores(model: PotModel) -> dict[str, float | None]:
    """Return the coins, and something that nobody knows."""
    return {"coins": model.coins, "love": None}


POT = Task(
    "pot",
    PotModel,
    scores,
    3,
    2,
    "Our own.",
    setting={"n_agents": 4},
    quick={"n_agents": 2},
    quick_steps=1,
    target=Reference({"coins": 20.0}, "somebody", "a guess"),
    people=Reference({"coins": 14.0}, "people", "another guess"),
    unit="coins",
    published=PublishedError(1.0, 9.0, "a model; baseline: chance", "A study"),
)


def broken(model: PotModel) -> dict[str, float]:
    """Break."""
    raise ZeroDivisionError("no coins")


BROKEN = Task("broken", PotModel, broken, 1, 1, "Our own.")

LOVELESS = Task("loveless", PotModel, lambda model: {"love": None}, 1, 1, "Our own.")
