"""OASIS as a benchmark task: the spread of one account's news among 110 followers, and their activity."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.experiments.benchmarks import Measure, Task
from mesa_llm_models.oasis.model import OasisModel

SCORES = ("scale", "depth", "max_breadth", "activity")
"""Results of a run used as scores."""


def scores(model: OasisModel) -> Mapping[str, float]:
    """Return scale, depth and max breadth after the last step, and the mean share of active users."""
    results = model.results()
    return {name: float(results[name]) for name in SCORES}


TASK = Task(
    "oasis",
    OasisModel,
    scores,
    10,
    3,
    "Yang et al. (2024), OASIS, arXiv 2411.11581",
    setting={"n_agents": 111, "memory": "chat:100000:2"},
    quick={"n_agents": 12},
    quick_steps=4,
    target_note="neither OASIS nor Shachi publishes scores of this setting; Shachi uses it to give agents a past",
    unit="users, steps and a share",
    measure=Measure("users reached", lambda found: found["scale"]),
)
