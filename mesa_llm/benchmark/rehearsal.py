"""Cost of a benchmark in advance, without sending a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mesa_llm.benchmark.runs import Plan
from mesa_llm.engine.access import Access
from mesa_llm.model import rehearsal
from mesa_llm.model.rehearsal import Cost


def rehearse(plans: Sequence[Plan], access: Access, **options: Any) -> dict[str, Cost]:
    """Compute the cost of runs in advance, without sending a request; see `mesa_llm.model.rehearsal.rehearse`.

    The first run of each task and candidate is rehearsed; the others are assumed to cost as much. Replies that run logs
    already hold are not deducted.

    Args:
        plans: The runs.
        access: Access that the runs would use.
        **options: Options of all models.

    Returns:
        Name of the task → cost of its runs together.

    Raises:
        ConfigError: If a task's parameters cannot be, or a model string names nothing.
    """
    each: dict[tuple[str, str], Cost] = {}
    costs: dict[str, Cost] = {}
    for plan in plans:
        name, key = plan.task.name, (plan.task.name, plan.candidate.name)
        if key not in each:
            run = {"access": access, "design": plan.candidate.design, **options}
            each[key] = rehearsal.rehearse(plan.make, plan.task.max_steps, **run).total
        costs[name] = costs.get(name, Cost()) + each[key]
    return costs
