"""One world or model with more and more inhabitants until its time is up, in its own process."""

from __future__ import annotations

import gc
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from alone import SEED, WORLDS, Alone
from cell import measured
from shares import Shares

from mesa_llm.model.registry import find_model

Kind = Literal["world", "model"]

STRETCH_S = 0.2
"""Minimum processor seconds of a repeat, unless that needs more than `MOST_STEPS`."""

MOST_STEPS = 60
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
"""Method of a world alone → part; all other methods count as actions."""


@dataclass(frozen=True)
class Ascent:
    """Instructions for a process."""

    kind: Kind
    """A world alone, or a model with its rule twin."""

    name: str
    """Name of the world or model."""

    sizes: Sequence[int]
    """Numbers of inhabitants, ascending."""

    seconds: float
    """Processor seconds for all sizes together."""

    repeats: int
    """Number of measured stretches for each size."""


@dataclass
class Rung:
    """Measurements with one number of inhabitants."""

    kind: Kind
    name: str
    agents: int
    steps_per_s: list[float] = field(default_factory=list[float])
    """Steps a second of processor time, of each repeat."""

    build_s: float = 0.0
    """Processor seconds to build it."""

    shares: dict[str, float] = field(default_factory=dict[str, float])
    """Part → share of the processor time of a further stretch."""

    trouble: str = ""
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

    watch: Callable[[], Shares]
    """Function that starts to time its parts."""


def world_alone(name: str, n: int) -> Subject:
    """Build a world alone with its inhabitants."""
    alone: Alone = WORLDS[name](n)

    def watch() -> Shares:
        shares = Shares()
        shares.watch(alone.world, lambda method: PARTS.get(method, "act"))
        return shares

    return Subject(alone.step, alone.cycle, watch)


def model_with_twin(name: str, n: int) -> Subject:
    """Build a model whose agents decide by rule."""
    model = find_model(name).load()(n_agents=n, llm="rule", rng=SEED, **SETTINGS.get(name, {}))
    watching: list[Shares] = []

    def step() -> None:
        if name == "auction_arena" and model.auction.is_over:
            model.open_auction()  # otherwise the next step would do so, too late to time the world
        for shares in watching:
            for world in model.worlds:
                shares.watch(world, lambda _: "world")
        model.step()

    def watch() -> Shares:
        shares = Shares(closed=("collector",))
        shares.watch_method("engine", model.engine, "gather")
        shares.watch_method("collector", model.datacollector, "collect")
        for agent in model.agents:
            shares.watch_method("twin", agent, "rule")
        watching.append(shares)
        return shares

    return Subject(step, CYCLES.get(name, 1), watch)


def measure(ascent: Ascent, n: int, ends: float) -> tuple[Rung, float]:
    """Build and step one subject; return its measurements and the processor seconds of a cycle.

    Raises:
        TooLong: If the time left until `ends` is too short.
    """
    rung = Rung(ascent.kind, ascent.name, n)
    with measured() as stretch:
        subject = made(ascent, n)
    rung.build_s = stretch.cpu_s
    first = run(subject, subject.cycle)
    is_slow = first > SLOW_S
    if time.process_time() + (ascent.repeats + 1 - is_slow) * first > ends:
        raise TooLong
    cycles = max(1, min(round(STRETCH_S / first), MOST_STEPS // subject.cycle))
    times = [first] if is_slow else []
    times += [run(subject, cycles * subject.cycle) for _ in range(ascent.repeats - is_slow)]
    rung.steps_per_s = [cycles * subject.cycle / seconds for seconds in times]
    rung.shares = shares_of(subject, cycles * subject.cycle)
    return rung, max(first, min(times) / cycles)


def made(ascent: Ascent, n: int) -> Subject:
    """Build the subject with `n` inhabitants."""
    return (world_alone if ascent.kind == "world" else model_with_twin)(ascent.name, n)


def shares_of(subject: Subject, steps: int) -> dict[str, float]:
    """Run steps, and return the share of each part of their time."""
    shares = subject.watch()
    if steps > subject.cycle:
        run(subject, subject.cycle)  # timed tools get new descriptions, which take long compared with short steps
    gc.collect()
    shares.reset()
    for _ in range(steps):
        subject.step()
    return shares.read()


def run(subject: Subject, steps: int) -> float:
    """Run steps, and return the processor seconds."""
    with measured() as stretch:
        for _ in range(steps):
            subject.step()
    return stretch.cpu_s


def climb(ascent: Ascent) -> Iterator[Rung]:
    """Measure with more and more inhabitants, and mark sizes without enough time as not run."""
    run(made(ascent, FEW), 1)  # warm-up, above all for imports
    ends = time.process_time() + ascent.seconds
    lasts: list[tuple[int, float, float]] = []
    is_over = False
    for n in ascent.sizes:
        if not is_over and foreseen(n, lasts, ascent.repeats) < ends - time.process_time():
            try:
                rung, cycle_s = measure(ascent, n, ends)
            except TooLong:
                is_over = True
            else:
                lasts.append((n, rung.build_s, cycle_s))
                yield rung
                continue
        is_over = True
        yield Rung(ascent.kind, ascent.name, n, trouble=f"not run: would take > {ascent.seconds:g} s")


def foreseen(n: int, lasts: list[tuple[int, float, float]], repeats: int) -> float:
    """Estimate the processor seconds of a number of inhabitants from the growth so far.

    Args:
        n: The number.
        lasts: Each number so far, with the seconds to make it and those of a cycle.
        repeats: Number of stretches to measure.
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
    told: dict[str, Any] = json.loads(sys.argv[1])
    for rung in climb(Ascent(**told)):
        print(json.dumps(asdict(rung)), flush=True)


if __name__ == "__main__":
    main()
