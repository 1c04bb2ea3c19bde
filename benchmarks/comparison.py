"""Measurements of the comparison and their order: the two sides take turns."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from cell import Cell
from imports import measure_imports
from sides import OURS, NotRun, Side, peer
from stub import FREE, Terms

CONCURRENCY = 512
"""Maximum number of requests in flight of this project; upstream has no bound."""


GROWTH_CONCURRENCY = 64
"""The same for the measurement of growth: fewer than the number of agents."""


class Setting(NamedTuple):
    """A row of the table: number of agents, latency of the endpoint, and number of steps of each side."""

    agents: int
    latency_ms: int
    our_steps: int
    peer_steps: int
    turn_steps: int
    """Number of sequential steps of upstream in the first round; 0: not run, as too slow."""

    is_held: bool = False
    """Whether goals refer to it; such rows are measured first."""


SETTINGS = (
    Setting(10, 0, 40, 5, 5),
    Setting(10, 50, 20, 5, 2),
    Setting(10, 500, 4, 2, 1),
    Setting(100, 0, 20, 2, 2, is_held=True),
    Setting(100, 50, 20, 2, 1, is_held=True),
    Setting(100, 500, 4, 2, 0, is_held=True),
    Setting(1000, 0, 4, 1, 0),
    Setting(1000, 50, 4, 1, 0),
    Setting(1000, 500, 3, 1, 0),
)
QUICK = tuple(setting._replace(turn_steps=0) for setting in SETTINGS if setting.is_held)
"""The rows of a short run."""

REFERENCE = (100, 0)
"""Agents and milliseconds at which the costs are compared."""


@dataclass
class Row:
    """Measurements of one side in one setting."""

    readings: list[dict[str, Any]] = field(default_factory=list)
    """One reading a round."""

    trouble: str = ""
    """Reason for missing readings."""

    def each(self, what: str) -> list[float]:
        """Return a figure of every round."""
        return [figure(reading)[what] for reading in self.readings]

    def middle(self, what: str) -> float | None:
        """Return the median of a figure; None if there is none."""
        return median(self.each(what)) if self.readings else None


def figure(reading: dict[str, Any]) -> dict[str, float]:
    """Compute the figures of the tables from a reading."""
    decisions, requests = reading["decisions"], reading["requests"]
    return {
        "us": reading["cpu_s"] / decisions * 1e6,
        "ms": reading["cpu_s"] / decisions * 1e3,
        "us_a_call": reading["cpu_s"] / requests * 1e6,
        "per_s": decisions / reading["wall_s"],
        "requests": requests / decisions,
        "failures": reading.get("failures", 0),
    }


class Comparison:
    """All measurements of one run of this program."""

    def __init__(self, rounds: int, settings: Sequence[Setting], minutes: float) -> None:
        """Plan the measurements.

        Args:
            rounds: Number of turns of each side.
            settings: The rows of the table.
            minutes: Time after which no measurement starts.
        """
        self.rounds = rounds
        self.settings = settings
        self.ends = time.monotonic() + 60 * minutes
        self.peer: Side | None = None
        self.trouble = ""
        self.rows = {(kind, s[:2]): Row() for kind in ("ours", "at once", "in turn") for s in settings}
        self.single: dict[str, Any] = {}

    def run(self) -> None:
        """Take all measurements, those with goals first, and record the failed ones."""
        try:
            self.peer = peer()
        except NotRun as error:
            self.trouble = str(error)
        replaying = Side("replay", OURS.python, "replay.py")
        held = [setting for setting in self.settings if setting.is_held]
        for number in range(self.rounds):
            for setting in held:
                self._compare(setting, number)
            self._add("calls", OURS, Cell("calls", agents=64, steps=30, concurrency=CONCURRENCY))
            self._add("log", replaying, Cell("log", agents=100, steps=50))
            self._add("social", replaying, Cell("social", agents=50, steps=10))
        self._look_closer()
        for number in range(self.rounds):
            for setting in self.settings:
                if not setting.is_held:
                    self._compare(setting, number)

    def _compare(self, setting: Setting, number: int) -> None:
        """Measure both sides in turn in one setting."""
        agents, latency_ms, our_steps, peer_steps, turn_steps, _ = setting
        jobs: list[tuple[str, Side | None, int, int]] = [("ours", OURS, our_steps, CONCURRENCY)]
        jobs.append(("at once", self.peer, peer_steps, CONCURRENCY))
        if number == 0:
            jobs.append(("in turn", self.peer, turn_steps, 1))
        for kind, side, steps, concurrency in jobs:
            row = self.rows[kind, setting[:2]]
            if side is None or not steps:
                row.trouble = self.trouble or "not run"
                continue
            cell = Cell("steps", agents=agents, steps=steps, concurrency=concurrency)
            try:
                row.readings.append(self._measure(side, cell, Terms(latency_ms)))
            except NotRun as error:
                row.trouble = str(error)

    def _measure(self, side: Side, cell: Cell, terms: Terms = FREE, limit_s: float = 120.0) -> dict[str, Any]:
        if time.monotonic() > self.ends:
            raise NotRun("no time left")
        told = f"{side.name}: {cell.what}, {cell.agents} agents, {terms.latency_ms:g} ms"
        if sys.stderr.isatty():
            print(f"  {told:60}", end="\r", file=sys.stderr, flush=True)
        return side.measure(cell, terms, limit_s)

    def _add(self, name: str, side: Side | None, cell: Cell, terms: Terms = FREE) -> None:
        """Take a measurement outside the table."""
        try:
            if side is None:
                raise NotRun(self.trouble or "not run")
            self.single.setdefault(name, []).append(self._measure(side, cell, terms))
        except NotRun as error:
            self.single.setdefault(f"{name}: not run", str(error))

    def _look_closer(self) -> None:
        """Measure once the figures that hardly vary: memory, growth, behaviour under limits, imports."""
        for name, side in (("ours", OURS), ("upstream", self.peer)):
            self._add(f"memory, {name}", side, Cell("memory", agents=5_000 if side is OURS else 500))
            steps, agents = (30, 100) if side is OURS else (8, 20)
            watched = Cell("growth", agents=agents, steps=steps, concurrency=GROWTH_CONCURRENCY)
            self._add(f"growth, {name}", side, watched, Terms(5))
            few = Cell("limited", agents=100, steps=4 if side is OURS else 2, concurrency=CONCURRENCY)  # 400 answers
            self._add(f"50 in flight, {name}", side, few, Terms(50, most_in_flight=50))
        few = Cell("limited", agents=100, steps=4, concurrency=CONCURRENCY)
        self._add("60 a second, ours", OURS, few, Terms(50, per_second=60))
        self.single["imports"] = measure_imports(self.peer, self.rounds)

    # -- reading

    def one(self, name: str) -> dict[str, Any] | None:
        """Return the first reading of a name; None if there is none."""
        readings = self.single.get(name)
        return readings[0] if readings else None

    def rate(self, name: str) -> float | None:
        """Return the decisions a second of processor time, the median of all rounds."""
        readings = self.single.get(name)
        return median(reading["decisions"] / reading["cpu_s"] for reading in readings) if readings else None
