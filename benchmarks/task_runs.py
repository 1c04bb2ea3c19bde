"""Measurements of benchmark tasks, each in its own process, against an endpoint whose replies fit the requests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bare import bare_wall_s
from cell import Cell, measured, run_cell
from ours import steps

from mesa_llm import Access, LLMModel
from mesa_llm.benchmark import Task, find_task
from mesa_llm.llm.openai.connection import Connections, Response

ITEM_BY_ITEM = {
    "administrations": 100,
    "per_request": 1,
    "history": False,
    "instruments": ["Five traits", "Temperament", "Dark traits", "Interests", "Emotional abilities"],
}
"""Parameters of PsychoBench that give each respondent 132 items at once."""

ALONE: dict[str, dict[str, Any]] = {"sotopia": {"judge": "rule"}}
"""Task → parameters without a second language model."""

WIDE: dict[str, tuple[str, dict[str, Any]]] = {
    "132 items": ("psychobench", ITEM_BY_ITEM),
    "132 items, 3 respondents": ("psychobench", {**ITEM_BY_ITEM, "n_agents": 3}),
    "450 dyads": ("sotopia", {"n_dyads": 450}),
}
"""Name of a wide step → its task, and the parameters that make it wide."""


@contextmanager
def access_of(cell: Cell) -> Iterator[Access]:
    """Open access to the endpoint, which several models can share with its connections."""
    access = Access(api_base=cell.base, concurrency=cell.concurrency)
    try:
        yield access
    finally:
        access.close()


@contextmanager
def model_of(task: Task, access: Access, **parameters: Any) -> Iterator[LLMModel]:
    """Build the model of a task, which asks the endpoint and writes its run log to a file."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "run.sqlite")
        model = task.make(
            **{**task.setting, **ALONE.get(task.name, {}), **parameters}, llm="stub", access=access, log=log, rng=1
        )
        try:
            yield model
        finally:
            model.close()


def task(cell: Cell) -> dict[str, Any]:
    """Measure whole steps of a task in its published setting, up to the given number of decisions."""
    published = find_task(cell.name)
    small = published.as_quick()
    with access_of(cell) as access, model_of(small, access) as model:  # loads the code, and is not measured
        model.run(min(small.max_steps or 6, 6))
    with access_of(cell) as access, model_of(published, access) as model:
        model.step()  # connects
        usage_before, n_before, stages = model.usage, model.engine.decisions, [0]
        gather = model.engine.gather

        def counted_gather(agents: Sequence[Any], observations: Sequence[Any]) -> list[Any]:
            stages[0] += 1
            return gather(agents, observations)

        model.engine.gather = counted_gather
        with measured() as stretch:
            while model.running and model.engine.decisions - n_before < cell.agents:
                model.step()
        used, decisions = model.usage - usage_before, model.engine.decisions - n_before
    counts = {"decisions": decisions, "requests": used.calls, "failures": used.failures, "stages": stages[0]}
    return {**vars(stretch), **counts}


def wide(cell: Cell) -> dict[str, Any]:
    """Measure the second of two wide steps, over connections of an equal run; then libcurl alone."""
    name, parameters = WIDE[cell.name]
    published = find_task(name)
    with access_of(cell) as access:
        with model_of(published, access, **parameters) as model:
            model.step()
            with bodies_collected() as bodies:
                model.step()
        with model_of(published, access, **parameters) as model:
            model.step()
            before = model.engine.decisions
            with measured() as stretch:
                model.step()
            decisions = model.engine.decisions - before
            return {**vars(stretch), "decisions": decisions, "bare_wall_s": bare_wall_s(cell.base, bodies)}


@contextmanager
def bodies_collected() -> Iterator[list[bytes]]:
    """Collect the bodies of all requests sent in the block."""
    bodies: list[bytes] = []
    post = Connections.post

    async def collect(self: Connections, body: bytes) -> Response:
        bodies.append(body)
        return await post(self, body)

    Connections.post = collect
    try:
        yield bodies
    finally:
        Connections.post = post


if __name__ == "__main__":
    run_cell({kind.__name__: kind for kind in (steps, task, wide)})
