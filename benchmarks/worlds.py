"""Speed of worlds by themselves and of models with their rule twins as they grow, and the shares of their parts.

Each world and each model runs in its own process, with 10, 100, … inhabitants, until its processor time is used up;
sizes without enough time left are listed as not run. A repeat is a series of steps on one such world or model, of 0.2 s
or up to 60 steps; if steps come in kinds (the stages of a trading day; three worlds visited in turn), it is a number of
whole cycles. The first cycle is a warm-up, unless it takes more than a second. Two processes run at a time.

Worlds are called directly, without agents and tool boxes: every inhabitant due observes and does one simple thing.
Models have their defaults, with `llm="rule"` and the run log in memory, and never reach their end.

Shares are measured in a further repeat. The process clock is read when the `_gather` of the model, the twin's `rule`, a
public method of a world, or `datacollector.collect` begins and ends, on the model's own objects; time counts for the
innermost of them, except that the collector includes what it makes worlds do. Engine: `_gather` without twin and world.
Rest: everything else, mainly what agents do around their worlds and twins, their memories, and the run log. Reading the
clock takes a microsecond or two, so parts that run for each agent look a little too large.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from statistics import median

from harness import HERE, environment
from overhead import load
from scaling import Plan, ScalePoint
from thresholds import figure_text, table
from world_workloads import WORLDS

from mesa_llm.registry import find_models

SIZES = (10, 100, 1_000, 10_000, 100_000)
QUICK = (10, 100, 1_000)

MAX_SLOWDOWN = 4.0
"""Elapsed seconds, for each processor second granted, after which a process is stopped."""

STARTING_S = 100.0
"""Additional elapsed seconds for the start, as imports of Mesa and pandas are slow on a busy machine."""

PARTS = {
    "world": {"observe": "observe", "act": "act", "end_step": "end of step", "rest": "rest"},
    "model": {"engine": "engine", "twin": "twin", "world": "world", "collector": "collector", "rest": "rest"},
}
"""Kind of subject → part → heading."""


def measure(plan: Plan) -> list[ScalePoint]:
    """Measure one world or model in its own process; return a point for each size, run or not."""
    command = [sys.executable, str(HERE / "scaling.py"), json.dumps(asdict(plan))]
    limit_s = STARTING_S + MAX_SLOWDOWN * plan.seconds
    reason = ""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), cwd=HERE
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            reason = f"not run: stopped after {limit_s:.0f} s on the clock"
    if process.returncode and not reason:
        reason = f"failed: {(errors.strip().splitlines() or [f'status {process.returncode}'])[-1][:120]}"
    points = [ScalePoint(**json.loads(line)) for line in output.splitlines() if line.endswith("}")]
    missing = plan.sizes[len(points) :]
    return points + [ScalePoint(plan.kind, plan.name, n, reason=reason) for n in missing]


def plans(options: argparse.Namespace) -> list[Plan]:
    """Return the subjects to measure: all worlds, then all models, or those named."""
    sizes = tuple(options.sizes or (QUICK if options.quick else SIZES))
    seconds = options.seconds or (4.0 if options.quick else 40.0)
    worlds = [Plan("world", name, sizes, seconds, options.repeats) for name in WORLDS]
    models = [Plan("model", entry.name, sizes, seconds, options.repeats) for entry in find_models()]
    named = {f"{plan.kind}:{plan.name}": plan for plan in worlds + models}
    unknown = sorted(set(options.only) - set(named))
    if unknown:
        raise SystemExit(f"there is no {', '.join(unknown)}; choose from {', '.join(named)}")
    return [plan for name, plan in named.items() if not options.only or name in options.only]


def points_table(points: Sequence[ScalePoint], kind: str) -> str:
    """Write the table of the worlds, or of the models."""
    parts = PARTS[kind]
    head = [
        kind,
        "agents",
        "steps/s",
        "best",
        "µs an agent",
        "build, s",
        *(f"{heading} %" for heading in parts.values()),
    ]
    rows: list[list[str]] = []
    for point in (point for point in points if point.kind == kind):
        row = [point.name, f"{point.agents:,}"]
        if point.reason:
            rows.append([*row, point.reason, *[""] * (len(head) - 3)])
            continue
        speed = median(point.steps_per_s)
        figures = (speed, max(point.steps_per_s), 1e6 / speed / point.agents)
        row += [*map(figure_text, figures), f"{point.build_s:.2f}"]
        rows.append(row + [f"{100 * point.breakdown.get(part, 0.0):.0f}" for part in parts])
    return table(head, rows)


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure how fast worlds and models step as they grow.")
    parser.add_argument("--quick", action="store_true", help="up to 1,000 inhabitants, in under a minute")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="numbers of inhabitants, ascending")
    parser.add_argument("--seconds", type=float, help="processor seconds for each world or model (40; 4 with --quick)")
    parser.add_argument("--repeats", type=int, default=3, choices=range(3, 100), metavar="R", help="3 or more")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default 2)")
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND:NAME", help="for example world:social")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead of tables")
    return parser.parse_args()


def main() -> int:
    """Measure and print; the exit status is 1 if anything failed."""
    options = parsed()
    planned = plans(options)
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        points = [point for each in pool.map(measure, planned) for point in each]
    if options.json:
        print(json.dumps([asdict(point) for point in points], indent=1))
    else:
        print(f"{datetime.now(UTC).date()}, {options.repeats} repeats, {load()}.")
        print("Steps a second of processor time: median and best repeat. CpuBreakdown of processor time in percent.")
        for kind in PARTS:
            if any(point.kind == kind for point in points):
                print("\n" + points_table(points, kind))
    return int(any(point.reason.startswith("failed") for point in points))


if __name__ == "__main__":
    sys.exit(main())
