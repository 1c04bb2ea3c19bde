"""One world or model with more and more inhabitants, as far as the time given lasts: a process of its own."""

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
"""Processor seconds that a repeat takes at least, unless that takes more than `MOST_STEPS`."""

MOST_STEPS = 60
"""Maximum number of steps of one repeat, apart from those that belong to one cycle."""

SLOW_S = 1.0
"""Processor seconds of a cycle from which on the first one is not left out as a warm-up."""

FEW = 10
"""Inhabitants of what is made and stepped once before anything is measured."""

LONG = 1_000_000
"""Steps, days or auctions that no run here comes to the end of."""

SETTINGS: dict[str, dict[str, Any]] = {
    "auction_arena": {"n_auctions": LONG},
    "market": {"horizon": LONG},
    "stock_agent": {"days": LONG},
    "three_worlds": {"horizon": LONG},
}
"""What makes models last; all else is as it is by default."""

CYCLES = {"stock_agent": 6, "three_worlds": 3}
"""Steps after which the kinds of steps come again, where it is more than one."""

PARTS = {"observe": "observe", "facts": "observe", "end_step": "end_step"}
"""Method of a world → part, where worlds are alone; all others act."""


@dataclass(frozen=True)
class Ascent:
    """What a process is told."""

    kind: Kind
    """A world alone, or a model with its rule twin."""

    name: str
    """Which one."""

    sizes: Sequence[int]
    """Numbers of inhabitants, ascending."""

    seconds: float
    """Processor seconds for all of it."""

    repeats: int
    """Stretches that are measured, for each number."""


@dataclass
class Rung:
    """What was measured with one number of inhabitants."""

    kind: Kind
    name: str
    agents: int
    steps_per_s: list[float] = field(default_factory=list[float])
    """Steps a second of processor time, of each repeat."""

    build_s: float = 0.0
    """Processor seconds to make it."""

    shares: dict[str, float] = field(default_factory=dict[str, float])
    """Part → share of the processor time of a further stretch."""

    trouble: str = ""
    """Why it was not run; empty if it was."""


class TooLong(Exception):
    """There is not enough time left."""


@dataclass
class Subject:
    """Something that can make steps."""

    step: Callable[[], None]
    """Makes a step."""

    cycle: int
    """Steps after which the kinds of steps come again."""

    watch: Callable[[], Shares]
    """Starts to watch its parts."""


def world_alone(name: str, n: int) -> Subject:
    """Make a world and those who drive it."""
    alone: Alone = WORLDS[name](n)

    def watch() -> Shares:
        shares = Shares()
        shares.watch(alone.world, lambda method: PARTS.get(method, "act"))
        return shares

    return Subject(alone.step, alone.cycle, watch)


def model_with_twin(name: str, n: int) -> Subject:
    """Make a model whose agents decide by rule."""
    model = find_model(name).load()(n_agents=n, llm="rule", rng=SEED, **SETTINGS.get(name, {}))
    watching: list[Shares] = []

    def step() -> None:
        if name == "auction_arena" and model.auction.is_over:
            model.open_auction()  # the model would, in its next step: too late for its world to be watched
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
    """Make one subject and let it step; give also the processor seconds of a cycle.

    Raises:
        TooLong: If what is left until `ends` does not suffice.
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
    """Make what is measured, with so many inhabitants."""
    return (world_alone if ascent.kind == "world" else model_with_twin)(ascent.name, n)


def shares_of(subject: Subject, steps: int) -> dict[str, float]:
    """Make steps and watch where their time goes."""
    shares = subject.watch()
    if steps > subject.cycle:
        run(subject, subject.cycle)  # watched tools are described anew, which takes long beside short steps
    gc.collect()
    shares.reset()
    for _ in range(steps):
        subject.step()
    return shares.read()


def run(subject: Subject, steps: int) -> float:
    """Make steps; give the processor seconds."""
    with measured() as stretch:
        for _ in range(steps):
            subject.step()
    return stretch.cpu_s


def climb(ascent: Ascent) -> Iterator[Rung]:
    """Measure with more and more inhabitants; say of those that there was no time for that they were not run."""
    run(made(ascent, FEW), 1)  # what a process does first, imports above all, is not measured
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
    """Estimate how many processor seconds a number of inhabitants takes, if time grows on as it last did.

    Args:
        n: The number.
        lasts: Each number so far, with the seconds to make it and those of a cycle.
        repeats: Stretches that will be measured.
    """
    if not lasts:
        return 0.0
    before, last = lasts[-2:] if len(lasts) > 1 else lasts * 2
    build_s, cycle_s = (
        last[column] * (n / last[0]) ** growth(last[0] / before[0], last[column], before[column]) for column in (1, 2)
    )
    return build_s + (repeats + (1 if cycle_s > SLOW_S else 2)) * cycle_s


def growth(times_as_many: float, last_s: float, before_s: float) -> float:
    """Return the power of the number with which time grows: from 1 to 2."""
    if times_as_many <= 1 or before_s <= 0 or last_s <= before_s:
        return 1.0
    return min(2.0, max(1.0, math.log(last_s / before_s, times_as_many)))


def main() -> None:
    """Write what is measured as lines of JSON, each as soon as it is there."""
    told: dict[str, Any] = json.loads(sys.argv[1])
    for rung in climb(Ascent(**told)):
        print(json.dumps(asdict(rung)), flush=True)


if __name__ == "__main__":
    main()
