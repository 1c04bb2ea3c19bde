"""Cost of our own code for a decision of each benchmark task, compared with the plain engine; and the width of steps.

Every task of `mesa-llm bench` runs in its published setting against a local endpoint in another process, whose replies
fit the requests. The plain engine runs the agents of `benchmarks/overhead.py` (one world, one action), with as many
simultaneous decisions as the task. All run in turn, each in a fresh process with a run log in a file; loading code and
connecting are not measured. CPU is processor time of all threads of the measuring process.

Wide steps, at 200 ms latency, have as many requests at once as possible: questionnaires item by item, and dyads, if
there are such tasks. Their floor is the time of libcurl alone for the same requests to the same endpoint.

A goal that is missed by more than half fails the run.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from statistics import median
from typing import Any

import numpy as np
from cell import Cell
from goals import Goal, figure_text, table
from overhead import load
from sides import NotRun, Side
from stub import Terms
from task_runs import WIDE

from mesa_llm.benchmark import find_tasks

CONCURRENCY = 512
"""Maximum number of requests in flight."""

DECISIONS = 1_000
"""Number of decisions to measure for each task."""

WIDTHS = (1, 3, 10, 30, 100)
"""Numbers of simultaneous decisions to measure the plain engine with: a single decision costs most."""

LATENCY_MS = 200
"""Latency of the endpoint for wide steps, in milliseconds."""

SIDE = Side("this project", sys.executable, "task_runs.py")

Readings = dict[str, list[dict[str, Any]]]
"""Name of a task, or of the plain engine → measurements of each round."""


def cost_us(readings: list[dict[str, Any]]) -> float | None:
    """Return the median processor time of a decision, in microseconds; None if not run."""
    return median(1e6 * one["cpu_s"] / one["decisions"] for one in readings) if readings else None


def measure(names: list[str], rounds: int) -> tuple[Readings, dict[str, str]]:
    """Measure the plain engine and each task in turn; return the readings, and the reasons for missing ones."""
    cells = {plain(width): Cell("steps", agents=width, steps=DECISIONS // width) for width in WIDTHS}
    cells |= {name: Cell("task", agents=DECISIONS, name=name) for name in names}
    readings: Readings = {name: [] for name in cells}
    troubles: dict[str, str] = {}
    for _ in range(rounds):
        for name, cell in cells.items():
            try:
                terms = Terms(fits=cell.what == "task")
                readings[name].append(SIDE.measure(replace(cell, concurrency=CONCURRENCY), terms, 180))
            except NotRun as error:
                troubles[name] = str(error)
    return readings, troubles


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
    troubles: dict[str, str] = {}
    for name in readings:
        for _ in range(rounds):
            try:
                cell = Cell("wide", concurrency=CONCURRENCY, name=name)
                readings[name].append(SIDE.measure(cell, Terms(LATENCY_MS, fits=True), 180))
            except NotRun as error:
                troubles[name] = str(error)
    return readings, troubles


def ideal_percent(reading: dict[str, Any], wall: str = "wall_s") -> float:
    """Return the latency as a share of the time of a step, in percent.

    Args:
        reading: The measurements.
        wall: Name of the time: the step's, or `bare_wall_s`, that of libcurl alone with the same requests.
    """
    ideal_s = math.ceil(reading["decisions"] / CONCURRENCY) * LATENCY_MS / 1000
    return 100 * ideal_s / reading[wall]


def times_plain(readings: Readings, name: str) -> float | None:
    """Return the cost of a task's decision as a multiple of the plain engine's with as many at once."""
    found = readings[name]
    cost = cost_us(found)
    plain_cost = plain_cost_us(readings, width_of(found)) if found else None
    return cost / plain_cost if cost and plain_cost else None


def goals(names: list[str], readings: Readings, wide: Readings) -> list[Goal]:
    """Compare the measurements with the goals."""
    held = [
        Goal(f"{name}: CPU a decision beside the plain engine", times_plain(readings, name), 1.5, "×") for name in names
    ]
    for name, found in wide.items():
        share = median(map(ideal_percent, found)) if found else None
        held.append(Goal(f"{name} in one step: of the latency ideal of {LATENCY_MS} ms", share, 80, "%", True))
    return held


def costs(readings: Readings, troubles: dict[str, str]) -> str:
    """Write the table of costs."""
    widest_plain = cost_us(readings[plain(WIDTHS[-1])])
    rows: list[list[str]] = []
    for name, found in readings.items():
        cost = cost_us(found)
        if cost is None:
            rows.append([name, troubles.get(name, "not run"), "", "", "", "", "", ""])
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
            *(f"{median(ideal_percent(one, wall) for one in found):.0f}" for wall in ("wall_s", "bare_wall_s")),
        ]
        for name, found in wide.items()
        if found
    ]
    return table(["wide step", "decisions", "% of the latency ideal", "libcurl alone"], rows)


def main() -> int:
    """Measure and print; the exit status is 1 if a goal is missed by more than half."""
    parser = argparse.ArgumentParser(description="Measure what decisions of the benchmark's tasks cost our own code.")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default 3)")
    parser.add_argument("--only", nargs="+", default=[], metavar="TASK", help="these tasks alone")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead of tables")
    given = parser.parse_args()
    tasks, broken = find_tasks()
    if unknown := [name for name in given.only if name not in tasks]:
        raise SystemExit(f"there is no {', '.join(unknown)}; choose from {', '.join(tasks)}")
    names = given.only or list(tasks)
    readings, troubles = measure(names, given.rounds)
    wide, wide_troubles = widest(names, given.rounds)
    held = goals(names, readings, wide)
    if given.json:
        rows = [{**asdict(goal), "verdict": goal.verdict} for goal in held]
        print(json.dumps({"readings": readings, "wide": wide, "goals": rows, "troubles": troubles | wide_troubles}))
    else:
        print(f"{datetime.now(UTC).date()}, {given.rounds} rounds, {load()}.\n")
        print(costs(readings, troubles), *([widths(wide)] if wide else []), sep="\n\n")
        for name, trouble in [*broken.items(), *wide_troubles.items()]:
            print(f"{name}: not run: {trouble}")
        print("\n" + table(["goal", "wanted", "measured", ""], [goal.row for goal in held]))
    return int(bool(troubles) or any(goal.verdict == "FAILED" for goal in held))


if __name__ == "__main__":
    sys.exit(main())
