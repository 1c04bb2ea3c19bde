"""EconAgent as a benchmark task: the Phillips curve, Okun's law and unemployment of twenty years."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.experiments.benchmarks import Measure, Reference, Task
from mesa_llm_models.econ_agent.model import EconAgentModel

SCORES = ("phillips_r", "okun_r", "okun_nominal_r", "unemployment_mean", "inflation_mean", "gini")
"""Results of a run used as scores."""


def scores(model: EconAgentModel) -> Mapping[str, float]:
    """Return the published measures of a run, and the inequality of savings."""
    results = model.results()
    return {name: results[name] for name in SCORES}


TASK = Task(
    "econ_agent",
    EconAgentModel,
    scores,
    240,
    2,
    "Li et al. (2024), EconAgent, ACL, arXiv 2310.10436",
    setting={"n_agents": 100, "rules": "original", "fidelity": "original", "memory": "none"},
    quick={"n_agents": 3},
    quick_steps=12,
    target=Reference(
        {"phillips_r": -0.619, "okun_r": -0.918, "unemployment_mean": 0.0784},
        "GPT-3.5, one run with memory",
        "correlations of the paper; unemployment read off the authors' figure",
    ),
    target_note="no part of Shachi's Table 1, so no study reports this error; Okun's law holds here by bookkeeping",
    unit="mean of correlations and a share",
    measure=Measure("mean unemployment", lambda found: found["unemployment_mean"]),
)
