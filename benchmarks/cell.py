"""Instructions and measurements of one process of the comparison. It runs in both environments."""

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
class Cell:
    """One measurement to take."""

    what: str
    """Name of the measurement."""

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


@dataclass
class Stretch:
    """Time of a stretch of work."""

    cpu_s: float = 0.0
    """Processor time of this process, over all threads."""

    wall_s: float = 0.0
    """Elapsed time."""


@contextmanager
def measured() -> Iterator[Stretch]:
    """Measure the block, after collecting earlier garbage."""
    gc.collect()
    stretch = Stretch()
    cpu, wall = time.process_time(), time.perf_counter()
    yield stretch
    stretch.cpu_s, stretch.wall_s = time.process_time() - cpu, time.perf_counter() - wall


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


def run_cell(kinds: dict[str, Callable[[Cell], dict[str, Any]]]) -> None:
    """Measure as the command line says, and print the result as the last line of the output."""
    cell = Cell(**json.loads(sys.argv[1]))
    reading = kinds[cell.what](cell)
    sys.stdout.flush()
    print("\n" + json.dumps(reading), flush=True)
