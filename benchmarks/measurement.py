"""One measurement of the comparison, in a process of its own. This module runs in both environments."""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
import timeit
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

PERSONA = "You are player {number} of a group that saves for a feast. You like round numbers and dislike waste."
"""Persona of an agent in both systems."""

TASK = "Decide how many coins you pay into the pot in this step."
"""Task of an agent in both systems."""


PLAIN_CLASS = """
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def moved(self, by):
        return Point(self.x + by, self.y)
"""

PLAIN_LOOP = """
texts = {}
for number in range(20_000):
    point = Point(number, 1).moved(2)
    texts[point.x % 256] = f"{point.y} {number}"
"""
"""Typical work of a Python program: create objects, call methods, format and store strings."""


@dataclass(frozen=True)
class Measurement:
    """One measurement to take."""

    kind: str
    """What to measure."""

    name: str = ""
    """Name of the task to measure, if any."""

    base: str = ""
    """Base URL of the endpoint."""

    agents: int = 0
    """Number of agents that decide in every step."""

    steps: int = 1
    """Number of measured steps, after a warm-up."""

    concurrency: int = 512
    """Maximum number of requests in flight."""

    clients: int = 0
    """Number of client processes that send the requests; 0: the measured process itself."""


@dataclass
class Timing:
    """Time that a block of work takes."""

    cpu_s: float = 0.0
    """Processor time of this process, over all threads."""

    wall_s: float = 0.0
    """Elapsed time."""


@contextmanager
def measured() -> Iterator[Timing]:
    """Measure the block, after collecting earlier garbage."""
    gc.collect()
    timing = Timing()
    cpu, wall = time.process_time(), time.perf_counter()
    yield timing
    timing.cpu_s, timing.wall_s = time.process_time() - cpu, time.perf_counter() - wall


def python_ms() -> float:
    """Return the time that this Python takes for a plain loop, in milliseconds.

    Builds of one version differ by almost a factor of two: 5.4 ms with profile-guided optimisation, as distributions
    and python.org build it, and 10 ms without, as pyenv does by default, on one machine.
    """
    return 1e3 * min(timeit.repeat(PLAIN_LOOP, PLAIN_CLASS, number=1, repeat=30))


def python_text() -> str:
    """Describe this Python and its speed."""
    return f"Python {platform.python_version()}, plain loop {python_ms():.1f} ms"


def open_files() -> int:
    """Count the open files, pipes and sockets of this process."""
    return len(os.listdir("/dev/fd"))


def kilobytes_each(make: Callable[[int], Any], number: int) -> float:
    """Create objects, and return the memory that Python allocates for each, in kB of 1,000 bytes."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = make(number)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del kept
    return used / number / 1000


def is_measured_process() -> bool:
    """Check whether this process was started by `System.measure` to take one measurement."""
    return len(sys.argv) == 2 and sys.argv[1].startswith("{")


def run_measurement(kinds: dict[str, Callable[[Measurement], dict[str, Any]]]) -> None:
    """Measure as the command line says, and print the result as the last line of the output."""
    measurement = Measurement(**json.loads(sys.argv[1]))
    reading = kinds[measurement.kind](measurement)
    sys.stdout.flush()
    print("\n" + json.dumps(reading), flush=True)
