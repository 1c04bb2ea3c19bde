"""Commands for experiments: bench, sweep, study, branch, tournament."""

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
    Llm,
    MaxCalls,
    MaxCallsOfAll,
    MaxDollars,
    MaxDollarsOfAll,
    MaxTokens,
    MaxTokensOfAll,
    OnError,
    Parser,
    Reasoning,
    ReplyTokens,
    RequestsPerMin,
    RetryFailures,
    Scoring,
    Trust,
    Users,
)
from mesa_llm.errors import ConfigError


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
    as_json: AsJson = False,
) -> None:
    """Run benchmark tasks, with rule twins and random choice as baselines.

    To resume a benchmark that was stopped, run the same command again.
    """
    from mesa_llm.cli.arguments import budget, require_no_secrets, set_options
    from mesa_llm.cli.bench import (
        Benchmark,
        CrossBenchmark,
        candidate_of,
        designs_of_cross,
        print_cost,
        run_benchmark,
        task_list,
        tasks_named,
    )
    from mesa_llm.engine.access import Access
    from mesa_llm.experiments.benchmark.cross import candidates_of
    from mesa_llm.experiments.benchmark.designs import ORIGINAL_DESIGNS

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
    written |= options | ({"measure": measure} if measure else {})
    options |= {"retry_failures": retry_failures, "ask_again": ask_again, "allow_new_endpoint": allow_new_endpoint}
    chosen = tasks_named(tasks or ORIGINAL_DESIGNS, set_ or [], is_quick=quick, items=items, measures=measure or [])
    seeds = range(rng, rng + repeats)
    with closing(Access(api_base=api_base, **limits)) as access:
        if is_cross:
            by_design = candidates_of(llm, designs_of_cross(design or [], ablate))
            tested = list(by_design.values())
            benchmark = CrossBenchmark(chosen, tested, seeds, access, options, written, list(by_design))
        else:
            benchmark = Benchmark(chosen, [candidate_of(llm, design or [])], seeds, access, options, written)
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
    llm: Annotated[str, typer.Option(help="Language model of the agents, or several separated by commas.")] = "rule",
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
    on: Annotated[
        str,
        typer.Option(
            help="Where runs are made: processes, threads, or ray (the cluster of RAY_ADDRESS, or this machine)."
        ),
    ] = "processes",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of runs at a time; by default one per core.")
    ] = None,
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
    as_json: AsJson = False,
) -> None:
    """Run a model for every combination of parameters, designs, language models and seeds, and tabulate the results.

    To make only the missing runs of a sweep, run the same command again.
    """
    from mesa_llm.cli.arguments import budget, designs_in, parameters, require_no_secrets, set_options
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
        llm=[name.strip() for name in llm.split(",")],
        seeds=range(rng, rng + seeds),
        steps=DEFAULT_STEPS if steps is None and config is None else steps,
        fixed=parameters(kind, set_ or [], users, config),
        on=on,
        workers=workers,
        folder=out,
        options=set_options(
            on_error=on_error, reasoning=reasoning, reply_tokens=reply_tokens, scoring=scoring, parser=parser
        ),
        **spend,
        api_base=api_base,
        batch=batch,
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
        str, typer.Option(help="Language model of the agents; for `shachi swap`, several separated by commas.")
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
    max_calls: MaxCallsOfAll = None,
    max_tokens: MaxTokensOfAll = None,
    max_dollars: MaxDollarsOfAll = None,
    batch: Batch = False,
    concurrency: ConcurrencyOfAll = DEFAULT_CONCURRENCY,
    requests_per_min: RequestsPerMin = None,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    scoring: Scoring = None,
    as_json: AsJson = False,
) -> None:
    """Run a study: a question, the runs that answer it, and figures with intervals."""
    from mesa_llm.cli.arguments import budget, require_no_secrets, set_options
    from mesa_llm.cli.study import run_study, study_list
    from mesa_llm.experiments.study import StudySetup, find_study
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
        llm=llm,
        workers=workers,
        options=set_options(reasoning=reasoning, reply_tokens=reply_tokens, scoring=scoring),
        access={
            "api_base": api_base,
            "batch": batch,
            "concurrency": concurrency,
            "requests_per_min": requests_per_min,
        },
        purse=SharedBudget(max_calls, max_tokens, max_dollars) if has_budget else None,
        steps=steps,
    )
    run_study(chosen, setup, set_ or [], plot=plot, as_json=as_json, say=say, warn=warn)


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
