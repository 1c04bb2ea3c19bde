"""Cost of our own code compared with upstream `mesa-llm`: the same task and the same local endpoint, in turn.

Agents pay into a pot; one decision takes this project one request, and upstream two (it plans, then acts). The two
systems take turns; each measurement runs in a fresh process against a fresh endpoint, itself a process. What a process
does first (load code, connect) is not measured. CPU is processor time of the asking process, over all threads; on a
busy machine, the minimum says more than the median. Upstream steps its agents one after another on Mesa 3.5, whatever
is set, so its parallel stepper is called directly. Ours writes its run log to a file meanwhile; upstream keeps none.

The run fails if a threshold is missed by more than half, or if a decision takes less than 30 times less processor time
than upstream's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Any, NamedTuple

from harness import OURS, NotRun, System, upstream
from measurement import Measurement, python_text
from mock_server import UNLIMITED, Behaviour
from thresholds import Threshold, figure_text, table

CONCURRENCY = 512
"""Maximum number of requests in flight of this project; upstream has no bound."""

GROWTH_CONCURRENCY = 64
"""The same for the measurement of growth: fewer than the number of agents."""


class Setting(NamedTuple):
    """A row of the table: number of agents, latency of the endpoint, and number of steps of each system."""

    agents: int
    latency_ms: int
    our_steps: int
    upstream_steps: int
    turn_steps: int
    """Number of sequential steps of upstream in the first round; 0: not run, as too slow."""

    has_threshold: bool = False
    """Whether thresholds refer to it; such rows are measured first."""


SETTINGS = (
    Setting(10, 0, 40, 5, 5),
    Setting(10, 50, 20, 5, 2),
    Setting(10, 500, 4, 2, 1),
    Setting(100, 0, 20, 2, 2, has_threshold=True),
    Setting(100, 50, 20, 2, 1, has_threshold=True),
    Setting(100, 500, 4, 2, 0, has_threshold=True),
    Setting(1000, 0, 4, 1, 0),
    Setting(1000, 50, 4, 1, 0),
    Setting(1000, 500, 3, 1, 0),
)
QUICK = tuple(setting._replace(turn_steps=0) for setting in SETTINGS if setting.has_threshold)
"""The rows of a short run."""

REFERENCE = (100, 0)
"""Agents and milliseconds at which the costs are compared."""

HEAVY = ("litellm", "solara", "matplotlib", "xllamacpp")
"""Packages that an import must not load."""

START = "pass"
MESA = "import mesa"
OWN = "import mesa_llm"
USED = "from mesa_llm import LLMAgent, LLMModel"
UPSTREAM = "from mesa_llm.llm_agent import LLMAgent"


@dataclass
class Row:
    """Measurements of one system in one setting."""

    readings: list[dict[str, Any]] = field(default_factory=list)
    """One reading a round."""

    reason: str = ""
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
            rounds: Number of turns of each system.
            settings: The rows of the table.
            minutes: Time after which no measurement starts.
        """
        self.rounds = rounds
        self.settings = settings
        self.ends = time.monotonic() + 60 * minutes
        self.upstream: System | None = None
        self.reason = ""
        self.rows = {(kind, s[:2]): Row() for kind in ("ours", "at once", "in turn") for s in settings}
        self.single: dict[str, Any] = {}

    def run(self) -> None:
        """Take all measurements, those with thresholds first, and record the failed ones."""
        try:
            self.upstream = upstream()
        except NotRun as error:
            self.reason = str(error)
        replaying = System("replay", OURS.python, "replay.py")
        results = [setting for setting in self.settings if setting.has_threshold]
        for number in range(self.rounds):
            for setting in results:
                self._compare(setting, number)
            self._add("calls", OURS, Measurement("calls", agents=64, steps=30, concurrency=CONCURRENCY))
            self._add("log", replaying, Measurement("log", agents=100, steps=50))
            self._add("social", replaying, Measurement("social", agents=50, steps=10))
        self._look_closer()
        for number in range(self.rounds):
            for setting in self.settings:
                if not setting.has_threshold:
                    self._compare(setting, number)

    def _compare(self, setting: Setting, number: int) -> None:
        """Measure both systems in turn in one setting."""
        agents, latency_ms, our_steps, upstream_steps, turn_steps, _ = setting
        jobs: list[tuple[str, System | None, int, int]] = [("ours", OURS, our_steps, CONCURRENCY)]
        jobs.append(("at once", self.upstream, upstream_steps, CONCURRENCY))
        if number == 0:
            jobs.append(("in turn", self.upstream, turn_steps, 1))
        for kind, system, steps, concurrency in jobs:
            row = self.rows[kind, setting[:2]]
            if system is None or not steps:
                row.reason = self.reason or "not run"
                continue
            measurement = Measurement("steps", agents=agents, steps=steps, concurrency=concurrency)
            try:
                row.readings.append(self._measure(system, measurement, Behaviour(latency_ms)))
            except NotRun as error:
                row.reason = str(error)

    def _measure(
        self, system: System, measurement: Measurement, behaviour: Behaviour = UNLIMITED, limit_s: float = 120.0
    ) -> dict[str, Any]:
        if time.monotonic() > self.ends:
            raise NotRun("no time left")
        progress = f"{system.name}: {measurement.kind}, {measurement.agents} agents, {behaviour.latency_ms:g} ms"
        if sys.stderr.isatty():
            print(f"  {progress:60}", end="\r", file=sys.stderr, flush=True)
        return system.measure(measurement, behaviour, limit_s)

    def _add(
        self, name: str, system: System | None, measurement: Measurement, behaviour: Behaviour = UNLIMITED
    ) -> None:
        """Take a measurement outside the table."""
        try:
            if system is None:
                raise NotRun(self.reason or "not run")
            self.single.setdefault(name, []).append(self._measure(system, measurement, behaviour))
        except NotRun as error:
            self.single.setdefault(f"{name}: not run", str(error))

    def _look_closer(self) -> None:
        """Measure once the figures that hardly vary: memory, growth, behaviour under limits, imports."""
        for name, system in (("ours", OURS), ("upstream", self.upstream)):
            self._add(f"memory, {name}", system, Measurement("memory", agents=5_000 if system is OURS else 500))
            steps, agents = (30, 100) if system is OURS else (8, 20)
            watched = Measurement("growth", agents=agents, steps=steps, concurrency=GROWTH_CONCURRENCY)
            self._add(f"growth, {name}", system, watched, Behaviour(5))
            few = Measurement(
                "limited", agents=100, steps=4 if system is OURS else 2, concurrency=CONCURRENCY
            )  # 400 answers
            self._add(f"50 in flight, {name}", system, few, Behaviour(50, max_in_flight=50))
        few = Measurement("limited", agents=100, steps=4, concurrency=CONCURRENCY)
        self._add("60 a second, ours", OURS, few, Behaviour(50, per_second=60))
        self.single["imports"] = measure_imports(self.upstream, self.rounds)

    # -- reading

    def one(self, name: str) -> dict[str, Any] | None:
        """Return the first reading of a name; None if there is none."""
        readings = self.single.get(name)
        return readings[0] if readings else None

    def rate(self, name: str) -> float | None:
        """Return the decisions a second of processor time, the median of all rounds."""
        readings = self.single.get(name)
        return median(reading["decisions"] / reading["cpu_s"] for reading in readings) if readings else None


def measure_imports(upstream: System | None, rounds: int) -> dict[str, Any]:
    """Import in fresh processes, one after the other, several times.

    Returns:
        Statement → median and minimum of processor seconds, without those of starting Python; and what heavy
        packages this project loaded.
    """
    jobs = {START: OURS, MESA: OURS, OWN: OURS, USED: OURS} | ({UPSTREAM: upstream} if upstream is not None else {})
    found: dict[str, list[float]] = {statement: [] for statement in jobs}
    heavy: set[str] = set()
    for number in range(rounds + 1):  # the first one compiles
        for statement, system in jobs.items():
            try:
                reading = system.cpu_s(statement)
            except NotRun:
                continue
            if number:
                found[statement].append(reading["cpu_s"])
            if system is OURS:
                heavy.update(name for name in HEAVY if name in reading["modules"])
    start = {kind.__name__: kind(found[START]) for kind in (median, min)}
    figures: dict[str, Any] = {
        statement: {kind.__name__: max(0.0, kind(times) - start[kind.__name__]) for kind in (median, min)}
        for statement, times in found.items()
        if times and statement != START
    }
    return {"seconds": figures, "heavy": sorted(heavy)}


# -- thresholds


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
    systems = [comparison.rows.get((kind, setting)) for kind in ("at once", "ours")]
    theirs, ours = (row.middle(what) if row is not None else None for row in systems)
    return theirs / ours if theirs and ours else None


def thresholds(comparison: Comparison) -> list[Threshold]:
    """Compare the measurements with the thresholds."""
    ours = comparison.rows["ours", REFERENCE]
    cost, speed = ratio(comparison, "us", REFERENCE), ratio(comparison, "per_s", (100, 50))
    requests = [count for (kind, _), row in comparison.rows.items() if kind == "ours" for count in row.each("requests")]
    calls = comparison.single.get("calls", [])
    a_call = median(reading["cpu_s"] / reading["calls"] * 1e6 for reading in calls) if calls else None
    weight = comparison.one("memory, ours")
    return [
        Threshold("requests a decision", max(requests, default=None), 1),
        Threshold("CPU a decision, in all, 100 agents × 0 ms", ours.middle("us"), 300, "µs"),
        Threshold("CPU a call, the client alone, 64 at once", a_call, 200, "µs"),
        Threshold("less CPU a decision than upstream", cost, 50, "×", True, failing_share=30 / 50),
        Threshold("less CPU a call than upstream", ratio(comparison, "us_a_call", REFERENCE), 25, "×", True),
        Threshold("more agents a second than upstream, 100 × 50 ms", 1 / speed if speed else None, 20, "×", True),
        Threshold("of the latency ideal, 100 × 500 ms", ideal_share(comparison, 100, 500), 90, "%", True),
        Threshold("of the latency ideal, 100 × 50 ms", ideal_share(comparison, 100, 50), 70, "%", True),
        Threshold("memory of a new agent", weight["kilobytes"] if weight else None, 8, "kB"),
        *growth_thresholds(comparison.one("growth, ours")),
        *limit_thresholds(comparison),
        Threshold("replay, the log alone, a CPU second", comparison.rate("log"), 20_000, "decisions", True),
        Threshold("replay, all of `social`, a CPU second", comparison.rate("social"), 2_000, "decisions", True),
        Threshold("run log of `social`, a decision", log_size(comparison), 1.5, "kB"),
        *import_thresholds(comparison.single["imports"]),
    ]


def log_size(comparison: Comparison) -> float | None:
    """Return the kilobytes of a decision in the run log; None if not run."""
    reading = comparison.one("social")
    return reading["log_bytes"] / reading["decisions"] / 1000 if reading else None


def growth_thresholds(reading: dict[str, Any] | None) -> Iterator[Threshold]:
    """Compare figures that could grow over 30 steps with their bound, or with their value at full memories."""
    rows = reading["rows"] if reading else []
    in_flight = max((row["in_flight"] for row in rows), default=None)
    yield Threshold(f"requests in flight, {GROWTH_CONCURRENCY} allowed", in_flight, GROWTH_CONCURRENCY)
    for name, words in {"files": "open files", "prompt": "prompt length"}.items():
        grown = max(row[name] for row in rows[25:]) / max(row[name] for row in rows[20:25]) if rows else None
        yield Threshold(f"{words}, steps 26–30 relative to 21–25", grown, 1.05, "×")


def limit_thresholds(comparison: Comparison) -> Iterator[Threshold]:
    """Compare the number of requests that a rate limit refuses with the threshold."""
    for name in ("50 in flight", "60 a second"):
        reading = comparison.one(f"{name}, ours")
        spent = reading["requests"] / reading["answers"] if reading else None
        yield Threshold(f"requests an answer, where the endpoint grants {name}", spent, 1.2)


def import_thresholds(reading: dict[str, Any]) -> list[Threshold]:
    """Compare the readings with the thresholds."""
    seconds = {statement: figures["median"] for statement, figures in reading["seconds"].items()}
    wanted = [
        Threshold("`import mesa_llm`, CPU relative to `import mesa`", seconds[OWN] / seconds[MESA], 1.1, "×"),
        Threshold(f"of {', '.join(HEAVY)}, loaded by the imports", len(reading["heavy"]), 0, "packages"),
    ]
    ready = seconds[UPSTREAM] / seconds[USED] if UPSTREAM in seconds else None
    return [*wanted, Threshold("import of LLMAgent and LLMModel, less CPU than upstream's agent", ready, 3, "×", True)]


# -- tables


def figures(row: Row, what: str, best: Any) -> str:
    """Format the median of a figure and its best in parentheses, or the reason for a missing one."""
    values = row.each(what)
    return f"{figure_text(median(values))} ({figure_text(best(values))})" if values else row.reason or "not run"


def settings_table(comparison: Comparison) -> str:
    """Write the table of both systems."""
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
        speeds = [figures(row, *shape) for row, cost in costs for shape in (("per_s", max), (cost, min))]
        cells = [f"{agents:,}", str(latency_ms), *speeds[:4], "–" if calls is None else figure_text(calls), *speeds[4:]]
        rows.append(cells + ["–" if times is None else figure_text(times) for times in less])
    return table(head, rows)


def single_table(comparison: Comparison) -> str:
    """Write the table of figures measured once."""
    rows: list[tuple[str, str, str]] = []
    for what, describe in SINGLE_FIGURES.items():
        both = [comparison.one(f"{what}, {side}") for side in ("ours", "upstream")]
        not_run = [comparison.single.get(f"{what}, {side}: not run", "not run") for side in ("ours", "upstream")]
        texts = [
            reason if reading is None else describe(reading) for reading, reason in zip(both, not_run, strict=True)
        ]
        rows.append((what, texts[0], texts[1]))
    seconds = comparison.single["imports"]["seconds"]
    imports = [
        (statement, figure_text(found["median"]), figure_text(found["min"])) for statement, found in seconds.items()
    ]
    return table(["", "ours", "upstream"], rows) + "\n\n" + table(["import", "CPU s, median", "minimum"], imports)


def growth_text(reading: dict[str, Any]) -> str:
    """Format the first and the last step of a measured run."""
    first, last = reading["rows"][0], reading["rows"][-1]
    bytes_each = f"{figure_text(round(first['prompt']))} → {figure_text(round(last['prompt']))}"
    return f"{len(reading['rows'])} steps: files {first['files']} → {last['files']}, bytes a request {bytes_each}"


SINGLE_FIGURES: dict[str, Callable[[dict[str, Any]], str]] = {
    "memory": lambda reading: f"{figure_text(reading['kilobytes'])} kB a new agent",
    "growth": growth_text,
    "50 in flight": lambda reading: f"{reading['requests']:,} requests for {reading['answers']:,} answers",
    "60 a second": lambda reading: f"{reading['requests']:,} requests for {reading['answers']:,} answers",
}
"""Figure measured once → function that describes its reading."""


def as_json(comparison: Comparison, results: list[Threshold]) -> str:
    """Return everything as JSON."""
    rows = [
        {"system": kind, "agents": place[0], "latency_ms": place[1], **asdict(row)}
        for (kind, place), row in comparison.rows.items()
    ]
    threshold_rows = [{**asdict(threshold), "verdict": threshold.verdict} for threshold in results]
    return json.dumps({"rows": rows, "single": comparison.single, "thresholds": threshold_rows}, indent=1)


def load() -> str:
    """Describe the load of the machine and the speed of this Python."""
    busy = f"load {os.getloadavg()[0]:.1f} on " if hasattr(os, "getloadavg") else ""  # Windows has none
    return f"{busy}{os.cpu_count()} cores, {python_text()}"


def main() -> int:
    """Measure and print; the exit status is 1 if a threshold is missed by far."""
    parser = argparse.ArgumentParser(description="Compare what our own code costs with upstream mesa-llm.")
    parser.add_argument("--rounds", type=int, default=3, help="how often the systems take turns (default 3)")
    parser.add_argument("--quick", action="store_true", help="one round of few settings, in two minutes")
    parser.add_argument("--minutes", type=float, default=13, help="begin nothing after this time (default 13)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead of tables")
    options = parser.parse_args()
    begun = time.monotonic()
    rounds = 1 if options.quick else options.rounds
    comparison = Comparison(rounds, QUICK if options.quick else SETTINGS, options.minutes)
    comparison.run()
    results = thresholds(comparison)
    if options.json:
        print(as_json(comparison, results))
    else:
        print(f"{datetime.now(UTC).date()}, {rounds} rounds, {(time.monotonic() - begun) / 60:.1f} minutes, {load()}.")
        print("Medians; in parentheses the best round. CPU and calls are per decision.\n")
        print(settings_table(comparison), single_table(comparison), sep="\n\n")
        print("\n" + table(["threshold", "wanted", "measured", ""], [threshold.row for threshold in results]))
    is_measured = bool(comparison.rows["ours", REFERENCE].readings)
    return int(not is_measured or any(threshold.verdict == "FAILED" for threshold in results))


if __name__ == "__main__":
    sys.exit(main())
