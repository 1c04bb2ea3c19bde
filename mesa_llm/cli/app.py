"""The command line: list, run, bench, sweep, replay, branch, report, export, cast, inspect, check, app, doctor."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from mesa_llm.errors import BudgetSpent, ConfigError, MesaLLMError, NothingDecided
from mesa_llm.text import printable

if TYPE_CHECKING:
    from mesa_llm.registry import ModelEntry

_USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__base__)
"""click's UsageError, wherever this version of typer keeps it."""


class _Commands(TyperGroup):
    """The commands; a word that is no command or option, or has a wrong value, is answered in one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except _USAGE_ERROR as error:
            context = getattr(error, "ctx", None) or ctx
            fault = " ".join(cast("typer.BadParameter", error).format_message().split()).rstrip(".")
            _say(f"mesa-llm: {fault}; see `{context.command_path} --help`", err=True)
            raise typer.Exit(BAD_INPUT) from None


app = typer.Typer(
    cls=_Commands,
    name="mesa-llm",
    help="Agent-based models whose agents think with a language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

GALLERY = "mesa_llm.viz.gallery"
"""The page of all models."""

DEFAULT_STEPS = 10
"""Steps of a run, unless something else is asked for."""

DIFFERENT, BAD_INPUT, SPENT, NOTHING_DECIDED, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes besides 0."""


def _exits(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what a person should read into one line on stderr and an exit code."""

    @wraps(command)
    def run_command(*args: Any, **kwargs: Any) -> None:
        try:
            with _terminable():
                command(*args, **kwargs)
        except BudgetSpent as error:
            _say(f"mesa-llm: stopped: {error}", err=True)
            raise typer.Exit(SPENT) from None
        except ConfigError as error:
            _say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except NothingDecided as error:
            _say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(NOTHING_DECIDED) from None
        except KeyboardInterrupt:
            _say("mesa-llm: interrupted; the same command goes on from here, with the same --log", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except MesaLLMError as error:
            _say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(DIFFERENT) from None

    return run_command


@contextmanager
def _terminable() -> Generator[None]:
    """Make SIGTERM end the command like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _say(text: str, *, err: bool = False) -> None:
    typer.echo(printable(text), err=err)


def _warn(text: str) -> None:
    _say(f"mesa-llm: {text}", err=True)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from mesa_llm.runlog.versions import versions

        _say(f"mesa-llm-worlds {versions()['mesa-llm-worlds']}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Agent-based models whose agents think with a language model."""


@app.command("list")
@_exits
def list_models(
    model: Annotated[
        str | None, typer.Argument(help="Name of a model, or module:Class: lists its parameters instead.")
    ] = None,
) -> None:
    """List the models that can be run, or the parameters of one: name, default, range and meaning."""
    from mesa_llm.registry import find_models, hidden_packages

    if model is not None:
        from mesa_llm.cli.run import parameter_table

        for line in parameter_table(_model(model).load()):
            _say(line)
        return
    for hidden in hidden_packages():
        _warn(hidden)
    models = find_models()
    width = max((len(entry.name) for entry in models), default=0)
    for entry in models:
        try:
            entry.load()
            description = entry.question
        except ConfigError as error:
            description = f"BROKEN: {error}"
        _say(f"{entry.name:<{width}}  {description}")


Llm = Annotated[str, typer.Option(help="rule, random, human, local, ollama/NAME, or any litellm model.")]
ApiBase = Annotated[str | None, typer.Option(help="Base URL of an OpenAI-compatible endpoint; without a key in it.")]
Log = Annotated[Path | None, typer.Option(help="Run log; what it holds is used, the rest is recorded.")]
Design = Annotated[
    Path | None, typer.Option(help="JSON file with an AgentDesign; functions that it names are imported.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line, also of a stopped run.")]


@app.command()
@_exits
def run(
    model: Annotated[str, typer.Argument(help="Name of the model (see `mesa-llm list`), or module:Class of any.")],
    llm: Llm = "rule",
    api_base: ApiBase = None,
    steps: Annotated[
        int | None,
        typer.Option(min=0, help="Steps to run; 10 by default, and with --config until the model ends by itself."),
    ] = None,
    rng: Annotated[int | None, typer.Option(help="Seed, 0 or more; without it one is drawn, and printed.")] = None,
    users: Annotated[Path | None, typer.Option(help="File with the population.")] = None,
    config: Annotated[
        str | None, typer.Option(help="File that describes the run, for models with a parameter config (discussion).")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Model parameter, as name=value.")] = None,
    log: Log = None,
    on_error: Annotated[str, typer.Option(help="skip, rule or raise.")] = "skip",
    max_calls: Annotated[int | None, typer.Option(help="Budget of live replies; those from the log are free.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens of live replies.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars of live replies.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Most requests in flight.")] = 64,
    retry_failures: Annotated[bool, typer.Option(help="Ask again where the log holds a failure.")] = False,
    ask_again: Annotated[bool, typer.Option(help="Ask again where the log holds another request.")] = False,
    moved: Annotated[bool, typer.Option("--moved", help="Go on with the log though the endpoint has moved.")] = False,
    reasoning: Annotated[
        str | None, typer.Option(help="How agents reason before they decide: none, inline or first.")
    ] = None,
    reply_tokens: Annotated[int | None, typer.Option(min=1, help="Maximum number of tokens of a reply.")] = None,
    parser: Annotated[str | None, typer.Option(help="Second model, which puts faulty replies into form.")] = None,
    design: Design = None,
    csv: Annotated[
        Path | None, typer.Option(help="File for what the model measures: its DataCollector's table, one row a step.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a model; the same command with the same --log goes on with a run that was stopped."""
    from mesa_llm.cli.run import budget, demand_no_secret, design_in, parameters, run_model

    if rng is not None and rng < 0:
        raise ConfigError(f"--rng {rng}: a seed is a whole number, 0 or more; leave --rng out to have one drawn")
    typed = [("--api-base", api_base), ("--llm", llm), ("--parser", parser), *(("--set", pair) for pair in set_ or [])]
    for option, text in typed:
        demand_no_secret(option, text)
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    entry = _model(model)
    kind = entry.load()
    arguments = parameters(kind, set_ or [], users, config) | spend
    if steps is None and config is None:
        steps = DEFAULT_STEPS
    arguments |= {"llm": llm, "api_base": api_base, "rng": rng, "log": log, "on_error": on_error}
    arguments |= {"concurrency": concurrency, "retry_failures": retry_failures, "ask_again": ask_again, "moved": moved}
    options = {"reasoning": reasoning, "reply_tokens": reply_tokens, "parser": parser, "design": design_in(design)}
    arguments |= {name: value for name, value in options.items() if value is not None}
    run_model(entry.name, kind(**arguments), steps, as_json=as_json, say=_say, csv=csv, is_live=True, warn=_warn)


@app.command()
@_exits
def bench(
    tasks: Annotated[
        list[str] | None, typer.Argument(help="Names of tasks, module:NAME of any, or all; none: lists them.")
    ] = None,
    llm: Llm = "rule",
    design: Annotated[
        list[str] | None,
        typer.Option(
            help="JSON file with an AgentDesign, or own, original, or the name of an original design; several with "
            "--cross, with commas between them."
        ),
    ] = None,
    cross: Annotated[
        bool, typer.Option("--cross", help="Compare designs: each in each task, by default Shachi's four in four.")
    ] = False,
    ablate: Annotated[
        str | None, typer.Option(help="Design to take apart: it is compared with itself short of one component each.")
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="Score that designs are compared by in a task, as TASK=SCORE.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each task, with seeds from --rng on.")] = 3,
    rng: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 1,
    items: Annotated[str, typer.Option(help="own, or original: the published items, where there are any.")] = "own",
    quick: Annotated[bool, typer.Option("--quick", help="Small versions of the tasks, to try them out.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter, as name=value for all tasks, or TASK.name=value.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the report and of one run log a run, which are gone on with.")
    ] = (Path("runs", "bench")),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and ask nobody.")] = False,
    api_base: ApiBase = None,
    max_calls: Annotated[int | None, typer.Option(help="Budget of live replies of all runs together.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens of all runs together.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars of all runs together.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Most requests in flight, of all runs together.")] = 64,
    requests_per_min: Annotated[float | None, typer.Option(help="Rate limit of all runs together.")] = None,
    retry_failures: Annotated[bool, typer.Option(help="Ask again where a log holds a failure.")] = False,
    ask_again: Annotated[bool, typer.Option(help="Ask again where a log holds another request.")] = False,
    moved: Annotated[bool, typer.Option("--moved", help="Go on with the logs though the endpoint has moved.")] = False,
    reasoning: Annotated[
        str | None, typer.Option(help="How agents reason before they decide: none, inline or first.")
    ] = None,
    reply_tokens: Annotated[int | None, typer.Option(min=1, help="Maximum number of tokens of a reply.")] = None,
    parser: Annotated[str | None, typer.Option(help="Second model, which puts faulty replies into form.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run benchmark tasks, beside rule twins and chance; the same command goes on with what was stopped."""
    from mesa_llm.benchmark.cross import candidates_of
    from mesa_llm.benchmark.designs import ORIGINAL_DESIGNS
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
    from mesa_llm.cli.run import budget, demand_no_secret
    from mesa_llm.engine.access import Access

    is_cross = cross or ablate is not None
    if measure and not is_cross:
        raise ConfigError("--measure says what designs are compared by; it is for --cross and --ablate")
    if not tasks and not is_cross:
        for line in task_list():
            _say(line)
        return
    typed = [("--api-base", api_base), ("--llm", llm), ("--parser", parser), *(("--set", pair) for pair in set_ or [])]
    for option, text in typed:
        demand_no_secret(option, text)
    if any(":" in name for name in tasks or ()):
        _look_here()
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    limits: dict[str, Any] = {**spend, "concurrency": concurrency, "requests_per_min": requests_per_min}
    options = {"reasoning": reasoning, "reply_tokens": reply_tokens, "parser": parser}
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"retry_failures": retry_failures, "ask_again": ask_again, "moved": moved}
    access = Access(api_base=api_base, **limits)
    found = tasks_named(tasks or ORIGINAL_DESIGNS, set_ or [], is_quick=quick, items=items, measures=measure or [])
    written = {"llm": llm, "design": design, "ablate": ablate, "items": items, "quick": quick, "set": set_}
    seeds = range(rng, rng + repeats)
    if is_cross:
        by_design = candidates_of(llm, designs_of_cross(design or [], ablate))
        benchmark = CrossBenchmark(found, list(by_design.values()), seeds, access, options, written, list(by_design))
    else:
        benchmark = Benchmark(found, [candidate_of(llm, design or [])], seeds, access, options, written)
    try:
        if dry_run:
            print_cost(benchmark, as_json=as_json, say=_say)
        else:
            run_benchmark(benchmark, out, as_json=as_json, say=_say)
    finally:
        access.close()


@app.command("sweep")
@_exits
def run_sweep(
    model: Annotated[str, typer.Argument(help="Name of the model, or module:Class of any.")],
    vary: Annotated[
        list[str] | None, typer.Option(help="Parameter and its values, as name=1,2,3 or name=[…] in JSON; repeatable.")
    ] = None,
    design: Annotated[
        list[str] | None,
        typer.Option(help="JSON files with designs, with commas between them; `own` is each model's own."),
    ] = None,
    llm: Annotated[
        str, typer.Option(help="Language model of the agents, or several with commas between them.")
    ] = "rule",
    api_base: ApiBase = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each combination, with seeds from --rng on.")] = 10,
    rng: Annotated[int, typer.Option(min=0, help="First seed.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each run.")] = DEFAULT_STEPS,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Parameter of all runs, as name=value.")] = None,
    users: Annotated[Path | None, typer.Option(help="File with the population.")] = None,
    on: Annotated[
        str, typer.Option(help="processes, or ray: the cluster of RAY_ADDRESS, or this machine.")
    ] = "processes",
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at once; by default one a core.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the table and of one log a run, which are gone on with.")] = (
        Path("runs", "sweep")
    ),
    on_error: Annotated[str, typer.Option(help="skip, rule or raise.")] = "skip",
    max_calls: Annotated[int | None, typer.Option(help="Budget of live replies of all runs together.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens of all runs together.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars of all runs together.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Most requests in flight, of all runs together.")] = 64,
    requests_per_min: Annotated[float | None, typer.Option(help="Rate limit of all runs together.")] = None,
    reasoning: Annotated[
        str | None, typer.Option(help="How agents reason before they decide: none, inline or first.")
    ] = None,
    reply_tokens: Annotated[int | None, typer.Option(min=1, help="Maximum number of tokens of a reply.")] = None,
    parser: Annotated[str | None, typer.Option(help="Second model, which puts faulty replies into form.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a model over parameters, designs and seeds, as one table; the same command makes what is missing."""
    from mesa_llm.cli.run import budget, demand_no_secret, parameters
    from mesa_llm.cli.sweep import designs_in, print_sweep, values_of

    for option, text in [
        *(("--api-base", api_base), ("--llm", llm), ("--parser", parser)),
        *(("--set", pair) for pair in [*(vary or []), *(set_ or [])]),
    ]:
        demand_no_secret(option, text)
    kind = _model(model).load()
    options = {"on_error": on_error, "reasoning": reasoning, "reply_tokens": reply_tokens, "parser": parser}
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    print_sweep(
        kind,
        values_of(kind, vary or []),
        designs_in(design or []),
        say=_say,
        as_json=as_json,
        llm=[name.strip() for name in llm.split(",")],
        seeds=range(rng, rng + seeds),
        steps=steps,
        fixed=parameters(kind, set_ or [], users),
        on=on,
        workers=workers,
        folder=out,
        options={name: value for name, value in options.items() if value is not None},
        **spend,
        api_base=api_base,
        concurrency=concurrency,
        requests_per_min=requests_per_min,
    )


@app.command()
@_exits
def replay(
    file: Annotated[Path, typer.Argument(help="Run log of the run.")],
    trust: Annotated[bool, typer.Option("--trust", help="Import what the log names, also what is not listed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a recorded run again without asking anybody, and compare the digests."""
    from mesa_llm.cli.run import replay_run

    figures = replay_run(file, as_json=as_json, say=_say, trust=trust)
    if figures["digest"] != figures["recorded_digest"]:
        _say(f"mesa-llm: the digests differ: recorded {figures['recorded_digest']}, now {figures['digest']}", err=True)
        raise typer.Exit(DIFFERENT)


@app.command("branch")
@_exits
def branch_run(
    file: Annotated[Path, typer.Argument(help="Run log of the parent; it is not written.")],
    at: Annotated[int, typer.Option(min=0, help="Last step that is the parent's.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="New value of a variable, as name=value; with --at 0, of any parameter."),
    ] = None,
    inject: Annotated[
        list[str] | None, typer.Option(help="News for everyone, or an intervention as JSON, before the next step.")
    ] = None,
    llm: Annotated[str | None, typer.Option(help="What agents think with from there on.")] = None,
    design: Design = None,
    log: Annotated[Path | None, typer.Option(help="Run log of the branch; the same command goes on with it.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps after the fork; without it, up to the parent's last.")
    ] = None,
    drop_later: Annotated[
        bool, typer.Option("--drop-later", help="Leave out what was done to the parent from outside after that step.")
    ] = False,
    api_base: ApiBase = None,
    max_calls: Annotated[int | None, typer.Option(help="Budget of live replies; those from logs are free.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens of live replies.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars of live replies.")] = None,
    csv: Annotated[Path | None, typer.Option(help="File for the measures of both, side by side.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Import what the log names, also what is not listed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fork a recorded run at a step with a change, and compare the two."""
    from mesa_llm.cli.branch import Fork, run_branch
    from mesa_llm.cli.run import budget, demand_no_secret, design_in

    for option, text in [("--api-base", api_base), ("--llm", llm), *(("--set", pair) for pair in set_ or [])]:
        demand_no_secret(option, text)
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    fork = Fork(at, tuple(set_ or ()), tuple(inject or ()), llm, design_in(design), not drop_later, log)
    run_branch(file, fork, steps, {**spend, "api_base": api_base}, csv=csv, trust=trust, as_json=as_json, say=_say)


@app.command()
@_exits
def export(
    file: Annotated[Path, typer.Argument(help="Run log of the run; it is replayed, and nobody is asked.")],
    out: Annotated[Path, typer.Option(help="Folder for the files; made if there is none.")],
    trust: Annotated[bool, typer.Option("--trust", help="Import what the log names, also what is not listed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the tables of a recorded run as CSV, and who dealt with whom as GraphML."""
    from mesa_llm.cli.report import export_run

    export_run(file, out, trust=trust, as_json=as_json, say=_say)


@app.command()
@_exits
def report(
    file: Annotated[Path, typer.Argument(help="Run log of the run; it is replayed, and not written.")],
    llm: Annotated[str, typer.Option(help="Who writes: rule, or any language model.")] = "rule",
    out: Annotated[Path | None, typer.Option(help="File for it, .md or .html; without it, it is printed.")] = None,
    log: Annotated[
        Path | None, typer.Option(help="Run log of what a language model is asked; report-FILE, if unset.")
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Days that the run stands for: counts in weeks.")] = None,
    api_base: ApiBase = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Import what the log names, also what is not listed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the report of a recorded run: verdict, findings, coalitions, story."""
    from mesa_llm.cli.report import report_run
    from mesa_llm.cli.run import budget, demand_no_secret

    for option, text in [("--api-base", api_base), ("--llm", llm)]:
        demand_no_secret(option, text)
    options = budget(max_tokens=max_tokens, max_dollars=max_dollars) | ({"api_base": api_base} if api_base else {})
    report_run(file, llm, out, log, days=days, options=options, trust=trust, as_json=as_json, say=_say)


@app.command("cast")
@_exits
def cast_of_text(
    file: Annotated[Path, typer.Argument(help="Text that names people and institutions, in UTF-8.")],
    out: Annotated[Path, typer.Option(help="File for the cast, .json; models take it by --users.")],
    llm: Annotated[str, typer.Option(help="Who finds them; rule: the words with a capital.")] = "rule",
    n: Annotated[int, typer.Option("--n", min=1, max=100, help="Maximum number of characters.")] = 12,
    goal: Annotated[str, typer.Option(help="Question that they have a say or a stake in.")] = "",
    markets: Annotated[
        Path | None, typer.Option(help="File for questions to bet on, .json; market takes it by --set questions=.")
    ] = None,
    n_markets: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of questions.")] = 4,
    log: Log = None,
    api_base: ApiBase = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a cast from a text, and questions to bet on."""
    from mesa_llm.cli.cast import make_cast
    from mesa_llm.cli.run import budget, demand_no_secret

    for option, text in [("--api-base", api_base), ("--llm", llm)]:
        demand_no_secret(option, text)
    options = {**budget(max_tokens=max_tokens, max_dollars=max_dollars), "api_base": api_base, "log": log}
    counts: dict[str, Any] = {"goal": goal, "n_markets": n_markets, "markets": markets}
    make_cast(file, llm, n, out, **counts, options=options, as_json=as_json, say=_say, warn=_warn)


@app.command()
@_exits
def inspect(
    file: Annotated[Path, typer.Argument(help="Run log.")],
    calls: Annotated[bool, typer.Option("--calls", help="Requests and replies.")] = False,
    decisions: Annotated[bool, typer.Option("--decisions", help="What was decided.")] = False,
    actions: Annotated[bool, typer.Option("--actions", help="What was done, and what came of it.")] = False,
    events: Annotated[bool, typer.Option("--events", help="What the worlds told of.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="Calls, tokens, dollars by model.")] = False,
    agent: Annotated[int | None, typer.Option(help="Only this agent.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Show prompts and replies whole, and with decisions.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    salvage: Annotated[Path | None, typer.Option(help="New file for what can be read of a damaged log.")] = None,
) -> None:
    """Look into a run log; without options, at its manifest."""
    from mesa_llm.cli.inspect import salvaged, tables

    if salvage is not None:
        for line in salvaged(file, salvage):
            _say(line)
        return
    flags = {"calls": calls, "decisions": decisions, "actions": actions, "events": events, "usage": usage}
    sections = [name for name, is_wanted in flags.items() if is_wanted]
    if full and csv:
        raise ConfigError("--full: comma-separated values are whole anyway; leave out --full or --csv")
    if full and not (calls or decisions):
        sections.append("decisions")
    for text in tables(file, sections, agent, csv=csv, full=full):
        _say(text)


@app.command()
@_exits
def check(
    model: Annotated[str, typer.Argument(help="Name of the model, or module:Class of any, looked for here, too.")],
) -> None:
    """Check that a model keeps what every model promises: runs offline, replays, survives faults, ….

    Prints a line for each promise; exits with 1 if one is broken.
    """
    from mesa_llm.testing import check_results

    n_broken = 0
    for result in check_results(_model(model)):
        _say(f"{'BROKEN' if result.fault else 'ok    '}  {result.check}: {result.fault or result.promise}")
        n_broken += bool(result.fault)
    if n_broken:
        _warn(f"{model} breaks {n_broken} of its promises")
        raise typer.Exit(DIFFERENT)


def _model(name: str) -> ModelEntry:
    """Find the model that was typed; a `module:Class` is looked for in the working directory as well."""
    from mesa_llm.registry import find_model

    if ":" in name:
        _look_here()
    entry = find_model(name)
    entry.load()
    return entry


def _look_here() -> None:
    """Make modules in the working directory importable, after all others."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


@app.command("app")
@_exits
def open_app(
    page: Annotated[str, typer.Argument(help="Module or file of pages of your own, as for `solara run`.")] = GALLERY,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0: any that is free.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    token: Annotated[
        str | None,
        typer.Option(envvar="MESA_LLM_APP_TOKEN", help="Token in the address; a new one if unset."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Further name under which the server may be addressed, as by a proxy.")
    ] = None,
    max_calls: Annotated[int | None, typer.Option(help="Budget of replies for all pages together.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens for all pages together.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars for all pages together.")] = None,
) -> None:
    """Open the gallery of all models, or pages of your own, in the browser; only who has the token gets in."""
    from mesa_llm.cli.run import budget
    from mesa_llm.engine.access import Access
    from mesa_llm.viz.server import PageServer

    _look_here()
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    access = Access(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars) if spend else None
    server = PageServer(page, host=host, port=port, token=token, names=allow_host or (), access=access)
    _say(f"mesa-llm: the page opens at {server.address}")
    server.run(browser=browser)


@app.command()
@_exits
def doctor() -> None:
    """List what is installed, which providers have keys, and whether the embedded model answers."""
    from mesa_llm.cli.inspect import check_up

    for line in check_up():
        _say(line)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
