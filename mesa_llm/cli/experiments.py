"""Commands for experiments: audit, bench, sweep, calibrate, sensitivity, study, branch, tournament."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli.command import app, exits, log_named, look_here, model_named, say, warn
from mesa_llm.cli.options import (
    DEFAULT_CONCURRENCY,
    DEFAULT_STEPS,
    DESIGN_NAMES,
    AllowNewEndpoint,
    ApiBase,
    AsJson,
    AskAgain,
    Batch,
    ConcurrencyOfAll,
    Config,
    Design,
    DryRun,
    Labels,
    Light,
    Llm,
    MaxCalls,
    MaxCallsOfAll,
    MaxDollars,
    MaxDollarsOfAll,
    MaxTokens,
    MaxTokensOfAll,
    On,
    OnError,
    Parser,
    Reasoning,
    ReplyTokens,
    RequestsPerMin,
    RetryFailures,
    Scoring,
    Trust,
    Users,
    Workers,
)
from mesa_llm.errors import ConfigError


@app.command("audit", rich_help_panel="Experiments")
@exits
def audit_claims(
    model: Annotated[str, typer.Argument(help="Name of the model, or MODULE:CLASS for any other.")],
    claims: Annotated[
        Path | None, typer.Option(help="File of claims (TOML), each a table [claims.NAME]; see docs/auditing.md.")
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="Result whose level is audited, in place of claims; repeatable.")
    ] = None,
    smallest_effect: Annotated[
        float | None, typer.Option(help="Smallest change of --measure that would matter to you, in its unit.")
    ] = None,
    recorded: Annotated[
        bool,
        typer.Option("--recorded", help="Judge the recorded audit that comes with the model again, asking nothing."),
    ] = False,
    llm: Annotated[
        str,
        typer.Option(help="Language model of the agents, or several separated by commas: the first is the baseline."),
    ] = "rule",
    seeds: Annotated[int, typer.Option(min=2, help="Number of runs of each condition, with consecutive seeds.")] = 10,
    rng: Annotated[int, typer.Option(min=0, help="First seed.")] = 1,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of each run; by default until the model ends.")
    ] = None,
    dimensions: Annotated[
        str | None, typer.Option(help="Dimensions to audit, separated by commas; by default all that the model has.")
    ] = None,
    rewrite: Annotated[
        str | None,
        typer.Option(help="Language model that says the instructions in other words, once, for you to read."),
    ] = None,
    judge: Annotated[
        str, typer.Option(help="Language model that judges whether agents named the experiment; by default, words do.")
    ] = "",
    people: Annotated[
        Path | None, typer.Option(help="Table of what people did, with columns named like the measures of the claims.")
    ] = None,
    no_awareness: Annotated[
        bool, typer.Option("--no-awareness", help="Do not ask agents aside what they think is studied.")
    ] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of all runs, as name=value; repeatable.")
    ] = None,
    users: Users = None,
    config: Config = None,
    design: Design = None,
    on: On = "processes",
    workers: Workers = 1,
    out: Annotated[
        Path, typer.Option(help="Output folder: the report and one run log per run. Existing runs are resumed.")
    ] = (Path("runs", "audit")),
    dry_run: DryRun = False,
    api_base: ApiBase = None,
    on_error: OnError = "skip",
    max_calls: MaxCallsOfAll = None,
    max_tokens: MaxTokensOfAll = None,
    max_dollars: MaxDollarsOfAll = None,
    batch: Batch = False,
    concurrency: ConcurrencyOfAll = DEFAULT_CONCURRENCY,
    requests_per_min: RequestsPerMin = None,
    reply_tokens: ReplyTokens = None,
    scoring: Scoring = None,
    parser: Parser = None,
    as_json: AsJson = False,
) -> None:
    """Test whether a claim about a model is stable under what should not matter: other wordings, forms, orders, models.

    To resume an audit that was stopped, run the same command again.
    """
    from mesa_llm.cli.arguments import budget, design_in, parameters, require_no_secrets, set_options
    from mesa_llm.cli.audit import claims_of, require_folder, reworded, run_audit
    from mesa_llm.experiments.audits import audit_setup, recorded_audit
    from mesa_llm.runlog.comparison import not_checked

    require_no_secrets(set_ or (), api_base=api_base, llm=llm, parser=parser)
    kind = model_named(model).load()
    chosen = design_in(design)
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    limits: dict[str, Any] = {**spend, "api_base": api_base, "batch": batch}
    limits |= {"concurrency": concurrency, "requests_per_min": requests_per_min}
    require_folder(out)
    if recorded:
        if claims or measure or dimensions or rewrite or set_ or users or config or chosen or llm != "rule":
            raise ConfigError("--recorded judges what was recorded; it goes with --out and --json alone")
        setup = recorded_audit(kind, out)
    else:
        found = claims_of(kind, claims, measure or [], smallest_effect)
        fixed = parameters(kind, set_ or [], users, config)
        wordings: list[Path] = []
        if rewrite is not None and not dry_run:
            wordings = reworded(kind, found, rewrite, out, parameters=fixed, access=limits, as_json=as_json, say=say)
        setup = audit_setup(
            kind,
            found,
            folder=out,
            llm=[name.strip() for name in llm.split(",")],
            seeds=range(rng, rng + seeds),
            steps=steps,
            parameters=fixed,
            design=None if chosen is None else chosen.to_json(),
            options=set_options(on_error=on_error, reply_tokens=reply_tokens, scoring=scoring, parser=parser),
            dimensions=None if dimensions is None else [name.strip() for name in dimensions.split(",")],
            wordings=wordings,
            judge=judge,
            people=people,
        )
    run_audit(
        setup,
        folder=out,
        access=limits,
        is_dry=dry_run,
        as_json=as_json,
        say=say,
        awareness=not no_awareness,
        on=on,
        workers=workers,
    )
    if not dry_run:
        say(not_checked(out / "logs" / "LOG"), err=True)


@app.command(rich_help_panel="Experiments")
@exits
def bench(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(help="Names of tasks, MODULE:NAME for any other, or `all`; without one, lists them."),
    ] = None,
    llm: Llm = "rule",
    design: Annotated[
        list[str] | None, typer.Option(help=f"{DESIGN_NAMES}. With --cross, several separated by commas.")
    ] = None,
    cross: Annotated[
        bool,
        typer.Option(
            "--cross", help="Compare every design in every task; by default Shachi's four designs in their four tasks."
        ),
    ] = False,
    ablate: Annotated[str | None, typer.Option(help="Design to ablate, one component at a time.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="Score by which designs are compared in a task, as TASK=SCORE; repeatable.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Scores to compare a task's runs with, such as those of your own run of its original, as TASK=FILE "
            "(JSON, or a table with the columns score and value); repeatable."
        ),
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="Also run the baselines of Shachi that lack a component: memory, tools."),
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Number of runs of each task, with consecutive seeds.")] = 3,
    rng: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 1,
    items: Annotated[
        str, typer.Option(help="`own`, or `original`: the published items of tasks that have some.")
    ] = "own",
    quick: Annotated[bool, typer.Option("--quick", help="Run small versions of the tasks, to try them out.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Parameter, as name=value for all tasks or TASK.name=value for one; repeatable."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Output folder: the report and one run log per run. Existing runs are resumed.")
    ] = (Path("runs", "bench")),
    dry_run: DryRun = False,
    api_base: ApiBase = None,
    max_calls: MaxCallsOfAll = None,
    max_tokens: MaxTokensOfAll = None,
    max_dollars: MaxDollarsOfAll = None,
    batch: Batch = False,
    concurrency: ConcurrencyOfAll = DEFAULT_CONCURRENCY,
    requests_per_min: RequestsPerMin = None,
    retry_failures: RetryFailures = False,
    ask_again: AskAgain = False,
    allow_new_endpoint: AllowNewEndpoint = False,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    scoring: Scoring = None,
    parser: Parser = None,
    labels: Labels = None,
    as_json: AsJson = False,
) -> None:
    """Run benchmark tasks, with rule twins and random choice as baselines.

    To resume a benchmark that was stopped, run the same command again.
    """
    from mesa_llm.cli.arguments import budget, llm_in, require_no_secrets, set_options
    from mesa_llm.cli.bench import (
        candidate_of,
        designs_of_cross,
        print_cost,
        run_benchmark,
        task_list,
        tasks_named,
        with_targets,
    )
    from mesa_llm.engine.access import Access
    from mesa_llm.experiments.benchmarks.benchmark import Benchmark, CrossBenchmark
    from mesa_llm.experiments.benchmarks.cross import candidates_of
    from mesa_llm.experiments.benchmarks.designs import ORIGINAL_DESIGNS

    is_cross = cross or ablate is not None
    if measure and not is_cross:
        raise ConfigError("--measure chooses the score by which designs are compared; it needs --cross or --ablate")
    if not tasks and not is_cross:
        for line in task_list():
            say(line)
        return
    require_no_secrets(set_ or (), api_base=api_base, llm=llm, parser=parser)
    if any(":" in name for name in tasks or ()):
        look_here()
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    limits: dict[str, Any] = {**spend, "batch": batch, "concurrency": concurrency, "requests_per_min": requests_per_min}
    options: dict[str, Any] = set_options(
        reasoning=reasoning, reply_tokens=reply_tokens, scoring=scoring, parser=parser
    )
    written = {"tasks": tasks, "cross": cross, "llm": llm, "design": design, "ablate": ablate, "items": items}
    written |= {"quick": quick, "set": set_, "repeats": repeats, "rng": rng, **set_options(api_base=api_base)}
    written |= options | {name: value for name, value in (("measure", measure), ("target", target)) if value}
    written |= {"baseline": True} if baseline else {}
    options |= {"retry_failures": retry_failures, "ask_again": ask_again, "allow_new_endpoint": allow_new_endpoint}
    options |= set_options(labels=labels)
    chosen = tasks_named(tasks or ORIGINAL_DESIGNS, set_ or [], is_quick=quick, items=items, measures=measure or [])
    chosen = with_targets(chosen, target or [])
    seeds = range(rng, rng + repeats)
    with closing(Access(api_base=api_base, **limits)) as access:
        if is_cross:
            by_design = candidates_of(llm_in(llm), designs_of_cross(design or [], ablate))
            tested = list(by_design.values())
            benchmark = CrossBenchmark(chosen, tested, seeds, access, options, written, list(by_design))
        else:
            tested = [candidate_of(llm_in(llm), design or [])]
            benchmark = Benchmark(chosen, tested, seeds, access, options, written, has_baseline=baseline)
        if dry_run:
            print_cost(benchmark, as_json=as_json, say=say)
        else:
            run_benchmark(benchmark, out, as_json=as_json, say=say)


@app.command("sweep", rich_help_panel="Experiments")
@exits
def run_sweep(
    model: Annotated[str, typer.Argument(help="Name of the model, or MODULE:CLASS for any other.")],
    vary: Annotated[
        list[str] | None,
        typer.Option(help="Parameter and its values, as name=1,2,3 or, in JSON, name=[…]; repeatable."),
    ] = None,
    design: Annotated[
        list[str] | None,
        typer.Option(help=f"{DESIGN_NAMES}. Several are separated by commas."),
    ] = None,
    llm: Annotated[
        str,
        typer.Option(
            help="Language model of the agents, or several to compare, separated by commas; those of one run as "
            "main=NAME,others=NAME or in shares, 1/2=NAME,2/2=NAME, several of these separated by semicolons."
        ),
    ] = "rule",
    api_base: ApiBase = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs of each combination, with consecutive seeds.")] = 10,
    rng: Annotated[int, typer.Option(min=0, help="First seed.")] = 1,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of each run; 10 by default, with --config until the model ends by itself."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of all runs, as name=value; repeatable.")
    ] = None,
    users: Users = None,
    config: Config = None,
    on: On = "processes",
    workers: Workers = None,
    out: Annotated[
        Path, typer.Option(help="Output folder: the table and one run log per run. Existing runs are resumed.")
    ] = (Path("runs", "sweep")),
    on_error: OnError = "skip",
    max_calls: MaxCallsOfAll = None,
    max_tokens: MaxTokensOfAll = None,
    max_dollars: MaxDollarsOfAll = None,
    batch: Batch = False,
    concurrency: ConcurrencyOfAll = DEFAULT_CONCURRENCY,
    requests_per_min: RequestsPerMin = None,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    scoring: Scoring = None,
    parser: Parser = None,
    light: Light = False,
    labels: Labels = None,
    as_json: AsJson = False,
) -> None:
    """Run a model for every combination of parameters, designs, language models and seeds, and tabulate the results.

    To make only the missing runs of a sweep, run the same command again.
    """
    from mesa_llm.cli.arguments import budget, designs_in, llms_in, parameters, require_no_secrets, set_options
    from mesa_llm.cli.sweep import print_sweep, values_of

    require_no_secrets([*(vary or ()), *(set_ or ())], api_base=api_base, llm=llm, parser=parser)
    kind = model_named(model).load()
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    print_sweep(
        kind,
        values_of(kind, vary or []),
        designs_in(design or []),
        say=say,
        as_json=as_json,
        llm=llms_in(llm),
        seeds=range(rng, rng + seeds),
        steps=DEFAULT_STEPS if steps is None and config is None else steps,
        fixed=parameters(kind, set_ or [], users, config),
        on=on,
        workers=workers,
        folder=out,
        options=set_options(
            on_error=on_error,
            reasoning=reasoning,
            reply_tokens=reply_tokens,
            scoring=scoring,
            parser=parser,
            light=light or None,
            labels=labels,
        ),
        **spend,
        api_base=api_base,
        batch=batch,
        concurrency=concurrency,
        requests_per_min=requests_per_min,
    )


@app.command("calibrate", rich_help_panel="Experiments")
@exits
def calibrate(
    model: Annotated[str, typer.Argument(help="Name of the model, or MODULE:CLASS for any other.")],
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
    api_base: ApiBase = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of all runs, as name=value; repeatable.")
    ] = None,
    users: Users = None,
    config: Config = None,
    on: On = "processes",
    workers: Workers = None,
    out: Annotated[
        Path, typer.Option(help="Output folder: the results and one run log per run. Existing runs are resumed.")
    ] = (Path("runs", "calibration")),
    dry_run: DryRun = False,
    on_error: OnError = "skip",
    max_calls: MaxCallsOfAll = None,
    max_tokens: MaxTokensOfAll = None,
    max_dollars: MaxDollarsOfAll = None,
    batch: Batch = False,
    concurrency: ConcurrencyOfAll = DEFAULT_CONCURRENCY,
    requests_per_min: RequestsPerMin = None,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    scoring: Scoring = None,
    parser: Parser = None,
    as_json: AsJson = False,
) -> None:
    """Find the parameters with which a model follows observed series, and how well it predicts steps held out.

    Prints a posterior by approximate Bayesian computation, whether the method recovers known parameters, and the errors
    of the best parameters beside those of the defaults. To resume a calibration that was stopped, run the same command
    again.
    """
    from mesa_llm.cli.arguments import budget, design_in, parameters, require_no_secrets, set_options
    from mesa_llm.cli.calibration import print_calibration_cost, ranges_in, run_calibration

    require_no_secrets(set_ or (), api_base=api_base, llm=llm, parser=parser)
    kind = model_named(model).load()
    ranges = ranges_in(kind, fit, "--fit")
    fixed = parameters(kind, set_ or [], users, config)
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    limits: dict[str, Any] = {**spend, "api_base": api_base, "batch": batch}
    options = set_options(
        on_error=on_error, reasoning=reasoning, reply_tokens=reply_tokens, scoring=scoring, parser=parser
    )
    size: dict[str, Any] = {"points": points, "seeds": seeds, "search": search, "hold_out": hold_out, "rng": rng}
    if dry_run:
        arguments = {**fixed, **options, **limits, "llm": llm, "design": design_in(design)}
        print_calibration_cost(model, kind, target, ranges, arguments, **size, say=say, as_json=as_json)
        return
    run_calibration(
        kind,
        target,
        ranges,
        say=say,
        as_json=as_json,
        **size,
        accepted=accept,
        llm=llm,
        design=design_in(design),
        fixed=fixed,
        on=on,
        workers=workers,
        folder=out,
        options=options,
        **limits,
        concurrency=concurrency,
        requests_per_min=requests_per_min,
    )


@app.command("sensitivity", rich_help_panel="Experiments")
@exits
def analyse_sensitivity(
    model: Annotated[str, typer.Argument(help="Name of the model, or MODULE:CLASS for any other.")],
    vary: Annotated[list[str], typer.Option(help="Parameter and its range, as name=low:high; repeatable.")],
    method: Annotated[
        str, typer.Option(help="sobol (shares of the variance), or morris (sizes of effects, from fewer runs).")
    ] = "sobol",
    points: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of base points of sobol, a power of 2 (64 by default), each run once and once more for each "
            "parameter and another; or of trajectories of morris (10 by default), of one run more than parameters.",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of runs of each point, over which results are averaged.")
    ] = 2,
    measure: Annotated[
        list[str] | None, typer.Option(help="Result to analyse; repeatable. By default all that are numbers.")
    ] = None,
    rng: Annotated[int, typer.Option(min=0, help="Seed of the points, and first seed of the runs.")] = 1,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of each run; 10 by default, with --config until the model ends by itself."),
    ] = None,
    llm: Llm = "rule",
    design: Design = None,
    api_base: ApiBase = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of all runs, as name=value; repeatable.")
    ] = None,
    users: Users = None,
    config: Config = None,
    on: On = "processes",
    workers: Workers = None,
    out: Annotated[
        Path, typer.Option(help="Output folder: the results and one run log per run. Existing runs are resumed.")
    ] = (Path("runs", "sensitivity")),
    plot: Annotated[Path | None, typer.Option(help="File for a bar chart: PNG, SVG or PDF.")] = None,
    dry_run: DryRun = False,
    on_error: OnError = "skip",
    max_calls: MaxCallsOfAll = None,
    max_tokens: MaxTokensOfAll = None,
    max_dollars: MaxDollarsOfAll = None,
    batch: Batch = False,
    concurrency: ConcurrencyOfAll = DEFAULT_CONCURRENCY,
    requests_per_min: RequestsPerMin = None,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    scoring: Scoring = None,
    parser: Parser = None,
    as_json: AsJson = False,
) -> None:
    """Measure how much of the variation of each result is due to each parameter: Sobol or Morris indices.

    To resume an analysis that was stopped, run the same command again.
    """
    from mesa_llm.cli.arguments import budget, design_in, parameters, require_no_secrets, set_options
    from mesa_llm.cli.calibration import print_sensitivity_cost, ranges_in, run_sensitivity

    require_no_secrets(set_ or (), api_base=api_base, llm=llm, parser=parser)
    kind = model_named(model).load()
    ranges = ranges_in(kind, vary, "--vary")
    fixed = parameters(kind, set_ or [], users, config)
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    limits: dict[str, Any] = {**spend, "api_base": api_base, "batch": batch}
    options = set_options(
        on_error=on_error, reasoning=reasoning, reply_tokens=reply_tokens, scoring=scoring, parser=parser
    )
    n_steps = DEFAULT_STEPS if steps is None and config is None else steps
    size: dict[str, Any] = {"method": method, "points": points, "seeds": seeds, "steps": n_steps, "rng": rng}
    if dry_run:
        arguments = {**fixed, **options, **limits, "llm": llm, "design": design_in(design)}
        print_sensitivity_cost(model, kind, ranges, arguments, **size, say=say, as_json=as_json)
        return
    run_sensitivity(
        kind,
        ranges,
        plot=plot,
        say=say,
        as_json=as_json,
        **size,
        measures=measure,
        llm=llm,
        design=design_in(design),
        fixed=fixed,
        on=on,
        workers=workers,
        folder=out,
        options=options,
        **limits,
        concurrency=concurrency,
        requests_per_min=requests_per_min,
    )


@app.command("study", rich_help_panel="Experiments")
@exits
def study(
    package: Annotated[
        str | None, typer.Argument(help="Package of models, such as oasis or shachi; without it, lists all studies.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(help="Name of the study; without it, lists the package's studies and their options.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds, each run in every arm; the study's own by default.")
    ] = None,
    rng: Annotated[int, typer.Option(min=0, help="First seed.")] = 1,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps, months or tests of each run; the study's own by default.")
    ] = None,
    llm: Annotated[
        str,
        typer.Option(
            help="Language model of the agents, or several in each run: main=NAME,others=NAME, or in shares "
            "1/2=NAME,2/2=NAME. For `shachi swap`, several to compare, separated by commas."
        ),
    ] = "rule",
    api_base: ApiBase = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of the model or option of the study, as name=value.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Output folder: page, figures and one run log per run. Existing runs are resumed."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="File for the figure: PNG, SVG or PDF.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of runs at a time.")] = 1,
    dry_run: DryRun = False,
    max_calls: MaxCallsOfAll = None,
    max_tokens: MaxTokensOfAll = None,
    max_dollars: MaxDollarsOfAll = None,
    batch: Batch = False,
    concurrency: ConcurrencyOfAll = DEFAULT_CONCURRENCY,
    requests_per_min: RequestsPerMin = None,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    scoring: Scoring = None,
    labels: Labels = None,
    as_json: AsJson = False,
) -> None:
    """Run a study: a question, the runs that answer it, and figures with intervals."""
    from mesa_llm.cli.arguments import budget, llm_in, require_no_secrets, set_options
    from mesa_llm.cli.study import run_study, study_list
    from mesa_llm.experiments.runs.study import StudySetup, find_study
    from mesa_llm.llm.budget import SharedBudget

    if package is None or name is None:
        for line in study_list(package):
            say(line)
        return
    require_no_secrets(set_ or (), llm=llm, api_base=api_base)
    chosen = find_study(package, name)
    has_budget = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    setup = StudySetup(
        range(rng, rng + (seeds or chosen.n_seeds)),
        folder=out,
        llm=llm_in(llm),
        workers=workers,
        options=set_options(reasoning=reasoning, reply_tokens=reply_tokens, scoring=scoring, labels=labels),
        access={
            "api_base": api_base,
            "batch": batch,
            "concurrency": concurrency,
            "requests_per_min": requests_per_min,
        },
        purse=SharedBudget(max_calls, max_tokens, max_dollars) if has_budget else None,
        steps=steps,
    )
    run_study(chosen, setup, set_ or [], plot=plot, as_json=as_json, say=say, warn=warn, is_dry=dry_run)


@app.command("branch", rich_help_panel="Experiments")
@exits
def branch_run(
    file: Annotated[Path, typer.Argument(help="Run log of the parent, which is never changed.", callback=log_named)],
    from_step: Annotated[int, typer.Option(min=0, help="Last step taken from the parent.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="New value of a variable, as name=value; with --from-step 0, of any parameter."),
    ] = None,
    inject: Annotated[
        list[str] | None,
        typer.Option(help="News for everyone, or an intervention as JSON, before the next step; repeatable."),
    ] = None,
    llm: Annotated[str | None, typer.Option(help="Language model of the agents from then on.")] = None,
    design: Design = None,
    log: Annotated[Path | None, typer.Option(help="Run log of the branch; the same command resumes it.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Number of steps after the fork; by default up to the parent's last.")
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(min=1, help="Number of pairs of runs: the recorded one, and others with the seeds that follow."),
    ] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Number of pairs of runs made at a time.")] = 1,
    drop_later: Annotated[
        bool, typer.Option("--drop-later", help="Leave out interventions in the parent after that step.")
    ] = False,
    api_base: ApiBase = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    allow_new_endpoint: AllowNewEndpoint = False,
    csv: Annotated[Path | None, typer.Option(help="CSV file for the measures of both runs, side by side.")] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Fork a recorded run at a step, change something, and compare both runs."""
    from mesa_llm.cli.arguments import budget, design_in, require_no_secrets
    from mesa_llm.cli.branch import Fork, run_branch, run_branches
    from mesa_llm.runlog.comparison import not_checked

    require_no_secrets(set_ or (), api_base=api_base, llm=llm)
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    fork = Fork(from_step, tuple(set_ or ()), tuple(inject or ()), llm, design_in(design), not drop_later, log)
    limits = {**spend, "api_base": api_base}
    if seeds > 1:
        run_branches(
            file,
            fork,
            steps,
            seeds,
            limits,
            allow_new_endpoint=allow_new_endpoint,
            workers=workers,
            csv=csv,
            trust=trust,
            as_json=as_json,
            say=say,
        )
    else:
        limits |= {"allow_new_endpoint": allow_new_endpoint}
        run_branch(file, fork, steps, limits, csv=csv, trust=trust, as_json=as_json, say=say)
    say(f"steps of the parent after step {from_step}: {not_checked(file)}", err=True)


@app.command("tournament", rich_help_panel="Experiments")
@exits
def hold_tournament(
    folder: Annotated[
        Path, typer.Argument(help="Folder with one file per player: NAME.py, which defines move(own, other).")
    ],
    game: Annotated[
        str | None, typer.Option(help="Name of the game, or MODULE:NAME for any other; optional if there is only one.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Number of rounds in a match.")] = 50,
    repeats: Annotated[int, typer.Option(min=1, help="Number of times that everybody meets everybody.")] = 10,
    rng: Annotated[int, typer.Option(min=0, help="Seed.")] = 1,
    limit_s: Annotated[float, typer.Option(min=0.01, help="Time limit of a move in seconds.")] = 1.0,
    memory_mb: Annotated[
        int, typer.Option(min=64, help="Memory limit of a file and of all that it starts, in MB (of 2**20 bytes).")
    ] = 1024,
    known: Annotated[
        str | None, typer.Option(help="Known strategies that also play, separated by commas; '' for none.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let files play a game against each other and against known strategies, and rank them.

    Each file plays in its own process, with limits on time and memory. A file
    that fails forfeits its move; the match goes on. Processes that it starts
    end with the match, except outside Linux those that leave its group.
    """
    from mesa_llm.experiments.tournament import find_game, find_players, lines_of, play

    if game is not None and ":" in game:
        look_here()
    chosen = find_game(game)
    names = None if known is None else [name.strip() for name in known.split(",") if name.strip()]
    players = find_players(chosen, folder, limit_s, names, memory_mb)
    standings = play(chosen, players, rounds=rounds, repeats=repeats, seed=rng)
    if as_json:
        figures = {"game": chosen.name, "rounds": rounds, "repeats": repeats, "rng": rng}
        say(json.dumps({**figures, "players": list(map(asdict, standings))}))
    else:
        for line in lines_of(standings):
            say(line)
