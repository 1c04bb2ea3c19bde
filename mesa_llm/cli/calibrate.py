"""`mesa-llm calibrate`: parameters with which a model follows observed series."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli.arguments import design_in, llm_in
from mesa_llm.cli.command import command, model_named, say
from mesa_llm.cli.cost import N_ESTIMATED, print_cost_of_runs, runs_text
from mesa_llm.cli.options import (
    AsJson,
    Design,
    DryRun,
    Llm,
    Logs,
    Model,
    On,
    OutOfPoints,
    Parameters,
    SharedRunFlags,
    Workers,
)
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.calibration import calibration
from mesa_llm.experiments.calibration.ranges import Ends, ranges_of, settings_of
from mesa_llm.experiments.calibration.target import read_target
from mesa_llm.model.model import LLMModel


@command("calibrate")
def calibrate(
    model: Model,
    fixed: Parameters,
    options: SharedRunFlags,
    target: Annotated[
        Path,
        typer.Argument(
            help="Table with the observed series: a column `step`, and columns named like the reporters of the model's "
            "data collector."
        ),
    ],
    fit: Annotated[list[str], typer.Option(help="Parameter and its range, as name=low:high; repeatable.")],
    points: Annotated[
        int, typer.Option(min=1, help="Number of points drawn from the ranges, of which the posterior is made.")
    ] = 200,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs of each point.")] = 2,
    search: Annotated[
        int, typer.Option(min=0, help="Number of points suggested after that to find the smallest error.")
    ] = 20,
    hold_out: Annotated[
        float, typer.Option(help="Share of the steps that is held out, the last ones, to judge predictions by.")
    ] = 0.25,
    accept: Annotated[float, typer.Option(help="Share of the runs that the posterior is made of.")] = 0.25,
    rng: Annotated[int, typer.Option(min=0, help="Seed of the points, and first seed of the runs.")] = 1,
    llm: Llm = "rule",
    design: Design = None,
    on: On = "processes",
    workers: Workers = None,
    logs: Logs = False,
    out: OutOfPoints = Path("runs", "calibration"),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Find the parameters with which a model follows observed series, and how well it predicts steps held out.

    Prints a posterior by approximate Bayesian computation, whether the method recovers known parameters, and the errors
    of the best parameters beside those of the defaults. To resume a calibration that was stopped, run the same command
    again.
    """
    kind = model_named(model).load()
    ranges = ranges_in(kind, fit, "--fit")
    agents: dict[str, Any] = {"llm": llm_in(llm), "design": design_in(design)}
    if dry_run:
        n_steps, spaces = read_target(target, hold_out).steps[-1], ranges_of(kind, ranges)
        settings = settings_of(spaces, calibration.prior_points(spaces, N_ESTIMATED, rng))
        n_runs = calibration.n_runs_of(points, seeds, search)
        arguments = {**fixed.of(kind), **options.of_logs, **options.access, **agents, "rng": rng}
        print_cost_of_runs(model, kind, settings, n_runs, n_steps, arguments, as_json=as_json)
        return
    found = calibration.calibrate(
        kind,
        target,
        ranges,
        points=points,
        seeds=seeds,
        search=search,
        hold_out=hold_out,
        accepted=accept,
        rng=rng,
        fixed=fixed.of(kind),
        on=on,
        workers=workers,
        folder=out,
        options=options.of_logs,
        logs=logs,
        progress=False if as_json else None,
        **agents,
        **options.access,
    )
    if as_json:
        say(json.dumps(found.to_json() | {"out": str(out)}))
        return
    say(found.text())
    say(runs_text(found, f"{out / calibration.RESULTS}, {out / calibration.DRAWS}"))


def ranges_in(kind: type[LLMModel], typed: Sequence[str], option: str) -> dict[str, Ends]:
    """Read ranges of parameters.

    Args:
        kind: The model's class.
        typed: Each `name=low:high`.
        option: Option that they belong to, for errors.

    Raises:
        ConfigError: If one is not such a text, a name is unknown or typed twice, or a range is invalid.
    """
    ends: dict[str, Ends] = {}
    for pair in typed:
        name, _, text = (part.strip() for part in pair.partition("="))
        low, _, high = text.partition(":")
        name = name.replace("-", "_")
        try:
            one = float(low), float(high)
        except ValueError:
            raise ConfigError(f"{option} {pair}: expected name=low:high, such as gain=0:1") from None
        if name in ends:
            raise ConfigError(f"{option} {pair}: {name} is given twice; give it one range")
        ends[name] = one
    try:
        ranges_of(kind, ends)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from None
    return ends
