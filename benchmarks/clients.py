"""Throughput of one run that sends its requests itself, and through client processes, at an endpoint without latency.

The settings take turns, each in a fresh process against a fresh endpoint. Elapsed time says something only on a machine
with more idle cores than processes: the run, its client processes, and the endpoint. Processor time is that of the run
alone, and says how many decisions a second it can make at most, however many client processes send for it.
"""

from __future__ import annotations

import argparse
import os
from statistics import median

from harness import OURS
from measurement import Measurement, python_text
from mock_server import Behaviour
from thresholds import figure_text, table


def measure(clients: int, agents: int, steps: int, latency_ms: float) -> tuple[float, float]:
    """Return the microseconds a decision: processor time of the run, and elapsed."""
    measurement = Measurement("steps", agents=agents, steps=steps, clients=clients)
    reading = OURS.measure(measurement, Behaviour(latency_ms))
    return 1e6 * reading["cpu_s"] / reading["decisions"], 1e6 * reading["wall_s"] / reading["decisions"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Compare a run with and without client processes.")
    parser.add_argument("--clients", default="0,1,2", help="numbers of client processes (default 0,1,2)")
    parser.add_argument("--rounds", type=int, default=5, help="how often the settings take turns (default 5)")
    parser.add_argument("--agents", type=int, default=1000, help="number of agents (default 1000)")
    parser.add_argument("--steps", type=int, default=4, help="number of steps (default 4)")
    parser.add_argument("--latency-ms", type=float, default=0, help="latency of the endpoint (default 0)")
    options = parser.parse_args()
    settings = [int(text) for text in options.clients.split(",")]
    readings: dict[int, list[tuple[float, float]]] = {clients: [] for clients in settings}
    for _ in range(options.rounds):
        for clients in settings:
            readings[clients].append(measure(clients, options.agents, options.steps, options.latency_ms))
    medians = {clients: [median(column) for column in zip(*rows, strict=True)] for clients, rows in readings.items()}
    rows: list[list[str]] = []
    for clients, (cpu_us, wall_us) in medians.items():
        first_cpu_us, first_wall_us = medians[settings[0]]
        cells = [cpu_us, first_cpu_us / cpu_us, 1e6 / wall_us, first_wall_us / wall_us]
        rows.append([str(clients), *map(figure_text, cells)])
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    print(f"{options.agents:,} agents, {options.rounds} rounds, medians; {load}, {python_text()}.\n")
    print(table(["client processes", "CPU µs a decision", "times less", "decisions a second", "times as many"], rows))


if __name__ == "__main__":
    main()
