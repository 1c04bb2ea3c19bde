"""`mesa-llm sensitivity`: how much of the variation of results is due to each parameter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from mesa_llm.cli.arguments import design_in, llm_in
from mesa_llm.cli.calibrate import ranges_in
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
    Plot,
    SharedRunFlags,
    Steps,
    Workers,
    require_plot,
)
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.calibration import sensitivity
from mesa_llm.experiments.calibration.ranges import ranges_of


@command("sensitivity")
def analyse_sensitivity(
    model: Model,
    fixed: Parameters,
    options: SharedRunFlags,
    vary: Annotated[list[str], typer.Option(help="Parameter and its range, as name=low:high; repeatable.")],
    method: Annotated[
        str, typer.Option(help="sobol (shares of the variance), or morris (sizes of effects, from fewer runs).")
    ] = "sobol",
    points: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of base points of sobol (64 by default), each with three runs more than parameters; or of "
            "trajectories of morris (10 by default), each with two runs more than parameters.",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of runs of each point; with 1, indices contain the noise between seeds.")
    ] = 2,
    measure: Annotated[
        list[str] | None, typer.Option(help="Result to analyse; repeatable. By default all that are numbers.")
    ] = None,
    rng: Annotated[int, typer.Option(min=0, help="Seed of the points, and first seed of the runs.")] = 1,
    steps: Steps = None,
    llm: Llm = "rule",
    design: Design = None,
    on: On = "processes",
    workers: Workers = None,
    logs: Logs = False,
    out: OutOfPoints = Path("runs", "sensitivity"),
    plot: Plot = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Measure how much of the variation of each result is due to each parameter: Sobol or Morris indices.

    Beside them stand a dummy parameter, which does nothing, and the noise between seeds. Parameters are ranked only
    where they stand out from both.

    To resume an analysis that was stopped, run the same command again.
    """
    kind = model_named(model).load()
    ranges, chosen = ranges_in(kind, vary, "--vary"), cast("sensitivity.Method", method)
    n_steps = fixed.steps(steps)
    agents: dict[str, Any] = {"llm": llm_in(llm), "design": design_in(design)}
    if dry_run:
        spaces = ranges_of(kind, ranges)
        planned = sensitivity.planned_runs(spaces, sensitivity.sample_points(spaces, chosen, points, rng), seeds, rng)
        some = [point.parameters for point in planned[:: max(1, len(planned) // N_ESTIMATED)][:N_ESTIMATED]]
        arguments = {**fixed.of(kind), **options.of_logs, **options.access, **agents, "rng": rng}
        n_runs = sum(len(point.seeds) for point in planned)
        print_cost_of_runs(model, kind, some, n_runs, n_steps, arguments, as_json=as_json)
        return
    require_plot(plot)
    found = sensitivity.sensitivity(
        kind,
        ranges,
        method=chosen,
        points=points,
        seeds=seeds,
        measures=measure,
        rng=rng,
        steps=n_steps,
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
    if plot is not None:
        try:
            found.draw().savefig(plot)
        except OSError as error:
            raise ConfigError(f"--plot {plot}: it cannot be written: {error.strerror}") from error
    if as_json:
        say(json.dumps(found.to_json() | {"out": str(out)}))
        return
    say(found.text())
    say(runs_text(found, ", ".join(map(str, (out / sensitivity.TABLE, *([] if plot is None else [plot]))))))
