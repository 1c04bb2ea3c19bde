"""StockAgent as a benchmark task: price changes over thirty sessions, compared with a run with Gemini-Pro."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mesa_llm.experiments.benchmarks import Baseline, Measure, PublishedError, Reference, Task
from mesa_llm_models.stock_agent.model import StockAgentModel
from mesa_llm_models.stock_agent.scores import gemini_paths, session_changes
from mesa_llm_models.stock_agent.world import Stock

DAYS, SESSIONS = 10, 3
"""Length of a run in Shachi's study."""


def changes(paths: Mapping[Stock, Sequence[float]], n_sessions: int) -> dict[str, float]:
    """Return the price change of each session in percent, by stock and session."""
    return {
        f"{stock}, session {session}": float(change)
        for stock, path in paths.items()
        for session, change in enumerate(session_changes(path)[:n_sessions], 1)
    }


def scores(model: StockAgentModel) -> Mapping[str, float | None]:
    """Return the price change of each session, and Shachi's volatility."""
    paths = model.world.market.paths
    return changes(paths, len(paths["A"]) - 1) | {"volatility": model.results()["volatility"]}


TASK = Task(
    "stock_agent",
    StockAgentModel,
    scores,
    DAYS * (SESSIONS + 3),
    2,
    "Zhang et al. (2024), When AI Meets Finance, arXiv 2407.18957",
    setting={"n_agents": 50, "days": DAYS, "sessions": SESSIONS, "rules": "original"},
    quick={"n_agents": 4, "days": 1},
    target=Reference(
        changes(gemini_paths(), DAYS * SESSIONS),
        "Gemini-Pro, first ten days of the authors' run",
        "git history of the authors' repository, f78c082",
    ),
    unit="percentage points",
    published=PublishedError(
        2.63,
        9.07,
        "gpt-3.5-turbo-0125, 3 seeds, to runs of the original code; baseline: no memory and no tool",
        other_target="the study's own runs of the original code with gpt-3.5-turbo-0125, which are not public",
    ),
    baseline=Baseline(without=("memory", "tools")),
    measure=Measure(
        "price change from the first to the last session, %", lambda found: found.get("volatility", math.nan)
    ),
)
