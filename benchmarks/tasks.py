"""Cost of our own code for a decision of each benchmark task, compared with the plain engine; and the width of steps.

Every task of `mesa-llm bench` runs in its published setting against a local endpoint in another process, whose replies
fit the requests. The plain engine runs the agents of `benchmarks/overhead.py` (one world, one action), with as many
simultaneous decisions as the task. All run in turn, each in a fresh process with a run log in a file; loading code and
connecting are not measured. CPU is processor time of all threads of the measuring process.

Wide steps, at 200 ms latency, have as many requests at once as possible: questionnaires item by item, and dyads, if
there are such tasks. Their floor is the time of libcurl alone for the same requests to the same endpoint.

A threshold that is missed by more than half fails the run.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import NotRun, System
from libcurl_baseline import libcurl_wall_s
from measurement import Measurement, is_measured_process, measured, run_measurement
from mock_server import Behaviour
from overhead import load
from thresholds import Threshold, figure_text, table
from workload_ours import steps

from mesa_llm import Access, LLMModel
from mesa_llm.experiments.benchmarks import Task, find_task, find_tasks
from mesa_llm.llm.openai.connection import Connections, Response

CONCURRENCY = 512
"""Maximum number of requests in flight."""

DECISIONS = 1_000
"""Number of decisions to measure for each task."""

WIDTHS = (1, 3, 10, 30, 100)
"""Numbers of simultaneous decisions to measure the plain engine with: a single decision costs most."""

LATENCY_MS = 200
"""Latency of the endpoint for wide steps, in milliseconds."""

OURS = System("this project", sys.executable, "tasks.py")
"""This file, which measures in a process of its own."""

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

Readings = dict[str, list[dict[str, Any]]]
"""Name of a task, or of the plain engine → measurements of each round."""


def cost_us(readings: list[dict[str, Any]]) -> float | None:
    """Return the median processor time of a decision, in microseconds; None if not run."""
    return median(1e6 * one["cpu_s"] / one["decisions"] for one in readings) if readings else None


def measure(names: list[str], rounds: int) -> tuple[Readings, dict[str, str]]:
    """Measure the plain engine and each task in turn; return the readings, and the reasons for missing ones."""
    measurements = {plain(width): Measurement("steps", agents=width, steps=DECISIONS // width) for width in WIDTHS}
    measurements |= {name: Measurement("task", agents=DECISIONS, name=name) for name in names}
    readings: Readings = {name: [] for name in measurements}
    not_run: dict[str, str] = {}
    for _ in range(rounds):
        for name, measurement in measurements.items():
            try:
                behaviour = Behaviour(fits=measurement.kind == "task")
                readings[name].append(OURS.measure(replace(measurement, concurrency=CONCURRENCY), behaviour, 180))
            except NotRun as error:
                not_run[name] = str(error)
    return readings, not_run


def plain(width: int) -> str:
    """Return the name of the plain engine with a number of simultaneous decisions."""
    return f"plain, {width} at once"


def width_of(readings: list[dict[str, Any]]) -> float:
    """Return the mean number of simultaneous decisions of a task."""
    return sum(one["decisions"] for one in readings) / sum(one["stages"] for one in readings)


def plain_cost_us(readings: Readings, width: float) -> float | None:
    """Return the cost of a decision of the plain engine with a number of simultaneous decisions.

    The decisions share the other costs of a step: between two measured widths, the cost is linear
    in the share of one decision.
    """
    costs = {1 / one: cost for one in reversed(WIDTHS) if (cost := cost_us(readings[plain(one)])) is not None}
    return float(np.interp(1 / width, list(costs), list(costs.values()))) if costs else None


def widest(names: list[str], rounds: int) -> tuple[Readings, dict[str, str]]:
    """Measure the widest step of each task that has one."""
    readings: Readings = {name: [] for name, (task, _) in WIDE.items() if task in names}
    not_run: dict[str, str] = {}
    for name in readings:
        for _ in range(rounds):
            try:
                measurement = Measurement("wide", concurrency=CONCURRENCY, name=name)
                readings[name].append(OURS.measure(measurement, Behaviour(LATENCY_MS, fits=True), 180))
            except NotRun as error:
                not_run[name] = str(error)
    return readings, not_run


def ideal_percent(reading: dict[str, Any], wall: str = "wall_s") -> float:
    """Return the latency as a share of the time of a step, in percent.

    Args:
        reading: The measurements.
        wall: Name of the time: the step's, or `libcurl_wall_s`, that of libcurl alone with the same requests.
    """
    ideal_s = math.ceil(reading["decisions"] / CONCURRENCY) * LATENCY_MS / 1000
    return 100 * ideal_s / reading[wall]


def times_plain(readings: Readings, name: str) -> float | None:
    """Return the cost of a task's decision as a multiple of the plain engine's with as many at once."""
    found = readings[name]
    cost = cost_us(found)
    plain_cost = plain_cost_us(readings, width_of(found)) if found else None
    return cost / plain_cost if cost and plain_cost else None


def thresholds(names: list[str], readings: Readings, wide: Readings) -> list[Threshold]:
    """Compare the measurements with the thresholds."""
    results = [
        Threshold(f"{name}: CPU a decision beside the plain engine", times_plain(readings, name), 1.5, "×")
        for name in names
    ]
    for name, found in wide.items():
        share = median(map(ideal_percent, found)) if found else None
        results.append(Threshold(f"{name} in one step: of the latency ideal of {LATENCY_MS} ms", share, 80, "%", True))
    return results


def costs(readings: Readings, not_run: dict[str, str]) -> str:
    """Write the table of costs."""
    widest_plain = cost_us(readings[plain(WIDTHS[-1])])
    rows: list[list[str]] = []
    for name, found in readings.items():
        cost = cost_us(found)
        if cost is None:
            rows.append([name, not_run.get(name, "not run"), "", "", "", "", "", ""])
            continue
        decisions = sum(one["decisions"] for one in found)
        best = min(1e6 * one["cpu_s"] / one["decisions"] for one in found)
        requests = sum(one["requests"] for one in found) / decisions
        failed = 100 * sum(one["failures"] for one in found) / decisions
        is_task = "stages" in found[0]
        width, times = (width_of(found), times_plain(readings, name)) if is_task else (None, None)
        figures = [cost, best, width, times, cost / widest_plain if widest_plain else None, requests]
        rows.append([name, *("" if one is None else figure_text(one) for one in figures), f"{failed:.1f}"])
    head = ["task", "CPU µs a decision", "best", "at once", "× plain, as wide"]
    return table([*head, f"× plain, {WIDTHS[-1]} at once", "requests a decision", "failed %"], rows)


def widths(wide: Readings) -> str:
    """Write the table of wide steps, beside the floor: what libcurl alone needs for the same requests."""
    rows = [
        [
            name,
            f"{median(one['decisions'] for one in found):,.0f}",
            *(f"{median(ideal_percent(one, wall) for one in found):.0f}" for wall in ("wall_s", "libcurl_wall_s")),
        ]
        for name, found in wide.items()
        if found
    ]
    return table(["wide step", "decisions", "% of the latency ideal", "libcurl alone"], rows)


# -- in a process of its own


@contextmanager
def access_of(measurement: Measurement) -> Iterator[Access]:
    """Open access to the endpoint, which several models can share with its connections."""
    access = Access(api_base=measurement.base, concurrency=measurement.concurrency)
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
            **{**task.setting, **ALONE.get(task.name, {}), **parameters}, llm="mock", access=access, log=log, rng=1
        )
        try:
            yield model
        finally:
            model.close()


def task(measurement: Measurement) -> dict[str, Any]:
    """Measure whole steps of a task in its published setting, up to the given number of decisions."""
    published = find_task(measurement.name)
    small = published.as_quick()
    with access_of(measurement) as access, model_of(small, access) as model:  # loads the code, and is not measured
        model.run(min(small.max_steps or 6, 6))
    with access_of(measurement) as access, model_of(published, access) as model:
        model.step()  # connects
        usage_before, n_before, stages = model.usage, model.engine.decisions, [0]
        gather = model.engine.gather

        def counted_gather(agents: Sequence[Any], observations: Sequence[Any]) -> list[Any]:
            stages[0] += 1
            return gather(agents, observations)

        model.engine.gather = counted_gather
        with measured() as timing:
            while model.running and model.engine.decisions - n_before < measurement.agents:
                model.step()
        used, decisions = model.usage - usage_before, model.engine.decisions - n_before
    counts = {"decisions": decisions, "requests": used.calls, "failures": used.failures, "stages": stages[0]}
    return {**vars(timing), **counts}


def wide(measurement: Measurement) -> dict[str, Any]:
    """Measure the second of two wide steps, over connections of an equal run; then libcurl alone."""
    name, parameters = WIDE[measurement.name]
    published = find_task(name)
    with access_of(measurement) as access:
        with model_of(published, access, **parameters) as model:
            model.step()
            with bodies_collected() as bodies:
                model.step()
        with model_of(published, access, **parameters) as model:
            model.step()
            before = model.engine.decisions
            with measured() as timing:
                model.step()
            decisions = model.engine.decisions - before
            return {**vars(timing), "decisions": decisions, "libcurl_wall_s": libcurl_wall_s(measurement.base, bodies)}


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


# -- command line


def main() -> int:
    """Measure and print; the exit status is 1 if a threshold is missed by more than half."""
    parser = argparse.ArgumentParser(description="Measure what decisions of the benchmark's tasks cost our own code.")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default 3)")
    parser.add_argument("--only", nargs="+", default=[], metavar="TASK", help="these tasks alone")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead of tables")
    options = parser.parse_args()
    tasks, broken = find_tasks()
    if unknown := [name for name in options.only if name not in tasks]:
        raise SystemExit(f"there is no {', '.join(unknown)}; choose from {', '.join(tasks)}")
    names = options.only or list(tasks)
    readings, not_run = measure(names, options.rounds)
    wide, wide_troubles = widest(names, options.rounds)
    results = thresholds(names, readings, wide)
    if options.json:
        rows = [{**asdict(threshold), "verdict": threshold.verdict} for threshold in results]
        print(json.dumps({"readings": readings, "wide": wide, "thresholds": rows, "not_run": not_run | wide_troubles}))
    else:
        print(f"{datetime.now(UTC).date()}, {options.rounds} rounds, {load()}.\n")
        print(costs(readings, not_run), *([widths(wide)] if wide else []), sep="\n\n")
        for name, reason in [*broken.items(), *wide_troubles.items()]:
            print(f"{name}: not run: {reason}")
        print("\n" + table(["threshold", "wanted", "measured", ""], [threshold.row for threshold in results]))
    return int(bool(not_run) or any(threshold.verdict == "FAILED" for threshold in results))


if __name__ == "__main__":
    if is_measured_process():
        run_measurement({kind.__name__: kind for kind in (steps, task, wide)})
    else:
        sys.exit(main())
