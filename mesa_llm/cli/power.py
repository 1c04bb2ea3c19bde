"""`mesa-llm power`: how many runs, calls and dollars a comparison needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from mesa_llm.cli.arguments import designs_in, llms_in
from mesa_llm.cli.command import command, model_named, say
from mesa_llm.cli.options import (
    AsJson,
    Designs,
    FirstSeed,
    Llm,
    Model,
    On,
    Out,
    Parameters,
    SharedRunFlags,
    Steps,
    Vary,
    Workers,
)
from mesa_llm.cli.sweep import values_of
from mesa_llm.experiments.runs.power import N_SEEDS, WANTED, power


@command("power")
def plan_runs(
    model: Model,
    fixed: Parameters,
    options: SharedRunFlags,
    measure: Annotated[str, typer.Option(help="Result that is compared, by its value in the last step.")],
    smallest_effect: Annotated[
        float, typer.Option(help="Smallest difference that would matter, in the unit of the measure.")
    ],
    wanted: Annotated[float, typer.Option(help="Probability to find it.")] = WANTED,
    vary: Vary = None,
    design: Designs = None,
    llm: Llm = "rule",
    seeds: Annotated[int, typer.Option(min=4, help="Number of runs of each arm in the pilot.")] = N_SEEDS,
    rng: FirstSeed = 1,
    steps: Steps = None,
    on: On = "processes",
    workers: Workers = None,
    out: Out = Path("runs", "pilot"),
    as_json: AsJson = False,
) -> None:
    """Run a pilot, and say how many runs, calls and dollars each comparison of two arms needs.

    A sweep with more seeds into the same folder goes on from the pilot, and asks nothing twice.
    """
    kind = model_named(model).load()
    found = power(
        kind,
        measure,
        smallest_effect,
        wanted=wanted,
        vary=values_of(kind, vary or []),
        designs=designs_in(design or []),
        llm=llms_in(llm),
        seeds=range(rng, rng + seeds),
        steps=fixed.steps(steps),
        fixed=fixed.of(kind),
        on=cast("Any", on),
        workers=workers,
        out=out,
        options=options.of_logs,
        progress=False if as_json else None,
        **options.access,
    )
    say(json.dumps(found.to_json() | {"out": str(out)}) if as_json else found.text())
