"""Processor time of a decision by rule, beside the same model in plain Mesa.

Each model runs in plain Mesa, with `light=True`, and recorded, in turn and in one process; that the results are the
same is checked. Times are medians over the rounds, in processor time of this process; making a model is left out.

A threshold that is missed by more than half fails the run. `--calls` counts function calls, in Python and in C, in
place of time: they do not depend on the load of the machine, and nothing fails.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from cProfile import Profile
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import plain_models as plain
from thresholds import Threshold, table

from mesa_llm import LLMModel
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from mesa_llm_models.classics.schelling.model import SchellingModel
from mesa_llm_models.classics.wolf_sheep.model import MESA_RATES, MeadowModel


@dataclass(frozen=True)
class Pair:
    """A model in both forms."""

    ours: Callable[..., Any]
    """Makes the model of this library."""

    bare: Callable[..., Any]
    """Makes the same model in plain Mesa."""

    light_times: float
    """Goal: most times the processor time of plain Mesa, without a log."""

    steps: int = 60
    """Steps of a run."""

    runs: int = 1
    """Runs, of one seed each, that are measured together."""


PAIRS = {
    "boltzmann": Pair(WealthModel, plain.PlainWealth, 5),
    "schelling": Pair(SchellingModel, plain.PlainSchelling, 3, runs=4),
    "dilemma": Pair(DilemmaModel, plain.PlainDilemma, 3, runs=2),
    "wolf_sheep": Pair(partial(MeadowModel, size=8, n_sheep=20, n_wolves=6, **MESA_RATES), plain.PlainMeadow, 5),
    "beer chain": Pair(plain.ThinkingChain, plain.PlainChain, 5, steps=36, runs=2),
}
"""Name → model."""

RECORDED_TIMES = 6
"""Goal: most times the processor time of plain Mesa, recorded."""

COSTS = ("calls", "tokens", "dollars", "failures", "seconds")
"""Columns that plain models do not collect."""


def run(
    make: Callable[..., Any], pair: Pair, profile: Profile | None = None, **options: Any
) -> tuple[float, list[Any]]:
    """Return the processor time of the steps of one or several runs, or the calls in them, and the models."""
    models = [make(rng=seed, **options) for seed in range(1, 1 + pair.runs)]
    gc.collect()
    if profile is not None:
        profile.enable()
    begun = time.process_time()
    for model in models:
        if isinstance(model, LLMModel):
            model.run_for(pair.steps)
        while model.running and model.time < pair.steps:  # in plain Mesa, which goes on when a run is over
            model.step()
    used_s = time.process_time() - begun
    if profile is None:
        return used_s, models
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats()), models


def collected(model: Any) -> Any:
    """Return what a model's data collector holds, besides costs."""
    collector = model.datacollector
    columns = {name: values for name, values in collector.model_vars.items() if name not in COSTS}
    reports = [[list(row) for row in rows] for rows in vars(collector)["_agent_records"].values()]
    return columns, reports


def measured(pair: Pair, rounds: int, *, counts_calls: bool = False) -> tuple[float, float, float]:
    """Return the microseconds of a decision in plain Mesa, light, and recorded; or its function calls.

    Raises:
        SystemExit: If the results differ.
    """
    ways: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (pair.bare, {}),
        (pair.ours, {"light": True}),
        (pair.ours, {}),
    ]
    used_by_way: list[list[float]] = [[], [], []]
    n_decisions = 0
    for _ in range(1 + rounds):
        results: list[Any] = []
        for index, (make, options) in enumerate(ways):
            used, models = run(make, pair, Profile() if counts_calls else None, **options)
            used_by_way[index].append(used)
            results.append([collected(model) for model in models])
            n_decisions = sum(model.n_decisions for model in models) if not index else n_decisions
            for model in models if index else ():
                model.close()
        if results[0] != results[1] or results[0] != results[2]:
            raise SystemExit(f"{pair.ours.__name__}: the results differ from those of plain Mesa")
    unit = 1 if counts_calls else 1e6
    bare, light, recorded = (unit * median(each[1:]) / n_decisions for each in used_by_way)
    return bare, light, recorded


def main() -> int:
    """Measure and print; the exit status is 1 if a threshold is missed by more than half."""
    parser = argparse.ArgumentParser(description="Measure what a decision by rule costs beside plain Mesa.")
    parser.add_argument("models", nargs="*", help=f"models to measure, of: {', '.join(PAIRS)}; by default all")
    parser.add_argument("--rounds", type=int, default=9, help="times that each is measured; medians are printed")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--calls", action="store_true", help="count function calls in place of time")
    arguments = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    thresholds: list[Threshold] = []
    for name in arguments.models or PAIRS:
        pair = PAIRS[name]
        rounds = 1 if arguments.calls else arguments.rounds
        bare, light, recorded = measured(pair, rounds, counts_calls=arguments.calls)
        thresholds += [
            Threshold(f"{name}, light", light / bare, pair.light_times, "×"),
            Threshold(f"{name}, recorded", recorded / bare, RECORDED_TIMES, "×"),
        ]
        times = (f"{light / bare:.1f} ×", f"{recorded / bare:.1f} ×")
        rows.append((name, *(f"{one:.1f}" for one in (bare, light, recorded)), *times))
    print(f"{'Function calls' if arguments.calls else 'Processor time, in µs,'} of a decision by rule:\n")
    print(table(("model", "plain Mesa", "light", "recorded", "light", "recorded"), rows), end="\n\n")
    if arguments.calls:
        return 0
    print(table(("threshold", "wanted", "measured", ""), [threshold.row for threshold in thresholds]))
    if arguments.json:
        print(json.dumps({threshold.name: threshold.measured for threshold in thresholds}))
    return int(any(threshold.verdict == "FAILED" for threshold in thresholds))


if __name__ == "__main__":
    sys.exit(main())
