"""What one process of the comparison is told to do, and what it measures. It runs in both environments."""

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
"""Who an agent is, in both systems."""

TASK = "Decide how many coins you pay into the pot in this step."
"""What an agent is asked, in both systems."""


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
"""What every Python program does all day: it makes objects, calls methods, writes texts, and keeps them."""


@dataclass(frozen=True)
class Cell:
    """One thing to measure."""

    what: str
    """Name of the measurement."""

    name: str = ""
    """Name of the task that is measured, if one is."""

    base: str = ""
    """Base URL of the endpoint."""

    agents: int = 0
    """Agents that decide in every step."""

    steps: int = 1
    """Steps that are measured, after some that are not."""

    concurrency: int = 512
    """Maximum number of requests in flight."""


@dataclass
class Stretch:
    """What a stretch of work took."""

    cpu_s: float = 0.0
    """Processor time of this process, all threads together."""

    wall_s: float = 0.0
    """Time on the clock."""


@contextmanager
def measured() -> Iterator[Stretch]:
    """Measure what happens inside; garbage of what came before is collected first."""
    gc.collect()
    stretch = Stretch()
    cpu, wall = time.process_time(), time.perf_counter()
    yield stretch
    stretch.cpu_s, stretch.wall_s = time.process_time() - cpu, time.perf_counter() - wall


def python_ms() -> float:
    """Return what a plain loop takes this Python, in milliseconds.

    Builds of one version differ by almost a factor of two: 5.4 ms with profile-guided optimisation, as distributions
    and python.org build it, and 10 ms without, as pyenv does by default, on one machine.
    """
    return 1e3 * min(timeit.repeat(PLAIN_LOOP, PLAIN_CLASS, number=1, repeat=30))


def python_text() -> str:
    """Name this Python, and say how fast it runs."""
    return f"Python {platform.python_version()}, plain loop {python_ms():.1f} ms"


def open_files() -> int:
    """Count what this process holds open: files, pipes and sockets."""
    return len(os.listdir("/dev/fd"))


def kilobytes_each(make: Callable[[int], Any], number: int) -> float:
    """Make some things, and give what each adds to the memory that Python holds, in kB of 1,000 bytes."""
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
    """Do what the command line says, and write what was measured as the last line of the output."""
    cell = Cell(**json.loads(sys.argv[1]))
    reading = kinds[cell.what](cell)
    sys.stdout.flush()
    print("\n" + json.dumps(reading), flush=True)
