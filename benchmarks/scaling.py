"""Scaling of one world or model: more and more inhabitants until its time is up, in a process of its own."""

from __future__ import annotations

import gc
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from cpu_breakdown import CpuBreakdown
from measurement import measured
from world_workloads import SEED, WORLDS, WorldWorkload

from mesa_llm.registry import find_model

Kind = Literal["world", "model"]

REPEAT_S = 0.2
"""Minimum processor seconds of a repeat, unless that needs more than `MAX_STEPS`."""

MAX_STEPS = 60
"""Maximum number of steps of one repeat, unless one cycle is longer."""

SLOW_S = 1.0
"""Processor seconds of a cycle above which the first one is not left out as a warm-up."""

FEW = 10
"""Number of inhabitants of the warm-up before any measurement."""

LONG = 1_000_000
"""Number of steps, days or auctions that no run here reaches."""

SETTINGS: dict[str, dict[str, Any]] = {
    "auction_arena": {"n_auctions": LONG},
    "market": {"horizon": LONG},
    "stock_agent": {"days": LONG},
    "three_worlds": {"horizon": LONG},
}
"""Model → parameters that keep it running; all others are the defaults."""

CYCLES = {"stock_agent": 6, "three_worlds": 3}
"""Model → number of steps after which the kinds of steps repeat, if more than one."""

PARTS = {"observe": "observe", "facts": "observe", "end_step": "end_step"}
"""Method of a world by itself → part; all other methods count as actions."""


@dataclass(frozen=True)
class Plan:
    """Instructions for a process."""

    kind: Kind
    """A world by itself, or a model with its rule twin."""

    name: str
    """Name of the world or model."""

    sizes: Sequence[int]
    """Numbers of inhabitants, ascending."""

    seconds: float
    """Processor seconds for all sizes together."""

    repeats: int
    """Number of repeats for each size."""


@dataclass
class ScalePoint:
    """Measurements with one number of inhabitants."""

    kind: Kind
    name: str
    agents: int
    steps_per_s: list[float] = field(default_factory=list[float])
    """Steps a second of processor time, of each repeat."""

    build_s: float = 0.0
    """Processor seconds to build it."""

    breakdown: dict[str, float] = field(default_factory=dict[str, float])
    """Part → share of the processor time of a further repeat."""

    reason: str = ""
    """Reason why it was not run; empty if it was."""


class TooLong(Exception):
    """There is not enough time left."""


@dataclass
class Subject:
    """A world or model under measurement."""

    step: Callable[[], None]
    """Function that runs a step."""

    cycle: int
    """Steps after which the kinds of steps come again."""

    watch: Callable[[], CpuBreakdown]
    """Function that starts to time its parts."""


def world_subject(name: str, n: int) -> Subject:
    """Build a world with its inhabitants."""
    workload: WorldWorkload = WORLDS[name](n)

    def watch() -> CpuBreakdown:
        breakdown = CpuBreakdown()
        breakdown.watch(workload.world, lambda method: PARTS.get(method, "act"))
        return breakdown

    return Subject(workload.step, workload.cycle, watch)


def model_subject(name: str, n: int) -> Subject:
    """Build a model whose agents decide by rule."""
    model = find_model(name).load()(n_agents=n, llm="rule", rng=SEED, **SETTINGS.get(name, {}))
    watching: list[CpuBreakdown] = []

    def step() -> None:
        if name == "auction_arena" and model.auction.is_over:
            model.open_auction()  # otherwise the next step would do so, too late to time the world
        for breakdown in watching:
            for world in model.worlds:
                breakdown.watch(world, lambda _: "world")
        model.step()

    def watch() -> CpuBreakdown:
        breakdown = CpuBreakdown(closed=("collector",))
        breakdown.watch_method("engine", model, "_gather")
        breakdown.watch_method("collector", model.datacollector, "collect")
        for agent in model.agents:
            breakdown.watch_method("twin", agent, "rule")
        watching.append(breakdown)
        return breakdown

    return Subject(step, CYCLES.get(name, 1), watch)


def measure(plan: Plan, n: int, ends: float) -> tuple[ScalePoint, float]:
    """Build and step one subject; return its measurements and the processor seconds of a cycle.

    Raises:
        TooLong: If the time left until `ends` is too short.
    """
    point = ScalePoint(plan.kind, plan.name, n)
    with measured() as timing:
        subject = made(plan, n)
    point.build_s = timing.cpu_s
    first = run(subject, subject.cycle)
    is_slow = first > SLOW_S
    if time.process_time() + (plan.repeats + 1 - is_slow) * first > ends:
        raise TooLong
    cycles = max(1, min(round(REPEAT_S / first), MAX_STEPS // subject.cycle))
    times = [first] if is_slow else []
    times += [run(subject, cycles * subject.cycle) for _ in range(plan.repeats - is_slow)]
    point.steps_per_s = [cycles * subject.cycle / seconds for seconds in times]
    point.breakdown = breakdown_of(subject, cycles * subject.cycle)
    return point, max(first, min(times) / cycles)


def made(plan: Plan, n: int) -> Subject:
    """Build the subject with `n` inhabitants."""
    return (world_subject if plan.kind == "world" else model_subject)(plan.name, n)


def breakdown_of(subject: Subject, steps: int) -> dict[str, float]:
    """Run steps, and return the share of each part of their time."""
    breakdown = subject.watch()
    if steps > subject.cycle:
        run(subject, subject.cycle)  # timed tools get new descriptions, which take long compared with short steps
    gc.collect()
    breakdown.reset()
    for _ in range(steps):
        subject.step()
    return breakdown.read()


def run(subject: Subject, steps: int) -> float:
    """Run steps, and return the processor seconds."""
    with measured() as timing:
        for _ in range(steps):
            subject.step()
    return timing.cpu_s


def scale(plan: Plan) -> Iterator[ScalePoint]:
    """Measure with more and more inhabitants, and mark sizes without enough time as not run."""
    run(made(plan, FEW), 1)  # warm-up, above all for imports
    ends = time.process_time() + plan.seconds
    lasts: list[tuple[int, float, float]] = []
    is_over = False
    for n in plan.sizes:
        if not is_over and foreseen(n, lasts, plan.repeats) < ends - time.process_time():
            try:
                point, cycle_s = measure(plan, n, ends)
            except TooLong:
                is_over = True
            else:
                lasts.append((n, point.build_s, cycle_s))
                yield point
                continue
        is_over = True
        yield ScalePoint(plan.kind, plan.name, n, reason=f"not run: would take > {plan.seconds:g} s")


def foreseen(n: int, lasts: list[tuple[int, float, float]], repeats: int) -> float:
    """Estimate the processor seconds of a number of inhabitants from the growth so far.

    Args:
        n: The number.
        lasts: Each number so far, with the seconds to make it and those of a cycle.
        repeats: Number of repeats to measure.
    """
    if not lasts:
        return 0.0
    before, last = lasts[-2:] if len(lasts) > 1 else lasts * 2
    build_s, cycle_s = (
        last[column] * (n / last[0]) ** growth(last[0] / before[0], last[column], before[column]) for column in (1, 2)
    )
    return build_s + (repeats + (1 if cycle_s > SLOW_S else 2)) * cycle_s


def growth(times_as_many: float, last_s: float, before_s: float) -> float:
    """Return the exponent with which time grows with the number, from 1 to 2."""
    if times_as_many <= 1 or before_s <= 0 or last_s <= before_s:
        return 1.0
    return min(2.0, max(1.0, math.log(last_s / before_s, times_as_many)))


def main() -> None:
    """Print each measurement as a line of JSON as soon as it is taken."""
    plan: dict[str, Any] = json.loads(sys.argv[1])
    for point in scale(Plan(**plan)):
        print(json.dumps(asdict(point)), flush=True)


if __name__ == "__main__":
    main()
