"""Speed of worlds alone and of models with their rule twins as they grow, and the shares of their parts.

Each world and each model has a process of its own, in which it is made with 10, 100, … inhabitants, for as long as
its processor time lasts; what there is no time for is not run, and the table says so. A repeat is a stretch of steps
on one such world or model, of 0.2 s or up to 60 steps; where steps come in kinds (the stages of a trading day; three
worlds looked at in turn), of whole cycles of them. The first cycle is left out, unless it takes more than a second.
Two processes run at a time.

Worlds alone are called directly, without agents and tool boxes: everybody due observes and does one simple thing.
Models are as they are by default, with `llm="rule"` and the run log in memory, and never come to their end.

Shares are taken in a further stretch. The clock of the process is read when `engine.gather`, the twin's `rule`, a
public method of a world, or `datacollector.collect` begins and ends, on the very objects of the model; time goes to
the innermost of them, but the collector keeps what it has worlds do. Engine: `gather` without twin and world. Rest:
everything else, above all what agents do around their worlds and twins, their memories, and the run log. Reading the
clock takes a microsecond or two, which makes shares of parts that are entered for each agent a little too large.
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

from alone import WORLDS
from climb import Ascent, Rung
from goals import figure_text, table
from overhead import load
from sides import HERE, environment

from mesa_llm.model.registry import find_models

SIZES = (10, 100, 1_000, 10_000, 100_000)
QUICK = (10, 100, 1_000)

PATIENCE = 4.0
"""Elapsed seconds, for each processor second granted, after which a process is stopped."""

STARTING_S = 100.0
"""Additional elapsed seconds for the start, as imports of Mesa and pandas are slow on a busy machine."""

PARTS = {
    "world": {"observe": "observe", "act": "act", "end_step": "end of step", "rest": "rest"},
    "model": {"engine": "engine", "twin": "twin", "world": "world", "collector": "collector", "rest": "rest"},
}
"""Kind of subject → part → heading."""


def measure(ascent: Ascent) -> list[Rung]:
    """Measure one world or model in its own process; return a rung for each size, run or not."""
    command = [sys.executable, str(HERE / "climb.py"), json.dumps(asdict(ascent))]
    limit_s = STARTING_S + PATIENCE * ascent.seconds
    trouble = ""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), cwd=HERE
    ) as process:
        try:
            written, said = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            written, said = process.communicate()
            trouble = f"not run: stopped after {limit_s:.0f} s on the clock"
    if process.returncode and not trouble:
        trouble = f"failed: {(said.strip().splitlines() or [f'status {process.returncode}'])[-1][:120]}"
    rungs = [Rung(**json.loads(line)) for line in written.splitlines() if line.endswith("}")]
    missing = ascent.sizes[len(rungs) :]
    return rungs + [Rung(ascent.kind, ascent.name, n, trouble=trouble) for n in missing]


def ascents(given: argparse.Namespace) -> list[Ascent]:
    """Return the subjects to measure: all worlds, then all models, or the given ones."""
    sizes = tuple(given.sizes or (QUICK if given.quick else SIZES))
    seconds = given.seconds or (4.0 if given.quick else 40.0)
    worlds = [Ascent("world", name, sizes, seconds, given.repeats) for name in WORLDS]
    models = [Ascent("model", entry.name, sizes, seconds, given.repeats) for entry in find_models()]
    named = {f"{ascent.kind}:{ascent.name}": ascent for ascent in worlds + models}
    unknown = sorted(set(given.only) - set(named))
    if unknown:
        raise SystemExit(f"there is no {', '.join(unknown)}; choose from {', '.join(named)}")
    return [ascent for name, ascent in named.items() if not given.only or name in given.only]


def written(rungs: Sequence[Rung], kind: str) -> str:
    """Write the table of the worlds, or of the models."""
    parts = PARTS[kind]
    head = [kind, "agents", "steps/s", "best", "µs an agent", "to make, s", *(f"{told} %" for told in parts.values())]
    rows: list[list[str]] = []
    for rung in (rung for rung in rungs if rung.kind == kind):
        row = [rung.name, f"{rung.agents:,}"]
        if rung.trouble:
            rows.append([*row, rung.trouble, *[""] * (len(head) - 3)])
            continue
        speed = median(rung.steps_per_s)
        figures = (speed, max(rung.steps_per_s), 1e6 / speed / rung.agents)
        row += [*map(figure_text, figures), f"{rung.build_s:.2f}"]
        rows.append(row + [f"{100 * rung.shares.get(part, 0.0):.0f}" for part in parts])
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
    given = parsed()
    planned = ascents(given)
    with ThreadPoolExecutor(max(1, given.jobs)) as pool:
        rungs = [rung for each in pool.map(measure, planned) for rung in each]
    if given.json:
        print(json.dumps([asdict(rung) for rung in rungs], indent=1))
    else:
        print(f"{datetime.now(UTC).date()}, {given.repeats} repeats, {load()}.")
        print("Steps a second of processor time: median and best repeat. Shares of processor time in percent.")
        for kind in PARTS:
            if any(rung.kind == kind for rung in rungs):
                print("\n" + written(rungs, kind))
    return int(any(rung.trouble.startswith("failed") for rung in rungs))


if __name__ == "__main__":
    sys.exit(main())
