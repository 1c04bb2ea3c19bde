"""Cost of our own code compared with upstream `mesa-llm`: the same task and the same local endpoint, in turn.

Agents pay into a pot; one decision takes this project one request, and upstream two (it plans, then acts). The two
sides take turns, each cell in a fresh process against a fresh endpoint, which is a process of its own; what a process
does first (load code, connect) is not measured. CPU is processor time of the asking process, all its threads; on a
machine that does other things too, the minimum says more than the median. Upstream steps its agents one after another
on Mesa 3.5, whatever is set; its parallel stepper is called directly. Ours writes its run log to a file all the
while; upstream keeps none.

A goal that is missed by more than half fails the run, and so does processor time a decision that is not 30 times less
than upstream's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from statistics import median
from typing import Any

from cell import python_text
from comparison import CONCURRENCY, GROWTH_CONCURRENCY, QUICK, REFERENCE, SETTINGS, Comparison, Row
from goals import Goal, figure_text, table
from imports import import_goals


def ideal_share(comparison: Comparison, agents: int, latency_ms: int) -> float | None:
    """Compute the latency as a share of the step's time, in percent; None if not run."""
    row = comparison.rows.get(("ours", (agents, latency_ms)))
    speed = row.middle("per_s") if row is not None else None
    return None if speed is None else 100 * speed / ideal_speed(agents, latency_ms)


def ideal_speed(agents: int, latency_ms: int) -> float:
    """Return the agents a second if only the endpoint took time."""
    return agents / (math.ceil(agents / CONCURRENCY) * latency_ms / 1000)


def ratio(comparison: Comparison, what: str, setting: tuple[int, int]) -> float | None:
    """Divide upstream's figure (parallel) by ours; None if one was not run."""
    sides = [comparison.rows.get((kind, setting)) for kind in ("at once", "ours")]
    theirs, ours = (row.middle(what) if row is not None else None for row in sides)
    return theirs / ours if theirs and ours else None


def goals(comparison: Comparison) -> list[Goal]:
    """Compare the measurements with the goals."""
    ours = comparison.rows["ours", REFERENCE]
    cost, speed = ratio(comparison, "us", REFERENCE), ratio(comparison, "per_s", (100, 50))
    requests = [count for (kind, _), row in comparison.rows.items() if kind == "ours" for count in row.each("requests")]
    calls = comparison.single.get("calls", [])
    a_call = median(reading["cpu_s"] / reading["calls"] * 1e6 for reading in calls) if calls else None
    weight = comparison.one("memory, ours")
    return [
        Goal("requests a decision", max(requests, default=None), 1),
        Goal("CPU a decision, in all, 100 agents × 0 ms", ours.middle("us"), 300, "µs"),
        Goal("CPU a call, the client alone, 64 at once", a_call, 200, "µs"),
        Goal("less CPU a decision than upstream", cost, 50, "×", True, failing_share=30 / 50),
        Goal("less CPU a call than upstream", ratio(comparison, "us_a_call", REFERENCE), 25, "×", True),
        Goal("more agents a second than upstream, 100 × 50 ms", 1 / speed if speed else None, 20, "×", True),
        Goal("of the latency ideal, 100 × 500 ms", ideal_share(comparison, 100, 500), 90, "%", True),
        Goal("of the latency ideal, 100 × 50 ms", ideal_share(comparison, 100, 50), 70, "%", True),
        Goal("memory of a new agent", weight["kilobytes"] if weight else None, 8, "kB"),
        *growth_goals(comparison.one("growth, ours")),
        *limit_goals(comparison),
        Goal("replay, the log alone, a CPU second", comparison.rate("log"), 20_000, "decisions", True),
        Goal("replay, all of `social`, a CPU second", comparison.rate("social"), 2_000, "decisions", True),
        Goal("run log of `social`, a decision", log_size(comparison), 1.5, "kB"),
        *import_goals(comparison.single["imports"]),
    ]


def log_size(comparison: Comparison) -> float | None:
    """Return the kilobytes of a decision in the run log; None if not run."""
    reading = comparison.one("social")
    return reading["log_bytes"] / reading["decisions"] / 1000 if reading else None


def growth_goals(reading: dict[str, Any] | None) -> Iterator[Goal]:
    """Compare figures that could grow over 30 steps with their bound, or with their value at full memories."""
    rows = reading["rows"] if reading else []
    most = max((row["in_flight"] for row in rows), default=None)
    yield Goal(f"requests in flight, {GROWTH_CONCURRENCY} allowed", most, GROWTH_CONCURRENCY)
    for name, words in {"files": "open files", "prompt": "prompt length"}.items():
        grown = max(row[name] for row in rows[25:]) / max(row[name] for row in rows[20:25]) if rows else None
        yield Goal(f"{words}, steps 26–30 relative to 21–25", grown, 1.05, "×")


def limit_goals(comparison: Comparison) -> Iterator[Goal]:
    """Compare the number of requests that a rate limit refuses with the goal."""
    for name in ("50 in flight", "60 a second"):
        reading = comparison.one(f"{name}, ours")
        spent = reading["requests"] / reading["answers"] if reading else None
        yield Goal(f"requests an answer, where the endpoint grants {name}", spent, 1.2)


def figures(row: Row, what: str, best: Any) -> str:
    """Format the median of a figure and its best in parentheses, or the reason for a missing one."""
    values = row.each(what)
    return f"{figure_text(median(values))} ({figure_text(best(values))})" if values else row.trouble or "not run"


def compared(comparison: Comparison) -> str:
    """Write the table of both sides."""
    head = ["agents", "ms", "ours: agents/s", "CPU µs", "upstream at once: agents/s", "CPU ms", "calls"]
    head += ["in turn: agents/s", "CPU ms", "CPU ×", "a call ×", "agents/s ×"]
    rows: list[list[str]] = []
    for agents, latency_ms, *_ in comparison.settings:
        place = (agents, latency_ms)
        ours, at_once, in_turn = (comparison.rows[kind, place] for kind in ("ours", "at once", "in turn"))
        less = [ratio(comparison, what, place) for what in ("us", "us_a_call", "per_s")]
        less[2] = 1 / less[2] if less[2] else None
        calls = at_once.middle("requests")
        costs = ((ours, "us"), (at_once, "ms"), (in_turn, "ms"))
        sides = [figures(row, *shape) for row, cost in costs for shape in (("per_s", max), (cost, min))]
        told = [f"{agents:,}", str(latency_ms), *sides[:4], "–" if calls is None else figure_text(calls), *sides[4:]]
        rows.append(told + ["–" if times is None else figure_text(times) for times in less])
    return table(head, rows)


def besides(comparison: Comparison) -> str:
    """Write the table of figures measured once."""
    rows: list[tuple[str, str, str]] = []
    for what, tell in TOLD.items():
        both = [comparison.one(f"{what}, {side}") for side in ("ours", "upstream")]
        troubles = [comparison.single.get(f"{what}, {side}: not run", "not run") for side in ("ours", "upstream")]
        told = [trouble if reading is None else tell(reading) for reading, trouble in zip(both, troubles, strict=True)]
        rows.append((what, told[0], told[1]))
    seconds = comparison.single["imports"]["seconds"]
    told = [
        (statement, figure_text(found["median"]), figure_text(found["min"])) for statement, found in seconds.items()
    ]
    return table(["", "ours", "upstream"], rows) + "\n\n" + table(["import", "CPU s, median", "minimum"], told)


def of_growth(reading: dict[str, Any]) -> str:
    """Format the first and the last step of a measured run."""
    first, last = reading["rows"][0], reading["rows"][-1]
    bytes_each = f"{figure_text(round(first['prompt']))} → {figure_text(round(last['prompt']))}"
    return f"{len(reading['rows'])} steps: files {first['files']} → {last['files']}, bytes a request {bytes_each}"


TOLD = {
    "memory": lambda reading: f"{figure_text(reading['kilobytes'])} kB a new agent",
    "growth": of_growth,
    "50 in flight": lambda reading: f"{reading['requests']:,} requests for {reading['answers']:,} answers",
    "60 a second": lambda reading: f"{reading['requests']:,} requests for {reading['answers']:,} answers",
}


def as_json(comparison: Comparison, held: list[Goal]) -> str:
    """Return everything as JSON."""
    rows = [
        {"side": kind, "agents": place[0], "latency_ms": place[1], **asdict(row)}
        for (kind, place), row in comparison.rows.items()
    ]
    goal_rows = [{**asdict(goal), "verdict": goal.verdict} for goal in held]
    return json.dumps({"rows": rows, "besides": comparison.single, "goals": goal_rows}, indent=1)


def load() -> str:
    """Describe the load of the machine and the speed of this Python."""
    busy = f"load {os.getloadavg()[0]:.1f} on " if hasattr(os, "getloadavg") else ""  # Windows has none
    return f"{busy}{os.cpu_count()} cores, {python_text()}"


def main() -> int:
    """Measure and print; the exit status is 1 if a goal is missed by far."""
    parser = argparse.ArgumentParser(description="Compare what our own code costs with upstream mesa-llm.")
    parser.add_argument("--rounds", type=int, default=3, help="how often the sides take turns (default 3)")
    parser.add_argument("--quick", action="store_true", help="one round of few settings, in two minutes")
    parser.add_argument("--minutes", type=float, default=13, help="begin nothing after this time (default 13)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead of tables")
    given = parser.parse_args()
    begun = time.monotonic()
    rounds = 1 if given.quick else given.rounds
    comparison = Comparison(rounds, QUICK if given.quick else SETTINGS, given.minutes)
    comparison.run()
    held = goals(comparison)
    if given.json:
        print(as_json(comparison, held))
    else:
        print(f"{datetime.now(UTC).date()}, {rounds} rounds, {(time.monotonic() - begun) / 60:.1f} minutes, {load()}.")
        print("Medians; in parentheses the best round. CPU and calls are per decision.\n")
        print(compared(comparison), besides(comparison), sep="\n\n")
        print("\n" + table(["goal", "wanted", "measured", ""], [goal.row for goal in held]))
    is_measured = bool(comparison.rows["ours", REFERENCE].readings)
    return int(not is_measured or any(goal.verdict == "FAILED" for goal in held))


if __name__ == "__main__":
    sys.exit(main())
