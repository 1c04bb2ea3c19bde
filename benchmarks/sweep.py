"""Speed-up of sweeps: two workers against one, and two inference servers against one behind the same name.

The runs are those of the social model by rule, long enough that the workers' start weighs little; the servers answer so
many requests at once, each after 50 ms, in processes of their own.

A threshold that is missed by more than half fails the run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from statistics import median
from typing import Any

from mock_server import Behaviour, mock_server
from thresholds import Threshold, table

from mesa_llm import Endpoint
from mesa_llm.experiments.runs.sweep import sweep
from mesa_llm_models.social.model import SocialModel

N_RUNS, STEPS, AGENTS = 24, 60, 100
"""Runs of the sweep by rule, their steps, and the users of each."""

LATENCY_MS, SLOTS = 50, 8
"""Milliseconds until a server answers, and how many requests it answers at once."""


def wall_s(**options: Any) -> float:
    """Run a sweep in a new folder, and return its elapsed time."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        made = sweep(SocialModel, {"follows": [3]}, folder=folder, **options)
        if made.n_failed:
            raise SystemExit(made.table["error"].iloc[0])
        return time.perf_counter() - begun


def efficiency_percent() -> float:
    """Return the parallel efficiency of two workers, in percent."""
    options: dict[str, Any] = {"seeds": N_RUNS, "steps": STEPS, "fixed": {"n_agents": AGENTS}}
    return 100 * wall_s(workers=1, **options) / (2 * wall_s(workers=2, **options))


def times_one_server() -> float:
    """Return the speed-up of a run by two servers behind one name."""
    seconds: list[float] = []
    for n_servers in (1, 2):
        with ExitStack() as stack:
            servers = [mock_server(Behaviour(LATENCY_MS, fits=True)) for _ in range(n_servers)]
            first, *others = [stack.enter_context(server) for server in servers]
            cluster = Endpoint(model="mock", api_base=first, replicas=tuple(others), concurrency=SLOTS * n_servers)
            options: dict[str, Any] = {"seeds": 1, "workers": 1, "fixed": {"n_agents": 160}, "llm": "cluster"}
            seconds.append(wall_s(steps=5, endpoints={"cluster": cluster}, **options))
    return seconds[0] / seconds[1]


def main() -> int:
    """Measure and print; the exit status is 1 if a threshold is missed by more than half."""
    parser = argparse.ArgumentParser(description="Measure what a sweep reaches of its ideal.")
    parser.add_argument("--rounds", type=int, default=1, help="times that each is measured; medians are printed")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    arguments = parser.parse_args()
    efficiency = median(efficiency_percent() for _ in range(arguments.rounds))
    times = median(times_one_server() for _ in range(arguments.rounds))
    thresholds = [
        Threshold("two workers by rule: of the ideal", efficiency, 85, "%", True),
        Threshold(f"two servers beside one at {LATENCY_MS} ms", times, 1.9, "×", True),
    ]
    print(table(("threshold", "wanted", "measured", ""), [threshold.row for threshold in thresholds]))
    if arguments.json:
        print(json.dumps({threshold.name: threshold.measured for threshold in thresholds}))
    return int(any(threshold.verdict == "FAILED" for threshold in thresholds))


if __name__ == "__main__":
    sys.exit(main())
